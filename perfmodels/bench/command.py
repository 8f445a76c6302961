"""`parki bench`: kernels and whole sums, measured in one run with the codes that they are compared with."""

import argparse
import datetime
import statistics

from parki.perfmodels.bench import compare, facts, handwritten, plot
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.measure import asked_space

REPORT = {"--set": "named_set", "--resume": "resume", "--from": "source", "-o": "output"}  # options of `report` alone


def main(asked: argparse.Namespace) -> int:
    """Run one benchmark and print its table; append it to a file, compare it with one, draw it, if asked.

    Returns
    -------
    int
        1 if `asked.compare` is a file and a row is slower than there, beyond noise, else 0.

    Raises
    ------
    ValueError
        For options of other benchmarks, and for files that cannot be used as asked, before anything is measured.
    """
    _refuse(asked)
    benchmark, space = BENCHMARKS[asked.name], asked_space(asked)
    asked.n = asked.n or benchmark.n
    settings = benchmark.settings(asked, space)
    if asked.plot:
        plot.check(asked.plot)
    if asked.json and asked.json.exists():
        compare.read(asked.json)
    old = compare.newest(compare.read(asked.compare), asked.name, settings) if asked.compare else None
    record = {
        "benchmark": asked.name,
        "command": benchmark.command(asked),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "asked": settings,
        "machine": facts.machine(space),
        "versions": facts.versions(),
    }
    yard = [statistics.median(handwritten.yardstick())]
    rows = benchmark.rows(asked, space)
    record |= {"yardstick": [*yard, statistics.median(handwritten.yardstick())], "rows": rows}
    print(benchmark.table(rows))  # noqa: T201
    if asked.json:
        compare.append(asked.json, record)
    if asked.plot:
        plot.draw(record, asked.plot)
    if old is None:
        return 0
    found = compare.compare(old, record)
    print(f"\n{found}")  # noqa: T201
    return 1 if found.slower else 0


def _refuse(asked: argparse.Namespace) -> None:
    """Raise ValueError for options of other benchmarks, which would have no effect."""
    for flag, name in REPORT.items():
        if getattr(asked, name, None) is not None:
            raise ValueError(f"{flag} was given with {asked.name}; expected parki bench report {flag}.")
    known = [name for name, benchmark in BENCHMARKS.items() if "only" in benchmark.options]
    if getattr(asked, "only", None) and asked.name not in known:
        raise ValueError(f"--only was given with {asked.name}; expected one of report, {', '.join(known)}.")
