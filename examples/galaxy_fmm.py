"""Gravity of a galaxy by two methods
==================================

The fast multipole method beside the treecode, at one tolerance.

:Shows: ``parki.fmm.kifmm`` and ``parki.treecode.bldtt``, their times by phase, and errors that they measure themselves.
:Run: ``python examples/galaxy_fmm.py -o galaxy_fmm.png`` (``--small`` for a trial, ``-n`` for more stars)
:Expect: Both errors are below the tolerance, and both potentials agree to the tolerance. The potential energy is that
   of Plummer's sphere, −3π/32 G M²/a, to a per cent.

Units: G = M = a = 1, stars of equal mass; the potential is −Σ 1/r.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import numpy as np

import parki

METHODS = {"kifmm": parki.fmm.kifmm, "bldtt": parki.treecode.bldtt}


def timed(method, x, mass, tolerance):
    """Return result, seconds, times by phase and error of the second call, because the first one compiles."""
    for _ in range(2):
        began = time.perf_counter()
        result, walltime = method(x, x, mass, gradient=True, tolerance=tolerance, return_walltime=True)
        spent = time.perf_counter() - began
    _, error = method(x, x, mass, gradient=True, tolerance=tolerance, return_error=True)
    return result, spent, walltime, error


def draw(file, x, potential, times):
    """Draw the stars with their potentials, and the time of each phase of both methods."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    shown = np.argsort(potential)  # the deep ones above the others
    dots = left.scatter(*x[:2, shown], c=-potential[shown], s=3, cmap="inferno_r", linewidths=0)
    figure.colorbar(dots, ax=left, label="potential (GM/a)")
    left.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xlabel="x (a)", ylabel="y (a)", facecolor="black")
    left.set_title(f"{x.shape[1]} stars and their potentials")
    phases = list(dict.fromkeys(phase for walltime in times.values() for phase in walltime))
    colours = dict(zip(phases, colormaps["tab20"](np.arange(len(phases)) % 20), strict=True))
    done = np.zeros(len(times))
    for phase in phases:
        spent = 1e3 * np.array([walltime.get(phase, 0.0) for walltime in times.values()])
        right.barh(np.arange(len(times)), spent, left=done, color=colours[phase], label=phase)
        done += spent
    right.set_yticks(np.arange(len(times)), [f"{name}, {tolerance:g}" for name, tolerance in times])
    right.invert_yaxis()
    right.set(xlabel="time (ms)", title="Phases of both methods at each tolerance")
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=5, fontsize="small")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Gravity of a Plummer sphere by two methods.")
    parser.add_argument("--small", action="store_true", help="few stars, one tolerance")
    parser.add_argument("-n", type=int, help="number of stars (50000)")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n = asked.n or (4000 if asked.small else 50_000)
    x, mass = parki.samples.plummer(n, seed=1, cutoff=20), np.full(n, 1 / n)
    largest, times = 0.0, {}
    for tolerance in (1e-4,) if asked.small else (1e-3, 1e-6, 1e-9):
        found = {}
        for name, method in METHODS.items():
            found[name], spent, walltime, error = timed(method, x, mass, tolerance)
            largest = max(largest, error.value / tolerance)
            times[name, tolerance] = walltime.time
            slowest = max(walltime.time, key=walltime.time.get)
            print(f"{n} stars, tolerance {tolerance:g}, {name}: {1e3 * spent:7.1f} ms, most of it {slowest}; {error}")
        (one, _), (other, _) = found.values()
        difference = np.linalg.norm(one - other) / np.linalg.norm(other)
        print(f"both potentials differ by {difference / tolerance:.3f} of the tolerance")
        assert difference < 2 * tolerance
    print(f"largest error: {largest:.3f} of the tolerance")
    assert largest < 1
    energy = -0.5 * mass @ one
    print(f"potential energy: {energy / (-3 * np.pi / 32):.3f} of −3π/32")
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, x, one, times)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
