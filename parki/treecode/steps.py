"""A treecode sum as a list of steps: charges up, sums over lists, potentials down."""

from typing import NamedTuple

import numpy as np

from parki.arrays import module_of
from parki.engine.steps import Handle, Step, Steps, argument, constant, glue, result
from parki.proxies import THREADS
from parki.treecode import upward
from parki.treecode.downward import Potentials
from parki.treecode.interactions import InteractionLists
from parki.treecode.structure import TreecodeStructure, indices


class TreecodeSteps(NamedTuple):
    """Steps of a sum, and the arrays that a run binds.

    Attributes
    ----------
    steps : Steps
    charges : Handle
        (NC, Ns) of the linear pair, in the caller's order.
    u : Handle
        The sum (NU, Nt) in the caller's order.
    """

    steps: Steps
    charges: Handle
    u: Handle


def steps(s: TreecodeStructure) -> TreecodeSteps:
    """Return the steps of a sum over all lists."""
    kernels = s.kernels
    charges = argument("charges", (kernels.charges, s.source.n), kernels.real)
    u = result("u", (kernels.linear.result, s.target.n), kernels.real)
    src, gathered = upward.rows(s, charges)
    charge, up = upward.proxy_charges(s, src)
    potentials = Potentials(s)
    every = [
        *gathered,
        *up,
        *potentials.zeros,
        *_particles(s, src, potentials),
        *_proxies(s, charge, potentials),
        *potentials.added,
        *potentials.steps(),
        glue.scatter("downward", potentials.u, s.target.order, u),
    ]
    return TreecodeSteps(Steps(every), charges, u)


def _particles(s: TreecodeStructure, src: Handle, potentials: Potentials) -> list[Step]:
    """Return the sums over source particles, at particles and at proxy points."""
    fixed = {"xt": s.target.points, "box": s.target.box, "place": s.places[s.kernels.real], "src": src, "tiny": s.tiny}
    lists = []
    for phase, of, u in (("pp", s.lists.pp, potentials.u), ("cp", s.lists.cp, potentials.near)):
        if len(of.items):
            args = {"item": _items(phase, of, potentials), "span": indices(f"ranges of {phase}", of.sources), "u": u}
            lists.append(Step(phase, s.kernels.ranges(), len(of.items), fixed | args, THREADS))
    return lists


def _proxies(s: TreecodeStructure, charge: dict[int, Handle], potentials: Potentials) -> list[Step]:
    """Return the sums over proxy points of sources, at particles and at proxy points, in the far precision."""
    kernels = s.kernels
    fixed = {
        "xt": _from_centres(s) if s.lists.pc else constant("no targets", np.empty((3, 0), kernels.far)),
        "box": s.target.box,
        "place": s.places[kernels.far],
        "constant": constant("constants", np.array([*kernels.linear.parameters, 0.0], kernels.far)),
    }
    lists = []
    for phase, by_points, u in (("pc", s.lists.pc, potentials.far_u), ("cc", s.lists.cc, potentials.far)):
        for m, of in by_points.items():
            args = {"item": _items(phase, of, potentials), "charge": charge[m], "u": u, **_clusters(s, m, of)}
            lists.append(Step(phase, kernels.grids(m), len(of.items), fixed | args, THREADS))
    return lists


def _items(phase: str, of: InteractionLists, potentials: Potentials) -> Handle:
    return indices(f"items of {phase}", potentials.items(of) if phase in ("cp", "cc") else of.items)


def _clusters(s: TreecodeStructure, m: int, of: InteractionLists) -> dict[str, Handle]:
    """Return source nodes of m points by the rows of their charges, and the boxes of these rows."""
    if m == s.kernels.points:
        return {"source": s.source.box, "other": indices("source nodes", of.sources)}
    nodes = s.up[m]
    return {"source": s.source.boxes(nodes), "other": indices("source rows", np.searchsorted(nodes, of.sources))}


def _from_centres(s: TreecodeStructure) -> Handle:
    """Return targets from the centres of their leaves."""
    nodes, points = s.targets.nodes, s.targets.sorted.points
    xp = module_of(points)
    count, local = nodes.count[nodes.leaves], xp.empty(points.shape, s.kernels.far)
    for d, centre in enumerate(nodes.centre[nodes.leaves].T):  # one at a time: less memory
        local[d] = points[d] - xp.asarray(np.repeat(centre, count))
    return constant("targets from centres", local)
