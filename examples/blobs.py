"""A kernel of one's own in treecodes and multipole methods: the flow of regularised stokeslets, smooth blobs of force.

Shows    `parki.pairs.Pair` of a file with a pair function, `parki.treecode.plan` and `parki.fmm.plan`, their errors,
         and their operators.
Run      python examples/blobs.py     (--small for a trial)
Expect   The error is below the tolerance asked for, whatever that is: nothing about the kernel was known before.  A
         system of as many equations, forces that give the blobs a velocity, is solved by GMRES with plans of a
         treecode and of the multipole method by equivalent sources: their drags are the same.

Interpolation at Chebyshev points asks nothing of a kernel but to be smooth away from r = 0 and linear in what sources
carry: the three numbers of the force.  Equivalent sources are blobs themselves, on surfaces around boxes.  The width ε
is the same for all, so it is a parameter, not a strength.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import gmres

import parki

FILE = str(Path(__file__).with_name("regularised_stokeslet.py"))


def blob(epsilon):
    """The kernel with blobs of this width."""
    return parki.pairs.Pair("blob", 3, 3, FILE, names=("epsilon",), parameters=(epsilon,), singular=False)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A kernel of one's own in treecodes and multipole methods.")
    parser.add_argument("--small", action="store_true", help="few blobs")
    asked = parser.parse_args(arguments)

    n = 3000 if asked.small else 30_000
    x = parki.samples.sphere(n, seed=1)
    forces = np.random.default_rng(2).normal(size=(3, n))
    few = 60 if asked.small else None
    worst = 0.0
    for tolerance in (1e-3,) if asked.small else (1e-3, 1e-5, 1e-7):
        for name, plan in (
            ("treecode", parki.treecode.plan(blob(0.02), x, x, tolerance=tolerance, leaf_size=few)),
            ("chebyshev", parki.fmm.plan(blob(0.02), x, x, method="chebyshev", tolerance=tolerance, leaf_size=few)),
        ):
            plan(forces)
            error = plan.error()
            worst = max(worst, error.value / tolerance)
            print(f"{n} blobs, tolerance {tolerance:g}, {name}: {error}; {plan.parameters}")
    print(f"largest error: {worst:.3f} of the tolerance")
    assert worst < 1

    # A sphere that moves with velocity 1: its drag is 6πμa, here in units of 8πμ.
    velocity = np.outer([1.0, 0.0, 0.0], np.ones(n)).ravel()
    drag = {}
    for name, module in (("treecode", parki.treecode), ("equivalent sources", parki.fmm)):
        plan = module.plan(blob(1.2 * n**-0.5), x, x, tolerance=1e-4, leaf_size=few)
        found, left = gmres(plan.operator(), velocity, rtol=1e-3, maxiter=5, restart=40)
        assert left == 0
        drag[name] = found.reshape(3, n).sum(axis=1)[0] / (6 / 8)
        print(f"drag of a sphere of {n} blobs, by {name}: {drag[name]:.3f} of Stokes'")
    assert np.ptp(list(drag.values())) < 1e-2


if __name__ == "__main__":
    main()
