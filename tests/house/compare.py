"""Compare the working tree with an earlier commit: ``python -m tests.house.compare bits|speed|memory [BASE]``."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tests.house import bits, cases, memory, speed
from tests.house.process import ROOT, Tree, checkout

MEGABYTE = 1e6
LIFE = 40  # cases after which processes start anew: they keep tables and compiled code of every kernel


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit status, 1 if results differ."""
    asked = _parser().parse_args(arguments)
    command, table = {
        "bits": (_bits, lambda: cases.quick() if asked.quick else cases.table()),
        "speed": (_speed, speed.benchmarks),
        "memory": (_memory, memory.cases),
    }[asked.command]
    chosen = [case for case in table() if re.search(asked.only, str(case))]
    if asked.list:
        print(*chosen, sep="\n")
        return 0
    if not chosen:
        raise SystemExit(f"--only is {asked.only!r}; expected a pattern that a case of --list matches.")
    with checkout(asked.base) as root, Tree("old", root) as old, Tree("new", ROOT) as new:
        return command(chosen, old, new, asked)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.house.compare", description=__doc__.partition(":")[0] + ".")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (("bits", "results, bit for bit"), ("speed", "ratios of times"), ("memory", "peaks of move")):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("base", nargs="?", default="HEAD", help="a commit (HEAD)")
        command.add_argument("--only", default="", metavar="PATTERN", help="cases that match this regular expression")
        command.add_argument("--list", action="store_true", help="show the cases and stop")
        if name == "bits":
            command.add_argument("--quick", action="store_true", help="one case of each method and kernel")
        if name == "speed":
            command.add_argument("--turns", type=int, default=15, help="pairs of measurements of each row (15)")
    return parser


def _bits(chosen: list[cases.Case], old: Tree, new: Tree, asked: argparse.Namespace) -> int:
    began, unlike = time.perf_counter(), 0
    for number, case in enumerate(chosen, 1):
        if sys.stderr.isatty():
            print(f"\r{number} of {len(chosen)} ", end="", file=sys.stderr, flush=True)
        if number % LIFE == 0:
            old.close()
            new.close()
        lines = bits.differences(case, old, new)
        unlike += bool(lines)
        for line in lines:
            print(f"{case}: {line}", flush=True)
    spent = time.perf_counter() - began
    print(f"{len(chosen)} cases, {unlike} differ from {asked.base}, {spent:.0f} s")
    return 1 if unlike else 0


def _speed(chosen: list[speed.Benchmark], old: Tree, new: Tree, asked: argparse.Namespace) -> int:
    print(f"{'old/new':>8} {'95 % interval':>15} {'old':>10} {'new':>10}  of {asked.turns} turns; old is {asked.base}")
    for benchmark, r in speed.rows(chosen, old, new, asked.turns):
        interval = f"{r.low:.3f} to {r.high:.3f}"
        print(f"{r.median:8.3f} {interval:>15} {r.old * 1e3:7.2f} ms {r.new * 1e3:7.2f} ms  {benchmark}", flush=True)
    return 0


def _memory(chosen: list[cases.Case], old: Tree, new: Tree, asked: argparse.Namespace) -> int:
    print(f"{'resident, MB':^19}  {'NumPy, MB':^19}  peak of move; old is {asked.base}")
    print(f"{'old':>9} {'new':>9}  {'old':>9} {'new':>9}")
    for case in chosen:
        found = [_fresh(tree, lambda tree=tree, case=case: tree.ask("memory", case)) for tree in (old, new)]
        resident = " ".join(f"{'unknown' if p.resident is None else f'{p.resident / MEGABYTE:.1f}':>9}" for p in found)
        print(f"{resident}  {' '.join(f'{p.numpy / MEGABYTE:9.1f}' for p in found)}  {case}", flush=True)
    return 0


def _fresh(tree: Tree, ask: Callable[[], Any]) -> Any:
    """Return an answer of a process that has done nothing else, and holds no freed memory."""
    tree.close()
    return ask()


if __name__ == "__main__":
    sys.exit(main())
