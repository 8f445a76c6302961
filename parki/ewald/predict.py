"""Predicted time of a sum on a machine: one computation for `plan.predict()` and `parki model ewald`.

The work of each phase is counted for evenly spread points, from volumes and the kernels' texts, and gives the limit of
the phase by the roofline.  The seconds of a part of a sum are

* those of its measured costs (`parki.perfmodels.machine.Costs`) on a host, where sums were timed: a near pair, a grid
  point, a row of the window.  Of twelve sums on a calibrated host 10 were predicted to within 25 %; the limits over
  mean shares came so close to 9, and to 23 of their 48 parts instead of 33 (`parki bench model` compares both);
* those of the limits over the shares of them that are reached on a GPU, where no sum was timed.

Where points crowd, the near field has as many more pairs.  Half lists are counted as whole ones, and take a share of
their time.

Parameters are chosen by costs on every machine, on a GPU by costs made of its rates (`Costs.of`): a choice compares
hundreds of cutoffs and windows, and counting the work of one of them takes 15 ms.
"""

import math
from dataclasses import replace

import numpy as np

from parki import prediction
from parki.engine import Space, spaces
from parki.ewald.choice import params
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.variants import Variants
from parki.ewald.stages import multipliers, work
from parki.ewald.stages.mesh import Mesh
from parki.perfmodels import roofline, select
from parki.perfmodels.counts.totals import Counts
from parki.perfmodels.machine import Costs, Machine
from parki.perfmodels.roofline import Bound, Phase
from parki.perfmodels.select import ModelledSum
from parki.prediction import Prediction

#: Phases of each part of a sum.
PARTS = {"near": ("p2p",), "transform": ("fft", "cnv", "ifft"), "spread": ("p2g",), "gather": ("g2p",)}
ONCE, ONCE_OF_MANY = 0.73, 0.85  # time of half lists on a host over that of whole ones: one number a source, several
SECTOR = 4  # numbers that memory moves for one number at any place


def predict(
    p: Parameters, v: Variants, n: tuple[int, int], space: Space, memory: int, crowding: tuple[float, ...] = ()
) -> Prediction:
    """Predict a sum of `n` targets and sources on the machine of a space, by parts; `memory` is held by the plan."""
    machine = prediction.machine_of(space)
    return Prediction(seconds(p, v, n, machine, spaces.workers(space), crowding), memory)


def seconds(
    p: Parameters, v: Variants, n: tuple[int, int], machine: Machine, units: int, crowding: tuple[float, ...] = ()
) -> dict[str, float]:
    """Return the seconds of each part of a sum on some cores of a machine.

    Parameters
    ----------
    p, v
        Parameters and variants of the sum.
    n
        Numbers of targets and of sources.
    machine, units
        The machine, and the number of cores at work; a GPU is one.
    crowding
        `Arrangement.crowding` of the points; empty if they are spread evenly.
    """
    if 0 in n:
        return dict.fromkeys(PARTS, 0.0)
    if machine.costs is not None:
        parts = by_costs(p, n, machine.costs, machine, units, crowding)
    else:
        parts = _summed(by_limits(p, v, n, machine, units, crowding))
    half = ONCE if p.kernel.given == 1 else ONCE_OF_MANY
    return parts | {"near": parts["near"] * (half if v.once else 1.0)}


def parts_and_phases(
    p: Parameters, v: Variants, n: tuple[int, int], machine: Machine, units: int, crowding: tuple[float, ...] = ()
) -> tuple[dict[str, float], dict[str, Phase]]:
    """Return `seconds`, and work, limit and time of each phase; a part shares its seconds in proportion to the limits.

    Parameters are those of `seconds`.
    """
    phases = by_limits(p, v, n, machine, units, crowding)
    limits = _summed(phases)
    if machine.costs is None:
        return limits, phases
    parts = seconds(p, v, n, machine, units, crowding)
    for part, spent in parts.items():
        limit = limits[part]
        for name in PARTS[part]:
            phase = phases[name]
            bound = replace(phase.bound, seconds=spent * (phase.bound.seconds / limit))
            phases[name] = replace(phase, bound=bound, share=phase.share * limit / spent)
    return parts, phases


def _summed(limits: dict[str, Phase]) -> dict[str, float]:
    """Return the seconds of each part, of which the phases follow each other."""
    return {part: sum(limits[name].bound.seconds for name in names) for part, names in PARTS.items()}


# By costs -------------------------------------------------------------------------------------------------------------
def by_costs(
    p: Parameters, n: tuple[int, int], costs: Costs, machine: Machine, units: int, crowding: tuple[float, ...] = ()
) -> dict[str, float]:
    """Return the seconds of each part by its costs."""
    if 0 in n:
        return dict.fromkeys(PARTS, 0.0)
    question, points = modelled(p, *n, crowding)
    spent = select.phases(question, p.rc, points, p.P, costs)
    return {part: float(spent[part]) / speedup(part, machine, units) for part in PARTS}


def as_chosen(p: Parameters, n: tuple[int, int], space: Space, crowding: tuple[float, ...] = ()) -> dict[str, float]:
    """Return the seconds of each part by the costs with which parameters are chosen in a space."""
    units = spaces.workers(space)
    return by_costs(p, n, prediction.costs(space), prediction.machine_of(space), units, crowding)


def modelled(
    p: Parameters, n_targets: int, n_sources: int, crowding: tuple[float, ...] = ()
) -> tuple[ModelledSum, float]:
    """Return a sum in the form of the models, and the points of its transforms."""
    tolerance = max(p.tolerance, p.reach)
    domain = select.Domain(p.box, p.periodicity, tolerance, params.edges(p.box, p.skew), crowding)
    spacing = max(h * edge / side for h, edge, side in zip(p.h, domain.edges, p.box, strict=True))
    points, _ = domain.work(spacing, np.array(p.grid), p.P, p.rc)
    return ModelledSum(p.kernel, n_targets, n_sources, domain, p.itemsizes), points


def speedup(part: str, machine: Machine, units: int) -> float:
    """Return the speed of some cores of a machine over that of one core, in a part of a sum.

    The loss for fewer than all cores is scaled from the measured loss on all cores.
    """
    return units * float(np.mean([machine.together(name, units) for name in PARTS[part]]))


# By limits ------------------------------------------------------------------------------------------------------------
def by_limits(
    p: Parameters, v: Variants, n: tuple[int, int], machine: Machine, units: int, crowding: tuple[float, ...] = ()
) -> dict[str, Phase]:
    """Return work and time of each phase: its limit by the roofline over the share of the limit that is reached."""
    limits, methods = {}, {"p2p": v.p2p, "p2g": v.p2g, "g2p": v.g2p}
    for name, phase_counts in counts(p, v, n, machine, crowding).items():
        share = machine.share(name, methods.get(name, "")) * machine.together(name, units)
        limits[name] = by_limit(phase_counts, machine, p.type_of(name), units, share)
    return limits


def by_limit(counts: Counts, machine: Machine, dtype: str, units: int, share: float) -> Phase:
    """Return a phase at its share of the roofline; atomics of a GPU reach a share of their own."""
    phase = Phase(counts, roofline.time(counts, machine, dtype, units, share), share)
    if not machine.is_gpu or phase.bound.by != "atomics":
        return phase
    rest = roofline.time(replace(counts, atomics=0.0), machine, dtype, units, share)
    atomic = machine.reached["atomics"]
    atomics = roofline.time(Counts(atomics=counts.atomics, launches=counts.launches), machine, dtype, units, atomic)
    longer, reached = (atomics, atomic) if atomics.seconds > rest.seconds else (rest, share)
    return Phase(counts, Bound(longer.seconds, longer.by, phase.bound.parts), reached)


def counts(
    p: Parameters, v: Variants, n: tuple[int, int], machine: Machine, crowding: tuple[float, ...] = ()
) -> dict[str, Counts]:
    """Count all phases on a machine: `work.modelled` in the machine's lanes, and the traffic around it.

    Strengths are read and results are written in the caller's order.  A GPU's planes go through memory.
    """
    (n_targets, n_sources), (size, far_size), kernel = n, p.itemsizes, p.kernel
    variants = of_machine(v, machine, p.dtype)
    by_phase = dict(work.modelled(p, variants, n_targets, n_sources, machine.kind, crowding=crowding).counts)
    by_phase["p2p"] += _moved(size * n_sources * (SECTOR * kernel.strengths + 3 + kernel.strengths))
    by_phase["g2p"] += _moved(size * n_targets * (SECTOR + 2) * kernel.result)
    if machine.is_gpu:
        mesh, classes = Mesh(p, multipliers.period(p)), multipliers.planes(p)
        lines = work.transform_lines(p, mesh, classes)
        across = sum(length * number for length, number in lines.items()) - math.prod(mesh.box) / 2
        for name, components in (("fft", kernel.spread), ("ifft", kernel.fields)):
            by_phase[name] += _moved(4.0 * far_size * components * across)
    return {name: by_phase[name] for name in Machine.PHASES}


def of_machine(v: Variants, machine: Machine, dtype: str) -> Variants:
    """Return variants in the vectors of a machine that is a host, the same for a GPU."""
    lanes = machine.lanes[dtype]
    return v if machine.is_gpu else replace(v, targets=lanes, lanes=lanes)


def _moved(count: float) -> Counts:
    return Counts(bytes={"dram": float(count)}, launches=1)
