"""Sums as nodes of PyTorch's graph, for `parki.torch`: backward is made of such nodes, by `parki.differentials`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from parki import differentials
from parki.differentiable import Differentiable, NamedSum
from parki.differentials import Places


class SumNode(torch.autograd.Function):
    """A sum ``(rhs, components, Nt)`` of targets, sources (None where they are the targets), density, normals, box."""

    @staticmethod
    def forward(question: NamedSum, *tensors: Tensor | None) -> Tensor:
        """Return the sum."""
        return _tensor(question.sums.sum(question.name, *(_array(a) for a in tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the arguments for `backward`."""
        ctx.question = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, w: Tensor) -> tuple[Tensor | None, ...]:
        """Return the cotangents of the arguments, None for arguments that need none."""
        sums, name = ctx.question.sums, ctx.question.name
        x, y, d, normals, box = ctx.saved_tensors
        need_x, need_y, need_d, need_normals, need_box = ctx.needs_input_grad[1:]
        kernel, slope, places = sums.pair(name), sums.slope_of(name), Places(x, y)
        to_x = to_y = to_d = to_normals = to_box = None

        def field(name: str, targets: Tensor, sources: Tensor | None, d: Tensor, normals: Tensor | None) -> Tensor:
            return _sum(NamedSum(sums, name), targets, sources, d, normals, box)

        if (need_x or need_y) and slope is None:  # zeros complete the graph; `Once` raises where it is followed
            to_x, to_y = (torch.zeros_like(a) if a is not None else None for a in (x, y))
        elif need_x or need_y:
            to_x, to_y = differentials.to_points(kernel, slope, field, places, d, w, (need_x, need_y))
        if need_d:
            to_d = differentials.to_density(kernel, field, places, w, normals)
        if need_normals:
            to_normals = differentials.to_normals(field, places, d, w)
        if need_box:
            to_box = BoxNode.apply(sums, x, y, d, w, box)
        return None, to_x, to_y, to_d, to_normals, to_box

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], question: NamedSum, *tensors: Tensor | None) -> tuple[Tensor, int]:
        """Sum densities of one set of points as right-hand sides, and all other batches one by one."""
        _, in_x, in_y, in_d, in_normals, in_box = in_dims
        if any(dim is not None for dim in (in_x, in_y, in_normals, in_box)):
            return _each(SumNode, info, in_dims, question, *tensors)
        x, y, d, normals, box = tensors
        d = d.movedim(in_d, 0)
        u = SumNode.apply(question, x, y, d.flatten(0, 1), normals, box)
        return u.unflatten(0, d.shape[:2]), 0


class BoxNode(torch.autograd.Function):
    """Derivative of Σ w · u in the box, which cannot be differentiated again."""

    @staticmethod
    def forward(sums: Differentiable, *tensors: Tensor | None) -> Tensor:
        """Return the derivative."""
        return _tensor(sums.box_slope(*(_array(a) for a in tensors)))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep no arguments."""

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Refuse second derivatives."""
        raise NotImplementedError("the derivative in the box was differentiated again; expected first derivatives.")

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        """Find derivatives one by one."""
        return _each(BoxNode, info, in_dims, *arguments)


class Once(torch.autograd.Function):
    """Identity on a tensor in which a sum has no derivative, or none that can be differentiated again."""

    @staticmethod
    def forward(x: Tensor, text: str) -> Tensor:
        """Return the tensor."""
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep the message."""
        ctx.text = inputs[1]

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """Refuse derivatives, with the message."""
        raise NotImplementedError(ctx.text)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, text: str) -> tuple[Any, Any]:
        """Return the tensors as they are."""
        return Once.apply(x, text), in_dims[0]


class EnergyNode(torch.autograd.Function):
    """Energy of charges ``(N,)`` at points, with its derivatives from the same pass."""

    @staticmethod
    def forward(sums: Differentiable, x: Tensor, q: Tensor, box: Tensor | None, strained: bool) -> tuple[Tensor, ...]:
        """Return the energy, and its derivatives by points, charges and box."""
        energy, *slopes = sums.energy(_array(x), _array(q), _array(box), strained)
        return x.new_tensor(energy), *(None if a is None else _tensor(a) for a in slopes)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep arguments and derivatives for `backward`."""
        ctx.sums, x, q, box, _ = inputs
        ctx.mark_non_differentiable(*(a for a in output[1:] if a is not None))
        ctx.save_for_backward(x, q, box, *output[1:])

    @staticmethod
    def backward(ctx: Any, w: Tensor, *unused_gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the derivatives, as differentiable sums if they will be differentiated again."""
        x, q, box, by_x, by_q, by_box = ctx.saved_tensors
        if torch.is_grad_enabled() and any(a is not None and a.requires_grad for a in (x, q, box)):
            sums = ctx.sums
            by_q = _sum(NamedSum(sums, sums.kernel.name), x, None, q[None, None], None, box)[0, 0]
            by_x = q * _sum(NamedSum(sums, sums.slope.name), x, None, q[None, None], None, box)[0]
            by_box = None if by_box is None else BoxNode.apply(sums, x, None, q[None, None], 0.5 * q[None, None], box)
        return None, w * by_x, w * by_q, None if by_box is None else w * by_box, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        """Find energies one by one."""
        return _each(EnergyNode, info, in_dims, *arguments)


def _each(node: Any, info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
    """Apply a node to each entry of a batch; return its results, stacked, and the axes of these."""
    batch = [
        node.apply(*(a if dim is None else a.select(dim, i) for a, dim in zip(arguments, in_dims, strict=True)))
        for i in range(info.batch_size)
    ]
    if isinstance(batch[0], Tensor):
        return torch.stack(batch), 0
    results = tuple(None if outputs[0] is None else torch.stack(outputs) for outputs in zip(*batch, strict=True))
    return results, tuple(None if a is None else 0 for a in results)


def _sum(
    question: NamedSum, x: Tensor, y: Tensor | None, d: Tensor, normals: Tensor | None, box: Tensor | None
) -> Tensor:
    """Return a sum whose points and box raise where a derivative that does not exist is followed."""
    sums, name = question.sums, question.name
    if sums.slope_of(name) is None:
        text = f"{sums.pair(name)} has no derivative in its points here; expected first derivatives in points."
        x, y = (a if a is None or not a.requires_grad else Once.apply(a, text) for a in (x, y))
    if box is not None and box.requires_grad and not sums.box_differentiable(name):
        box = Once.apply(box, f"{sums.pair(name)} has no derivative in the box here.")
    return SumNode.apply(question, x, y, d, normals, box)


def _tensor(u: Any) -> Tensor:
    """Return an array as a tensor on the same memory."""
    return torch.from_numpy(u) if isinstance(u, np.ndarray) else torch.from_dlpack(u)


def _array(x: Tensor | None) -> Any:
    """Return a tensor as plans take it: a NumPy array over the same memory, or itself where it is on a GPU."""
    if x is None:
        return None
    return x.detach().numpy() if x.device.type == "cpu" else x.detach().contiguous()
