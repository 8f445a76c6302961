"""Pictures of a model: the roofline with the phases as points, and the predicted time against rc."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from parki.perfmodels import roofline
from parki.perfmodels.machine import Machine

NAMES = {"p2p": "P2P", "p2g": "P2G", "fft": "FFT", "cnv": "CNV", "ifft": "IFFT", "g2p": "G2P"}
COLOURS = dict(zip(NAMES, ("#c43c39", "#3a6ea5", "#5f9e6e", "#8d6fb0", "#b08d3f", "#47a3a8"), strict=True))
BELOW = ("ifft", "g2p")  # phases with labels under their points, which lie near the points of their inverses
INK, GREY = "#222222", "#8a8a8a"


@dataclass(frozen=True)
class Point:
    """A phase: operations, bytes from memory, predicted seconds."""

    name: str
    flops: float
    bytes: float
    seconds: float


@dataclass(frozen=True)
class Curve:
    """Predicted seconds against rc, of the near and of the far field; the rc that was chosen and its whole time."""

    rc: Sequence[float]
    near: Sequence[float]
    far: Sequence[float]
    chosen: float
    seconds: float


def duration(seconds: float) -> str:
    """Return a time as text."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def draw(path: Path, title: str, machine: Machine, units: int, dtype: str, points: list[Point], curve: Curve) -> None:
    """Draw both pictures side by side.

    Raises
    ------
    ValueError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError("--plot needs matplotlib: pip install parki[plot]") from None
    figure = Figure(figsize=(12.0, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    figure.suptitle(title, fontsize=11, color=INK)
    _roofline(left, machine, units, dtype, points)
    _curve(right, curve)
    for axes in (left, right):
        axes.grid(True, which="major", color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _roofline(axes, machine: Machine, units: int, dtype: str, points: list[Point]) -> None:
    peak = 2.0 * machine.operations[dtype]["fma"] * units
    slope = roofline.bandwidth(machine, "dram", units)
    shown = [p for p in points if p.bytes > 0 and p.flops > 0 and p.seconds > 0]
    intensity = [p.flops / p.bytes for p in shown] + [peak / slope]
    x = np.geomspace(0.4 * min(intensity), 3.0 * max(intensity), 200)
    axes.loglog(x, np.minimum(peak, slope * x) / 1e9, color=INK, linewidth=1.6)
    axes.axhline(peak / 2e9, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    rate = f"{peak / 1e12:.3g} Tflop/s" if peak >= 1e12 else f"{peak / 1e9:.3g} Gflop/s"
    axes.text(x[0], peak / 1e9 * 1.08, f" {rate}, fused", fontsize=8.5, color=INK)
    axes.text(x[0], peak / 2e9 / 1.32, " without fused operations", fontsize=8.5, color=GREY)
    middle = 0.5 * peak / slope
    axes.annotate(
        f"memory, {slope / 1e9:.4g} GB/s", (middle, slope * middle / 1e9), (10, -12), textcoords="offset points",
        fontsize=8.5, color=INK,
    )  # fmt: skip
    for p in shown:
        position = p.flops / p.bytes, p.flops / p.seconds / 1e9
        axes.plot(*position, "o", color=COLOURS[p.name], markersize=8)
        axes.annotate(
            NAMES[p.name], position, (8, -14 if p.name in BELOW else 5), textcoords="offset points", fontsize=9.5,
            color=COLOURS[p.name],
        )  # fmt: skip
    lowest = min([p.flops / p.seconds for p in shown] + [slope * x[0]]) / 1e9
    axes.set_ylim(0.6 * lowest, 2.5 * peak / 1e9)
    axes.set_xlabel("flop per byte from memory")
    axes.set_ylabel("Gflop/s")
    axes.set_title(f"Roofline of {machine.name}", fontsize=10, color=INK)


def _curve(axes, curve: Curve) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

    rc, near, far = np.array(curve.rc), 1e3 * np.array(curve.near), 1e3 * np.array(curve.far)
    total = near + far
    for values, name, colour in ((near, "near", COLOURS["p2p"]), (far, "far", COLOURS["p2g"]), (total, "total", INK)):
        axes.loglog(rc, values, color=colour, linewidth=1.8, label=name)
    label = f"chosen: rc {curve.chosen:.3g}, {duration(curve.seconds)}"
    axes.plot(curve.chosen, 1e3 * curve.seconds, "o", color=INK, markersize=8, label=label)
    for axis, ticks in ((axes.xaxis, rc), (axes.yaxis, None)):
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(NullFormatter())
        if ticks is not None:
            axis.set_major_locator(FixedLocator([float(f"{x:.2g}") for x in ticks[:: len(ticks) // 5 or 1]]))
    axes.set_ylim(max(0.3 * np.min(total) / 10, 0.7 * min(near.min(), far.min())), 2.0 * total.max())
    axes.set_xlabel("rc")
    axes.set_ylabel("ms")
    axes.legend(frameon=False, fontsize=9.5)
    axes.set_title("Predicted time against the cutoff", fontsize=10, color=INK)
