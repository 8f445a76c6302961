"""Draw the picture of README and of the site's first page.

python docs/_static/suspension.py
"""

from io import BytesIO
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import parki

BOX = np.array([3.0, 1.0, 1.2])
DROPS = 0.16 * np.array([1.0, 0.8, 0.65, 0.9])  # radii of four drops of suspension
CENTRES = np.array([[0.45, 1.25, 1.9, 2.55], [0.5, 0.42, 0.55, 0.5], [0.98, 0.62, 0.75, 0.5]])
PARTICLES = 24_000

rng = np.random.default_rng(4)
drop = rng.choice(4, PARTICLES, p=DROPS**3 / (DROPS**3).sum())
away = rng.standard_normal((3, PARTICLES))
away *= DROPS[drop] * rng.random(PARTICLES) ** (1 / 3) / np.linalg.norm(away, axis=0)
x = parki.utils.wrap(CENTRES[:, drop] + away, BOX)
weight = np.stack([np.zeros(PARTICLES), np.zeros(PARTICLES), np.full(PARTICLES, -1 / PARTICLES)])

plan = parki.ewald.plan("stokes_sl", x, x, box=BOX, tolerance=1e-6)
for _ in range(14):  # particles drift with the liquid
    x = parki.utils.wrap(x + 0.01 * plan(weight), BOX)
    plan.move(x)

across, up = np.linspace(0, BOX[0], 600), np.linspace(0, BOX[2], 240)
plane = np.stack(np.meshgrid(across, [0.5], up, indexing="ij")).reshape(3, -1)
flow = parki.ewald.stokes_sl(plane, x, weight, box=BOX, tolerance=1e-4).reshape(3, 600, 240)
speed = np.hypot(flow[0], flow[2]).T

figure = Figure(figsize=(9, 4.1), layout="constrained")
axes = figure.subplots()
image = axes.pcolormesh(across, up, speed, cmap="magma", shading="gouraud", vmin=0, vmax=np.quantile(speed, 0.995))
lines = axes.streamplot(
    across, up, flow[0].T, flow[2].T, density=(2.6, 1.1), color="white", linewidth=0.5, arrowsize=0.6
)
lines.lines.set(alpha=0.7)
near = np.abs(x[1] - 0.5) < 0.02
axes.scatter(x[0, near], x[2, near], s=2.2, color="#7fd6c2", linewidths=0, zorder=3)
axes.set(aspect="equal", xlim=(0, BOX[0]), ylim=(0, BOX[2]), xlabel="x / L", ylabel="height / L")
axes.set_title(f"Four drops of suspension sink in a periodic box: {PARTICLES:,} point forces".replace(",", "\u202f"))
figure.colorbar(image, ax=axes, label="speed of the liquid (F / 8πμL)", pad=0.01, extend="max")
drawing = BytesIO()
figure.savefig(drawing, dpi=120)
coloured = Image.open(drawing).convert("RGB").quantize(256, dither=Image.Dither.FLOYDSTEINBERG)
coloured.save(Path(__file__).with_suffix(".png"), optimize=True)
