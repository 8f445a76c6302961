"""Derivatives of sums as other sums, in the arrays of any library: rules for PyTorch and JAX.

With u_i = Σ_j K(x_i − y_j) d_j and a cotangent w at the targets, the cotangents of the loss Σ w_i · u_i are

densities
    the transposed sum of w (`parki.adjoints`);
normals
    the stress of w on the density, for a double layer, which is symmetric in density and normal;
points
    the gradient of the sum at the targets times w, and at the sources the gradient of the sum of w times d, for even
    kernels with symmetric components;
box
    the virial of both, see `parki.differentiable.Differentiable.box_slope`.

All are sums that have derivatives themselves, as far as derivatives of their kernels are known.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from parki import adjoints
from parki.arrays import Array, module_of
from parki.pairs import Pair

#: The sum of a kernel by its name: of targets, sources (None where they are the targets), strengths and normals.
Field = Callable[..., Any]


class Places(NamedTuple):
    """Targets ``(3, Nt)`` and sources ``(3, Ns)``, None where they are the targets, as `Field` takes them."""

    targets: Array
    sources: Array | None

    @property
    def turned(self) -> "Places":
        """Return targets and sources exchanged."""
        return self if self.sources is None else Places(self.sources, self.targets)


def to_density(kernel: Pair, field: Field, places: Places, w: Array, normals: Array | None) -> Array:
    """Return the cotangent ``(rhs, components, Ns)`` of densities, from that of the sum, ``(rhs, components, Nt)``.

    Raises
    ------
    NotImplementedError
        For a kernel whose adjoint is not known.
    """
    rule = adjoints.of(kernel)
    if rule is None:
        raise NotImplementedError(
            f"{kernel} has no derivative in its density; expected a kernel whose adjoint is known."
        )
    return rule(lambda name, w, normals=None: field(name, *places.turned, w, normals), w, normals)


def to_normals(field: Field, places: Places, d: Array, w: Array) -> Array:
    """Return the cotangent ``(3, Ns)`` of normals, of densities whose last three components are of a double layer."""
    derivatives = [
        adjoints.traction(lambda name, w: field(name, *places.turned, w, None), w[r : r + 1], d[r, -3:])[0]
        for r in range(len(w))
    ]
    return module_of(w).stack(derivatives).sum(axis=0)


def to_points(
    kernel: Pair, slope: str, field: Field, places: Places, d: Array, w: Array, need: tuple[bool, bool]
) -> tuple[Array | None, Array | None]:
    """Return the needed cotangents of targets and sources; points that are both have that of the targets.

    Parameters
    ----------
    kernel : Pair
        Even, with symmetric components.
    slope : str
        Name of the kernel of its gradient.
    field : Field
    places : Places
    d, w : array (rhs, components, N)
        Density and cotangent.
    need : tuple of bool
    """
    xp = module_of(w)

    def contracted(targets: Array, sources: Array | None, strengths: Array, weights: Array) -> Array:
        slopes = field(slope, targets, sources, strengths, None)
        return xp.einsum("kcan,kcn->an", slopes.reshape(len(strengths), kernel.result, 3, -1), weights)

    x, y = places
    if y is None:  # one sum of twice the right-hand sides
        operands = (xp.concatenate([d, w]), xp.concatenate([w, d])) if need[0] else None
        return (contracted(x, None, *operands) if operands else None), None
    return (contracted(x, y, d, w) if need[0] else None), (contracted(y, x, w, d) if need[1] else None)
