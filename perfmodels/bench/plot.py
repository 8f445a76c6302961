"""Pictures of `parki bench`: bars of rates, time against N, time against tolerance."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parki.engine import writing
from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.measure import Row

SUFFIXES = (".png", ".svg", ".pdf")
OURS, OTHERS = "#1f6f8b", "#b9b4a7"  # colours of the bars of parki and of other programs
MARKS = "osD^v"


def check(path: Path) -> None:
    """Raise ValueError if no picture can be drawn at a path; for use before anything is measured."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("plot needs matplotlib, which is not installed: pip install 'parki[plot]'")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"plot is {str(path)!r}; expected a file name that ends in {', '.join(SUFFIXES)}.")
    if not path.parent.is_dir():
        raise ValueError(f"plot is {str(path)!r}; the folder {str(path.parent)!r} is not there.")


def draw(record: Row, path: Path) -> None:
    """Draw the rows of a record into a file, as its benchmark is drawn.

    Raises
    ------
    ValueError
        As `check`.
    """
    check(path)
    from matplotlib.figure import Figure

    rows = [r for r in record["rows"] if "seconds" in r]
    figure = Figure(layout="constrained")
    BENCHMARKS[record["benchmark"]].plot(figure, rows)
    threads = {r["threads"] for r in rows}
    prefix = "" if len(threads) != 1 else f"{max(threads)} thread{'s' * (max(threads) > 1)} of "
    figure.suptitle(f"parki bench {record['benchmark']}: {prefix}{record['machine']['processor']}", fontsize=10)
    with writing.replacing(path) as work:
        figure.savefig(work, dpi=150)


def bars(figure: Any, rows: list[Row]) -> None:
    """Draw rates, one panel for each unit, with rows compared against in grey and the ratio behind a row's bar."""
    units = list(dict.fromkeys(r["unit"] for r in rows)) or [""]
    groups = [[r for r in rows if r["unit"] == unit] for unit in units]
    longest = max((len(_label(r)) for r in rows), default=0)
    figure.set_size_inches(4.5 + 0.062 * longest, 0.9 + 0.7 * len(units) + 0.25 * max(len(rows), 1))
    panels = figure.subplots(len(units), 1, squeeze=False, height_ratios=[len(group) + 1 for group in groups])[:, 0]
    references = {r["against"] for r in rows if "ratio" in r}
    for axes, unit, group in zip(panels, units, groups, strict=True):
        rates = [r["rate"] for r in group]
        is_reference = [r["what"] in references and "ratio" not in r for r in group]
        container = axes.barh(
            range(len(group)), rates, color=[OTHERS if is_other else OURS for is_other in is_reference]
        )
        labels = [f"{r['rate']:.3g}" + (f"  ({r['ratio']:.2f} ×)" if "ratio" in r else "") for r in group]
        axes.bar_label(container, labels, padding=3, fontsize=8)
        axes.set_yticks(range(len(group)), [_label(r) for r in group], fontsize=8)
        axes.margins(y=0.6 / max(len(group), 1))
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        if rates and max(rates) > 30 * min(rates):
            axes.set_xscale("log")
            axes.set_xlim(min(rates) / 2, max(rates) * 8)
        else:
            axes.margins(x=0.25)
        axes.spines[["top", "right"]].set_visible(False)


def against_n(figure: Any, rows: list[Row]) -> None:
    """Draw microseconds a particle against the number of particles."""
    axes = _lines(figure, rows, "n", lambda r: 1e6 * r["seconds"] / r["n"])
    axes.set_xlabel("N")
    axes.set_ylabel("µs a particle, whole call")
    axes.set_ylim(bottom=0)


def against_tolerance(figure: Any, rows: list[Row]) -> None:
    """Draw seconds of whole calls against the tolerance asked for."""
    axes = _lines(figure, rows, "tolerance", lambda r: r["seconds"])
    axes.set_xlabel("tolerance")
    axes.set_ylabel(f"s, whole call, N = {rows[0]['n']:,}" if rows else "s")
    axes.invert_xaxis()
    axes.set_ylim(bottom=0)


def _lines(figure: Any, rows: list[Row], x: str, y: Callable[[Row], float]) -> Any:
    """Draw one line for each series, named in the legend; return the axes."""
    figure.set_size_inches(6.4, 4.2)
    axes = figure.subplots()
    for mark, series in zip(MARKS, dict.fromkeys(r["series"] for r in rows), strict=False):
        series_rows = [r for r in rows if r["series"] == series]
        axes.plot([r[x] for r in series_rows], [y(r) for r in series_rows], marker=mark, label=series)
    axes.set_xscale("log")
    axes.grid(alpha=0.3)
    if rows:
        axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def _label(r: Row) -> str:
    return f"{r['what']}, error {r['error']:.0e}" if "error" in r else r["what"]
