"""ESP, the Ewald sums of DMK, for `parki bench peers`: a library given by its path, built without MPI.

Potentials in double precision, with a plan that is made before; the cutoff is the fastest of a few for the tolerance.
"""

import ctypes
import operator
from collections.abc import Callable
from pathlib import Path

import numpy as np

from parki.perfmodels.bench.peers_free_dmk import LAPLACE, POTENTIAL, SILENCE, refusal

PERIODIC_DIRECTIONS = 3
UPSAMPLING = 1.35  # of the grid over the least one: the library's own
FLAGS = 1 << 1 | 1 << 2 | 1 << 3  # sources are pruned one by one, each pair is met once, cells are sorted: its own


class EspParameters(ctypes.Structure):
    """Parameters of a plan, in the order of ``pdmk_esp_params`` of ``dmk.h``."""

    _fields_ = [
        ("L", ctypes.c_double),
        ("r_c", ctypes.c_double),
        ("eps", ctypes.c_double),
        ("log_level", ctypes.c_int),
        ("kernel", ctypes.c_int),
        ("fparam", ctypes.c_double),
        ("n_dim", ctypes.c_int),
        ("eval_type", ctypes.c_int),
        ("sigma", ctypes.c_double),
        ("use_periodic", ctypes.c_int),
        ("freespace_pad", ctypes.c_double),
        ("esp_flags", ctypes.c_uint32),
        ("esp_bins", ctypes.c_int),
        ("esp_stile", ctypes.c_int),
    ]


class Esp:
    """The library at a path."""

    def __init__(self, path: Path) -> None:
        library, handle, pointer = ctypes.CDLL(str(path)), ctypes.c_void_p, ctypes.c_void_p
        self.create, self.evaluate, self.destroy = (
            library.pdmk_esp_plan_create, library.pdmk_esp_eval, library.pdmk_esp_plan_destroy,
        )  # fmt: skip
        self.create.restype, self.evaluate.restype, self.destroy.restype = handle, None, None
        self.create.argtypes = [pointer, EspParameters]
        self.evaluate.argtypes = [pointer, handle, ctypes.c_int, *[pointer] * 4]
        self.destroy.argtypes = [handle]
        self.create.errcheck = refusal(library, operator.not_)

    def potentials(self, side: float, q: np.ndarray, eps: float, cutoff: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function from points (3, n) of a cubic box to potentials (n,) of charges."""
        parameters = EspParameters(
            L=side, r_c=cutoff, eps=eps, log_level=SILENCE, kernel=LAPLACE, n_dim=PERIODIC_DIRECTIONS,
            eval_type=POTENTIAL, sigma=UPSAMPLING, use_periodic=1, esp_flags=FLAGS, esp_bins=2,
        )  # fmt: skip
        plan = _Plan(self, self.create(None, parameters))

        def run(x: np.ndarray) -> np.ndarray:
            rows, u = np.ascontiguousarray(x.T) - 0.5 * side, np.empty(len(q))
            self.evaluate(None, plan.handle, len(q), rows.ctypes.data, q.ctypes.data, None, u.ctypes.data)
            return u

        return run


class _Plan:
    """A plan of the library, which is freed with the last function that uses it."""

    def __init__(self, library: Esp, handle: int) -> None:
        self.library, self.handle = library, handle

    def __del__(self) -> None:
        self.library.destroy(self.handle)
