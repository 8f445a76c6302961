"""Transposed sums, by sums of other kernels from the targets to the sources.

With r = target − source, S the single layer, p and ∇u its pressure and velocity gradient, and w given at the targets:

laplace, yukawa, stokes_sl
    Even kernels with symmetric components are their own adjoints.
laplace_grad, laplace_dipole, stokes_pressure
    −q r/r³ and d·r/r³ are adjoints of each other; the adjoint of 2 f·r/r³ is twice the first kernel.
stokes_dl
    −σ·n with the stress σ = −p I + ∇u + ∇uᵀ of S w; stokes_comb has S w above it.
stokes_grad, stokes_dipole
    ∂ⱼ S_ik and −∂ⱼ S_ki are adjoints of each other.

An adjoint takes a function ``back(name, w, normals=None)``, which returns the sum of a kernel of this name from the
targets to the sources, w ``(rhs, components, Nt)``, and the normals ``(3, Ns)`` of the forward sum or None.  Arrays may
be those of NumPy, CuPy, PyTorch or JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass

from parki.arrays import Array, module_of
from parki.pairs import Pair

Back = Callable[..., Array]
Adjoint = Callable[[Back, Array, Array | None], Array]


@dataclass(frozen=True)
class Multiple:
    """Adjoint that is `factor` times the kernel of this name."""

    name: str
    factor: float = 1.0

    def __call__(self, back: Back, w: Array, normals: Array | None) -> Array:
        """Return the transposed sum."""
        return self.factor * back(self.name, w)


def traction(back: Back, w: Array, normals: Array | None) -> Array:
    """Return −σ·n of the single layer."""
    pressure = back("stokes_pressure", w)
    g = back("stokes_grad", w)
    g = g.reshape(len(g), 3, 3, -1)
    return pressure * normals - ((g + g.swapaxes(1, 2)) * normals).sum(axis=2)


def flow_and_traction(back: Back, w: Array, normals: Array | None) -> Array:
    """Return the single layer above its −σ·n."""
    return module_of(w).concatenate([back("stokes_sl", w), traction(back, w, normals)], axis=1)


_ADJOINTS: dict[str, Adjoint] = {
    "laplace_grad": Multiple("laplace_dipole"),
    "laplace_dipole": Multiple("laplace_grad"),
    "stokes_pressure": Multiple("laplace_grad", 2.0),
    "stokes_dl": traction,
    "stokes_comb": flow_and_traction,
    "stokes_grad": Multiple("stokes_dipole"),
    "stokes_dipole": Multiple("stokes_grad"),
}


def of(pair: Pair) -> Adjoint | None:
    """Return the adjoint of a pair function of parki, None where none is known."""
    if pair.self_adjoint:
        return Multiple(pair.name)
    return _ADJOINTS.get(pair.name) if pair.ours else None
