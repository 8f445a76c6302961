"""Electrostatic potential at every atom of a periodic box of water, and its error against exact values.

python examples/water.py [tolerance]
"""

import sys
from pathlib import Path

import numpy as np

import parki

tolerance = float(sys.argv[1]) if len(sys.argv) > 1 else 1e-6
water = np.load(Path(__file__).parent / "data" / "water.npz")

plan = parki.ewald.plan("laplace", water["trg"], water["src"], box=water["box"], tolerance=tolerance)
potential = plan(water["dens"])

exact = water["potential"]
error = np.linalg.norm(potential[water["sample"]] - exact) / np.linalg.norm(exact)
energy = 0.5 * np.sum(water["dens"] * potential)  # e²/nm, the bonds inside the molecules included
print(f"{water['src'].shape[1]} atoms, energy {energy:.6f} e²/nm")
print(f"relative RMS error {error:.1e} at {len(exact)} atoms, tolerance {tolerance:g}")
if error > tolerance:
    sys.exit("the tolerance is missed")
