"""Many L0 programs as GPU text in one shared object, and a comparison of simulated launches with the interpreter."""

import ctypes

import numpy as np

from parki.engine import RangePolicy, TeamPolicy, prepare
from parki.engine.calls import sim
from parki.engine.compile import objects
from parki.engine.compile.compiler import target
from parki.engine.interpreter import launching
from parki.engine.run import gpusim
from parki.engine.run.spaces import Space
from parki.engine.text.specialise import L0
from parki.engine.workunit import Workunit
from tests.engine.host_batch import layouts

SPACES = (Space("GpuSim"), Space("GpuSim64"))
SHAPES = ((1, 1), (7, 1), (3, 4), (32, 2), (5, 16), (2, 32))  # team size, lanes


def compile_batch(programs, flags) -> list[Workunit]:
    """Return the programs as workunits whose simulated objects are loaded."""
    units = [Workunit(L0("work", p.text, "", "program.py", (), (), ())) for p in programs]
    shapes = [layouts(u, p.args) for u, p in zip(units, programs, strict=True)]
    head, parts = "", []
    for n, (unit, shape) in enumerate(zip(units, shapes, strict=True)):
        source = unit.gpu(shape).source
        head, begin, text = source.partition("struct pk_args {")
        parts.append(f"#define pk_run pk_run_{n}\nnamespace program_{n} {{\n{begin}{text}}}\n#undef pk_run\n")
    made = objects.Unit(
        "batch", "batch", "".join([head, *parts]), gpusim.HEADERS, target(), (*sim.FLAGS, "-DPK_WIDE=0", *flags)
    )
    library = ctypes.CDLL(str(objects.build(made)))
    for n, (unit, shape) in enumerate(zip(units, shapes, strict=True)):
        run = library[f"pk_run_{n}"]
        run.argtypes, run.restype = [ctypes.c_void_p, ctypes.c_void_p], None
        unit.objects[sim.key(shape)] = run
    return units


def disagreements(program, unit, n, same) -> list[str]:
    """Return the differences from the interpreter; `n` picks the space, and the block of a team policy."""
    expected = program.fresh_args()
    total = launching.run(unit.ir, league=program.league, args=expected)
    space, wrong = SPACES[n % len(SPACES)], []
    for team, lanes in (
        (SHAPES[n % len(SHAPES)], SHAPES[(n + 2) % len(SHAPES)]) if program.policy == "team" else ((0, 0),)
    ):
        args = program.fresh_args()
        policy = TeamPolicy(space, program.league, team, lanes) if team else RangePolicy(space, program.league)
        other = prepare(policy, unit, **args).run()
        names = [name for name in program.args if not same(np.asarray(args[name]), np.asarray(expected[name]))]
        names += ["total"] if total is not None and not same(np.asarray(other), np.asarray(total)) else []
        if names:
            shown = [f"{k}: found {args.get(k, other)!r}, expected {expected.get(k, total)!r}" for k in names]
            where = f"--- {space.name}, league {program.league}, team {team} × {lanes}"
            wrong.append("\n".join([where, *shown, program.text, repr(program.args)]))
    return wrong
