"""Pressure of an electrolyte
==========================

Ions of a 2:1 salt move between two plane walls. Their pressure is computed across planes, on the walls and along them.

:Shows: ``plan.energy_forces`` with its stress in two periodic directions, ``plan.near_pairs``, and ``plan.move``.
:Run: ``python examples/electrolyte_walls.py -o electrolyte_walls.png`` (``--small``: few steps)
:Expect: The stress agrees with differences of the energy between strained boxes. Motion and forces of the ions share
   the pressure in different ways at each height, but their sum is the force on the walls everywhere between them.

Water is a dielectric without molecules. Ions repel each other and the walls at short range, and each is kicked and
slowed by the water (Langevin dynamics). Units are nm and kT, with unit mass. The pressure across the plane at height z
is kT n(z), with n the density of ions, and the force of the ions below it on those above, by area.
"""

import argparse
import importlib.util
import inspect
import time
from pathlib import Path

import numpy as np

import parki

BJERRUM = parki.units.coulomb("nm", "kJ/mol", permittivity=78.4) / 2.479  # at 298 K
SIGMA, REACH = 0.3, 0.6
SALT = 60  # cations of charge 2, and twice as many anions
BOX = np.array([5.0, 5.0, 3.6])  # the walls are at z = 0 and z = 3.6
AREA = BOX[0] * BOX[1]
STEP, FRICTION = 0.008, 2.0
BINS = 36


def repulsion(r):
    """Return energy and −dU/dr at a distance r below REACH, where both become zero."""
    u = (SIGMA / r) ** 9 * (1 - (r / REACH) ** 2) ** 3
    return u, u * (9 / r + 6 * r / (REACH**2 - r**2))


def forces(plan, x, charges, box=BOX):
    """Return energy, forces (3, N) and the derivative (3, 3) of the energy by the strain, of ions without walls."""
    plan.move(x, box=None if box is BOX else box)
    energy, f, stress = plan.energy_forces(charges, stress=True)
    energy, f, strain = BJERRUM * energy, BJERRUM * f, BJERRUM * stress * box[0] * box[1]
    near = plan.near_pairs(REACH)
    near.eliminate_zeros()  # drops the distances of ions from themselves
    pairs = near.tocoo()
    r = x[:, pairs.row] - x[:, pairs.col]
    r[:2] -= box[:2, None] * np.round(r[:2] / box[:2, None])
    u, push = repulsion(pairs.data)
    on = push / pairs.data * r
    f += [np.bincount(pairs.row, p, x.shape[1]) for p in on]
    return energy + 0.5 * u.sum(), f, strain - 0.5 * on @ r.T


def lines(function):
    """Count the lines of a function, without its docstring, comments and blank lines."""
    source = map(str.strip, inspect.getsource(function).splitlines())
    return sum(bool(line) and not line.startswith(("#", '"""')) for line in source)


def walls(z):
    """Return the forces of the lower and the upper wall on ions at heights z."""
    lower, upper = (np.where(d < REACH, repulsion(np.minimum(d, 0.999 * REACH))[1], 0) for d in (z, BOX[2] - z))
    return lower, upper


def placed(rng):
    """Return ions (3, N) on a lattice, in random order."""
    sites = np.stack(np.meshgrid(*[np.arange(7) / 7] * 2, np.linspace(0.12, 0.88, 4), indexing="ij")).reshape(3, -1)
    return sites[:, rng.permutation(sites.shape[1])[: 3 * SALT]] * BOX[:, None]


def strained(x, charges):
    """Return the largest error of a derivative by strain against differences of the energy, over the largest one."""
    plan = parki.ewald.plan("laplace", x, x, box=BOX, periodicity=2, gradient=True, tolerance=1e-11, threads=1)
    strain, h, found = forces(plan, x, charges)[2], 2e-4, []
    for axis in range(3):
        e = []
        for k in (-2, -1, 1, 2):
            scale = np.ones(3)
            scale[axis] += k * h
            e.append(forces(plan, scale[:, None] * x, charges, scale * BOX)[0])
        found.append((e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h))
    return np.abs(found - np.diag(strain)).max() / np.abs(strain).max()


def run(plan, x, charges, steps, rng):
    """Return ions after some steps of Langevin dynamics; for each step numbers and forces in layers, and pressures."""
    v, told, took = rng.normal(size=x.shape), [], []
    keep, kinds = np.exp(-FRICTION * STEP), 1.0 * np.array([charges > 0, charges < 0])
    f = forces(plan, x, charges)[1]
    f[2] += np.subtract(*walls(x[2]))
    for _ in range(steps):
        begin = time.perf_counter()
        v += 0.5 * STEP * f
        x = x + 0.5 * STEP * v
        v = keep * v + np.sqrt(1 - keep**2) * rng.normal(size=v.shape)
        x += 0.5 * STEP * v
        x[:2] %= BOX[:2, None]
        _, f, strain = forces(plan, x, charges)
        lower, upper = walls(x[2])
        layers = [np.histogram(x[2], BINS, (0, BOX[2]), weights=w)[0] for w in (*kinds, f[2])]
        along = (x.shape[1] - 0.5 * (strain[0, 0] + strain[1, 1])) / np.prod(BOX)
        told.append((*layers, 0.5 * (lower.sum() + upper.sum()) / AREA, along))
        f[2] += lower - upper
        v += 0.5 * STEP * f
        took.append(time.perf_counter() - begin)
    return x, [np.array(a) for a in zip(*told, strict=True)], np.median(took)


def mean(samples, blocks=10):
    """Return the mean and its standard error, from blocks of samples in time."""
    parts = np.array([part.mean(axis=0) for part in np.array_split(samples, blocks)])
    return parts.mean(axis=0), parts.std(axis=0) / np.sqrt(blocks - 1)


def draw(file, x, charges, density, profile, wall):
    """Draw the ions from the side, their densities, and the pressure across planes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.2), layout="constrained")
    side, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=(1.45, 1, 1))
    order = np.argsort(-x[1])
    for kind, colour, name, size in ((charges > 0, "#d1495b", "cations", 130), (charges < 0, "#1b6ca8", "anions", 110)):
        some = order[kind[order]]
        side.scatter(x[0, some], x[2, some], s=size, color=colour, edgecolors="white", linewidths=0.7, label=name)
    side.set(xlim=(0, BOX[0]), ylim=(-0.1, BOX[2] + 0.1), xlabel="x (nm)", ylabel="height z (nm)")
    side.set_title(f"{len(charges)} ions between walls")
    side.legend(loc="upper center", ncols=2)
    heights, edges = (np.arange(BINS) + 0.5) * BOX[2] / BINS, np.arange(1, BINS) * BOX[2] / BINS
    middle.plot(density[0], heights, color="#d1495b", label="cations")
    middle.plot(density[1] / 2, heights, color="#1b6ca8", label="half the anions")
    middle.set(xlabel="density (1/nm³)", title="Density", xlim=(0, None))
    middle.legend(loc="center left")
    motion, push = profile
    right.fill_betweenx(edges, 0, motion, color="#f2b5a7", label="motion, kT n")
    right.fill_betweenx(edges, 0, push, color="#9fc5e8", label="forces of ions")
    right.plot(motion + push, edges, color="#222222", label="both")
    right.axvline(wall, color="#3a7d44", linestyle="--", label="on the walls")
    right.set(xlabel="pressure (kT/nm³)", title="Pressure across the plane at z", xlim=(-0.6 * wall, 2.4 * wall))
    right.legend(loc="center right")
    for axes in (side, middle, right):
        for below, above in ((-0.1, 0), (BOX[2], BOX[2] + 0.1)):
            axes.axhspan(below, above, color="#555555")
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Pressure of an electrolyte between walls.")
    parser.add_argument("--small", action="store_true", help="few steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    rng, charges = np.random.default_rng(0), np.repeat([2.0, -1.0], [SALT, 2 * SALT])
    x = placed(rng)
    plan = parki.ewald.plan("laplace", x, x, box=BOX, periodicity=2, gradient=True, tolerance=1e-4, threads=1)
    x, _, _ = run(plan, x, charges, 150 if asked.small else 2000, rng)
    off = strained(x, charges)
    print(f"stress and differences of the energy differ by {off:.1e} of the largest")
    assert off < 1e-6
    x, (cations, anions, pushes, wall, along), took = run(plan, x, charges, 250 if asked.small else 8000, rng)
    print(f"{len(charges)} ions: one step takes {1e3 * took:.1f} ms, forces in {lines(forces)} lines")

    density = np.array([cations.mean(axis=0), anions.mean(axis=0)]) / (AREA * BOX[2] / BINS)
    motion = 0.5 * (density.sum(axis=0)[1:] + density.sum(axis=0)[:-1])
    push = pushes[:, ::-1].cumsum(axis=1)[:, -2::-1] / AREA  # force on all ions above a plane, by area
    print("z (nm)   pressure by motion, by forces, together (kT/nm³)")
    for k in range(5, BINS - 1, 6):
        a, b = motion[k], push[:, k].mean()
        print(f"{(k + 1) * BOX[2] / BINS:5.2f} {a:20.2f} {b:10.2f} {a + b:10.2f}")
    inside = slice(BINS // 6, -BINS // 6)
    n = (cations + anions)[:, inside].mean(axis=1) / (AREA * BOX[2] / BINS)
    total, noise = mean(n + push[:, inside].mean(axis=1))
    (on_wall, wall_noise), (by, by_noise) = mean(wall), mean(along)
    print(f"normal pressure {total:.2f} ± {noise:.2f} by ions, {on_wall:.2f} ± {wall_noise:.2f} on the walls; ", end="")
    print(f"along them {by:.2f} ± {by_noise:.2f}, a mean over the width")
    assert abs(total - on_wall) < 0.3 * on_wall
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, x, charges, density, (motion, push.mean(axis=0)), on_wall)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
