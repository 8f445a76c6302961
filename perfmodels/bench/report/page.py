"""Page of a record: machine, tables, pictures, and the command that repeats each measurement."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parki.engine import writing
from parki.perfmodels.bench import plot
from parki.perfmodels.bench.measure import Row
from parki.perfmodels.bench.report import figures, record, tables

APART = ("parki", "compiler", "flags", "rates", "commit")  # facts of the software with a line of their own
RECORD, PAGE = "record.json", "index.md"
BUSY = 0.5  # load beyond a measurement's own threads, above which the page reports other programs


@dataclass(frozen=True)
class Section:
    """A part of the page: the benchmarks that it shows, text above, table and picture."""

    title: str
    benchmarks: tuple[str, ...]
    text: str
    body: tables.Body
    picture: str | None = None
    draw: Callable[[Any, Sequence[Row]], None] | None = None


SECTIONS = (
    Section(
        "Accuracy against time",
        ("accuracy",),
        "One number of particles, and tolerances a hundred times apart. The error is measured: of Ewald sums against a "
        "second sum that shares no parameter, of all others against the direct sum, at 200 random targets.",
        tables.accuracy,
        "accuracy.svg",
        figures.accuracy,
    ),
    Section(
        "Growth with N",
        ("growth",),
        "Tolerance 1e-5. `direct-coulomb` sums all pairs.",
        tables.growth,
        "growth.svg",
        figures.growth,
    ),
    Section(
        "Phases",
        ("phases",),
        "Tolerance 1e-6. Parts of a plan and its first call, in the fastest of the runs; `other` is the rest of the "
        "plan: choosing parameters, looking at the points, taking memory.",
        tables.phases,
        "phases.svg",
        figures.phases,
    ),
    Section(
        "Other programs",
        ("free", "treecode-free", "fmm-free", "peers"),
        "Each other program and parki measured in turns, with as many threads. Parki runs at the largest tolerance "
        "tried at which its measured error is at most that of the other, or 1e-11 where the other's is smaller. Whole "
        "calls; against OpenMM forces at moved points with a plan, or context, that is there. `parki` alone is an "
        "Ewald sum, without periodic directions beside FMM3D.",
        tables.programs,
        "programs.svg",
        figures.programs,
    ),
    Section(
        "Kernels",
        ("p2p", "p2g", "g2p"),
        "Single kernels on one thread, in turns with code written by hand, and with finufft's spreader at the same "
        "width (one complex number where parki has two real ones).",
        tables.kernels,
        "kernels.svg",
        figures.kernels,
    ),
    Section("Threads", ("threads",), "Tolerance 1e-6.", tables.threads),
    Section(
        "Variants",
        ("variants",),
        "The kernels of `stokes_comb` alone, by the variants of the published code; `LIST` and `BLOCK` are parki's "
        "own. The first of each kind is the one that this space takes by default.",
        tables.rates,
    ),
    Section("Right-hand sides and phases", ("ewald",), "Plans and calls of Ewald sums.", tables.rates),
    Section("Far field in single precision", ("precision",), "A plan's further calls.", tables.rates),
    Section("Splits", ("split",), "The prolate split against the Gaussian one, each at its best rc.", tables.rates),
    Section("Points that crowd", ("crowds",), "Whole calls with the rc of even points and their own.", tables.rates),
    Section("Transforms", ("fft",), "Transforms of a sum by the libraries that are installed.", tables.rates),
)


def write(content: Row, folder: Path) -> list[Path]:
    """Write page, pictures and record into a folder; return their paths.

    Raises
    ------
    ValueError
        If the record is not valid, or matplotlib is not installed.
    """
    record.check(content)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / PAGE, folder / RECORD]
    for section, entries in shown(content):
        if section.picture and section.draw and drawn(section, entries):
            paths.append(folder / section.picture)
            plot.check(paths[-1])
            figures.save(paths[-1], section.draw, entries)
    record.write(folder / RECORD, content)
    writing.write(folder / PAGE, text(content))
    return paths


def text(content: Row) -> str:
    """Return the page."""
    parts = [
        "% Written by parki bench report from record.json beside it; changes made here are lost.",
        "# Benchmarks",
        f"All tables and pictures of this page are written by parki from {{download}}`one record <{RECORD}>`, which "
        "has every single time. This command measures a machine and writes such a page:",
        fenced([f"{content['command']} -o FOLDER"]),
        "A time is the least of the runs of one process. Rows that are compared took turns in it, on the same points "
        "and with as many threads; no ratio has figures of another process or machine. Points are uniform and random, "
        "targets are the sources, double precision. Kernels are compiled before the clock starts.",
        machine(content),
    ]
    for section, entries in shown(content):
        parts += [f"## {section.title}", f"{section.text} {said(entries)}".strip()]
        reading, table = section.body(entries)
        parts += [part for part in (reading, table) if part]
        if drawn(section, entries):
            parts.append(f"![{section.title}]({section.picture})")
        parts += [f"Not measured: {line}." for line in absent(entries)]
        parts += ["Each alone:" if len(entries) > 1 else "Alone:", fenced([entry["command"] for entry in entries])]
    if failures := [entry for entry in content["entries"] if "error" in entry]:
        parts += ["## Failed", "These measurements ended with an error:"]
        parts.append("\n".join(f"- `{entry['command']}`: {' '.join(entry['error'].split())}" for entry in failures))
    return "\n\n".join(parts) + "\n"


def machine(content: Row) -> str:
    """Return the table of the machine and the software, and a sentence on other work during the measurements."""
    facts, soft, runs = content["machine"], content["software"], content["runs"]
    dates = [run["began"][:10] for run in runs]
    properties = {
        "processor": f"{facts['processor']}, {facts['cores']} core{'s' * (facts['cores'] > 1)}",
        "vectors": f"{8 * facts['bytes']} bits, compiled for {facts['arch'].rpartition('-')[0] or facts['arch']}",
        "memory": f"{facts['memory'] / 2**30:.0f} GiB" if "memory" in facts else None,
        "device": f"{facts['device']}, driver {facts['driver']}" if "device" in facts else None,
        "system": facts["system"],
        "compiler": f"{soft['compiler']}, `{soft['flags']}`",
        "parki": soft["parki"] + _commit(soft),
        "rates that choose parameters": soft["rates"],
        "Python and libraries": ", ".join(f"{name} {text}" for name, text in soft.items() if name not in APART),
        "set": f"`{content['set']}`, measured {' and '.join(dict.fromkeys(dates))} in {tables.count(len(runs), 'run')}",
        "load average": "; ".join(f"{_load(run, 'began')} at the start, {_load(run, 'ended')} after" for run in runs),
    }
    lines = [(name, value) for name, value in properties.items() if value]
    table = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in lines)])
    return "\n\n".join([table, *filter(None, [busy(content)])])


def busy(content: Row) -> str:
    """Return a sentence that other programs ran during the measurements; empty if few did."""
    entries = [entry for entry in content["entries"] if entry.get("load") and "asked" in entry]
    loads = [(entry["load"][0], entry["asked"]["threads"]) for entry in entries]
    if not loads or statistics.median(load - threads for load, threads in loads) <= BUSY:
        return ""
    middle = statistics.median(load for load, _ in loads)
    cores = tables.count(content["machine"]["cores"], "core")
    return (
        "**Other programs ran on this machine meanwhile**: half of the measurements began at a load average of "
        f"{middle:.1f} or more on {cores}, so times are longer, and ratios less certain, than on a quiet one."
    )


def said(entries: Sequence[Row]) -> str:
    """Return a sentence on the threads and the repeats of some entries."""
    threads = {r["threads"] for entry in entries for r in record.measured(entry)} or {1}
    repeats = {entry["asked"]["repeat"] for entry in entries}
    threads_text = tables.count(max(threads), "thread") if len(threads) == 1 else f"Up to {max(threads)} threads"
    return f"{threads_text[0].upper()}{threads_text[1:]}, the best of {tables.count(max(repeats), 'run')}."


def absent(entries: Sequence[Row]) -> list[str]:
    """Return the missing programs that were not measured, each with its installation."""
    rows = [r for entry in entries for r in entry["rows"] if "absent" in r]
    return list(dict.fromkeys(f"{r['what']} (`{r['absent']}`)" for r in rows))


def fenced(lines: Sequence[str]) -> str:
    """Return commands as a block of Markdown."""
    return "\n".join(["```sh", *lines, "```"])


def shown(content: Row) -> list[tuple[Section, list[Row]]]:
    """Return the sections that have entries with rows, each with these entries."""
    sections = [
        (
            section,
            [entry for entry in content["entries"] if entry["benchmark"] in section.benchmarks and "rows" in entry],
        )
        for section in SECTIONS
    ]
    return [(section, entries) for section, entries in sections if entries]


def drawn(section: Section, entries: Sequence[Row]) -> bool:
    """Tell whether there is anything to draw."""
    return section.picture is not None and bool(section.body(entries)[1])


def _commit(soft: Row) -> str:
    commit, _, changes = soft.get("commit", "").partition("-")
    return f", commit {commit[:12]}{' with changes' * bool(changes)}" if commit else ""


def _load(run: Row, moment: str) -> str:
    load = run.get(f"load_{moment}")
    return f"{load[0]:.2f}" if load else "unknown"
