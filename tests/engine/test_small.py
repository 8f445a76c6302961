"""Views passed by value: which views, their place in the arguments, and launches that hold them."""

import ctypes

import numpy as np
import pytest

from parki import engine
from parki.engine import Fixed
from parki.engine.errors import LaunchError
from parki.engine.lower import gpu
from parki.engine.lower.common import field
from parki.engine.steps import Step, Steps, argument, constant, result
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from parki.engine.tree.small import BYTES, small_views

HEAD = """import pykokkos as pk


@pk.workunit
def work(i: int, a: pk.View1D[pk.double], k: pk.View1D[pk.int32], y: pk.View1D[pk.double]):
"""
READS = {
    "constants": ("y[i] = a[0] + a[4]", {"a": 5}),
    "a loop": ("for n in range(2, 9, 3):\n        y[i] += a[3 * n + 1]", {"a": 26}),
    "a loop within": ("for n in range(3):\n        for m in range(2):\n            y[i] += a[4 * m - n + 2]", {"a": 7}),
    "two views": ("y[i] = a[1] * pk.double(k[2])", {"a": 2, "k": 3}),
    "a loop backward": ("for n in range(5, 0, -1):\n        y[i] += a[n]", {"a": 6}),
    "an index": ("y[i] = a[i]", {}),
    "a loaded index": ("y[i] = a[k[1]]", {"k": 2}),
    "a loop of unknown length": ("for n in range(i):\n        y[i] += a[n]", {}),
    "below 0": ("for n in range(3):\n        y[i] += a[n - 1]", {}),
    "one place of two": ("y[i] = a[1] + a[i]", {}),
    "an extent": ("y[i] = a[0] * pk.double(a.extent(0))", {}),
    "a written view": ("y[i] = a[0] + y[2 * i]", {"a": 1}),
    "too large": (f"y[i] = a[{BYTES // 8}] + pk.double(k[0])", {"k": 1}),
    "a name of two loops": (
        "for n in range(3):\n        y[i] += a[n]\n    for n in range(i):\n        y[i] += a[n]",
        {},
    ),
}


def tree(body):
    kernel = parse(f"{HEAD}    {body}\n", name="work.py")
    check(kernel)
    return kernel


@pytest.mark.parametrize(("body", "expected"), READS.values(), ids=READS)
def test_small_views(body, expected):
    assert small_views(tree(body)) == expected


def test_text():
    kernel = tree("y[i] = a[0] + a[4] * pk.double(k[1])")
    text = gpu.lower(kernel, {"a": "V", "k": "V", "y": "C"}, small_views(kernel))
    assert ("double[5]", "a") in text.fields
    assert ("int32[2]", "k") in text.fields
    assert "double a[5];" in text.source
    assert '#define PK_ARGUMENTS "parki_work_param_0"' in text.source
    members = [(name, field(kind)) for kind, name in text.fields]
    struct = type("Arguments", (ctypes.Structure,), {"_fields_": members})
    for name, count, kind in (("a", 5, "double"), ("k", 2, "int32_t")):
        assert f"pk_fixed<{kind}> {name}(pk_a.{name}, {count}, {getattr(struct, name).offset});" in text.source
    assert "__builtin" not in text.source  # older NVRTC has none
    plain = gpu.lower(kernel, {"a": "C", "k": "C", "y": "C"}, {})
    assert "PK_ARGUMENTS" not in plain.source
    assert ("ptr", "a") in plain.fields


@pytest.fixture
def unit(tmp_path):
    path = tmp_path / "work.py"
    path.write_text(HEAD + "    y[i] = a[0] + a[4] * pk.double(k[1])\n")
    return engine.kernel(path, "work")


def arguments():
    return {"a": np.arange(7.0), "k": np.array([3, 5], np.int32), "y": np.zeros(40)}


@pytest.mark.parametrize("space", ["Serial", "GpuSim"])
def test_launch_with_fixed_arrays(unit, space):
    args = arguments()
    fixed = args | {"a": Fixed(args["a"]), "k": Fixed(args["k"], args["k"].copy())}
    launch = engine.prepare(engine.RangePolicy(space, 40), unit, **fixed)
    launch.run()
    np.testing.assert_array_equal(args["y"], 20.0)
    if space == "GpuSim":
        args["a"][4] = -1.0  # the launch has a copy
        launch.run()
        np.testing.assert_array_equal(args["y"], 20.0)
        with pytest.raises(LaunchError, match="work: 'a' was fixed when the launch was prepared"):
            launch.set(a=np.arange(7.0))
    other = np.ones(40)
    launch.set(y=other)
    launch.run()
    np.testing.assert_array_equal(other, 20.0)


def test_arrays_that_are_too_short_are_no_copies(unit):
    """Check that a read beyond the end is found as ever."""
    args = arguments()
    launch = engine.prepare(engine.RangePolicy("GpuSim", 40), unit, **args | {"a": Fixed(args["a"][:3])})
    with pytest.raises(engine.CheckedFault, match="a"):
        launch.run()


@pytest.mark.parametrize("space", ["Serial", "GpuSim"])
def test_constants_of_steps(unit, space):
    args = arguments()
    y = result("y", (40,), np.float64)
    k = argument("k", (2,), np.int32)
    step = Step("work", unit, 40, {"a": constant("a", args["a"]), "k": k, "y": y})
    assert step.layouts == {"a": "V", "k": "C", "y": "C"}
    steps, there = Steps([step]), engine.spaces.get(space)
    assert steps.units(there)[0][1] == {"a": "C" if space == "Serial" else "V", "k": "C", "y": "C"}
    placed = steps.place(there)
    placed.run({y: args["y"], k: args["k"]})
    np.testing.assert_array_equal(args["y"], 20.0)
