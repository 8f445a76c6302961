"""Tables of hot loops: instructions by pipe, bounds, and rates at the bounds."""

from collections.abc import Iterable, Sequence
from typing import Any

from parki.perfmodels.machine import Machine
from parki.perfmodels.machinecode.bounds import ARCHITECTURES
from parki.perfmodels.machinecode.instructions import by_pipe
from parki.perfmodels.machinecode.reading import HotLoop

Row = dict[str, Any]
LEAST = 4  # arithmetic instructions of a turn; loops with fewer move data


def rows(title: str, loops: Iterable[HotLoop], machine: Machine, arch: str) -> list[Row]:
    """Return a row for each loop that computes, under the name of its sum: its instructions, bound and rate."""
    counts = ((loop, by_pipe(loop.turn)) for loop in loops)
    return [_row(title, loop, machine, arch) for loop, n in counts if n["double"] + n["single"] >= LEAST and loop.work]


def _row(title: str, loop: HotLoop, machine: Machine, arch: str) -> Row:
    """Return the row of a hot loop; the rate is that of all schedulers of the machine at the bound."""
    turns = machine.operations["float64"]["fma"] * ARCHITECTURES[arch].cycles["double"]  # of all lanes in a second
    rate = (loop.pairs or loop.work) * turns / loop.bound.cycles / 1e9
    return {
        "what": f"{title}: {loop.unit.ir.name}",
        "seconds": 1.0 / rate,
        "times": [1.0 / rate],
        "rate": rate,
        "unit": "G pairs/s" if loop.pairs else "G operations/s",
        "label": loop.unit.label,
        "instructions": len(loop.turn),
        "pipes": dict(by_pipe(loop.turn)),
        "bound": loop.bound.by,
        "cycles": loop.bound.cycles,
        "pairs": loop.pairs,
        "useful": loop.useful,
        "registers": loop.registers,
        "spills": loop.spills,
    }


def text(rows: Sequence[Row]) -> str:
    """Return rows as text: a turn of each loop in instructions and cycles of a scheduler."""
    width = max(len(r["what"]) for r in rows)
    head = f"{'what':<{width}}  turn  double  memory  other  bound    cycles  pairs  useful  registers"
    lines = [head]
    for r in rows:
        if "absent" in r:
            lines.append(f"{r['what']:<{width}}  not read: {r['absent']}")
            continue
        pipes = r["pipes"]
        double, memory = pipes.get("double", 0), sum(pipes.get(name, 0) for name in ("memory", "atomic", "scratch"))
        lines.append(
            f"{r['what']:<{width}}{r['instructions']:>6}{double:>8}{memory:>8}{r['instructions'] - double - memory:>7}"
            f"  {r['bound']:<8}{r['cycles']:>7.0f}{r['pairs'] or '':>7}{r['useful']:>8.0%}{r['registers']:>11}"
        )
    return "\n".join(lines)
