"""Formulas of the workunits of trees and treecodes, and every pair function, in plain NumPy and double precision."""

import numpy as np

from tests import rotation


def spread(r, h, slope):
    """Return φ of a charge that a cubic spline spreads over a ball of radius h, or φ′ for a slope."""
    u = np.minimum(r / h, 1)
    inside = u < 0.5
    if not slope:
        outer = 3.2 - 1 / (15 * u) - 32 / 3 * u**2 + 16 * u**3 - 9.6 * u**4 + 32 / 15 * u**5
        return np.where(r < h, np.where(inside, 2.8 - 16 / 3 * u**2 + 9.6 * u**4 - 6.4 * u**5, outer) / h, 1 / r)
    outer = 1 / (15 * u**2) - 64 / 3 * u + 48 * u**2 - 38.4 * u**3 + 32 / 3 * u**4
    return np.where(r < h, np.where(inside, -32 / 3 * u + 38.4 * u**3 - 32 * u**4, outer) / h**2, -1 / r**2)


# Radial functions: φ, φ′ and φ(0), or 0 if a coincident pair is skipped; of the distance and the parameters.
RADIAL = {
    "coulomb": (lambda r: 1 / r, lambda r: -1 / r**2, lambda: 0),
    "yukawa": (lambda r, k: np.exp(-k * r) / r, lambda r, k: -(k + 1 / r) * np.exp(-k * r) / r, lambda k: 0),
    "regularised_coulomb": (
        lambda r, e: 1 / np.hypot(r, e),
        lambda r, e: -r / np.hypot(r, e) ** 3,
        lambda e: 1 / e,
    ),
    "spline_coulomb": (
        lambda r, e: spread(r, 2.8 * e, False),
        lambda r, e: spread(r, 2.8 * e, True),
        lambda e: 1 / e,
    ),
    "regularised_yukawa": (
        lambda r, k, e: np.exp(-k * np.hypot(r, e)) / np.hypot(r, e),
        lambda r, k, e: -(k + 1 / np.hypot(r, e)) * np.exp(-k * np.hypot(r, e)) * r / np.hypot(r, e) ** 2,
        lambda k, e: np.exp(-k * e) / e,
    ),
    "oscillatory": (
        lambda r, k: np.sin(k * r) / r,
        lambda r, k: (k * r * np.cos(k * r) - np.sin(k * r)) / r**2,
        lambda k: k,
    ),
    "gaussian": (
        lambda r, c: np.exp(-((r / c) ** 2)),
        lambda r, c: -2 * r / c**2 * np.exp(-((r / c) ** 2)),
        lambda c: 1,
    ),
    "multiquadric": (lambda r, c: np.hypot(r, c), lambda r, c: r / np.hypot(r, c), lambda c: c),
    "inverse_quadratic": (
        lambda r, c: 1 / (r**2 + c**2),
        lambda r, c: -2 * r / (r**2 + c**2) ** 2,
        lambda c: 1 / c**2,
    ),
    "biharmonic": (lambda r: r, lambda r: np.ones_like(r), lambda: 0),
    "thin_plate": (
        lambda r, c: r**2 * np.log(r / c),
        lambda r, c: r * (2 * np.log(r / c) + 1),
        lambda c: 0,
    ),
}
# Numbers of a source and of a target; parameters follow a source's own numbers.
VECTOR = {
    "laplace_grad": (1, 3), "dipole": (3, 1), "yukawa": (2, 1), "stokes_pressure": (3, 1), "stokes_grad": (3, 9),
    "stokes_dipole": (9, 3), "rotlet": (3, 3), "regularised_stokeslet": (4, 3), "regularised_dipole": (4, 3),
    "rpy": (4, 3), "rpy_rotation": (7, 6),
    "faxen": (7, 6),
    "stresslet_tensor": (6, 3), "stokes_comb_tensor": (9, 3), "stokes_flow": (4, 4),
}  # fmt: skip


def apart(x, y):
    """Return differences (3, targets, sources), distances (1 for coincident points), and where points coincide."""
    r = np.asarray(x, np.float64)[:, :, None] - np.asarray(y, np.float64)[:, None]
    length = np.sqrt(np.sum(r**2, axis=0))
    return r, np.where(length > 0, length, 1.0), length == 0


def radial_sum(name, x, src, value=True, gradient=False):
    """Return u = Σ q φ(r) and its gradient; a source is (x, y, z, q, parameters), with parameters common to all."""
    src = np.asarray(src, np.float64)
    r, length, same = apart(x, src.T[:3])
    phi, slope, at_zero = RADIAL[name]
    p, q = src[0, 4:], src[:, 3]
    u = [np.where(same, at_zero(*p), phi(length, *p)) @ q][:value]
    if gradient:
        u += list(np.where(same, 0.0, slope(length, *p) / length * r) @ q)
    return np.array(u)


def vector_sum(name, x, src):
    """Return sums of the other pair functions, (components, targets)."""
    src = np.asarray(src, np.float64)
    r, length, same = apart(x, src.T[:3])
    s = src.T[3:]
    f = np.broadcast_to(s[:3, None], (3, *length.shape)) if len(s) > 2 else s[:1, None]
    rf = np.sum(r * f, axis=0) if len(s) > 2 else None
    zero = np.zeros_like(f)
    match name:
        case "laplace_grad":
            u = -f * r / length**3
        case "dipole":
            u = (rf / length**3)[None]
        case "yukawa":
            u = (s[0] * np.exp(-s[1] * length) / length)[None]
        case "stokes_pressure":
            u = (2 * rf / length**3)[None]
        case "stokes_grad":  # ∂_j of f_i/r + r_i (r·f)/r³
            delta = np.eye(3)[:, :, None, None]
            u = (r[:, None] * f[None] - f[:, None] * r[None] + delta * rf) / length**3
            u = (u - 3 * rf * r[:, None] * r[None] / length**5).reshape(9, *length.shape)
        case "stokes_dipole":
            d = s.reshape(3, 3, -1)
            first, second = np.einsum("kjn,jmn->kmn", d, r), np.einsum("jkn,jmn->kmn", d, r)
            u = (first - second - np.einsum("jjn->n", d) * r) / length**3
            u = u + 3 * np.sum(r * first, axis=0) * r / length**5
            zero = np.zeros_like(r)
        case "rotlet":
            u = np.cross(f, r, axis=0) / length**3
        case "regularised_stokeslet":
            e2 = s[3] ** 2
            wide = np.sqrt(length**2 + e2)
            u, zero = ((length**2 + 2 * e2) * f + rf * r) / wide**3, 2 * f / s[3]
        case "regularised_dipole":
            e2 = s[3] ** 2
            u = ((2 * e2 - length**2) * f + 3 * rf * r) / (length**2 + e2) ** 2.5
            zero = 2 * f / s[3] ** 3
        case "rpy":
            a = s[3]
            beyond = (1 + 2 * a**2 / (3 * length**2)) * f + (1 - 2 * a**2 / length**2) * rf * r / length**2
            within = 4 / (3 * a) * ((1 - 9 * length / (32 * a)) * f + 3 / (32 * a * length) * rf * r)
            u, zero = np.where(length > 2 * a, beyond / length, within), 4 * f / (3 * a)
        case "rpy_rotation":
            u, zero = rotation.flow(r, s[:3, None], s[3:6, None], s[6]), rotation.of_itself(s[:6], s[6])[:, None]
        case "faxen":  # the flow of forces and doublets, and its Laplacian, at distances of at least 2a
            g, distance = s[3:6, None], np.where(same, 0.0, length)
            wide = np.maximum(distance, 2 * s[6])
            laplacian = 2 * f / wide**3 - 6 * rf * r / wide**5
            flow = f / wide + rf * r / wide**3 + 2 * g / wide**3 - 6 * np.sum(r * g, axis=0) * r / wide**5
            u = zero = np.concatenate([np.broadcast_to(a, r.shape) for a in (flow, laplacian)])
        case "stresslet_tensor":
            u = double_layer(r, length, s)
        case "stokes_flow":  # velocity and pressure of forces and point flows
            flow = f / length + rf * r / length**3 + s[3] * r / length**3
            u = np.concatenate([flow, (2 * rf / length**3)[None]])
        case "stokes_comb_tensor":
            u = f / length + rf * r / length**3 + double_layer(r, length, s[3:])
    return np.where(same, zero if len(zero) == len(u) else 0.0, u).sum(axis=-1)


def double_layer(r, length, entries):
    """Return −6 r (r·S r)/r⁵; entries are xx xy xz yy yz zz of S."""
    S = entries[np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])]
    return -6 * np.einsum("its,ijs,jts->ts", r, S, r) * r / length**5


# Proxy points -----------------------------------------------------------------------------------------------------
def nodes_of(m):
    """Return Chebyshev points of the second kind."""
    return np.cos(np.pi * np.arange(m) / (m - 1)) if m > 1 else np.zeros(1)


def tables(most):
    """Return points and weights 1/∏(s_k − s_j) of every number of points, in rows."""
    nodes, weights = np.zeros((most, most)), np.zeros((most, most))
    for m in range(1, most + 1):
        s = nodes[m - 1, :m] = nodes_of(m)
        weights[m - 1, :m] = [1 / np.prod(s[k] - np.delete(s, k)) for k in range(m)]
    return nodes, weights


def grid(box, m):
    """Return the proxy points (3, m³) of a box (centre, half sides)."""
    axes = [c + h * nodes_of(m) for c, h in zip(box[:3], box[3:], strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij")).reshape(3, -1)


def basis(x, box, m):
    """Return all m³ products of Lagrange polynomials of a box at x (3, N): (N, m³)."""
    s, x = nodes_of(m), np.asarray(x, np.float64)
    values = []
    for axis in range(3):
        half = box[3 + axis]
        t = (x[axis] - box[axis]) / half if half > 0 else np.zeros(x.shape[1])
        values.append([np.prod([(t - s[j]) / (s[k] - s[j]) for j in range(m) if j != k], axis=0) for k in range(m)])
    values = [np.broadcast_to(np.array(v).reshape(m, -1), (m, x.shape[1])) for v in values]
    return np.einsum("an,bn,cn->nabc", *values).reshape(x.shape[1], -1)
