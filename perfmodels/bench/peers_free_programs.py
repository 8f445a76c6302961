"""Programs of `parki bench peers-free` that are here: FMM3D, which pip installs, and libraries given by their paths."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from parki.perfmodels.bench import free
from parki.perfmodels.bench.measure import Row, absent
from parki.perfmodels.bench.peers_free_dmk import DmkPeer
from parki.perfmodels.bench.peers_free_libraries import BaryTreePeer, ExafmmPeer, PvfmmPeer
from parki.perfmodels.bench.peers_free_sums import KAPPA, Array, PeerProgram, PeerSession, PeerSum

# FMM3D ---------------------------------------------------------------------------------------------------------------
FMM3D_PRECISIONS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)  # its errors are 30 to 500 times smaller


class Fmm3dPeer(PeerProgram):
    """FMM3D, whose setting is its precision; Yukawa sums are its Helmholtz sums of an imaginary wave number."""

    name = "FMM3D"

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def settings(self, sum_: PeerSum) -> Sequence[float]:
        """Return precisions."""
        return FMM3D_PRECISIONS

    def label(self, setting: float) -> str:
        """Return the precision as text."""
        return f"eps {setting:g}"

    def session(self, sum_: PeerSum, setting: float) -> PeerSession:
        """Return a sum, all of which is done again for new charges."""
        return _Fmm3dSession(self.module, sum_, setting)


class _Fmm3dSession(PeerSession):
    keeps = False

    def __init__(self, module: ModuleType, sum_: PeerSum, eps: float) -> None:
        self.module, self.sum, self.eps = module, sum_, eps

    def points(self, x: Array, q: Array) -> Array:
        options = {"eps": self.eps, "sources": x}
        if self.sum.kernel == "stokes_sl":
            return 8 * np.pi * self.module.stfmm3d(stoklet=q, ifppreg=1, **options).pot.reshape(x.shape)
        options["pg"] = 1 + self.sum.gradient
        if self.sum.kernel == "yukawa":
            result = self.module.hfmm3d(zk=1j * KAPPA, charges=q.astype(complex), **options)
        else:
            result = self.module.lfmm3d(charges=q, **options)
        return 4 * np.pi * (result.grad if self.sum.gradient else result.pot).real


# Programs that are here ----------------------------------------------------------------------------------------------
#: Name for ``--library`` → class, and the page with the instructions for building the library.
LIBRARIES: dict[str, tuple[Any, str]] = {
    "barytree": (BaryTreePeer, "https://github.com/Treecodes/BaryTree"),
    "dmk": (DmkPeer, "https://github.com/flatironinstitute/dmk"),
    "exafmm-t": (ExafmmPeer, "https://github.com/exafmm/exafmm-t"),
    "pvfmm": (PvfmmPeer, "https://github.com/dmalhotra/pvfmm"),
}


def programs(words: Sequence[str]) -> tuple[list[PeerProgram], list[Row]]:
    """Return the programs that are here, and a row on each other one that says how to get it.

    Parameters
    ----------
    words
        ``"NAME=PATH"`` of libraries.

    Raises
    ------
    ValueError
        For a name that is not in `LIBRARIES`, and a file that cannot be loaded.
    """
    paths, module = library_paths(words, tuple(LIBRARIES)), free.library()
    result: list[PeerProgram] = [] if module is None else [Fmm3dPeer(module)]
    rows = [absent(*free.ABSENT)] if module is None else []
    for name, (program, page) in LIBRARIES.items():
        if name not in paths:
            rows.append(absent(f"against {program.name}", advice(name, page)))
            continue
        result.append(loaded(name, program, paths[name]))
    return result, rows


def advice(name: str, page: str) -> str:
    """Return how to get a library."""
    return f"build {page}, then --library {name}=PATH"


def loaded(name: str, program: Callable[[Path], Any], path: Path) -> Any:
    """Return the program of a library; raise ValueError for a file that cannot be loaded."""
    try:
        return program(path)
    except (OSError, ImportError, AttributeError) as error:
        raise ValueError(f"--library {name} was given {str(path)!r}, which does not load: {error}") from error


def library_paths(words: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Return the paths of ``"NAME=PATH"`` by name; raise ValueError for a name that is not among `names`."""
    pairs = [word.partition("=") for word in words]
    for name, sign, path in pairs:
        if name not in names or not path:
            raise ValueError(
                f"--library was given {name + sign + path!r}; expected NAME=PATH with NAME one of {', '.join(names)}."
            )
    return {name: Path(path).expanduser().resolve() for name, _, path in pairs}
