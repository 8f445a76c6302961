"""Points that are hard on trees: lines, planes, one place, groups far apart; for tests of all methods with trees."""

import numpy as np

from parki import samples


def line(n, seed):
    return np.array([[1.0], [2.0], [-0.5]]) * samples.charges(n, seed)


def along_x(n, seed):
    return np.array([[1.0], [0.0], [0.0]]) * samples.charges(n, seed) + np.array([[0.0], [0.3], [-7.0]])


def plane(n, seed):
    return samples.uniform(n, seed) * [[1.0], [0.0], [0.4]]


def tilted(n, seed):
    u, v = samples.charges(n, seed), samples.charges(n, seed + 1)
    return np.array([[1.0], [0.5], [0.0]]) * u + np.array([[0.0], [1.0], [1.0]]) * v


def duplicates(n, seed):
    return np.repeat(samples.uniform(-(-n // 4), seed), 4, axis=1)[:, :n]


def lattice(n, seed):
    m = int(np.ceil(n ** (1 / 3)))
    return np.array(np.meshgrid(*[np.arange(float(m))] * 3)).reshape(3, -1)[:, :n]


def apart(n, seed, distance):
    x = samples.uniform(n, seed)
    x[:, n // 2 :] += distance
    return x


def outlier(n, seed):
    x = samples.uniform(n, seed)
    x[:, 0] = 1e9
    return x


def geometric(n, seed):
    """Return points of which each cut takes off few or one, for more levels than an octree has."""
    return samples.uniform(n, seed) * 2.0 ** -np.linspace(0, 40, n)


HARD = (line, along_x, plane, tilted, duplicates, lattice, outlier, geometric)
