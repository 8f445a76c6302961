"""Records of `parki bench`, and rows slower than in an old one: ``parki bench NAME --compare OLD.json``.

A record is compared with the newest of the same benchmark, n, tolerance, threads and space, row by row; rows match that
have the same name, n, tolerance and threads.

The rule: of each row the fastest runs are compared, and a difference counts if it is larger than the noise of both.
The noise of one measurement is its median over its fastest run, less one (`parki.perfmodels.bench.measure.spread`);
with fewer than three runs it is unknown, and `UNKNOWN` is taken.  Shared machines are at times slower as a whole.
Therefore a fixed loop, the yardstick, is timed before and after all rows, and the slowest over the fastest of its
four times, less one, is noise of every row.  A row is slower if its time is more than 1 + `LEAST` + all this noise
times the old one, and faster if the old time is more than this factor times the new one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parki.engine import writing
from parki.perfmodels.bench.measure import Row, spread

LEAST = 0.05  # relative change from one start of a process to the next: places of arrays in memory, clock rates
UNKNOWN = 0.25  # noise of a measurement with fewer than `ENOUGH` runs
ENOUGH = 3  # runs from which noise is known
ASKED = ("n", "tolerance", "threads", "space")  # settings that compared records share

Key = tuple[object, ...]


@dataclass(frozen=True)
class Change:
    """Times of one row in the old and in the new record.

    `ratio` is the old time over the new one, above 1 for a row that became faster; either time over the other may
    exceed 1 by `noise` before the difference counts.
    """

    what: str
    old: float
    new: float
    noise: float

    @property
    def ratio(self) -> float:
        """Old time over new."""
        return self.old / self.new

    @property
    def verdict(self) -> str:
        """``"slower"``, ``"faster"``, or an empty string within the noise."""
        if self.new > self.old * (1.0 + self.noise):
            return "slower"
        return "faster" if self.old > self.new * (1.0 + self.noise) else ""


@dataclass(frozen=True)
class Comparison:
    """Rows that both records have, and names of rows that only one has; `notes` list the other differences."""

    changes: list[Change]
    gone: list[str]
    added: list[str]
    notes: list[str]

    @property
    def slower(self) -> bool:
        """Tell whether any row is slower beyond noise."""
        return any(change.verdict == "slower" for change in self.changes)

    def __str__(self) -> str:
        width = max([58, *(len(change.what) for change in self.changes)])
        lines = [*self.notes, f"{'what':<{width}}{'then':>12}{'now':>12}{'ratio':>8}{'noise':>8}"]
        for c in self.changes:
            times = f"{1e3 * c.old:>9.2f} ms{1e3 * c.new:>9.2f} ms"
            lines.append(f"{c.what:<{width}}{times}{c.ratio:>8.2f}{c.noise:>8.0%}   {c.verdict}".rstrip())
        lines += [f"{title:<{width}}  measured then, not now" for title in self.gone]
        lines += [f"{title:<{width}}  measured now, not then" for title in self.added]
        count = sum(change.verdict == "slower" for change in self.changes)
        return "\n".join([*lines, f"{count} of {len(self.changes)} rows slower beyond noise"])


def read(path: Path) -> list[Row]:
    """Return the records of a file.

    Raises
    ------
    ValueError
        If the file holds no list of records.
    OSError
        If the file cannot be read.
    """
    records = parsed(path, "records of parki bench --json")
    if not (
        isinstance(records, list) and all(isinstance(r, dict) and "benchmark" in r and "rows" in r for r in records)
    ):
        raise ValueError(f"{path} holds no list of records; expected what parki bench --json writes.")
    return records


def parsed(path: Path, expected: str) -> Any:
    """Return the content of a file of JSON; the error for any other file names `expected`."""
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); expected {expected}.") from None


def append(path: Path, record: Row) -> None:
    """Add a record to a file, which is made if it does not exist, and stays unchanged if writing fails."""
    old = read(path) if path.exists() else []
    writing.write(path, json.dumps([*old, record], indent=1) + "\n")


def newest(records: Sequence[Row], benchmark: str, settings: Row) -> Row:
    """Return the newest record of this benchmark for the same `ASKED`; of equal dates the last.

    Raises
    ------
    ValueError
        If there is none; the message lists the records of this benchmark.
    """
    candidates = [r for r in records if r["benchmark"] == benchmark]
    matches = [r for r in candidates if all(r.get("asked", {}).get(name, ()) == settings[name] for name in ASKED)]
    if not matches:
        expected = ", ".join(f"{name} {settings[name]}" for name in ASKED)
        listing = "; ".join(", ".join(f"{n} {r['asked'].get(n)}" for n in ASKED) for r in candidates if "asked" in r)
        raise ValueError(f"no record of {benchmark} with {expected} to compare with; found {listing or 'none at all'}.")
    return max(reversed(matches), key=lambda r: r.get("date", ""))


def compare(old: Row, new: Row) -> Comparison:
    """Compare two records by the module's rule."""
    rows_then, rows_now = (_measured(record) for record in (old, new))
    yards = [seconds for record in (old, new) for seconds in record.get("yardstick", ())]
    threshold = LEAST + (max(yards) / min(yards) - 1.0 if yards else 0.0)
    changes = [
        Change(r["what"], rows_then[key]["seconds"], r["seconds"], threshold + _noise(rows_then[key]) + _noise(r))
        for key, r in rows_now.items()
        if key in rows_then
    ]
    old_titles, new_titles = (
        [r["what"] for key, r in rows.items() if key not in counterpart]
        for rows, counterpart in ((rows_then, rows_now), (rows_now, rows_then))
    )
    notes = [f"then: {old.get('date', 'no date')}, parki {old.get('versions', {}).get('parki', '?')}"]
    for time_name, record in (("then", old), ("now", new)):
        if yardstick := record.get("yardstick"):
            notes.append(f"yardstick {time_name}: {' to '.join(f'{1e3 * seconds:.2f}' for seconds in yardstick)} ms")
    for name in ("machine", "versions"):
        facts_then, facts_now = old.get(name, {}), new.get(name, {})
        notes += [
            f"{key}: {facts_then.get(key)} then, {facts_now.get(key)} now"
            for key in sorted({*facts_then, *facts_now} - {"parki"})
            if facts_then.get(key) != facts_now.get(key)
        ]
    return Comparison(changes, old_titles, new_titles, notes)


def _measured(record: Row) -> dict[Key, Row]:
    """Return the rows with a time, by name, n, tolerance and threads."""
    return {(r["what"], *(r.get(name) for name in ASKED[:3])): r for r in record["rows"] if "seconds" in r}


def _noise(r: Row) -> float:
    times = r.get("times", ())
    return spread(times) if len(times) >= ENOUGH else UNKNOWN
