"""Launches of the loops of P2P and P2G over a few random points, and the grid of P2G's double layer in plain NumPy."""

import numpy as np

from parki import engine
from parki.engine import RangePolicy, TeamPolicy
from parki.ewald.stages.near import LOOPS as NEAR_LOOPS
from parki.ewald.stages.spread import LOOPS as SPREAD

BOX = (1.0, 1.3, 0.8)
CELLS = (3, 4, 5)
P, DEGREE, TERMS = 5, 3, 4
POINTS = (9, 10, 8)  # grid points of each axis, without margins
NEAR = ("p2p_list", "p2p_gm_1d", "p2p_gm_2d", "p2p_sm_1d", "p2p_sm_2d")


def cloud(rng, n):
    """Return points ``(3, n)`` sorted by cell, and the begins of the cells."""
    x = np.array(BOX)[:, None] * rng.random((3, n))
    cell = np.ravel_multi_index(tuple((x * np.array(CELLS)[:, None] / np.array(BOX)[:, None]).astype(int)), CELLS)
    begin = np.searchsorted(np.sort(cell), np.arange(np.prod(CELLS) + 1)).astype(np.int32)
    return np.ascontiguousarray(x[:, np.argsort(cell, kind="stable")]), begin


def rows(x, strengths):
    """Return sources as rows (x, y, z, strengths)."""
    return np.ascontiguousarray(np.concatenate([x, strengths]).T)


def batches(x, size):
    """Return runs of at most `size` points, and their bounding boxes."""
    edges = [*range(0, x.shape[1], size), x.shape[1]]
    batch = np.array([edges[:-1], edges[1:]], np.int32).T.copy()
    parts = [x[:, b:e] for b, e in batch]
    return batch, np.array([np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


def near_kernel(loop, **slots):
    """Return a loop of the near field with batches, or lists, longer than its scratch."""
    if loop == "p2p_list":
        more = slots | {"RUNS": 7, "CAP": 21, "PIECE": 5}
        return engine.kernel(loop, loop, real="double", SCREENED=True, TERMS=TERMS, **more)
    file = next(file for file, name in NEAR_LOOPS.values() if name == loop)
    return engine.kernel(file, loop, real="double", SCREENED=True, TERMS=TERMS, TARGETS=8, LANES=4, TILE=8, **slots)


def near(space, kernel, sums, xt, src, begin, coef, rc, tilts=(0.0, 0.0, 0.0), images=3):
    """Return the near field at targets in any order, `sums` numbers each."""
    batch, bound = batches(xt, 9)
    u = np.full((sums, xt.shape[1]), np.nan)
    widths = (side / n for n, side in zip(CELLS, BOX, strict=True))
    given = {"cells": np.array([*CELLS, images], np.int32), "lattice": np.array([*BOX, *tilts, *widths, rc])}
    given |= {"batch": batch, "bound": bound, "cell_begin": begin, "coef": coef}
    if kernel.ir.name == "p2p_list":
        given["xs"] = np.ascontiguousarray(src[:, :3].T)
    policy = TeamPolicy(space, len(batch), 8, 4 if kernel.ir.name.endswith("2d") else 1)
    engine.parallel_for(policy, kernel, xt=xt, src=src, u=u, tiny=0.0, **given)
    return u


def spread_kernel(variant, **slots):
    """Return a loop of P2G with runs longer than its scratch."""
    small = {"HYBRID": {"CAP": 8, "ZT": 4}, "BLOCK": {"BATCH": 4}}.get(variant, {})
    return engine.kernel(*SPREAD[variant], real="double", P=P, DEGREE=DEGREE, **small, **slots)


def window(rng):
    """Return polynomials of a window and of its slope, with random coefficients."""
    return {"window": rng.standard_normal((DEGREE + 1, P)), "slope": rng.standard_normal((DEGREE + 1, P))}


def scales():
    return {f"s{d}": m / side for d, (m, side) in enumerate(zip(POINTS, BOX, strict=True))}


def spread(space, variant, kernel, components, src, begin, polynomials):
    """Spread sources, sorted by cell, to a grid with margins; return the grid."""
    shape = tuple(m + P for m in POINTS)
    grid = np.full((components, *shape), np.nan if variant == "GRID" else 0.0)
    given = {"grid": grid, **polynomials, **scales()}
    cells = {f"n{d}": n for d, n in enumerate(CELLS)}
    if variant == "BLOCK":
        del cells["n0"]
        block = np.array([[0, 2, 0, 4, 0, 5], [2, 3, 0, 3, 0, 5], [2, 3, 3, 4, 0, 5]], np.int32)
        for first in range(3):
            given |= {"block": block, "cell_begin": begin, "first": first, **cells}
            engine.parallel_for(TeamPolicy(space, components, 4, 8), kernel, src=src, **given)
    elif variant == "GRID":
        widths = {f"h{d}": side / n for d, (n, side) in enumerate(zip(CELLS, BOX, strict=True))}
        given |= {"cell_begin": begin, "e1": shape[1], "e2": shape[2], **cells, **widths}
        engine.parallel_for(TeamPolicy(space, shape[0] * shape[1], 32), kernel, src=src, **given)
    elif variant == "HYBRID":
        batch, bound = batches(src.T[:3], 11)
        given |= {"batch": batch, "bound": bound}
        engine.parallel_for(TeamPolicy(space, len(batch), 32), kernel, src=src, **given)
    else:
        order = slice(None, None, -1 if variant == "BASE" else 1)
        engine.parallel_for(RangePolicy(space, len(src)), kernel, src=src[order].copy(), **given)
    return grid


def double_layer(src, q, n, along_q, along_n, polynomials):
    """Return the grid (4, …) of q (n.grad) W + n (q.grad) W and (q.n) W; gradients go along `along_q` and `along_n`."""
    grid = np.zeros((4, *(m + P for m in POINTS)))
    for e, x in enumerate(src[:, :3]):
        parts, slopes, first = [], [], []
        for d, s in enumerate(scales().values()):
            g = x[d] * s - P / 2
            t = np.ceil(g) - g - 0.5
            first.append(int(np.ceil(g)) + P // 2)
            parts.append(sum(c * t ** (DEGREE - i) for i, c in enumerate(polynomials["window"])))
            slopes.append(s * sum(c * t ** (DEGREE - i) for i, c in enumerate(polynomials["slope"])))
        grad = [np.einsum("a,b,c->abc", *(slopes[i] if i == d else parts[i] for i in range(3))) for d in range(3)]
        by_q, by_n = (sum(v[d, e] * grad[d] for d in range(3)) for v in (along_q, along_n))
        values = [q[c, e] * by_n + n[c, e] * by_q for c in range(3)]
        values.append(q[:, e] @ n[:, e] * np.einsum("a,b,c->abc", *parts))
        grid[:, *(slice(i, i + P) for i in first)] += values
    return grid
