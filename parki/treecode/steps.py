"""A treecode sum as a list of steps: charges up, sums over lists, potentials down."""

from typing import NamedTuple

import numpy as np

from parki.arrays import Array
from parki.engine.steps import Call, Context, Handle, Step, Steps, argument, constant, glue, result, state, values
from parki.proxies import THREADS
from parki.tasks.sizes import TaskSizes
from parki.treecode import upward
from parki.treecode.downward import Potentials
from parki.treecode.interactions import InteractionLists, Interactions
from parki.treecode.structure import TreecodeStructure, indices
from parki.treecode.tasks import TreecodeCuts


class TreecodeSteps(NamedTuple):
    """Steps of a sum, and the arrays that a run binds.

    Attributes
    ----------
    steps : Steps
    charges : Handle
        Charges (NC, Ns) of the linear pair, in the caller's order.
    u : Handle
        The sum (NU, Nt) in the caller's order.
    """

    steps: Steps
    charges: Handle
    u: Handle


def steps(s: TreecodeStructure, sizes: TaskSizes | None = None) -> TreecodeSteps:
    """Return the steps of a sum over all lists; with `sizes` they are cut into tasks."""
    kernels, parts = s.kernels, values.whole if sizes is None else values.apart
    charges = argument("charges", (kernels.charges, s.source.n), kernels.real)
    u = result("u", (kernels.linear.result, s.target.n), kernels.real)
    src, gathered = upward.rows(s, charges)
    charge, up = upward.proxy_charges(s, src, parts)
    potentials = Potentials(s, parts)
    own = [*_particles(s, s.lists, src, potentials), *_proxies(s, s.lists, charge, potentials)]
    first = []
    if s.elsewhere is not None:
        first, brought = _brought(s, charges, charge, src, own)
        there = s.elsewhere.lists
        own = [*brought, *_particles(s, there, src, potentials), *_proxies(s, there, charge, potentials)]
    every = [
        *gathered,
        *up,
        *potentials.zeros,
        *own,
        *potentials.added,
        *potentials.steps(),
        glue.scatter("downward", potentials.u, s.target.order, u),
    ]
    if sizes is not None:
        every = TreecodeCuts.of(s, potentials, sizes).steps(every)
    return TreecodeSteps(Steps(every, first), charges, u)


def _brought(
    s: TreecodeStructure, charges: Handle, charge: dict[int, Handle], src: Handle, own: list[Step]
) -> tuple[list[Call], list[Step | Call]]:  # fmt: skip
    """Return the call that places particles from elsewhere, and steps that bring charges during other work.

    Parameters
    ----------
    s : TreecodeStructure
    charges : Handle
        Charges of the particles that are here.
    charge : dict of Handle
        Charges of proxy points, by their number per direction.
    src : Handle
        Rows of particles.
    own : list of Step
        Steps that sum over sources that are here.
    """
    away, n = s.elsewhere, s.kernels.charges
    given = state("charges", (s.particles, n), s.kernels.real, zero=False)
    parts = slice(away.here.start), slice(away.here.stop, s.particles)
    points = constant("points from elsewhere", away.points)
    numbers = [*s.kernels.linear.parameters]

    def place(context: Context, points: Array, src: Array) -> None:
        for at, rows in zip(parts, (slice(away.here.start), slice(away.here.start, None)), strict=True):
            src[at, :3] = points[:, rows].T
            src[at, 3 + n :] = context.xp.asarray(numbers, src.dtype)

    def fill(context: Context, given: Array, src: Array) -> None:
        for at in parts:
            src[at, 3 : 3 + n] = given[at]

    near = next((step for step in own if step.phase == "pp"), None)
    shelves = [given, *(charge[m] for m in away.served)]
    brought = [
        glue.gather_columns("upward", charges, s.source.order, given[away.here], 0),
        *away.messages.steps(shelves, near),
        *(step for step in own if step is not near),
        Call("upward", fill, [given], [src]),
        *upward.crowds(s, src, slice(away.lumps, None)),
    ]
    return [Call("upward", place, [points], [src])], brought


def _particles(s: TreecodeStructure, lists: Interactions, src: Handle, potentials: Potentials) -> list[Step]:
    """Return the steps that sum over source particles, at particles and at proxy points."""
    fixed = {"xt": s.target.points, "box": s.target.box, "place": s.places[s.kernels.real], "src": src, "tiny": s.tiny}
    steps = []
    for phase, of, u in (("pp", lists.pp, potentials.u), ("cp", lists.cp, potentials.near)):
        if len(of.items):
            args = {"item": _items(phase, of, potentials), "span": indices(f"ranges of {phase}", of.sources), "u": u}
            steps.append(Step(phase, s.kernels.ranges(), len(of.items), fixed | args, THREADS))
    return steps


def _proxies(
    s: TreecodeStructure, lists: Interactions, charge: dict[int, Handle], potentials: Potentials
) -> list[Step]:  # fmt: skip
    """Return the steps that sum over proxy points, at particles and at proxy points, in the far precision."""
    kernels = s.kernels
    fixed = {
        "xt": s.from_centres if lists.pc else constant("no targets", np.empty((3, 0), kernels.far)),
        "box": s.target.box,
        "place": s.places[kernels.far],
        "constant": constant("constants", np.array([*kernels.linear.parameters, 0.0], kernels.far)),
    }
    steps = []
    for phase, by_points, u in (("pc", lists.pc, potentials.far_u), ("cc", lists.cc, potentials.far)):
        for m, of in by_points.items():
            args = {"item": _items(phase, of, potentials), "charge": charge[m], "u": u, **_clusters(s, m, of)}
            steps.append(Step(phase, kernels.grids(m), len(of.items), fixed | args, THREADS))
    return steps


def _items(phase: str, of: InteractionLists, potentials: Potentials) -> Handle:
    return indices(f"items of {phase}", potentials.items(of) if phase in ("cp", "cc") else of.items)


def _clusters(s: TreecodeStructure, m: int, of: InteractionLists) -> dict[str, Handle]:
    """Return source nodes of m points by the rows of their charges, and the boxes of these rows."""
    if m == s.kernels.points:
        return {"source": s.source.box, "other": indices("source nodes", of.sources)}
    nodes = s.up[m]
    return {"source": s.source.boxes(nodes), "other": indices("source rows", np.searchsorted(nodes, of.sources))}
