"""Sums of every method that PyTorch differentiates, for `parki.torch`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from parki import differentiable, torch_sum
from parki.differentiable import Differentiable, NamedSum
from parki.docstrings import DIFFERENTIABLE, DIFFERENTIABLE_ENERGY, completed


@completed(DIFFERENTIABLE)
def ewald(
    kernel: Any, targets: Tensor, sources: Tensor, density: Tensor, normals: Tensor | None = None, **options: Any
) -> Tensor:
    """Return a sum of `parki.ewald.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    The pressure of rock salt is a third of its energy's density:

    >>> import torch, parki
    >>> x = torch.cartesian_prod(*[torch.arange(2.0)] * 3).T.double()
    >>> q, box = (-1.0) ** x.sum(dim=0), torch.full((3,), 2.0, dtype=torch.float64, requires_grad=True)
    >>> y = x * box[:, None] / 2
    >>> energy = 0.5 * q @ parki.torch.ewald("laplace", y, y, q, box=box, tolerance=1e-9)
    >>> energy.backward()
    >>> print(f"{-box.grad.mean() / 4:.5f} {energy / 24:.5f}")
    -0.29126 -0.29126
    """
    tensors = {"targets": targets, "sources": sources, "density": density, "normals": normals}
    return _of("ewald", kernel, tensors, options)


@completed(DIFFERENTIABLE)
def treecode(
    kernel: Any, targets: Tensor, sources: Tensor, density: Tensor, normals: Tensor | None = None, **options: Any
) -> Tensor:
    """Return a sum of `parki.treecode.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    >>> m = torch.ones(2, dtype=torch.float64)
    >>> (0.5 * m @ parki.torch.treecode("coulomb", x, x, m, tolerance=1e-6)).backward()
    >>> print(x.grad[0].numpy())
    [ 0.25 -0.25]
    """
    tensors = {"targets": targets, "sources": sources, "density": density, "normals": normals}
    return _of("treecode", kernel, tensors, options)


@completed(DIFFERENTIABLE)
def fmm(
    kernel: Any, targets: Tensor, sources: Tensor, density: Tensor, normals: Tensor | None = None, **options: Any
) -> Tensor:
    """Return a sum of `parki.fmm.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    >>> q = torch.ones(2, dtype=torch.float64, requires_grad=True)
    >>> parki.torch.fmm("coulomb", x, x, q, tolerance=1e-6)[0].backward()
    >>> print(q.grad.numpy().round(4))
    [0.  0.5]
    """
    tensors = {"targets": targets, "sources": sources, "density": density, "normals": normals}
    return _of("fmm", kernel, tensors, options)


@completed(DIFFERENTIABLE)
def direct(
    kernel: Any, targets: Tensor, sources: Tensor, density: Tensor, normals: Tensor | None = None, **options: Any
) -> Tensor:
    """Return a sum of `parki.direct.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    >>> q = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    >>> parki.torch.direct("coulomb", x, x, q).sum().backward()
    >>> print(q.grad.numpy())
    [0.5 0.5]
    """
    tensors = {"targets": targets, "sources": sources, "density": density, "normals": normals}
    return _of("direct", kernel, tensors, options)


@completed(DIFFERENTIABLE_ENERGY)
def energy(kernel: Any, points: Tensor, charges: Tensor, *, by: str = "ewald", **options: Any) -> Tensor:
    """Return the energy ½ Σ q u of charges in each other's potential u, with its derivatives from the same pass.

    The energy is differentiable in points, charges and box; twice in charges, and in points and charges.  The sum of
    potential and gradient costs about 1.4 times that of the potential.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    >>> q = torch.tensor([1.0, -1.0], dtype=torch.float64)
    >>> energy = parki.torch.energy("laplace", x, q, periodicity=0, tolerance=1e-9)
    >>> energy.backward()
    >>> print(f"{energy:.6f} {-x.grad[0, 0]:.6f}")
    -0.500000 0.250000
    """
    tensors = {"points": points, "charges": charges}
    check_tensors(tensors)
    box, options = taken_box(options)
    sums = differentiable.of_method(by, kernel, options)
    sums.check_energy(points, charges)
    strained = box is not None and box.requires_grad
    return torch_sum.EnergyNode.apply(sums, points, charges, box, strained)[0]


def _of(method: str, kernel: Any, tensors: dict[str, Any], options: dict[str, Any]) -> Tensor:
    """Return the sum of a method, with the options of its plan."""
    tensors = {name: x for name, x in tensors.items() if x is not None}
    check_tensors(tensors)
    box, options = taken_box(options)
    if "kappa" in options:
        options["kappa"] = plain(options["kappa"])
    sums = differentiable.of_method(method, kernel, options)
    trg, src, dens, normals = (tensors.get(name) for name in ("targets", "sources", "density", "normals"))
    return summed(sums, trg, None if src is trg else src, dens, normals, box)


def summed(
    sums: Differentiable, x: Tensor, y: Tensor | None, dens: Tensor, normals: Tensor | None, box: Tensor | None
) -> Tensor:
    """Return the sum of tensors as a caller gives them."""
    kernel, names, n = sums.kernel, sums.names, sums.check(x, y, dens, normals)
    if sums.slope_of(kernel.name) is None:
        _refuse(zip(names[:2], (x, y), strict=True), f"{kernel} is not differentiable in its points here")
    if not sums.box_differentiable(kernel.name):
        _refuse([("box", box)], f"{kernel} is not differentiable in its box here")
    question = NamedSum(sums, kernel.name)
    return sums.shaped(dens, n, lambda d: torch_sum.SumNode.apply(question, x, y, d, normals, box))


def _refuse(named_values: Any, text: str) -> None:
    """Refuse tensors that require a gradient."""
    for name, x in named_values:
        if x is not None and x.requires_grad and torch.is_grad_enabled():
            raise ValueError(f"{name} requires a gradient, and {text}. Pass {name}.detach().")


def check_tensors(tensors: dict[str, Any]) -> None:
    """Refuse arguments that are no tensors."""
    for argument, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{argument} is a {type(x).__name__}; expected a torch.Tensor.")


def taken_box(options: dict[str, Any]) -> tuple[Tensor | None, dict[str, Any]]:
    """Return the box if it is a tensor, else None; and options with `ANY_BOX` for it."""
    return differentiable.taken_box(options, Tensor)


def plain(kappa: Any) -> float:
    """Return κ as a number; refuse a tensor that requires a gradient."""
    if isinstance(kappa, Tensor) and kappa.requires_grad:
        raise ValueError("kappa requires a gradient, and yukawa is not differentiable in it here. Pass float(kappa).")
    return float(kappa)
