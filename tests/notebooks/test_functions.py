"""Kernels that are Python functions: bitwise the same sums as by files, and precise errors."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
import types

import numpy as np
import pytest

import parki
from parki import engine, pairs
from parki.distributed.simulated import World
from parki.engine.errors import KernelError
from parki.pairs import Pair
from tests.notebooks import cell_kernels

SIZED = {"names": ("size",), "parameters": (0.1,), "singular": False}
X, Y = np.random.default_rng(1).random((2, 3, 700))
Q = np.random.default_rng(2).normal(size=700)
FUNCTION = Pair("blob", 1, 1, cell_kernels.blob, **SIZED)
SUMS = {
    "direct": lambda pair: parki.direct.direct_sum(pair, X, Y, Q),
    "treecode": lambda pair: parki.treecode.bldtt(X, Y, Q, pair, tolerance=1e-5),
    "chebyshev": lambda pair: parki.fmm.chebyshev(X, Y, Q, pair, tolerance=1e-5),
    "kifmm": lambda pair: parki.fmm.kifmm(X, Y, Q, pair, order=4),
}


@pytest.fixture
def file(tmp_path):
    """Return the pair of the file that corresponds to the function."""
    path = tmp_path / "blob.py"
    path.write_text(cell_kernels.BLOB, "utf-8")
    return Pair("blob", 1, 1, path, **SIZED)


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_those_of_a_file(name, file):
    """Check a function with a helper, a number, an import, and no types."""
    assert file != FUNCTION
    found = SUMS[name](FUNCTION)
    assert np.linalg.norm(found) > 1
    np.testing.assert_array_equal(found, SUMS[name](file))


def test_single_precision(file):
    x, q = X.astype(np.float32), Q.astype(np.float32)
    exact = parki.direct.direct_sum("regularised_coulomb", X, X, Q, epsilon=0.1) / 2
    for pair in (FUNCTION, file):
        found = parki.direct.direct_sum(pair, x, x, q)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


@pytest.mark.parametrize("periodicity", [0, 2, 3])
def test_near_field_of_an_ewald_sum(periodicity, all_digits):
    kernel = dataclasses.replace(parki.ewald.kernels.LAPLACE, name="own", pair=cell_kernels.laplace)
    options = {"box": (1, 1, 1), "periodicity": periodicity, "tolerance": 1e-6}
    q = Q - Q.mean()
    u = parki.ewald.plan("laplace", X, X, **options)(q)
    np.testing.assert_array_equal(parki.ewald.plan(kernel, X, X, **options)(q), u)


def test_an_ewald_kernel_whose_function_subtracts_no_far_part_is_refused():
    own = {"name": "own", "pair": cell_kernels.blob, "names": ("size",), "parameters": (0.1,)}
    kernel = dataclasses.replace(parki.ewald.kernels.LAPLACE, **own)
    with pytest.raises(KernelError, match=r"K021: unknown slot 'SCREENED'"):
        parki.ewald.plan(kernel, X, X, box=(1, 1, 1), tolerance=1e-4)


def test_functions_in_slots():
    mine = Pair("mine", 1, 1, "pair/radial", names=("width",), slots=(("radial", cell_kernels.root),), singular=False)
    mine = pairs.find(mine, width=0.3)
    known = pairs.find("multiquadric", width=0.3)
    for one, other in ((mine, known), (mine.with_gradient(), known.with_gradient())):
        found, right = (parki.direct.direct_sum(pair, X, Y, Q) for pair in (one, other))
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12 * np.abs(right).max())


def test_a_slot_of_a_workunit():
    unit, other = (
        engine.kernel("direct", "direct_sum", pair="pair/radial", radial=radial)
        for radial in (cell_kernels.root, "radial/multiquadric")
    )
    assert unit.l0.hash != other.l0.hash
    assert dict(unit.l0.slots)["radial"].startswith("root@")
    with pytest.raises(ValueError, match=r"slot 'radial' is a lambda of .*; expected a function made by def"):
        engine.kernel("direct", "direct_sum", pair="pair/radial", radial=lambda r2, w, p, out: None)


def test_numbers_of_components_stand_beside_the_function():
    pair = pairs.find(cell_kernels.laplace)
    assert (str(pair), pair.dens, pair.result) == ("laplace", 1, 1)
    np.testing.assert_array_equal(parki.direct.direct_sum(cell_kernels.laplace, X, Y, Q), SUMS["direct"](pair))
    alone = types.FunctionType(cell_kernels.laplace.__code__, {})
    with pytest.raises(ValueError, match=r"NS is nothing beside the function 'laplace'; expected .*Pair\('laplace',"):
        parki.direct.direct_sum(alone, X, Y, Q)


def test_copies():
    assert pickle.loads(pickle.dumps(FUNCTION)) == FUNCTION == copy.copy(FUNCTION)
    assert {FUNCTION: 1}[Pair("blob", 1, 1, cell_kernels.blob, **SIZED)] == 1
    plan = parki.treecode.plan(FUNCTION, X, Y, tolerance=1e-5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(plan))(Q), plan(Q))


def test_numbers_are_those_of_the_time_of_reading(monkeypatch):
    monkeypatch.setattr(cell_kernels, "SCALE", 1.0)
    twice = Pair("blob", 1, 1, cell_kernels.blob, **SIZED)
    assert twice != FUNCTION
    np.testing.assert_allclose(SUMS["direct"](twice), 2 * SUMS["direct"](FUNCTION), rtol=1e-12)


CHILD = """
import sys
import numpy as np, parki
sys.path.insert(0, "{folder}")
import mine
x = np.random.default_rng(1).random((3, 50))
parki.direct.direct_sum(parki.pairs.Pair("mine", 1, 1, mine.mine), x, x, np.ones(50), execution_space="Serial")
"""
MINE = "def mine(dx, dy, dz, r2, w, far, s, u):\n    u[0] += s[0] * w * {factor}\n"


def test_the_same_function_elsewhere_compiles_nothing(tmp_path):
    """Run another process, with the function in a file of another name and at another line."""
    cache = tmp_path / "cache"

    def objects(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
        environment = os.environ | {"PARKI_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", CHILD.format(folder=tmp_path / name)]
        subprocess.run(command, env=environment, check=True, timeout=300)
        return len(list(cache.rglob("kernel.so")))

    text = MINE.format(factor=3.0)
    first = objects("one", text)
    assert first > 0
    assert objects("two", f"# moved\n\nif True:\n    {text.replace(chr(10), chr(10) + '    ')}") == first
    assert objects("three", MINE.format(factor=4.0)) == first + 1


def test_ranks_must_have_the_same_function():
    def work(comm):
        def one(dx, dy, dz, r2, w, far, s, u):
            u[0] += s[0] * w

        def other(dx, dy, dz, r2, w, far, s, u):
            u[0] += s[0] * w * w

        parts = np.array_split(np.arange(X.shape[1]), comm.size)[comm.rank]
        x, q = X[:, parts], Q[parts]
        own = Pair("mine", 1, 1, one)
        for make in (parki.direct.plan, parki.treecode.plan, parki.fmm.plan):
            found = comm.allgather(make(own, x, x, comm=comm)(q))
            assert np.linalg.norm(np.concatenate(found) - exact) < 1e-3 * np.linalg.norm(exact)
            with pytest.raises(ValueError, match=r"function is 'other@.* on rank 1; expected 'one@.*', as on rank 0"):
                make(Pair("mine", 1, 1, other) if comm.rank == 1 else own, x, x, comm=comm)
        with pytest.raises(ValueError, match=r"function is .* on rank 1"):
            parki.direct.direct_sum(Pair("mine", 1, 1, other) if comm.rank == 1 else own, x, x, q, comm=comm)

    exact = parki.direct.direct_sum("laplace", X, X, Q)
    World(2).run(work)


# Errors


def test_errors_of_the_language_name_the_line():
    with pytest.raises(KernelError) as found:
        parki.direct.direct_sum(cell_kernels.unknown, X, Y, Q)
    first = cell_kernels.unknown.__code__.co_firstlineno
    assert found.value.loc.file == os.path.relpath(cell_kernels.__file__)
    assert (found.value.loc.line, found.value.loc.col) == (first + 3, 13)


def test_lines_of_functions_in_functions():
    def inner(dx, dy, dz, r2, w, far, s, u):
        u[0] += nowhere  # noqa: F821

    with pytest.raises(KernelError) as found:
        parki.direct.direct_sum(Pair("inner", 1, 1, inner), X, Y, Q)
    assert (found.value.loc.line, found.value.loc.col) == (inner.__code__.co_firstlineno + 1, 17)


def _closure():
    length = 3.0

    def mine(dx, dy, dz, r2, w, far, s, u):
        u[0] += length

    return mine


def _run(text, **names):
    exec(compile(text, "<stdin>", "exec"), names)
    return names["mine"]


def _wrong_arguments(dx, dy, s, u):
    u[0] += s[0]


def _decorated(dx, dy, dz, r2, w, far, s, u):
    u[0] += s[0]


def _reads(dx, dy, dz, r2, w, far, s, u):
    u[0] += s[0] * TABLE[0]


TABLE = [1.0]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: lambda dx, dy, dz, r2, w, far, s, u: None, ValueError, r"pair is a lambda of .*; expected a function"),
        (_closure, ValueError, r"pair is the function 'mine' of .*, which reads 'length' of the function around it"),
        (
            lambda: _run(MINE.format(factor=1)),
            ValueError,
            r"'mine' of <stdin>:1, of which there is no source; expected",
        ),
        (lambda: _reads, ValueError, r"pair: '_reads' reads 'TABLE', a list; expected a finite number, a tuple"),
        (lambda: _wrong_arguments, KernelError, r"K021: slot 'pair': found \(\?, \?, \?, \?\) -> \?, expected \(real"),
        (lambda: len, TypeError, r"pair is a builtin_function_or_method; expected a name, a path or a Python function"),
        (lambda: 3, TypeError, r"pair is a int; expected a name, a path or a Python function"),
    ],
)
def test_functions_that_stand_for_no_file(make, error, message):
    with pytest.raises(error, match=message):
        parki.direct.direct_sum(Pair("mine", 1, 1, make()), X, Y, Q)


def test_a_name_for_another_function():
    renamed = types.FunctionType(_reads.__code__, {"TABLE": cell_kernels.squared})
    with pytest.raises(ValueError, match=r"'squared', which is made|'TABLE' of .* is made as 'squared'"):
        Pair("mine", 1, 1, renamed)


@pytest.mark.parametrize("value", [np.inf, (1.0, "a"), (), None])
def test_numbers_that_are_none(value):
    reading = types.FunctionType(_reads.__code__, {"TABLE": value}, "_reads")
    with pytest.raises(ValueError, match=r"reads 'TABLE', a \w+; expected a finite number"):
        Pair("mine", 1, 1, reading)


def test_tables_of_numbers():
    reading = types.FunctionType(_reads.__code__, {"TABLE": (2.5, np.int64(1))}, "_reads")
    pair = Pair("mine", 1, 1, reading)
    assert ("TABLE", (2.5, 1)) in pair.pair.constants
    np.testing.assert_allclose(parki.direct.direct_sum(pair, X, Y, np.ones(700)), 2.5 * 700)


def test_a_file_that_has_changed(tmp_path, monkeypatch):
    path = tmp_path / "mine.py"
    path.write_text(MINE.format(factor=1.0))
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    Pair("mine", 1, 1, names["mine"])
    path.write_text("# another file\n\n" + MINE.format(factor=2.0))
    with pytest.raises(ValueError, match=r"but other text stands there now; expected the text that it was made from"):
        Pair("mine", 1, 1, names["mine"])
