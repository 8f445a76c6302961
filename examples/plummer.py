"""A galaxy in equilibrium
=======================

Stars of a Plummer sphere move under their own gravity.

:Shows: ``parki.treecode.bldtt`` with a gradient inside a time loop, on points that are dense in the middle.
:Run: ``python examples/plummer.py -o plummer.png`` (``--small`` for a trial)
:Expect: The potential energy of the sample is that of Plummer's sphere, −3π/32 G M²/a, to a per cent (the sample's own
   noise); over the run the total energy stays the same to a few parts in ten thousand.

Units: G = M = a = 1. Gravity is softened, φ = −1/√(r² + ε²), as usual for stars that represent many: leapfrog with one
step for all then keeps the energy. Velocities are drawn from the distribution function of the sphere, f ∝ (−E)^(7/2)
(Aarseth, Hénon and Wielen 1974).
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np

import parki

SOFTENING = 0.02
TOLERANCE = 1e-5


def galaxy(n, seed=1):
    """Return positions and velocities (3, n); the centre of mass rests at the origin."""
    rng = np.random.default_rng(seed)
    x = parki.samples.plummer(n, seed, cutoff=20)
    escape = np.sqrt(2) * (1 + (x**2).sum(axis=0)) ** -0.25
    share = np.empty(0)
    while len(share) < n:  # fraction q of the escape speed: density q² (1 − q²)^3.5, at most 0.1
        q, level = rng.random((2, 4 * n))
        share = np.append(share, q[0.1 * level < q**2 * (1 - q**2) ** 3.5])
    direction = rng.standard_normal((3, n))
    v = share[:n] * escape * direction / np.linalg.norm(direction, axis=0)
    return x - x.mean(axis=1, keepdims=True), v - v.mean(axis=1, keepdims=True)


def field(x):
    """Return potential (n,) and acceleration (3, n) of n stars of mass 1/n, without each star's own."""
    n, options = x.shape[1], {"epsilon": SOFTENING, "own_term": False, "tolerance": TOLERANCE}
    potential, gradient = parki.treecode.bldtt(x, x, np.full(n, 1 / n), "regularised_coulomb", gradient=True, **options)
    return -potential, gradient


def energy(v, potential):
    """Return the kinetic and the potential energy of all stars."""
    return 0.5 * (v**2).sum() / v.shape[1], 0.5 * potential.mean()


def evolve(x, v, steps, step):
    """Return positions, velocities, and total energies after each step, by leapfrog."""
    potential, acceleration = field(x)
    energies = [sum(energy(v, potential))]
    for _ in range(steps):
        v = v + step / 2 * acceleration
        x = x + step * v
        potential, acceleration = field(x)
        v = v + step / 2 * acceleration
        energies.append(sum(energy(v, potential)))
    return x, v, np.array(energies)


def draw(file, before, after, energies):
    """Draw the start and the end of the run from above, and the energy between them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 4), layout="constrained")
    panels = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for panel, x, title in zip(panels, (before, after), ("at the start", "at the end"), strict=False):
        image = panel.hexbin(*x[:2], gridsize=66, extent=(-4, 4, -4, 4), bins="log", cmap="magma", mincnt=1)
        panel.set(aspect="equal", facecolor="black", xlim=(-3, 3), ylim=(-3, 3), xlabel="x / a", ylabel="y / a")
        panel.set_title(f"{x.shape[1]} stars {title}")
    figure.colorbar(image, ax=panels[:2], label="stars in a hexagon")
    panels[2].plot(1e6 * (energies / energies[0] - 1), color="#8c1c13")
    panels[2].set(xlabel="step", ylabel="change in parts per million", title="Total energy")
    panels[2].grid(alpha=0.3)
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="A Plummer sphere in equilibrium.")
    parser.add_argument("--small", action="store_true", help="few stars and steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n, steps, step = (4000, 5, 0.02) if asked.small else (30_000, 50, 0.02)
    x, v = galaxy(n)
    kinetic, potential = energy(v, field(x)[0])
    print(
        f"potential energy {potential / (-3 * np.pi / 32):.4f} of −3π/32, virial ratio {-2 * kinetic / potential:.3f}"
    )
    after, _, energies = evolve(x, v, steps, step)
    drift = np.abs(energies / energies[0] - 1).max()
    print(f"{n} stars, {steps} steps of {step:g}: the energy changes by {drift:.1e} at most")
    assert drift < 1e-3
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, x, after, energies)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
