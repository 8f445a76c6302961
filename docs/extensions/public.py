"""The public names of parki: the pages of the reference list them, and tests hold both against each other."""

import importlib

#: Modules whose ``__all__`` is public.
MODULES = (
    "parki", "parki.ase", "parki.direct", "parki.distributed", "parki.engine", "parki.ewald", "parki.fmm",
    "parki.jax", "parki.pairs", "parki.samples", "parki.torch", "parki.treecode", "parki.units", "parki.utils",
)  # fmt: skip

#: Classes that are reached from there: results, parameters, spaces.
REACHED = (
    "parki.dimensions.Dimensions",
    "parki.engine.counting.Counters",
    "parki.engine.run.launch.Part",
    "parki.engine.tree.operations.CodeBlock",
    "parki.engine.tree.operations.Totals",
    "parki.engine.run.spaces.Space",
    "parki.energies.EnergyForces",
    "parki.error.ErrorEstimate",
    "parki.ewald.choice.params.Parameters",
    "parki.ewald.report.Params",
    "parki.ewald.report.WallTime",
    "parki.plan.Plan",
    "parki.prediction.Prediction",
    "parki.tasks.schedule.Schedule",
    "parki.timing.PhaseTimes",
)

_TIMING = ("members", "over", "phase", "reset", "sent", "shift", "whole")
_PAIR = ("hints", "scaled")

#: Members that only parki's own modules call, and old names, by the full name of the class.
UNLISTED = {
    "parki.distributed.simulated.World": (
        "arrived", "asked", "let_others", "posted", "send", "together", "wait", "wake",
    ),
    "parki.engine.workunit.Workunit": ("compiled", "gpu", "key", "unit"),
    "parki.ewald.choice.params.Parameters": ("itemsizes", "scaled", "serves", "stretched", "type_of"),
    "parki.ewald.kernel.Kernel": (*_PAIR, "components", "fields", "profile", "steep", "sums", "with_virial"),
    "parki.ewald.options.EwaldOptions": ("resolve",),
    "parki.ewald.report.WallTime": (*_TIMING, "take"),
    "parki.pairs.Pair": _PAIR,
    "parki.plan.Plan": ("energy_terms", "full", "pair", "related", "turned"),
    "parki.timing.PhaseTimes": _TIMING,
    "parki.treecode.params.Parameters": ("rule",),
}  # fmt: skip


def listed(kind: type) -> list[str]:
    """Return the public methods and properties of a class that parki defines, a call of its instances among them."""
    hidden = UNLISTED.get(f"{kind.__module__}.{kind.__qualname__}", ())
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "parki":
            found |= vars(base)
    public = [name for name in found if not name.startswith("_") or name == "__call__"]
    kinds = (classmethod, property, staticmethod, type(listed))
    return [name for name in public if isinstance(found[name], kinds) and name not in hidden]


def members() -> dict[str, list[str]]:
    """Return the public members of every public class by its names; `parki.torch`, which needs PyTorch, has none."""
    names = [
        (name, each) for name in MODULES if name != "parki.torch" for each in importlib.import_module(name).__all__
    ]
    names += [(module, each) for module, _, each in (name.rpartition(".") for name in REACHED)]
    found = {f"{module}.{each}": getattr(importlib.import_module(module), each) for module, each in names}
    return {name: listed(each) for name, each in found.items() if isinstance(each, type)}
