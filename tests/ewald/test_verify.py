from dataclasses import replace

import numpy as np
import pytest

from parki import engine
from parki.engine.run import spaces
from parki.ewald import EwaldOptions
from parki.ewald.choice import choose, variants
from parki.ewald.choice.question import Question
from parki.ewald.stages import verify


@pytest.fixture
def chosen():
    return choose.parameters(Question("stokes_comb", (1.0, 1.0, 2.0), 500, 500, 1e-4))


@pytest.fixture
def unmarked(chosen, monkeypatch):
    """Remove the marks of checked objects, of this process and before; return their paths."""
    monkeypatch.setattr(verify, "_sound", set())
    units = verify.workunits(chosen, spaces.get(), variants.choose(spaces.get(), chosen.dtype))
    marks = [engine.object_path(w).parent / verify.MARK for w in units]
    for mark in marks:
        mark.unlink(missing_ok=True)
    return marks


def relative(a, b):
    return np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2))


@pytest.mark.parametrize("kernel", ["laplace", "stokes_sl", "stokes_comb"])
def test_compiled_stages_agree_with_plain_numpy(kernel, all_digits):
    p = verify.scaled(choose.parameters(Question(kernel, (1.0, 1.0, 1.0), 300, 300, 1e-4)))
    near, far = verify.compiled(p, spaces.get())
    assert relative(near, verify.reference_near(p)) < 1e-13
    assert relative(far, verify.reference_far(p)) < 1e-4


OVER_A_PARAMETER = '''"""Laplace, with charges over a parameter."""

from typing import List

import pykokkos as pk

real = pk.double
NS = 2  # numbers per source: q, divisor
NU = 1
NF = 1
SCREENED = False


@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    """Add the potential of a charge to u."""
    u[0] += s[0] / s[1] * (w - far[0])
'''


def test_sources_out_of_reach_keep_their_parameters(tmp_path, all_digits):
    """A source beyond the cutoff has no charge, but a divisor that is not zero."""
    path = tmp_path / "over.py"
    path.write_text(OVER_A_PARAMETER, "utf-8")
    p = verify.scaled(choose.parameters(Question("laplace", (1.0, 1.0, 1.0), 300, 300, 1e-4)))
    p = replace(p, kernel=replace(p.kernel, pair=str(path), names=("divisor",), parameters=(2.0,)))
    near, _ = verify.compiled(p, spaces.get())
    assert relative(near, verify.reference_near(p)) < 1e-13


def test_sound_objects_are_marked_and_not_checked_again(chosen, unmarked, monkeypatch):
    verify.verify(chosen, spaces.get())
    assert all(mark.exists() for mark in unmarked)
    monkeypatch.setattr(verify, "compiled", lambda *_: pytest.fail("checked a second time"))
    verify.verify(chosen, spaces.get())
    verify._sound.clear()
    verify.verify(chosen, spaces.get())  # passes by the marks alone


@pytest.mark.parametrize(("part", "name"), [("near field", "reference_near"), ("far field", "reference_far")])
def test_a_wrong_kernel_is_named(chosen, unmarked, monkeypatch, part, name):
    right = getattr(verify, name)
    monkeypatch.setattr(verify, name, lambda *given: 1.1 * right(*given))
    with pytest.raises(verify.VerificationError, match=f"{part} of stokes_comb"):
        verify.verify(chosen, spaces.get())
    assert not all(mark.exists() for mark in unmarked)  # other sums may have marked what they share with this


@pytest.mark.parametrize("variant", [{"p2p_method": "SM-2D"}, {"p2g_method": "BASE"}, {"g2p_method": "BASE"}], ids=str)
def test_other_spaces_and_variants_are_checked_once(variant, monkeypatch):
    p, space = choose.parameters(Question("laplace", (1.0, 1.0, 1.0), 500, 500, 1e-3)), spaces.get("GpuSim")
    v = variants.choose(space, p.dtype, EwaldOptions(box=[1, 1, 1], **variant))
    monkeypatch.setattr(verify, "_sound", set())
    with monkeypatch.context() as wrong:
        right = verify.reference_far
        wrong.setattr(verify, "reference_far", lambda *given: 1.1 * right(*given))
        with pytest.raises(verify.VerificationError, match=r"far field of laplace .* on GpuSim"):
            verify.verify(p, space, v)
    verify.verify(p, space, v)
    monkeypatch.setattr(verify, "compiled", lambda *_: pytest.fail("checked a second time"))
    verify.verify(p, space, v)
