"""Random sums of every kind, unit, box and method meet the requested tolerance; a seed names its case."""

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.linalg import rq
from scipy.spatial.transform import Rotation

import parki
from parki import pairs
from parki.ewald.kernels import KERNELS
from tests.ewald import sums

PRIMITIVE = {
    "fcc": np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]),
    "bcc": np.array([[-0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, -0.5]]),
    "hexagonal": np.array([[1.0, 0.0, 0.0], [-0.5, math.sqrt(0.75), 0.0], [0.0, 0.0, 1.633]]),
}
#: Sums that vanish at sites by symmetry have no relative error.
EVEN = ("laplace", "yukawa", "stokes_sl", "stokes_comb")
TREE = ("laplace", "yukawa", "stokes_sl", "stokes_dl", "regularised_coulomb", "multiquadric", "gaussian", "rotlet",
        "stokes_comb", "laplace_dipole", "inverse_quadratic", "biharmonic", "thin_plate", "rpy")  # fmt: skip
SURFACE = ("laplace", "yukawa", "stokes_sl", "stokes_dl", "laplace_grad", "laplace_dipole", "stokes_comb", "rotlet")
QUICK = 4  # number of seeds of each kind in every run


def numbered(count):
    """Return seeds; the first few are in every run, the others run with the slow ones."""
    return [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= QUICK)) for seed in range(count)]


def strengths(pair, n, rng):
    """Return densities and normals."""
    dens = rng.standard_normal((pair.dens, n))
    if rng.random() < 0.5:
        dens -= dens.mean(axis=1, keepdims=True)
    return dens, rng.standard_normal((3, n)) if pair.normals else None


def units(dtype, rng):
    """Return exponents of two for the units of lengths and strengths."""
    most = 200 if dtype == "float64" else 20
    return (int(v) for v in rng.integers(-most, most + 1, 2))


def spread(kind, n, rng):
    """Return points in the unit cube."""
    if kind == "uniform":
        return rng.random((3, n))
    if kind == "cluster":
        return (rng.random((3, 1)) + 0.04 * rng.standard_normal((3, n))) % 1
    if kind == "plane":
        x = rng.random((3, n))
        x[rng.integers(3)] = rng.integers(2) * 0.5
        return x
    cuts = math.ceil(n ** (1 / 3))  # number of sites per direction, with some on faces
    return np.array(list(itertools.product(range(cuts), repeat=3)), float).T[:, :n] / cuts


@pytest.mark.parametrize("seed", numbered(500))
def test_ewald(seed):
    rng = np.random.default_rng([seed, 1])
    name = list(KERNELS)[seed % len(KERNELS)]
    kernel = KERNELS[name]
    dtype = "float32" if seed % 4 == 3 else "float64"
    count = int(rng.choice(kernel.periodicities))
    box = 10 ** rng.uniform(0, 2 if rng.random() < 0.3 else 0.7, 3)
    box /= box.max()
    cell, turn, skew = np.diag(box), np.eye(3), (0.0, 0.0, 0.0)
    kind = str(rng.choice(["uniform", "uniform", "cluster", "plane"]))
    if count == 3 and seed % 3 == 0:
        if rng.random() < 0.6:
            cell = PRIMITIVE[str(rng.choice(list(PRIMITIVE)))].copy()
            kind = "sites" if name in EVEN else kind
        else:
            cell = np.diag(box) + np.triu(rng.uniform(-0.5, 0.5, (3, 3)), 1) * box
        cell = cell @ Rotation.random(random_state=seed).as_matrix().T if rng.random() < 0.3 else cell
        upper, turn = rq(cell)
        signs = np.sign(np.diag(upper))
        upper, turn = upper * signs, signs[:, None] * turn
        box, skew = np.diag(upper), (upper[0, 1], upper[0, 2], upper[1, 2])
    n = int(rng.choice([8, 27, 64]) if kind == "sites" else 5 * 12 ** rng.random())
    digits = 10 if dtype == "float64" else 3
    tolerance = 10 ** -rng.uniform(2, digits)
    c = spread(kind, n, rng)
    dens, normals = strengths(kernel, n, rng)
    if kind == "sites":
        dens -= dens.mean(axis=1, keepdims=True)
    value = float(10 ** rng.uniform(-1, 1))
    value = value / box.max() if kernel.names == ("kappa",) else 0.02 * value * box.min()  # a length, at most a fifth
    given_parameters = dict.fromkeys(kernel.names, value)
    # Rounded to the type of the points, whose rounding is not an error of the sum.
    x = (cell.T @ c).astype(dtype).astype(float)
    given = [a if a is None else a.astype(dtype).astype(float) for a in (dens, normals)]

    def turned(v):
        return v if v is None else np.concatenate([turn @ part for part in np.split(v, len(v) // 3)])

    vectors = [v if kernel.dens == 1 else turned(v) for v in given[:1]] + [turned(given[1])]
    mirror = np.linalg.det(turn) if name in ("rotlet", "rpy_rotation") else 1.0  # of torques and angular velocities
    vectors[0] = np.concatenate([vectors[0][:3], mirror * vectors[0][3:]]) if name == "rpy_rotation" else vectors[0]
    exact = sums.periodic(
        name, turn @ x, turn @ x, vectors[0] if kernel.dens > 1 else vectors[0][0], vectors[1], box=box,
        periodicity=count, skew=skew, **given_parameters,
    )  # fmt: skip
    exact = np.atleast_2d(exact)
    if len(exact) == 9:
        exact = np.kron(turn.T, turn.T) @ exact
    elif len(exact) == 6:
        exact = np.concatenate([turn.T @ exact[:3], mirror * turn.T @ exact[3:]])
    elif len(exact) == 3:
        exact = mirror * turn.T @ exact
    if not count:  # no unit of length in free space either
        assert np.isfinite(exact).all()

    k, m = (0, 0) if count == 1 else units(dtype, rng)
    law = kernel.law
    into = m - k * np.broadcast_to(law.dens, kernel.dens)
    back = -m - k * np.broadcast_to(law.result, kernel.result)
    if count:  # any lattice vector may be added, exactly or not
        periodic = cell[:count] if count < 3 else cell
        moves = rng.integers(-2, 3, (count, n)) if dtype == "float64" and rng.random() < 0.4 else np.zeros((count, n))
        x = x + periodic.T @ moves
    y = np.ldexp(x.astype(dtype), k)
    d = np.ldexp(given[0].astype(dtype), into[:, None]).astype(dtype)
    more = [] if normals is None else [given[1].astype(dtype)]
    more_options = {n: math.ldexp(value, k * law.parameters[0]) for n in kernel.names}
    box_ = np.ldexp(cell, k) if any(skew) or (cell != np.diag(np.diag(cell))).any() else np.ldexp(np.diag(cell), k)
    if count < 3:
        assert (x[count:] >= 0).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = parki.ewald.plan(name, y, y, box=box_, periodicity=count, tolerance=tolerance, **more_options)
        u = plan(d if kernel.dens > 1 else d[0], *more)
    u = np.ldexp(np.atleast_2d(u).astype(float), back[:, None])
    assert np.linalg.norm(u - exact) < tolerance * np.linalg.norm(exact), (name, dtype, count, kind, n, tolerance)


VALUES = {"kappa": (-1, 1.5), "epsilon": (-3, -1), "width": (-1, 0), "radius": (-3, -2), "unit": (-1, 1)}


def free_sum(seed, names, kind):
    """Return a problem in free space, its exact sum, and the factors that undo its units."""
    rng = np.random.default_rng([seed, kind])
    name = names[seed % len(names)]
    pair = pairs.PAIRS[name]
    dtype = "float32" if seed % 4 == 3 else "float64"
    shape = str(rng.choice(["uniform", "cluster", "plane", "far groups", "sphere"]))
    n = int(200 * 10 ** rng.random())
    if shape == "far groups":
        x = np.concatenate([rng.random((3, n // 2)), 10 ** rng.uniform(0, 4) + rng.random((3, n - n // 2))], axis=1)
    elif shape == "sphere":
        x = rng.standard_normal((3, n))
        x /= np.linalg.norm(x, axis=0)
    else:
        x = spread(shape, n, rng)
    x = (x * 10 ** rng.uniform(-1, 1, (3, 1)) if rng.random() < 0.3 else x).astype(dtype)
    same = rng.random() < 0.7
    targets = x if same else rng.permutation(x.T).T[:, : n // 2] + np.ptp(x, axis=1)[:, None].astype(dtype) * 0.1
    targets = np.ascontiguousarray(targets)
    dens, normals = strengths(pair, n, rng)
    dens = dens.astype(dtype)
    normals = None if normals is None else normals.astype(dtype)
    values = {p: float(10 ** rng.uniform(*VALUES[p])) for p in pair.names}
    exact = np.atleast_2d(parki.direct.direct_sum(
        pair, *(a.astype(float) for a in (targets, x)), (dens if pair.dens > 1 else dens[0]).astype(float),
        *([] if normals is None else [normals.astype(float)]), **values,
    ))  # fmt: skip
    k, m = units(dtype, rng)
    law = pair.law
    d = np.ldexp(dens, (m - k * np.broadcast_to(law.dens, pair.dens))[:, None]).astype(dtype)
    there = {p: math.ldexp(v, k * along) for (p, v), along in zip(values.items(), law.parameters, strict=True)}
    y = np.ldexp(x, k)
    t = y if same else np.ldexp(targets, k)
    back = (-m - k * np.broadcast_to(law.result, pair.result))[:, None]
    tolerance = float(10 ** -rng.uniform(2, 9 if dtype == "float64" else 4))
    given = {} if normals is None else {"normals": normals}
    return (t, y, d if pair.dens > 1 else d[0], name), given | there, tolerance, exact, back


def check(u, exact, back, tolerance, about):
    u = np.ldexp(np.atleast_2d(u).astype(float), back)
    assert np.linalg.norm(u - exact) <= tolerance * np.linalg.norm(exact), about


@pytest.mark.parametrize("seed", numbered(300))
def test_treecodes(seed):
    given, more, tolerance, exact, back = free_sum(seed, TREE, 2)
    call = [parki.treecode.bldtt, parki.treecode.bltc][seed % 2]
    leaves = {"leaf_size": 40, "batch_size": 40} if seed % 3 else {}
    check(call(*given, tolerance=tolerance, **more, **leaves), exact, back, tolerance, (given[3], tolerance))


@pytest.mark.parametrize("seed", numbered(300))
def test_fast_multipole_methods(seed):
    surface = seed % 2 == 0
    given, more, tolerance, exact, back = free_sum(seed // 2, SURFACE if surface else TREE, 3)
    tolerance = tolerance if surface else max(tolerance, 1e-5)
    call = parki.fmm.kifmm if surface else parki.fmm.chebyshev
    leaves = {"leaf_size": 30} if seed % 3 else {}
    try:
        u = call(*given, tolerance=tolerance, **more, **leaves)
    except ValueError as refused:  # a kernel that varies too much for sixteen points
        assert "more than 16 points per direction" in str(refused)  # noqa: PT017
        return
    check(u, exact, back, tolerance, (given[3], tolerance))
