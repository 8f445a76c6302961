"""`parki bench`: kernels and whole sums, measured in one run with the codes that they are compared with."""

import argparse
import datetime
import statistics

from parki.perfmodels.bench import compare, facts, handwritten, plot
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.measure import asked_space

REPORT = {"--set": "named_set", "--resume": "resume", "--from": "source", "-o": "output"}  # options of `report` alone


def main(args: argparse.Namespace) -> int:
    """Run one benchmark and print its table; append it to a file, compare it with one, draw it, if asked.

    Returns
    -------
    int
        1 if `args.compare` is a file and a row is slower than there, beyond noise, else 0.

    Raises
    ------
    ValueError
        For options of other benchmarks, and for files that cannot be used as asked, before anything is measured.
    """
    _refuse(args)
    benchmark, space = BENCHMARKS[args.name], asked_space(args)
    args.n = args.n or benchmark.n
    settings = benchmark.settings(args, space)
    if args.plot:
        plot.check(args.plot)
    if args.json and args.json.exists():
        compare.read(args.json)
    old = compare.newest(compare.read(args.compare), args.name, settings) if args.compare else None
    record = {
        "benchmark": args.name,
        "command": benchmark.command(args),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "asked": settings,
        "machine": facts.machine(space),
        "versions": facts.versions(),
    }
    yard = [statistics.median(handwritten.yardstick())]
    rows = benchmark.rows(args, space)
    record |= {"yardstick": [*yard, statistics.median(handwritten.yardstick())], "rows": rows}
    print(benchmark.table(rows))  # noqa: T201
    if args.json:
        compare.append(args.json, record)
    if args.plot:
        plot.draw(record, args.plot)
    if old is None:
        return 0
    comparison = compare.compare(old, record)
    print(f"\n{comparison}")  # noqa: T201
    return 1 if comparison.slower else 0


def _refuse(args: argparse.Namespace) -> None:
    """Raise ValueError for options of other benchmarks, which would have no effect."""
    for flag, name in REPORT.items():
        if getattr(args, name, None) is not None:
            raise ValueError(f"{flag} was given with {args.name}; expected parki bench report {flag}.")
    for option, commands in (("only", ["report"]), ("device", []), ("library", [])):
        names = commands + [name for name, benchmark in BENCHMARKS.items() if option in benchmark.options]
        if getattr(args, option, None) and args.name not in names:
            raise ValueError(f"--{option} was given with {args.name}; expected one of {', '.join(names)}.")
