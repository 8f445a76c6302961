"""Rules of the subset that need the whole workunit: executing threads, barriers, scratch, scans, stores."""

from collections.abc import Iterable

from parki.engine.errors import KernelError, Loc
from parki.engine.text.grammar import POLICY_ATTRIBUTES
from parki.engine.tree import ir
from parki.engine.tree.uniformity import lane_kinds
from parki.engine.tree.walk import const_trip, has_vector_range, is_lane_range, walk


def check(kernel: ir.KernelTree) -> None:
    """Raise KernelError (K014, K016–K019) where `kernel` breaks a rule of the subset."""
    if kernel.policy == "team":
        _who_executes(kernel.body)
        _Barriers(kernel).sequence(kernel.body, frozenset(), _Exits())
        _scratch(kernel)
    elif kernel.last is not None:
        _scan_effects(kernel.body, kernel.last)
    _stores(kernel)
    for node in walk(kernel.body):
        if isinstance(node, ir.Range) and node.kind == "scan":
            _scan_effects(node.body, node.last)


def _who_executes(body: Iterable[ir.Stmt], place: str = "team level", single: str = "pk.PerTeam(team)") -> None:
    """Raise K014 for stores at team level, and at thread level beside a vector range."""
    for s in body:
        if isinstance(s, ir.Store | ir.Atomic):
            raise KernelError("K014", s.loc, f"a store or atomic at {place}", f"Put it into pk.single({single}, …)")
        if isinstance(s, ir.If):
            _who_executes(s.then, place, single)
            _who_executes(s.orelse, place, single)
        elif isinstance(s, ir.For | ir.While):
            _who_executes(s.body, place, single)
        elif isinstance(s, ir.Range) and s.level == "team" and has_vector_range(s.body):
            _who_executes(s.body, "thread level beside a vector range", "pk.PerThread(team)")


# Accesses since the last barrier on some path: view, mode (read, write or atomic), place.
_Accesses = frozenset[tuple[str, str, Loc]]
_MODES = {ir.Load: "read", ir.Store: "write", ir.Atomic: "atomic"}


class _Exits:
    """Accesses that reach the breaks and the continues of a loop's body; None: no path."""

    def __init__(self) -> None:
        self.breaks: _Accesses | None = None
        self.continues: _Accesses | None = None


class _Barriers:
    """Rule K016: a barrier between accesses of one view in two team-level constructs, unless all read or all update.

    The methods take the accesses before a piece of text and return the accesses after it, over all paths; None: no
    path.  An update is an atomic operation.
    """

    def __init__(self, kernel: ir.KernelTree) -> None:
        self.shared = {p.name for p in kernel.params if p.rank and p.written}
        self.shared |= {s.name for s in walk(kernel.body) if isinstance(s, ir.Scratch)}

    def sequence(self, body: Iterable[ir.Stmt], seen: _Accesses, exits: _Exits) -> _Accesses | None:
        """Follow statements in order; statements after an exit are not reached."""
        for s in body:
            match s:
                case ir.Barrier():
                    seen = frozenset()
                case ir.If():
                    seen = self.touch([s.cond], seen)
                    seen = _either(self.sequence(s.then, seen, exits), self.sequence(s.orelse, seen, exits))
                case ir.For() | ir.While():
                    seen = self.loop(s, seen)
                case ir.Break():
                    exits.breaks = _either(exits.breaks, seen)
                    return None
                case ir.Continue():
                    exits.continues = _either(exits.continues, seen)
                    return None
                case ir.Return():
                    return None
                case _:
                    seen = self.touch([s], seen)
            if seen is None:
                return None
        return seen

    def loop(self, s: ir.For | ir.While, seen: _Accesses) -> _Accesses | None:
        """Follow a loop; each turn meets the accesses before the loop or of an earlier turn."""
        head = seen
        while True:
            exits = _Exits()
            start = self.touch([s.cond], head) if isinstance(s, ir.While) else head
            end = _either(self.sequence(s.body, start, exits), exits.continues)
            if _either(seen, end) == head:
                break
            head = _either(seen, end)
        runs = isinstance(s, ir.For) and const_trip(s.start, s.stop, s.step)
        return _either(end if runs else start, exits.breaks)

    def touch(self, nodes: list[ir.Expr | ir.Stmt], seen: _Accesses) -> _Accesses:
        """Compare the accesses of one construct with the earlier ones, then add them."""
        new = {(n.view, _MODES[type(n)], n.loc) for n in walk(nodes) if type(n) in _MODES and n.view in self.shared}
        for view, mode, loc in sorted(new, key=lambda access: (access[2].line, access[2].col)):
            for place in (place for v, seen_mode, place in seen if v == view and not seen_mode == mode != "write"):
                reason = f"no barrier between the accesses of '{view}' here and at line {place.line}"
                raise KernelError("K016", loc, reason, "Put team.team_barrier() between them")
        return seen | new


def _either(a: _Accesses | None, b: _Accesses | None) -> _Accesses | None:
    """Return the accesses where two paths meet."""
    return b if a is None else a if b is None else a | b


def _scratch(kernel: ir.KernelTree) -> None:
    """Raise K018 for scratch without entries in the decorator, or with arguments that the policy hides."""
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
    """Raise K019 for stores of a scan's body outside ``if last:``, as the body may run twice."""
    for s in body:
        if isinstance(s, ir.Store | ir.Atomic):
            raise KernelError("K019", s.loc, "a scan body stores outside 'if last:'")
        if isinstance(s, ir.If):
            if not (isinstance(s.cond, ir.Name) and s.cond.name == last):
                _scan_effects(s.then, last)
            _scan_effects(s.orelse, last)
        elif isinstance(s, ir.For | ir.While):
            _scan_effects(s.body, last)


def _stores(kernel: ir.KernelTree) -> None:
    """Raise K017 for a store whose index is the same for all lanes, which is a race."""
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
