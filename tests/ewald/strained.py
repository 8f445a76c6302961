"""Exact energies of charges in strained cells, without some of their pairs, by the slow sums of `sums`."""

import numpy as np
from scipy.linalg import rq

from tests.ewald import sums


def images(x, pairs, cell, periodicity):
    """Return the numbers (M, 3) of lattice vectors that bring the pairs (2, M) nearest."""
    found = np.zeros((pairs.shape[1], 3), int)
    if periodicity:
        inverse = np.linalg.pinv(cell[:periodicity])
        found[:, :periodicity] = np.floor((x[:, pairs[0]] - x[:, pairs[1]]).T @ inverse + 0.5)
    return found


def left_out(x, q, pairs, weight, moves, cell, kappa=0.0):
    """Return potential (N,) and gradient (3, N) of pairs at these images."""
    (i, j), n = pairs, x.shape[1]
    r = x[:, i] - x[:, j] - cell.T @ moves.T
    d = np.linalg.norm(r, axis=0)
    phi, slope = weight * np.exp(-kappa * d) / d, -weight * (1 + kappa * d) * np.exp(-kappa * d) / d**3
    u = np.bincount(i, q[j] * phi, n) + np.bincount(j, q[i] * phi, n)
    g = [np.bincount(i, q[j] * slope * row, n) - np.bincount(j, q[i] * slope * row, n) for row in r]
    return u, np.array(g)


def turned(cell):
    """Return an upper triangular cell whose rows are lattice vectors, and the rotation of points to it."""
    if not np.any(cell != np.diag(np.diag(cell))):
        return cell, np.eye(3)
    upper, turn = rq(cell)
    signs = np.sign(np.diag(upper))
    upper = upper * signs
    upper[np.abs(upper) < 1e-14 * np.abs(upper).max()] = 0.0  # of heights along free directions
    return upper, signs[:, None] * turn


def potential(kernel, x, q, cell, periodicity, kappa=None):
    """Return potential (N,) and gradient (3, N) of charges in an upper triangular cell, all pairs counted."""
    given = {"box": np.diag(cell), "periodicity": periodicity, "kappa": kappa}
    found = sums.periodic(f"{kernel}_and_grad", x, x, q, skew=(cell[0, 1], cell[0, 2], cell[1, 2]), **given)
    return found[0], found[1:]


class Charges:
    """Exact sums of charges in a cell, less `weight` times those of `pairs`."""

    def __init__(self, kernel, x, q, cell, periodicity, kappa=None, pairs=None, weight=1.0):
        self.kernel, self.x, self.q, self.cell = kernel, x, q, cell
        self.periodicity, self.kappa, self.pairs, self.weight = periodicity, kappa, pairs, weight
        self.moves = None if pairs is None else images(x, pairs, cell, periodicity)

    def potential(self, strain=None):
        """Return potential and gradient, of strained points in a strained cell."""
        stretch = np.eye(3) + (0.0 if strain is None else strain)
        # Points are turned first: rounding must not tell the pairs that are left out from those of the whole sum.
        cell, turn = turned(self.cell @ stretch.T)
        x = turn @ stretch @ self.x
        u, g = potential(self.kernel, x, self.q, cell, self.periodicity, self.kappa)
        if self.pairs is not None:
            v, h = left_out(x, self.q, self.pairs, self.weight, self.moves, cell, self.kappa or 0.0)
            u, g = u - v, g - h
        return u, turn.T @ g

    def whole(self):
        """Return the potential of all pairs."""
        cell, turn = turned(self.cell)
        return potential(self.kernel, turn @ self.x, self.q, cell, self.periodicity, self.kappa)[0]

    @property
    def measure(self):
        """Volume of the cell, or area or length of its periodic directions where some are free."""
        return np.sqrt(np.linalg.det(self.cell[: self.periodicity] @ self.cell[: self.periodicity].T))

    def slope(self, strain, step=1e-4):
        """Return the derivative of the energy along a strain, by a fourth-order difference."""
        e = [0.5 * self.q @ self.potential(n * step * strain)[0] for n in (-2, -1, 1, 2)]
        return (8 * (e[2] - e[1]) - (e[3] - e[0])) / (12 * step)
