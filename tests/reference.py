"""Slow, exact sums in a fully periodic box, in double precision: the reference of all Ewald tests.

u(x_i) = Σ_j Σ_p K(x_i − y_j + p) s_j over the lattice p of the box, pairs at zero distance skipped, the k = 0 mode left
out (laplace: uniform neutralising background, zero mean; Stokes: zero mean flow).  Kernels as in parki: q/r,
f/r + r (r·f)/r³, −6 r (r·q)(r·n)/r⁵.

A Gaussian split with both parts cut at 1e-17: the near part over the pairs that a k-d tree finds, the far part as a
product of plane waves.  The cost is balanced by the choice of ξ, so a few targets among a million sources are cheap.
"""

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import erfc
from threadpoolctl import threadpool_limits

REACH = 6.6  # erfc(REACH) and exp(-REACH²) are below 1e-18
KERNELS = ("laplace", "stokes_sl", "stokes_comb")


def potential(kernel, targets, sources, dens, normals=None, box=(1.0, 1.0, 1.0), xi=None):
    """Return u, (Nt,) for laplace and (3, Nt) otherwise; the result does not depend on `xi`."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel: found {kernel!r}, expected one of {KERNELS}")
    x, y, s = (np.asarray(a, np.float64) for a in (targets, sources, dens))
    n = None if normals is None else np.asarray(normals, np.float64)
    box = np.asarray(box, np.float64)
    x, y = x % box[:, None], y % box[:, None]
    xi = balanced_xi(kernel, x.shape[1], y.shape[1], box) if xi is None else xi
    # Many small products: more threads would only wait for each other on a shared machine.
    with threadpool_limits(1, user_api="blas"):
        u = near(kernel, x, y, s, n, box, xi) + far(kernel, x, y, s, n, box, xi)
    if kernel == "laplace":
        return u[0] - np.pi / (xi**2 * np.prod(box)) * s.sum()
    return u


def balanced_xi(kernel, n_targets, n_sources, box):
    """Return the ξ with the least predicted time, by measured seconds per source copy, pair, point and mode."""
    rc = max(box) * np.geomspace(0.02, 2.0, 80)
    pair, waves = {"laplace": (3e-7, 2), "stokes_sl": (4e-7, 6), "stokes_comb": (6e-7, 12)}[kernel]
    copies = n_sources * np.prod(1 + 2 * np.divide.outer(rc, box), axis=1)
    pairs = n_targets * n_sources * 4.2 * rc**3 / np.prod(box)
    modes = 0.5 * waves * (n_targets + n_sources) * np.prod(1 + 2 * REACH**2 / np.pi * np.outer(1 / rc, box), axis=1)
    return REACH / rc[np.argmin(1.5e-6 * copies + pair * pairs + 2e-10 * modes)]


def relative_rms(u, exact):
    """Return √(Σ|u − exact|² / Σ|exact|²) over targets and components."""
    return float(np.sqrt(np.sum(np.square(np.subtract(u, exact, dtype=np.float64))) / np.sum(np.square(exact))))


def near(kernel, x, y, s, n, box, xi, chunk=400_000):
    """Return the screened kernels of all images within REACH/ξ, minus the far kernel at coincident points."""
    rc = REACH / xi
    images, owner = _images(y, box, rc)
    tree = cKDTree(images.T)
    out = np.zeros((1 if kernel == "laplace" else 3, x.shape[1]))
    expected = 1.0 + 4.2 * rc**3 * y.shape[1] / np.prod(box)
    step = max(1, int(chunk / expected))
    for first in range(0, x.shape[1], step):
        part = x[:, first : first + step]
        found = tree.query_ball_point(part.T, rc)
        counts = np.array([len(f) for f in found])
        j = np.concatenate([np.asarray(f, np.intp) for f in found]) if counts.sum() else np.zeros(0, np.intp)
        i = np.repeat(np.arange(part.shape[1]), counts)
        pairs = _screened(kernel, part[:, i] - images[:, j], owner[j], s, n, xi, 1e-14 * box.max())
        for row, value in zip(out, pairs, strict=True):
            row[first : first + step] = np.bincount(i, value, part.shape[1])
    return out


def _images(y, box, rc):
    """Return all periodic copies of `y` within rc of the box, and the index of each copy's source."""
    points, owner = y, np.arange(y.shape[1])
    for d in range(3):
        reach = int(np.ceil(rc / box[d]))
        shifts = np.zeros((2 * reach + 1, 3, 1))
        shifts[:, d, 0] = box[d] * np.arange(-reach, reach + 1)
        points = np.concatenate(list(points + shifts), axis=1)
        owner = np.tile(owner, len(shifts))
        keep = (points[d] >= -rc) & (points[d] <= box[d] + rc)
        points, owner = points[:, keep], owner[keep]
    return points, owner


def _screened(kernel, r, j, s, n, xi, tiny):
    """Return one value per pair and component."""
    r2 = np.einsum("di,di->i", r, r)
    same = r2 <= tiny**2
    r2 = np.where(same, 1.0, r2)
    d = np.sqrt(r2)
    a = np.where(same, 0.0, erfc(xi * d) / d)
    b = np.where(same, 0.0, 2 * xi / np.sqrt(np.pi) * np.exp(-(xi**2) * r2))
    self_term = same * (2 * xi / np.sqrt(np.pi))
    if kernel == "laplace":
        return ((a - self_term) * s[j])[None]
    f = s[:3, j]
    u = (a - b - 2 * self_term) * f + (a + b) / r2 * np.einsum("di,di->i", r, f) * r
    if kernel == "stokes_comb":
        q, m = s[3:, j], n[:, j]
        rq, rm, qm = (np.einsum("di,di->i", v, w) for v, w in ((r, q), (r, m), (q, m)))
        c = 2 * xi**2 * b
        u += c * (qm * r + rm * q + rq * m) - (6 * (a + b) / r2 + 2 * c) / r2 * rq * rm * r
    return u


def far(kernel, x, y, s, n, box, xi):
    """Return the sum of plane waves up to 2ξ REACH; only k₀ >= 0 is computed, the rest is the conjugate."""
    kmax = 2 * xi * REACH
    strengths = [s] if kernel == "laplace" else list(s[:3])
    if kernel == "stokes_comb":
        q = s[3:]
        strengths += [q[a] * n[b] + q[b] * n[a] for a in range(3) for b in range(a, 3)]
    waves = []
    for d in range(3):
        m = int(kmax * box[d] / (2 * np.pi))
        waves.append(2 * np.pi / box[d] * np.arange(0 if d == 0 else -m, m + 1))
    rho = _forward(y, strengths, *waves)
    v = np.empty((1 if kernel == "laplace" else 3, *rho.shape[1:]), complex)
    for i, k0 in enumerate(waves[0]):
        k = np.array(np.broadcast_arrays(k0, waves[1][:, None], waves[2]))
        kk = np.einsum("dij,dij->ij", k, k)
        drop = (kk == 0.0) | (kk > kmax**2)
        kk[drop] = 1.0
        factor = np.where(drop, 0.0, (1.0 if i == 0 else 2.0) / np.prod(box) * np.exp(-kk / (4 * xi**2)) / kk)
        v[:, i] = _multiply(kernel, rho[:, i], k, kk, factor, xi)
    return _backward(x, v, *waves)


def _forward(y, strengths, k0, k1, k2, chunk=4000):
    """Return Σ_j s_j exp(−ik·y_j) for all strengths, (C, M0, M1, M2)."""
    total = np.zeros((len(strengths), len(k0), len(k1), len(k2)), complex)
    for first in range(0, y.shape[1], chunk):
        part = slice(first, first + chunk)
        e0, e1, e2 = (np.exp(-1j * np.outer(k, row)) for k, row in zip((k0, k1, k2), y[:, part], strict=True))
        for rows, strength in zip(total, strengths, strict=True):
            weighted = e1 * strength[part]
            for row, wave in zip(rows, e0, strict=True):
                row += (weighted * wave) @ e2.T
    return total


def _backward(x, v, k0, k1, k2, chunk=4000):
    """Return the real part of Σ_k v exp(ik·x), (C, Nt)."""
    out = np.zeros((len(v), x.shape[1]))
    for first in range(0, x.shape[1], chunk):
        part = slice(first, first + chunk)
        e0, e1, e2 = (np.exp(1j * np.outer(k, row)) for k, row in zip((k0, k1, k2), x[:, part], strict=True))
        for row, values in zip(out, v, strict=True):
            for value, wave in zip(values, e0, strict=True):
                row[part] += (np.einsum("mi,mi->i", e1, value @ e2) * wave).real
    return out


def _multiply(kernel, rho, k, kk, factor, xi):
    """Apply the kernels; `factor` is the Gaussian over k², with the weight of the mode."""
    if kernel == "laplace":
        return 4 * np.pi * factor * rho[:1]
    screen = 8 * np.pi * factor * (1 + kk / (4 * xi**2))
    v = screen * (rho[:3] - k * np.einsum("dij,dij->ij", k, rho[:3]) / kk)
    if kernel == "stokes_comb":
        xx, xy, xz, yy, yz, zz = rho[3:]  # q nᵀ + n qᵀ
        hk = np.array(
            [xx * k[0] + xy * k[1] + xz * k[2], xy * k[0] + yy * k[1] + yz * k[2], xz * k[0] + yz * k[1] + zz * k[2]]
        )
        trace = 0.5 * (xx + yy + zz)
        v += 1j * screen * (hk + k * trace - k * np.einsum("dij,dij->ij", k, hk) / kk)
    return v
