"""A sum as a node of PyTorch's graph, for `parki.torch`.

In the density backward is the transposed sum, from the targets to the sources; in the points it is the gradient of the
field, contracted with the cotangent at the targets, and at the sources the gradient of the cotangent's field,
contracted with the density.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from parki import adjoints
from parki.arguments import PUBLISHED
from parki.ewald import kernels
from parki.ewald.kernels import Kernel
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.plan import make


@dataclass(frozen=True)
class TensorSum:
    """A sum apart from its tensors: kernel, options, and whether the targets are the sources."""

    kernel: Kernel
    options: EwaldOptions
    same: bool


class TensorNode(torch.autograd.Function):
    """A sum as a node of PyTorch's graph; arrays are ``(components, N)``."""

    @staticmethod
    def forward(ctx: Any, question: TensorSum, *tensors: Tensor | None) -> Tensor:
        """Return the sum of targets, sources, density and normals, and keep them."""
        ctx.save_for_backward(*tensors)
        ctx.question = question
        trg, src, dens, normals = tensors
        return _field(question.kernel, trg, trg if question.same else src, dens, normals, question.options)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> tuple:
        """Return the cotangents of the arguments, None for those that need none."""
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
