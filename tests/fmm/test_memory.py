"""Tables that are kept while there is room, and sums that are refused for lack of memory."""

from dataclasses import dataclass

import numpy as np
import pytest

import parki
from parki import samples
from parki.fmm import box_operators, chebyshev_m2l, memory


@dataclass(frozen=True)
class Made:
    first: np.ndarray
    more: tuple[np.ndarray, ...]
    count: int = 3


def test_results_are_kept_while_there_is_room():
    calls = []

    @memory.kept(1000)
    def make(name, numbers):
        calls.append(name)
        return Made(np.zeros(numbers), (np.zeros(10), np.zeros(10)))

    assert make("a", 30) is make("a", 30)  # 400 bytes
    make("b", 30)
    make("a", 30)
    assert calls == ["a", "b"]
    make("c", 30)  # the least recently used result is dropped
    make("a", 30)
    assert calls == ["a", "b", "c"]
    make("b", 30)
    assert calls == ["a", "b", "c", "b"]
    assert [memory.held(make, name, 30) is not None for name in "abc"] == [True, True, False]
    assert memory.held(make, "b", 30) is make("b", 30)
    assert make("large", 1000) is not make("large", 1000)  # never kept
    make("b", 30)
    assert calls == ["a", "b", "c", "b", "large", "large"]


@pytest.mark.parametrize(("method", "module", "name"), [
    ("kifmm", box_operators, "operators"), ("chebyshev", chebyshev_m2l, "tables")])  # fmt: skip
def test_values_that_do_not_fit_are_refused_before_operators_are_made(method, module, name, monkeypatch):
    x = samples.uniform(3000, 1)
    options = {"method": method, "order": 5, "leaf_size": 20}
    held = parki.fmm.plan("coulomb", x, x, **options).memory
    monkeypatch.setattr(parki.memory, "SMALL", 0)
    monkeypatch.setattr(parki.memory, "free", lambda: held // 100)
    monkeypatch.setattr(module, name, None)  # a call would fail
    with pytest.raises(MemoryError, match=r"octree of \d+ boxes needs about .* are free\. A larger leaf_size"):
        parki.fmm.plan("coulomb", x, x, **options)
