"""Workunits compiled ahead, for a space and for the host beside it."""

import numpy as np
import pytest

from parki import engine
from parki.engine import RangePolicy
from parki.engine.compile import objects
from parki.engine.run import spaces


@pytest.mark.parametrize(("name", "batches"), [("Serial", 1), ("OpenMP", 1), ("GpuSim", 2)])
def test_units_of_the_host_beside_those_of_a_space(name, batches, monkeypatch):
    """Check that the host's units share the batch where the space is the host; later launches compile nothing."""
    there, here = (engine.kernel("glue", "fill", real=real) for real in ("double", "float"))
    counts, build_many = [], objects.build_many

    def counted(units):
        units = list(units)
        counts.extend([len(units)] * bool(units))
        return build_many(units)

    for unit in (there, here):
        monkeypatch.setattr(unit, "objects", {})
    monkeypatch.setattr(objects, "build_many", counted)
    engine.compile_for([(there, there.default_layouts(), None)], spaces.get(name), on_host=[here])
    assert counts == [2] if batches == 1 else [1, 1]
    a, b = np.zeros(3), np.zeros(3, np.float32)
    engine.parallel_for(RangePolicy(spaces.get(name), 3), there, out=a, value=1.0)
    engine.parallel_for(RangePolicy("Serial", 3), here, out=b, value=2.0)
    assert (a.tolist(), b.tolist()) == ([1.0] * 3, [2.0] * 3)
    assert len(counts) == batches
