"""Workunits of kernels/ on tiny inputs: the interpreter agrees with the host, and pair sums with NumPy formulas."""

from pathlib import Path

import numpy as np
import pytest

from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.interpreter import launching
from parki.engine.run.spaces import Space
from tests.catalogue import PAIRS
from tests.engine import kernel_cases as cases

ULP = 64  # of the largest value: host code contracts a * b + c, and reductions use another order


def slow():
    """Return the names of slow cases, none of direct sums.

    Every run has the first case of each workunit in double precision, and of every second one in single precision;
    `tests/portability` and whole sums have the others.
    """
    found, seen = set(), {"double": [], "float": []}
    for name, (case, real) in cases.ALL.items():
        first = case.workunit not in seen[real]
        seen[real] += [case.workunit] * first
        if case.file != "direct" and (not first or (real == "float" and len(seen[real]) % 2 == 0)):
            found.add(name)
    return found


SLOW = slow()


@pytest.fixture(scope="module")
def compiled(request):
    """Return the workunits that the selected tests need, compiled together."""
    here = [item for item in request.session.items if item.path == Path(__file__) and hasattr(item, "callspec")]
    asked = [item.callspec.params.get("name") for item in here]
    units = {n: case.unit(real) for n, (case, real) in cases.ALL.items() if n not in SLOW or n in asked}
    engine.compile_all(list(dict.fromkeys(units.values())))
    return units


def launch(case, unit, space):
    args = case.fresh()
    policy = (TeamPolicy if unit.ir.policy == "team" else RangePolicy)(space, case.league)
    return engine.prepare(policy, unit, **args).run(), args


def assert_close(found, expected, name):
    if expected.dtype.kind == "f":
        size = float(np.max(np.abs(expected), initial=0))
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=ULP * np.finfo(expected.dtype).eps * size, err_msg=name
        )
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in cases.ALL])
def test_interpreter_and_host_agree(name, compiled):
    case, _ = cases.ALL[name]
    unit, expected = compiled[name], case.fresh()
    total = launching.run(unit.ir, league=case.league, args=expected)
    written = [p.name for p in unit.ir.params if p.written]
    assert written
    assert not all(np.array_equal(expected[n], case.args[n]) for n in written)
    for space in (Space("Serial"), Space("OpenMP", 2)):
        found_total, found = launch(case, unit, space)
        assert found_total == total
        for n in written:
            assert_close(found[n], expected[n], f"{n} on {space}")


def test_every_workunit_has_a_case(root):
    assert {(case.file, case.workunit) for case, _ in cases.ALL.values()} == cases.workunits_of(root / "kernels")


def pair_sum(pair, x, src):
    """Return u[:, i] of a pair file's interaction, in double precision."""
    r = x.T[:, None, :] - src[None, :, :3]
    r2 = np.sum(r**2, axis=2)
    w = np.where(r2 > 0, 1 / np.sqrt(np.where(r2 > 0, r2, 1)), 0)
    s = src[:, 3:]
    if pair == "laplace":
        return np.einsum("ij,jk->ki", w, s)
    u = np.zeros((3, x.shape[1]))
    if pair in ("stokeslet", "stokes_comb"):
        f = s[:, :3]
        u += np.einsum("ij,jc->ci", w, f) + np.einsum("ij,ijc,ijd,jd->ci", w**3, r, r, f)
    if pair in ("stresslet", "stokes_comb"):
        q, n = s[:, -6:-3], s[:, -3:]
        u -= 6 * np.einsum("ij,ijc,ijd,jd,ije,je->ci", w**5, r, r, q, r, n)
    return u


@pytest.mark.parametrize("real", cases.DTYPES)
@pytest.mark.parametrize("pair", PAIRS)
def test_direct_sums_are_the_formulas(pair, real, compiled):
    found = [
        (case, launch(case, compiled[name], "Serial")[1]["u"])
        for name, (case, of) in cases.ALL.items()
        if case.slots.get("pair") == f"pair/{pair}" and case.workunit == "direct_sum" and of == real
    ]
    assert len(found) == 1
    case, u = found[0]
    x, src = (case.args[k].astype(np.float64) for k in ("xt", "src"))
    exact = pair_sum(pair, x, src)
    eps = float(np.finfo(u.dtype).eps)
    # a target that is close to a source loses digits of the difference
    assert np.max(np.abs(u - exact)) < 200 * eps * np.max(np.abs(exact))
