"""Scripts for the published code, ParkiPy, run with ``import parki as parkipy``."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import parki as parkipy
from tests import reference
from tests.ewald import sums

BOX = [1.0, 1.3, 0.8]
TOLERANCE = {"fp64": 1e-9, "fp32": 1e-3}
COMPONENTS = {"laplace": (), "stokes_sl": (3,), "stokes_comb": (6,)}
METHODS = {
    "p2p_method": ("gm-1d", "Gm-2D", "sM-1d", "SM-2d"),
    "p2g_method": ("base", "Source", "gRID", "hybrid"),
    "g2p_method": ("Base", "tarGET"),
}
PHASES = ("p2p", "p2g", "fft", "cnv", "ifft", "g2p")


@pytest.fixture(scope="module")
def problem():
    """Return a function that gives arguments and exact result of a case; some targets are sources."""
    made = {}

    def get(kernel, precision="fp64", periodicity=3):
        if (kernel, precision, periodicity) not in made:
            rng, dtype = np.random.default_rng(12), parkipy.utils.get_dtype(precision)
            sides = np.array(BOX)[:, None]
            src = sides * rng.random((3, 150))
            trg = np.concatenate([src[:, :60], sides * rng.random((3, 60))], axis=1)
            given = [trg, src, rng.standard_normal((*COMPONENTS[kernel], 150))]
            given += [rng.standard_normal((3, 150))] if kernel == "stokes_comb" else []
            given = [a.astype(dtype) for a in given]
            given[:2] = [np.minimum(x, np.array(BOX, dtype)[:, None]) for x in given[:2]]
            exact = sums.periodic(kernel, *given, box=BOX, periodicity=periodicity)
            made[kernel, precision, periodicity] = given, exact
        return made[kernel, precision, periodicity]

    return get


def options(precision="fp64", periodicity=3, **more):
    space = parkipy.utils.get_execution_space("CPU")
    return parkipy.ewald.EwaldOptions(BOX, periodicity, TOLERANCE[precision], space, **more)


def right(u, exact, precision="fp64"):
    assert type(u) is np.ndarray
    assert u.dtype == parkipy.utils.get_dtype(precision)
    assert u.shape == exact.shape
    return reference.relative_rms(u, exact) <= TOLERANCE[precision]


SCRIPT = """
import sys
import numpy as np
import parki as parkipy

space = parkipy.utils.get_execution_space("OpenMP")
xp = parkipy.utils.get_array_module(space)
dtype = parkipy.utils.get_dtype("fp64")
n = parkipy.utils.round_up(90, 32)
xp.random.seed(0)
src = xp.random.random((3, n)).astype(dtype)
f = xp.random.random((3, n)).astype(dtype)
f -= f.mean(axis=1, keepdims=True)
options = parkipy.ewald.EwaldOptions([1.0, 1.0, 1.0], 3, 1e-3, space)
options.return_params = True
u, params = parkipy.ewald.stokes_sl(src, src, f, options)
cells = parkipy.CellList(src, params.rc, options.box, space, forces=f, padding_factor=32, periodicity=3)
print(n, u.shape, cells.force_list.shape[:2], cells.cell_size % 32, "cupy" in sys.modules)
np.savez(sys.argv[1], src=src, f=f, u=u)
"""


def test_one_import_is_enough(tmp_path):
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path / "out.npz")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "96 (3, 96) (1, 3) 0 False\n"
    assert done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]  # nothing is compiled into the folder
    with np.load(tmp_path / "out.npz") as out:
        exact = reference.potential("stokes_sl", out["src"], out["src"], out["f"])
        assert reference.relative_rms(out["u"], exact) <= 1e-3


@pytest.mark.parametrize("periodicity", [1, 3])
@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("kernel", COMPONENTS)
def test_every_call(kernel, precision, periodicity, problem):
    given, exact = problem(kernel, precision, periodicity)
    assert right(getattr(parkipy.ewald, kernel)(*given, options(precision, periodicity)), exact, precision)


@pytest.mark.parametrize("periodicity", [1, 3])
def test_the_published_split(periodicity, problem):
    """Check that published parameters keep their meaning, ξ among them: rc, and the sources in a cube of that side."""
    given, exact = problem("stokes_sl", "fp64", periodicity)
    made = options(periodicity=periodicity, split="gaussian", rc=0.3, return_params=True)
    u, params = parkipy.ewald.stokes_sl(*given, made)
    assert right(u, exact)
    assert params.rc == 0.3
    assert params.xi == pytest.approx(np.sqrt(np.log(1 / TOLERANCE["fp64"])) / 0.3, rel=0.25)


@pytest.mark.parametrize(("option", "name"), [(option, name) for option in METHODS for name in METHODS[option]])
def test_methods_in_any_letter_case(option, name, problem):
    given, exact = problem("laplace")
    chosen = options(**{option: name})
    assert getattr(chosen, option) == name.upper()
    assert right(parkipy.ewald.laplace(*given, chosen), exact)


@pytest.mark.parametrize("params", [False, True])
@pytest.mark.parametrize("walltime", [False, True])
def test_what_is_returned(walltime, params, problem):
    given, exact = problem("laplace")
    found = parkipy.ewald.laplace(*given, options(return_walltime=walltime, return_params=params))
    if not (walltime or params):
        assert right(found, exact)
        return
    assert type(found) is tuple
    potential, *rest = found
    assert right(potential, exact)
    assert [hasattr(one, "time_p2p") for one in rest] == [True] * walltime + [False] * params
    assert [hasattr(one, "window_P") for one in rest] == [False] * walltime + [True] * params


def test_walltime(problem):
    given, _ = problem("stokes_sl")
    _, walltime = parkipy.ewald.stokes_sl(*given, options(return_walltime=True))
    for name in PHASES:
        times = getattr(walltime, f"time_{name}")
        assert times["tot"] > 0
        if name in ("p2p", "p2g", "g2p"):
            assert 0 < times["kernel"] <= times["tot"]
            assert times["tot"] == pytest.approx(times["sort"] + times["kernel"])
        assert getattr(walltime, f"flop_{name}") > 0
        assert getattr(walltime, f"mop_{name}") > 0
    assert walltime.time_ewald >= sum(getattr(walltime, f"time_{name}")["tot"] for name in PHASES)
    assert walltime.time_cell_list > 0
    assert (walltime.N_in, walltime.N_out) == (150, 120)
    assert walltime.N_grid > 150
    assert walltime.N_fft == 3 * walltime.N_grid


@pytest.mark.parametrize("asked", [{"rc": 0.35}, {"cell_size": 20}, {}], ids=str)
def test_params(asked, problem):
    given, exact = problem("laplace")
    u, walltime, params = parkipy.ewald.laplace(*given, options(return_walltime=True, return_params=True, **asked))
    assert right(u, exact)
    volume = np.prod(BOX)
    if "rc" in asked:
        assert params.rc == 0.35
    if "cell_size" in asked:
        assert params.rc**3 / volume * 150 == pytest.approx(20)
    assert params.xi > 0
    assert isinstance(params.window_P, int)
    assert params.grid_res == pytest.approx(1 / params.h)
    assert np.allclose(params.box_ext, BOX)
    assert np.prod(params.grid_shape_ext) == walltime.N_grid
    assert params.h == pytest.approx(max(params.box_ext / params.grid_shape_ext))
    assert np.array_equal(params.actual_upsampling, [1, 1])


def test_options_in_the_published_order():
    space = parkipy.utils.get_execution_space("Serial")
    names = (
        "box", "periodicity", "tolerance", "execution_space", "p2p_method", "p2g_method", "g2p_method", "fft_type",
        "torch_fft", "p2p_threads_x", "p2p_threads_y", "p2g_threads", "g2p_threads", "cell_size", "rc",
        "return_walltime", "return_params",
    )  # fmt: skip
    values = ([1, 2, 3], 3, 1e-5, space, "SM-2D", "GRID", "BASE", "C2C", False, 64, 2, 32, 16, None, 0.5, True, True)
    made = parkipy.ewald.EwaldOptions(*values)
    assert tuple(getattr(made, name) for name in names) == values
    assert tuple(field.name for field in dataclasses.fields(made) if not field.kw_only) == names
    shown = [getattr(parkipy.ewald.EwaldOptions([1, 1, 1], 3, 1e-5, space), name) for name in names[4:]]
    assert shown == ["GM-1D", "HYBRID", "TARGET", "R2C", False, 128, 1, 128, 128, None, None, False, False]


def test_options_may_change_between_calls(problem):
    given, exact = problem("laplace")
    made = options()
    box = np.array(BOX)
    made.box, made.tolerance, made.p2g_method, made.return_walltime = box, 1e-3, "source", True
    u, _ = parkipy.ewald.laplace(*given, made)
    assert reference.relative_rms(u, exact) <= 1e-3
    assert made.box is box  # missing values are chosen in a copy
    assert (made.tolerance, made.p2g_method, made.rc) == (1e-3, "source", None)
    made.tolerance, made.return_walltime = TOLERANCE["fp64"], False
    assert right(parkipy.ewald.laplace(*given, made), exact)
    made.p2g_method = "sauce"
    with pytest.raises(ValueError, match=r"p2g_method is 'sauce'.*SOURCE"):
        parkipy.ewald.laplace(*given, made)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"box": "111"}, TypeError),
        ({"box": [1, 1]}, ValueError),
        ({"periodicity": 4}, ValueError),
        ({"tolerance": -1e-6}, ValueError),
        ({"p2p_method": "GM-3D"}, ValueError),
        ({"fft_type": "R2R"}, ValueError),
        ({"p2p_threads_x": 0}, ValueError),
        ({"rc": -1.0}, ValueError),
        ({"return_params": "yes"}, ValueError),
    ],
    ids=str,
)
def test_published_checks(wrong, error):
    (name,) = wrong
    with pytest.raises(error, match=name):
        parkipy.ewald.EwaldOptions(**({"box": BOX, "periodicity": 3, "tolerance": 1e-6} | wrong))


def test_a_gpu_that_is_not_here_is_named_with_a_remedy():
    if any(parkipy.engine.spaces.available()[name] is None for name in ("Cuda", "HIP")):
        assert parkipy.utils.get_array_module("GPU").__name__ == "cupy"
        return
    with pytest.raises(ValueError, match=r"'GPU'.*Or use 'OpenMP' or 'Serial'"):
        parkipy.utils.get_execution_space("GPU")


def test_coincident_points_are_self_pairs(problem):
    (_, src, dens), _ = problem("laplace")
    exact = reference.potential("laplace", src, src, dens, box=BOX)
    assert right(parkipy.ewald.laplace(src.copy(), src, dens, options()), exact)
    assert right(parkipy.ewald.laplace(src, src, dens, options()), exact)
