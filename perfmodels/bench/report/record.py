"""Record of a report: one file of JSON, checked when read and before written.

A run is one process.  Each row has the name of its run.  A ratio is of two rows of an entry, which one run has measured
in turns.  A record with other ratios, for instance one put together from two records, is refused.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from parki.engine import writing
from parki.perfmodels.bench.compare import parsed
from parki.perfmodels.bench.measure import Row

SCHEMA = 1
RECORD = {"schema": int, "set": str, "command": str, "machine": dict, "software": dict, "runs": list, "entries": list}
MACHINE = {"processor": str, "cores": int, "arch": str, "bytes": int, "system": str}
SOFTWARE = {"parki": str, "python": str, "numpy": str, "scipy": str, "compiler": str, "flags": str, "rates": str}
RUN = {"run": str, "began": str, "ended": str}
ENTRY = {"name": str, "benchmark": str, "command": str, "run": str, "seconds": float}
ROW = {"what": str, "run": str, "seconds": float, "times": list, "rate": float, "unit": str}
CLOSE = 1e-9  # relative difference of numbers that count as the same


def read(path: Path) -> Row:
    """Return the record of a file, checked as `check` does: errors name the file."""
    content = parsed(path, "a record of parki bench report")
    try:
        check(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return content


def write(path: Path, record: Row) -> None:
    """Write a valid record; the old file stays if that fails."""
    check(record)
    writing.write(path, json.dumps(record, indent=1, allow_nan=False) + "\n")


def check(record: Any) -> None:
    """Refuse anything but a valid record.

    Raises
    ------
    ValueError
        Naming the first thing that is missing, of another type, or contradicts the rest.
    """
    _typed("the record", record, {"schema": int})
    if record["schema"] != SCHEMA:
        raise ValueError(f"schema is {record['schema']}; expected {SCHEMA}, the one that this parki reads.")
    _typed("the record", record, RECORD)
    _typed("machine", record["machine"], MACHINE)
    _typed("software", record["software"], SOFTWARE)
    for number, run in enumerate(record["runs"], 1):
        _typed(f"run {number}", run, RUN)
        for name in ("load_began", "load_ended"):
            _load(f"run {number}", name, run.get(name))
    for number, entry in enumerate(record["entries"], 1):
        _typed(f"entry {number}", entry, ENTRY)
    _once("run", [run["run"] for run in record["runs"]])
    _once("entry", [entry["name"] for entry in record["entries"]])
    for entry in record["entries"]:
        check_entry(entry, {run["run"] for run in record["runs"]})


def together(rows: Iterable[Row], title: str) -> str:
    """Return the run that has measured all rows.

    Raises
    ------
    ValueError
        If no single run has: times of several runs have different conditions, and are not compared.
    """
    runs = sorted({r["run"] for r in rows})
    if len(runs) != 1:
        raise ValueError(f"{title} has rows of the runs {', '.join(runs) or 'of none'}; expected those of one run.")
    return runs[0]


def ratio(numerator: Row, denominator: Row) -> float:
    """Return the seconds of one row over those of another of the same run."""
    together((numerator, denominator), f"the ratio of {numerator['what']!r} and {denominator['what']!r}")
    return numerator["seconds"] / denominator["seconds"]


def measured(entry: Row) -> list[Row]:
    """Return the rows of an entry that have times."""
    return [r for r in entry.get("rows", ()) if "absent" not in r]


def _typed(name: str, value_of_name: Any, kinds: Mapping[str, type]) -> None:
    if not isinstance(value_of_name, dict):
        raise ValueError(f"{name} is {type(value_of_name).__name__}; expected an object.")
    for key, kind in kinds.items():
        value = value_of_name.get(key)
        numeric = kind is float and isinstance(value, int)
        if isinstance(value, bool) or not (isinstance(value, kind) or numeric):
            description = "missing" if key not in value_of_name else f"{value!r}"
            raise ValueError(f"{key} of {name} is {description}; expected {kind.__name__}.")
        if kind is float and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{key} of {name} is {value!r}; expected a positive number.")


def _load(name: str, key: str, value: Any) -> None:
    valid = isinstance(value, list) and len(value) == 3 and all(isinstance(value, int | float) for value in value)
    if value is not None and not valid:
        raise ValueError(f"{key} of {name} is {value!r}; expected three numbers.")


def _once(name: str, names: Sequence[str]) -> None:
    if repeats := sorted({entry for entry in names if names.count(entry) > 1}):
        raise ValueError(f"{name} {repeats[0]!r} is there twice; expected it once.")


def check_entry(entry: Row, runs: set[str]) -> None:
    """Refuse an entry that contradicts itself, or whose run is not among these.

    Raises
    ------
    ValueError
        As `check`.
    """
    name = f"entry {entry['name']!r}"
    if entry["run"] not in runs:
        raise ValueError(f"run of {name} is {entry['run']!r}; expected one of {', '.join(sorted(runs)) or 'none'}.")
    if isinstance(entry.get("error"), str) == ("rows" in entry):
        raise ValueError(f"{name} has rows and an error, or neither; expected one of both.")
    rows = entry.get("rows", [])
    if not isinstance(rows, list):
        raise ValueError(f"rows of {name} is {type(rows).__name__}; expected a list.")
    for number, row in enumerate(rows, 1):
        if not (isinstance(row, dict) and isinstance(row.get("absent"), str)):
            _row(f"row {number} of {name}", row)
        _typed(f"row {number} of {name}", row, {"what": str, "run": str})
    if rows and together(rows, name) != entry["run"]:
        raise ValueError(f"{name} is of the run {entry['run']}, and its rows of {rows[0]['run']}; expected the same.")
    for row in measured(entry):
        if "ratio" in row:
            _ratio(name, row, measured(entry))


def _row(name: str, row: Any) -> None:
    _typed(name, row, ROW)
    for times in row["times"] or [None]:
        _typed(name, {"times": times}, {"times": float})
    if row["seconds"] != min(row["times"]):
        raise ValueError(f"seconds of {name} is {row['seconds']!r}; expected the least of its times.")
    if "error" in row:
        _typed(name, row, {"error": float})


def _ratio(name: str, row: Row, rows: Sequence[Row]) -> None:
    """Refuse a ratio that is not the ratio of the rates of two rows of the entry."""
    references = [reference for reference in rows if reference["what"] == row.get("against")]
    if not any(math.isclose(row["ratio"], row["rate"] / reference["rate"], rel_tol=CLOSE) for reference in references):
        description = f"{row['what']!r} against {row.get('against')!r} is {row['ratio']!r}"
        raise ValueError(f"the ratio of {description}; expected that of the rates of two rows of {name}.")
