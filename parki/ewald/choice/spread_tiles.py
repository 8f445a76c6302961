"""Shapes of the tiles of grid points that teams own in spreading (`kernels/p2g_tile.py`), by the scratch of a team."""

import itertools
from functools import lru_cache

from parki.engine import kernel_constant

TZ = 8  # grid points of a tile along z
#: Rows that a thread owns and threads that are neighbours along y, by components: so many sums that arithmetic and not
#: loads bound a source's turn.
ROWS = {1: (4, 4), 2: (2, 4)}
SIDES = ((32, 32), (16, 32), (16, 16), (8, 16), (8, 8))  # grid points along x and y
MOST_THREADS = 256
MOST_SOURCES, LEAST_SOURCES = 32, 16  # in scratch
TILE = 9  # numbers that tell a tile
PIECE = 16  # bytes: pieces of scratch begin at multiples
TEAMS = 2  # of a multiprocessor, so that one has work while the other waits


@lru_cache(maxsize=64)
def tile(
    components: int, slopes: bool, moments: int, window: tuple[int, int], itemsize: int, limit: int
) -> dict[str, int]:
    """Return the slots of the largest tile that fits.

    Parameters
    ----------
    components
        Components of the grid of a right-hand side.
    slopes
        Whether sources take the slopes of the window.
    moments
        Numbers that a source spreads.
    window
        Its grid points per direction and its polynomial's degree.
    itemsize
        Bytes of a number.
    limit
        Bytes of scratch that a team may ask for.
    """
    rows, line = ROWS.get(components, (1, 8))
    for share, (tx, ty) in itertools.product((limit // TEAMS - PIECE * 64, limit), SIDES):
        if ty % (rows * line) or tx * ty // rows > MOST_THREADS:
            continue
        slots = {"TX": tx, "TY": ty, "TZ": TZ, "YT": rows, "LINE": line}
        sizes = {n: scratch_bytes(slots, components, slopes, moments, window, itemsize, n)
                 for n in range(MOST_SOURCES, LEAST_SOURCES - 1, -4)}  # fmt: skip
        fitting = [n for n, size in sizes.items() if size <= share]
        if fitting:
            return slots | {"CAP": fitting[0]}
    return slots | {"CAP": 4}


def scratch_bytes(
    slots: dict[str, int], components: int, slopes: bool, moments: int, window: tuple[int, int], itemsize: int, cap: int
) -> int:  # fmt: skip
    """Return the bytes of scratch of a team with `cap` sources, as the kernel file states them."""
    (P, degree), layers = window, 1 + slopes
    plane = 10 if slopes else components
    columns, candidates = (kernel_constant("p2g_tile", name) for name in ("COLUMNS", "CANDIDATES"))
    numbers = (
        components * slots["TX"] * slots["TY"] * slots["TZ"], cap * (slots["TY"] + slots["TZ"]) * layers,
        cap * P * plane, cap * moments, cap * 3, (degree + 1) * P * layers,
    )  # fmt: skip
    rows = slots["TX"] * slots["TY"] // slots["YT"] // kernel_constant("p2g_tile", "LANES")
    integers = (TILE, columns, columns, candidates, cap * 4, rows * cap)
    sizes = (*(itemsize * n for n in numbers), *(4 * n for n in integers))
    return sum(-(-size // PIECE) * PIECE for size in sizes)
