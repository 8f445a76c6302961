"""Small problems for the workunits."""

import numpy as np

BOX = (1.0, 1.3, 0.8)
CELLS = (3, 4, 5)
PAIRS = {"laplace": (1, 1, 1), "stokeslet": (3, 3, 2), "stresslet": (6, 3, 3), "stokes_comb": (9, 3, 3)}  # NS, NU, NF
P, DEGREE, TERMS = 6, 4, 4


def cloud(rng, n, real):
    """Points ``(3, n)`` sorted by cell, and the begins of the cells."""
    x = np.array(BOX)[:, None] * rng.random((3, n))
    index = np.minimum(x * np.array(CELLS)[:, None] / np.array(BOX)[:, None], np.array(CELLS)[:, None] - 1).astype(int)
    cell = np.ravel_multi_index(tuple(index), CELLS)
    begin = np.searchsorted(np.sort(cell), np.arange(np.prod(CELLS) + 1)).astype(np.int32)
    return np.ascontiguousarray(x[:, np.argsort(cell, kind="stable")].astype(real)), begin


def planes(rng, real):
    """A real field of 2 × 2 components and its transform along x: in full, and of neighbours along z as pairs."""
    field = rng.standard_normal((4, 8, 3, 6))
    pairs = np.fft.fft(field[..., ::2] + 1j * field[..., 1::2], axis=1)
    given = {"mode": np.array([0, 3, 1, 7], np.int32), "components": 2, "stride": 3, "n0": 8, "n1": 3, "n2": 6}
    return np.fft.fft(field, axis=1), as_pairs(pairs, real), given


def as_pairs(x, real):
    return np.ascontiguousarray(np.stack([x.real, x.imag], axis=-1).reshape(*x.shape[:-1], -1), real)


def bounds(x, batch):
    """Lowest and highest coordinates of each batch."""
    parts = [x[:, b:e] for b, e in batch]
    return np.array([np.concatenate([p.min(axis=1), p.max(axis=1)]) for p in parts])


def near_setting(pair, rng, real):
    """The arguments of a near field: few batches, one longer than scratch, and a cutoff longer than one side."""
    ns, nu, nf = PAIRS[pair]
    x, begin = cloud(rng, 40, real)
    src = np.concatenate([x, rng.standard_normal((ns, 40))]).T.astype(real)
    xt = np.concatenate([cloud(rng, 30, real)[0], x[:, 3:6]], axis=1)
    batch = np.array([[0, 8], [8, 9], [9, 17], [17, 30], [30, 33]], np.int32)
    given = {
        "xt": xt, "src": np.ascontiguousarray(src), "u": np.full((nu, 33), np.nan, real), "batch": batch,
        "cell_begin": begin, "bound": bounds(xt, batch), "coef": rng.standard_normal(nf * TERMS).astype(real),
        "images": 3, "rc": 0.9, "tiny": 0.0, "t01": 0.0, "t02": 0.0, "t12": 0.0,
    }  # fmt: skip
    for d, (n, side) in enumerate(zip(CELLS, BOX, strict=True)):
        given |= {f"n{d}": n, f"l{d}": side, f"h{d}": side / n}
    return given


def grid_setting(rng, real):
    """Window polynomials, grid points a length, and the shape of the grid with its margins."""
    polynomials = [rng.standard_normal((DEGREE + 1, P)).astype(real) for _ in range(2)]
    points = (9, 10, 8)
    scale = {f"s{d}": m / side for d, (m, side) in enumerate(zip(points, BOX, strict=True))}
    return polynomials, scale, tuple(m + P for m in points)


def spread_setting(components, rng, real):
    """40 sources by cell, what all P2G loops are given besides, and the shape of the grid."""
    (window, slope), scale, shape = grid_setting(rng, real)
    x, begin = cloud(rng, 40, real)
    src = np.ascontiguousarray(np.concatenate([x, rng.standard_normal((9 if components == 4 else 3, 40))]).T, real)
    return src, begin, {"window": window, "slope": slope} | scale, (components, *shape)


def gather_setting(rng, real):
    """Targets, grid and window of an interpolation."""
    (window, _), scale, shape = grid_setting(rng, real)
    xt, grid = cloud(rng, 37, real)[0], rng.standard_normal((3, *shape)).astype(real)
    return {"xt": xt, "grid": grid, "window": window} | scale
