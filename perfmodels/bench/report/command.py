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


def main(args: argparse.Namespace) -> int:
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
    _refuse(args)
    folder = args.output or (args.resume.parent if args.resume else FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    plot.check(folder / "growth.svg")
    content = record.read(args.source) if args.source else _measured(args, folder)
    for path in page.write(content, folder):
        print(path)  # noqa: T201
    return 1 if any("error" in entry for entry in content["entries"]) else 0


def _refuse(args: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    for name, default in NAMED.items():
        if getattr(args, name) != default:
            raise ValueError(f"--{name} was given with report; expected none, as the sets name their own.")
    options = {"--set": args.named_set, "--resume": args.resume, "--only": args.only, "--space": args.space}
    for name, value in (options | {"--threads": args.threads}).items():
        if args.source and value is not None:
            raise ValueError(f"{name} was given with --from; expected neither, as nothing is measured.")


def _measured(args: argparse.Namespace, folder: Path) -> Row:
    """Measure the chosen entries, and keep the record in the folder."""
    old = record.read(args.resume) if args.resume else None
    set_name = args.named_set or (old["set"] if old else DEFAULT)
    options = old["asked"] if old else {"space": args.space, "threads": args.threads}
    entries = chosen(set_name, args.only)
    words = [f"parki bench report --set {set_name}"]
    words += [f"--{name} {value}" for name, value in options.items() if value]
    words += [f"--only {' '.join(args.only)}"] if args.only else []
    content = running.begin(set_name, " ".join(words), options["space"], options["threads"])
    if old:
        content = running.resumed(old, content)
    return running.run(content, entries, folder / page.RECORD, print)


def chosen(set_name: str, names_asked: Sequence[str] | None) -> list[ReportEntry]:
    """Return the entries of a set, only entries of these names if any are given.

    Raises
    ------
    ValueError
        For a name that is not in the set.
    """
    names = [entry.name for entry in SETS[set_name]]
    for name in names_asked or ():
        if name not in names:
            raise ValueError(f"--only is {name!r}; expected some of {', '.join(names)}, which the set {set_name} has.")
    return [entry for entry in SETS[set_name] if not names_asked or entry.name in names_asked]
