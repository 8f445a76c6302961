"""Process of one tree: it takes requests from its input, and writes only results to its output.

``python -P -m tests.house.worker ROOT``, started by `tests.house.process`.
"""

import os
import pickle
import sys
from pathlib import Path

from tests.house import sources


def main(root: Path) -> None:
    """Answer requests, pairs of a name and arguments, until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a print goes to the errors, which are kept in a file
    sources.install(root)
    from tests.house import calls, first_call, memory, speed

    functions = {"bits": calls.results, "prepare": speed.prepare, "time": speed.seconds, "memory": memory.peaks}
    functions["first"] = first_call.seconds
    while True:
        try:
            name, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        result = functions[name](*arguments)
        sources.check(root)
        pickle.dump(result, answers)
        answers.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
