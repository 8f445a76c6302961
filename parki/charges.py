"""Charges of pairs that are linear in the numbers of their sources, from densities and normals."""

from parki.arrays import Array, module_of


def itself(dens: Array, normals: Array | None = None) -> Array:
    """Return the charges (components, N) of a pair that is linear: the density."""
    return dens.reshape(-1, dens.shape[-1])


def moments(dens: Array, normals: Array | None = None) -> Array:
    """Return the charges (9, N) of force dipoles D by rows: torques, and S = (tr D)/6 I − (D + Dᵀ)/4.

    The flow of a trace is none; that of S, −6 r (r·S r)/r⁵, has a part like it, which its share of I takes off.
    """
    xp, d = module_of(dens), dens.reshape(3, 3, -1)
    sixth = (d[0, 0] + d[1, 1] + d[2, 2]) * (1 / 6)
    torques = [d[2, 1] - d[1, 2], d[0, 2] - d[2, 0], d[1, 0] - d[0, 1]]
    entries = [(d[i, j] + d[j, i]) * -0.25 + (sixth if i == j else 0) for i in range(3) for j in range(i, 3)]
    return xp.stack([*torques, *entries])


def tensors(dens: Array, normals: Array | None = None) -> Array:
    """Return the charges (6 or 9, N) of a double layer: f, if there is one, and S."""
    if normals is None:
        raise ValueError("normals is missing; expected (3, N), one normal for each source.")
    f, q, n = dens[:-3], dens[-3:], normals
    entries = [(q[i] * n[j] + q[j] * n[i]) * 0.5 for i in range(3) for j in range(i, 3)]
    xp = module_of(dens)
    return xp.concatenate([f, xp.stack(entries)])


#: Parts of the flow that another pair function of parki makes, and the function of their charges.
OF_FLOWS = {
    "pair/stresslet": (("TENSOR",), tensors),
    "pair/stokes_comb": (("FORCE", "TENSOR"), tensors),
    "pair/stokes_dipole": (("TORQUE", "TENSOR"), moments),
}
