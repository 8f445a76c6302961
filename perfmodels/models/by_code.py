"""Times of a modelled sum by the machine code of its kernels, beside those by assumed shares of limits."""

from collections.abc import Mapping
from dataclasses import dataclass

from parki.perfmodels.machinecode.reading import HotLoop
from parki.perfmodels.roofline import Phase

PIPES = 0.75  # share of the bound of machine code that a kernel reaches, for latencies and barriers (assumed)
KERNELS = {"p2p": "p2p_", "p2g": "p2g_", "cnv": "convolve", "g2p": "g2p_"}  # phase → begin of its workunit's name


@dataclass(frozen=True)
class CodeTime:
    """Time of a phase by its machine code.

    Attributes
    ----------
    kernel : str
        Workunit that was read; empty for phases without one, whose time is that of the model.
    useful : float
        Share of the arithmetic limit that its hot loop allows.
    by : str
        Limit of the hot loop's turn, or of the phase where a level of memory takes longer.
    seconds : float
        The time: the phase's operations at the share `useful`, or the bytes of a level, over the share that is reached.
    """

    kernel: str
    useful: float
    by: str
    seconds: float


def by_code(phases: Mapping[str, Phase], loops: list[HotLoop]) -> dict[str, CodeTime]:
    """Return the times of phases whose hot loops were read, and those of the model for the rest."""
    times = {}
    for name, phase in phases.items():
        head = KERNELS.get(name)
        loop = next((loop for loop in loops if head and loop.unit.ir.name.startswith(head)), None)
        if loop is None or not loop.useful:
            times[name] = CodeTime("", 1.0, phase.bound.by, phase.bound.seconds)
            continue
        parts = dict(phase.bound.parts)
        launch = parts.pop("launch", 0.0)
        limits = {
            part: seconds / (phase.share if part == "dram" else PIPES)
            for part, seconds in parts.items()
            if part != "compute"
        }
        limits[loop.bound.by] = parts.get("compute", 0.0) / loop.useful / PIPES
        slowest = max(limits, key=limits.__getitem__)
        times[name] = CodeTime(loop.unit.ir.name, loop.useful, slowest, limits[slowest] + launch)
    return times


def text(times: Mapping[str, CodeTime], phases: Mapping[str, Phase], titles: Mapping[str, str]) -> str:
    """Return a table of times by code beside those of the model."""
    lines = [f"{'phase':6s}{'kernel':14s}{'bound by':>9s}  useful   by code ms   model ms"]
    for name, time in times.items():
        useful = f"{time.useful:7.0%}" if time.kernel else f"{'–':>7s}"
        model = 1e3 * phases[name].bound.seconds
        head = f"{titles[name]:6s}{time.kernel or 'not read':14s}{time.by:>9s} {useful}"
        lines.append(f"{head} {1e3 * time.seconds:12.4g}{model:11.4g}")
    total = 1e3 * sum(time.seconds for time in times.values())
    model = 1e3 * sum(phase.bound.seconds for phase in phases.values())
    lines.append(f"{'total':37s} {total:12.4g}{model:11.4g}")
    return "\n".join([*lines, f"by code: the bounds over {PIPES:g} (assumed)."])
