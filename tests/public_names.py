"""The public names of parki: what each module offers, and the members of the classes that calls return or take."""

import importlib
import inspect
import sys
import types

#: Modules whose ``__all__`` is public.
MODULES = (
    "parki", "parki.direct", "parki.distributed", "parki.engine", "parki.ewald", "parki.fmm", "parki.pairs",
    "parki.samples", "parki.torch", "parki.treecode", "parki.utils",
)  # fmt: skip
#: Classes that are reached from there: in results, as parameters of a plan, by `parki.utils.get_execution_space`.
REACHED = (
    "parki.dimensions.Dimensions",
    "parki.engine.counting.Counters",
    "parki.engine.launch.Part",
    "parki.engine.operations.CodeBlock",
    "parki.engine.operations.Totals",
    "parki.engine.spaces.Space",
    "parki.error.ErrorEstimate",
    "parki.ewald.choice.params.Parameters",
    "parki.ewald.report.Params",
    "parki.ewald.report.WallTime",
    "parki.plan.Plan",
    "parki.prediction.Prediction",
    "parki.timing.PhaseTimes",
)


def torch_standin():
    """Return a stand-in for PyTorch by which `parki.torch` is imported, but not used."""
    torch, function = types.ModuleType("torch"), types.ModuleType("torch.autograd.function")
    torch.Tensor = type("Tensor", (), {})
    function.once_differentiable = lambda call: call
    torch.autograd = types.ModuleType("torch.autograd")
    torch.autograd.Function, torch.autograd.function = type("Function", (), {}), function
    return {"torch": torch, "torch.autograd": torch.autograd, "torch.autograd.function": function}


def imported(name):
    """Return a module; for `parki.torch` where there is no PyTorch, a stand-in is taken for it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if name != "parki.torch":
            raise
    before = dict(sys.modules)
    sys.modules.update(torch_standin())
    try:
        return importlib.import_module(name)
    finally:
        for other in ("parki.torch", "torch", "torch.autograd", "torch.autograd.function"):
            if other not in before:
                sys.modules.pop(other, None)


def exported():
    """Return the functions and classes of the public modules by their names there, and constants, too."""
    found = {}
    for name in MODULES:
        module = imported(name)
        found |= {f"{name}.{each}": getattr(module, each) for each in module.__all__}
    return {name: found[name] for name in found if not isinstance(found[name], types.ModuleType)}


def reached():
    """Return the classes that are reached, by their full names."""
    parts = {name: name.rpartition(".") for name in REACHED}
    return {name: getattr(importlib.import_module(module), each) for name, (module, _, each) in parts.items()}


def members(kind):
    """Return the public methods and properties of a class, and a call of its instances, that parki defines."""
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] == "parki":
            found |= {name: each for name, each in vars(base).items() if not name.startswith("_") or name == "__call__"}
    kinds = (types.FunctionType, classmethod, staticmethod, property)
    return {name: inspect.getattr_static(kind, name) for name, each in found.items() if isinstance(each, kinds)}


def documented():
    """Return everything that has a docstring of its own, by name: functions, classes and their members."""
    found = {name: each for name, each in (exported() | reached()).items() if callable(each)}
    for name, kind in list(found.items()):
        if inspect.isclass(kind):
            found |= {f"{name}.{each}": value for each, value in members(kind).items()}
    return found
