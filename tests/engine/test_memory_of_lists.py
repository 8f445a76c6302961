"""Memory of lists of steps: blocks that go from one list to the next."""

import numpy as np

from parki.engine.run import spaces
from parki.engine.steps import Call, Steps, state
from parki.engine.steps.memory import LARGE, ROOM, _Lent


def test_a_list_takes_the_memory_of_one_that_is_gone():
    """Check that a block is taken again when no array of the old list is left, and not before."""
    out = state("out", (LARGE,), np.uint8, zero=False)
    serial, idle = spaces.get("Serial"), _Lent.idle
    steps = Steps([Call("fill", lambda context, a: a.fill(1), writes=[out])])
    placed = steps.place(serial)
    row, address = placed[out][5:9], placed[out].ctypes.data
    assert placed.memory == LARGE
    idle._blocks = []
    del placed
    second = steps.place(serial)
    assert second[out].ctypes.data != address
    del row
    assert steps.place(serial)[out].ctypes.data == address
    idle.keep(np.empty(ROOM + 1, np.uint8))  # too large to be kept
    assert any(block.ctypes.data <= address < block.ctypes.data + block.nbytes for block in idle._blocks)
    idle.keep(np.empty(ROOM, np.uint8))  # no room for older ones
    assert [block.nbytes for block in idle._blocks] == [ROOM]
    idle._blocks = []
