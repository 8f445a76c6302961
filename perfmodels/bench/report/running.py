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
        old_value, new_value = old.get(name), new[name]
        if old_value != new_value:
            reason = f"{old_value!r}; expected {new_value!r}, as in this command."
            if isinstance(old_value, dict):
                keys = [key for key in {**old_value, **new_value} if old_value.get(key) != new_value.get(key)]
                reason = "; ".join(f"{key} was {old_value.get(key)!r} and is {new_value.get(key)!r}" for key in keys)
                reason = f"of other measurements ({reason}); expected the same, as times are not comparable otherwise."
            raise ValueError(f"{name} of the record to resume is {reason}")
    return old


def run(content: Row, entries: Sequence[ReportEntry], path: Path | None, say: Callable[[str], None]) -> Row:
    """Measure the entries that a record lacks or that failed; return the record, kept in a file after each.

    An entry that fails is recorded with its error, and the next one follows.
    """
    names_done = {entry["name"] for entry in content["entries"] if "rows" in entry}
    entries_left = [entry for entry in entries if entry.name not in names_done]
    if not entries_left:
        return content
    run_facts = {"run": uuid.uuid4().hex[:8], "began": _now(), "ended": _now(), "load_began": facts.load()}
    run_facts |= {"yardstick": [_yardstick()]}
    content["runs"].append(run_facts)
    for number, entry in enumerate(entries_left, 1):
        say(f"[{number}/{len(entries_left)}] {entry.command(**content['asked'])}")
        result = measure(entry, run_facts["run"], content["asked"])
        order = {member.name: place for place, member in enumerate(entries)}
        rest = [member for member in content["entries"] if member["name"] != entry.name]
        content["entries"] = sorted([*rest, result], key=lambda member: order.get(member["name"], len(order)))
        run_facts |= {"ended": _now(), "load_ended": facts.load()}
        say(f"    {result['seconds']:.1f} s" + (f", failed: {result['error']}" if "error" in result else ""))
        if path is not None:
            record.write(path, content)
    run_facts["yardstick"].append(_yardstick())
    if path is not None:
        record.write(path, content)
    return content


def measure(entry: ReportEntry, run: str, options: Row) -> Row:
    """Return the record of one entry: its rows, or its error."""
    args = entry.asked(**options)
    result: Row = {"name": entry.name, "benchmark": entry.benchmark, "command": entry.command(**options), "run": run}
    result |= {"load": facts.load()}
    start = time.perf_counter()
    try:
        space: Space = asked_space(args)
        benchmark = BENCHMARKS[entry.benchmark]
        rows = benchmark.rows(args, space)
        result |= {"asked": benchmark.settings(args, space), "rows": [r | {"run": run} for r in rows]}
        record.check_entry(result | {"seconds": 1.0}, {run})
    except Exception as error:
        result = {key: value for key, value in result.items() if key != "rows"}
        result |= {"error": f"{type(error).__name__}: {error}"}
    return result | {"seconds": max(time.perf_counter() - start, 1e-9)}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _yardstick() -> float:
    return statistics.median(handwritten.yardstick())
