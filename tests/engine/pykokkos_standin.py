"""Stand-in for PyKokkos that records launches, runs range policies as plain Python, and has a front end."""

import ast
import enum
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

from parki import engine

SUM = """
import pykokkos as pk
real = pk.double

@pk.workunit
def total(i: int, acc: pk.Acc[real], x: pk.View1D[real], scale: real, even: bool):
    if even or i > 2:
        acc += scale * x[i]

@pk.workunit
def running(i: int, acc: pk.Acc[pk.int32], last: bool, n: pk.View1D[pk.int32], out: pk.View1D[pk.int32]):
    if last:
        out[i] = acc
    acc += n[i]

@pk.workunit
def roots(i: int, x: pk.View1D[real], y: pk.View1D[real]):
    y[i] = 2.0 / pk.rsqrt(x[i] * pk.rsqrt(x[i]))

@pk.workunit
def rest(i: int, x: pk.View2D[real], out: pk.View1D[pk.int32]):
    out[i] = x.extent(0) - i * x.extent(1)

@pk.workunit
def whole(i: int, x: pk.View1D[real], a: real):
    x[i] = real(int(a)) - a + x[i]

@pk.workunit
def unlucky(i: int, x: pk.View1D[real], policy: int):
    x[i] = real(policy)
"""


class Generic:
    """Stand-in for pk.View1D and similar types: ``View1D[pk.double]``."""

    def __class_getitem__(cls, item):
        return cls


class StandIn(ModuleType):
    """Part of pykokkos that L0 files and the adapter use; `launches` has (kind, policy, function, arguments)."""

    def __init__(self):
        super().__init__("pykokkos")
        self.launches, self.fails, self.result = [], None, 0
        self.ExecutionSpace = enum.Enum("ExecutionSpace", {n: n for n in ("Serial", "OpenMP", "Cuda", "HIP")})
        self.TeamMember = self.double = self.float = self.int32 = self.int64 = self.uint8 = object
        self.Acc = Generic
        for n in range(1, 5):
            setattr(self, f"View{n}D", Generic)
        self.sqrt, self.rsqrt = np.sqrt, lambda x: 1 / np.sqrt(x)
        self.function = lambda f: f

    def workunit(self, f=None, *, scratch=None):
        if f is None:
            return lambda g: self.workunit(g, scratch=scratch)
        if scratch is not None:
            f._pk_scratch = scratch
        return f

    def RangePolicy(self, space, begin, end):
        return SimpleNamespace(kind="range", space=space, begin=begin, end=end)

    def TeamPolicy(self, space, league, team, vector):
        return SimpleNamespace(kind="team", space=space, league=league, team=team, vector=vector)

    def _launch(self, kind, policy, function, args):
        self.launches.append((kind, policy, function, args))
        if self.fails:
            self.fails()
        if kind == "for" and policy.kind == "range":
            for i in range(policy.begin, policy.end):
                function(i, **args)
        return self.result

    def parallel_for(self, policy, function, **args):
        self._launch("for", policy, function, args)

    def parallel_reduce(self, policy, function, **args):
        return self._launch("reduce", policy, function, args)

    def parallel_scan(self, policy, function, **args):
        return self._launch("scan", policy, function, args)


def modules(pk):
    """Return `sys.modules` entries for a front end that returns the names of its inputs, or calls `fails`."""

    class Translator:
        add_parent_refs = staticmethod(lambda tree: tree)

        def __init__(self, module, functor, cast, members):
            self.members = members

        def translate(self, entity, classes, restricted):
            if pk.fails:
                pk.fails()
            return [ast.unparse(entity.AST).split("\n")[0], self.members.of], ["bindings"], ["casts"]

    class Members:
        def extract(self, entity, classes):
            self.of = f"members of {entity.path.name}"

    class Parser:
        def __init__(self, path):
            self.path = Path(path)

        def get_entity(self, name):
            tree = ast.parse(self.path.read_text("utf-8"))
            return SimpleNamespace(AST=next(n for n in tree.body if getattr(n, "name", "") == name), path=self.path)

        def get_classtypes(self):
            return []

    return {
        "pykokkos": pk,
        "pykokkos.core": SimpleNamespace(),
        "pykokkos.core.parsers": SimpleNamespace(Parser=Parser),
        "pykokkos.core.translators": SimpleNamespace(StaticTranslator=Translator, PyKokkosMembers=Members),
    }


def prepare(policy, unit, args):
    """Prepare a launch through PyKokkos."""
    policy.space = replace(policy.space, engine="pykokkos")
    return engine.prepare(policy, unit, **args)


def gather(n=4):
    """Return a workunit and its arguments."""
    x, order = np.arange(3.0 * n).reshape(3, n), np.arange(n, dtype=np.int32)[::-1].copy()
    return engine.kernel("cells", "gather_points"), {"x": x, "order": order, "out": np.zeros((3, n))}
