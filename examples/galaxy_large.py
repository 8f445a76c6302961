"""Two galaxies meet: 100 000 stars
================================

Two galaxies, each a disc of stars in a sphere of stars, fall together, and their tides change the discs.

:Shows: A plan of `parki.treecode` with a gradient in a time loop: it is moved with the stars, and compiles once.
:Run: ``python examples/galaxy_large.py -o galaxy_large.png`` (``--small``: few stars and steps)
:Expect: The total energy stays the same to two parts in a thousand; the picture shows the discs at six times.

Units: G = 1, and each galaxy has mass 1.  A sphere of Plummer's law with a = 1 has 95 % of the mass and half of the
stars, the disc the other half.  Velocities in the sphere are normal with its dispersion, σ² = M / 6√(r² + a²), and
those in the disc are circular, v² = M r² / (r² + a²)^(3/2).  Gravity is softened, φ = −1/√(r² + ε²).
"""

import argparse
import importlib.util
from pathlib import Path

import numpy as np

import parki

SOFTENING, TOLERANCE = 0.05, 1e-3
DISC = 0.05  # mass of the disc over that of the galaxy
APART, ASIDE = 5.0, 2.0  # initial x and y distance of the galaxies


def galaxy(n, seed):
    """Return positions, velocities (3, n) and masses (n,): a sphere, then a disc that turns anticlockwise."""
    rng, half = np.random.default_rng(seed), n // 2
    sphere = parki.samples.plummer(half, seed, cutoff=8)
    dispersion = np.sqrt(1 / 6) * (1 + (sphere**2).sum(axis=0)) ** -0.25
    hot = dispersion * rng.standard_normal((3, half))
    r, angle = -0.7 * np.log(1 - 0.95 * rng.random((2, n - half))).sum(axis=0), 2 * np.pi * rng.random(n - half)
    disc = np.stack([r * np.cos(angle), r * np.sin(angle), 0.05 * rng.standard_normal(n - half)])
    speed = r / (1 + r**2) ** 0.75
    cold = np.stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros(n - half)])
    mass = np.repeat([(1 - DISC) / half, DISC / (n - half)], [half, n - half])
    x, v = np.hstack([sphere, disc]), np.hstack([hot, cold])
    return x - (x @ mass)[:, None], v - (v @ mass)[:, None], mass


def meeting(n):
    """Return two galaxies that fall towards each other on parabolas."""
    place = np.array([APART, ASIDE, 0.0])[:, None] / 2
    speed = np.sqrt(4 / np.linalg.norm(2 * place))
    towards = np.array([-speed, 0.0, 0.0])[:, None] / 2
    (x, v, mass), (y, w, other) = galaxy(n // 2, 1), galaxy(n - n // 2, 2)
    return np.hstack([x - place, y + place]), np.hstack([v - towards, w + towards]), np.hstack([mass, other])


class Gravity:
    """Potential (n,) and acceleration (3, n) of stars, by a plan that moves with them."""

    def __init__(self, x, mass):
        options = {"epsilon": SOFTENING, "own_term": False, "gradient": True, "tolerance": TOLERANCE}
        self.plan, self.mass = parki.treecode.plan("regularised_coulomb", x, x, **options), mass

    def __call__(self, x):
        self.plan.move(x)
        potential, gradient = self.plan(self.mass)
        return -potential, gradient


def evolve(x, v, mass, steps, step, keep):
    """Return total energies (steps + 1,) by leapfrog, and positions after the steps in `keep`."""
    gravity, energies, kept = Gravity(x, mass), [], {}
    for k in range(steps + 1):
        potential, acceleration = gravity(x)
        if k:
            v = v + step / 2 * acceleration
        energies.append(0.5 * mass @ (v**2).sum(axis=0) + 0.5 * mass @ potential)
        if k in keep:
            kept[k] = x
        v = v + step / 2 * acceleration
        x = x + step * v
    return np.array(energies), kept


def draw(file, kept, step, n):
    """Draw the discs from above, each in its colour, without the stars of the spheres."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.9 * (len(kept) // 3)), layout="constrained", facecolor="black")
    panels, bins = figure.subplots(len(kept) // 3, 3).ravel(), 200 if n > 20_000 else 80
    for panel, (k, x) in zip(panels, kept.items(), strict=True):
        light = []
        for first in (0, n // 2):
            disc = x[:2, first + n // 4 : first + n // 2]
            counts = np.histogram2d(disc[1], disc[0], bins=bins, range=[(-6, 6), (-6, 6)])[0]
            light.append(np.log1p(counts) / np.log(40))
        one, other = np.clip(light, 0, 1)
        colour = np.stack([one + 0.3 * other, 0.65 * (one + other), 0.3 * one + other], axis=-1)
        panel.imshow(np.clip(colour, 0, 1), origin="lower", extent=(-6, 6, -6, 6), interpolation="bilinear")
        panel.set_title(f"t = {k * step:.1f}", color="white")
        panel.set_xlabel("x / a", color="#aaaaaa")
        panel.set_ylabel("y / a", color="#aaaaaa")
        panel.tick_params(colors="#aaaaaa", labelsize=8)
    figure.savefig(file, dpi=130)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Two galaxies meet.")
    parser.add_argument("--small", action="store_true", help="few stars and steps")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    n, steps, step = (8000, 10, 0.1) if asked.small else (100_000, 120, 0.1)
    energies, kept = evolve(*meeting(n), steps, step, np.linspace(0, steps, 3 if asked.small else 6).astype(int))
    drift = np.abs(energies / energies[0] - 1).max()
    print(f"{n} stars, {steps} steps of {step:g}: energy {energies[0]:.4f}, which changes by {drift:.1e} at most")
    assert drift < 2e-3
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, kept, step, n)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
