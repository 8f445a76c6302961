"""Direct sums in free space against the formulas in NumPy."""

import numpy as np
import pytest

import parki
from parki.direct import direct_sum
from parki.engine import KernelError
from parki.ewald import kernels
from tests import own_pairs, rotation
from tests.ewald.sums import RESULT

#: Numbers of components of the densities.
KERNELS = {"laplace": 1, "laplace_grad": 1, "laplace_dipole": 3, "yukawa": 1}
KERNELS |= {"stokes_sl": 3, "stokes_dl": 3, "stokes_comb": 6, "stokes_pressure": 3, "stokes_grad": 3}
KERNELS |= {"stokes_dipole": 9, "rotlet": 3, "rpy": 3, "rpy_rotation": 6}
KERNELS |= {"regularised_stokeslet": 3, "regularised_dipole": 3}
RADIUS = 0.3
PARAMETERS = {"yukawa": {"kappa": 0.7}, "rpy": {"radius": RADIUS}, "rpy_rotation": {"radius": RADIUS}}
PARAMETERS |= {"regularised_stokeslet": {"epsilon": RADIUS}, "regularised_dipole": {"epsilon": RADIUS}}
WITH_NORMALS = ("stokes_dl", "stokes_comb")


def formula(kernel, x, y, dens, normals=None):
    """Return the sum of all pairs in double precision; coincident pairs are skipped."""
    x, y, dens = (a.astype(np.float64) for a in (x, y, dens))
    r = x[:, :, None] - y[:, None, :]
    r2 = np.sum(r**2, axis=0)
    w = np.where(r2 > 0, 1 / np.sqrt(np.where(r2 > 0, r2, 1)), 0)
    if kernel == "laplace":
        return w @ dens
    if kernel == "yukawa":
        return (np.exp(-0.7 * np.sqrt(r2)) * w) @ dens
    if kernel == "laplace_grad":
        return -np.einsum("cij,ij,j->ci", r, w**3, dens)
    if kernel in ("laplace_dipole", "stokes_pressure"):
        return (2 if kernel == "stokes_pressure" else 1) * np.einsum("cij,ij,cj->i", r, w**3, dens)
    if kernel == "stokes_grad":
        u = -np.einsum("jmn,mn,in->ijm", r, w**3, dens) + np.einsum("imn,mn,jn->ijm", r, w**3, dens)
        along = np.einsum("kmn,kn->mn", r, dens)
        u += np.einsum("ij,mn->ijm", np.eye(3), w**3 * along) - 3 * np.einsum("imn,jmn,mn->ijm", r, r, w**5 * along)
        return u.reshape(9, -1)
    if kernel == "regularised_stokeslet":
        b = (r2 + RADIUS**2) ** -1.5
        return dens @ (b * (r2 + 2 * RADIUS**2)).T + np.einsum("cij,ij->ci", r, b * np.einsum("cij,cj->ij", r, dens))
    if kernel == "regularised_dipole":
        b = (r2 + RADIUS**2) ** -2.5
        along = 3 * b * np.einsum("cij,cj->ij", r, dens)
        return dens @ (b * (2 * RADIUS**2 - r2)).T + np.einsum("cij,ij->ci", r, along)
    if kernel == "stokes_dipole":
        slopes = [formula("stokes_grad", x, y, dens[j::3]).reshape(3, 3, -1)[:, j] for j in range(3)]
        return -np.sum(slopes, axis=0)
    if kernel == "rotlet":
        return np.sum(np.cross(dens[:, None, :], r, axis=0) * w**3, axis=2)
    if kernel == "rpy_rotation":
        return rotation.flow(r, *dens.reshape(2, 3, 1, -1), RADIUS).sum(axis=-1)
    if kernel == "rpy":
        overlap = r2 < (2 * RADIUS) ** 2
        a = np.where(overlap, (4 / 3 - 0.375 * np.sqrt(r2) / RADIUS) / RADIUS, w + 2 / 3 * RADIUS**2 * w**3)
        b = np.where(overlap, w / (8 * RADIUS**2), w**3 - 2 * RADIUS**2 * w**5)
        return dens @ a.T + np.einsum("cij,ij->ci", r, b * np.einsum("cij,cj->ij", r, dens))
    u = np.zeros((3, x.shape[1]))
    if kernel != "stokes_dl":
        f = dens[:3]
        u += f @ w.T + np.einsum("cij,ij->ci", r, w**3 * np.einsum("cij,cj->ij", r, f))
    if kernel in WITH_NORMALS:
        rq, rn = (np.einsum("cij,cj->ij", r, v) for v in (dens[-3:], normals.astype(np.float64)))
        u -= 6 * np.einsum("cij,ij->ci", r, w**5 * rq * rn)
    return u


def problem(kernel, rng, nt, ns, dtype=np.float64):
    """Return targets, sources and strengths as a call takes them; the first targets are sources."""
    y = rng.standard_normal((3, ns))
    x = rng.standard_normal((3, nt))
    same = min(nt, ns) // 3
    x[:, :same] = y[:, :same]
    dens = rng.standard_normal((KERNELS[kernel], ns) if KERNELS[kernel] > 1 else ns)
    given = [x, y, dens, *([rng.standard_normal((3, ns))] if kernel in WITH_NORMALS else [])]
    return [a.astype(dtype) for a in given]


def error(u, exact):
    return np.linalg.norm(u - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 3e-15), (np.float32, 2e-6)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_formulas(kernel, dtype, bound, rng):
    components = RESULT.get(kernel, 3)
    for nt, ns in ((1, 1), (1, 40), (130, 3), (259, 77)):
        given = problem(kernel, rng, nt, ns, dtype)
        u = direct_sum(kernel, *given, **PARAMETERS.get(kernel, {}))
        assert u.dtype == dtype
        assert u.shape == ((nt,) if components == 1 else (components, nt))
        assert error(u, formula(kernel, *given)) < bound


def test_all_kernels_are_there():
    assert set(KERNELS) == set(kernels.KERNELS)
    for name, kernel in kernels.KERNELS.items():
        assert (kernel.dens, kernel.result) == (KERNELS[name], RESULT.get(name, 3))
        assert kernel.normals == (name in WITH_NORMALS)
        assert f"``{name}``" in direct_sum.__doc__


def test_a_pair_of_ones_own(rng, tmp_path):
    path = own_pairs.file("u[0] += (s[0] + s[1]) * (w * w)", "u[1] += s[0]", sources=2, results=2)
    x, y, s = rng.standard_normal((3, 6)), rng.standard_normal((3, 9)), rng.standard_normal((2, 9))
    r2 = np.sum((x[:, :, None] - y[:, None]) ** 2, axis=0)
    exact = np.array([(1 / r2) @ s.sum(axis=0), np.full(6, s[0].sum())])
    assert direct_sum(path, x, y, s) == pytest.approx(exact, rel=1e-12)
    assert direct_sum(str(path), x, y, s) == pytest.approx(exact, rel=1e-12)
    # The kernel's message is more precise: the second strength is a parameter.
    mine = kernels.Kernel("mine", 1, 2, str(path), (), "", 1, (), (), names=("p",))
    exact[0] = (1 / r2) @ (s[0] + 0.3)
    assert direct_sum(mine, x, y, s[0], p=0.3) == pytest.approx(exact, rel=1e-12)
    with pytest.raises(ValueError, match="p is missing; mine expects a positive number"):
        direct_sum(mine, x, y, s[0])
    with pytest.raises(ValueError, match=r"dens has shape \(9,\); expected \(2, 9\)"):
        direct_sum(path, x, y, s[0])
    (tmp_path / "mine.py").write_text(own_pairs.text("u[0] += s[0]", sources="1 + 1"), "utf-8")
    with pytest.raises(ValueError, match=r"NS is 1 \+ 1 in .*mine.py; expected a number"):
        direct_sum(tmp_path / "mine.py", x, y, s)
    with pytest.raises(KernelError, match="no kernel file"):
        direct_sum(tmp_path / "none.py", x, y, s)


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_to_sum(kernel, rng):
    x, y, *strengths = problem(kernel, rng, 4, 5)
    rest = PARAMETERS.get(kernel, {})
    assert direct_sum(kernel, x[:, :0], y, *strengths, **rest).shape[-1] == 0
    np.testing.assert_array_equal(direct_sum(kernel, x, y[:, :0], *(s[..., :0] for s in strengths), **rest), 0)
    one = [s[..., :1] for s in strengths]
    alone = 4 / (3 * RADIUS) * one[0] if kernel == "rpy" else 0  # a sphere moves by itself
    if kernel == "regularised_stokeslet":
        alone = 2 / RADIUS * one[0]
    if kernel == "regularised_dipole":
        alone = 2 / RADIUS**3 * one[0]
    if kernel == "rpy_rotation":
        alone = rotation.of_itself(one[0], RADIUS)
    np.testing.assert_allclose(direct_sum(kernel, y[:, :1], y[:, :1], *one, **rest), alone, rtol=1e-15)


def test_the_result_depends_on_neither_threads_nor_space(rng):
    given = problem("stokes_comb", rng, 1000, 200)
    one = direct_sum("stokes_comb", *given, threads=1)
    np.testing.assert_array_equal(direct_sum("stokes_comb", *given, threads=2), one)
    np.testing.assert_array_equal(direct_sum("stokes_comb", *given, execution_space="Serial"), one)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_space(space, dtype, rng):
    given = problem("stokes_comb", rng, 300, 70, dtype)
    u = direct_sum("stokes_comb", *given, execution_space=space)
    assert type(u) is np.ndarray
    assert u.dtype == dtype
    assert error(u, formula("stokes_comb", *given)) < {np.float64: 3e-15, np.float32: 2e-6}[dtype]


def test_nearly_coincident_points():
    """Check double precision, where rounding makes no coincident pair, and single, where only equal points coincide."""
    x = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    moved = np.nextafter(x, 2.0)
    np.testing.assert_allclose(direct_sum("laplace", moved, x, np.ones(2)), 1, rtol=1e-13)
    close = x + np.array([[0], [0], [1e-14]])
    np.testing.assert_allclose(direct_sum("laplace", close, x, np.ones(2)), 1e14, rtol=1e-12)
    x[1] = 0.0
    single = x.astype(np.float32)
    moved = single + np.array([[1e-18], [0], [0]], np.float32)
    u = direct_sum("laplace", moved, single, np.ones(2, np.float32))
    assert u[0] == pytest.approx(1e18, rel=1e-6)
    assert u[1] == pytest.approx(1)  # 1 + 1e-18 is 1


def test_memory_order_and_input(rng):
    given = problem("stokes_comb", rng, 30, 20)
    expected = direct_sum("stokes_comb", *given)
    before = [a.copy() for a in given]
    np.testing.assert_array_equal(direct_sum("stokes_comb", *map(np.asfortranarray, given)), expected)
    np.testing.assert_array_equal(
        direct_sum("stokes_comb", *(np.repeat(a, 2, axis=1)[:, ::2] for a in given)), expected
    )
    for array, kept in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, kept)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "stokes"}, "kernel is 'stokes'; expected one of 'laplace'"),
        ({"targets": np.zeros((4, 2))}, r"targets has shape \(4, 2\); expected \(3, N\)"),
        ({"sources": np.zeros((3, 4), np.float32)}, "dtypes differ: targets float64, sources float32"),
        ({"dens": np.zeros((6, 4))}, r"dens has shape \(6, 4\); expected \(3, 4\)"),
        ({"dens": np.full((3, 4), np.nan)}, "dens has 12 of 12 values that are NaN"),
        ({"normals": None}, r"normals is missing; stokes_dl expects \(3, 4\)"),
        ({"normals": np.zeros((3, 5))}, r"normals has shape \(3, 5\); expected \(3, 4\)"),
        ({"kernel": "stokes_sl"}, "normals was given, but stokes_sl takes none"),
        ({"kappa": 1.0}, "kappa was given, but stokes_dl takes no parameters"),
        ({"kernel": "yukawa"}, "kappa is missing; yukawa expects a positive number"),
        ({"kernel": "yukawa", "kappa": -1.0}, "kappa is -1.0; expected a positive number"),
        ({"kernel": "yukawa", "length": 1.0}, "length was given, but yukawa takes kappa"),
        ({"execution_space": "OpenMPI"}, "'OpenMPI'"),
        ({"execution_space": "Serial", "threads": 2}, "threads is 2 with execution_space 'Serial'"),
        ({"execution_space": "GpuSim", "threads": 2}, "threads is 2 with execution_space 'GpuSim', which has one"),
        ({"threads": 0}, "threads=0"),
    ],
    ids=str,
)
def test_wrong_input(change, message):
    good = {"kernel": "stokes_dl", "targets": np.zeros((3, 2)), "sources": np.ones((3, 4))}
    good |= {"dens": np.ones((3, 4)), "normals": np.ones((3, 4))}
    with pytest.raises(ValueError, match=message):
        direct_sum(**(good | change))


def test_it_is_part_of_the_package():
    assert parki.direct.direct_sum is direct_sum
    assert "direct" in dir(parki)
