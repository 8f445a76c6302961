"""Gantt charts of traces: bars of tasks over time, one row per unit."""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

from parki.engine import writing
from parki.tasks.trace import Trace

SUFFIXES = (".png", ".svg", ".pdf")
#: Colours of kinds by name: near field warm, translations blue and green, particles' steps light, memory grey.
COLOURS = {
    "P2P": "#d1603d", "M2L": "#1f6f8b", "FFT": "#7fb7c9", "P2M": "#e9c46a", "L2P": "#e0a458", "M2M": "#4f9d69",
    "L2L": "#94c9a9", "P2L": "#8e6c8a", "M2P": "#b497b7", "GATHER": "#8d8d8d", "FILL": "#b9b4a7", "ADD": "#6f6a60",
    "SCATTER": "#4a4a4a",
}  # fmt: skip
OTHERS = ("#556b8d", "#a05a6b", "#6b8d55", "#8d7f55")  # kinds without a colour of their own
HEIGHT = 0.8  # height of a bar, as a fraction of the distance between units


def check(path: Path) -> None:
    """Raise ValueError if no picture can be written to a path, so that the error comes before a run."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("gantt needs matplotlib, which is not installed: pip install 'parki[plot]'")
    if path.suffix not in SUFFIXES or not path.parent.is_dir():
        folder = "in a folder that is there"
        raise ValueError(f"gantt: found {str(path)!r}, expected a file name in {', '.join(SUFFIXES)} {folder}")


def draw(trace: Trace, path: Path, title: str = "") -> None:
    """Draw a trace into a file: one row per unit, one bar per launch.

    Parameters
    ----------
    trace : Trace
    path : Path
        A file that ends in .png, .svg or .pdf.
    title : str

    Raises
    ------
    ValueError
        As raised by `check`.
    """
    path = Path(path)
    check(path)
    from matplotlib.figure import Figure

    kinds = len(np.unique(trace.kind))
    height = max(1.6 + 0.22 * len(trace.units), 0.8 + 0.19 * kinds)  # inches: rows, and the legend
    figure = Figure(figsize=(10.0, height), layout="constrained")
    axes = figure.subplots()
    scale, unit = (1.0, "s") if trace.seconds >= 1 else (1e3, "ms")
    _bars(axes, trace, scale)
    axes.axvline(scale * trace.seconds, color="#333333", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(0, 1.02 * scale * trace.seconds or 1.0)
    axes.set_yticks(range(len(trace.units)), trace.units, fontsize=8)
    axes.set_ylim(len(trace.units) - 0.4, -0.6)
    axes.set_xlabel(f"time, {unit}")
    axes.set_ylabel("unit")
    axes.set_title(title or f"{len(trace)} tasks in {scale * trace.seconds:.4g} {unit}", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    with writing.replacing(path) as work:
        figure.savefig(work, dpi=150)


def _bars(axes: Any, trace: Trace, scale: float) -> None:
    first, colours = trace.launches, iter(OTHERS * len(trace.kinds))
    kind = trace.kind[first]
    for number in np.unique(kind):
        name, members = trace.kinds[number], first[kind == number]
        colour = COLOURS.get(name) or next(colours)
        begin, length = scale * trace.begin[members], scale * (trace.end[members] - trace.begin[members])
        axes.barh(trace.unit[members], length, HEIGHT, begin, color=colour, linewidth=0, label=name)
