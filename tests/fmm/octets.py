"""Products with matrices of classes, and values of eight children folded and unfolded, in plain NumPy."""

import numpy as np

from parki.fmm import symmetry


def applied(matrices, values):
    """Return the matrices of the classes times class values (columns, n)."""
    parts = [matrices.matrix(c) @ values[f : f + n] for c, (f, n, *_) in enumerate(matrices.part.tolist())]
    return np.concatenate(parts)


def octet_rows(classes):
    """Return the rows of 8 children by (component, class or child, point)."""
    return classes.octet_rows()[:, :, None] + np.arange(classes.points)


def children_folded(classes, values):
    """Return the class values of 8 children's values (8, components x points)."""
    v = values.reshape(8, classes.components, classes.points)
    image = symmetry.images(classes.p, classes.group)
    if classes.group == 8:
        v = np.einsum("cg,gkj->ckj", symmetry.SIGNS, np.stack([v[g][:, image[g]] for g in range(8)]))
    made = np.empty(v.size)
    made[octet_rows(classes)] = v.transpose(1, 0, 2)
    return made


def children_unfolded(classes, made):
    """Return the values (8, components x points) of 8 children from their class values."""
    v = made[octet_rows(classes)].transpose(1, 0, 2)
    values = np.empty_like(v)
    if classes.group == 8:
        v = np.einsum("cg,ckj->gkj", symmetry.SIGNS, v)
        for g, image in enumerate(symmetry.images(classes.p, 8)):
            values[g][:, image] = v[g]
    else:
        values[...] = v
    return values.reshape(8, -1)
