"""Kernels are compiled in two batches: those of the tree and of operators, and those of the steps."""

from pathlib import Path

import numpy as np
import pytest

import parki
from parki import samples
from parki.engine import workunit
from parki.engine.compile import objects
from tests.methods.sums import FMM

OWN = Path(__file__).with_name("skewed.py")


@pytest.fixture
def batches(monkeypatch):
    """Record the names of the units of each batch for the compiler or its cache, with no kernel loaded yet."""
    found, build_many = [], objects.build_many

    def recorded(units):
        units = list(units)
        found.append([unit.label for unit in units])
        return build_many(units)

    monkeypatch.setattr(objects, "build_many", recorded)
    workunit._of.cache_clear()
    return found


@pytest.mark.parametrize(
    ("kernel", "method", "name", "most"),
    [
        *(("laplace", method, *space) for method in FMM for space in (("Serial", 2), ("GpuSim", 3))),
        *((kernel, "kifmm", "Serial", 2) for kernel in ("stokes_dl", OWN)),
        *(pytest.param(kernel, "kifmm", "GpuSim", 3, marks=pytest.mark.slow) for kernel in ("stokes_dl", OWN)),
    ],
)
def test_a_first_call_compiles_in_two_batches(kernel, method, name, most, batches):
    """GpuSim takes one batch more, because kernels on the host are compiled separately."""
    x, y = samples.plummer(300, 1), samples.uniform(250, 2)
    plan = parki.fmm.plan(kernel, x, y, method=method, order=3, leaf_size=8, execution_space=name)
    assert min(len(getattr(plan.structure.lists, f"{name}_t")) for name in "uvwx") > 0
    dens = samples.charges(250 * plan.kernel.dens, 3).reshape(plan.kernel.dens, -1)
    plan(dens if plan.kernel.dens > 1 else dens[0], np.ones((3, 250)) if plan.kernel.normals else None)
    assert len(batches) <= most, [[len(b), b[:3]] for b in batches]
    assert max(map(len, batches)) > 8
