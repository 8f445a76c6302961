"""What a tolerance promises, and what it costs
============================================

Asked accuracy against measured accuracy, and the time it takes.

:Shows: the option ``tolerance``, plans, and how to measure an error where no exact values are known.
:Run: ``python examples/tolerance.py -o tolerance.png`` (``--small``: fewer points and tolerances)
:Expect: For each kernel and tolerance one line, with each measured error below the tolerance; the picture shows the
   time of each further digit.

The error is measured against a sum that shares only the points with the first: the other split, a much smaller
tolerance, another near field. ``Plan.error`` does the same for your own sums.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import parki

BOX = (1.0, 1.0, 1.0)
SAMPLE = 100  # targets at which errors are measured
STRENGTHS = {"laplace": (1,), "stokes_sl": (3,), "stokes_comb": (6, 3)}  # rows of dens and of normals


def study(kernel, n, tolerances):
    """Return measured errors and seconds per sum for each tolerance, with n random points."""
    rng = np.random.default_rng(0)
    points = rng.random((3, n))
    given = [rng.normal(size=(rows, n)) if rows > 1 else rng.normal(size=n) for rows in STRENGTHS[kernel]]
    given[0] -= given[0].mean(axis=-1, keepdims=True)  # neutral, without a net force
    second = {"tolerance": 1e-13, "split": "gaussian", "rc": 0.35}
    exact = parki.ewald.plan(kernel, points[:, :SAMPLE], points, box=BOX, **second)(*given)
    errors, seconds = [], []
    for tolerance in tolerances:
        plan = parki.ewald.plan(kernel, points, points, box=BOX, tolerance=tolerance)
        seconds.append(np.inf)
        for _ in range(3):
            began = time.perf_counter()
            u = plan(*given)
            seconds[-1] = min(seconds[-1], time.perf_counter() - began)
        errors.append(np.linalg.norm(u[..., :SAMPLE] - exact) / np.linalg.norm(exact))
        print(
            f"{kernel:12} asked {tolerance:.0e}   measured {errors[-1]:.1e}   {seconds[-1] / n * 1e6:6.2f} µs a point"
        )
        assert errors[-1] < tolerance, "the tolerance is missed"
    return errors, seconds


def draw(file, found, tolerances, n):
    """Draw measured errors against tolerances on the left, times on the right."""
    from matplotlib.figure import Figure

    styles = {"laplace": ("o", "#1b6ca8"), "stokes_sl": ("s", "#d1495b"), "stokes_comb": ("^", "#3a7d44")}
    figure = Figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    ends = np.array([max(tolerances) * 3, min(tolerances) / 3])
    left.fill_between(ends, ends, 1, color="#f3d9d9", linewidth=0)
    left.plot(ends, ends, color="#8c1c13", linewidth=1)
    left.annotate("tolerance missed", (0.04, 0.93), xycoords="axes fraction", color="#8c1c13")
    for kernel, (errors, seconds) in found.items():
        marker, colour = styles[kernel]
        style = {"marker": marker, "markersize": 5, "color": colour, "label": kernel}
        left.loglog(tolerances, errors, **style)
        right.loglog(tolerances, np.array(seconds) / n * 1e6, **style)
    low, high = right.get_ylim()
    left.set(ylim=(min(map(min, (errors for errors, _ in found.values()))) / 5, 1))
    left.set(ylabel="measured error (relative RMS)", title="Every error stays below what was asked")
    right.set(ylabel="time (µs for each point)", title="What a digit costs")
    ticks = np.outer([0.1, 1, 10, 100], [1, 2, 5]).ravel()
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    right.set_ylim(low, high)
    for axes in (left, right):
        axes.set(xlabel="asked tolerance", xlim=ends)
        axes.grid(alpha=0.25)
        axes.legend(loc="lower left" if axes is left else "best")
    figure.suptitle(f"{n} random points in a periodic box", fontsize=14)
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Asked tolerance, measured error and time.")
    parser.add_argument("--small", action="store_true", help="fewer points and tolerances")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n = 1000 if asked.small else 20000
    tolerances = [10.0**-digits for digits in ((2, 6, 10) if asked.small else range(2, 13))]
    found = {kernel: study(kernel, n, tolerances) for kernel in STRENGTHS}
    worst = max(error / asked for errors, _ in found.values() for error, asked in zip(errors, tolerances, strict=True))
    print(f"largest measured error: {worst:.2f} of what was asked")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, found, tolerances, n)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
