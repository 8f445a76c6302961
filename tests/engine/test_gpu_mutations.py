"""Kernels without one of their barriers: the checker refuses them, and the simulator finds the race."""

import re
from dataclasses import replace

import numpy as np
import pytest

from parki import engine
from parki.engine import KernelError, TeamPolicy
from parki.engine.calls import sim
from parki.engine.compile import objects
from parki.engine.run import gpusim
from parki.engine.text.specialise import L0
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from parki.engine.workunit import Workunit
from tests.engine import kernel_cases as cases

BARRIER = re.compile(r"PK_BARRIER\(\d+\);")
SEEDS = range(4)


def one_a_workunit():
    """Return the case of each team workunit with the most slots."""
    chosen = {}
    for case, real in cases.ALL.values():
        if real == "double" and (case.workunit not in chosen or len(case.slots) > len(chosen[case.workunit].slots)):
            chosen[case.workunit] = case
    return chosen


NAMES = [n for n, c in one_a_workunit().items() if c.unit("double").ir.policy == "team"]


def mutants(case):
    """Return the workunit, its layouts, and for each barrier the object compiled without that barrier."""
    unit = case.unit("double")
    layouts = unit.default_layouts()
    source = unit.gpu(layouts).source
    made = sim.unit(unit, layouts)
    found = [m.span() for m in BARRIER.finditer(source)]
    paths = objects.build_many(replace(made, source=source[:a] + source[b:]) for a, b in found)
    return unit, layouts, [(source[a:b], path) for (a, b), path in zip(found, paths, strict=True)]


def run(case, unit, seed, monkeypatch):
    monkeypatch.setenv("PARKI_SIM_SEED", str(seed))
    args = case.fresh()
    engine.prepare(TeamPolicy("GpuSim", case.league, 48), unit, **args).run()
    return [args[p.name] for p in unit.ir.params if p.written]


def noticed(case, unit, monkeypatch, expected):
    for seed in SEEDS:
        try:
            found = run(case, unit, seed, monkeypatch)
        except gpusim.GpuFault as fault:
            return str(fault)
        if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in zip(found, expected, strict=True)):
            return "another result"
    return None


def survivors(name, monkeypatch):
    case = one_a_workunit()[name]
    unit, layouts, made = mutants(case)
    expected = run(case, unit, 0, monkeypatch) if made else []
    wrong = []
    for text, path in made:
        fresh = Workunit(L0(**{k: getattr(unit.l0, k) for k in unit.l0.__dataclass_fields__}))
        fresh.objects[sim.key(layouts)] = sim.entry(path)
        if noticed(case, fresh, monkeypatch, expected) is None:
            site = int(text[len("PK_BARRIER(") : -2])
            wrong.append(str(unit.gpu(layouts).sites[site - 1][1]))
    return made, wrong


def unguarded(unit):
    """Return the lines of the barriers of an L0 text that the checker lets go without an error."""
    lines = unit.l0.text.splitlines(keepends=True)
    found = []
    for n, line in enumerate(lines):
        if line.strip() == "team.team_barrier()":
            left = "".join([*lines[:n], line.replace("team.team_barrier()", "pass"), *lines[n + 1 :]])
            try:
                check(parse(left, unit.l0.linemap, unit.l0.filename))
            except KernelError as error:
                if "K016" not in str(error):
                    raise
            else:
                found.append(f"{unit.l0.name}: line {n + 1}")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_checker_asks_for_every_barrier(name):
    """Check all barriers for all indices, which the checker does not evaluate."""
    assert unguarded(one_a_workunit()[name].unit("double")) == []


@pytest.mark.parametrize("name", ["p2p_sm_1d", "p2g_hybrid"])
def test_the_simulator_finds_every_barrier(name, monkeypatch):
    made, wrong = survivors(name, monkeypatch)
    assert len(made) >= 2
    assert wrong == []
