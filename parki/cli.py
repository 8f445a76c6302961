"""Command ``parki``: demo, run, doctor, examples, bench, model, calibrate, tune, cache, completion."""

import argparse
import logging
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Other modules are imported when they are needed: --help and --version are printed without NumPy.
from parki import console, memory
from parki.app import parser

OVER_RANKS = ("demo", "run", "doctor")  # commands that run on all ranks of MPI together; bench with --mpi


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its status: 0, 2 for input that cannot be used, 1 for any other failure.

    If the reader of stdout has gone, the command ends silently with `console.CLOSED`.
    """
    comm = None
    try:
        with console.ready():
            asked = parser.parser().parse_args(arguments)
            from parki.distributed import launch

            if asked.mpi or asked.command in OVER_RANKS:
                comm = launch.world(1 if asked.mpi else 2)
            asked.comm = comm
            return _status(asked)
    except BrokenPipeError:
        return _ended(comm, console.CLOSED)
    except OSError as error:  # only from the final flush: _status takes all others
        print(f"parki: {error}", file=sys.stderr)
        return _ended(comm, 2)


def _ended(comm: Any, status: int) -> int:
    """Return the status of a command whose output has failed, and end the other ranks."""
    if comm is None:
        return status
    from parki.distributed import launch

    return launch.end(comm, status)


def _status(asked: argparse.Namespace) -> int:
    """Run the command that was asked for; report errors in its input in one line."""
    from parki.distributed import launch
    from parki.engine import BuildError

    log, handler, level = logging.getLogger("parki"), logging.StreamHandler(), logging.getLogger("parki").level
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    try:
        if asked.verbose and launch.first(asked.comm):
            log.addHandler(handler)
            log.setLevel(logging.INFO)
        with launch.told_by_one(asked.comm):
            return ACTIONS[asked.command](asked)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, OSError, MemoryError, BuildError) as error:
        if launch.speaks(asked.comm, error):
            if asked.verbose:
                traceback.print_exc()
            print(f"parki {asked.command}: {error}{launch.found_by(asked.comm, error)}", file=sys.stderr)
        return launch.end(asked.comm, 1 if isinstance(error, BuildError) else 2, error)
    except BaseException:
        launch.end(asked.comm, 1)
        raise
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


def demo(asked: argparse.Namespace) -> int:
    """Sum the flow of random particles; print times and error, draw a picture."""
    from parki import demo as module
    from parki import ranks
    from parki.ewald.options import EwaldOptions
    from parki.progress import Progress

    with ranks.together(asked.comm, "reading options"):
        options = EwaldOptions.resolve(
            box=(1, 1, 1), tolerance=asked.tolerance, execution_space=asked.space, threads=asked.threads
        )
        options.comm = asked.comm
    progress = Progress(sys.stderr if asked.comm is None else None, plain=asked.verbose)
    ratio = module.run(options, asked.n, asked.seed, None if asked.no_picture else asked.output, print, progress)
    return 0 if ratio <= 1 else 1


def run(asked: argparse.Namespace) -> int:
    """Sum over the particles of a file; over ranks of MPI together."""
    from parki import files
    from parki.app.sums import FileSum
    from parki.progress import Progress

    parameters = dict(asked.parameter)
    if len(parameters) < len(asked.parameter) or (asked.kappa is not None and "kappa" in parameters):
        raise ValueError("a parameter was given several times; expected --parameter NAME=VALUE once for each name.")
    if asked.kappa is not None:
        parameters["kappa"] = asked.kappa
    named = "kernel method gradient box periodicity tolerance rc split space threads comm".split()
    question = FileSum(parameters=parameters, **{name: getattr(asked, name) for name in named})
    progress = Progress(sys.stderr if asked.comm is None else None, plain=asked.verbose)
    lines = files.run(asked.input, asked.output, question, asked.dtype, progress)
    print(lines[0])
    if asked.comm is not None:  # times of all ranks
        print(lines.pop())
    if asked.verbose:
        print(*lines[1:], sep="\n", file=sys.stderr)
    return 0


def doctor(asked: argparse.Namespace) -> int:
    """Print the compilers, devices and libraries that are present or missing."""
    from parki import doctor as module

    if asked.check:
        from parki import ranks
        from parki.app import checks

        with ranks.together(asked.comm, "reading options"):
            if asked.comm is not None:
                raise ValueError(f"--check was given with {asked.comm.size} processes; expected one, and no launcher.")
        return checks.run(print)
    text, ready = module.report(asked.comm)
    print(text)
    return 0 if ready else 1


def examples(asked: argparse.Namespace) -> int:
    """List, show or copy the examples."""
    from parki.app import examples as module

    if asked.what == "list":
        print(module.table())
    elif asked.what == "show":
        print(module.text(asked.name), end="")
    else:
        name, folder = (None, asked.folder or asked.name) if asked.all else (asked.name, asked.folder)
        if asked.all and asked.name and asked.folder:
            raise ValueError(f"--all was given with the name {asked.name!r}; expected one of them.")
        if name is None and not asked.all:
            raise ValueError(f"NAME is missing; expected --all, or one of {', '.join(module.names())}.")
        for path in module.copy(name, Path(folder or "."), asked.force):
            print(path)
    return 0


def completion(asked: argparse.Namespace) -> int:
    """Print the completion script of a shell."""
    from parki.app import completion as module

    print(module.script(parser.parser(), asked.shell))
    return 0


def bench(asked: argparse.Namespace) -> int:
    """Measure a kernel or a whole sum, with --mpi a sum over ranks."""
    if asked.mpi:
        from parki.perfmodels.bench import ranks

        return ranks.main(asked)
    if asked.name == "list":
        from parki.perfmodels.bench import benchmark

        print(benchmark.listed())
        return 0
    if asked.points is not None:
        raise ValueError("--points was given without --mpi; expected parki bench treecode --mpi --points plummer.")
    _room(asked.n or 0)
    if asked.name == "report":
        from parki.perfmodels.bench.report import command as module
    else:
        from parki.perfmodels.bench import command as module
    return module.main(asked)


def model(asked: argparse.Namespace) -> int:
    """Predict a sum on any machine that is known."""
    for name in ("schedule", "points", "cores", "devices", "gantt", "trace"):
        if asked.what != "fmm" and getattr(asked, name) is not None:
            raise ValueError(f"--{name}: found with {asked.what}, expected with fmm")
    if asked.what == "treecode":
        from parki.perfmodels.models import treecode as module
    elif asked.what == "fmm":
        from parki.perfmodels.models import fmm as module
    else:
        from parki.perfmodels.models import ewald as module
    if asked.what != "ewald" and asked.ranks is None:  # these make no points, or not all of them
        _room(asked.n)
    return module.main(asked)


def calibrate(asked: argparse.Namespace) -> int:
    """Measure this machine and remember it."""
    from parki.perfmodels.bench import calibrate as module

    return module.main(asked)


def tune(asked: argparse.Namespace) -> int:
    """Measure the fastest options for sums of random points and remember them."""
    from parki.perfmodels.bench import tune as module

    _room(asked.n)
    return module.main(asked)


def _room(n: int) -> None:
    """Refuse more random particles, of at least six numbers each, than there is memory for."""
    memory.require(48 * n, f"--n {n}", "A smaller --n takes less.")


def cache(asked: argparse.Namespace) -> int:
    """List, clear or prune compiled kernels."""
    from parki.engine import cache as module

    if asked.what == "list":
        for entry in module.entries():
            print(f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.time))}  {entry.size:9d}  {entry.label}")
        print(f"{len(module.entries())} kernels, {module.size() / 1e6:.1f} MB in {module.folder()}")
        return 0
    gone = module.clear() if asked.what == "clear" else module.prune(max_age_days=asked.days)
    print(f"{len(gone)} kernels removed from {module.folder()}")
    return 0


ACTIONS = {
    "demo": demo,
    "run": run,
    "doctor": doctor,
    "examples": examples,
    "bench": bench,
    "model": model,
    "calibrate": calibrate,
    "tune": tune,
    "cache": cache,
    "completion": completion,
}
