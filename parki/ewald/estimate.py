"""How much memory a plan will hold, known before anything is made."""

import math
from typing import TYPE_CHECKING

from parki import memory
from parki.ewald.options import EwaldOptions
from parki.ewald.params import Parameters
from parki.ewald.stages import SumSteps

if TYPE_CHECKING:
    from parki.ewald.plan import Plan


def require(plan: "Plan", p: Parameters) -> None:
    """Refuse parameters whose grid alone takes more memory of the host than is free.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    if plan.space.kind != "device" and plan.n_targets and plan.n_sources:
        _require(plan, p, math.prod(p.grid) * p.kernel.components * p.itemsizes[1])


def require_steps(plan: "Plan", made: SumSteps) -> None:
    """Refuse steps whose arrays take more memory of the host than is free.

    The sorted points are those of the plan: they are counted with its first right-hand side.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    if plan.space.kind == "device":
        return
    shared = made.points.nbytes if made.rhs > 1 else 0
    _require(plan, made.p, made.steps.nbytes(made.far.transforms.size) - shared)


def _require(plan: "Plan", p: Parameters, needed: float) -> None:
    memory.require(needed, f"a plan with the grid {' × '.join(str(m) for m in p.grid)}", _advice(plan.options))


def _advice(options: EwaldOptions) -> str:
    given = next((name for name in ("cell_size", "rc") if getattr(options, name) is not None), None)
    if given:
        return f"A larger {given}, or None to have rc chosen, or a larger tolerance takes less."
    return "A larger tolerance or a larger rc takes less."
