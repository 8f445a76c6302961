"""Charges of pairs that are linear in the numbers of their sources, from densities and normals."""

from parki.arrays import Array, module_of


def itself(dens: Array, normals: Array | None = None) -> Array:
    """Return the charges (components, N) of a pair that is linear: the density."""
    return dens.reshape(-1, dens.shape[-1])


def tensors(dens: Array, normals: Array | None = None) -> Array:
    """Return the charges (6 or 9, N) of a double layer: f, if there is one, and S."""
    if normals is None:
        raise ValueError("normals is missing; expected (3, N), one normal for each source.")
    f, q, n = dens[:-3], dens[-3:], normals
    entries = [(q[i] * n[j] + q[j] * n[i]) * 0.5 for i in range(3) for j in range(i, 3)]
    xp = module_of(dens)
    return xp.concatenate([f, xp.stack(entries)])
