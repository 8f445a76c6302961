"""PyTorch through every method: derivatives against differences, second ones, boxes, transforms of `torch.func`."""

import numpy as np
import pytest

import parki
from parki.pairs import PAIRS
from tests.differences import directions, slope

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

N = 60
GIVEN = {
    "direct": {},
    "treecode": {"tolerance": 1e-6, "leaf_size": 8, "batch_size": 8},
    "fmm": {"tolerance": 1e-6, "leaf_size": 8},
    "chebyshev": {"tolerance": 1e-5, "leaf_size": 8},
    "ewald": {"box": (1.0, 1.2, 0.9), "tolerance": 1e-12},
}
SOME = {"kappa": 1.5, "epsilon": 0.3, "k": 2.0, "width": 0.6, "unit": 2.0, "radius": 0.3}
WITH_SLOPE = [name for name, pair in PAIRS.items() if name == pair.name and pair.dens == pair.result == 1]
WITH_ADJOINT = [
    "laplace_grad", "laplace_dipole", "stokes_dl", "stokes_comb", "stokes_pressure", "stokes_grad", "stokes_dipole",
    "rotlet", "rpy", "rpy_rotation", "regularised_dipole",
]  # fmt: skip


def parameters(kernel):
    return {name: SOME[name] for name in PAIRS[kernel].names}


def loss(method, kernel, w, same=True, **more):
    """Return a function of points, density and normals: the sum times weights."""
    call, options = getattr(parki.torch, "fmm" if method == "chebyshev" else method), GIVEN[method] | more
    if method == "chebyshev":
        options["method"] = method

    def function(x, *rest):
        x, *rest = (torch.as_tensor(a) for a in (x, *rest))
        y, rest = (x, rest) if same else (rest[0], rest[1:])
        return (w * call(kernel, x, y, *rest, **parameters(kernel), **options)).sum()

    return function


def check(function, arguments, rng, bound=1e-6):
    """Compare derivatives in all arguments, along random directions, with differences."""
    tensors = [torch.tensor(a, requires_grad=True) for a in arguments]
    function(*tensors).backward()
    for i, tensor in enumerate(tensors):
        along = [v if i == j else np.zeros_like(v) for j, v in enumerate(directions(rng, *arguments))]
        found = float(np.sum(along[i] * tensor.grad.numpy()))
        size = np.linalg.norm(along[i]) * np.linalg.norm(tensor.grad.numpy())
        assert found == pytest.approx(slope(function, arguments, along), abs=bound * size)


def points(rng, n=N, least=0.12):
    """Return points in the unit box, none close to another."""
    cells = int(np.ceil(n ** (1 / 3)))
    grid = np.stack(np.meshgrid(*[np.arange(cells)] * 3)).reshape(3, -1)[:, rng.permutation(cells**3)[:n]]
    return (grid + 0.5 + rng.uniform(-0.5, 0.5, grid.shape) * (1 - least * cells)) / cells * 0.9


def like_direct(method, kernel, arguments, w, bound=1e-4, **more):
    """Check that derivatives of a method are equal to the direct sum's within a bound."""
    found = []
    for by in (method, "direct"):
        tensors = [torch.tensor(a, requires_grad=True) for a in arguments]
        loss(by, kernel, w, **more)(*tensors).backward()
        found.append([a.grad for a in tensors])
    for a, b in zip(*found, strict=True):
        assert torch.linalg.norm(a - b) <= bound * torch.linalg.norm(b)


def given_for(kernel, rng):
    """Return weights, and arrays of density and normals."""
    pair = PAIRS[kernel]
    w = torch.tensor(rng.standard_normal((pair.result, N) if pair.result > 1 else (N,)))
    d = rng.standard_normal((pair.dens, N) if pair.dens > 1 else (N,))
    return w, [d, *([rng.standard_normal((3, N))] if pair.normals else [])]


@pytest.mark.parametrize("kernel", [*WITH_SLOPE, "stokes_sl"])
def test_points_and_densities_of_direct_sums(kernel, rng):
    w, given = given_for(kernel, rng)
    check(loss("direct", kernel, w), [points(rng), *given], rng)


@pytest.mark.parametrize(("method", "kernel"), [
    ("treecode", "laplace"), ("treecode", "gaussian"), ("treecode", "stokes_sl"), ("fmm", "laplace"),
    ("fmm", "yukawa"), ("fmm", "stokes_sl"), ("chebyshev", "multiquadric"),
])  # fmt: skip
@pytest.mark.parametrize("same", [True, False])
def test_points_and_densities_of_other_methods(method, kernel, same, rng):
    w, given = given_for(kernel, rng)
    x = points(rng, 2 * N)
    like_direct(method, kernel, [x[:, :N], *([] if same else [x[:, N:]]), *given], w, same=same)


@pytest.mark.parametrize("kernel", ["laplace", "yukawa", "stokes_sl"])
def test_targets_apart_from_sources_in_a_box(kernel, rng):
    w, given = given_for(kernel, rng)
    x = points(rng, 2 * N)
    check(loss("ewald", kernel, w, same=False), [x[:, :N], x[:, N:], *given], rng)


@pytest.mark.parametrize(("method", "kernel"), [
    *(("direct", kernel) for kernel in WITH_ADJOINT), *(("ewald", kernel) for kernel in WITH_ADJOINT[:-2]),
    ("fmm", "stokes_comb"), ("treecode", "stokes_dl"), ("fmm", "laplace_dipole"),
])  # fmt: skip
def test_densities_and_normals_of_other_kernels(method, kernel, rng):
    w, given = given_for(kernel, rng)
    x = points(rng)

    def function(*given):
        return loss(method, kernel, w)(x, *given)

    check(function, given, rng, 1e-6 if method in ("direct", "ewald") else 1e-2)


# Boxes ----------------------------------------------------------------------------------------------------------------
CELL = np.array([[1.0, 0.0, 0.0], [0.2, 1.1, 0.0], [-0.1, 0.3, 0.9]])


@pytest.mark.parametrize(("kernel", "periodicity", "box"), [
    ("laplace", 3, CELL), ("laplace", 3, np.diag(CELL)), ("laplace", 2, np.diag(CELL)), ("laplace", 1, np.diag(CELL)),
    ("yukawa", 3, CELL), ("yukawa", 2, np.diag(CELL)),
])  # fmt: skip
@pytest.mark.parametrize("same", [True, False])
def test_boxes(kernel, periodicity, box, same, rng):
    n = 20
    x, w = points(rng, 2 * n), torch.tensor(rng.standard_normal(n))
    given = parameters(kernel) | {"periodicity": periodicity, "tolerance": 1e-11}

    def function(*arguments):
        x, *y, q, box = (torch.as_tensor(a) for a in arguments)
        return w @ parki.torch.ewald(kernel, x, x if same else y[0], q - q.mean(), box=box, **given)

    check(function, [x[:, :n], *([] if same else [x[:, n:]]), rng.standard_normal(n), box], rng)


# Energies -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("excluded", [False, True])
@pytest.mark.parametrize("by", ["ewald", "fmm", "treecode", "direct"])
def test_energies(by, excluded, rng):
    x, q = points(rng), rng.standard_normal(N)
    more = {"exclude": np.array([[0, 3], [5, 6]])} if excluded else {}
    given = {name: value for name, value in GIVEN[by].items() if name != "box"}

    def function(x, q, box):
        where = {"box": torch.as_tensor(box)} if by == "ewald" else {}
        return parki.torch.energy("laplace", *(torch.as_tensor(a) for a in (x, q)), by=by, **where, **given, **more)

    if by == "ewald":
        check(function, [x, q, CELL], rng)
        return
    if by == "direct":
        check(lambda x, q: function(x, q, None), [x, q], rng)
    leaves = [torch.tensor(a, requires_grad=True) for a in (x, q)]
    energy = 0.5 * leaves[1] @ parki.torch.direct("laplace", leaves[0], leaves[0], leaves[1], **more)
    others = [a.detach().clone().requires_grad_() for a in leaves]
    found = function(*others, None)
    assert found.item() == pytest.approx(energy.item(), rel=1e-4)
    for a, b in zip(torch.autograd.grad(found, others), torch.autograd.grad(energy, leaves), strict=True):
        assert torch.linalg.norm(a - b) <= 1e-5 * torch.linalg.norm(b)


# Second derivatives ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("by", ["ewald", "fmm", "direct"])
def test_forces_are_differentiable_in_charges(by, rng):
    """Check second derivatives, as in a fit of charges to forces."""
    x, w = torch.tensor(points(rng), requires_grad=True), torch.tensor(rng.standard_normal((3, N)))

    def function(q):
        energy = parki.torch.energy("laplace", x, torch.as_tensor(q), by=by, **GIVEN[by])
        (slopes,) = torch.autograd.grad(energy, x, create_graph=True)
        return (w * slopes).sum()

    q = rng.standard_normal(N)
    tensor = torch.tensor(q, requires_grad=True)
    (found,) = torch.autograd.grad(function(tensor), tensor)
    (along,) = directions(rng, q)
    expected = (function(q + along) - function(q - along)).item() / 2  # exact: slopes are quadratic in charges
    bound = (1e-6 if by in ("direct", "ewald") else 1e-4) * np.linalg.norm(found.numpy())
    assert float(np.sum(along * found.numpy())) == pytest.approx(expected, abs=bound)
    with pytest.raises(NotImplementedError, match="laplace_grad has no derivative in its points"):
        function(tensor).backward()


def test_velocity_gradients_are_differentiable_in_forces(rng):
    x, f = torch.tensor(points(rng), requires_grad=True), torch.tensor(rng.standard_normal((3, N)), requires_grad=True)
    w, v = (torch.tensor(rng.standard_normal((3, N))) for _ in range(2))

    def function(f):
        f = torch.as_tensor(f)
        (slopes,) = torch.autograd.grad((w * parki.torch.direct("stokes_sl", x, x, f)).sum(), x, create_graph=True)
        return (v * slopes).sum()

    (found,) = torch.autograd.grad(function(f), f)
    (along,) = directions(rng, f.detach().numpy())
    expected = slope(lambda f: function(f).detach(), [f.detach().numpy()], [along])
    assert float(np.sum(along * found.numpy())) == pytest.approx(expected, abs=1e-6 * np.linalg.norm(found.numpy()))


def test_second_derivatives_in_the_box_are_refused(rng):
    x, q = torch.tensor(points(rng)), torch.tensor(rng.standard_normal(N))
    box = torch.tensor(CELL, requires_grad=True)
    energy = parki.torch.energy("laplace", x, q, box=box, tolerance=1e-6)
    (found,) = torch.autograd.grad(energy, box, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative in the box was differentiated again"):
        found.sum().backward()


# Transforms -----------------------------------------------------------------------------------------------------------
def test_transforms_of_functions(rng):
    x, q = torch.tensor(points(rng)), torch.tensor(rng.standard_normal(N))

    def energy(x, q):
        return 0.5 * q @ parki.torch.ewald("laplace", x, x, q, **GIVEN["ewald"])

    def at_once(x, q):
        return parki.torch.energy("laplace", x, q, **GIVEN["ewald"])

    leaf = x.clone().requires_grad_()
    energy(leaf, q).backward()
    for function in (energy, at_once):
        assert torch.allclose(torch.func.grad(function)(x, q), leaf.grad, rtol=0, atol=1e-9 * leaf.grad.abs().max())
    many = torch.tensor(rng.standard_normal((3, N)))
    each = torch.stack([energy(x, d) for d in many])
    assert torch.allclose(torch.func.vmap(energy, (None, 0))(x, many), each, rtol=1e-12)
    shifted = torch.stack([x, x + 0.01])
    for function in (energy, at_once):
        each = torch.stack([torch.func.grad(function)(a, q) for a in shifted])
        assert torch.allclose(torch.func.vmap(torch.func.grad(function), (0, None))(shifted, q), each)
    columns = torch.func.jacrev(lambda q: parki.torch.direct("coulomb", x, x, q))(q)
    assert torch.allclose(columns, parki.torch.direct("coulomb", x, x, torch.eye(N, dtype=torch.float64)), rtol=1e-12)


# Refusals -------------------------------------------------------------------------------------------------------------
def test_bad_arguments_are_named(rng):
    x, q = torch.tensor(points(rng)), torch.tensor(rng.standard_normal(N))
    for kernel, text in (("rotlet", "targets requires a gradient, and rotlet"), ("coulombic", "coulomb")):
        with pytest.raises(ValueError, match=text):
            parki.torch.direct(kernel, x.clone().requires_grad_(), x, torch.stack([q, q, q]))
    box = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match=r"box requires a gradient, and stokes_sl .* Pass box.detach\(\)"):
        parki.torch.ewald("stokes_sl", x, x, torch.stack([q, q, q]), box=box)
    with pytest.raises(ValueError, match=r"box has shape \(2,\)"):
        parki.torch.ewald("laplace", x, x, q, box=box[:2])
    with pytest.raises(ValueError, match=r"density has shape \(59,\); expected \(60,\)"):
        parki.torch.fmm("coulomb", x, x, q[1:])
    with pytest.raises(TypeError, match="layout was given"):
        parki.torch.fmm("coulomb", x, x, q, layout="nd")
    with pytest.raises(TypeError, match="density is a ndarray"):
        parki.torch.fmm("coulomb", x, x, q.numpy())
    with pytest.raises(ValueError, match="exclude was given for targets apart"):
        parki.torch.direct("coulomb", x, x.clone(), q, exclude=np.array([[0], [1]]))
    with pytest.raises(ValueError, match="by is 'pme'"):
        parki.torch.energy("laplace", x, q, by="pme")
    with pytest.raises(ValueError, match="rotlet has no energy; expected a kernel of charges"):
        parki.torch.energy("rotlet", x, q, by="direct")
    with pytest.raises(ValueError, match="normals is missing"):
        parki.torch.direct("stresslet", x, x, torch.stack([q, q, q]))
