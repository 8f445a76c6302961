"""JAX through every method: derivatives against differences, under compilation, for batches, and twice."""

import subprocess
import sys

import numpy as np
import pytest

import parki
from parki.pairs import PAIRS
from tests.differences import directions, slope

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = jax.numpy

N = 40
CELL = np.array([[1.0, 0.0, 0.0], [0.2, 1.1, 0.0], [-0.1, 0.3, 0.9]])
SOME = {"kappa": 1.5, "epsilon": 0.3, "k": 2.0, "width": 0.6, "unit": 2.0, "radius": 0.3}
CLOSE = {"tolerance": 1e-12, "box": (1.0, 1.2, 0.9)}
WITH_SLOPE = [name for name, pair in PAIRS.items() if name == pair.name and pair.dens == pair.result == 1]
WITH_ADJOINT = [
    "laplace_grad", "laplace_dipole", "stokes_dl", "stokes_comb", "stokes_pressure", "stokes_grad", "stokes_dipole",
]  # fmt: skip


@pytest.fixture(autouse=True)
def double():
    """Use double precision."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


def points(rng, n=N):
    cells = int(np.ceil(n ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(cells)] * 3)).reshape(3, -1)[:, rng.permutation(cells**3)[:n]]
    return (grid + 0.5 + rng.uniform(-0.2, 0.2, grid.shape)) / cells * 0.9


def check(function, arguments, rng, bound=1e-6, compiled=True):
    """Compare derivatives in all arguments, along random directions, with differences."""
    found = jax.grad(function, tuple(range(len(arguments))))
    found = (jax.jit(found) if compiled else found)(*(jnp.asarray(a) for a in arguments))
    for i, gradient in enumerate(found):
        along = [v if i == j else np.zeros_like(v) for j, v in enumerate(directions(rng, *arguments))]
        size = np.linalg.norm(along[i]) * np.linalg.norm(gradient)
        expected = slope(function, [jnp.asarray(a) for a in arguments], along)
        assert float(np.sum(along[i] * gradient)) == pytest.approx(expected, abs=bound * size)


def given_for(kernel, rng):
    pair = PAIRS[kernel]
    w = jnp.asarray(rng.standard_normal((pair.result, N) if pair.result > 1 else (N,)))
    d = rng.standard_normal((pair.dens, N) if pair.dens > 1 else (N,))
    parameters = {name: SOME[name] for name in pair.names}
    return w, [d, *([rng.standard_normal((3, N))] if pair.normals else [])], parameters


@pytest.mark.parametrize("kernel", [*WITH_SLOPE, "stokes_sl"])
def test_points_and_densities_of_direct_sums(kernel, rng):
    w, given, parameters = given_for(kernel, rng)
    check(lambda x, d: (w * parki.jax.direct(kernel, x, x, d, **parameters)).sum(), [points(rng), *given], rng)


@pytest.mark.parametrize("kernel", ["laplace", "yukawa", "stokes_sl"])
@pytest.mark.parametrize("compiled", [True, False])
def test_points_and_densities_in_a_box(kernel, compiled, rng):
    w, given, parameters = given_for(kernel, rng)
    x = points(rng, 2 * N)

    def function(x, y, d):
        return (w * parki.jax.ewald(kernel, x, y, d, **CLOSE, **parameters)).sum()

    check(function, [x[:, :N], x[:, N:], *given], rng, compiled=compiled)


@pytest.mark.parametrize("method", ["direct", "ewald"])
@pytest.mark.parametrize("kernel", WITH_ADJOINT)
def test_densities_and_normals_of_other_kernels(method, kernel, rng):
    w, given, _ = given_for(kernel, rng)
    x, more = jnp.asarray(points(rng)), CLOSE if method == "ewald" else {}
    check(lambda *given: (w * getattr(parki.jax, method)(kernel, x, x, *given, **more)).sum(), given, rng)


@pytest.mark.parametrize(("method", "kernel", "more"), [
    ("treecode", "laplace", {}), ("treecode", "gaussian", {}), ("fmm", "laplace", {}), ("fmm", "stokes_sl", {}),
    ("fmm", "multiquadric", {"method": "chebyshev"}),
])  # fmt: skip
def test_trees_have_the_derivatives_of_direct_sums(method, kernel, more, rng):
    w, (d,), parameters = given_for(kernel, rng)
    x, found = jnp.asarray(points(rng)), []
    for name, options in ((method, more | {"tolerance": 1e-5, "leaf_size": 6}), ("direct", {})):
        call = getattr(parki.jax, name)
        loss = lambda x, d, call=call, options=options: (w * call(kernel, x, x, d, **parameters, **options)).sum()  # noqa: E731
        found.append(jax.grad(loss, (0, 1))(x, jnp.asarray(d)))
    for a, b in zip(*found, strict=True):
        assert np.linalg.norm(a - b) <= 1e-4 * np.linalg.norm(b)


@pytest.mark.parametrize("box", [CELL, np.diag(CELL)])
@pytest.mark.parametrize("kernel", ["laplace", "yukawa"])
def test_boxes(kernel, box, rng):
    w, (q,), parameters = given_for(kernel, rng)

    def function(x, q, box):
        return w @ parki.jax.ewald(kernel, x, x, q - q.mean(), box=jnp.asarray(box), tolerance=1e-12, **parameters)

    check(function, [points(rng), q, box], rng)


@pytest.mark.parametrize("by", ["ewald", "fmm", "direct"])
def test_energies(by, rng):
    x, q, pairs = points(rng), rng.standard_normal(N), np.array([[0, 3], [5, 6]])

    def function(x, q, box):
        given = {"box": jnp.asarray(box), "tolerance": 1e-12} if by == "ewald" else {}
        return parki.jax.energy("laplace", x, q, by=by, exclude=pairs, **given)

    if by == "ewald":
        check(function, [x, q, CELL], rng)
        exact = 0.5 * q @ parki.ewald.plan("laplace", x, x, box=CELL, tolerance=1e-12, exclude=pairs)(q)
    else:
        check(lambda x, q: function(x, q, None), [x, q], rng, 1e-6 if by == "direct" else 1e-2)
        exact = 0.5 * q @ parki.direct.plan("laplace", x, x, exclude=pairs)(q)
    assert float(function(x, q, CELL)) == pytest.approx(exact, rel=1e-4 if by == "fmm" else 1e-9)


def test_forces_are_differentiable_in_charges(rng):
    x, w = jnp.asarray(points(rng)), jnp.asarray(rng.standard_normal((3, N)))

    def energy(x, q):
        return parki.jax.energy("laplace", x, q, **CLOSE)

    def summed(x, q):
        return 0.5 * q @ parki.jax.ewald("laplace", x, x, q, **CLOSE)

    for function in (energy, summed):
        check(lambda q, f=function: (w * jax.grad(f)(x, q)).sum(), [rng.standard_normal(N)], rng)
        check(lambda x, f=function: (w[0] * jax.grad(f, 1)(x, w[1])).sum(), [np.asarray(x)], rng)
        with pytest.raises(NotImplementedError, match="laplace_grad has no derivative in its points"):
            jax.grad(lambda x, f=function: (w * jax.grad(f)(x, w[0])).sum())(x)


def test_batches_and_compilation(rng):
    x, many = jnp.asarray(points(rng)), jnp.asarray(rng.standard_normal((3, N)))

    def potential(x, q):
        return parki.jax.ewald("laplace", x, x, q, **CLOSE)

    each = jnp.stack([potential(x, q) for q in many])
    np.testing.assert_allclose(jax.jit(jax.vmap(potential, (None, 0)))(x, many), each, rtol=1e-12)
    np.testing.assert_allclose(potential(x, many), each, rtol=1e-12)
    shifted = jnp.stack([x, x + 0.01])
    slopes = jax.vmap(jax.grad(lambda x: many[0] @ potential(x, many[1])))(shifted)
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=0, atol=1e-9 * np.abs(slopes).max())


def test_points_that_move_keep_their_plan(rng):
    """Check that a compiled step of dynamics makes one plan."""
    made, original = [], parki.differentiable.make
    x, q = jnp.asarray(points(rng)), jnp.asarray(rng.standard_normal(N))
    force = jax.jit(jax.grad(lambda x: parki.jax.energy("laplace", x, q, box=(1, 1.1, 1), tolerance=1e-9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parki.differentiable, "make", lambda *given: made.append(given) or original(*given))
        for step in range(3):
            moved = x + 0.01 * step
            expected = parki.ewald.plan("laplace", moved, moved, box=(1, 1.1, 1), tolerance=1e-9, gradient=True)
            exact = q * expected(q)[1]
            np.testing.assert_allclose(force(moved), exact, rtol=0, atol=1e-8 * np.abs(exact).max())
    assert len(made) == 1


def test_bad_arguments_are_named(rng):
    x, q = points(rng), rng.standard_normal(N)
    with pytest.raises(ValueError, match=r"density has shape \(39,\); expected \(40,\)"):
        parki.jax.direct("coulomb", x, x, q[1:])
    with pytest.raises(ValueError, match="normals is missing"):
        parki.jax.direct("stresslet", x, x, np.stack([q, q, q]))
    with pytest.raises(ValueError, match="rotlet has no energy"):
        parki.jax.energy("rotlet", x, q, by="direct")
    with pytest.raises(NotImplementedError, match="rotlet has no derivative in its points"):
        jax.grad(lambda x: parki.jax.direct("rotlet", x, x, np.stack([q, q, q])).sum())(x)
    with pytest.raises(NotImplementedError, match="stokes_sl has no derivative in the box"):
        jax.grad(lambda box: parki.jax.ewald("stokes_sl", x, x, np.stack([q, q, q]), box=box).sum())(jnp.ones(3))
    with pytest.raises(TypeError, match="unknown option 'tolerence'"):
        parki.jax.ewald("laplace", x, x, q, tolerence=1e-3)


def test_without_jax_the_advice_is_one_line():
    code = "import sys; sys.modules['jax'] = None; import parki; parki.jax"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == 'ImportError: parki.jax needs JAX: pip install "parki[jax]"'
