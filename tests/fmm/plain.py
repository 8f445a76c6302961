"""Kernel-independent expansions in plain NumPy: pair formulas, surfaces, truncated inverses, all dense."""

import numpy as np

CHILDREN = np.array([[o >> 2 & 1, o >> 1 & 1, o & 1] for o in range(8)]) - 0.5
# Exponents of the components of check values and of equivalents.
SCALAR, FLOW = ((0,), (1,)), ((0, 0, 0, 1), (1, 1, 1, 2))


def lengths(r):
    return np.linalg.norm(r, axis=-1)[..., None, None]


def column(r):
    return r[..., :, None]


def row(r):
    return r[..., None, :]


def charge(r, kappa=0.0, gradient=False):
    """Return the potential of charges, with its gradient if asked."""
    d = lengths(r)
    phi = np.exp(-kappa * d) / d
    return np.concatenate([phi, -(1 + kappa * d) * phi / d**2 * column(r)], axis=-2) if gradient else phi


def dipole(r):
    return row(r) / lengths(r) ** 3


def force(r):
    """Return the velocity and pressure of forces."""
    d = lengths(r)
    return np.concatenate([np.eye(3) / d + column(r) * row(r) / d**3, 2 * row(r) / d**3], axis=-2)


def flow(r):
    """Return the velocity and pressure of a point flow."""
    velocity = column(r) / lengths(r) ** 3
    return np.concatenate([velocity, np.zeros_like(velocity[..., :1, :])], axis=-2)


def stresslet(r):
    """Return the velocity and pressure of symmetric tensors xx xy xz yy yz zz."""
    d = lengths(r)
    ends = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    rr = np.stack([(1 + (i != j)) * r[..., i] * r[..., j] for i, j in ends], -1)[..., None, :]
    trace = np.array([[float(i == j) for i, j in ends]])
    return np.concatenate([-6 * column(r) * rr / d**5, 4 * trace / d**3 - 12 * rr / d**5], axis=-2)


def torque(r):
    """Return the velocity and pressure of torques."""
    d, zero = lengths(r), np.zeros(r.shape[:-1])
    x, y, z = np.moveaxis(r, -1, 0)
    rows = [[zero, z, -y], [-z, zero, x], [y, -x, zero], [zero, zero, zero]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1)) / d**3


def sphere(r, a):
    """Return the velocity and pressure of spheres of radius a that do not overlap."""
    d = lengths(r)
    u = force(r)
    u[..., :3, :] += 2 * a**2 / 3 * (np.eye(3) / d**3 - 3 * column(r) * row(r) / d**5)
    return u


def both(r):
    """Return the velocity and pressure of forces and point flows."""
    return np.concatenate([force(r), flow(r)], axis=-1)


def gradient(function, r, h=1e-4):
    """Return derivatives by fourth-order differences, along one more axis at the end."""
    steps = h * np.eye(3)
    parts = [8 * (function(r + s) - function(r - s)) - (function(r + 2 * s) - function(r - 2 * s)) for s in steps]
    return np.stack(parts, -1) / (12 * h)


def surface(p, half):
    g = np.stack(np.meshgrid(*[np.arange(p)] * 3, indexing="ij"), -1).reshape(-1, 3)
    g = g[((g == 0) | (g == p - 1)).any(1)]
    return half * (2.0 * g / (p - 1) - 1)


def matrix(formula, x, y):
    """Return the dense matrix; rows and columns are component by component."""
    k = formula(x[:, None] - y)
    return np.ascontiguousarray(k.transpose(2, 0, 3, 1)).reshape(k.shape[2] * len(x), -1)


class Plain:
    """Steps of a box of half side `half` on values (components x points, n), at true size throughout."""

    def __init__(self, formula, p, half, cut, scale):
        self.formula, self.half, self.cut = formula, half, cut
        self.inner, self.outer = (surface(p, half * radius) for radius in (1.05, 2.95))
        self.small = surface(p, half * 0.5 * 1.05)
        (self.a, self.b), n = scale, len(self.inner)
        self.a, self.b = np.repeat(self.a, n)[:, None], np.repeat(self.b, n)[:, None]

    def solve(self, c, up):
        """Return the equivalents of check values; small singular values are left out as in the unit box."""
        x, y = (self.outer, self.inner) if up else (self.inner, self.outer)
        h = self.half
        unit = matrix(self.formula, x, y) * (1.0 * h) ** self.a * (1.0 * h) ** self.b.T
        u, s, vt = np.linalg.svd(unit)
        keep = s > self.cut * s[0]
        return (vt[keep].T / s[keep]) @ (u[:, keep].T @ (c * h**self.a)) * h**self.b

    def to_parent(self, o, e):
        """Return check values of equivalents of child o."""
        return matrix(self.formula, self.outer, self.half * CHILDREN[o] + self.small) @ e

    def to_child(self, o, e):
        """Return check values of child o from the parent's downward equivalents."""
        return matrix(self.formula, self.half * CHILDREN[o] + self.small, self.outer) @ e
