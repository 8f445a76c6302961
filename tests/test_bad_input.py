"""Wrong input is refused at once: the error names the argument, and nobody has written to the arrays."""

from dataclasses import replace

import numpy as np
import pytest

import parki
from tests.catalogue import COMPONENTS

N_TARGETS, N_SOURCES = 5, 7


class OnGpu:
    @property
    def __cuda_array_interface__(self):
        return {"shape": (3, N_SOURCES), "typestr": "<f8", "version": 3}


def good(kernel):
    """Return the arguments of a valid call, by name."""
    rng = np.random.default_rng(3)
    components = COMPONENTS[kernel]
    arguments = {"trg": rng.random((3, N_TARGETS)), "src": rng.random((3, N_SOURCES))}
    arguments["dens"] = rng.standard_normal((components, N_SOURCES) if components > 1 else N_SOURCES)
    if kernel == "stokes_comb":
        arguments["normals"] = rng.standard_normal((3, N_SOURCES))
    return arguments


def with_value(name, index, value):
    """Return a change of one entry of an array."""

    def change(arguments):
        arguments[name] = arguments[name].copy()
        arguments[name][index] = value

    return change


def with_array(name, function):
    """Return a change of an array as a whole."""

    def change(arguments):
        arguments[name] = function(arguments[name])

    return change


def with_option(**options):
    """Return a change of options."""
    return lambda arguments: arguments.update(options)


def outside(name, place, value, periodicity):
    """Return a change that puts a point beyond a free side."""

    def change(arguments):
        with_value(name, place, value)(arguments)
        with_option(periodicity=periodicity)(arguments)

    return change


def single(x):
    return x.astype(np.float32)


ARRAYS = [
    ("laplace", with_array("trg", np.transpose), r'trg has shape \(5, 3\).*layout="nd"'),
    ("laplace", with_array("src", lambda x: x[:2]), r"src has shape \(2, 7\); expected \(3, N\)"),
    ("stokes_sl", with_array("src", lambda x: x[0]), r"src has shape \(7,\)"),
    ("laplace", with_array("dens", lambda q: q[:4]), r"dens has shape \(4,\); expected \(7,\)"),
    ("laplace", with_array("dens", lambda q: q[None, :4]), r"dens\[0\] has shape \(4,\); expected \(7,\)"),
    ("laplace", with_array("dens", lambda q: q[None, None]), r"dens has shape \(1, 1, 7\); expected \(7,\)"),
    ("stokes_sl", with_array("dens", lambda q: q[None, :0]), r"dens\[0\] has shape \(0, 7\); expected \(3, 7\)"),
    (
        "laplace",
        with_array("dens", lambda q: q[None][:0]),
        r"dens has shape \(0, 7\); expected at least one right-hand",
    ),
    ("stokes_sl", with_array("dens", lambda q: q[0]), r"dens has shape \(7,\); expected \(3, 7\)"),
    ("stokes_sl", with_array("dens", np.transpose), r"dens has shape \(7, 3\); expected \(3, 7\)"),
    ("stokes_comb", with_array("dens", lambda q: q[:3]), r"dens has shape \(3, 7\); expected \(6, 7\)"),
    ("stokes_comb", with_array("normals", lambda q: q[:, :5]), r"normals has shape \(3, 5\); expected \(3, 7\)"),
    ("stokes_comb", with_array("normals", np.transpose), r"normals has shape \(7, 3\)"),
    ("laplace", with_array("trg", lambda x: (9 * x).astype(int)), "trg has dtype int64; expected float32 or float64"),
    ("laplace", with_array("dens", lambda q: q > 0), "dens has dtype bool"),
    ("stokes_comb", with_array("normals", lambda x: x + 1j), "normals has dtype complex128"),
    ("laplace", with_array("trg", single), "dtypes differ: trg float32, src float64"),
    ("laplace", with_array("dens", single), "dtypes differ: trg and src float64, dens float32"),
    (
        "stokes_comb",
        with_array("normals", single),
        r'dtypes differ: trg and src float64, dens float64, normals float32; .*normals\.astype\("float64"\)',
    ),
    ("laplace", with_value("trg", (1, 2), np.nan), r"trg has 1 of 15 values that are NaN .*trg\[1, 2\]"),
    ("laplace", with_value("src", (0, 3), np.inf), r"src has 1 of 21 values .*src\[0, 3\] = inf"),
    ("laplace", with_value("dens", 6, np.nan), r"dens has 1 of 7 values .*dens\[6\]"),
    ("stokes_sl", with_value("dens", (2, 0), -np.inf), r"dens has .*dens\[2, 0\] = -inf"),
    ("stokes_comb", with_value("normals", (2, 6), np.nan), r"normals has .*normals\[2, 6\]"),
    (
        "laplace",
        outside("trg", (0, 4), 1.02, 0),
        r"1 of 5 points of trg lie outside.*index 4, x = 1\.02, expected 0 to 1",
    ),
    (
        "stokes_comb",
        outside("src", (2, 1), -0.5, 2),
        r"1 of 7 points of src lie outside.*along z \(.*index 1, z = -0\.5",
    ),
    (
        "laplace",
        with_option(box=(1, 1, 0.01), periodicity=2),
        "points of trg lie outside the box, which is not periodic",
    ),
    ("laplace", with_option(box=np.tri(3), periodicity=0), "box is a triclinic cell, and periodicity is 0"),
    ("laplace", with_array("src", lambda x: OnGpu()), r"src is on the GPU \(.*\) and trg is on the host"),
    ("stokes_comb", with_array("normals", lambda x: OnGpu()), r"normals is on the GPU .* and trg is on the host"),
    ("laplace", with_array("dens", lambda q: None), "dens has dtype object"),
    ("laplace", with_array("dens", np.ma.masked_array), "dens is a masked array"),
]

OPTIONS = [
    ({"box": [1, 1]}, "box is"),
    ({"box": [1, 1, -1]}, "box is"),
    ({"tolerance": 0}, "tolerance is 0"),
    ({"tolerance": "small"}, "tolerance is 'small'"),
    ({"periodicity": (1, 0, 0)}, r"periodicity is \(1, 0, 0\)"),
    ({"box": None}, "box is missing"),
    ({"periodicity": 5}, "periodicity is 5"),
    ({"rc": 2.0}, "rc is 2.0, longer than the shortest periodic side"),
    ({"rc": 0}, "rc is 0"),
    ({"cell_size": -4}, "cell_size is -4"),
    ({"execution_space": "Cude"}, "execution space 'Cude'"),
    ({"execution_space": "GpuSim", "p2p_threads_x": 2048}, "p2p_threads_x is 2048; expected a product of at most 1024"),
    ({"p2p_method": "SM-4D"}, "p2p_method is 'SM-4D'"),
    ({"p2g_method": "NONE"}, "p2g_method is 'NONE'"),
    ({"g2p_method": ""}, "g2p_method is ''"),
    ({"fft_type": "R2R"}, "fft_type is 'R2R'"),
    ({"split": "kaiser"}, "split is 'kaiser'"),
    ({"threads": -1}, "threads is -1"),
    ({"layout": "nd3"}, "layout is 'nd3'"),
    ({"return_params": "no"}, "return_params is 'no'"),
    ({"return_error": 2}, "return_error is 2; expected True or False"),
    ({"tune": "best"}, "tune is 'best'; expected True or False"),
    ({"tune": True, "rc": 0.3}, "rc is 0.3 and tune is True"),
    ({"periodicity": (True, False)}, r"periodicity is \(True, False\)"),
    ({"periodicity": -1}, "periodicity is -1; expected 0, 1, 2 or 3, or three booleans"),
    ({"box": np.ones((2, 3))}, "expected three positive"),
    ({"box": np.ones((3, 3))}, "lie in a plane"),
    ({"box": [[1, 0, 0], [0, 1, 0], [0, 0, np.inf]]}, "finite numbers"),
    ({"fft": "fftw"}, r"fft is 'fftw'.*'pyfftw'"),
    ({"engine": "kokkos"}, "engine is 'kokkos'"),
]

CALLS = [
    (lambda x: parki.ewald.yukawa(x, x, x[0], -1.0, box=(1, 1, 1)), "kappa is -1.0; expected a positive number"),
    (
        lambda x: parki.ewald.plan(
            replace(parki.ewald.kernels.KERNELS["laplace"], periodicities=(0, 3)), x, x, box=(1, 1, 1), periodicity=2
        ),
        "periodicity is 2 and the kernel is laplace; expected 0 or 3",
    ),
    (lambda x: parki.ewald.plan("yukawa", x, x, box=(1, 1, 1)), "kappa is missing; yukawa expects a positive number"),
    (lambda x: parki.ewald.plan("laplace", x, x, box=(1, 1, 1), kappa=2.0), "kappa was given, but laplace takes no"),
    (
        lambda x: parki.ewald.plan("laplace", x, x[:, :0], box=(1, 1, 1))(x[0]),
        r"density has shape \(9,\); expected \(0,\)",
    ),
    (lambda x: parki.ewald.stokes_dl(x, x, x, None, box=(1, 1, 1)), "normals is missing; stokes_dl expects"),
    (lambda x: parki.ewald.plan("stokes_sl", x, x, box=(1, 1, 1))(x, x), "normals was given, but stokes_sl takes none"),
    (
        lambda x: parki.ewald.plan("laplace", x, x, box=(1, 1, 1)).move(x[:2]),
        r"sources has shape \(2, 9\); expected \(3, N\)",
    ),
    (lambda x: parki.ewald.plan("laplace", x, x, box=(1, 1, 1)).error(), "this plan has not been called"),
    (
        lambda x: parki.ewald.plan("laplace", x, x, box=(1, 1, 1))(x[0], out=np.empty(4)),
        r"out is a ndarray of shape \(4,\).*expected a NumPy array of shape \(9,\)",
    ),
]


def call(kernel, arguments):
    """Call a kernel and return its result; check that no array has changed, with or without an error."""
    before = {name: array.copy() for name, array in arguments.items() if isinstance(array, np.ndarray)}
    try:
        return getattr(parki.ewald, kernel)(**({"box": (1, 1, 1), "tolerance": 1e-3} | arguments))
    finally:
        for name, array in before.items():
            np.testing.assert_array_equal(arguments[name], array, err_msg=f"{name} was written to")


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_the_arguments_are_right_before_a_change(kernel):
    result = call(kernel, good(kernel))
    assert result.shape == ((N_TARGETS,) if kernel == "laplace" else (3, N_TARGETS))
    assert np.isfinite(result).all()


@pytest.mark.parametrize(("kernel", "change", "message"), ARRAYS, ids=[f"{row[0]}: {row[2]}" for row in ARRAYS])
def test_arrays(kernel, change, message):
    arguments = good(kernel)
    change(arguments)
    with pytest.raises(ValueError, match=message):
        call(kernel, arguments)


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=[str(row[0]) for row in OPTIONS])
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        call("laplace", good("laplace") | options)


@pytest.mark.parametrize(("wrong", "message"), CALLS, ids=[row[1] for row in CALLS])
def test_calls_of_other_kernels_and_plans(wrong, message):
    x = np.random.default_rng(5).random((3, 9))
    before = x.copy()
    with pytest.raises(ValueError, match=message):
        wrong(x)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("kernel", COMPONENTS)
def test_calls_that_are_no_calls(kernel):
    arguments = good(kernel)
    with pytest.raises(TypeError, match="box is a float"):
        call(kernel, arguments | {"box": 1.0})
    with pytest.raises(TypeError, match=r"unknown option 'tolerence'\. Did you mean 'tolerance'"):
        call(kernel, arguments | {"tolerence": 1e-3})
    with pytest.raises(ValueError, match="box is missing"):
        getattr(parki.ewald, kernel)(**arguments)
    with pytest.raises(TypeError, match="options is a dict"):
        call(kernel, arguments | {"options": {"tolerance": 1e-3}})


def test_an_unknown_kernel():
    arguments = good("laplace")
    with pytest.raises(ValueError, match=r"kernel .*'stokes_combined'.*stokes_comb"):
        parki.ewald.plan("stokes_combined", arguments["trg"], arguments["src"], box=(1, 1, 1))


def test_a_plan_checks_its_densities():
    arguments = good("stokes_comb")
    plan = parki.ewald.plan("stokes_comb", arguments["trg"], arguments["src"], box=(1, 1, 1), tolerance=1e-3)
    with pytest.raises(ValueError, match=r"density has shape \(3, 7\); expected \(6, 7\)"):
        plan(arguments["dens"][:3], arguments["normals"])
    with pytest.raises((TypeError, ValueError), match="normals"):
        plan(arguments["dens"])
    with pytest.raises(ValueError, match="density float32"):
        plan(single(arguments["dens"]), single(arguments["normals"]))


def test_a_tolerance_beyond_single_precision():
    arguments = {name: single(array) for name, array in good("laplace").items()}
    with pytest.warns(parki.ewald.PrecisionWarning, match=r"tolerance.*float32"):
        call("laplace", arguments | {"tolerance": 1e-9})


def test_results_are_new_arrays():
    arguments = good("stokes_sl")
    plan = parki.ewald.plan("stokes_sl", arguments["trg"], arguments["src"], box=(1, 1, 1), tolerance=1e-3)
    first = plan(arguments["dens"])
    kept = first.copy()
    second = plan(2.0 * arguments["dens"])
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)
