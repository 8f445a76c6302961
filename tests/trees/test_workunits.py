"""Lists of the workunits that trees launch, which are compiled ahead."""

import numpy as np
import pytest

from parki import engine
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.trees import cluster, octree


@pytest.mark.parametrize("name", ["Serial", "GpuSim"])
@pytest.mark.parametrize(
    ("tree", "build"),
    [
        (cluster, lambda x, space: cluster.build(x, 10, space)),
        (octree, lambda x, space: octree.build(x, None, 10, space)),
    ],
    ids=["cluster", "octree"],
)
def test_workunits_are_those_launched(tree, build, name, rng, monkeypatch):
    if spaces.available()[name] is not None:
        pytest.skip(spaces.available()[name])
    launched, parallel_for = set(), engine.parallel_for

    def note(policy, workunit, **args):
        launched.add(workunit.l0)
        parallel_for(policy, workunit, **args)

    monkeypatch.setattr(engine, "parallel_for", note)
    build(rng.standard_normal((3, 300)), Space(name))
    assert {unit.l0 for unit in tree.workunits(np.dtype(float), Space(name)).values()} == launched
