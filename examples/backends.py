"""The same sum on everything in this machine that can compute it: cores, vector units, GPUs, simulated GPUs.

Shows    the option `execution_space`, and that one kernel source gives one result.
Run      python examples/backends.py     (--small: fewer points)
Expect   One line for each space with the time of the first sum, which compiles what was never compiled before, of the
         next ones, and the difference from `Serial`; or what is missing, and how to get it. The differences are
         rounding, far below the tolerance.

The simulators run what a GPU would run, thread by thread, and look for races: they get few points, and their own line.
"""

import argparse
import time

import numpy as np

import parki

TOLERANCE = 1e-6
BOX = (1.0, 1.0, 2.0)
SIMULATORS = ("GpuSim", "GpuSim64")


def available(names):
    """Those of the spaces that can run here; for the others, print why they cannot."""
    found = []
    for name in names:
        try:
            parki.utils.get_execution_space(name)
            found.append(name)
        except ValueError as missing:
            print(f"{name:10} {missing}")
    return found


def timed(space, points, forces):
    """Result, and seconds of the first sum and of the fastest of the next three, points sorted and all."""
    seconds = []
    for _ in range(4 if space not in SIMULATORS else 2):
        began = time.perf_counter()
        # NumPy arrays go to where the space computes, and the result comes back.
        u = parki.ewald.stokes_sl(points, points, forces, box=BOX, tolerance=TOLERANCE, execution_space=space)
        seconds.append(time.perf_counter() - began)
    return u, seconds[0], min(seconds[1:])


def main(arguments=None):
    parser = argparse.ArgumentParser(description="One sum on every space.")
    parser.add_argument("--small", action="store_true", help="fewer points")
    asked = parser.parse_args(arguments)

    rng = np.random.default_rng(0)
    n = 5000 if asked.small else 100000
    points, forces = rng.random((3, n)) * np.reshape(BOX, (3, 1)), rng.normal(size=(3, n))
    forces -= forces.mean(axis=1, keepdims=True)
    spaces = available(["Serial", "OpenMP", "Cuda", "HIP", *SIMULATORS])
    print(f"\n{'space':10} {'points':>7} {'first sum':>11} {'next sums':>11}   difference from Serial")
    reference = {}  # number of points: the result of Serial
    for space in spaces:
        few = 50 if space in SIMULATORS else n
        given = points[:, :few], forces[:, :few] - forces[:, :few].mean(axis=1, keepdims=True)
        u, first, fastest = timed(space, *given)
        if few not in reference:
            reference[few] = u if space == "Serial" else timed("Serial", *given)[0]
        difference = np.linalg.norm(u - reference[few]) / np.linalg.norm(reference[few])
        print(f"{space:10} {few:7} {first:9.3f} s {fastest:9.3f} s   {difference:.1e}")
        assert difference < 1e-3 * TOLERANCE


if __name__ == "__main__":
    main()
