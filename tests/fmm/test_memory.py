"""Arrays that begin with a cache line, and tables that are kept as long as there is room."""

from dataclasses import dataclass

import numpy as np
import pytest

from parki.fmm import memory


@dataclass(frozen=True)
class Made:
    first: np.ndarray
    more: tuple[np.ndarray, ...]
    count: int = 3


@pytest.mark.parametrize("shape", [(3, 5, 8), (7,)])
def test_arrays_begin_with_a_cache_line(shape):
    for dtype in (np.float64, np.float32):
        made = memory.aligned(np, shape, dtype)
        assert (made.shape, made.dtype) == (shape, dtype)
        assert made.ctypes.data % 64 == 0
        assert not made.any()


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
    make("c", 30)  # the one used longest ago goes
    make("a", 30)
    assert calls == ["a", "b", "c"]
    make("b", 30)
    assert calls == ["a", "b", "c", "b"]
    assert make("large", 1000) is not make("large", 1000)  # never kept
    make("b", 30)
    assert calls == ["a", "b", "c", "b", "large", "large"]
