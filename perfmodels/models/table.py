"""Tables of modelled sums as text and as data, with the published method beside Ewald sums."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Protocol

from parki.perfmodels.machine import Machine
from parki.perfmodels.occupancy import Occupancy
from parki.perfmodels.published import kosmacher
from parki.perfmodels.published.kosmacher import Stage
from parki.perfmodels.roofline import Phase

HEADLINE = 4_000_000  # particles of the published measurements
Held = Mapping[str, tuple[int, Occupancy]]
TITLES = {"p2p": "P2P", "p2g": "P2G", "fft": "FFT", "cnv": "CNV", "ifft": "IFFT", "g2p": "G2P"}


class PrintedModel(Protocol):
    """Attributes of a model that tables print (`parki.perfmodels.models.ewald.Model`)."""

    parameters: Any
    variants: Any
    machine: Machine
    units: int
    n: int
    phases: Mapping[str, Phase]
    seconds: float


def text(model: PrintedModel, parameters: str, usage: Held, stages: Mapping[str, Stage] | None) -> str:
    """Return the table as text.

    Parameters
    ----------
    model
        The model of the sum.
    parameters
        A line that tells the parameters.
    usage
        Registers and occupancy of kernels that were compiled for a GPU.
    stages
        Stages of the published method on this machine, if wanted.
    """
    p, v, machine = model.parameters, model.variants, model.machine
    place = machine.name if machine.is_gpu else f"{machine.name}, {model.units} of {machine.units} cores"
    lines = [
        f"{p.kernel.name}, N = {model.n:,}, tolerance {p.tolerance:g}, {p.dtype}, on {place}",
        f"{parameters}",
        f"P2P {v.p2p} with {v.targets} targets, P2G {v.p2g}, G2P {v.g2p}; rates: {machine.source or 'stated'}",
        "",
        *phases({TITLES[name]: phase for name, phase in model.phases.items()}),
        "",
        about(machine),
        "Sorting the points, once a plan, is not counted.",
    ]
    for name, (registers, o) in usage.items():
        per = f"{o.blocks} blocks, {o.warps} warps on a multiprocessor"
        lines.append(f"{TITLES[name]}: {registers} registers, {per} (limit: {o.limit}), {o.share:.0%} of peak at most")
    return "\n".join([*lines, *(_published(model, stages) if stages else [])])


def phases(by_title: Mapping[str, Phase]) -> list[str]:
    """Return the lines of phases by title, after the names of columns and before the total."""
    width = max(5, *map(len, by_title))
    lines = [f"{'phase':{width}s}      Gop    Gflop       GB   lanes  bound by    limit ms   of it      ms"]
    for title, phase in by_title.items():
        counts, bound = phase.counts, phase.bound
        resource = bound.by if bound.by != "launch" else max(bound.parts, key=bound.parts.get)
        limit = bound.parts[resource]
        lines.append(
            f"{title:{width}s} {counts.amount / 1e9:8.4g} {counts.flops / 1e9:8.4g} "
            f"{counts.bytes.get('dram', 0.0) / 1e9:8.4g} {counts.fill:7.0%}  {bound.by:9s} {1e3 * limit:10.4g} "
            f"{phase.share:7.0%} {1e3 * bound.seconds:7.4g}"
        )
    total = sum(phase.bound.seconds for phase in by_title.values())
    return [*lines, f"{'total':{width + 65}s} {1e3 * total:7.4g}"]


def about(machine: Machine) -> str:
    """Return a line that explains the columns."""
    shares = "assumed." if machine.is_gpu else "measured or assumed, as the rates."
    return f"GB: from and to memory.  lanes: share whose work counts.  of it: share of the limit, {shares}"


def in_free_space(
    args: argparse.Namespace, machine: Machine, method: str, details: str, by_title: Mapping[str, Phase]
) -> str:
    """Return the table of a sum over a tree as text; `details` is a line on its parameters and pairs."""
    cores = f", {args.threads or machine.units} of {machine.units} cores" if machine.kind == "host" else ""
    head = f"{kernel(args)}, {method}, N = {args.n:,}, {args.dtype}, on {machine.name}{cores}"
    return "\n".join([head, details, "", *phases(by_title), "", about(machine)])


def settings(args: argparse.Namespace, machine: Machine, model: str, method: str) -> dict[str, Any]:
    """Return the settings of a sum over a tree as data."""
    names = {"what": model, "kernel": kernel(args), "method": method, "n": args.n, "dtype": args.dtype}
    return names | {"machine": machine.name, "units": args.threads or machine.units}


def kernel(args: argparse.Namespace) -> str:
    """Return the kernel of a sum over a tree."""
    return args.kernel or "coulomb"


def figures(phase: Phase) -> dict[str, Any]:
    """Return a phase as data."""
    counts, bound = phase.counts, phase.bound
    return {
        "seconds": bound.seconds,
        "by": bound.by,
        "share": phase.share,
        "parts": dict(bound.parts),
        "flops": counts.flops,
        "operations": dict(counts.operations),
        "bytes": dict(counts.bytes),
        "atomics": counts.atomics,
        "launches": counts.launches,
        "fill": counts.fill,
    }


def published_stages(machine: Machine, name: str, n: int, tolerance: float) -> dict[str, Stage]:
    """Return the stages of the published method, with measured times for its own problems on an H200.

    The problem is that of its Table 10 for tolerances above 1e-8, else that of its Table 9.
    """
    table = "table10" if tolerance > 1e-8 else "table9"
    problem = kosmacher.PROBLEMS[table]
    if name.lower() == "h200":
        device, measured = kosmacher.DeviceConstants(), kosmacher.MEASURED[table] if n == HEADLINE else None
    else:
        pair = kosmacher.PAIR.get(name.lower(), kosmacher.PAIR["h200"])
        flop, byte = 0.5 / machine.operations["float64"]["fma"], 1 / machine.bandwidth["dram_all"]
        device, measured = kosmacher.DeviceConstants(flop / machine.units, byte, pair=pair), None
    return kosmacher.stages(kosmacher.of_density(n, problem.s, problem.P), device, measured)


def _published(model: PrintedModel, stages: Mapping[str, Stage]) -> list[str]:
    """Return lines on the published method, and its times over the model's."""
    lines = ["", "published   limit ms   of it  predicted ms  measured ms     off   over ours"]
    for name, stage in stages.items():
        columns = f"{1e3 * stage.measured:11.4g}  {stage.off:+6.0%}" if stage.measured else f"{'–':>11s}  {'':6s}"
        ratio = (stage.measured or stage.seconds) / model.phases[name].bound.seconds
        lines.append(
            f"{TITLES[name]:5s} {1e3 * stage.limit:14.4g} {stage.reached.share:7.0%} {1e3 * stage.seconds:13.4g} "
            f"{columns} {ratio:10.3g}x   {stage.reached.source}"
        )
    predicted = sum(stage.seconds for stage in stages.values())
    measured = sum(stage.measured or 0.0 for stage in stages.values())
    columns = f"{1e3 * measured:11.4g}  {predicted / measured - 1:+6.0%}" if measured else f"{'–':>11s}  {'':6s}"
    lines.append(f"total {'':22s} {1e3 * predicted:13.4g} {columns} {(measured or predicted) / model.seconds:10.3g}x")
    return [
        *lines,
        "",
        "On an H200 the published model has 33.5 Tflop/s and 4.0 TB/s (4.8 in the data sheet), the second and first",
        "level 4 and 10 times as fast.  These give all analytical times of its Tables 3 and 5, those of P2G-grid with",
        "the bytes of P2G-base, not with those of its Table 4.  Of P2G and of G2P 8 ms each are sorts and the like.",
    ]


def record(model: PrintedModel, usage: Held, stages: Mapping[str, Stage] | None) -> dict[str, Any]:
    """Return the table as data, in seconds, operations and bytes."""
    p, v = model.parameters, model.variants
    by_phase = {name: figures(phase) for name, phase in model.phases.items()}
    data = {
        "what": "ewald",
        "kernel": p.kernel.name,
        "n": model.n,
        "tolerance": p.tolerance,
        "dtype": p.dtype,
        "box": list(p.box),
        "periodicity": p.periodicity,
        "machine": model.machine.name,
        "units": model.units,
        "parameters": {name: getattr(p, name) for name in ("rc", "c", "P", "radial_degree", "window_degree")}
        | {"grid": list(p.grid)},
        "variants": asdict(v),
        "phases": by_phase,
        "seconds": model.seconds,
    }
    for name, (registers, o) in usage.items():
        by_phase[name]["occupancy"] = {"registers": registers} | asdict(o)
    if stages is not None:
        data["published"] = {
            name: {"seconds": s.seconds, "limit": s.limit, "share": s.reached.share, "measured": s.measured}
            for name, s in stages.items()
        }
    return data
