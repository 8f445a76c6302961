"""Forces by PyTorch
=================

A shaken salt crystal finds its way back, by the gradient of its energy alone.

:Shows: ``parki.torch.laplace`` as one term of an energy that PyTorch differentiates and its optimiser minimises.
:Run: ``python examples/forces.py -o forces.png`` (``--small`` for a trial; needs PyTorch)
:Expect: PyTorch's forces are −q times the field of ``parki.ewald.laplace_grad`` and add up to zero; the least energy of
   the ions is that of rock salt, −1.7475645946 for each pair, to ten digits.

Charges alone have no stable arrangement (Earnshaw): Born's repulsion b/r⁹, written in PyTorch, keeps the ions apart.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import numpy as np

import parki

if importlib.util.find_spec("torch") is None:
    sys.exit('this example needs PyTorch: pip install "parki[torch]"')
import torch

MADELUNG = 1.7475645946331822  # nearest distance 1
BORN = MADELUNG / 54  # b, for which the pressure of the crystal is about zero


def rock_salt(cells):
    """Return ions (3, N), charges (N,) and the side of a cube of rock salt with nearest distance 1."""
    side = 2 * cells
    ions = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij")).reshape(3, -1)
    return torch.tensor(ions + 0.5), torch.tensor((-1.0) ** ions.sum(axis=0)), side


def coulomb(x, charges, side, tolerance=1e-11):
    """Return the electrostatic energy, with each pair of ions counted once."""
    return 0.5 * charges @ parki.torch.laplace(x, x, charges, box=(side,) * 3, tolerance=tolerance)


def repulsion(x, side):
    """Return Born's energy of the nearest images of all pairs, which ends smoothly at half the side."""
    i, j = torch.triu_indices(x.shape[1], x.shape[1], 1)
    r = x[:, i] - x[:, j]
    r = r - side * torch.round(r.detach() / side)
    r2 = r.square().sum(dim=0)
    return BORN * (r2**-4.5 * torch.clamp(1 - 4 * r2 / side**2, min=0) ** 3).sum()


def relax(start, charges, side):
    """Return the ions of least energy, and the energies on the way, by BFGS."""
    x, energies = start.clone().requires_grad_(), []
    stop = {"tolerance_grad": 1e-6, "tolerance_change": 1e-14, "max_iter": 100}
    optimiser = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", **stop)

    def energy():
        optimiser.zero_grad()
        total = coulomb(x, charges, side, 1e-9) + repulsion(x, side)
        total.backward()
        energies.append(total.item())
        return total

    optimiser.step(energy)
    return x.detach(), energies


def draw(file, start, forces, end, charges, energies, side):
    """Draw a layer of the shaken crystal with its forces, the same layer at rest, and the energy on the way."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    layer = start[2].numpy().argsort()[: side * side]
    colours = np.where(charges[layer] > 0, "#d1495b", "#1b6ca8")
    end = (end - (end - start).mean(dim=1, keepdim=True)).numpy()  # the energy does not fix the crystal's place
    for axes, (x, y, _), title in ((left, start.numpy(), "shaken, and the forces"), (middle, end, "at rest")):
        axes.scatter(x[layer], y[layer], s=700, c=colours, edgecolors="black", zorder=2)
        axes.set(title=f"A layer of the crystal, {title}", xlim=(0, side), ylim=(0, side), aspect="equal")
        axes.set_facecolor("#e2ebf3")
        axes.set(xlabel="x (nearest distances)", ylabel="y (nearest distances)")
    left.quiver(*start[:2, layer].numpy(), *forces[:2, layer].numpy(), zorder=3, width=0.008, color="#222222")
    right.semilogy(np.maximum(np.array(energies[:-1]) - energies[-1], 1e-14), color="#3a7d44", marker=".")
    right.set(xlabel="evaluation of energy and forces", ylabel="energy above the last", title="The way down")
    right.grid(alpha=0.3)
    figure.savefig(file, dpi=120)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Forces and a minimum by PyTorch.")
    parser.add_argument("--small", action="store_true", help="fewer ions")
    parser.add_argument("-o", type=Path, metavar="FILE", help="draw a picture")
    asked = parser.parse_args(arguments)

    crystal, charges, side = rock_salt(2 if asked.small else 3)
    noise = torch.randn(crystal.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    start = (crystal + 0.12 * noise).requires_grad_()
    (gradient,) = torch.autograd.grad(coulomb(start, charges, side), start)
    start = start.detach()
    field = parki.ewald.laplace_grad(start, start, charges, box=(side,) * 3, tolerance=1e-11)
    difference = (charges * field - gradient).abs().max() / field.abs().max()
    print(f"{len(charges)} ions: PyTorch's forces and −q ∇u differ by {difference:.1e} of the largest")
    print(f"sum of all forces {gradient.sum(dim=1).abs().max() / gradient.abs().max():.1e} of the largest")
    assert difference < 1e-9
    assert gradient.sum(dim=1).abs().max() < 1e-9 * gradient.abs().max()

    end, energies = relax(start, charges, side)
    found = -2 * coulomb(end, charges, side).item() / len(charges)
    print(f"after {len(energies)} evaluations: Madelung constant {found:.12f}, error {found - MADELUNG:.1e}")
    assert abs(found - MADELUNG) < 1e-10
    if asked.o and importlib.util.find_spec("matplotlib") is None:
        print('no picture: pip install "parki[plot]"')
    elif asked.o:
        draw(asked.o, start, -gradient, end, charges, energies, side)
        print(f"picture in {asked.o}")


if __name__ == "__main__":
    main()
