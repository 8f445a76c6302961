"""Files of parki that a warm call enters, traced by `sys.setprofile` in the calling thread."""

import itertools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import parki

ENGINE = "engine"
N = 500
TREES = {"tolerance": 1e-4, "leaf_size": 40, "execution_space": "Serial"}
EWALD = {"box": (1.0, 1.0, 1.0), "tolerance": 1e-4, "execution_space": "Serial"}


@dataclass(frozen=True)
class Trace:
    """Files in the order in which calls from other files enter them; the engine counts as one file."""

    entries: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """Files, each once."""
        return list(dict.fromkeys(self.entries))

    @property
    def again(self) -> list[str]:
        """Files that are entered more than once, without the engine."""
        counts = Counter(self.entries)
        return [name for name in self.files if counts[name] > 1 and name != ENGINE]

    def __str__(self) -> str:
        runs = ((name, len(list(run))) for name, run in itertools.groupby(self.entries))
        return " → ".join(name if n == 1 else f"{name} ×{n}" for name, n in runs)


def traced(action: Callable[[], Any]) -> Trace:
    """Return the files of parki that a call enters."""
    root = Path(parki.__file__).parent
    names: dict[CodeType, str | None] = {}
    entries: list[str] = []
    stack: list[str | None] = [None]  # file of parki that each call is in; its caller's for other code

    def name_of(code: CodeType) -> str | None:
        if code not in names:
            path = Path(code.co_filename)
            inside = path.is_relative_to(root)
            relative = path.relative_to(root).as_posix() if inside else None
            names[code] = ENGINE if relative and relative.startswith(f"{ENGINE}/") else relative
        return names[code]

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            name = name_of(frame.f_code) or stack[-1]
            if name != stack[-1]:
                entries.append(name)
            stack.append(name)
        elif event == "return" and len(stack) > 1:
            stack.pop()

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return Trace(tuple(entries))


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls that are traced: a plan's and one-shot calls of each method."""
    rng = np.random.default_rng(1)
    x, normals = rng.random((3, N)), rng.standard_normal((3, N))
    q, f = np.resize([1.0, -1.0], N), np.resize([[1.0, -1.0]], (6, N))  # no net charge or force, of which calls warn
    plans = {
        "ewald laplace": parki.ewald.plan("laplace", x, x, **EWALD),
        "treecode dual": parki.treecode.plan("coulomb", x, x, **TREES),
        "treecode pc": parki.treecode.plan("coulomb", x, x, method="pc", **TREES),
        "fmm kifmm": parki.fmm.plan("coulomb", x, x, **TREES),
        "fmm chebyshev": parki.fmm.plan("coulomb", x, x, method="chebyshev", **TREES),
    }
    comb = parki.ewald.plan("stokes_comb", x, x, **EWALD)
    return {
        **{f"{name} plan": lambda plan=plan: plan(q) for name, plan in plans.items()},
        "ewald stokes_comb plan": lambda: comb(f, normals),
        "ewald laplace once": lambda: parki.ewald.laplace(x, x, q, **EWALD),
        "treecode dual once": lambda: parki.treecode.bldtt(x, x, q, **TREES),
        "treecode pc once": lambda: parki.treecode.bltc(x, x, q, **TREES),
        "fmm kifmm once": lambda: parki.fmm.kifmm(x, x, q, **TREES),
        "fmm chebyshev once": lambda: parki.fmm.chebyshev(x, x, q, **TREES),
        "direct once": lambda: parki.direct.direct_sum("laplace", x, x, q, execution_space="Serial"),
    }


def warm() -> dict[str, Trace]:
    """Return the traces of second calls, by name."""
    traces = {}
    for name, call in calls().items():
        call()
        traces[name] = traced(call)
    return traces
