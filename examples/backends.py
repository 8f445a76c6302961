"""One sum on cores, vector units, GPUs and simulated GPUs
=======================================================

The same sum on every execution space of this machine, from one kernel source and with one result.

:Shows: the option ``execution_space``.
:Run: ``python examples/backends.py -o backends.png`` (``--small``: fewer points)
:Expect: One line for each space: the time of the first sum, which compiles the kernels that were never compiled before,
   that of the next ones, and the difference from ``Serial``; or the missing part, and how to get it. The differences
   are far below the tolerance: rounding, and the digits of roots that hosts leave out.

The simulators run the code of a GPU thread by thread, and look for races: they get few points, and their own line.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import parki

TOLERANCE = 1e-6
BOX = (1.0, 1.0, 2.0)
SIMULATORS = ("GpuSim", "GpuSim64")


def available(names):
    """Return the spaces that can run here; for the others, print why they cannot."""
    found = []
    for name in names:
        try:
            parki.utils.get_execution_space(name)
            found.append(name)
        except ValueError as missing:
            print(f"{name:10} {missing}")
    return found


def timed(space, points, forces):
    """Return the result, and seconds of the first sum and of the fastest of the next ones, including sorting."""
    seconds = []
    for _ in range(4 if space not in SIMULATORS else 2):
        began = time.perf_counter()
        # NumPy arrays are copied to the space, and the result is copied back.
        u = parki.ewald.stokes_sl(points, points, forces, box=BOX, tolerance=TOLERANCE, execution_space=space)
        seconds.append(time.perf_counter() - began)
    return u, seconds[0], min(seconds[1:])


def draw(file, found):
    """Draw the time per point and the difference from Serial for each space."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.6 + 0.6 * len(found)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = [f"{space}\n({n} points)" for space, n, *_ in found]
    _, n, first, fastest, differences = zip(*found, strict=True)
    rows = np.arange(len(found))
    left.barh(rows - 0.2, np.divide(first, n) * 1e6, height=0.36, color="#f2b5a7", label="first sum")
    left.barh(rows + 0.2, np.divide(fastest, n) * 1e6, height=0.36, color="#8c1c13", label="next sums")
    left.set(
        xscale="log",
        xlim=(min(fastest) / max(n) * 1e5, None),
        xlabel="time (µs for each point)",
        title="Time",
        yticks=rows,
        yticklabels=names,
    )
    bars = right.barh(rows, np.maximum(differences, 1.5e-17), height=0.5, color="#1b6ca8", label="difference")
    right.bar_label(bars, [f"{difference:.1g}" for difference in differences], padding=4)
    right.axvline(TOLERANCE, color="#8c1c13", label="tolerance asked for")
    right.set(xscale="log", xlim=(1e-17, 1e-5), xlabel="relative difference", title="Difference from Serial")
    left.invert_yaxis()  # both panels share this axis
    for axes in (left, right):
        axes.set_axisbelow(True)
        axes.grid(axis="x", alpha=0.3)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="One sum on every space.")
    parser.add_argument("--small", action="store_true", help="fewer points")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    n = 5000 if asked.small else 100000
    points, forces = rng.random((3, n)) * np.reshape(BOX, (3, 1)), rng.normal(size=(3, n))
    forces -= forces.mean(axis=1, keepdims=True)
    spaces = available(["Serial", "OpenMP", "Cuda", "HIP", *SIMULATORS])
    print(f"\n{'space':10} {'points':>7} {'first sum':>11} {'next sums':>11}   difference from Serial")
    found, reference = [], {}  # number of points: the result of Serial
    for space in spaces:
        few = 50 if space in SIMULATORS else n
        given = points[:, :few], forces[:, :few] - forces[:, :few].mean(axis=1, keepdims=True)
        u, first, fastest = timed(space, *given)
        if few not in reference:
            reference[few] = u if space == "Serial" else timed("Serial", *given)[0]
        difference = np.linalg.norm(u - reference[few]) / np.linalg.norm(reference[few])
        print(f"{space:10} {few:7} {first:9.3f} s {fastest:9.3f} s   {difference:.1e}")
        assert difference < 0.1 * TOLERANCE
        found.append((space, few, first, fastest, difference))
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, found)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
