"""Measure the entries of a set one after another, and keep the record after each."""

import datetime
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from parki.engine import Space, spaces
from parki.perfmodels.bench import facts, handwritten
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.measure import Row, asked_space
from parki.perfmodels.bench.report import record
from parki.perfmodels.bench.report.sets import ReportEntry

SAME = ("machine", "software")  # facts that must be the same to go on with a record


def begin(named_set: str, command: str, space: str | None, threads: int | None) -> Row:
    """Return a record without entries."""
    return {
        "schema": record.SCHEMA,
        "set": named_set,
        "command": command,
        "asked": {"space": space, "threads": threads},
        "machine": facts.hardware(spaces.get(space)),
        "software": facts.software(),
        "runs": [],
        "entries": [],
    }


def resumed(old: Row, new: Row) -> Row:
    """Return the old record, if measurements may go on with it.

    Raises
    ------
    ValueError
        If the machine, the software, the set or its space and threads have changed.
    """
    for name in ("set", "asked", *SAME):
        before, now = old.get(name), new[name]
        if before != now:
            told = f"{before!r}; expected {now!r}, as in this command."
            if isinstance(before, dict):
                keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
                told = "; ".join(f"{key} was {before.get(key)!r} and is {now.get(key)!r}" for key in keys)
                told = f"of other measurements ({told}); expected the same, as times are not comparable otherwise."
            raise ValueError(f"{name} of the record to resume is {told}")
    return old


def run(found: Row, entries: Sequence[ReportEntry], path: Path | None, say: Callable[[str], None]) -> Row:
    """Measure the entries that a record lacks or that failed; return the record, kept in a file after each.

    An entry that fails is recorded with its error, and the next one follows.
    """
    done = {entry["name"] for entry in found["entries"] if "rows" in entry}
    left = [entry for entry in entries if entry.name not in done]
    if not left:
        return found
    this = {"run": uuid.uuid4().hex[:8], "began": _now(), "ended": _now(), "load_began": facts.load()}
    this |= {"yardstick": [_yardstick()]}
    found["runs"].append(this)
    for number, entry in enumerate(left, 1):
        say(f"[{number}/{len(left)}] {entry.command(**found['asked'])}")
        made = measure(entry, this["run"], found["asked"])
        order = {one.name: place for place, one in enumerate(entries)}
        others = [one for one in found["entries"] if one["name"] != entry.name]
        found["entries"] = sorted([*others, made], key=lambda one: order.get(one["name"], len(order)))
        this |= {"ended": _now(), "load_ended": facts.load()}
        say(f"    {made['seconds']:.1f} s" + (f", failed: {made['error']}" if "error" in made else ""))
        if path is not None:
            record.write(path, found)
    this["yardstick"].append(_yardstick())
    if path is not None:
        record.write(path, found)
    return found


def measure(entry: ReportEntry, run: str, asked: Row) -> Row:
    """Return the record of one entry: its rows, or its error."""
    given = entry.asked(**asked)
    made: Row = {"name": entry.name, "benchmark": entry.benchmark, "command": entry.command(**asked), "run": run}
    made |= {"load": facts.load()}
    began = time.perf_counter()
    try:
        space: Space = asked_space(given)
        benchmark = BENCHMARKS[entry.benchmark]
        rows = benchmark.rows(given, space)
        made |= {"asked": benchmark.settings(given, space), "rows": [r | {"run": run} for r in rows]}
        record.check_entry(made | {"seconds": 1.0}, {run})
    except Exception as error:
        made = {key: value for key, value in made.items() if key != "rows"}
        made |= {"error": f"{type(error).__name__}: {error}"}
    return made | {"seconds": max(time.perf_counter() - began, 1e-9)}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _yardstick() -> float:
    return statistics.median(handwritten.yardstick())
