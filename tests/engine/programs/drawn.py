"""Valid L0 programs with arguments, drawn from the grammar of the subset.

A drawn program breaks no rule of the subset: no race, nothing out of bounds, no overflow, barriers where they are
needed.  Without `libm` all results are determined to the bit, for any order of iterations (in engines that neither
contract ``a * b + c`` nor approximate ``sqrt`` and ``/``).
"""

import random
from dataclasses import replace

from tests.engine.programs.expressions import REALS, Context, Var
from tests.engine.programs.program import Program, write
from tests.engine.programs.teams import Teams

POLICIES = ("range", "reduce", "scan", "team")
LEAGUES = [0, 1, 2, 3, 5, 8, 9, 17, 33]


def random_program(seed: int, libm: bool = False, policies: tuple[str, ...] = POLICIES) -> Program:
    """Return the program of a seed; `libm` admits exp, sin, …, whose last bits depend on the library."""
    source = random.Random(seed)
    policy = source.choice(policies)
    writer = _Writer(source, source.choice(REALS), libm)
    return writer.team_program() if policy == "team" else writer.range_program(policy)


def random_programs(count: int, seed: int, **options) -> list[Program]:
    """Return the first programs of a series."""
    return [random_program(seed * 1_000_000 + k, **options) for k in range(count)]


class _Writer(Teams):
    """Generator of whole files."""

    def finish(self, functions, first, body, policy: str, league: int, acc: str | None = None, scratch=()) -> Program:
        docstring = ['"""Drawn."""'] if self.number(0, 9) == 0 else []
        signature = ", ".join([*first, *self.params])
        text = write(signature, docstring + body, functions, ", ".join(scratch))
        return Program(text, policy, league, self.args, tuple(self.written), acc)

    def team_program(self) -> Program:
        functions, league = self.functions_(), self.number(1, 3)
        body, scratch = self.team_body(league)
        return self.finish(functions, ["team: pk.TeamMember"], body, "team", league, scratch=scratch)

    def range_program(self, kind: str) -> Program:
        """Return a program whose `kind` is ``range``, ``reduce`` or ``scan``."""
        functions, league, ctx, before = self.functions_(), self.pick(LEAGUES), Context(), []
        self.inputs(ctx)
        ctx.vars.append(Var("i", "int32", 0, max(league - 1, 0)))
        outputs = []
        for _ in range(self.number(1, 3)):
            element = self.pick([self.real, self.real, "int32", "int64", "uint8"])
            outputs.append(self.own(element, league, before))
        acc = self.pick(["int32", "int64", self.real]) if kind != "range" else None
        first = ["i: int"] + ([f"acc: pk.Acc[pk.{acc}]"] if acc else []) + (["last: bool"] if kind == "scan" else [])
        if kind == "scan":
            body = before + self.scan_body(ctx, outputs, acc, "acc", "last")
        else:
            counters = self.counters()
            ctx = replace(ctx, targets=outputs, counters=counters, acc=("acc", acc) if acc else None, returnable=True)
            body = before + self.digested(ctx, 6) + self.store(ctx) + (self.accumulate(ctx) if acc else [])
        return self.finish(functions, first, body, "range", league, acc)

    def own(self, kind: str, league: int, before: list[str]):
        """Add an output of which iteration i owns one element, row or column; return the owned region."""
        how, n, most = self.number(0, 5), self.number(1, 4), max(league, 1)
        if how == 0:
            return self.output(kind, (league, n), (("i", 0), ("{}", n)))
        if how == 1:
            return self.output(kind, (n, league), (("{}", n), ("i", 0)))
        if how == 2:
            factor = self.number(2, 3)
            return self.output(kind, (factor * league + n,), ((f"{factor} * i + {n - 1}", 0),))
        if how == 3:
            return self.output(kind, (most,), ((f"{most - 1} - i", 0),))
        if how == 4:
            name, at = self.array("int32", (league,)), self.fresh("n")
            self.args[name][:] = self.rng.permutation(league)
            before.append(f"{at}: int = {name}[i]")
            return self.output(kind, (league,), ((at, 0),))
        return self.output(kind, (league,), (("i", 0),))
