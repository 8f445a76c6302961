"""Gradients of Ewald sums through PyTorch, against differences; arguments without derivatives are refused."""

import subprocess
import sys

import numpy as np
import pytest

import parki

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

N, M = 8, 7  # sources, targets
BOX = (1.0, 1.3, 0.9)
TIGHT = {"box": BOX, "tolerance": 1e-12, "threads": 1}
PERIODICITIES = [3, 2, 1, 0]


def tensor(x, grad=True, dtype=torch.float64):
    return torch.tensor(x, dtype=dtype, requires_grad=grad)


@pytest.fixture
def points(rng):
    """Return sources and other targets in the box, apart from each other."""
    x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(4)], float).T
    x = (x + 0.5 + rng.uniform(-0.3, 0.3, x.shape)) * np.array([[0.5], [0.65], [0.225]])
    x = x[:, rng.permutation(16)]
    return x[:, :N], x[:, N : N + M]


def strengths(name, rng, many=()):
    kernel = parki.ewald.kernels.KERNELS[name]
    shape = (*many, kernel.dens, N) if kernel.dens > 1 else (*many, N)
    return [tensor(rng.normal(size=shape))] + ([tensor(rng.normal(size=(3, N)))] if kernel.normals else [])


def call(name, **options):
    """Return the wrapper with its options, κ included."""
    function = getattr(parki.torch, name)
    extra = {"kappa": 2.0} if name == "yukawa" else {}
    return lambda *tensors: function(*tensors, **extra, **options)


@pytest.mark.parametrize("periodicity", PERIODICITIES)
@pytest.mark.parametrize("name", ["laplace", "yukawa", "stokes_sl"])
@pytest.mark.parametrize("same", [False, True], ids=["apart", "coincident"])
def test_gradients_in_points_and_density_are_those_of_differences(name, periodicity, same, points, rng):
    src, trg = points
    sum_ = call(name, periodicity=periodicity, **TIGHT)
    given = strengths(name, rng)
    if same:
        assert torch.autograd.gradcheck(
            lambda x, d: sum_(x, x, d), (tensor(src), *given), eps=1e-5, atol=1e-5, fast_mode=True
        )
    else:
        assert torch.autograd.gradcheck(sum_, (tensor(trg), tensor(src), *given), eps=1e-5, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize(
    ("name", "periodicity"),
    [
        *((name, p) for name in ("laplace_grad", "laplace_dipole", "stokes_pressure") for p in PERIODICITIES),
        *((name, p) for name in ("stokes_dl", "stokes_comb") for p in PERIODICITIES),
    ],
)
def test_gradients_in_density_and_normals_are_those_of_differences(name, periodicity, points, rng):
    src, trg = (tensor(x, grad=False) for x in points)
    sum_ = call(name, periodicity=periodicity, **TIGHT)
    given = strengths(name, rng)
    assert torch.autograd.gradcheck(lambda *s: sum_(trg, src, *s), given, eps=1e-5, atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("name", ["laplace", "stokes_sl", "stokes_comb"])
def test_right_hand_sides_and_layout_go_through(name, points, rng):
    """Check an axis of right-hand sides, points as rows, and a triclinic box."""
    src, trg = points
    cell = ((1.0, 0.2, 0.1), (0.0, 1.3, -0.3), (0.1, 0.0, 0.9))
    sum_ = call(name, **(TIGHT | {"box": cell, "layout": "nd"}))
    given = [
        x.detach().mT.requires_grad_() if x.ndim > 1 and name != "laplace" else x for x in strengths(name, rng, (2,))
    ]
    rows = [tensor(x.T, grad=name != "stokes_comb") for x in (trg, src)]
    assert torch.autograd.gradcheck(sum_, (*rows, *given), eps=1e-5, atol=1e-5, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_value_is_that_of_the_plain_call_in_its_dtype(dtype, points, rng):
    src = tensor(points[0], dtype=dtype)
    dens = tensor(rng.normal(size=N), dtype=dtype)
    u = parki.torch.laplace(src, src, dens, box=BOX, tolerance=1e-5, threads=1)
    plain = parki.ewald.laplace(src.detach(), src.detach(), dens.detach(), box=BOX, tolerance=1e-5, threads=1)
    assert u.dtype == dtype
    assert np.array_equal(u.detach().numpy(), plain)
    u.sum().backward()
    assert src.grad.dtype == dens.grad.dtype == dtype
    assert src.grad.shape == src.shape


def test_a_gradient_of_one_argument_is_the_same_as_among_all(points, rng):
    """Check that backward computes only the requested gradients."""
    x, d = tensor(points[0]), tensor(rng.normal(size=N))
    weights = tensor(rng.normal(size=N), grad=False)
    all_ = torch.autograd.grad(weights @ parki.torch.laplace(x, x, d, **TIGHT), (x, d))
    only_x = torch.autograd.grad(weights @ parki.torch.laplace(x, x, d.detach(), **TIGHT), (x,))
    only_d = torch.autograd.grad(weights @ parki.torch.laplace(x.detach(), x.detach(), d, **TIGHT), (d,))
    assert torch.equal(only_x[0], all_[0])
    assert torch.equal(only_d[0], all_[1])


def test_no_gradient_is_made_where_none_is_asked(points, rng):
    x = tensor(points[0])
    with torch.no_grad():
        u = parki.torch.yukawa(x, x, tensor(rng.normal(size=N)), 2.0, **TIGHT)
    assert not u.requires_grad


@pytest.mark.parametrize("name", ["laplace_dipole", "stokes_dl", "stokes_comb"])
@pytest.mark.parametrize("argument", ["trg", "src"])
def test_points_of_kernels_without_gradient_are_refused(name, argument, points, rng):
    src, trg = tensor(points[0], argument == "src"), tensor(points[1], argument == "trg")
    with pytest.raises(ValueError, match=rf"{argument} requires a gradient.*{name}.*Pass {argument}\.detach\(\)"):
        call(name, **TIGHT)(trg, src, *strengths(name, rng))


def test_bad_arguments_are_named(points, rng):
    src, trg = points
    d = tensor(rng.normal(size=N))
    with pytest.raises(TypeError, match=r"trg is a ndarray; expected a torch\.Tensor"):
        parki.torch.laplace(trg, tensor(src), d, **TIGHT)
    with pytest.raises(ValueError, match="kappa requires a gradient"):
        parki.torch.yukawa(tensor(trg, False), tensor(src, False), d, tensor(2.0), **TIGHT)
    for flag in ("return_walltime", "return_params", "return_error"):
        with pytest.raises(ValueError, match=f"{flag} is True"):
            parki.torch.laplace(tensor(trg), tensor(src), d, **{flag: True}, **TIGHT)
    with pytest.raises(ValueError, match=r"dens has shape \(7,\)"):
        parki.torch.laplace(tensor(trg), tensor(src), d[1:], **TIGHT)
    with pytest.raises(ValueError, match=r"trg has shape \(3, 7\); expected \(N, 3\)"):
        parki.torch.laplace(tensor(trg), tensor(src), d, layout="nd", **TIGHT)
    with pytest.raises(TypeError, match="unknown option"):
        parki.torch.laplace(tensor(trg), tensor(src), d, tolerence=1e-3, **TIGHT)


def loaded(code, where):
    return subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=True).stdout


def test_without_pytorch_it_says_what_to_install(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\ntry:\n    import parki.torch\nexcept ImportError as e:\n    print(e)"
    )
    assert loaded(code, tmp_path).strip() == 'parki.torch needs PyTorch: pip install "parki[torch]"'


def test_cupy_is_not_imported_for_tensors_on_the_host(tmp_path):
    code = (
        "import sys, torch, parki; x = torch.rand(3, 9, dtype=torch.float64, requires_grad=True)\n"
        "u = parki.torch.laplace(x, x, x[0], box=(1, 1, 1), threads=1); u.sum().backward()\n"
        "print('cupy' in sys.modules, x.grad.shape)"
    )
    assert loaded(code, tmp_path).strip() == "False torch.Size([3, 9])"
