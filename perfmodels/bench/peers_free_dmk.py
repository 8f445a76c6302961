"""DMK for `parki bench peers-free`: a library given by its path, built without MPI, called through ctypes."""

import ctypes
import itertools
import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parki.perfmodels.bench.peers_free_sums import KAPPA, Array, PeerProgram, PeerSession, PeerSum

DMK_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
DMK_LEAVES = (100, 280)  # points of a leaf: of its scripts, and of its examples
YUKAWA, LAPLACE, STOKESLET = 0, 1, 3  # kernels
POTENTIAL, WITH_GRADIENT, VELOCITY = 1, 2, 4  # results
SILENCE = 6  # level of messages
ROOM = 1 + 1e-12  # side of a box over the extent of its points, which lie in [0, 1) of it
#: Sum → kernel, results, and the factor between its units and parki's.
DMK_SUMS = {
    PeerSum("coulomb"): (LAPLACE, POTENTIAL, 1.0),
    PeerSum("coulomb", gradient=True): (LAPLACE, WITH_GRADIENT, 1.0),
    PeerSum("yukawa"): (YUKAWA, POTENTIAL, 1.0),
    PeerSum("yukawa", gradient=True): (YUKAWA, WITH_GRADIENT, 1.0),
    PeerSum("stokes_sl"): (STOKESLET, VELOCITY, 2.0),
}


class Parameters(ctypes.Structure):
    """Parameters of a tree, in the order of ``pdmk_params`` of ``dmk.h``."""

    _fields_ = [
        ("n_dim", ctypes.c_int),
        ("eps", ctypes.c_double),
        ("kernel", ctypes.c_int),
        ("eval_src", ctypes.c_int),
        ("eval_trg", ctypes.c_int),
        ("fparam", ctypes.c_double),
        ("use_periodic", ctypes.c_int),
        ("n_per_leaf", ctypes.c_int),
        ("log_level", ctypes.c_int),
        ("debug_flags", ctypes.c_uint32),
        ("debug_params", ctypes.c_double * 8),
    ]


def refusal(library: ctypes.CDLL, failed: Callable[[Any], bool]) -> Callable[..., Any]:
    """Return an errcheck of ctypes that raises RuntimeError with the library's message if a result says so."""
    message = library.pdmk_last_error_message
    message.restype = ctypes.c_char_p

    def check(result: Any, function: Any, arguments: Any) -> Any:
        if failed(result):
            raise RuntimeError(f"{function.__name__} of DMK failed: {message().decode()}")
        return result

    return check


class DmkPeer(PeerProgram):
    """DMK, by its C interface; settings are the tolerance and the points of a leaf.

    Gradients come with potentials.
    """

    name = "DMK"

    def __init__(self, path: Path) -> None:
        self.library, handle, pointer = ctypes.CDLL(str(path)), ctypes.c_void_p, ctypes.c_void_p
        self.create, self.evaluate = self.library.pdmk_tree_create, self.library.pdmk_tree_eval
        self.update, self.destroy = self.library.pdmk_tree_update_charges, self.library.pdmk_tree_destroy
        count = ctypes.c_int
        self.create.restype, self.destroy.restype = handle, None
        self.create.argtypes = [pointer, Parameters, count, *[pointer] * 3, count, pointer]
        self.evaluate.argtypes = self.update.argtypes = [handle, pointer, pointer]
        self.destroy.argtypes = [handle]
        self.create.errcheck = refusal(self.library, operator.not_)
        self.evaluate.errcheck = self.update.errcheck = refusal(self.library, bool)

    def settings(self, sum_: PeerSum) -> Sequence[tuple[float, int]]:
        """Return tolerances and points of a leaf."""
        return list(itertools.product(DMK_TOLERANCES, DMK_LEAVES))

    def label(self, setting: tuple[float, int]) -> str:
        """Return a setting as text."""
        return "eps {:g}, leaf {}".format(*setting)

    def session(self, sum_: PeerSum, setting: tuple[float, int]) -> PeerSession:
        """Return a sum."""
        return _DmkSession(self, sum_, setting)


class _DmkSession(PeerSession):
    def __init__(self, program: DmkPeer, sum_: PeerSum, setting: tuple[float, int]) -> None:
        self.program, self.sum, (eps, leaf) = program, sum_, setting
        kernel, level, self.factor = DMK_SUMS[sum_]
        self.parameters = Parameters(
            n_dim=3, eps=eps, kernel=kernel, eval_src=level, eval_trg=level, n_per_leaf=leaf, log_level=SILENCE
        )
        self.tree: Any = None

    def points(self, x: Array, q: Array) -> Array:
        lowest = x.min(axis=1)
        side = ROOM * float((x.max(axis=1) - lowest).max())
        rows, strengths = np.ascontiguousarray((x.T - lowest) / side), np.ascontiguousarray(q.T)
        self.parameters.fparam, self.unit = KAPPA * side, side ** -(1 + self.sum.gradient)
        sides = (rows.ctypes.data, strengths.ctypes.data, None)
        self.tree, self.n = self.program.create(None, self.parameters, len(rows), *sides, 0, None), len(rows)
        return self._evaluated()

    def charges(self, q: Array) -> Array:
        strengths = np.ascontiguousarray(q.T)
        self.program.update(self.tree, strengths.ctypes.data, None)
        return self._evaluated()

    def _evaluated(self) -> Array:
        u = np.empty((self.n, 4 if self.sum.gradient else self.sum.results))
        self.program.evaluate(self.tree, u.ctypes.data, None)
        rows = u.T[1:] if self.sum.gradient else u.T
        return self.factor * self.unit * (rows if len(rows) > 1 else rows[0])

    def close(self) -> None:
        if self.tree is not None:
            self.program.destroy(self.tree)
        self.tree = None
