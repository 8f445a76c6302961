"""Small problems for the workunits, and the specialisations of these."""

import itertools
import math

import numpy as np
import pytest

from tests.catalogue import PAIRS

BOX = (1.0, 1.3, 0.8)
CELLS = (3, 4, 5)
P, DEGREE, TERMS, RC = 4, 3, 4, 0.9
MULTIPLIERS = {"scalar": (1, 1), "divergence": (3, 1), "stokes": (3, 3), "stokes_comb": (4, 3)}  # components in and out
WINDOW = {"P": P, "DEGREE": DEGREE}
P2P = {"p2p_gm_1d": (32, 1), "p2p_gm_2d": (8, 4), "p2p_sm_1d": (32, 1), "p2p_sm_2d": (8, 4)}  # rows and lanes of a team
P2P |= {"p2p_list": (32, 1), "p2p_list_2d": (4, 16)}
P2G = ("p2g_block", "p2g_atomic", "p2g_grid", "p2g_hybrid", "p2g_tile")
TILE = {"TX": 8, "TY": 8, "TZ": 4, "YT": 2, "LINE": 4, "LANES": 8, "ZS": 2, "COLUMNS": 5, "CANDIDATES": 7, "CAP": 4}
G2P = ("g2p_target", "g2p_base", "g2p_tile")
NEAR = {"SCREENED": True, "TERMS": TERMS, "TARGETS": 8, "LANES": 4, "TILE": 8}  # less than a batch, less than a run
LISTS = {  # more than one list
    "p2p_list": {"SCREENED": True, "TERMS": TERMS, "RUNS": 7, "CAP": 21, "PIECE": 5},
    "p2p_list_2d": {"SCREENED": True, "TERMS": TERMS, "RUNS": 7, "CAP": 32, "TESTS": 16, "TARGETS": 13, "LANES": 16},
}
#: A tile, more than one list of which has targets, and lanes without work.
GATHER_TILE = {"BX": 5, "BY": 4, "BZ": 7, "YL": 4, "ZL": 3, "ROW": 17, "CAP": 3, "PIECE": 5}
#: Outputs of interpolation for targets: values, values with slopes, or slopes alone.
TAKEN = ({}, {"SLOPES": True}, {"VALUE": False, "SLOPES": True, "SKEW": True})
#: Specialisations of each workunit, except for types.
SLOTS = {
    "cell_index": [{}],
    "gather_points": [{}],
    "gather_sources": [{"NB": 3}],
    "batch_bounds": [{}],
    "scatter_sum": [{"FAR_SORTED": True}, {"FAR_SORTED": False}],
    "planes_gather": [{}],
    "planes_scatter": [{"BOTH": True}, {"BOTH": False}],
    "convolve": [
        {"multiply": f"multiplier/{name}", "STRIDE": max(n), "RHS": 2, "SKEW": skew}
        for name, n in MULTIPLIERS.items()
        for skew in (False, True)
    ],
    "direct_sum": [{"pair": f"pair/{name}"} for name in PAIRS],
    **{unit: [LISTS.get(unit, NEAR) | {"pair": f"pair/{name}"} for name in PAIRS] for unit in P2P},
    **{unit: [WINDOW | {"NC": 3, "COMB": False}, WINDOW | {"NC": 4, "COMB": True}] for unit in P2G},
    "g2p_target": [WINDOW | {"NC": 3, "BATCH": 16} | taken for taken in TAKEN],
    "g2p_base": [WINDOW | {"NC": 3} | taken for taken in TAKEN],
    "g2p_tile": [WINDOW | GATHER_TILE | {"NC": 3} | taken for taken in TAKEN],
    "halo_clear": [{}],
    "halo_fold": [{}],
    "halo_ends": [{}],
    "halo_rows": [{}],
}
SLOTS["p2g_hybrid"] = [slots | {"CAP": 8, "ZT": 4} for slots in SLOTS["p2g_hybrid"]]
SLOTS["p2g_tile"] = [slots | TILE for slots in SLOTS["p2g_tile"]]
#: Specialisations with a far field in single precision and points in double precision.
MIXED = {"scatter_sum": {"real": "float64", "far": "float32"}}
MIXED |= {unit: {"real": "float32", "coord": "float64"} for unit in (*P2G, *G2P)}
#: Choices of each factor by which the loops' specialisations differ; `in_turn` takes some of all combinations.
DTYPES = ("float64", "float32")
REALS = (*DTYPES, "mixed")
FACTORS = {
    **{name: (tuple(PAIRS), DTYPES) for name in P2P},
    **dict.fromkeys(P2G, ((3, 4), REALS)),
    **{name: (range(len(TAKEN)), REALS) for name in G2P},
    "convolve": (tuple(MULTIPLIERS), (False, True), DTYPES),
}
KINDS = (tuple(P2P), P2G, G2P, ("convolve",))
PLAIN = ("chunk_count", "count_scan", "chunk_begin", "chunk_place")  # of integers only


def in_turn(name, *choices):
    """Tell whether every run has this combination of a loop's choices.

    It has every second or third one, and with them each loop with each specialisation or type; the others are slow.
    """
    kind = next(kind for kind in KINDS if name in kind)
    places = [factor.index(choice) for factor, choice in zip(FACTORS[name], choices, strict=True)]
    turns = 2 if name in P2G or name == "convolve" else 3
    return (kind.index(name) + sum(places)) % turns == 0


def combinations(names):
    """Return a parameter of a test for each combination of loops and their choices."""
    return [
        pytest.param(name, *choices, marks=[pytest.mark.slow] * (not in_turn(name, *choices)))
        for name in names
        for choices in itertools.product(*FACTORS[name])
    ]


def cloud(rng, n, real):
    """Return points ``(3, n)`` sorted by cell, and the begins of the cells."""
    x = np.array(BOX)[:, None] * rng.random((3, n))
    index = np.minimum(x * np.array(CELLS)[:, None] / np.array(BOX)[:, None], np.array(CELLS)[:, None] - 1).astype(int)
    cell = np.ravel_multi_index(tuple(index), CELLS)
    begin = np.searchsorted(np.sort(cell), np.arange(np.prod(CELLS) + 1)).astype(np.int32)
    return np.ascontiguousarray(x[:, np.argsort(cell, kind="stable")].astype(real)), begin


def planes(rng, real):
    """Return a real field of 2 × 2 components and its transform along x: in full, and neighbours along z as pairs."""
    field = rng.standard_normal((4, 8, 3, 6))
    pairs = np.fft.fft(field[..., ::2] + 1j * field[..., 1::2], axis=1)
    given = {"mode": np.array([0, 3, 1, 7], np.int32), "components": 2, "stride": 3, "n0": 8, "n1": 3, "n2": 6}
    return np.fft.fft(field, axis=1), as_pairs(pairs, real), given


def as_pairs(x, real):
    return np.ascontiguousarray(np.stack([x.real, x.imag], axis=-1).reshape(*x.shape[:-1], -1), real)


def bounds(x, batch):
    """Return the lowest and highest coordinates of each batch."""
    parts = [x[:, b:e] for b, e in batch]
    return np.array([np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


def near_setting(pair, rng, real):
    """Return arguments of a near field: few batches, one larger than scratch, and a cutoff longer than one side."""
    ns, nu, nf = PAIRS[pair]
    x, begin = cloud(rng, 40, real)
    src = np.concatenate([x, rng.standard_normal((ns, 40))]).T.astype(real)
    xt = np.concatenate([cloud(rng, 30, real)[0], x[:, 3:6]], axis=1)
    batch = np.array([[0, 8], [8, 9], [9, 17], [17, 30], [30, 33]], np.int32)
    widths = (side / n for n, side in zip(CELLS, BOX, strict=True))
    return {
        "xt": xt, "src": np.ascontiguousarray(src), "u": np.full((nu, 33), np.nan, real), "batch": batch,
        "cell_begin": begin, "bound": bounds(xt, batch), "coef": rng.standard_normal(nf * TERMS).astype(real),
        "cells": np.array([*CELLS, 3], np.int32), "lattice": np.array([*BOX, 0.0, 0.0, 0.0, *widths, RC], real),
        "tiny": 0.0,
    }  # fmt: skip


def types_of(real):
    """Return the types of the grid and of coordinates."""
    return ("float32", "float64") if real == "mixed" else (real, real)


def grid_setting(rng, real):
    """Return window polynomials, grid points per length, and the shape of the grid with its margins."""
    polynomials = [rng.standard_normal((DEGREE + 1, P)).astype(real) for _ in range(2)]
    points = (9, 10, 8)
    scale = {f"s{d}": m / side for d, (m, side) in enumerate(zip(points, BOX, strict=True))}
    return polynomials, scale, tuple(m + P for m in points)


def teams(name, shape):
    """Return the teams of GRID, one for each row of a grid (components, …), or of TILE."""
    sides = (TILE["TX"], TILE["TY"], TILE["TZ"]) if name == "p2g_tile" else (1, 1, shape[3])
    return math.prod(-(-n // side) for n, side in zip(shape[1:], sides, strict=True))


def extent(name, shape):
    """Return the arguments of GRID and of TILE that tell the grid points of each axis."""
    return {f"e{d}": n for d, n in enumerate(shape[1:]) if d > 0 or name == "p2g_tile"}


def spread_setting(components, rng, real, coord=None):
    """Return 40 sources by cell of type `coord`, other arguments of all P2G loops, and the shape of the grid."""
    (window, slope), scale, shape = grid_setting(rng, real)
    x, begin = cloud(rng, 40, coord or real)
    strengths = rng.standard_normal((9 if components == 4 else 3, 40))
    src = np.ascontiguousarray(np.concatenate([x, strengths]).T, coord or real)
    return src, begin, {"window": window, "slope": slope} | scale, (components, *shape)


def gather_setting(rng, real, coord=None):
    """Return begins of cells, and of an interpolation targets of type `coord`, grid and window."""
    (window, slope), scale, shape = grid_setting(rng, real)
    xt, begin = cloud(rng, 37, coord or real)
    grid, skew = rng.standard_normal((3, *shape)).astype(real), {"s01": 0.2, "s02": -0.4, "s12": 0.3}
    return begin, {"xt": xt, "grid": grid, "window": window, "slope": slope} | skew | scale


def tiles(begin, extent):
    """Return arguments of an interpolation by tiles of a grid of some extent, for targets by cell."""
    counts = [(e - P) // GATHER_TILE[side] + 1 for e, side in zip(extent, ("BX", "BY", "BZ"), strict=True)]
    given = {"cell_begin": begin, "tiles": math.prod(counts), "tiles1": counts[1], "tiles2": counts[2]}
    for d, (n, side, e) in enumerate(zip(CELLS, BOX, extent, strict=True)):
        given |= {f"n{d}": n, f"h{d}": side / n, f"e{d}": e}
    return given
