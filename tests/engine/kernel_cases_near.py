"""Small launches of the sums over pairs: direct sums, and the near field of Ewald sums.  See kernel_cases.py."""

import numpy as np

from tests.catalogue import PAIRS

STRENGTHS, COMPONENTS, FAR_PARTS = ({pair: numbers[k] for pair, numbers in PAIRS.items()} for k in range(3))


def direct(maker):
    nt, ns = 21, 6
    for pair, width in STRENGTHS.items():
        xt, src = maker.normal(3, nt), maker.normal(ns, 3 + width)
        xt[:, 2] = src[3, :3]
        args = {"xt": xt, "src": src, "u": maker.zeros(COMPONENTS[pair], nt), "nt": nt, "ns": ns, "chunk": 11}
        yield "direct_sum", {"pair": f"pair/{pair}"}, 2, {**args, "tiny": 0.0}


def p2p(maker):
    n, nt, shape = 14, 11, (2, 2, 3)
    many = {"RHS": 3}
    for pair, changes in (*((pair, {}) for pair in STRENGTHS), ("stokeslet", many), ("laplace", {"SKEW": True})):
        rhs = changes.get("RHS", 1)
        src, begin = maker.binned(n, shape, 3 + rhs * STRENGTHS[pair])
        xt = maker.uniform(3, nt)
        xt[:, 4] = src[5, :3]
        batch = np.array([[0, 3], [3, 11]], np.int32)
        bound = np.array([[*xt[:, a:b].min(axis=1), *xt[:, a:b].max(axis=1)] for a, b in batch], maker.dtype)
        coef = 0.1 * maker.normal(4 * FAR_PARTS[pair])
        args = {"xt": xt, "src": src, "u": maker.zeros(rhs * COMPONENTS[pair], nt), "batch": batch, "bound": bound}
        lattice = (1.0, 1.0, 1.0, 0.3, -0.4, 0.2, *(1.0 / m for m in shape), 0.45)
        args |= {"cells": np.array([*shape, 3], np.int32), "lattice": np.array(lattice, maker.dtype)}
        args |= {"cell_begin": begin, "coef": coef, "tiny": 0.0}
        slots = {"pair": f"pair/{pair}", "SCREENED": True, "TERMS": 4, **changes}
        at = {"xs": np.ascontiguousarray(src[:, :3].T)}
        yield "p2p_list", slots | {"RUNS": 5, "CAP": 9, "PIECE": 4}, 2, args | at
        yield "p2p_list_2d", slots | {"RUNS": 5, "CAP": 8, "TESTS": 8, "TARGETS": 8, "LANES": 4}, 2, args | at
        for loop in ("gm_1d", "gm_2d", "sm_1d", "sm_2d"):
            small = {} if loop == "gm_1d" else {"TARGETS": 5, "LANES": 2, "TILE": 3}
            yield f"p2p_{loop}", slots | small, 2, args

    yield from half_lists(maker)


def half_lists(maker):
    """Yield two blocks of points in a part of the box, a block apart, with more sources than lists hold."""
    n, shape = 32, (4, 1, 1)
    for pair, by_root in (("laplace", False), ("stokeslet", True)):
        src, begin = maker.binned(n, shape, 3 + STRENGTHS[pair])
        src[:, 1:3] *= 0.3
        xs, strength = (np.ascontiguousarray(a.T) for a in (src[:, :3], src[:, 3:]))
        block = np.array([[9, 9, 9, 9, 9, 9], [0, 1, 0, 1, 0, 1], [2, 3, 0, 1, 0, 1]], np.int32)
        lattice = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0, *(1.0 / m for m in shape), 0.12], maker.dtype)
        args = {"xs": xs, "strength": strength, "u": maker.normal(COMPONENTS[pair], n), "block": block}
        args |= {"bound": maker.zeros(3, 6), "cell_begin": begin, "coef": 0.1 * maker.normal(4 * FAR_PARTS[pair])}
        args |= {"cells": np.array([*shape, 2], np.int32), "lattice": lattice, "tiny": 0.0, "first": 1}
        slots = {"pair": f"pair/{pair}", "SCREENED": True, "TERMS": 4, "LANES": 4, "GROUP": 2, "SIZE": 4}
        slots |= {"LINEAR": STRENGTHS[pair], "BY_ROOT": by_root}
        yield "p2p_half", slots | {"RUNS": 5, "CAP": 9, "PIECE": 4}, 2, args


def mutual(maker):
    """Yield two meetings of leaves, with more particles than lanes and fewer."""
    item = np.array([[9, 9, 0, 0], [0, 3, 0, 2], [3, 8, 2, 3], [14, 21, 3, 4]], np.int32)
    span = np.array([[3, 8], [10, 11], [8, 13], [21, 30]], np.int32)
    for pair in ("laplace", "stokeslet"):
        xt, charge = maker.normal(3, 30), maker.normal(STRENGTHS[pair], 30)
        args = {"meeting": np.array([0, 1, 3, 4], np.int32), "item": item, "span": span, "xt": xt, "charge": charge}
        args |= {"src": np.concatenate([xt, charge]).T.copy(), "u": maker.normal(COMPONENTS[pair], 30)}
        yield "mutual", {"pair": f"pair/{pair}", "LANES": 4, "GROUP": 2}, 2, args | {"tiny": 0.0, "first": 1}


GROUPS = {"direct": direct, "p2p": p2p, "mutual": mutual}
