"""Loads of two neighbours at once: which ones, layouts of steps and launches, and places that are odd."""

import numpy as np
import pytest

from parki import engine
from parki.engine.lower import gpu
from parki.engine.lower.neighbours import neighbour_views
from parki.engine.run.fit import Aligned
from parki.engine.run.gpusim import GpuFault
from parki.engine.run.launch import prepare
from parki.engine.steps import Step, Steps, argument, constant, result
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse

HEAD = """import pykokkos as pk


@pk.workunit
def work(i: int, a: pk.View2D[pk.double], k: pk.View1D[pk.int32], y: pk.View1D[pk.double], n: int):
"""
TWO = {
    "constants": "y[i] = a[i][2] + a[i][3]",
    "statements apart": "y[i] = a[i][0]\n    y[i] += 2.0\n    y[i] += a[i][1]",
    "an even place": "first: int = 4 * n\n    y[i] = a[i][first + 1] + a[i][first]",
    "even steps": "for j in range(0, n, 2):\n        y[i] += a[i][j] * a[i][j + 1]",
    "a condition and its branch": "if a[i][0] > 0.0:\n        y[i] = 1.0\n    y[i] += a[i][1]",
    "rows that are loaded": "y[i] = a[k[i]][0] * a[k[i]][1]",
}
ONE = {
    "from an odd place on": "y[i] = a[i][1] + a[i][2]",
    "an unknown place": "y[i] = a[i][n] + a[i][n + 1]",
    "odd steps": "for j in range(n):\n        y[i] += a[i][j] * a[i][j + 1]",
    "a place that changes": "j: int = 0\n    j = n\n    y[i] = a[i][j] + a[i][j + 1]",
    "rows that change": "j: int = 0\n    y[i] = a[j][0]\n    j = n\n    y[i] += a[j][1]",
    "another row": "y[i] = a[i][0] + a[n][1]",
    "under a condition": "y[i] = a[i][0]\n    if n > 0:\n        y[i] += a[i][1]",
    "after another condition": "if n > 0 and a[i][1] > 0.0:\n        y[i] = a[i][0]",
    "behind a jump": "for j in range(n):\n        y[i] += a[j][0]\n        if j > 4:\n            break\n"
    "        y[i] += a[j][1]",
    "a loop's condition": "x: pk.double = 0.0\n    while a[i][0] + a[i][1] > x:\n        x += 1.0",
    "rows of a view that is written": "y[i] = a[int(y[0])][0]\n    y[i] += a[int(y[0])][1]",
    "whole numbers": "y[i] = pk.double(k[0] + k[1])",
}


def tree(body, loop="    for t in range(n):\n"):
    body = body.replace("\n", "\n    ") if loop else body
    kernel = parse(f"{HEAD}{loop}    {'    ' * bool(loop)}{body}\n", name="work.py")
    check(kernel)
    return kernel


@pytest.mark.parametrize("body", TWO.values(), ids=TWO)
def test_neighbours(body):
    kernel = tree(body)
    assert neighbour_views(kernel) == {"a"}
    layouts = {"a": "A", "k": "C", "y": "C"}
    assert gpu.lower(kernel, layouts).source.count(".get_two(") == 1
    assert ".get_two(" not in gpu.lower(kernel, layouts | {"a": "C"}).source


@pytest.mark.parametrize("body", ONE.values(), ids=ONE)
def test_loads_alone(body):
    assert neighbour_views(tree(body)) == set()


def test_loads_outside_of_loops():
    assert neighbour_views(tree(TWO["constants"], loop="")) == set()


def test_rows_stay_where_they_change():
    """Check that a name that changes between two statements gives two loads."""
    body = "j: int = 0\n    y[i] = a[j][0] + a[j][1]\n    j = n\n    y[i] += a[j][0] + a[j][1]"
    text = gpu.lower(tree(body), {"a": "A", "k": "C", "y": "C"}).source
    assert text.count(".get_two(") == 2


SUMS = """import pykokkos as pk

real = pk.double


@pk.workunit
def sums(row: int, a: pk.View2D[real], b: pk.View2D[real], y: pk.View1D[real]):
    total: real = 0.0
    for j in range(0, 8, 2):
        total += a[row][j] * b[row][j + 1]
        total -= a[row][j + 1] * b[row][j]
    y[row] = total
"""


@pytest.fixture
def sums(tmp_path):
    path = tmp_path / "work.py"
    path.write_text(SUMS)
    return lambda real: engine.kernel(path, "sums", real=real)


def expected(a, b):
    total = np.zeros(len(a), a.dtype)
    for j in range(0, 8, 2):
        total += a[:, j] * b[:, j + 1]
        total -= a[:, j + 1] * b[:, j]
    return total


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("space", ["Serial", "GpuSim"])
def test_steps(sums, rng, space, real):
    """Check layouts of a step: rows of 8 are even, rows of 9 and arrays of a run are not."""
    dtype, unit = {"double": np.float64, "float": np.float32}[real], sums(real)
    assert unit.neighbours == {"a", "b"}
    for columns, layout in ((8, "A"), (9, "C")):
        a, b = rng.random((5, columns)).astype(dtype), rng.random((5, 8)).astype(dtype)
        handle, out = argument("b", b.shape, dtype), result("y", (5,), dtype)
        step = Step("sum", unit, items=5, args={"a": constant("a", a.copy()), "b": handle, "y": out})
        assert step.layouts == {"a": layout, "b": "C", "y": "C"}
        y = np.zeros(5, dtype)
        placed = Steps([step]).place(engine.Space(space))
        placed.run({handle: b, out: y})
        np.testing.assert_allclose(y, expected(a, b), rtol=1e-6 if real == "float" else 1e-14)


def test_arrays_at_odd_places(sums, rng):
    """Check that a launch looks at places of arrays, and that the simulator does, too."""
    unit, block, y = sums("double"), rng.random(41), np.zeros(5)
    block = block[block.ctypes.data % 16 // 8 :]
    a, odd = block[:40].reshape(5, 8)[:3], block[1:25].reshape(3, 8)
    policy = engine.RangePolicy("GpuSim", 3)
    for array, layout in ((a, "A"), (odd, "C")):
        launch = prepare(policy, unit, a=Aligned(array), b=array, y=y)
        assert launch._layouts == {"a": layout, "b": "C", "y": "C"}
        launch.run()
        np.testing.assert_allclose(y[:3], expected(array, array), atol=1e-15)
    launch = prepare(policy, unit, a=Aligned(a), b=a, y=y)
    launch.set(a=odd)
    with pytest.raises(GpuFault, match=r"'a'\[0\] and the next element are read at once at .*, at an odd place"):
        launch.run()
