"""Formulas of the workunits, in plain NumPy and double precision."""

import itertools

import numpy as np


def close(found, exact, factor=1.0):
    """Assert agreement to a few roundings, relative to the largest value."""
    bound = factor * {"float64": 1e-14, "float32": 4e-6}[found.dtype.name]
    np.testing.assert_allclose(found, exact, rtol=0, atol=bound * np.abs(exact).max())


def horner(coefficients, t):
    """Return polynomials at t, with coefficients along the first axis, highest power first."""
    value = np.zeros(np.broadcast_shapes(coefficients.shape[1:], np.shape(t)))
    for c in coefficients:
        value = value * t + c
    return value


def pair_sum(pair, xt, src, far, rc, box=None):
    """Sum pairs closer than rc, with periodic images if there is a box; far[f] = polynomial in 2 r²/rc² − 1."""
    xt, src, far = (np.asarray(a, np.float64) for a in (xt, src, far))
    reach = 2 if box else 0
    shifts = itertools.product(range(-reach, reach + 1), repeat=3)
    total = 0.0
    for shift in shifts:
        move = np.array(shift) * np.array(box or (0, 0, 0))
        r = xt[:, :, None] - src.T[:3, None, :] + move[:, None, None]
        total = total + one_image(pair, r, src.T[3:], far, rc)
    return total


def one_image(pair, r, s, far, rc):
    """Sum over the sources; r = (3, targets, sources)."""
    r2 = np.sum(r**2, axis=0)
    assert not np.any(np.abs(r2 / rc**2 - 1) < 3e-6), "a pair at the cutoff, which rounding may count or not"
    inside = r2 < rc**2
    same = r2 <= 1e-28
    w = np.where(same, 0, 1 / np.sqrt(np.where(same, 1, r2)))
    tau = np.where(inside, 2 * r2 / rc**2 - 1, 0.0)
    parts = [inside * horner(c, tau) for c in far]
    w = inside * w
    if pair == "laplace":
        return ((w - parts[0]) @ s[0])[None]
    u = 0.0
    D, E = parts[:2]
    if pair != "stresslet":
        f = s[:3]
        u = u + f @ (w - D - r2 * E).T + np.einsum("cij,ij->ci", r, (w**3 + E) * np.einsum("cij,cj->ij", r, f))
    if pair != "stokeslet":
        q, n = s[-6:-3], s[-3:]
        rq, rn, qn = np.einsum("cij,cj->ij", r, q), np.einsum("cij,cj->ij", r, n), np.sum(q * n, axis=0)
        C, G = -(3 * E + 2 * r2 * parts[2]), parts[2]
        u = u + q @ (C * rn).T + n @ (C * rq).T
        u = u + np.einsum("cij,ij->ci", r, C * qn + (4 * G - 6 * w**5) * rq * rn)
    return u


def convolved(name, k, g, v):
    """Return the result of a multiplier for complex components v; k (3, …), g (…), v (C, …)."""
    size = np.sqrt(np.sum(k**2, axis=0))
    n = np.where(size > 0, k / np.where(size > 0, size, 1.0), np.array([0.0, 0.0, 1.0]).reshape(3, 1, 1, 1))
    if name == "scalar":
        return g * v
    if name == "divergence":
        return -1j * g * np.sum(k * v, axis=0)[None]
    flow = g * (v[:3] - n * np.sum(n * v[:3], axis=0))
    if name == "stokes_comb":
        return flow + 1j * g * k * v[3]
    return flow


def taps(x, polynomials, s, P):
    """Return the first grid point with margin, and the window's values there, of each point along one axis."""
    g = x.astype(np.float64) * s - P / 2
    return np.ceil(g).astype(int) + P // 2, horner(polynomials.astype(np.float64)[:, :, None], np.ceil(g) - g - 0.5)


def spread(src, window, slope, scale, components, shape):
    """Spread all sources to a grid; four components are f W + q (n·∇) W + n (q·∇) W and (q·n) W."""
    P = window.shape[1]
    grid = np.zeros((components, *shape))
    first, w = zip(*(taps(src[:, d], window, s, P) for d, s in enumerate(scale)), strict=True)
    g = [s * taps(src[:, d], slope, s, P)[1] for d, s in enumerate(scale)]
    for e, source in enumerate(src.astype(np.float64)):
        a = [v[:, e] for v in w]
        slopes = [np.einsum("a,b,c->abc", *(g[i][:, e] if i == d else a[i] for i in range(3))) for d in range(3)]
        W = np.einsum("a,b,c->abc", *a)
        if components == 4:
            f, q, n = source[3:6], source[6:9], source[9:]
            values = [f[c] * W + sum((q[c] * n[d] + n[c] * q[d]) * slopes[d] for d in range(3)) for c in range(3)]
            values.append(q @ n * W)
        else:
            values = [W * strength for strength in source[3:]]
        x, y, z = (i[e] for i in first)
        grid[:, x : x + P, y : y + P, z : z + P] += values
    return grid


def interpolated(xt, grid, window, slope, scale):
    """Return the grid's components at all targets, and their slopes (components, 3, targets) along its axes."""
    P = window.shape[1]
    first, w = zip(*(taps(xt[d], window, s, P) for d, s in enumerate(scale)), strict=True)
    tilts = [s * taps(xt[d], slope, s, P)[1] for d, s in enumerate(scale)]
    u, g = np.empty((len(grid), xt.shape[1])), np.empty((len(grid), 3, xt.shape[1]))
    for i in range(xt.shape[1]):
        x, y, z = (f[i] for f in first)
        part, own = grid[:, x : x + P, y : y + P, z : z + P].astype(np.float64), [v[:, i] for v in w]
        u[:, i] = np.einsum("xabc,a,b,c->x", part, *own)
        for d in range(3):
            g[:, d, i] = np.einsum("xabc,a,b,c->x", part, *(tilts[d][:, i] if e == d else own[e] for e in range(3)))
    return u, g
