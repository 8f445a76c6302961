"""Objects with public names of parki (`docs/extensions/public.py`), for tests of their docstrings and of the site."""

import importlib
import importlib.util
import inspect
import sys
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _public():
    spec = importlib.util.spec_from_file_location("public", ROOT / "docs" / "extensions" / "public.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PUBLIC = _public()


def torch_standin():
    """Return modules with which `parki.torch` can be imported, but not used, without PyTorch."""
    torch, autograd = types.ModuleType("torch"), types.ModuleType("torch.autograd")
    torch.Tensor, torch.autograd = type("Tensor", (), {}), autograd
    autograd.Function = type("Function", (), {})
    return {"torch": torch, "torch.autograd": autograd}


def jax_standin():
    """Return modules with which `parki.jax` can be imported, but not used, without JAX."""
    jax = types.ModuleType("jax")
    jax.Array = type("Array", (), {})

    def custom_vjp(call, **given):
        call.defvjp = lambda *rules, **how: None
        return call

    jax.custom_vjp = custom_vjp
    return {"jax": jax}


STANDINS = {"parki.torch": torch_standin, "parki.jax": jax_standin}


def imported(name):
    """Return a module; `parki.torch` and `parki.jax` use a stand-in where their library is missing."""
    if name not in STANDINS or importlib.util.find_spec(name.partition(".")[2]):
        return importlib.import_module(name)
    standin = STANDINS[name]()
    before = set(sys.modules)
    sys.modules.update(standin)
    try:
        return importlib.import_module(name)
    finally:
        for other in (*standin, name, f"{name}_sum", f"{name}_methods"):
            if other not in before:
                sys.modules.pop(other, None)


def exported():
    """Return the objects that public modules offer, except modules, by full name."""
    found = {f"{name}.{each}": getattr(imported(name), each) for name in PUBLIC.MODULES for each in _all(name)}
    return {name: each for name, each in found.items() if not inspect.ismodule(each)}


def _all(name):
    return imported(name).__all__


def reached():
    """Return the classes listed as reached, by full name."""
    parts = {name: name.rpartition(".") for name in PUBLIC.REACHED}
    return {name: getattr(importlib.import_module(module), each) for name, (module, _, each) in parts.items()}


def documented():
    """Return all objects with their own docstring, one name each: functions, classes, and public members of classes."""
    top = {id(each): (name, each) for name, each in (exported() | reached()).items()}
    found = {name: each for name, each in top.values() if inspect.isclass(each) or inspect.isfunction(each)}
    for name, kind in list(found.items()):
        if inspect.isclass(kind):
            members = {each: inspect.getattr_static(kind, each) for each in PUBLIC.listed(kind)}
            found |= {f"{name}.{each}": getattr(member, "__func__", member) for each, member in members.items()}
    return found
