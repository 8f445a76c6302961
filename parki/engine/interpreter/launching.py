"""Reference interpreter: one launch of a typed tree in plain Python, on tiny inputs, with every check on.

The interpreter defines the meaning of a kernel; the compiled engines are compared with it.  Nothing is fast here.
"""

import random

import numpy as np

from parki.engine.errors import Loc
from parki.engine.interpreter.memory import DTYPES, Array, Shadow, bind
from parki.engine.interpreter.values import Value, binary, cast, compare, fault, mathematics, typed, unary
from parki.engine.tree import ir

# Key of the environment for the team's rank; no name of a kernel can be equal to it.
LEAGUE_RANK = "team.league_rank()"
TEAM_CODE = 0
ITERATIONS = "another iteration of this range"
TEAMS = "another team"
CONSTRUCTS = "another team-level construct with no barrier between"

Env = dict[str, object]


def run(
    kernel: ir.KernelTree, *, league: int, team: int = 1, seed: int | None = None, args: dict[str, object]
) -> float | int | None:
    """Run one launch of `kernel`.

    Parameters
    ----------
    kernel : ir.KernelTree
        The typed tree; it is trusted to have passed the checks.
    league : int
        Number of iterations (policy ``range``) or of teams (policy ``team``).
    team : int
        Threads per team.  They bound the orders in which `seed` may run a team range; results do not depend on them.
    seed : int, optional
        Seed of the order in which iterations, teams and lanes run; without a seed, index order.  Scans always run in
        order.
    args : dict
        One entry per parameter: NumPy arrays (written views are changed in place) and scalars.

    Returns
    -------
    float or int or None
        The total of a reduction or scan over the league (summed in index order whatever the seed), else None.

    Raises
    ------
    CheckedFault
        The launch broke a rule: an index out of bounds, integer overflow or an undefined integer operation, scratch
        read before it was written, a store to a read-only view, a race.
    LaunchError
        The arguments do not fit the parameters.
    """
    with np.errstate(all="ignore"):
        return KernelRun(kernel, team, seed).run(league, bind(kernel, args))


class KernelRun:
    """Launch of a kernel: the orders drawn, and the watch over memory.

    `watch` has one [shadow, actor] per enclosing level of parallel work: the league; for a team policy the
    constructs since the last barrier; the ranges entered.
    """

    def __init__(self, kernel: ir.KernelTree, team: int, seed: int | None) -> None:
        self.kernel = kernel
        self.team = team
        self.random = None if seed is None else random.Random(seed)
        self.functions = {f.name: f for f in kernel.functions}
        self.watch: list[list] = []
        self.constructs = TEAM_CODE

    def run(self, league: int, env: Env) -> float | int | None:
        """Run all iterations or teams."""
        k = self.kernel
        if k.policy == "range":
            order = self.shuffled(0, league) if k.kind != "scan" else list(range(league))
            total = self.iterate(k.kind, order, k.body, env, k.index, k.acc, k.acc_type, k.last)
            return total.item() if isinstance(total, np.generic) else total
        teams = Shadow(TEAMS)
        for rank in self.shuffled(0, league):
            self.watch = [[teams, rank], [Shadow(CONSTRUCTS), TEAM_CODE]]
            self.block(k.body, {**env, LEAGUE_RANK: rank})
        return None

    # Parallel work ---------------------------------------------------------------------------------------------------
    def shuffled(self, begin: int, end: int) -> list[int]:
        """Return begin .. end - 1 in an order drawn from the seed, in index order without a seed."""
        order = list(range(begin, end))
        if self.random:
            self.random.shuffle(order)
        return order

    def interleaved(self, begin: int, end: int) -> list[int]:
        """Return begin .. end - 1 in an order of the team: each thread takes every team-th index, ascending."""
        order = list(range(begin, end))
        if self.random is None:
            return order
        threads = [t for t in (order[k :: self.team] for k in range(self.team)) if t]
        result = []
        while threads:
            thread = self.random.choice(threads)
            result.append(thread.pop(0))
            threads = [t for t in threads if t]
        return result

    def iterate(
        self,
        kind: str,
        order: list[int],
        body: tuple[ir.Stmt, ...],
        env: Env,
        index: str,
        acc: str | None,
        acc_type: str | None,
        last: str | None,
    ) -> Value | None:
        """Run `body` for each index of `order`; return the total of a reduction or scan.

        A reduction keeps the terms of each iteration and adds them in index order at the end.
        """
        total = None if kind == "for" else typed(0, acc_type, self.kernel.loc)
        terms: dict[int, list[Value]] = {}
        self.watch.append([Shadow(ITERATIONS), None])
        for i in order:
            self.watch[-1][1] = i
            # A copy: the body sees outer locals by value, and its own locals end with it.
            scope = {**env, index: i}
            if kind == "reduce":
                scope[acc] = terms[i] = []
            elif kind == "scan":
                scope |= {acc: total, last: True}
            self.block(body, scope)
            if kind == "scan":
                total = scope[acc]
        self.watch.pop()
        for i in sorted(terms):
            for term in terms[i]:
                total = binary("+", acc_type, total, term, self.kernel.loc)
        return total

    def construct(self, level: str) -> None:
        """Enter a team-level range or single, to which the next accesses belong."""
        if level == "team":
            self.constructs += 1
            self.watch[1][1] = self.constructs

    def leave(self, level: str) -> None:
        """Return to team-level code."""
        if level == "team":
            self.watch[1][1] = TEAM_CODE

    def touch(self, array: Array, index: tuple[int, ...], access: str, loc: Loc) -> None:
        """Record an access at every enclosing level of parallel work."""
        for shadow, actor in self.watch:
            shadow.touch(array, index, actor, access, loc)

    # Statements: each returns None, or "break", "continue" or "return" ------------------------------------------------
    def block(self, body: tuple[ir.Stmt, ...], env: Env) -> str | None:
        """Run statements until one of them leaves the block."""
        for stmt in body:
            exit_kind = self.STATEMENTS[type(stmt)](self, stmt, env)
            if exit_kind:
                return exit_kind
        return None

    def declare(self, s: ir.Declare, env: Env) -> None:
        """Set a local."""
        env[s.name] = self.value(s.value, env)

    def table(self, s: ir.Table, env: Env) -> None:
        """Make a constant table."""
        env[s.name] = Array(s.name, s.type, np.array(s.values, DTYPES[s.type]), writable=False)

    def scratch(self, s: ir.Scratch, env: Env) -> None:
        """Make a piece of scratch, which holds no values yet."""
        size = self.value(s.size, env)
        if size < 0:
            raise fault(s.loc, f"scratch view '{s.name}' has the negative size {size}")
        env[s.name] = Array(s.name, s.type, np.zeros(size, DTYPES[s.type]), True, np.zeros(size, bool))

    def assign(self, s: ir.Assign, env: Env) -> None:
        """Set or update a local."""
        value = self.value(s.value, env)
        env[s.name] = value if s.op == "=" else binary(s.op[:-1], s.value.type, env[s.name], value, s.loc)

    def store(self, s: ir.Store, env: Env) -> None:
        """Store or update an element."""
        array, index = self.element(s, env)
        value = self.value(s.value, env)
        if s.op != "=":
            self.touch(array, index, "read", s.loc)
            value = binary(s.op[:-1], s.value.type, array.read(index, s.loc), value, s.loc)
        self.touch(array, index, "write", s.loc)
        array.write(index, value, s.loc)

    def atomic(self, s: ir.Atomic, env: Env) -> None:
        """Update an element atomically."""
        array, index = self.element(s, env)
        old = self.updated(array, index, s, self.value(s.value, env))
        if s.result:
            env[s.result] = old

    def updated(self, array: Array, index: tuple[int, ...], s: ir.Atomic, value: Value) -> Value:
        """Update an element atomically; return the value before."""
        self.touch(array, index, "atomic", s.loc)
        old = array.read(index, s.loc)
        if s.op in ("max", "min"):
            new = value if compare(">" if s.op == "max" else "<", value, old) else old
        else:
            new = binary("+" if s.op == "add" else "-", s.value.type, old, value, s.loc)
        array.write(index, new, s.loc)
        return old

    def if_(self, s: ir.If, env: Env) -> str | None:
        """Run one side of a branch."""
        return self.block(s.then if self.value(s.cond, env) else s.orelse, env)

    def while_(self, s: ir.While, env: Env) -> str | None:
        """Run a loop while its condition holds."""
        while self.value(s.cond, env):
            exit_kind = self.block(s.body, env)
            if exit_kind in ("break", "return"):
                return exit_kind if exit_kind == "return" else None
        return None

    def for_(self, s: ir.For, env: Env) -> str | None:
        """Run a counted loop."""
        for i in range(self.value(s.start, env), self.value(s.stop, env), s.step):
            env[s.name] = i
            exit_kind = self.block(s.body, env)
            if exit_kind in ("break", "return"):
                return exit_kind if exit_kind == "return" else None
        return None

    def barrier(self, s: ir.Barrier, env: Env) -> None:
        """Begin another stretch between barriers."""
        self.watch[1][0] = Shadow(CONSTRUCTS)

    def accumulate(self, s: ir.Accumulate, env: Env) -> None:
        """Add a term of a sum."""
        value = self.value(s.value, env)
        if isinstance(env[s.name], list):
            env[s.name].append(value)
        else:
            env[s.name] = binary("+", s.value.type, env[s.name], value, s.loc)

    def range_(self, s: ir.Range, env: Env) -> None:
        """Run a nested range."""
        bounds = self.value(s.begin, env), self.value(s.end, env)
        if s.kind == "scan":
            order = list(range(*bounds))
        else:
            order = self.interleaved(*bounds) if s.level == "team" else self.shuffled(*bounds)
        self.construct(s.level)
        total = self.iterate(s.kind, order, s.body, env, s.index, s.acc, s.acc_type, s.last)
        self.leave(s.level)
        if s.result:
            env[s.result] = total

    def single(self, s: ir.Single, env: Env) -> None:
        """Run a body once."""
        self.construct(s.level)
        self.block(s.body, dict(env))
        self.leave(s.level)

    STATEMENTS = {  # noqa: RUF012
        ir.Declare: declare,
        ir.Table: table,
        ir.Scratch: scratch,
        ir.Assign: assign,
        ir.Store: store,
        ir.Atomic: atomic,
        ir.If: if_,
        ir.While: while_,
        ir.For: for_,
        ir.Break: lambda self, s, env: "break",
        ir.Continue: lambda self, s, env: "continue",
        ir.Return: lambda self, s, env: "return",
        ir.Barrier: barrier,
        ir.Accumulate: accumulate,
        ir.Range: range_,
        ir.Single: single,
    }

    # Expressions -----------------------------------------------------------------------------------------------------
    def value(self, e: ir.Expr, env: Env) -> Value:
        """Evaluate an expression."""
        return self.EXPRESSIONS[type(e)](self, e, env)

    def element(self, s: ir.Load | ir.Store | ir.Atomic, env: Env) -> tuple[Array, tuple[int, ...]]:
        """Find the array and the checked index that a load, store or atomic names."""
        array: Array = env[s.view]
        return array, array.locate(s.indices, [self.value(e, env) for e in s.indices], s.loc)

    def load(self, e: ir.Load, env: Env) -> Value:
        """Return an element."""
        array, index = self.element(e, env)
        self.touch(array, index, "read", e.loc)
        return array.read(index, e.loc)

    def boolean(self, e: ir.Bool, env: Env) -> bool:
        """Return conditions joined by ``and`` or ``or``."""
        reduction = all if e.op == "and" else any
        return reduction(self.value(a, env) for a in e.args)

    def call(self, e: ir.FunctionCall, env: Env) -> Value:
        """Return the value of a function."""
        f = self.functions[e.name]
        scope = {name: self.value(a, env) for (name, _), a in zip(f.params, e.args, strict=True)}
        *body, last = f.body
        self.block(tuple(body), scope)
        return self.value(last.value, scope)

    EXPRESSIONS = {  # noqa: RUF012
        ir.Const: lambda self, e, env: typed(e.value, e.type, e.loc),
        ir.Name: lambda self, e, env: env[e.name],
        ir.Load: load,
        ir.Unary: lambda self, e, env: unary(e.op, e.type, self.value(e.arg, env), e.loc),
        ir.Binary: lambda self, e, env: binary(e.op, e.type, self.value(e.left, env), self.value(e.right, env), e.loc),
        ir.Compare: lambda self, e, env: compare(e.op, self.value(e.left, env), self.value(e.right, env)),
        ir.Bool: boolean,
        ir.FunctionCall: call,
        ir.Math: lambda self, e, env: mathematics(e.name, e.type, [self.value(a, env) for a in e.args]),
        ir.Cast: lambda self, e, env: cast(self.value(e.arg, env), e.type, e.loc),
        ir.Extent: lambda self, e, env: env[e.view].data.shape[e.dim],
        ir.LeagueRank: lambda self, e, env: env[LEAGUE_RANK],
    }
