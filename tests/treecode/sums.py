"""Helpers of the tests of treecodes: points, numbers of far pairs, polynomials by their definition."""

import numpy as np


def far(plan):
    """Count evaluations of the kernel at proxy points."""
    return sum(plan.walltime.pairs[kind] for kind in ("pc", "cp", "cc"))


def charges_of(plan, m):
    """Return proxy charges of the last sum, (rows, m³ components)."""
    placed = plan.sums[1].placed
    handles = (a for step in placed.steps.flat for a in step.handles.values())
    return placed[next(a for a in handles if a.name == f"charges of {m}")]


def chebyshev(m):
    """Return Chebyshev points of the second kind, from 1 to -1."""
    return np.cos(np.pi * np.arange(m) / (m - 1)) if m > 1 else np.zeros(1)


def lagrange(x, m):
    """Return all Lagrange polynomials at x, (len(x), m), each as the product that defines it."""
    s = chebyshev(m)
    value = np.ones((len(x), m))
    for k in range(m):
        for j in range(m):
            if j != k:
                value[:, k] *= (x - s[j]) / (s[k] - s[j])
    return value


def proxy_charges(tree, node, q, m):
    """Return charges (m³, components) of a cluster, from its particles; q (components, N) in the order of the tree."""
    inside = slice(tree.nodes.begin[node], tree.nodes.end[node])
    x, half = tree.sorted.points[:, inside].T - tree.nodes.centre[node], tree.nodes.half[node]
    unit = np.divide(x, half, out=np.zeros_like(x), where=half > 0)
    a, b, c = (lagrange(unit[:, d], m) for d in range(3))
    return np.einsum("ji,jk,jl,nj->ikln", a, b, c, q[:, inside]).reshape(m**3, -1)
