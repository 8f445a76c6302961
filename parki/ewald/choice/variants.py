"""Variants of the kernels of a sum, and their shapes: named by the options, or defaults of the space."""

import math
from dataclasses import dataclass, replace

import numpy as np

from parki.engine import MAX_TEAM, Space, target
from parki.ewald.choice import gather_tiles
from parki.ewald.choice.params import Parameters
from parki.ewald.options import EwaldOptions, named

MOST_LANES = 32  # lanes, at most, that share a target in the 2D variants
LANES = 8  # threads that share the taps of a window; most windows are 6 to 12 points wide

# Default variants.  On a host a batch of targets is one vector, and numbers of threads have no meaning.
HOST_DEFAULTS = {"p2p": "LIST", "p2g": "BLOCK", "g2p": "TARGET"}
DEVICE_DEFAULTS = {"p2p": "LIST-2D", "p2g": "TILE", "g2p": "TILE"}
# On GPUs: targets of a near-field batch in a warp of 32, and lanes that share each; threads that spread and that
# interpolate.  In wider warps a batch has as many more targets, unless each has a warp of lanes.
P2P_SHAPES = {
    "LIST": (32, 1),
    "LIST-2D": (16, 32),
    "GM-1D": (32, 1),
    "GM-2D": (8, 4),
    "SM-1D": (64, 1),
    "SM-2D": (16, 4),
}
P2G_THREADS = 128
TILE_THREADS = 256
G2P_THREADS = 128
ENOUGH = 64 << 10  # bytes of scratch that serve a team
SYSTEM = 1 << 10  # bytes of scratch of each team that the system takes
# Time of a pair over that of `laplace` from which a list for each target pays on GPUs, by the bounds of machine code
# (tests/perfmodels/test_near_instructions.py), and the near field of lighter pairs.
HEAVY, LIGHT_P2P = 1.5, "GM-1D"


@dataclass(frozen=True)
class Variants:
    """Variants of one sum.

    Attributes
    ----------
    p2p, p2g, g2p : str
        Names of variants, as in `EwaldOptions`.
    targets, lanes : int
        Targets of a near-field batch, and lanes that share each of them in the 2D variants.
    p2g_threads, g2p_threads : int
        Threads of a team for spreading, and for interpolation.
    scratch : int
        Bytes of scratch that a team may ask for.
    once : bool
        Whether LIST meets each pair once, where targets are the sources: by half lists.
    """

    p2p: str
    p2g: str
    g2p: str
    targets: int
    lanes: int
    p2g_threads: int = P2G_THREADS
    g2p_threads: int = G2P_THREADS
    scratch: int = 64 << 10
    once: bool = False

    def tile(self, p: Parameters) -> gather_tiles.Tile | None:
        """Return the tile of interpolation, None if none fits in scratch."""
        kernel, scratch = p.kernel, _of_team(self.scratch)
        return gather_tiles.best(
            p.P, p.itemsizes[1], kernel.result // kernel.fields, kernel.gather != "values", scratch
        )


def defaults(space: Space) -> dict[str, str]:
    """Return the default variants of this space by kernel."""
    return space.pick(HOST_DEFAULTS, DEVICE_DEFAULTS)


def choose(
    space: Space, dtype: str, options: EwaldOptions | None = None, p: Parameters | None = None,
    n_targets: int | None = None, scratch: int | None = None,
) -> Variants:  # fmt: skip
    """Return the variants that the options name, and the defaults of the space for the rest, on GPUs those of a kernel.

    For the parameters of a sum and its number of targets, TARGET takes the place of TILE where that cannot work, and
    of a default where few targets share a tile.  A block may have `scratch` bytes, by default those of the device.

    Raises
    ------
    ValueError
        For numbers of threads that a block on a GPU cannot have.
    """
    names = dict(defaults(space))
    if p is not None and p.kernel.near < HEAVY and not space.native:
        names["p2p"] = LIGHT_P2P
    sizes = {}
    if options is not None:
        names |= {kernel: v for kernel in names if named(v := getattr(options, f"{kernel}_method"))}
        counts = ("p2p_threads_x", "p2p_threads_y", "p2g_threads", "g2p_threads")
        sizes = {name: int(n) for name in counts if named(n := getattr(options, name))}
    if space.native:
        vector = max(4, target().vector_bytes // np.dtype(dtype).itemsize)
        v = Variants(**names, targets=vector, lanes=vector, scratch=space.scratch)
        return _interpolating(v, options, p, n_targets)
    targets, lanes = _block(names["p2p"], sizes, max(1, space.warp // 32))
    for name in ("p2g_threads", "g2p_threads"):
        if sizes.get(name, 1) > MAX_TEAM:
            raise ValueError(f"{name} is {sizes[name]}; expected at most {MAX_TEAM}, the threads of a block.")
    rest = {name: sizes[name] for name in ("p2g_threads", "g2p_threads") if name in sizes}
    if names["p2g"] == "TILE":
        rest.setdefault("p2g_threads", TILE_THREADS)
    v = Variants(**names, targets=targets, lanes=lanes, scratch=scratch or space.scratch, **rest)
    return _interpolating(v, options, p, n_targets)


def _of_team(limit: int) -> int:
    """Return the bytes of scratch of a team: half of the limit where that is much, so that one loads while one sums."""
    half = limit // 2 - SYSTEM
    return half if half >= ENOUGH else limit


def _interpolating(
    v: Variants, options: EwaldOptions | None, p: Parameters | None, n_targets: int | None
) -> Variants:  # fmt: skip
    """Return variants with TARGET instead of TILE where no tile works or pays: cells of targets are not of lattices."""
    if v.g2p != "TILE" or p is None:
        return v
    tile = None if p.skew is not None else v.tile(p)
    is_taken = n_targets is None or (options is not None and named(options.g2p_method))
    if tile is not None and (is_taken or gather_tiles.pays(tile, n_targets / math.prod(p.grid))):
        return v
    return replace(v, g2p="TARGET")


def _block(p2p: str, sizes: dict[str, int], wide: int) -> tuple[int, int]:
    """Return targets and lanes of a near-field team, in warps of `wide` times 32 threads."""
    targets, lanes = P2P_SHAPES[p2p]
    targets = sizes.get("p2p_threads_x", targets * (wide if lanes < MOST_LANES else 1))
    if p2p.endswith("2D"):
        threads = sizes.get("p2p_threads_y")
        if threads is not None and threads not in (1, 2, 4, 8, 16, 32):
            raise ValueError(
                f"p2p_threads_y is {threads}; expected a power of two up to {MOST_LANES}, lanes of a warp."
            )
        while threads is None and lanes > 1 and targets * lanes > MAX_TEAM:
            lanes //= 2
        lanes = threads or lanes
    if targets * lanes > MAX_TEAM:
        block = f"p2p_threads_x is {targets}" + (f" and p2p_threads_y is {lanes}" if lanes > 1 else "")
        raise ValueError(f"{block}; expected a product of at most {MAX_TEAM}, the threads of a block.")
    return targets, lanes


def lane_rows(threads: int, lanes: int = LANES) -> tuple[int, int]:
    """Return the number of whole rows of lanes in `threads`, and the lanes of a row, at most as many as given."""
    while lanes > threads:
        lanes //= 2
    return threads // lanes, lanes
