"""Command that measures a set, goes on with a record, or writes the pages of a record."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from parki.perfmodels.bench import plot
from parki.perfmodels.bench.measure import Row
from parki.perfmodels.bench.report import page, record, running
from parki.perfmodels.bench.report.sets import SETS, ReportEntry

FOLDER = Path("parki-report")
DEFAULT = "standard"
#: Options of `parki bench` that a set names, with their defaults.
NAMED = {"n": None, "tolerance": 1e-7, "repeat": 5, "json": None, "compare": None, "plot": None}


def main(asked: argparse.Namespace) -> int:
    """Run the command and print the paths of the pages.

    Returns
    -------
    int
        1 if an entry failed, else 0.

    Raises
    ------
    ValueError
        For options that do not fit each other, before anything is measured.
    """
    _refuse(asked)
    folder = asked.output or (asked.resume.parent if asked.resume else FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    plot.check(folder / "growth.svg")
    found = record.read(asked.source) if asked.source else _measured(asked, folder)
    for path in page.write(found, folder):
        print(path)  # noqa: T201
    return 1 if any("error" in entry for entry in found["entries"]) else 0


def _refuse(asked: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    for name, default in NAMED.items():
        if getattr(asked, name) != default:
            raise ValueError(f"--{name} was given with report; expected none, as the sets name their own.")
    others = {"--set": asked.named_set, "--resume": asked.resume, "--only": asked.only, "--space": asked.space}
    for name, value in (others | {"--threads": asked.threads}).items():
        if asked.source and value is not None:
            raise ValueError(f"{name} was given with --from; expected neither, as nothing is measured.")


def _measured(asked: argparse.Namespace, folder: Path) -> Row:
    """Measure the chosen entries, and keep the record in the folder."""
    old = record.read(asked.resume) if asked.resume else None
    named = asked.named_set or (old["set"] if old else DEFAULT)
    options = old["asked"] if old else {"space": asked.space, "threads": asked.threads}
    entries = chosen(named, asked.only)
    words = [f"parki bench report --set {named}"]
    words += [f"--{name} {value}" for name, value in options.items() if value]
    words += [f"--only {' '.join(asked.only)}"] if asked.only else []
    found = running.begin(named, " ".join(words), options["space"], options["threads"])
    if old:
        found = running.resumed(old, found)
    return running.run(found, entries, folder / page.RECORD, print)


def chosen(named: str, only: Sequence[str] | None) -> list[ReportEntry]:
    """Return the entries of a set, only entries of these names if any are given.

    Raises
    ------
    ValueError
        For a name that is not in the set.
    """
    names = [entry.name for entry in SETS[named]]
    for name in only or ():
        if name not in names:
            raise ValueError(f"--only is {name!r}; expected some of {', '.join(names)}, which the set {named} has.")
    return [entry for entry in SETS[named] if not only or entry.name in only]
