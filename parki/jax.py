"""Sums that JAX differentiates and compiles around: arrays in, an array out.

Each sum is a callback on the host, so that it may stand inside ``jax.jit``, ``jax.grad`` and ``jax.vmap``.  Its plan is
kept: when points move between calls, the plan moves with them.  Derivatives are sums too (`parki.differentials`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import cachetools
import numpy as np

from parki import differentiable
from parki.differentiable import Differentiable, NamedSum
from parki.docstrings import DIFFERENTIABLE, DIFFERENTIABLE_ENERGY, completed

try:
    import jax
except ImportError as error:
    raise ImportError('parki.jax needs JAX: pip install "parki[jax]"') from error

from parki import jax_sum

__all__ = ["direct", "energy", "ewald", "fmm", "treecode"]

_SUMS: cachetools.LRUCache[Any, Differentiable] = cachetools.LRUCache(32)
_LOCK = threading.Lock()


def __dir__() -> list[str]:
    return sorted(__all__)


@completed(DIFFERENTIABLE)
def ewald(kernel: Any, targets: Any, sources: Any, density: Any, normals: Any = None, **options: Any) -> jax.Array:
    """Return a sum of `parki.ewald.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import jax, parki
    >>> import jax.numpy as jnp
    >>> jax.config.update("jax_enable_x64", True)
    >>> x = jnp.array([[0.0, 0.5], [0.0, 0.5], [0.0, 0.5]])
    >>> @jax.jit
    ... def charged(q):
    ...     return 0.5 * q @ parki.jax.ewald("laplace", x, x, q, box=(1, 1, 1), tolerance=1e-9)
    >>> print(f"{jax.grad(charged)(jnp.array([1.0, -1.0]))[0] * 0.75**0.5:.6f}")  # Madelung constant of CsCl
    -1.762675
    """
    return _of("ewald", kernel, (targets, sources, density, normals), options)


@completed(DIFFERENTIABLE)
def treecode(kernel: Any, targets: Any, sources: Any, density: Any, normals: Any = None, **options: Any) -> jax.Array:
    """Return a sum of `parki.treecode.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import jax, parki
    >>> import jax.numpy as jnp
    >>> jax.config.update("jax_enable_x64", True)
    >>> x, m = jnp.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), jnp.ones(2)
    >>> print(jax.grad(lambda x: 0.5 * m @ parki.jax.treecode("coulomb", x, x, m, tolerance=1e-6))(x)[0])
    [ 0.25 -0.25]
    """
    return _of("treecode", kernel, (targets, sources, density, normals), options)


@completed(DIFFERENTIABLE)
def fmm(kernel: Any, targets: Any, sources: Any, density: Any, normals: Any = None, **options: Any) -> jax.Array:
    """Return a sum of `parki.fmm.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import jax, parki
    >>> import jax.numpy as jnp
    >>> jax.config.update("jax_enable_x64", True)
    >>> x = jnp.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    >>> print(jax.jit(lambda q: parki.jax.fmm("coulomb", x, x, q, tolerance=1e-6))(jnp.array([1.0, 4.0])))
    [2.  0.5]
    """
    return _of("fmm", kernel, (targets, sources, density, normals), options)


@completed(DIFFERENTIABLE)
def direct(kernel: Any, targets: Any, sources: Any, density: Any, normals: Any = None, **options: Any) -> jax.Array:
    """Return a sum of `parki.direct.plan`, differentiable in each argument that its kernel has a derivative in.

    Examples
    --------
    >>> import jax, parki
    >>> import jax.numpy as jnp
    >>> jax.config.update("jax_enable_x64", True)
    >>> x, q = jnp.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), jnp.array([1.0, 4.0])
    >>> print(jax.jacrev(lambda q: parki.jax.direct("coulomb", x, x, q))(q))
    [[0.  0.5]
     [0.5 0. ]]
    """
    return _of("direct", kernel, (targets, sources, density, normals), options)


@completed(DIFFERENTIABLE_ENERGY)
def energy(kernel: Any, points: Any, charges: Any, *, by: str = "ewald", **options: Any) -> jax.Array:
    """Return the energy ½ Σ q u of charges in each other's potential u, with its derivatives from the same pass.

    The energy is differentiable in points, charges and box; twice in charges, and in points and charges.

    Examples
    --------
    >>> import jax, parki
    >>> import jax.numpy as jnp
    >>> jax.config.update("jax_enable_x64", True)
    >>> x, q = jnp.array([[0.0, 2.0], [0.0, 0.0], [0.0, 0.0]]), jnp.array([1.0, -1.0])
    >>> energy = lambda x: parki.jax.energy("laplace", x, q, periodicity=0, tolerance=1e-9)
    >>> print(f"{energy(x):.6f} {-jax.grad(energy)(x)[0, 0]:.6f}")
    -0.500000 0.250000
    """
    box, options = differentiable.taken_box(options, jax.Array)
    points, charges = (jax.numpy.asarray(a) for a in (points, charges))
    sums = _sums(by, kernel, options)
    sums.check_energy(points, charges)
    return jax_sum.energy_terms(sums, False, points, charges, box)[0]


def _of(method: str, kernel: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> jax.Array:
    """Return the sum of a method, with the options of its plan."""
    box, options = differentiable.taken_box(options, jax.Array)
    x, y, density, normals = (None if a is None else jax.numpy.asarray(a) for a in arguments)
    y = None if arguments[0] is arguments[1] else y
    sums = _sums(method, kernel, options)
    n, question = sums.check(x, y, density, normals), NamedSum(sums, sums.kernel.name)
    return sums.shaped(density, n, lambda d: jax_sum.summed(question, x, y, d, normals, box))


def _sums(method: str, kernel: Any, options: Mapping[str, Any]) -> Differentiable:
    """Return the sums of a method with these options, shared with earlier calls so that compiled functions are kept."""
    key = method, _key(kernel), *((name, _key(options[name])) for name in sorted(options))
    with _LOCK:
        if key not in _SUMS:
            _SUMS[key] = differentiable.of_method(method, kernel, options, keeps=True)
        return _SUMS[key]


def _key(value: Any) -> Any:
    """Return a hashable value in place of arrays and lists of numbers."""
    if isinstance(value, list | tuple):
        return tuple(_key(item) for item in value)
    if hasattr(value, "__array__"):
        value = np.asarray(value)
        return value.shape, value.dtype.str, value.tobytes()
    return value
