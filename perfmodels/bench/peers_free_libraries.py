"""Other programs for sums in free space that are built, not installed by pip, for `parki bench peers-free`.

They are given by the paths of their libraries: C interfaces called through ctypes, and a Python module of exafmm-t.
None of them is linked or copied here.
"""

import contextlib
import ctypes
import importlib.util
import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parki.perfmodels.bench.peers_free_sums import KAPPA, Array, PeerProgram, PeerSession, PeerSum

# BaryTree ------------------------------------------------------------------------------------------------------------
BARYTREE_KERNELS = {"coulomb": 1, "yukawa": 2}
BARYTREE_TRAVERSALS = {"particle-cluster": 1, "cluster-cluster": 3}
BARYTREE_SETTINGS = tuple((name, 0.7, degree, 500) for name in BARYTREE_TRAVERSALS for degree in (1, 2, 4, 6, 8, 10))
SKIPPING, LAGRANGE = 1, 1  # pairs at distance zero are left out; clusters are interpolated


class BaryTreePeer(PeerProgram):
    """BaryTree, by ``BaryTreeInterface``; settings are the traversal, θ, the degree, and the points of a leaf.

    Both traversals are compared with parki's dual one.
    """

    name, against = "BaryTree", "bldtt"

    def __init__(self, path: Path) -> None:
        self.library = ctypes.CDLL(str(path))
        _start_mpi(self.library)
        pointer, integer, real = ctypes.c_void_p, ctypes.c_int, ctypes.c_double
        self.interface = self.library.BaryTreeInterface
        self.interface.restype = None
        self.interface.argtypes = [integer, integer, *[pointer] * 10, integer, integer, pointer, *[integer] * 3]
        self.interface.argtypes += [real, integer, integer, integer, real, real, integer]

    def settings(self, sum_: PeerSum) -> Sequence[tuple[str, float, int, int]]:
        """Return settings of potentials."""
        return () if sum_.gradient or sum_.kernel not in BARYTREE_KERNELS else BARYTREE_SETTINGS

    def label(self, setting: tuple[str, float, int, int]) -> str:
        """Return a setting as text."""
        return "{}, θ {:g}, degree {}, leaf {}".format(*setting)

    def session(self, sum_: PeerSum, setting: tuple[str, float, int, int]) -> PeerSession:
        """Return a sum, all of which is done again for new charges."""
        return _BaryTreeSession(self, sum_, setting)


class _BaryTreeSession(PeerSession):
    keeps = False

    def __init__(self, program: BaryTreePeer, sum_: PeerSum, setting: tuple[str, float, int, int]) -> None:
        self.program, self.sum, self.setting = program, sum_, setting

    def points(self, x: Array, q: Array) -> Array:
        n, (traversal, theta, degree, leaf) = len(q), self.setting
        sides = [row.copy() for row in (*x, q, *x, q)]  # BaryTree puts targets and sources into order in place
        weights, u, parameters = np.ones(n), np.empty(n), np.array([KAPPA])
        arrays = [a.ctypes.data for a in (*sides, weights, u)]
        kernel = (BARYTREE_KERNELS[self.sum.kernel], len(self.sum.parameters), parameters.ctypes.data)
        codes = (SKIPPING, LAGRANGE, BARYTREE_TRAVERSALS[traversal])
        sizes = (theta, degree, leaf, leaf, 1.0, -1.0, 0)  # the last: approximate small clusters, tune nothing, silence
        with _silence():
            self.program.interface(n, n, *arrays, *kernel, *codes, *sizes)
        return u


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop the output of C code."""
    libc, output = ctypes.CDLL(None), os.dup(1)
    libc.fflush(None)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        libc.fflush(None)
        os.dup2(output, 1)
        os.close(output)
        os.close(nowhere)


def _start_mpi(library: ctypes.CDLL) -> None:
    """Start the MPI that a library is linked with, unless it runs."""
    running = ctypes.c_int()
    library.MPI_Initialized(ctypes.byref(running))
    if not running.value:
        library.MPI_Init(None, None)


# PVFMM ---------------------------------------------------------------------------------------------------------------
#: Sum → the number of PVFMM's kernel, the factor between its units and parki's, and orders.
PVFMM_SUMS = {
    PeerSum("coulomb"): (0, 4 * np.pi, (4, 6, 8, 10, 12)),
    PeerSum("coulomb", gradient=True): (1, -4 * np.pi, (4, 6, 8, 10, 12)),  # a field points down the potential
    PeerSum("stokes_sl"): (3, 8 * np.pi, (4, 6, 8, 10, 12)),
}
LEAVES = (150, 500)  # points of a leaf, of PVFMM and of exafmm-t
FEW = 1000  # points of a tree that takes the place of a large one


class OrderedPeer(PeerProgram):
    """A fast multipole method whose settings are the order and the points of a leaf."""

    def label(self, setting: tuple[int, int]) -> str:
        """Return the order and the points of a leaf as text."""
        return "order {}, leaf {}".format(*setting)


class PvfmmPeer(OrderedPeer):
    """PVFMM, by its C interface; settings are the order and the points of a leaf.

    Its gradients are sums of their own, without potentials.  Operators are computed before the clock starts.
    """

    name, alone = "PVFMM", True

    def __init__(self, path: Path) -> None:
        self.library, numbers = ctypes.CDLL(str(path)), ctypes.c_void_p
        self.folder = tempfile.TemporaryDirectory()
        create, evaluate = self.library.PVFMMCreateContextDWorld, self.library.PVFMMEvalD
        create.restype = numbers
        create.argtypes = [ctypes.c_double, ctypes.c_int, ctypes.c_int, ctypes.c_int]
        evaluate.restype, count = None, ctypes.c_long
        evaluate.argtypes = [numbers, numbers, numbers, count, numbers, numbers, count, numbers, ctypes.c_int]

    def settings(self, sum_: PeerSum) -> Sequence[tuple[int, int]]:
        """Return settings of its kernels."""
        return list(itertools.product(PVFMM_SUMS[sum_][2], LEAVES)) if sum_ in PVFMM_SUMS else ()

    def session(self, sum_: PeerSum, setting: tuple[int, int]) -> PeerSession:
        """Return a sum, with the operators of its order."""
        return _PvfmmSession(self, sum_, setting)


class _PvfmmSession(PeerSession):
    def __init__(self, program: PvfmmPeer, sum_: PeerSum, setting: tuple[int, int]) -> None:
        self.program, self.sum, (order, leaf) = program, sum_, setting
        kernel, self.factor, _ = PVFMM_SUMS[sum_]
        with _variable("PVFMM_DIR", program.folder.name):
            self.context = ctypes.c_void_p(program.library.PVFMMCreateContextDWorld(0.0, leaf, order, kernel))
        self.x = np.empty((0, 3))

    def points(self, x: Array, q: Array) -> Array:
        self.x = np.ascontiguousarray(x.T)
        return self._evaluated(q, 1)

    def charges(self, q: Array) -> Array:
        return self._evaluated(q, 0)

    def _evaluated(self, q: Array, setup: int) -> Array:
        n, x, strengths = len(self.x), self.x.ctypes.data, np.ascontiguousarray(q.T)
        u = np.empty((n, self.sum.results))
        context = self.context
        self.program.library.PVFMMEvalD(x, strengths.ctypes.data, None, n, x, u.ctypes.data, n, context, setup)
        return self.factor * (u.T if self.sum.results > 1 else u[:, 0])

    def close(self) -> None:
        # a context has no call that frees its tree
        if len(self.x) > FEW:
            self.x = self.x[:FEW].copy()
            self._evaluated(np.zeros((3, FEW) if self.sum.kernel == "stokes_sl" else FEW), 1)

    def __del__(self) -> None:
        self.program.library.PVFMMDestroyContextD(ctypes.byref(self.context))


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable for a while, unless a user has set it."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


# exafmm-t ------------------------------------------------------------------------------------------------------------
EXAFMM_MODULES = {"coulomb": "laplace", "yukawa": "modified_helmholtz"}
EXAFMM_ORDERS = (4, 6, 8, 10)


class ExafmmPeer(OrderedPeer):
    """exafmm-t, whose sums always have gradients; settings are the order and the points of a leaf.

    Operators are computed before the clock starts, and read from a file by each sum of new points.
    """

    name = "exafmm-t"

    def __init__(self, path: Path) -> None:
        spec = importlib.util.spec_from_file_location("exafmm", path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no module of Python")
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.folder = tempfile.TemporaryDirectory()

    def settings(self, sum_: PeerSum) -> Sequence[tuple[int, int]]:
        """Return settings of sums with gradients."""
        if not sum_.gradient or sum_.kernel not in EXAFMM_MODULES:
            return ()
        return list(itertools.product(EXAFMM_ORDERS, LEAVES))

    def session(self, sum_: PeerSum, setting: tuple[int, int]) -> PeerSession:
        """Return a sum, whose first call computes operators."""
        return _ExafmmSession(self, sum_, setting)


class _ExafmmSession(PeerSession):
    def __init__(self, program: ExafmmPeer, sum_: PeerSum, setting: tuple[int, int]) -> None:
        name, (order, leaf) = EXAFMM_MODULES[sum_.kernel], setting
        self.module, path = getattr(program.module, name), f"{program.folder.name}/{name}_{order}.dat"
        if name == "laplace":
            self.fmm = self.module.LaplaceFmm(order, leaf, path)
        else:
            self.fmm = self.module.ModifiedHelmholtzFmm(order, leaf, KAPPA, path)
        self.tree: Any = None

    def points(self, x: Array, q: Array) -> Array:
        rows = np.ascontiguousarray(x.T)
        sources, targets = self.module.init_sources(rows, q), self.module.init_targets(rows)
        self.tree = self.module.setup(sources, targets, self.fmm)
        return self._evaluated()

    def charges(self, q: Array) -> Array:
        self.module.update_charges(self.tree, q)
        self.module.clear_values(self.tree)
        return self._evaluated()

    def _evaluated(self) -> Array:
        return 4 * np.pi * self.module.evaluate(self.tree, self.fmm)[:, 1:].T

    def close(self) -> None:
        self.tree = None
