"""Direct sums in free space: every source for every target, no box and no cutoff."""

from __future__ import annotations

import math
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from parki import arrays, engine, pairs, ranks, scaling
from parki.arrays import AnyArray, Array, Real, module_of
from parki.engine import Space, TeamPolicy, Workunit, spaces
from parki.keywords import DirectSumKeywords, KernelParameters, shows
from parki.names import SpaceName
from parki.pairs import KernelLike, Pair
from parki.proxies import AT_ONCE
from parki.scaling import Powers

OPTIONS = ("normals", "execution_space", "threads", "comm")
CHUNK = 128  # targets per team; on a GPU one thread each
COINCIDENT = 4 * float(np.finfo(float).eps)  # gap of coincident points over distance from the origin: rounding


def _options(
    *, execution_space: SpaceName | Space | None = None, threads: int | None = None, comm: Any = None
) -> tuple[SpaceName | Space | None, int | None, Any]:
    """Return the options of a direct sum.

    Parameters
    ----------
    execution_space : str or Space, optional
        ``"Serial"``, ``"OpenMP"``, ``"Cuda"`` and others, see `parki.utils.get_execution_space`; by default where the
        arrays are: a GPU for arrays on a GPU, else ``"OpenMP"``.
    threads : int, optional
        Number of threads, by default as many as the space has; the result does not depend on it.
    comm : communicator of mpi4py, optional
        Sum over the sources of all its ranks, each of which passes its own points and gets its own result.
    """
    return execution_space, threads, comm


@overload
def direct_sum(
    kernel: KernelLike, targets: NDArray[Real], sources: NDArray[Real], dens: AnyArray,
    normals: AnyArray | None = None, **keywords: Unpack[DirectSumKeywords],
) -> NDArray[Real]: ...  # fmt: skip
@overload
def direct_sum(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, dens: AnyArray, normals: AnyArray | None = None,
    **keywords: Unpack[DirectSumKeywords],
) -> Any: ...  # fmt: skip
@shows(_options, parameters=KernelParameters)
def direct_sum(
    kernel: KernelLike, targets: AnyArray, sources: AnyArray, dens: AnyArray, normals: AnyArray | None = None,
    **keywords: Any,
) -> Any:  # fmt: skip
    """Return the free-space sum u(x_i) = Σ_j K(x_i − y_j) s_j over all pairs.

    With the vector r = x − y from source to target, its length also r, and without a factor 1/4π or 1/8πμ, K s is

    =========================  ========  ======  ====================================================================
    kernel                     dens      result  K s
    =========================  ========  ======  ====================================================================
    ``laplace``                q (Ns,)   1       q / r; also ``coulomb``
    ``laplace_grad``           q (Ns,)   3       −q r / r³, the gradient of laplace at x
    ``laplace_dipole``         d (3,Ns)  1       d·r / r³
    ``stokes_sl``              f (3,Ns)  3       f / r + r (r·f) / r³; also ``stokeslet``
    ``stokes_dl``              q (3,Ns)  3       −6 r (r·q)(r·n) / r⁵; also ``stresslet``
    ``stokes_comb``            (6,Ns)    3       both Stokes kernels, f = ``dens[:3]``, q = ``dens[3:]``
    ``stokes_pressure``        f (3,Ns)  1       2 f·r / r³, the pressure of stokes_sl
    ``stokes_grad``            f (3,Ns)  9       ∂u_i/∂x_j of stokes_sl in row 3i + j
    ``stokes_dipole``          D (9,Ns)  3       −∂_j (I/r + r rᵀ/r³)_ik D_kj, D by rows: pairs of forces
    ``yukawa``                 q (Ns,)   1       q exp(−κr) / r, with κ = ``kappa``
    ``regularised_coulomb``    q (Ns,)   1       q / s, s = √(r² + ε²), with ε = ``epsilon``
    ``spline_coulomb``         q (Ns,)   1       q / r for r ≥ 2.8ε; nearer that of a cubic spline of charge, q / ε at 0
    ``regularised_yukawa``     q (Ns,)   1       q exp(−κs) / s, with ``kappa`` and ``epsilon``
    ``oscillatory``            q (Ns,)   1       q sin(kr) / r, with ``k``, π if not given
    ``gaussian``               q (Ns,)   1       q exp(−r²/c²), with c = ``width``
    ``multiquadric``           q (Ns,)   1       q √(r² + c²), with c = ``width``
    ``inverse_quadratic``      q (Ns,)   1       q / (r² + c²), with c = ``width``
    ``biharmonic``             q (Ns,)   1       q r
    ``thin_plate``             q (Ns,)   1       q r² log(r/l), with l = ``unit``, 1 if not given
    ``rotlet``                 t (3,Ns)  3       t × r / r³
    ``regularised_stokeslet``  f (3,Ns)  3       ((r² + 2ε²) f + r (r·f)) / (r² + ε²)^(3/2), with ε = ``epsilon``
    ``regularised_dipole``     d (3,Ns)  3       ((2ε² − r²) d + 3 r (r·d)) / (r² + ε²)^(5/2), with ε = ``epsilon``
    ``rpy``                    f (3,Ns)  3       (1/r + 2a²/3r³) f + (1/r³ − 2a²/r⁵) r (r·f), with a = ``radius``; for
                                                 r < 2a (4/3a) [(1 − 9r/32a) f + 3 r (r·f) / 32ar]
    ``rpy_rotation``           f t (6,   6       velocity, that of ``rpy`` plus t × r / r³, and angular velocity
                               Ns)               f × r / r³ + (3 r (r·t) / r² − t) / 2r³, with ``radius``, r < 2a too
    =========================  ========  ======  ====================================================================

    Coincident pairs are skipped where K has no limit at r = 0; for ``regularised_coulomb`` and the kernels below,
    except ``rotlet``, the limit counts.

    In double precision, a target and a source closer than 9e-16 of the target's distance from the origin coincide; in
    single precision, equal points do.  The work is proportional to Nt Ns.

    Parameters
    ----------
    kernel : str, path, function or Pair
        A name of the table, a `parki.pairs.Pair`, the path of a file with a function ``pair`` as in ``kernels/pair``,
        or a Python function.  A path is an `os.PathLike`, or a string that ends in ``.py`` or is absolute.  The file,
        or the module of the function, has ``NS`` numbers in `dens` for each source and ``NU`` in the result for each
        target.  `Pair.with_gradient` makes pairs with gradients.
    targets, sources : array (3, Nt), (3, Ns)
        Points anywhere, float32 or float64.
    dens : array (Ns,) or (components, Ns)
        Strengths as in the table, in the points' dtype or integers.
    normals : array (3, Ns), optional
        Vectors n of the double layer, of any length; required for ``stokes_dl`` and ``stokes_comb``, and only there.

    Returns
    -------
    array (Nt,) for one component, else (components, Nt)
        The sum at all targets, in the points' dtype: a CuPy array for arrays on a GPU, else one of the library
        of the density.

    Raises
    ------
    ValueError
        For an unknown kernel, arrays of the wrong shape or dtype or in two places, values that are not finite, missing
        or surplus normals or parameters, a space that is not available or does not take arrays on a GPU, and a number
        of threads that is not positive or that the space does not have.
    TypeError
        For a kernel that is neither a name, nor a path, nor a function, nor a `Pair`.
    KernelError
        For a file that is not there, or not in the language of the kernels.

    See Also
    --------
    plan : Sum for many densities or moving points.
    parki.treecode.bldtt, parki.fmm.kifmm : Sum faster, to a tolerance.
    parki.pairs.find : Make a kernel of these names with its parameters.

    References
    ----------
    Pozrikidis, Boundary Integral and Singularity Methods for Linearized Viscous Flow (1992), for the Stokes kernels and
    the rotlet.  Cortez, The method of regularized Stokeslets, SIAM J. Sci. Comput. 23 (2001).  Rotne and Prager,
    Variational treatment of hydrodynamic interaction in polymers, J. Chem. Phys. 50 (1969), and Yamakawa, Transport
    properties of polymer chains in dilute solution, J. Chem. Phys. 53 (1970), for ``rpy``.  Wilson, Vaughn and Krasny,
    A GPU-accelerated fast summation method based on barycentric Lagrange interpolation and dual tree traversal (2021),
    for the oscillatory and the regularised Coulomb kernel.

    Examples
    --------
    Charges 1 and 4 at distance 2:

    >>> import numpy as np, parki
    >>> x = np.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(parki.direct.direct_sum("laplace", x, x, np.array([1.0, 4.0])))
    [2.  0.5]
    """
    parameters = {name: value for name, value in keywords.items() if name not in OPTIONS}
    execution_space, threads, comm = _options(**{name: a for name, a in keywords.items() if name not in parameters})
    if comm is not None and ranks.several(comm):
        return _over_ranks(comm, kernel, (targets, sources, dens, normals), execution_space, threads, parameters)
    kernel = pairs.find(kernel, OPTIONS, **parameters)
    inputs = {"targets": targets, "sources": sources, "dens": dens} | ({} if normals is None else {"normals": normals})
    space = arrays.space_of(execution_space, threads, **inputs)
    x, y, strengths = checked(kernel, targets, sources, dens, normals)
    dtype = y.dtype
    nt, ns = x.shape[1], y.shape[1]
    xp = spaces.array_module(space)
    out = xp.zeros((kernel.result, nt), dtype)
    if nt and ns:
        length = 0 if kernel.law is None else scaling.exponent(scaling.extent(x, y))
        scaled_kernel, place = kernel.scaled(length, dtype.name), scaling.times(y, length)
        rows, axes = strengths["dens"].reshape(1, -1, ns), strengths.get("normals")
        powers = Powers.of(kernel.law, length, rows, axes, kernel.result)
        columns = [place, scaling.multiplied(rows[0], powers.dens[0])]
        columns += [] if axes is None else [scaling.times(axes, powers.normals)]
        columns = [xp.asarray(a) for a in columns] + [
            xp.full((1, ns), value, dtype) for value in scaled_kernel.parameters
        ]
        src = xp.ascontiguousarray(xp.concatenate(columns).T)
        engine.parallel_for(
            TeamPolicy(space, math.ceil(nt / CHUNK), CHUNK, 1), workunit(kernel, dtype),
            xt=xp.asarray(scaling.times(x, length)), src=src, u=out, nt=nt, ns=ns, chunk=CHUNK, tiny=coincident(dtype),
        )  # fmt: skip
        scaling.multiply(out, powers.result[0])
    result = out[0] if kernel.result == 1 else out
    return arrays.like(dens)(arrays.to_host(result)) if module_of(x) is np else result


def _over_ranks(
    comm: Any, kernel: KernelLike, inputs: tuple[Any, Any, Any, Any], execution_space: Any, threads: int | None,
    parameters: dict[str, float | None],
) -> Any:  # fmt: skip
    """Return the direct sum over the sources of all ranks."""
    from parki.distributed import agreement

    names = ("targets", "sources", "dens", "normals")
    with ranks.together(comm, "a direct sum", call="direct_sum"):
        arguments = {name: a for name, a in zip(names, inputs, strict=True) if a is not None}
        pair, space = pairs.find(kernel, OPTIONS, **parameters), arrays.space_of(execution_space, threads, **arguments)
        x, y, strengths = checked(pair, *inputs)
    with ranks.together(comm, "a direct sum", **agreement.kernel_facts(pair), dtype=x.dtype.name):
        rows = strengths["dens"].reshape(1, pair.dens, y.shape[1])
    u = direct_sums(pair, x, y, rows, strengths.get("normals"), space, ranks.of(comm))[0]
    return arrays.like(inputs[2])(module_of(x).asarray(u[0] if pair.result == 1 else u))


def direct_sums(
    kernel: Pair, targets: Array, sources: Array, density: Array, normals: Array | None, space: Space, comm: Any = None
) -> Array:
    """Return direct sums ``(rhs, components, Nt)`` of a density ``(rhs, components, Ns)``, on the host.

    With a `parki.distributed.comm.Comm` the sources are those of all its ranks.
    """
    if comm is not None:
        return _around(comm, kernel, targets, sources, density, normals, space)
    rows = density[:, 0] if kernel.dens == 1 else density
    sums = [direct_sum(kernel, targets, sources, row, normals, execution_space=space) for row in rows]
    return np.stack([arrays.to_host(u).reshape(kernel.result, -1) for u in sums])


def _around(
    comm: Any, kernel: Pair, targets: Array, sources: Array, density: Array, normals: Array | None, space: Space
) -> np.ndarray:
    """Return direct sums of sources that travel from rank to rank."""
    from parki.distributed import ring

    xp, (rhs, components) = module_of(sources), density.shape[:2]
    columns = [sources, density.reshape(rhs * components, sources.shape[1]), *([] if normals is None else [normals])]
    block = xp.ascontiguousarray(xp.concatenate([xp.asarray(a, sources.dtype) for a in columns]))
    u = np.zeros((rhs, kernel.result, targets.shape[1]), sources.dtype)
    for block_rows in ring.around(comm, block):
        if u.size and block_rows.shape[1]:
            rows = block_rows[3 : 3 + rhs * components].reshape(rhs, components, block_rows.shape[1])
            u += direct_sums(kernel, targets, block_rows[:3], rows, None if normals is None else block_rows[-3:], space)
    return u


def workunit(pair: Pair, dtype: np.dtype) -> Workunit:
    """Return the kernel that `direct_sum` launches for points of this dtype."""
    hints = (*pair.hints, AT_ONCE)
    return engine.kernel("direct", "direct_sum", real=dtype, pair=pair.pair, hints=hints, **dict(pair.slots))


def checked(kernel: Pair, targets: Any, sources: Any, dens: Any, normals: Any) -> tuple[Array, Array, dict[str, Array]]:
    """Return checked targets, sources, and strengths by name, of one dtype."""
    x, y = arrays.points("targets", targets), arrays.points("sources", sources)
    strengths = _strengths(kernel, y, dens, normals)
    arrays.same_dtype(targets=x, sources=y, **strengths)
    return x, y, strengths


def _strengths(kernel: Pair, sources: Array, dens: Any, normals: Any) -> dict[str, Array]:
    """Return checked strengths by name."""
    n, dtype = sources.shape[1], sources.dtype
    checked = {"dens": arrays.density("dens", dens, kernel.dens, n, promoted=dtype)}
    if kernel.normals:
        if normals is None:
            raise ValueError(f"normals is missing; {kernel} expects (3, {n}), one normal for each source.")
        checked["normals"] = arrays.density("normals", normals, 3, n, promoted=dtype)
    elif normals is not None:
        raise ValueError(f"normals was given, but {kernel} takes none.")
    return checked


def coincident(dtype: np.dtype) -> float:
    """Return the largest squared distance of a coincident pair, over that of the target from the origin."""
    return 0.0 if dtype == np.float32 else COINCIDENT**2
