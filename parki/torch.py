"""Sums that PyTorch differentiates: tensors in, a tensor out.

Backward is made of sums too, with the same options (`parki.torch_sum`): first derivatives in points, densities, normals
and boxes, second ones as far as kernels have them.
"""

from __future__ import annotations

from typing import Unpack

from parki import differentiable
from parki.arguments import PUBLISHED
from parki.ewald import kernels
from parki.ewald.options import MAIN, EwaldOptions
from parki.keywords import EwaldKeywords, shows

try:
    from torch import Tensor
except ImportError as error:
    raise ImportError('parki.torch needs PyTorch: pip install "parki[torch]"') from error

from parki.torch_methods import (
    check_tensors,
    direct,
    energy,
    ewald,
    fmm,
    plain,
    summed,
    taken_box,
    treecode,
)

__all__ = [
    "direct", "energy", "ewald", "fmm", "laplace", "laplace_dipole", "laplace_grad", "stokes_comb", "stokes_dl",
    "stokes_pressure", "stokes_sl", "treecode", "yukawa",
]  # fmt: skip

REPORTS = ("return_walltime", "return_params", "return_error")  # options that are not offered


def __dir__() -> list[str]:
    return sorted(__all__)


@shows(EwaldOptions, without=REPORTS, first=MAIN)
def laplace(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """Return the Laplace potential Σ q/r, differentiable in `trg`, `src` and `dens`.

    The sum is that of `parki.ewald.laplace`.

    Parameters
    ----------
    trg, src : Tensor (3, Nt), (3, Ns)
        Points, float32 or float64, all on one device.  If both are the same tensor, its gradient has both parts.
    dens : Tensor (Ns,), or (k, Ns) for k right-hand sides
        Charges.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords; `return_walltime`, `return_params` and `return_error` are
        not offered.

    Returns
    -------
    Tensor (Nt,) or (k, Nt)
        The sum at all targets, in the dtype and on the device of the points.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, the value found and the value expected; for arguments that
        are not tensors; and for tensors that require a gradient that does not exist.
    NotImplementedError
        When a gradient is differentiated again in points or box.

    See Also
    --------
    parki.ewald.laplace : The sum of arrays, its conventions and references.

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


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=laplace)
def laplace_grad(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """Return the gradient of the Laplace potential, differentiable in `dens`.

    The sum is that of `parki.ewald.laplace_grad`.

    Returns
    -------
    Tensor (3, Nt) or (k, 3, Nt)
        The gradient at all targets, in the dtype and on the device of the points.

    See Also
    --------
    parki.ewald.laplace_grad : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    >>> q = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    >>> parki.torch.laplace_grad(x, x, q, periodicity=0, tolerance=1e-9)[0, 1].backward()
    >>> print(f"{q.grad[0]:.6f}")
    -0.250000
    """
    return _apply("laplace_grad", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=laplace)
def laplace_dipole(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """Return the potential of dipoles, differentiable in `dens`.

    The sum is that of `parki.ewald.laplace_dipole`.

    Parameters
    ----------
    dens : Tensor (3, Ns), or (k, 3, Ns) for k right-hand sides
        Dipole moments d.

    See Also
    --------
    parki.ewald.laplace_dipole : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> trg = torch.tensor([[0.0], [0.0], [2.0]], dtype=torch.float64)
    >>> d = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64, requires_grad=True)
    >>> parki.torch.laplace_dipole(trg, 0 * trg, d, periodicity=0, tolerance=1e-9).sum().backward()
    >>> print(f"{d.grad[2, 0]:.6f}")
    0.250000
    """
    return _apply("laplace_dipole", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=laplace)
def yukawa(
    trg: Tensor, src: Tensor, dens: Tensor, kappa: float, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """Return the screened Coulomb potential Σ q exp(−κr)/r, differentiable in `dens`.

    The sum is that of `parki.ewald.yukawa`.

    Parameters
    ----------
    kappa : float
        Inverse screening length κ > 0, in the inverse of the points' unit of length; not differentiable.

    See Also
    --------
    parki.ewald.yukawa : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> x = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    >>> q = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    >>> parki.torch.yukawa(x, x, q, 2.0, periodicity=0, tolerance=1e-9)[1].backward()
    >>> print(f"{q.grad[0]:.6f}")
    0.135335
    """
    return _apply("yukawa", trg, src, dens, None, options, keywords, kappa)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=laplace)
def stokes_sl(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """Return the Stokes single layer, differentiable in `trg`, `src` and `dens`.

    The sum is that of `parki.ewald.stokes_sl`.

    Parameters
    ----------
    dens : Tensor (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.

    Returns
    -------
    Tensor (3, Nt) or (k, 3, Nt)
        The velocity at all targets, in the dtype and on the device of the points.

    See Also
    --------
    parki.ewald.stokes_sl : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> trg = torch.tensor([[0.0], [0.0], [2.0]], dtype=torch.float64, requires_grad=True)
    >>> f = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64)
    >>> parki.torch.stokes_sl(trg, torch.zeros_like(f), f, periodicity=0, tolerance=1e-9)[2, 0].backward()
    >>> print(f"{trg.grad[2, 0]:.6f}")
    -0.500000
    """
    return _apply("stokes_sl", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=laplace)
def stokes_pressure(
    trg: Tensor, src: Tensor, dens: Tensor, options: EwaldOptions | None = None, **keywords: Unpack[EwaldKeywords]
) -> Tensor:
    """Return the pressure of the Stokes single layer, differentiable in `dens`.

    The sum is that of `parki.ewald.stokes_pressure`.

    Parameters
    ----------
    dens : Tensor (3, Ns), or (k, 3, Ns) for k right-hand sides
        Forces f.

    See Also
    --------
    parki.ewald.stokes_pressure : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> trg = torch.tensor([[0.0], [0.0], [2.0]], dtype=torch.float64)
    >>> f = torch.tensor([[0.0], [0.0], [1.0]], dtype=torch.float64, requires_grad=True)
    >>> parki.torch.stokes_pressure(trg, 0 * trg, f, periodicity=0, tolerance=1e-9).sum().backward()
    >>> print(f"{f.grad[2, 0]:.6f}")
    0.500000
    """
    return _apply("stokes_pressure", trg, src, dens, None, options, keywords)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=stokes_sl)
def stokes_dl(
    trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """Return the Stokes double layer, differentiable in `dens` and `normals`.

    The sum is that of `parki.ewald.stokes_dl`.

    Parameters
    ----------
    dens : Tensor (3, Ns), or (k, 3, Ns) for k right-hand sides
        Densities q.
    normals : Tensor (3, Ns)
        Normals n, of any length.

    See Also
    --------
    parki.ewald.stokes_dl : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> trg = torch.tensor([[1.0], [1.0], [0.0]], dtype=torch.float64)
    >>> q = torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64, requires_grad=True)
    >>> n = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> parki.torch.stokes_dl(trg, 0 * trg, q, n, periodicity=0, tolerance=1e-9)[0, 0].backward()
    >>> print(f"{q.grad[0, 0] * 2**2.5:.6f}")
    -6.000000
    """
    return _apply("stokes_dl", trg, src, dens, normals, options, keywords)


@shows(EwaldOptions, without=REPORTS, first=MAIN, like=stokes_dl)
def stokes_comb(
    trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor, options: EwaldOptions | None = None,
    **keywords: Unpack[EwaldKeywords],
) -> Tensor:  # fmt: skip
    """Return the Stokes single and double layer, differentiable in `dens` and `normals`.

    The sum is that of `parki.ewald.stokes_comb`.

    Parameters
    ----------
    dens : Tensor (6, Ns), or (k, 6, Ns) for k right-hand sides
        Forces f of the single layer over densities q of the double layer.

    See Also
    --------
    parki.ewald.stokes_comb : The sum of arrays, its conventions and references.

    Examples
    --------
    >>> import torch, parki
    >>> trg = torch.tensor([[1.0], [1.0], [0.0]], dtype=torch.float64)
    >>> fq = torch.tensor([[0.0], [1.0], [0.0], [1.0], [0.0], [0.0]], dtype=torch.float64, requires_grad=True)
    >>> n = torch.tensor([[0.0], [1.0], [0.0]], dtype=torch.float64)
    >>> parki.torch.stokes_comb(trg, 0 * trg, fq, n, periodicity=0, tolerance=1e-9)[0, 0].backward()
    >>> print(f"{fq.grad[3, 0] * 2**2.5:.6f}")
    -6.000000
    """
    return _apply("stokes_comb", trg, src, dens, normals, options, keywords)


def _apply(
    name: str, trg: Tensor, src: Tensor, dens: Tensor, normals: Tensor | None, options: EwaldOptions | None,
    keywords: dict, kappa: float | None = None,
) -> Tensor:  # fmt: skip
    kernel = kernels.find(name, kappa=None if kappa is None else plain(kappa))
    tensors = {"trg": trg, "src": src, "dens": dens} | ({"normals": normals} if kernel.normals else {})
    check_tensors(tensors)
    box, keywords = taken_box(keywords)
    settings = EwaldOptions.resolve(options, {key: x.detach() for key, x in tensors.items()}, **keywords)
    for flag in REPORTS:
        if getattr(settings, flag):
            raise ValueError(f"{flag} is True; expected False, because parki.torch returns a tensor.")
    is_same = trg is src
    if nd := settings.layout == "nd":
        settings = EwaldOptions.resolve(settings, layout="dn")
        vectors = {"trg": 3, "src": 3, "normals": 3} | ({"dens": kernel.dens} if kernel.dens > 1 else {})
        for argument in [name for name in tensors if name in vectors]:
            shape = tuple(tensors[argument].shape)
            if len(shape) < 2 or shape[-1] != vectors[argument]:
                raise ValueError(f"{argument} has shape {shape}; expected (N, {vectors[argument]}).")
            tensors[argument] = tensors[argument].mT
    trg, src, *strengths = tensors.values()
    sums = differentiable.ewald(kernel, settings, names=PUBLISHED)
    u = summed(sums, trg, None if is_same else src, *strengths, *(() if kernel.normals else (None,)), box)
    return u.mT if nd and kernel.result > 1 else u
