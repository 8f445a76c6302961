"""`parki model ewald`: the work and the time of each phase of a sum, on a machine that need not be here.

The parameters are those that a plan would choose with the machine's costs, and times are those of `plan.predict()`
(`parki.ewald.predict`): by the costs that `parki calibrate` measured on a host; on a GPU by the limits of the roofline
over the shares of them that the machine's file states, most of them assumed.  In the table of a host the share is that
of the limit in the time by costs.

These limits are found on an H200 (4e6 points, `stokes_comb`, 1e-9, periodic in x), phase by phase: for P2P
double-precision arithmetic, 40 % of it for pairs within rc, as a warp's 32 targets are spread over a column of cells;
for P2G the additions of runs of 32 sources to the grid, past the first level of memory; for transforms and multipliers
memory's 4.8 TB/s, in planes of modes that get smaller with kx; for G2P the reads of all of a window from the first
level.

Transforms on a GPU go through planes in batches larger than its cache, so gathering, both axes and scattering each move
them through memory; a host's planes stay in its cache.  Sorting the points, done once by a plan, is not in the table.
"""

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from parki.engine import DEFAULT_TEAM, Space, Wanted, devices, gpu_unit, rtc, scratch_bytes, writing
from parki.ewald.choice import choose, params, variants
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.choice.variants import Variants
from parki.ewald.predict import of_machine, parts_and_phases
from parki.ewald.report import Params
from parki.ewald.stages import sums
from parki.perfmodels.machine import Costs, Machine
from parki.perfmodels.machinecode import table as machinecode
from parki.perfmodels.machinecode.compiled import missing
from parki.perfmodels.machinecode.reading import hot_loops
from parki.perfmodels.models import by_code, plot, table
from parki.perfmodels.network import Network
from parki.perfmodels.occupancy import Occupancy, occupancy
from parki.perfmodels.roofline import Phase
from parki.prediction import Prediction

ARCHES = {"h200": "sm_90", "h100": "sm_90", "a100": "sm_80", "rtx4090": "sm_89", "mi300x": "gfx942", "mi250x": "gfx90a"}
TOLERANCE = 1e-7  # if none is given
SPAN, STEPS = 1.9, 15  # of the curve over rc: factor below and above the chosen one; steps


@dataclass(frozen=True)
class Model:
    """A predicted sum: its phases, and the seconds of its parts."""

    parameters: Parameters
    variants: Variants
    machine: Machine
    units: int
    n: int
    phases: Mapping[str, Phase]
    parts: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """Seconds of the whole call, its parts one after the other."""
        return Prediction(self.parts, 0).seconds


def predict(question: Question, machine: Machine, units: int | None = None) -> Model:
    """Predict a sum over uniform points that are targets and sources.

    Parameters
    ----------
    question
        The sum, as many targets as sources.
    machine, units
        The machine, and the cores that are used, all if not given.

    Raises
    ------
    ValueError
        As `parki.ewald.choice.choose.parameters`, for more cores than there are, and for other numbers of targets than
        of sources.
    """
    n = question.n_sources
    if question.n_targets != n:
        raise ValueError(f"question: found {question.n_targets} targets and {n} sources, expected as many")
    units = machine.some(units)
    p = choose.parameters(question, Costs.of(machine))
    v = variants.choose(space_of(machine), question.dtype, None, p, n, machine.scratch)
    v = of_machine(v, machine, question.dtype)
    parts, phases = parts_and_phases(p, v, (n, n), machine, units, question.crowding)
    return Model(p, v, machine, units, n, phases, parts)


def space_of(machine: Machine) -> Space:
    """Return the space of launches on a machine."""
    if machine.kind == "host":
        return Space("OpenMP")
    return Space("HIP" if machine.lanes["float64"] == 64 else "Cuda")


def curve(model: Model) -> list[Model]:
    """Return the same sum with shorter and longer cutoffs."""
    p, limit = model.parameters, params.most_cutoff(model.parameters.box, model.parameters.periodicity)
    cutoffs = np.geomspace(p.rc / SPAN, min(limit, p.rc * SPAN), STEPS)
    question = Question(p.kernel, p.box, model.n, model.n, p.tolerance, p.dtype, periodicity=p.periodicity)
    return [predict(replace(question, rc=float(rc)), model.machine, model.units) for rc in cutoffs]


def resident(model: Model, arch: str) -> dict[str, tuple[int, Occupancy]]:
    """Compile the kernels of a GPU's sum; return registers of a thread and occupancy by phase.

    Parameters
    ----------
    model
        A sum on a GPU.
    arch
        Architecture to compile for (``"sm_90"``).
    """
    launched = _launched(model)
    heads = {"p2p": "p2p_", "p2g": "p2g_", "cnv": "convolve", "g2p": "g2p_"}
    units = {
        name: next(launch for launch in launched if launch[0].ir.name.startswith(head)) for name, head in heads.items()
    }
    blocks = {name: threads or DEFAULT_TEAM for name, (*_, threads) in units.items()}
    device = devices.Device(0, "", arch, 0, "", model.machine.shared_bytes, 32, model.machine.multiprocessors)
    sources = [gpu_unit(unit, layouts, device, blocks[name]) for name, (unit, layouts, _) in units.items()]
    result = {}
    for (name, (unit, *_)), path in zip(units.items(), rtc.build_many(sources), strict=True):
        usage = rtc.usage(path)
        scratch = usage.shared + scratch_bytes(unit.ir, {})
        result[name] = usage.registers, occupancy(model.machine, usage.registers, scratch, blocks[name])
    return result


def _launched(model: Model) -> list[Wanted]:
    """Return the workunits of a sum, with layouts of their views and threads of a block."""
    p, v, space = model.parameters, model.variants, space_of(model.machine)
    return sums.SumSteps(p, v, (model.n, model.n, True), space).steps.units()


def code(model: Model, arch: str) -> str:
    """Return tables of the hot loops of a sum, read from their machine code, and of the times of its phases by them.

    Raises
    ------
    FileNotFoundError
        If there is no disassembler.
    """
    loops = hot_loops(_launched(model), arch)
    rows = machinecode.rows(model.parameters.kernel.name, loops, model.machine, arch)
    times = by_code.by_code(model.phases, loops)
    return f"{machinecode.text(rows)}\n\n{by_code.text(times, model.phases, table.TITLES)}"


def main(args: argparse.Namespace) -> int:
    """Print the table of a sum; write and draw the sum if asked."""
    for name in ("theta", "degree", "order", "kappa"):
        if getattr(args, name) is not None:
            raise ValueError(f"--{name}: found with ewald, expected with {'fmm' if name == 'order' else 'treecode'}")
    machine = Machine.load(args.device)
    kernel, tolerance = args.kernel or "stokes_comb", TOLERANCE if args.tolerance is None else args.tolerance
    box, n = tuple(args.box), args.n
    periodicity = 3 if args.periodicity is None else args.periodicity
    question = Question(kernel, box, n, n, tolerance, args.dtype, rc=args.rc, periodicity=periodicity)
    if args.ranks is not None:
        from parki.perfmodels.ranks import ewald_table

        network = Network.load(args.network)
        print(ewald_table.text(question, machine, network, args.ranks, args.published))  # noqa: T201
        return 0
    model = predict(question, machine, args.threads)
    arch = ARCHES.get(args.device.lower())
    if args.code and (reason := missing(arch) if arch else f"expected one of {', '.join(ARCHES)}"):
        raise ValueError(f"--code: found with --device {args.device}: {reason}.")
    compiled = arch is not None and arch.startswith("sm_") and devices.missing_compiler("Cuda") is None
    usage = resident(model, arch) if compiled else {}
    stages = table.published_stages(machine, args.device, n, tolerance) if args.published else None
    print(table.text(model, str(Params(model.parameters)), usage, stages))  # noqa: T201
    if args.code:
        print(f"\n{code(model, arch)}")  # noqa: T201
    if args.json:
        record = table.record(model, usage, stages)
        writing.write(args.json, json.dumps(record, indent=1) + "\n")
    if args.plot:
        _draw(args.plot, model)
    return 0


def _draw(path: Path, model: Model) -> None:
    points = [
        plot.Point(name, phase.counts.flops, phase.counts.bytes.get("dram", 0.0), phase.bound.seconds)
        for name, phase in model.phases.items()
    ]
    models = curve(model)
    near_ = [m.phases["p2p"].bound.seconds for m in models]
    rest = [m.seconds - s for m, s in zip(models, near_, strict=True)]
    chart = plot.Curve([m.parameters.rc for m in models], near_, rest, model.parameters.rc, model.seconds)
    p = model.parameters
    problem = f"{p.kernel.name}, N = {model.n:,}, tolerance {p.tolerance:g}, {p.dtype}"
    title = f"{problem}: predicted {plot.duration(model.seconds)}"
    with writing.replacing(path) as work:
        plot.draw(work, title, model.machine, model.units, p.dtype, points, chart)
