"""Sums of `parki.ewald` that PyTorch differentiates: tensors in, a tensor out.

Backward is made of sums too, with the same options: in the density it is the transposed sum, from the targets to the
sources; in the points it is the gradient of the field, contracted with the cotangent at the targets, and at the sources
the gradient of the cotangent's field, contracted with the density.  First derivatives only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from parki import adjoints
from parki.arguments import PUBLISHED
from parki.ewald import kernels
from parki.ewald.kernels import Kernel
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.keywords import EwaldKeywords, shows
from parki.plan import make

try:
    import torch
except ImportError as error:
    raise ImportError('parki.torch needs PyTorch: pip install "parki[torch]"') from error

from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = [
    "laplace", "laplace_dipole", "laplace_grad", "stokes_comb", "stokes_dl", "stokes_pressure", "stokes_sl", "yukawa",
]  # fmt: skip

REPORTS = ("return_walltime", "return_params", "return_error")  # options that are not offered


def __dir__() -> list[str]:
    return sorted(__all__)


@shows(EwaldOptions, without=REPORTS)
def laplace(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """`parki.ewald.laplace`, differentiable in `trg`, `src` and `dens`.

    Parameters
    ----------
    trg, src, dens : Tensor
        As there, float32 or float64, all on one device.  If `trg` and `src` are the same tensor, its gradient has both
        parts.
    options : EwaldOptions, optional
        As there, and as keywords; `return_walltime`, `return_params` and `return_error` are not offered.

    Returns
    -------
    Tensor
        In the dtype and on the device of the points.

    Raises
    ------
    ValueError, TypeError
        As there; for arguments that are not tensors; and for those that require a gradient which there is not.
    RuntimeError
        By PyTorch, when a gradient is differentiated again.

    Examples
    --------
    The force between two charges is −q times the gradient, here −1/r² towards each other:

    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    >>> q = torch.tensor([1.0, -1.0], dtype=torch.float64)
    >>> energy = 0.5 * q @ parki.torch.laplace(x, x, q, periodicity=0, tolerance=1e-9)
    >>> energy.backward()
    >>> print(f"{-x.grad[0, 0]:.6f} {-x.grad[0, 1]:.6f}")
    0.250000 -0.250000
    """
    return _apply("laplace", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def laplace_grad(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """`parki.ewald.laplace_grad`, differentiable in `dens`; everything else as in `laplace`."""
    return _apply("laplace_grad", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def laplace_dipole(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """`parki.ewald.laplace_dipole`, differentiable in `dens`; everything else as in `laplace`."""
    return _apply("laplace_dipole", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def yukawa(
    trg: Tensor, src: Tensor, dens: Tensor, kappa: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """`parki.ewald.yukawa`, differentiable in `dens`; everything else as in `laplace`."""
    return _apply("yukawa", trg, src, dens, None, options, keywords, kappa)


@shows(EwaldOptions, without=REPORTS)
def stokes_sl(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """`parki.ewald.stokes_sl`, differentiable in `trg`, `src` and `dens`; everything else as in `laplace`."""
    return _apply("stokes_sl", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def stokes_pressure(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """`parki.ewald.stokes_pressure`, differentiable in `dens`; everything else as in `laplace`."""
    return _apply("stokes_pressure", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def stokes_dl(
    trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """`parki.ewald.stokes_dl`, differentiable in `dens` and `normals`; everything else as in `laplace`."""
    return _apply("stokes_dl", trg, src, dens, normals, options, keywords)


@shows(EwaldOptions, without=REPORTS)
def stokes_comb(
    trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """`parki.ewald.stokes_comb`, differentiable in `dens` and `normals`; everything else as in `laplace`."""
    return _apply("stokes_comb", trg, src, dens, normals, options, keywords)


def _apply(
    name: str, trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor | None, options: EwaldOptions | None,
    keywords: dict, kappa: float | None = None,
) -> Tensor:  # fmt: skip
    kernel = kernels.find(name, kappa=None if kappa is None else _plain(kappa))
    given = {"trg": trg, "src": src, "dens": dens} | ({"normals": normals} if kernel.normals else {})
    for argument, x in given.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{argument} is a {type(x).__name__}; expected a torch.Tensor.")
        if argument in ("trg", "src") and name not in kernels.SLOPES and x.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{argument} requires a gradient, and {name} is not differentiable in its points here. "
                f"Pass {argument}.detach()."
            )
    resolved = EwaldOptions.resolve(options, {key: x.detach() for key, x in given.items()}, **keywords)
    for flag in REPORTS:
        if getattr(resolved, flag):
            raise ValueError(f"{flag} is True; expected False, because parki.torch returns a tensor.")
    same = trg is src
    if nd := resolved.layout == "nd":
        resolved = EwaldOptions.resolve(resolved, layout="dn")
        vectors = {"trg": 3, "src": 3, "normals": 3} | ({"dens": kernel.dens} if kernel.dens > 1 else {})
        for argument in [name for name in given if name in vectors]:
            shape = tuple(given[argument].shape)
            if len(shape) < 2 or shape[-1] != vectors[argument]:
                raise ValueError(f"{argument} has shape {shape}; expected (N, {vectors[argument]}).")
            given[argument] = given[argument].mT
    trg, src, *strengths = given.values()
    u = _Sum.apply(TensorSum(kernel, resolved, same), trg, src, *strengths, *(() if kernel.normals else (None,)))
    return u.mT if nd and kernel.result > 1 else u


def _plain(kappa: Any) -> float:
    if isinstance(kappa, Tensor) and kappa.requires_grad:
        raise ValueError("kappa requires a gradient, and yukawa is not differentiable in it here. Pass float(kappa).")
    return float(kappa)


@dataclass(frozen=True)
class TensorSum:
    """A sum apart from its tensors: kernel, options, and whether the targets are the sources."""

    kernel: Kernel
    options: EwaldOptions
    same: bool


class _Sum(torch.autograd.Function):
    """A sum as a node of PyTorch's graph; arrays are ``(components, N)``."""

    @staticmethod
    def forward(ctx: Any, question: TensorSum, *tensors: Tensor | None) -> Tensor:
        ctx.save_for_backward(*tensors)
        ctx.question = question
        trg, src, dens, normals = tensors
        return _field(question.kernel, trg, trg if question.same else src, dens, normals, question.options)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple:
        kernel, options, same = ctx.question.kernel, ctx.question.options, ctx.question.same
        trg, src, dens, normals = ctx.saved_tensors
        need_trg, need_src, need_dens, need_normals = ctx.needs_input_grad[1:]
        g = cotangent.reshape(-1, kernel.result, trg.shape[1])
        d = dens.reshape(-1, kernel.dens, src.shape[1])
        to_dens = to_normals = None
        to_trg, to_src = _to_points(ctx.question, trg, src, d, g, need_trg, need_src)
        if need_dens and not kernel.normals:
            adjoint = adjoints.of(kernel)
            back = replace(kernels.KERNELS[adjoint.name], parameters=kernel.parameters)
            to_dens = adjoint.factor * _field(back, src, src if same else trg, _given(back, g), None, options)
        elif need_dens or need_normals:
            stress = _stress(options, src, src if same else trg, g)
            to_dens = -torch.einsum("kabn,bn->kan", stress, normals)
            to_normals = -torch.einsum("kabn,kan->bn", stress, d[:, -3:])
            if kernel.single and need_dens:
                single = _field(kernels.STOKES_SL, src, src if same else trg, g, None, options)
                to_dens = torch.cat([single, to_dens], dim=1)
        to_dens = to_dens.reshape(dens.shape) if need_dens else None
        return None, to_trg, to_src, to_dens, to_normals if need_normals else None


def _to_points(
    question: TensorSum, trg: Tensor, src: Tensor, d: Tensor, g: Tensor, need_trg: bool, need_src: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Return the cotangents of targets and sources, of densities d and cotangents g ``(rhs, components, N)``."""
    if not (need_trg or need_src):
        return None, None
    kernel, options, same = question.kernel, question.options, question.same
    slope = kernels.KERNELS[kernels.SLOPES[kernel.name]]

    def contracted(at: Tensor, sources: Tensor, strengths: Tensor, weights: Tensor) -> Tensor:
        found = _field(slope, at, sources, _given(slope, strengths), None, options)
        return torch.einsum("kcan,kcn->an", found.reshape(-1, kernel.result, 3, at.shape[1]), weights)

    if same and need_trg and need_src:  # one sum of twice the right-hand sides; autograd adds the other, nothing
        return contracted(trg, trg, torch.cat([d, g]), torch.cat([g, d])), None
    to_trg = contracted(trg, trg if same else src, d, g) if need_trg else None
    return to_trg, contracted(src, src if same else trg, g, d) if need_src else None


def _stress(options: EwaldOptions, at: Tensor, forces_at: Tensor, forces: Tensor) -> Tensor:
    """Stress ``(rhs, 3, 3, N)`` of the flow of forces ``(rhs, 3, N)``: that of q nᵀ on it is minus the double layer."""
    slope = _field(kernels.STOKES_GRAD, at, forces_at, forces, None, options).reshape(-1, 3, 3, at.shape[1])
    pressure = _field(kernels.STOKES_PRESSURE, at, forces_at, forces, None, options)
    one = torch.eye(3, dtype=at.dtype, device=at.device)[:, :, None]
    return slope + slope.transpose(1, 2) - pressure[:, None, None, :] * one


def _given(kernel: Kernel, strengths: Tensor) -> Tensor:
    """Strengths ``(rhs, components, N)`` as sums take them: ``(rhs, N)`` for one component."""
    return strengths[:, 0] if kernel.dens == 1 else strengths


def _field(
    kernel: Kernel, trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor | None, options: EwaldOptions
) -> Tensor:
    """Return the sum, without a graph; on a GPU tensors and result change hands by DLPack."""
    same = trg is src
    trg, src, dens, normals = (x if x is None else _array(x) for x in (trg, src, dens, normals))
    u = make(Ewald(kernel, options, names=PUBLISHED), trg, trg if same else src)(dens, normals)
    return torch.from_numpy(u) if isinstance(u, np.ndarray) else torch.from_dlpack(u)


def _array(x: Tensor) -> Any:
    """Return a tensor as plans take it: a NumPy array over the same memory, or itself where it is on a GPU."""
    return x.detach().numpy() if x.device.type == "cpu" else x.detach().contiguous()
