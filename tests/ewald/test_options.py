"""EwaldOptions: published fields, checks, merging with keywords."""

import copy
import dataclasses
import pickle
import sys
import types

import numpy as np
import pytest

import parki
from parki.engine.run import spaces
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions, named

PUBLISHED = {
    "p2p_method": "GM-1D",
    "p2g_method": "HYBRID",
    "g2p_method": "TARGET",
    "fft_type": "R2C",
    "torch_fft": False,
    "p2p_threads_x": 128,
    "p2p_threads_y": 1,
    "p2g_threads": 128,
    "g2p_threads": 128,
    "cell_size": None,
    "rc": None,
    "return_walltime": False,
    "return_params": False,
}


def test_fields_and_defaults_are_the_published_ones():
    positional = [field for field in dataclasses.fields(EwaldOptions) if not field.kw_only]
    names = [field.name for field in positional]
    assert names == ["box", "periodicity", "tolerance", "execution_space", *PUBLISHED]
    assert {field.name: field.default for field in positional[4:]} == PUBLISHED


METHODS = {"p2p_method": "GM-1D", "p2g_method": "HYBRID", "g2p_method": "TARGET"}
THREADS = {"p2p_threads_x": 128, "p2p_threads_y": 1, "p2g_threads": 128, "g2p_threads": 128}


def chosen(space, options):
    return variants.choose(spaces.get(space), "float64", options)


def copies(options):
    """Yield an options object and its copies, by every way of making one."""
    yield options
    yield copy.copy(options)
    yield copy.deepcopy(options)
    yield pickle.loads(pickle.dumps(options))
    yield dataclasses.replace(options, tolerance=1e-3)
    yield EwaldOptions(**dataclasses.asdict(options))
    yield EwaldOptions.resolve(options)
    yield EwaldOptions.resolve(EwaldOptions.resolve(options), tolerance=1e-3)


def test_defaults_that_nobody_named_stay_so():
    for options in copies(EwaldOptions(box=[1, 1, 1])):
        assert {name: getattr(options, name) for name in METHODS | THREADS} == METHODS | THREADS
        assert not any(named(getattr(options, name)) for name in METHODS | THREADS)
        assert chosen("OpenMP", options) == variants.choose(spaces.get("OpenMP"), "float64")
        assert chosen("GpuSim", options) == variants.choose(spaces.get("GpuSim"), "float64")
    assert "p2p_method='GM-1D'" in repr(EwaldOptions(box=[1, 1, 1]))
    assert "p2p_threads_x=128," in repr(EwaldOptions(box=[1, 1, 1]))


def test_defaults_that_are_named_are_honoured():
    for options in copies(EwaldOptions(box=[1, 1, 1], **METHODS, **THREADS)):
        assert all(named(getattr(options, name)) for name in METHODS | THREADS)
        assert chosen("OpenMP", options).p2g == "HYBRID"
        assert (chosen("GpuSim", options).targets, chosen("GpuSim", options).lanes) == (128, 1)
    options = EwaldOptions(box=[1, 1, 1])
    options.p2g_method = "hybrid"
    assert chosen("OpenMP", EwaldOptions.resolve(options)).p2g == "HYBRID"


def test_auto_is_a_name_for_nothing():
    options = EwaldOptions(box=[1, 1, 1], p2p_method="auto", p2g_method="Auto", g2p_method="AUTO")
    for space in ("OpenMP", "GpuSim"):
        assert chosen(space, options) == variants.choose(spaces.get(space), "float64")


def test_what_is_chosen():
    host, gpu = (variants.choose(spaces.get(space), "float64") for space in ("OpenMP", "GpuSim"))
    assert (host.p2p, host.p2g, host.g2p) == ("LIST", "BLOCK", "TARGET")
    assert (gpu.p2p, gpu.p2g, gpu.g2p) == ("LIST-2D", "TILE", "TILE")
    assert host.targets >= 4
    assert (gpu.targets, gpu.lanes, gpu.p2g_threads, gpu.g2p_threads) == (16, 32, 256, 128)
    assert variants.lane_rows(gpu.g2p_threads) == (16, 8)
    assert variants.choose(spaces.get("GpuSim64"), "float64").targets == 16


@pytest.mark.parametrize(("kernel", "near_field"), [("laplace", "GM-1D"), ("stokes_sl", "LIST-2D")])
def test_near_fields_of_kernels(kernel, near_field):
    """Pairs that are worth a list for each target have one, on GPUs."""
    p = choose.parameters(Question(kernel, (1.0, 1.0, 1.0), 1000, 1000, 1e-6))
    for space, targets in (("GpuSim", 32), ("GpuSim64", 64)):
        v = variants.choose(spaces.get(space), "float64", p=p)
        assert (v.p2p, v.targets) == (near_field, 16 if near_field == "LIST-2D" else targets)
    named = EwaldOptions(box=[1, 1, 1], p2p_method="GM-2D")
    assert variants.choose(spaces.get("GpuSim"), "float64", named, p).p2p == "GM-2D"
    assert variants.choose(spaces.get("Serial"), "float64", p=p).p2p == "LIST"


@pytest.mark.parametrize(
    ("asked", "targets", "lanes"),
    [
        ({"p2p_threads_x": 16}, 16, 32),
        ({"p2p_threads_x": 64}, 64, 16),
        ({"p2p_method": "GM-1D", "p2p_threads_x": 64, "p2p_threads_y": 4}, 64, 1),  # one thread a target
        ({"p2p_method": "GM-2D", "p2p_threads_x": 16, "p2p_threads_y": 32}, 16, 32),
        ({"p2p_method": "GM-2D", "p2p_threads_x": 128, "p2p_threads_y": 1}, 128, 1),
        ({"p2p_method": "SM-2D", "p2p_threads_x": 1024}, 1024, 1),
        ({"p2p_method": "SM-2D", "p2p_threads_x": 512}, 512, 2),
        ({"p2p_method": "SM-1D", "p2p_threads_x": 1024}, 1024, 1),
    ],
)
def test_blocks_of_the_near_field(asked, targets, lanes):
    found = chosen("GpuSim", EwaldOptions(box=[1, 1, 1], **asked))
    assert (found.targets, found.lanes) == (targets, lanes)
    assert (
        chosen("OpenMP", EwaldOptions(box=[1, 1, 1], **asked)).targets
        == variants.choose(spaces.get("OpenMP"), "float64").targets
    )


@pytest.mark.parametrize(("threads", "shape"), [(128, (16, 8)), (64, (8, 8)), (100, (12, 8)), (6, (1, 4)), (1, (1, 1))])
def test_rows_of_lanes(threads, shape):
    assert variants.lane_rows(threads) == shape


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"p2p_threads_x": 1025}, "p2p_threads_x is 1025; expected a product of at most 1024"),
        (
            {"p2p_method": "GM-2D", "p2p_threads_x": 64, "p2p_threads_y": 32},
            "is 64 and p2p_threads_y is 32; expected",
        ),
        ({"p2p_method": "GM-2D", "p2p_threads_y": 3}, "p2p_threads_y is 3; expected a power of two up to 32"),
        ({"p2p_method": "GM-2D", "p2p_threads_y": 64}, "p2p_threads_y is 64; expected a power of two up to 32"),
        ({"p2g_threads": 2048}, "p2g_threads is 2048; expected at most 1024"),
        ({"g2p_threads": 2048}, "g2p_threads is 2048; expected at most 1024"),
    ],
)
def test_blocks_that_no_gpu_has(asked, message):
    options = EwaldOptions(box=[1, 1, 1], **asked)
    with pytest.raises(ValueError, match=message):
        chosen("GpuSim", options)
    assert chosen("OpenMP", options).g2p == "TARGET"


def test_published_call_by_position_and_by_name():
    by_position = EwaldOptions([1.0, 2.0, 3.0], 3, 1e-4, "CPU", "SM-2D")
    by_name = EwaldOptions(
        periodicity=3, box=[1.0, 2.0, 3.0], tolerance=1e-4, p2p_method="SM-2D", execution_space="CPU"
    )
    assert by_position == by_name


def test_options_are_mutable_and_copied_on_entry():
    options = EwaldOptions(box=[1, 1, 2])
    options.tolerance = 1e-3
    taken = EwaldOptions.resolve(options)
    assert taken is not options
    assert taken.tolerance == 1e-3
    options.box[0] = 5.0
    options.tolerance = 1e-9
    assert taken.box == (1.0, 1.0, 2.0)
    assert taken.tolerance == 1e-3


def test_a_field_changed_to_a_wrong_value_is_found_on_entry():
    options = EwaldOptions(box=[1, 1, 1])
    options.tolerance = -1.0
    with pytest.raises(ValueError, match=r"tolerance is -1\.0"):
        EwaldOptions.resolve(options)


def test_a_misspelt_field_cannot_be_set():
    options = EwaldOptions(box=[1, 1, 1])
    with pytest.raises(AttributeError, match="tolerence"):
        options.tolerence = 1e-3


def test_keywords_replace_fields_and_leave_the_original():
    options = EwaldOptions(box=[1, 1, 1], tolerance=1e-4)
    merged = EwaldOptions.resolve(options, tolerance=1e-8, rc=0.25)
    assert (merged.tolerance, merged.rc) == (1e-8, 0.25)
    assert (options.tolerance, options.rc) == (1e-4, None)


@pytest.mark.parametrize("box", [[1, 2, 3], (1.0, 2.0, 3.0), np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3])])
def test_boxes(box):
    resolved = EwaldOptions.resolve(box=box)
    assert resolved.box == (1.0, 2.0, 3.0)
    assert all(type(side) is float for side in resolved.box)


def test_choices_are_spelt_as_listed():
    resolved = EwaldOptions.resolve(box=[1, 1, 1], p2p_method="sm-1d", split="Gaussian", fft_type="auto")
    assert (resolved.p2p_method, resolved.split, resolved.fft_type) == ("SM-1D", "gaussian", "AUTO")
    assert EwaldOptions.resolve(box=[1, 1, 1], fft="SciPy").fft == "scipy"


def test_the_library_of_the_transforms(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    options = EwaldOptions.resolve(box=[1, 1, 1])
    assert (options.fft, options.transform()) == (None, None)
    assert EwaldOptions.resolve(options, fft="scipy").transform() == "scipy"
    assert EwaldOptions.resolve(options, torch_fft=True).transform() == "torch"


def test_execution_space_becomes_a_space_with_threads():
    assert EwaldOptions.resolve(box=[1, 1, 1]).execution_space == spaces.get()
    serial = EwaldOptions.resolve(box=[1, 1, 1], execution_space="serial", threads=1)
    assert (serial.execution_space.name, serial.execution_space.threads) == ("Serial", 1)
    given = spaces.get("Serial")
    assert EwaldOptions.resolve(box=[1, 1, 1], execution_space=given).execution_space == given


@pytest.mark.parametrize("periodicity", [0, 1, 2, 3, (True, False, True)])
@pytest.mark.parametrize("tilt", [0, 1e-17])
def test_a_diagonal_matrix_is_three_sides(tilt, periodicity):
    box = np.diag([1.0, 2.0, 3.0]) + tilt * np.tri(3, k=-1)
    for given in (box, box.tolist()):
        assert EwaldOptions.resolve(box=given, periodicity=periodicity).box == (1.0, 2.0, 3.0)


def test_a_slab_with_a_diagonal_matrix(rng):
    x, q = rng.random((3, 40)), rng.normal(size=40)
    options = {"periodicity": 2, "tolerance": 1e-4}
    found = parki.ewald.laplace(x, x, q, box=np.diag([1.0, 1.5, 2.0]), **options)
    np.testing.assert_array_equal(found, parki.ewald.laplace(x, x, q, box=(1.0, 1.5, 2.0), **options))


def test_a_diagonal_matrix_with_a_negative_entry_is_a_cell():
    assert EwaldOptions.resolve(box=np.diag([1.0, -2.0, 3.0])).box.shape == (3, 3)


@pytest.mark.parametrize("box", [1.0, "111", {1.0, 2.0, 3.0}])
def test_a_box_of_another_type(box):
    with pytest.raises(TypeError, match=r"box is a \w+; expected a list, tuple or array"):
        EwaldOptions.resolve(box=box)


WRONG = [
    ({"box": [1, 1]}, r"box is \[1, 1\]; expected three positive"),
    ({"box": [1, 1, 1, 1]}, r"box is .* expected three"),
    ({"box": [1, 1, 0]}, r"box is \[1, 1, 0\]"),
    ({"box": [1, 1, -2.0]}, "box is"),
    ({"box": [1, 1, float("nan")]}, "box is"),
    ({"box": [1, 1, float("inf")]}, "box is"),
    ({"box": [1, [1, 2], 1]}, "box is"),
    ({"box": np.array(3.0)}, "box is"),
    ({"box": np.ones((3, 3))}, "box is"),
    ({"box": np.zeros((3, 3))}, "(?s)box is .* expected three positive"),
    ({"box": ["1", "1", "1"]}, "box is"),
    ({"periodicity": 4}, "periodicity is 4; expected 0, 1, 2 or 3"),
    ({"periodicity": -1}, "periodicity is -1"),
    ({"periodicity": 2.5}, "periodicity is 2.5"),
    ({"periodicity": "3"}, "periodicity is '3'"),
    ({"periodicity": True}, "periodicity is True"),
    ({"periodicity": (True, False)}, r"periodicity is \(True, False\); expected .* or three booleans"),
    ({"periodicity": (1, 1, 0)}, r"periodicity is \(1, 1, 0\)"),
    ({"box": np.tri(3), "periodicity": 2}, "periodicity is 2; expected rows without a period at right"),
    ({"box": [[1, 0, 0], [0, 1, 0], [1, 1, 0]]}, "box is .* lie in a plane; expected a cell with a volume"),
    ({"box": [[1, 0, 0], [0, 1, 0], [0, 0, float("nan")]]}, "box is .*; expected three lattice vectors of finite"),
    ({"rc": 0.9, "box": [[1, 0, 0], [0.9, 0.5, 0], [0, 0, 2]]}, "rc is 0.9, longer than the shortest periodic side"),
    ({"tolerance": 0.0}, r"tolerance is 0\.0; expected a number between 0 and 1"),
    ({"tolerance": 1.0}, "tolerance is 1.0"),
    ({"tolerance": -1e-6}, "tolerance is -1e-06"),
    ({"tolerance": float("nan")}, "tolerance is nan"),
    ({"tolerance": "1e-6"}, "tolerance is '1e-6'"),
    ({"tolerance": None}, "tolerance is None"),
    ({"execution_space": "OpenMPI"}, "execution space 'OpenMPI'.*Did you mean 'OpenMP'"),
    ({"execution_space": 3}, "execution_space is 3; expected a name"),
    ({"p2p_method": "GM-3D"}, "p2p_method is 'GM-3D'; expected one of .*Did you mean 'GM-[12]D'"),
    ({"p2p_method": None}, "p2p_method is None"),
    ({"p2g_method": "HYBIRD"}, "p2g_method is 'HYBIRD'.*Did you mean 'HYBRID'"),
    ({"g2p_method": "SOURCE"}, "g2p_method is 'SOURCE'; expected one of 'AUTO', 'BASE', 'TARGET', 'TILE'"),
    ({"fft_type": "C2R"}, "fft_type is 'C2R'"),
    ({"torch_fft": "no"}, "torch_fft is 'no'; expected True or False"),
    ({"fft": "duck0"}, "fft is 'duck0'; expected one of 'scipy', 'ducc0', .*Did you mean 'ducc0'"),
    ({"fft": 1}, "fft is 1; expected one of 'scipy', 'ducc0', 'pyfftw', 'cupy', 'torch'"),
    ({"fft": "cupy"}, "fft is 'cupy', which takes no arrays on the host; expected 'scipy' or"),
    ({"fft": "scipy", "torch_fft": True}, "fft is 'scipy' and torch_fft is True; expected at most one"),
    ({"p2p_threads_x": 0}, "p2p_threads_x is 0; expected a positive whole number"),
    ({"p2p_threads_y": 1.5}, "p2p_threads_y is 1.5"),
    ({"p2g_threads": "128"}, "p2g_threads is '128'"),
    ({"g2p_threads": True}, "g2p_threads is True"),
    ({"cell_size": 0}, "cell_size is 0; expected a positive number"),
    ({"cell_size": "many"}, "cell_size is 'many'"),
    ({"rc": -0.1}, r"rc is -0\.1; expected a positive number"),
    ({"rc": float("inf")}, "rc is inf"),
    ({"rc": 1.5}, "rc is 1.5, longer than the shortest periodic side of the box, 1;"),
    ({"rc": 0.1, "cell_size": 200}, r"rc is 0\.1 and cell_size is 200; expected at most one"),
    ({"return_walltime": "yes"}, "return_walltime is 'yes'"),
    ({"return_params": 2}, "return_params is 2"),
    ({"verbose": None}, "verbose is None"),
    ({"tune": "yes"}, "tune is 'yes'; expected True or False"),
    ({"tune": True, "rc": 0.1}, r"rc is 0\.1 and tune is True; expected at most one of them: tune sets rc"),
    ({"tune": True, "cell_size": 200}, "cell_size is 200 and tune is True; expected at most one of them"),
    ({"split": "prolat"}, "split is 'prolat'; .*Did you mean 'prolate'"),
    ({"layout": "nn"}, "layout is 'nn'; expected one of 'dn', 'nd'"),
    ({"threads": 0}, "threads is 0; expected a positive whole number"),
    ({"threads": 2.0}, r"threads is 2\.0"),
    ({"threads": 2, "execution_space": "Serial"}, "threads is 2 with execution_space 'Serial'"),
]


@pytest.mark.parametrize(("keywords", "message"), WRONG, ids=[str(next(iter(row[0].items()))) for row in WRONG])
def test_wrong_values(keywords, message):
    with pytest.raises(ValueError, match=message):
        EwaldOptions.resolve(**({"box": [1, 1, 1]} | keywords))


@pytest.mark.parametrize("periodicity", [3, 2, 1, (False, True, False)])
def test_a_missing_box(periodicity):
    with pytest.raises(ValueError, match=r"box is missing; expected three side lengths"):
        EwaldOptions.resolve(tolerance=1e-3, periodicity=periodicity)


def test_without_periods_no_box_is_needed():
    assert EwaldOptions.resolve(periodicity=0).box is None
    assert EwaldOptions.resolve(periodicity=(False, False, False)).periodic == (False, False, False)


@pytest.mark.parametrize(
    ("periodicity", "periodic"),
    [(0, (0, 0, 0)), (1, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1)), ([False, True, False], (0, 1, 0))],
)
def test_periodic_axes(periodicity, periodic):
    options = EwaldOptions(box=[1, 2, 3], periodicity=periodicity)
    assert options.periodic == periodic
    resolved = EwaldOptions.resolve(options)
    assert resolved.periodicity == resolved.periodic == periodic
    assert EwaldOptions.resolve(resolved) == resolved


def test_the_cutoff_is_bounded_by_periodic_sides_only():
    assert EwaldOptions(box=[1, 2, 0.3], periodicity=2, rc=0.9).rc == 0.9
    assert EwaldOptions(box=[1, 2, 0.3], periodicity=0, rc=9.0).rc == 9.0
    with pytest.raises(ValueError, match=r"rc is 0.9, longer than the shortest periodic side of the box, 0.3;"):
        EwaldOptions(box=[1, 2, 0.3], periodicity=(True, False, True), rc=0.9)


def test_unknown_keywords():
    with pytest.raises(TypeError, match=r"unknown option 'tolerence'\. Did you mean 'tolerance'"):
        EwaldOptions.resolve(box=[1, 1, 1], tolerence=1e-3)
    with pytest.raises(TypeError, match=r"unknown option 'colour'\. Options are box, periodicity"):
        EwaldOptions.resolve(box=[1, 1, 1], colour="red")


def test_options_of_another_class():
    with pytest.raises(TypeError, match=r"options is a dict; expected EwaldOptions\. Pass single options as keywords"):
        EwaldOptions.resolve({"box": [1, 1, 1]})
