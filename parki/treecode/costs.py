"""What pairs cost on the machine in use, by the models of `parki.perfmodels`."""

from functools import lru_cache

from parki import engine
from parki.engine.spaces import Space
from parki.perfmodels import clusters
from parki.perfmodels.machine import Machine
from parki.treecode.stages import Units

POINTS = 6  # per direction of the grids that stand for all
DEVICE = "h200"  # the machine that stands for all devices: ratios of costs hardly depend on it


@lru_cache(maxsize=64)
def grid(units: Units, space: Space) -> float:
    """Time of a pair with a proxy grid as sources, over that of a pair of particles."""
    machine = Machine.load("host" if space.kind != "device" else DEVICE)
    particles = clusters.time_of(engine.operations(units.ranges()), machine, units.real.name)
    proxies = clusters.time_of(engine.operations(units.grids(POINTS)), machine, units.far.name, POINTS)
    return proxies / particles
