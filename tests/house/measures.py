"""Print the measures of the tree: ``python -m tests.house.measures [first-call] [--details]``."""

import argparse
import sys
from collections.abc import Sequence

from tests.house import code, first_call, language, traces

FOLDERS = ("parki", "kernels", "perfmodels")


def outside_engine() -> tuple[code.Module, ...]:
    """Return the modules of parki outside the engine."""
    return tuple(module for module in code.modules("parki") if not module.name.startswith("parki.engine"))


def counts() -> dict[str, list[str]]:
    """Return the places that each measure counts, by its name."""
    ours, both, every = code.modules("parki"), code.modules("parki", "perfmodels"), code.modules(*FOLDERS)

    def named(places: dict[str, list[str]]) -> list[str]:
        return [f"{name}: {', '.join(found)}" for name, found in places.items()]

    return {
        "circles of imports": [", ".join(circle) for circle in code.circles(code.imports(ours))],
        "modules in circles": [name for circle in code.circles(code.imports(ours)) for name in circle],
        "workunits named more than once": named(code.workunits(outside_engine())),
        "functions that return lists of workunits": code.lists(outside_engine()),
        "tests of a space's kind, parki": code.kinds(outside_engine()),
        "tests of a kind, perfmodels": code.kinds(code.modules("perfmodels")),
        "functions of more than 8 parameters": code.many_parameters(both),
        "class names defined more than once": named(code.classes(both)),
        "places that repeat 6 lines": code.duplicates(every),
        "places of tests that repeat 6 lines": code.duplicates(code.modules("tests")),
    }


def shares() -> dict[str, float]:
    """Return the measures of docstrings."""
    every = code.modules(*FOLDERS)
    return {
        '"what" in 10,000 words of docstrings': language.whats(every),
        "share of vague first words of docstrings": language.vague_openings(every),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print measures, or first calls."""
    parser = argparse.ArgumentParser(prog="python -m tests.house.measures", description="Print measures of the tree.")
    parser.add_argument("what", nargs="?", choices=["tree", "first-call"], default="tree")
    parser.add_argument("--details", action="store_true", help="the places that are counted, and orders of files")
    asked = parser.parse_args(arguments)
    if asked.what == "first-call":
        _print_first_calls()
    else:
        _print_tree(asked.details)
    return 0


def _print_tree(details: bool) -> None:
    for name, places in counts().items():
        print(f"{len(places):8}  {name}")
        for place in places if details else ():
            print(f"{'':10}{place}")
    for name, share in shares().items():
        print(f"{share:8.3g}  {name}")
    print(f"{language.lines(*FOLDERS, 'examples'):8}  lines of code, headers and examples included")
    print(f"{language.lines('tests'):8}  lines of tests")
    print("\n   files  entered again  by the second call of")
    for name, trace in traces.warm().items():
        print(f"{len(trace.files):8}  {len(trace.again):13}  {name}")
        if details:
            print(f"{'':10}{trace}")


def _print_first_calls() -> None:
    print(f"   ratio      wall  compilers / {first_call.cores()} + longest  objects  first call of")
    for case, call in first_call.measure():
        least = f"{call.compilers / first_call.cores():.2f} + {call.longest:.2f} s"
        print(f"{call.ratio:8.2f}  {call.wall:6.2f} s  {least:>23}  {call.objects:7}  {case}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
