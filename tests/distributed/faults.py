"""Faults on one rank: calls that raise the same error on all ranks, after which a plan still works."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import parki
from parki.engine.errors import BuildError
from tests.distributed.free import FreeCase
from tests.distributed.shares import Case, far


class Unreadable:
    """An array whose owner's code fails when it is read."""

    def __array__(self, *given, **named):
        raise OSError("the caller's file is gone")


@dataclass
class Rank:
    """A rank with its plans and arrays; `bad` on the rank that is at fault."""

    comm: Any
    bad: bool
    case: Case | FreeCase
    plan: Any
    points: tuple
    q: np.ndarray
    combined: tuple  # a plan of a kernel with normals, and its arguments

    @classmethod
    def of(cls, comm, bad, case, to, source):
        (x, y), (q,) = case.of(to, source)
        other = replace(case, kernel="stokes_comb")
        points, strengths = other.of(to, source)
        return cls(comm, bad, case, case.plan(x, y, comm=comm), (x, y), q, (other.plan(*points, comm=comm), *strengths))

    def made(self, **options):
        """Make another plan, with options of this rank."""
        return self.case.plan(*self.points, comm=self.comm, **options)

    def moved(self, factor):
        """Move the plan: targets are multiplied by a factor, sources stay."""
        self.plan.move(targets=self.points[0] * factor, sources=self.points[1])

    def failing(self, error):
        """Sum two densities at once, for which the plan is not prepared; preparation fails on the bad rank."""

        def fails(*given):
            raise error

        method = self.plan.method
        if self.bad:
            object.__setattr__(method, "_steps", fails)
        try:
            self.plan(np.stack([self.q, self.q]))
        finally:
            method.__dict__.pop("_steps", None)

    def failing_move(self, error):
        """Move to fewer targets, which fails on the bad rank, and then back."""

        def fails(*given):
            raise error

        method, (x, y) = self.plan.method, self.points
        if self.bad:
            object.__setattr__(method, "_compile", fails)
        try:
            self.plan.move(targets=x[:, 1:].copy(), sources=y)
        finally:
            method.__dict__.pop("_compile", None)
            self.plan.move(targets=x, sources=y)

    def at_hand(self):
        """Ask for the error of a sum that the bad rank does not pass."""
        u = self.plan(self.q)
        self.plan.error(10, density=self.q, u=None if self.bad else u)

    def retired(self):
        """Call a plan that the bad rank has retired."""
        plan = self.made()
        if self.bad:
            plan.retire()
        plan(self.q)


def _normals(rank, some):
    plan, f, normals = rank.combined
    return plan(f, some if rank.bad else normals)


#: Part of the message and call of a rank, by the name of the fault.
FAULTS = {
    # Densities
    "values that are not finite": ("values that are NaN or infinite", lambda r: r.plan(r.q * np.nan if r.bad else r.q)),
    "a density too short": ("one value for each source", lambda r: r.plan(r.q[:-1] if r.bad else r.q)),
    "complex densities": ("density has dtype complex128", lambda r: r.plan(r.q.astype(complex) if r.bad else r.q)),
    "densities of another precision": (
        "density float32; expected one for all",
        lambda r: r.plan(r.q.astype("f4") if r.bad else r.q),
    ),
    "another number of right-hand sides": (
        "right-hand sides is 2 on rank",
        lambda r: r.plan(np.stack([r.q, r.q]) if r.bad else r.q),
    ),
    "text for a density": ("density has dtype <U7", lambda r: r.plan("charges" if r.bad else r.q)),
    "code of the caller that fails": ("the caller's file is gone", lambda r: r.plan(Unreadable() if r.bad else r.q)),
    "a masked density": ("density is a masked array", lambda r: r.plan(np.ma.masked_less(r.q, 0) if r.bad else r.q)),
    "missing normals": ("normals is missing", lambda r: _normals(r, None)),
    "normals that are not wanted": (
        "normals was given, but laplace takes none",
        lambda r: r.plan(r.q, r.points[1]) if r.bad else r.plan(r.q),
    ),
    "an out of another shape": (
        "out is a ndarray of shape (3,)",
        lambda r: r.plan(r.q, out=np.empty(3) if r.bad else None),
    ),
    # Calls
    "a move beside calls": (
        "call is 'move' on rank",
        lambda r: r.moved(1.0) if r.bad else r.plan(r.q),
    ),
    "an error beside calls": (
        "call is 'error' on rank",
        lambda r: r.plan.error(10, density=r.q) if r.bad else r.plan(r.q),
    ),
    "a move without points": ("found no points", lambda r: r.plan.move() if r.bad else r.moved(1.0)),
    "a move out of all bounds": (
        "targets has",
        lambda r: r.moved(np.inf if r.bad else 1.0),
    ),
    "a retired plan": ("this plan was retired", lambda r: r.retired()),
    "another sample of an error": ("n is 11 on rank", lambda r: r.plan.error(10 + r.bad, density=r.q)),
    "a sum at hand for an error": ("u is given is False on rank", lambda r: r.at_hand()),
    "entries that are too few for the plan's places": (
        "entries along this rank's sources",
        lambda r: r.plan.theirs(r.q[:-1] if r.bad else r.q),
    ),
    "a product of vectors that do not fit": ("cannot reshape", lambda r: r.plan.inner(r.q, r.q[:-1] if r.bad else r.q)),
    # Making plans
    "another tolerance": ("tolerance is '0.001' on rank", lambda r: r.made(tolerance=1e-3 if r.bad else 1e-6)),
    "a tolerance that is none": ("tolerance is -1.0", lambda r: r.made(tolerance=-1.0 if r.bad else 1e-6)),
    "a keyword that is none": ("unknown option 'speed'", lambda r: r.made(**({"speed": 2} if r.bad else {}))),
    "a box that is none": ("box is (1, 2)", lambda r: r.made(**({"box": (1, 2)} if r.bad else {}))),
    "another box": (
        "box is '(1.0, 1.3, 0.8001)' on rank",
        lambda r: r.made(**({"box": (1.0, 1.3, 0.8001)} if r.bad else {})),
    ),
    "another periodicity": (
        "periodicity is '(True, True, False)' on rank",
        lambda r: r.made(periodicity=2 if r.bad else 3),
    ),
    "another kind of space": (
        "space is 'sim' on rank",
        lambda r: r.made(execution_space="GpuSim" if r.bad else "Serial"),
    ),
    "a space that is not there": (
        "unknown execution space 'Abacus'",
        lambda r: r.made(execution_space="Abacus" if r.bad else "Serial"),
    ),
    "another dtype of points": (
        "dtype is 'float32' on rank",
        lambda r: r.case.plan(*(a.astype("f4" if r.bad else a.dtype) for a in r.points), comm=r.comm),
    ),
    "points of two dimensions": (
        "has shape (2,",
        lambda r: r.case.plan(*(a[:2] if r.bad else a for a in r.points), comm=r.comm),
    ),
    "targets that are the sources": (
        "targets are the sources is True on rank",
        lambda r: r.case.plan(r.points[0], r.points[0] if r.bad else r.points[1], comm=r.comm),
    ),
    "another kernel": (
        "kernel is 'laplace' on rank",
        lambda r: parki.direct.direct_sum("laplace" if r.bad else "biharmonic", *r.points, r.q, comm=r.comm),
    ),
    "another parameter of the kernel": (
        "kappa is 2.0 on rank",
        lambda r: replace(r.case, kernel="yukawa").plan(*r.points, comm=r.comm, kappa=1.0 + r.bad),
    ),
    "another method": (
        "call is 'parki.direct.plan' on rank",
        lambda r: parki.direct.plan("laplace", *r.points, comm=r.comm) if r.bad else r.made(),
    ),
    # Resources
    "no memory": ("no room", lambda r: r.failing(MemoryError("no room"))),
    "no compiler": ("no compiler", lambda r: r.failing(BuildError("no compiler"))),
}

OF_EWALD = ("a keyword that is none", "a box that is none", "another box", "another periodicity")
#: Faults in free space.
FREE_FAULTS = {name: fault for name, fault in FAULTS.items() if name not in OF_EWALD} | {
    "a box": ("sum in free space", lambda r: r.made(**({"box": (1, 1, 1)} if r.bad else {}))),
    "another size of leaves": ("leaf_size is '31' on rank", lambda r: r.made(leaf_size=31 if r.bad else 30)),
    "no memory": ("no room", lambda r: r.failing_move(MemoryError("no room"))),
    "no compiler": ("no compiler", lambda r: r.failing_move(BuildError("no compiler"))),
}


def check(rank, ranks, expected):
    """Cause all faults in turn; each must raise the same error on all ranks and leave the plan's sum right."""
    first = ranks.allgather(rank.bad)[0]  # if rank 0 is bad, messages name the ranks that differ from it
    for name, (text, fault) in (FREE_FAULTS if isinstance(rank.case, FreeCase) else FAULTS).items():
        with pytest.raises((ValueError, TypeError, RuntimeError, OSError, MemoryError)) as caught:
            fault(rank)
        told = ranks.allgather((caught.type, str(caught.value)))
        assert len(set(told)) == 1, (name, told)
        assert text in told[0][1] or (first and "as on rank 0" in told[0][1]), (name, told)
        u = np.concatenate(ranks.allgather(rank.plan(rank.q)))
        assert far(u, expected) < 1e-12, name


def accepted(rank, ranks, expected):
    """Check that one rank may pass arrays of other strides, byte order or flags."""
    wide = np.repeat(rank.q, 3)
    fixed = rank.q.copy()
    fixed.flags.writeable = False
    for q in (wide[::3], fixed, rank.q[::-1].copy()[::-1], rank.q.astype(rank.q.dtype.newbyteorder())):
        u = np.concatenate(ranks.allgather(rank.plan(q if rank.bad else rank.q)))
        assert far(u, expected) < 1e-12
    points = [np.asfortranarray(x) if rank.bad else x for x in rank.points]
    for x in points:
        x.flags.writeable = not rank.bad
    plan = rank.case.plan(*points, comm=rank.comm)
    assert far(np.concatenate(ranks.allgather(plan(rank.q))), expected) < 1e-12
