"""Whole fully periodic sum in plain NumPy, from the tables that the kernels use: for checking parameters."""

import numpy as np
import scipy.fft
from scipy.spatial import cKDTree

from parki.ewald.split import window
from parki.ewald.stages import green, radial


def ewald(p, targets, sources, dens, normals=None):
    """Return u in `p.dtype`, (Nt,) for laplace and (3, Nt) otherwise; points inside the box."""
    x, y, s = (np.asarray(a).astype(p.dtype) for a in (targets, sources, dens))
    n = None if normals is None else np.asarray(normals).astype(p.dtype)
    u = near(p, x, y, s, n) + far(p, x, y, s, n)
    net = s.reshape(-1, s.shape[-1])[: len(u)].sum(axis=1, keepdims=True, dtype=np.float64)
    u += (green.constants(p)[:, None] * net).astype(p.dtype)
    return u[0] if p.kernel.name == "laplace" else u


def horner(coefficients, t):
    """Evaluate polynomials (n, …), highest power first, at t, in the type of both."""
    value = np.zeros_like(t) + coefficients[0]
    for c in coefficients[1:]:
        value = value * t + c
    return value


def near(p, x, y, s, n):
    """Sum the near field of all images within rc directly."""
    reach = [int(np.ceil(p.rc / length)) for length in p.box]
    shifts = np.array(np.meshgrid(*[np.arange(-m, m + 1) for m in reach], indexing="ij")).reshape(3, -1).T
    tables = radial.tables(p)
    out = np.zeros((1 if p.kernel.name == "laplace" else 3, x.shape[1]), p.dtype)
    tree = cKDTree(y.T)
    for shift in shifts * np.array(p.box):
        found = cKDTree(x.T + shift).query_ball_tree(tree, p.rc)
        counts = [len(f) for f in found]
        if not sum(counts):
            continue
        j = np.concatenate([np.asarray(f, np.intp) for f in found])
        i = np.repeat(np.arange(x.shape[1]), counts)
        r = x[:, i] - y[:, j] + shift[:, None].astype(p.dtype)
        for row, value in zip(out, pairs(p, tables, r, s[..., j], None if n is None else n[:, j]), strict=True):
            row += np.bincount(i, value, x.shape[1]).astype(p.dtype)
    return out


def pairs(p, tables, r, s, n):
    """Return the near field of every pair, one row a component; w = 0 at a coincident pair."""
    tau = np.einsum("di,di->i", r, r)
    w = np.where(tau > 0, 1 / np.sqrt(np.where(tau > 0, tau, 1)), 0).astype(p.dtype)
    inside = tau <= np.dtype(p.dtype).type(p.rc**2)
    t = tau * np.dtype(p.dtype).type(2 / p.rc**2) - np.dtype(p.dtype).type(1)
    parts = [horner(row, t) for row in tables]
    if p.kernel.name == "laplace":
        return (inside * (w - parts[0]) * s)[None]
    D, E = parts[:2]
    f = s[:3]
    u = (w - D - tau * E) * f + (w**3 + E) * np.einsum("di,di->i", r, f) * r
    if p.kernel.name == "stokes_comb":
        G, q = parts[2], s[3:]
        C = -(3 * E + 2 * tau * G)
        rq, rn, qn = (np.einsum("di,di->i", a, b) for a, b in ((r, q), (r, n), (q, n)))
        u = u + C * (q * rn + r * qn + n * rq) + (4 * G - 6 * w**5) * rq * rn * r
    return inside * u


def stencil(p, x):
    """Return first nodes (3, N), and per axis the weights (P, N) and their derivatives by the position."""
    values, slopes = window.fit(p.P, p.beta, p.window_degree, p.dtype)
    first, weights, derivatives = [], [], []
    for d in range(3):
        scaled = x[d] / np.dtype(p.dtype).type(p.h[d])
        i0 = np.ceil(scaled - np.dtype(p.dtype).type(0.5 * p.P))
        s = (i0 - scaled + np.dtype(p.dtype).type(0.5 * p.P - 0.5))[None]
        first.append(i0.astype(np.intp))
        weights.append(horner(values[:, :, None], s + np.zeros((p.P, 1), p.dtype)))
        derivatives.append(horner(slopes[:, :, None], s + np.zeros((p.P, 1), p.dtype)) / np.dtype(p.dtype).type(p.h[d]))
    return first, weights, derivatives


def nodes(p, first):
    """Return flat grid indices (P, P, P, N)."""
    index = [(f + np.arange(p.P)[:, None]) % m for f, m in zip(first, p.grid, strict=True)]
    return (index[0][:, None, None] * p.grid[1] + index[1][None, :, None]) * p.grid[2] + index[2][None, None]


def spread(p, y, s, n, chunk=4000):
    """Spread sources to grid components (C, M0, M1, M2)."""
    count = {"laplace": 1, "stokes_sl": 3, "stokes_comb": 4}[p.kernel.name]
    grid = np.zeros((count, int(np.prod(p.grid))))
    for a in range(0, y.shape[1], chunk):
        b = slice(a, a + chunk)
        first, (w0, w1, w2), (g0, g1, g2) = stencil(p, y[:, b])
        flat = nodes(p, first).ravel()
        product = lambda u, v, w: u[:, None, None] * v[None, :, None] * w[None, None]  # noqa: E731
        full = product(w0, w1, w2)
        if p.kernel.name == "laplace":
            rows = [full * s[b]]
        elif p.kernel.name == "stokes_sl":
            rows = [full * f[b] for f in s]
        else:
            q, m = s[3:, b], n[:, b]
            # ∇ with respect to the grid node is minus the derivative with respect to the source.
            slope = [-product(g0, w1, w2), -product(w0, g1, w2), -product(w0, w1, g2)]
            qd = sum(v * g for v, g in zip(q, slope, strict=True))
            md = sum(v * g for v, g in zip(m, slope, strict=True))
            rows = [full * s[d, b] + q[d] * md + m[d] * qd for d in range(3)] + [full * (q * m).sum(axis=0)]
        for g, row in zip(grid, rows, strict=True):
            g += np.bincount(flat, row.ravel(), grid.shape[1])
    return grid.reshape(count, *p.grid).astype(p.dtype)


def axes(p):
    """Return wave numbers of each axis, half of the last, with factors h/ŵ² that undo the windows, 0 at Nyquist."""
    found = []
    for axis, (m, h) in enumerate(zip(p.grid, p.h, strict=True)):
        k = 2 * np.pi * (np.fft.rfftfreq if axis == 2 else np.fft.fftfreq)(m, h)
        factor = h / window.transform(p.P, p.beta, k, h) ** 2
        factor[m // 2] = 0.0
        found.append((k.astype(p.dtype), factor.astype(p.dtype)))
    return found


def far(p, x, y, s, n, chunk=4000):
    """Sum the band-limited part, by the grid."""
    spectrum = scipy.fft.rfftn(spread(p, y, s, n), axes=(1, 2, 3))
    (k0, d0), (k1, d1), (k2, d2) = axes(p)
    k = np.array(np.broadcast_arrays(k0[:, None, None], k1[:, None], k2))
    kk = np.einsum("dijl,dijl->ijl", k, k)
    kmax2 = np.dtype(p.dtype).type(p.kmax**2)
    keep = (kk > 0) & (kk <= kmax2)
    kk = np.where(keep, kk, 1)
    phi = horner(green.profile(p), 2 * np.minimum(kk / kmax2, 1) - 1)
    factor = keep * phi / kk * d0[:, None, None] * d1[:, None] * d2
    if p.kernel.name == "laplace":
        v = np.dtype(p.dtype).type(4 * np.pi) * factor * spectrum
    else:
        v = spectrum[:3] - k * np.einsum("dijl,dijl->ijl", k, spectrum[:3]) / kk
        if p.kernel.name == "stokes_comb":
            v = v + 1j * k * spectrum[3]
        v = np.dtype(p.dtype).type(8 * np.pi) * factor * v
    grid = scipy.fft.irfftn(v.astype(spectrum.dtype), s=p.grid, axes=(1, 2, 3)).reshape(len(v), -1)
    out = np.zeros((len(v), x.shape[1]), p.dtype)
    for a in range(0, x.shape[1], chunk):
        b = slice(a, a + chunk)
        first, (w0, w1, w2), _ = stencil(p, x[:, b])
        flat = nodes(p, first)
        for row, g in zip(out, grid, strict=True):
            row[b] = np.einsum("ai,bi,ci,abci->i", w0, w1, w2, g[flat], optimize=True)
    return out
