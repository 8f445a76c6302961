"""The calls of `parki.ewald`: one-shot sums, each a plan used once."""

from typing import Any

from parki.arrays import Array
from parki.ewald import kernels
from parki.ewald.options import EwaldOptions
from parki.ewald.plan import Plan
from parki.ewald.report import Params


def plan(kernel: str, trg: Array, src: Array, options: EwaldOptions | None = None, **keywords: Any) -> Plan:
    """Prepare a periodic sum for fixed points: ``u = plan(dens[, normals])``.

    Parameters
    ----------
    kernel : {"laplace", "stokes_sl", "stokes_comb"}
    trg, src : array (3, Nt), (3, Ns)
        Points in ``[0, box]``, float32 or float64: NumPy or CuPy arrays, or anything with DLPack.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords: ``box=(1, 1, 1), tolerance=1e-6``.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.
    """
    chosen = kernels.find(kernel, **{name: keywords.pop(name) for name in ("kappa",) if name in keywords})
    return Plan(chosen, trg, src, EwaldOptions.resolve(options, {"trg": trg, "src": src}, **keywords))


def laplace(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Periodic Laplace potential Σ q/r, zero on average over the box, coincident pairs skipped.

    Parameters
    ----------
    trg, src : array (3, Nt), (3, Ns)
        Points in ``[0, box]``, float32 or float64: NumPy or CuPy arrays, or anything with DLPack, all in one place.
    dens : array (Ns,)
        Charges; a net charge is neutralised by a uniform background.
    options : EwaldOptions, optional
        Single options may be given or replaced by keywords.

    Returns
    -------
    array (Nt,), or a tuple ``(potential[, WallTime][, Params])`` if the options ask for them
        A CuPy array for arrays on a GPU, where nothing is copied to the host; otherwise a NumPy array.

    Raises
    ------
    ValueError, TypeError
        For input that does not fit, naming the argument, what was found and what was expected.

    References
    ----------
    Lindbo and Tornberg, J. Comput. Phys. 230 (2011); Liang et al. (2025) for the prolate split.

    Examples
    --------
    The Madelung constant of rock salt, nearest distance 1:

    >>> import numpy as np, parki
    >>> x = np.array([(i, j, k) for i in range(2) for j in range(2) for k in range(2)], float).T
    >>> q = (-1.0) ** x.sum(axis=0)
    >>> print(f"{parki.ewald.laplace(x, x, q, box=(2, 2, 2), tolerance=1e-9)[0]:.6f}")
    -1.747565
    """
    return _sum("laplace", trg, src, (dens,), options, keywords)


def stokes_sl(trg: Array, src: Array, dens: Array, options: EwaldOptions | None = None, **keywords: Any) -> Any:
    """Periodic Stokes single layer Σ (I/r + rrᵀ/r³) f, zero mean flow, coincident pairs skipped.

    `dens` is (3, Ns), the result (3, Nt); everything else as in `laplace`.  There is no factor 1/8πμ.

    References
    ----------
    Hasimoto, J. Fluid Mech. 5 (1959); af Klinteberg and Tornberg (2014).
    """
    return _sum("stokes_sl", trg, src, (dens,), options, keywords)


def stokes_comb(
    trg: Array, src: Array, dens: Array, normals: Array, options: EwaldOptions | None = None, **keywords: Any
) -> Any:
    """Periodic Stokes single and double layer, Σ (I/r + rrᵀ/r³) f − 6 r (r·q)(r·n)/r⁵, r = target − source.

    `dens` is (6, Ns), f over q; `normals` is (3, Ns) and need not be of unit length; the result is (3, Nt), with zero
    mean flow; everything else as in `laplace`.

    References
    ----------
    Kosmacher et al. (2026), the published ParkiPy; af Klinteberg and Tornberg (2014).
    """
    return _sum("stokes_comb", trg, src, (dens, normals), options, keywords)


def _sum(kernel: str, trg: Array, src: Array, strengths: tuple, options: EwaldOptions | None, keywords: dict) -> Any:
    given = dict(zip(("trg", "src", "dens", "normals"), (trg, src, *strengths), strict=False))
    resolved = EwaldOptions.resolve(options, {k: a for k, a in given.items() if a is not None}, **keywords)
    made = Plan(kernels.find(kernel), trg, src, resolved)
    found = [made(*strengths)]
    if resolved.return_walltime:
        found.append(made.walltime)
    if resolved.return_params:
        found.append(Params(made.parameters))
    return tuple(found) if len(found) > 1 else found[0]
