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
    src, gathering = upward.rows(s, charges)
    charge, upward_steps = upward.proxy_charges(s, src, parts)
    potentials = Potentials(s, parts)
    interaction_steps = [*_particles(s, s.lists, src, potentials), *_proxies(s, s.lists, charge, potentials)]
    first = []
    if s.elsewhere is not None:
        first, exchange_steps = _brought(s, charges, charge, src, interaction_steps)
        remote_lists = s.elsewhere.lists
        interaction_steps = [
            *exchange_steps,
            *_particles(s, remote_lists, src, potentials),
            *_proxies(s, remote_lists, charge, potentials),
        ]
    all_steps = [
        *gathering,
        *upward_steps,
        *potentials.zeros,
        *interaction_steps,
        *potentials.added,
        *potentials.steps(),
        glue.scatter("downward", potentials.u, s.target.order, u),
    ]
    if sizes is not None:
        all_steps = TreecodeCuts.of(s, potentials, sizes).steps(all_steps)
    return TreecodeSteps(Steps(all_steps, first), charges, u)


def _brought(
    s: TreecodeStructure, charges: Handle, charge: dict[int, Handle], src: Handle, own_steps: list[Step]
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
    exchange, n = s.elsewhere, s.kernels.charges
    buffer = state("charges", (s.particles, n), s.kernels.real, zero=False)
    parts = slice(exchange.here.start), slice(exchange.here.stop, s.particles)
    points = constant("points from elsewhere", exchange.points)
    numbers = [*s.kernels.linear.parameters]

    def place(context: Context, points: Array, src: Array) -> None:
        for rows_here, rows in zip(parts, (slice(exchange.here.start), slice(exchange.here.start, None)), strict=True):
            src[rows_here, :3] = points[:, rows].T
            src[rows_here, 3 + n :] = context.xp.asarray(numbers, src.dtype)

    def fill(context: Context, buffer: Array, src: Array) -> None:
        for part in parts:
            src[part, 3 : 3 + n] = buffer[part]

    near = next((step for step in own_steps if step.phase == "pp"), None)
    shelves = [buffer, *(charge[m] for m in exchange.served)]
    sequence = [
        glue.gather_columns("upward", charges, s.source.order, buffer[exchange.here], 0),
        *exchange.messages.steps(shelves, near),
        *(step for step in own_steps if step is not near),
        Call("upward", fill, [buffer], [src]),
        *upward.crowds(s, src, slice(exchange.lumps, None)),
    ]
    return [Call("upward", place, [points], [src])], sequence


def _particles(s: TreecodeStructure, lists: Interactions, src: Handle, potentials: Potentials) -> list[Step]:
    """Return the steps that sum over source particles, at particles and at proxy points."""
    constants = {
        "xt": s.target.points,
        "box": s.target.box,
        "place": s.places[s.kernels.real],
        "src": src,
        "tiny": s.tiny,
    }
    steps = []
    for phase, entries, u in (("pp", lists.pp, potentials.u), ("cp", lists.cp, potentials.near)):
        if len(entries.items):
            args = {
                "item": _items(phase, entries, potentials),
                "span": indices(f"ranges of {phase}", entries.sources),
                "u": u,
            }
            steps.append(Step(phase, s.kernels.ranges(), len(entries.items), constants | args, THREADS))
    return steps


def _proxies(
    s: TreecodeStructure, lists: Interactions, charge: dict[int, Handle], potentials: Potentials
) -> list[Step]:  # fmt: skip
    """Return the steps that sum over proxy points, at particles and at proxy points, in the far precision."""
    kernels = s.kernels
    constants = {
        "xt": s.from_centres if lists.pc else constant("no targets", np.empty((3, 0), kernels.far)),
        "box": s.target.box,
        "place": s.places[kernels.far],
        "constant": constant("constants", np.array([*kernels.linear.parameters, 0.0], kernels.far)),
    }
    steps = []
    for phase, grids, u in (("pc", lists.pc, potentials.far_u), ("cc", lists.cc, potentials.far)):
        for m, entries in grids.items():
            args = {"item": _items(phase, entries, potentials), "charge": charge[m], "u": u, **_clusters(s, m, entries)}
            steps.append(Step(phase, kernels.grids(m), len(entries.items), constants | args, THREADS))
    return steps


def _items(phase: str, entries: InteractionLists, potentials: Potentials) -> Handle:
    return indices(f"items of {phase}", potentials.items(entries) if phase in ("cp", "cc") else entries.items)


def _clusters(s: TreecodeStructure, m: int, entries: InteractionLists) -> dict[str, Handle]:
    """Return source nodes of m points by the rows of their charges, and the boxes of these rows."""
    if m == s.kernels.points:
        return {"source": s.source.box, "other": indices("source nodes", entries.sources)}
    nodes = s.up[m]
    return {"source": s.source.boxes(nodes), "other": indices("source rows", np.searchsorted(nodes, entries.sources))}
