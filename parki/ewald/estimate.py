"""Memory that a plan will hold, computed before any array is allocated."""

import math

from parki import memory
from parki.engine import Space
from parki.ewald.choice.params import Parameters
from parki.ewald.choice.question import Question
from parki.ewald.options import EwaldOptions
from parki.ewald.stages.sums import SumSteps


def require(question: Question, p: Parameters, options: EwaldOptions) -> None:
    """Raise if the grid of some parameters alone takes more memory of the host than is free.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    if question.n_targets and question.n_sources:
        _require(question.space, p, options, math.prod(p.grid) * p.kernel.components * p.itemsizes[1])


def require_steps(sum_steps: SumSteps, options: EwaldOptions) -> None:
    """Raise if the arrays of steps take more memory of the host than is free.

    The sorted points are counted with a plan's first right-hand side.

    Raises
    ------
    MemoryError
        Naming the bytes needed and free, and the options that lower them.
    """
    shared = sum_steps.points.nbytes if sum_steps.rhs > 1 else 0
    _require(sum_steps.space, sum_steps.p, options, sum_steps.steps.nbytes(sum_steps.far.transforms.size) - shared)


def _require(space: Space, p: Parameters, options: EwaldOptions, nbytes: float) -> None:
    if not space.own_memory:
        memory.require(nbytes, f"a plan with the grid {' × '.join(str(m) for m in p.grid)}", _advice(options))


def _advice(options: EwaldOptions) -> str:
    option = next((name for name in ("cell_size", "rc") if getattr(options, name) is not None), None)
    if option:
        return f"A larger {option}, or None to have rc chosen, or a larger tolerance takes less."
    return "A larger tolerance or a larger rc takes less."
