"""Costs of pairs on the machine in use, by the models of `parki.perfmodels`."""

from functools import lru_cache

from parki import engine
from parki.perfmodels.counts import clusters
from parki.perfmodels.machine import Machine
from parki.proxies import ProxyKernels

POINTS = 6  # points per direction of the grid whose cost is used for all grids


@lru_cache(maxsize=64)
def grid(kernels: ProxyKernels) -> float:
    """Return the time of a pair with a proxy grid as sources, relative to a pair of particles, on the host.

    Devices have much the same ratio, and a sum does not depend on where it is computed.
    """
    machine = Machine.load("host")
    particles = clusters.time_of(engine.operations(kernels.ranges()), machine, kernels.real.name)
    proxies = clusters.time_of(engine.operations(kernels.grids(POINTS)), machine, kernels.far.name, POINTS)
    return proxies / particles
