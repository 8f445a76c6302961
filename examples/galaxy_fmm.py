"""Gravity of a galaxy by two methods: the fast multipole method beside the treecode, at one tolerance.

Shows    `parki.fmm.kifmm` and `parki.treecode.bldtt`, their times by phase, and errors that they measure themselves.
Run      python examples/galaxy_fmm.py     (--small for a trial, -n for more stars)
Expect   Both errors are below the tolerance, and both potentials agree to that.  The potential energy is that of
         Plummer's sphere, −3π/32 G M²/a, to a per cent.

Units: G = M = a = 1, stars of equal mass; the potential is −Σ 1/r.
"""

import argparse
import time

import numpy as np

import parki

METHODS = {"kifmm": parki.fmm.kifmm, "bldtt": parki.treecode.bldtt}


def timed(method, x, mass, tolerance):
    """Potential (n,) and its gradient (3, n) of the second call, its seconds and its error: the first one compiles."""
    for _ in range(2):
        began = time.perf_counter()
        result, walltime = method(x, x, mass, gradient=True, tolerance=tolerance, return_walltime=True)
        spent = time.perf_counter() - began
    _, error = method(x, x, mass, gradient=True, tolerance=tolerance, return_error=True)
    return result, spent, walltime, error


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Gravity of a Plummer sphere by two methods.")
    parser.add_argument("--small", action="store_true", help="few stars, one tolerance")
    parser.add_argument("-n", type=int, help="number of stars (50000)")
    asked = parser.parse_args(arguments)

    n = asked.n or (4000 if asked.small else 50_000)
    x, mass = parki.samples.plummer(n, seed=1, cutoff=20), np.full(n, 1 / n)
    largest = 0.0
    for tolerance in (1e-4,) if asked.small else (1e-3, 1e-6, 1e-9):
        found = {}
        for name, method in METHODS.items():
            found[name], spent, walltime, error = timed(method, x, mass, tolerance)
            largest = max(largest, error.value / tolerance)
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


if __name__ == "__main__":
    main()
