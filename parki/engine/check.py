"""Rules of the subset that need the whole workunit: who executes, barriers, scratch, scans."""

from collections.abc import Iterable

from parki.engine import ir
from parki.engine.errors import KernelError, Loc
from parki.engine.grammar import POLICY_ATTRIBUTES
from parki.engine.uniformity import lane_kinds
from parki.engine.walk import has_vector_range, is_lane_range, walk


def check(kernel: ir.Kernel) -> None:
    """Raise KernelError (K014, K016–K019) where `kernel` breaks a rule of the subset."""
    if kernel.policy == "team":
        _who_executes(kernel.body)
        _Barriers(kernel).sequence(kernel.body, {})
        _scratch(kernel)
    elif kernel.last is not None:
        _scan_effects(kernel.body, kernel.last)
    _stores(kernel)
    for node in walk(kernel.body):
        if isinstance(node, ir.Range) and node.kind == "scan":
            _scan_effects(node.body, node.last)


def _who_executes(body: Iterable[ir.Stmt], where: str = "team level", single: str = "pk.PerTeam(team)") -> None:
    """K014: stores at team level, and at thread level beside a vector range."""
    for s in body:
        if isinstance(s, ir.Store | ir.Atomic):
            raise KernelError("K014", s.loc, f"a store or atomic at {where}", f"Put it into pk.single({single}, …)")
        if isinstance(s, ir.If):
            _who_executes(s.then, where, single)
            _who_executes(s.orelse, where, single)
        elif isinstance(s, ir.For | ir.While):
            _who_executes(s.body, where, single)
        elif isinstance(s, ir.Range) and s.level == "team" and has_vector_range(s.body):
            _who_executes(s.body, "thread level beside a vector range", "pk.PerThread(team)")


class _Barriers:
    """K016: between accesses of one view in two team-level constructs, one of them writing, stands a barrier.

    The state maps a view to its accesses since the last barrier: (mode, place), mode being r, w or a(tomic).
    """

    def __init__(self, kernel: ir.Kernel) -> None:
        self.shared = {p.name for p in kernel.params if p.rank and p.written}
        self.shared |= {s.name for s in walk(kernel.body) if isinstance(s, ir.Scratch)}

    def sequence(self, body: Iterable[ir.Stmt], state: dict[str, set[tuple[str, Loc]]]) -> None:
        for s in body:
            if isinstance(s, ir.Barrier):
                state.clear()
            elif isinstance(s, ir.If):
                self.touch([s.cond], state)
                other = {view: set(v) for view, v in state.items()}
                self.sequence(s.then, state)
                self.sequence(s.orelse, other)
                for view, seen in other.items():
                    state.setdefault(view, set()).update(seen)
            elif isinstance(s, ir.For | ir.While):
                head = [s.start, s.stop] if isinstance(s, ir.For) else [s.cond]
                for _ in range(2):  # the second turn meets what the first one left
                    self.touch(head, state)
                    self.sequence(s.body, state)
            else:
                self.touch([s], state)

    def touch(self, nodes: list[ir.Expr | ir.Stmt], state: dict[str, set[tuple[str, Loc]]]) -> None:
        """One construct: compare its accesses with the earlier ones, then add them."""
        new = []
        for node in walk(nodes):
            mode = {ir.Load: "r", ir.Store: "w", ir.Atomic: "a"}.get(type(node))
            if mode is None or node.view not in self.shared:
                continue
            for other, place in state.get(node.view, ()):
                if other == mode and mode in "ra":
                    continue
                reason = f"no barrier between the accesses of '{node.view}' here and at line {place.line}"
                raise KernelError("K016", node.loc, reason, "Put team.team_barrier() between them")
            new.append((node.view, mode, node.loc))
        for view, mode, loc in new:
            state.setdefault(view, set()).add((mode, loc))


def _scratch(kernel: ir.Kernel) -> None:
    """K018: scratch needs the decorator, and argument names that a policy does not hide."""
    views = [s for s in walk(kernel.body) if isinstance(s, ir.Scratch)]
    if not views:
        return
    if len(kernel.scratch_size) < len(views):
        reason = f"{len(views)} scratch views, {len(kernel.scratch_size)} entries in @pk.workunit(scratch=[…])"
        raise KernelError("K018", views[0].loc, reason, "Give one (type, size) entry a view")
    for p in kernel.params:
        if p.name in POLICY_ATTRIBUTES:
            raise KernelError(
                "K018", p.loc, f"argument '{p.name}' is named like an attribute of the policy", "Rename it"
            )


def _scan_effects(body: Iterable[ir.Stmt], last: str | None) -> None:
    """K019: a scan's body may run twice, so its stores stand under ``if last:``."""
    for s in body:
        if isinstance(s, ir.Store | ir.Atomic):
            raise KernelError("K019", s.loc, "a scan body stores outside 'if last:'")
        if isinstance(s, ir.If):
            if not (isinstance(s.cond, ir.Name) and s.cond.name == last):
                _scan_effects(s.then, last)
            _scan_effects(s.orelse, last)
        elif isinstance(s, ir.For | ir.While):
            _scan_effects(s.body, last)


def _stores(kernel: ir.Kernel) -> None:
    """K017: a store whose index is the same for all lanes is a race."""
    ranges = [(n.body, n.index, n) for n in walk(kernel.body) if isinstance(n, ir.Range) and is_lane_range(n)]
    if kernel.policy == "range":
        ranges.append((kernel.body, kernel.index, kernel))
    for body, index, owner in ranges:
        serial = isinstance(owner, ir.Range) and owner.kind == "scan"
        kinds = lane_kinds(body, index)
        for node in walk(body):
            uniform = isinstance(node, ir.Store) and all(kinds.of(i) == 0 for i in node.indices)
            if uniform and not serial:
                reason = f"all lanes store to the same element of '{node.view}'"
                raise KernelError("K017", node.loc, reason, "Use a reduction, an atomic or pk.single")
