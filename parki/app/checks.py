"""`parki doctor --check`: one small sum of every method in every space, against NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from parki import arrays, direct, fmm, treecode
from parki.engine import Space, spaces
from parki.ewald import api

Values = NDArray[np.float64]

TOLERANCE = 1e-5  # relative error: tolerance of sums, and largest error allowed
ROUNDING = 1e-12  # relative error allowed in direct sums
N = 1000  # points of sums in free space, in two cubes
APART = 3.0  # sides by which one cube is shifted, so that some clusters are far from each other
GROUPS = 5  # groups of ions: a random ion, and its images with alternating charges
SIDES = (1.0, 1.3, 0.9)
#: Images on either side along each periodic direction, half a side apart; and the steepness with which their sum fades
#: out in the middle of either side: with alternating charges this leaves an error of 1e-7.
IMAGES, STEEP = 20, 7.6


@dataclass(frozen=True)
class Check:
    """A sum to check: its name, its error against NumPy as a function of a space, and the error that is allowed."""

    name: str
    error: Callable[[Space], float]
    tolerance: float = TOLERANCE


def run(say: Callable[[str], None]) -> int:
    """Check every method in every space, and report each error; return 1 if a sum is wrong, else 0."""
    say(f"  {'method':<24} {'space':<10} {'error':>9} {'tolerance':>10}")
    failures = total = 0
    for name, reason in spaces.available().items():
        if reason is not None:
            say(f"  {'–':<24} {name:<10} skipped: {reason}")
            continue
        for check, error in _errors(spaces.get(name)):
            total += 1
            passed = isinstance(error, float) and error <= check.tolerance
            failures += not passed
            error_text = f"{error:>9.1e}" if isinstance(error, float) else f"{'–':>9}"
            text = "ok" if passed else "FAILED" if isinstance(error, float) else f"FAILED: {error}"
            say(f"  {check.name:<24} {name:<10} {error_text} {check.tolerance:>10.0e}   {text}")
    say(f"{total - failures} of {total} sums are right" + (f", {failures} FAILED" if failures else ""))
    return 1 if failures else 0


def _errors(space: Space) -> Iterator[tuple[Check, float | str]]:
    """Yield each check with its error, or with the text of its exception."""
    for check in _checks():
        try:
            yield check, float(check.error(space))
        except Exception as error:
            yield check, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def _checks() -> Iterator[Check]:
    for periodicity in (3, 2, 1, 0):
        yield Check(f"ewald, {periodicity} periodic", lambda space, p=periodicity: _ewald(space, p))
    far = {"tolerance": TOLERANCE}
    yield Check("treecode bldtt", lambda space: _free(space, treecode.plan, method="dual", **far))
    yield Check("treecode bltc", lambda space: _free(space, treecode.plan, method="pc", **far))
    yield Check("fmm kifmm", lambda space: _free(space, fmm.plan, method="kifmm", **far))
    yield Check("fmm chebyshev", lambda space: _free(space, fmm.plan, method="chebyshev", **far))
    yield Check("direct", lambda space: _free(space, direct.plan), ROUNDING)


def _free(space: Space, plan: Callable[..., Callable[[Values], Values]], **options: Any) -> float:
    """Return the error of a sum over random charges in free space."""
    rng = np.random.default_rng(1)
    x, q = rng.random((3, N)), rng.standard_normal(N)
    x[0, N // 2 :] += APART
    u = plan("coulomb", x, x, execution_space=space, **options)(q)
    r = np.linalg.norm(x[:, :, None] - x[:, None, :], axis=0)
    np.fill_diagonal(r, np.inf)
    return _relative(u, (1 / r) @ q)


def _ewald(space: Space, periodicity: int) -> float:
    """Return the error of an Ewald sum over random ions."""
    x, q, exact = _ions(periodicity)
    ions, charges = alternating(x, q, periodicity)
    options: dict[str, Any] = {
        "box": SIDES,
        "periodicity": periodicity,
        "tolerance": TOLERANCE,
        "execution_space": space,
    }
    u = api.plan("laplace", ions, ions, **options)(charges)
    return _relative(u[:GROUPS], exact)


@functools.cache
def _ions(periodicity: int) -> tuple[Values, Values, Values]:
    """Return random ions, their charges, and the potential there."""
    rng = np.random.default_rng(2)
    x, q = rng.random((3, GROUPS)) * np.array(SIDES)[:, None], rng.standard_normal(GROUPS)
    x[:periodicity] /= 2
    return x, q, direct_periodic(x, q, periodicity)


def alternating(x: Values, q: Values, periodicity: int) -> tuple[Values, Values]:
    """Return ions and their images half a side further along each periodic direction, where charges change sign."""
    shifts = np.array(list(product((0, 1), repeat=periodicity)))
    steps = np.zeros((3, len(shifts)))
    steps[:periodicity] = (shifts * np.array(SIDES)[:periodicity] / 2).T
    ions = (x[:, None, :] + steps[:, :, None]).reshape(3, -1)
    return ions, np.outer((-1.0) ** shifts.sum(axis=1), q).ravel()


def direct_periodic(x: Values, q: Values, periodicity: int) -> Values:
    """Return the potential of ions and all their images with alternating charges, at the ions.

    Terms of an alternating sum may fade out smoothly: the rest that is left out then falls faster than any power of
    the number of images.  No part of parki is used.
    """
    places = np.arange(-IMAGES, IMAGES + 1)
    taper = (-1.0) ** places * erfc(STEEP * (abs(places) / IMAGES - 0.5)) / 2
    u = np.zeros(x.shape[1])
    grids = np.meshgrid(*[places] * periodicity, indexing="ij")
    shifts = np.zeros((3, len(places) ** periodicity))
    weights = np.ones(shifts.shape[1])
    for axis, grid in enumerate(grids):
        shifts[axis] = grid.ravel() * SIDES[axis] / 2
        weights *= taper[grid.ravel() + IMAGES]
    for i, j in product(range(len(u)), repeat=2):
        r = np.linalg.norm((x[:, i] - x[:, j])[:, None] - shifts, axis=0)
        r[r == 0] = np.inf
        u[i] += q[j] * (weights @ (1 / r))
    return u


def _relative(u: Any, exact: Values) -> float:
    """Return the relative error as a 2-norm; u may be on a GPU."""
    result = arrays.to_host(u)
    return float(np.linalg.norm(result - exact) / np.linalg.norm(exact))
