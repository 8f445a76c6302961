"""Pictures of the pages: SVG on white, so that light and dark pages show them alike."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from parki.engine import writing
from parki.perfmodels.bench.measure import Row, apart
from parki.perfmodels.bench.plot import MARKS, OTHERS, OURS
from parki.perfmodels.bench.report import tables

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#4d4d4d", "#999933")  # Okabe and Ito's
LIGHT, REST = ("#cc79a7", "#56b4e9", "#e69f00"), "#777777"
WIDTH = 8.0  # inches
LETTER = 0.8  # % of a bar that a letter of a label takes


def save(path: Path, draw: Callable[[Any, Sequence[Row]], None], entries: Sequence[Row]) -> None:
    """Draw entries into a file, the same bytes for the same entries."""
    import matplotlib
    from matplotlib.figure import Figure

    settings = {"svg.hashsalt": "parki", "svg.fonttype": "none", "font.size": 9}
    settings |= {"axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings), writing.replacing(path) as work:
        figure = Figure(layout="constrained", facecolor="white")
        draw(figure, entries)
        figure.savefig(work, metadata={"Date": None})


def accuracy(figure: Any, entries: Sequence[Row]) -> None:
    """Draw time against measured error: solid for a plan and its first call, dashed for the next call."""
    panels = _lines(figure, entries, lambda r: r["error"], lambda r: 1e6 * r["seconds"] / r["n"])
    for axes in panels:
        axes.set_xlabel("measured relative RMS error")
        axes.invert_xaxis()


def growth(figure: Any, entries: Sequence[Row]) -> None:
    """Draw the time a particle against N: solid for a plan and its first call, dashed for the next call."""
    for axes in _lines(figure, entries, lambda r: r["n"], lambda r: 1e6 * r["seconds"] / r["n"]):
        axes.set_xlabel("N")


def _lines(figure: Any, entries: Sequence[Row], x: Callable[[Row], float], y: Callable[[Row], float]) -> list[Any]:
    """Draw a panel for boxes and one for free space, where there are sums of either; return them."""
    first, rows_again = (tables.series(entries, part) for part in tables.PARTS)
    boxes = [name for name in first if name.startswith("ewald")]
    groups = {"periodic box": boxes, "free space": [name for name in first if name not in boxes]}
    groups = {title: names for title, names in groups.items() if names}
    figure.set_size_inches(WIDTH, 4.4)
    panels = list(figure.subplots(1, len(groups), squeeze=False, sharey=True)[0])
    for axes, (title, names) in zip(panels, groups.items(), strict=True):
        for mark, colour, name in zip(MARKS * 2, COLOURS, names, strict=False):
            for rows, style, label in ((first[name], "-", name), (rows_again[name], "--", None)):
                axes.plot([x(r) for r in rows], [y(r) for r in rows], style, marker=mark, color=colour, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("µs a particle")
    figure.supxlabel("solid: plan and first call; dashed: next call", fontsize=8)
    return panels


def phases(figure: Any, entries: Sequence[Row]) -> None:
    """Draw the share of each phase in the fastest run, a bar for each sum."""
    times_of_sums = {name: tables.fastest(rows) for name, rows in tables.series(entries).items()}
    figure.set_size_inches(WIDTH, 0.8 + 0.55 * len(times_of_sums))
    axes = figure.subplots()
    for place, parts in enumerate(times_of_sums.values()):
        total, start = parts[tables.PARTS[0]], 0.0
        shares = {part: 100 * value / total for part, value in parts.items() if part != tables.PARTS[0]}
        for number, (part, share) in enumerate(shares.items()):
            colour, name = REST if part == "other" else COLOURS[number % len(COLOURS)], part.partition(" (")[0]
            axes.barh(place, share, left=start, color=colour, edgecolor="white", height=0.8)
            if share > LETTER * (len(name) + 1):
                ink, middle = "black" if colour in LIGHT else "white", start + share / 2
                axes.text(middle, place, f"{name}\n{share:.0f} %", ha="center", va="center", fontsize=7, color=ink)
            start += share
    labels = [f"{name}\n{tables.seconds(parts[tables.PARTS[0]])}" for name, parts in times_of_sums.items()]
    axes.set_yticks(range(len(times_of_sums)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of a plan and its first call")


def programs(figure: Any, entries: Sequence[Row]) -> None:
    """Draw the times of other programs over parki's, at no larger error of parki."""
    _ratios(figure, entries, "time of the other over that of parki, at no larger error of parki")


def kernels(figure: Any, entries: Sequence[Row]) -> None:
    """Draw the times of other code over the times of parki's kernels."""
    _ratios(figure, entries, "time of the other code over that of parki's")


def _ratios(figure: Any, entries: Sequence[Row], title: str) -> None:
    """Draw the ratios of rows to the rows that they are compared with, and a line at 1."""
    bars_ = []
    for r, reference in tables.compared(entries):
        common, name, own_name = apart(reference["what"], r["what"])
        bars_.append((f"{common}: {name} / {own_name}", r["ratio"]))
    figure.set_size_inches(WIDTH, 0.9 + 0.24 * len(bars_))
    axes = figure.subplots()
    ratios = [ratio for _, ratio in bars_]
    lengths, colours = [ratio - 1.0 for ratio in ratios], [OURS if ratio > 1 else OTHERS for ratio in ratios]
    bars = axes.barh(range(len(bars_)), lengths, left=1.0, color=colours, height=0.7)
    axes.bar_label(bars, [tables.factor(ratio) for ratio in ratios], padding=3, fontsize=8)
    axes.set_yticks(range(len(bars_)), [name for name, _ in bars_], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(0.8, *ratios) / 1.6, 1.6 * max(1.0, *ratios))
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if math.log10(max(ratios) / min(ratios)) < 1:
        axes.xaxis.set_minor_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(title)
