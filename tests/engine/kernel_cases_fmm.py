"""Tiny launches of fast multipole workunits, in the form of `kernel_cases`; `make` makes random arrays."""

import numpy as np

from parki.fmm import spectra


def matrix(make):
    """Yield a pair with a parameter, and a pair with several components."""
    given = {"r": make.normal(3, 11), "constant": make.uniform(1)}
    yield "entries", {"pair": "pair/yukawa", "NP": 1}, 11, given | {"out": make.zeros(1, 1, 11)}
    yield "entries", {"pair": "pair/stokes_flow", "TENSOR": True}, 11, given | {"out": make.zeros(4, 10, 11)}


def translate(make):
    """Yield three octets with two components at 8 points, one orbit; with and without reflections."""
    g, k = np.arange(8), np.arange(2)[:, None]
    rows = {8: 2 * (g ^ 4 * k) + k, 1: np.arange(16)[:, None]}
    first = {8: 8 * (2 * (g ^ 4 * k) + k), 1: 8 * (8 * k + g)}
    below = np.array([[4, -1, 0, 2, -1, -1, 1, -1], [-1] * 8, [-1, 5, -1, -1, -1, 3, -1, -1]], np.int32)
    for group in (8, 1):
        orbit = (g[None] if group == 8 else g[:, None]).astype(np.int32)
        own = np.where(orbit == 7, -1, orbit).astype(np.int32)
        row, orbits = rows[group].astype(np.int32), len(orbit)
        shared = {"row": row, "weight": make.normal(2, orbits), "points": 8, "orbits": orbits, "work": 2 * orbits}
        made = {"value": make.normal(3, 16, 8), "orbit": orbit, "made": make.zeros(3, 16, 8)}
        yield "fold", {"G": group}, 3, shared | made
        made = {"given": make.normal(3, 16, 8), "own": own, "value": make.normal(3, 16, 8)}
        yield "unfold", {"G": group}, 3, shared | made
        image = (g ^ g[:, None] if group == 8 else np.tile(g, (8, 1))).astype(np.int32)
        shared = {"below": below, "image": image, "row": first[group].astype(np.int32), "points": 8, "work": 16}
        made = {"value": make.normal(6, 16, 8), "made": make.zeros(3, 128, 8)}
        yield "fold_children", {"G": group}, 3, shared | made
        made = {"given": make.normal(3, 128, 8), "value": make.normal(6, 16, 8)}
        yield "unfold_children", {"G": group}, 3, shared | made
    part = np.array([[[0, 4, 0, 9, 0], [4, 5, 9, 3, 8]], [[0, 9, 0, 4, 0], [9, 3, 4, 5, 9]]], np.int32)
    shared = {"given": make.normal(3, 9, 8), "octets": 3, "groups": 2}
    for add in (False, True):
        given = {"part": part[0], "table": make.normal(13, 8), "made": make.normal(3, 12, 8)}
        yield "products", {"ADD": add}, 4, shared | given
    tables = {"left": make.normal(13, 8), "right": make.normal(12, 8), "most": 16}
    yield "solve", {}, 4, shared | tables | {"part": part, "made": make.zeros(3, 9, 8)}


def m2l(make):
    """Yield three points per edge; planes from the first or another on; directions with no, one and four pairs.

    Two components have double precision, whatever their spectra have, and three real products for a complex one.
    """
    p, m = 3, 26
    cosine, sine = (a.astype(make.dtype) for a in spectra.waves(p))
    octet = np.array([2, 0], np.int32)
    for components, first, planes in ((1, 0, 2), (2, 1, 2)):
        count = int(spectra.plane_sizes(p)[first : first + planes].sum())
        shared = {"octet": octet, "column": spectra.columns(p), "cosine": cosine, "sine": sine}
        shared |= {"first": first, "planes": planes}
        wide = np.dtype(np.float64 if components == 2 else make.dtype)
        values, spectrum = make.normal(3, m * components, 8).astype(wide), make.normal(count, 3, 24 * components)
        arguments, slots = shared | {"spectra": spectrum}, {"P": p, "wide": wide}
        forward = slots | {"NS": components, "GAUSS": components == 2}
        yield "forward", forward, 2 * components * planes, arguments | {"given": values}
        yield "backward", slots | {"NT": components}, 2 * components, arguments | {"made": values}
    number = np.zeros((2, 27), np.int32)  # pairs of each direction, for two blocks
    number[0, 3], number[0, 7], number[1, 25] = 4, 1, 2
    of = np.zeros((2, 27), np.int32)
    of.reshape(-1)[1:] = np.cumsum(number.ravel())[:-1]
    of[0, 26], of[1, 0] = 5, 5
    pair = np.array([[0, 1], [1, 2], [0, 0], [1, 1], [1, 0], [2, 2], [2, 1]], np.int32)
    lists = {"item": np.array([[0, 0, 2], [1, 1, 2]], np.int32), "rows": np.array([0, 2, 3], np.int32)}
    lists |= {"of": of, "pair": pair, "place": make.rng.integers(0, 9, 64 * 26, dtype=np.int32), "columns": 9}
    for ns, nt in ((2, 1), (1, 1)):
        arrays = {"table": make.normal(2, ns * nt, 18), "given": make.normal(2, 3, 24 * ns)}
        slots = {"NS": ns, "NT": nt, "GAUSS": ns == 2}
        yield "products", slots, 2, lists | arrays | {"made": make.normal(2, 3, 16 * nt)}


def m2l_block(make):
    """Yield two blocks of two and one octets, with more sources than fit in scratch."""
    near = np.full((3, 26), -1, np.int32)
    near[0, 3], near[1, 3], near[1, 7], near[2, 25] = 1, 0, 2, 0
    lists = {"rows": np.array([0, 2, 3], np.int32), "source_begin": np.array([0, 3, 4], np.int32), "near": near}
    lists |= {"source": np.array([0, 1, 2, 1], np.int32), "place": make.rng.integers(0, 9, 64 * 26, dtype=np.int32)}
    for ns, nt in ((2, 1), (1, 1)):
        arrays = {"table": make.normal(2, ns * nt, 18), "given": make.normal(2, 3, 16 * ns), "columns": 9, "blocks": 2}
        slots = {"NS": ns, "NT": nt, "RUN": 4, "CAP": 2}
        yield "block_products", slots, 4, lists | arrays | {"made": make.normal(2, 3, 16 * nt)}


def interchange(make):
    """Yield two blocks with separate matrices, one with boxes in some lanes only; a part of the columns."""
    lanes, rows = 8, 5
    box = np.array([np.arange(8), [8, 9, *[-1] * 6]], np.int32)
    shared = {"box": box, "frame": (box % 2).clip(0).astype(np.int32), "rows": rows, "scale": make.uniform(rows)}
    shared |= {"place": np.array([np.arange(5), [1, 0, 2, 4, 3]], np.int32), "sign": make.normal(2, rows)}
    values, item = make.normal(2, rows, lanes), np.array([[0, 1, 0], [1, 1, 3 * rows]], np.int32)
    for signed in (True, False):
        yield "enter", {"SIGNED": signed}, 2, shared | {"charge": make.normal(10, rows), "given": values}
        yield "leave", {"SIGNED": signed}, 2, shared | {"made": values, "phi": make.normal(1, 50), "points": rows}
    given = {"table": make.normal(6 * rows, 8), "given": values, "made": make.normal(16, 9)}
    yield "compress", {}, 2, given | {"item": item, "rows": rows, "tile": 1, "columns": 9}
    near = make.rng.integers(-1, 4, (4, 26)).astype(np.int32)
    way = np.stack([make.rng.integers(0, n, (8, 30)) for n in (26, 8)], axis=-1).astype(np.int32)
    column = np.append(0, np.cumsum(make.rng.integers(1, 4, 30))).astype(np.int32)
    lines = int(column[-1])
    lists = {"target": np.where(box < 0, -1, 3 * box).astype(np.int32), "near": near, "way": way, "column": column}
    lists |= {"row": make.rng.integers(-1, 16, 32).astype(np.int32), "table": make.normal(2 * lines, 8)}
    first = int(np.searchsorted(column, 8, side="right")) - 1
    lists |= {"first": first, "count": int(np.searchsorted(column, 17)) - first, "first_column": 8, "columns": 9}
    lists |= {"item": np.array([[0, 1, 0], [1, 1, lines]], np.int32), "rows": rows, "lines": lines}
    for add in (False, True):
        yield "expand", {"ADD": add}, 2, lists | {"given": make.normal(16, 9), "made": values}


def surfaces(make):
    """Yield ranges of sources, one of them longer than the prefetch distance; two boxes; one at its true size."""
    box = np.array([[0.5, 0.4, 0.6, 0.5], [3.5, 0.5, 0.5, 0.25]])
    surface, span = make.normal(3, 8), np.array([[0, 7], [9, 11], [11, 12]], np.int32)
    src = np.concatenate([make.uniform(3, 12), make.normal(3, 12)]).T.copy()
    item = np.array([[0, 1, 3, 0, 2], [1, 0, 7, 2, 3]], np.int32)
    given = {"item": item, "box": box, "factor": make.normal(2, 4), "surface": surface, "span": span, "src": src}
    given |= {"value": make.normal(2, 32, 8), "points": 8}
    yield "check_values", {"pair": "pair/stokes_flow", "FLOW": False, "CENTRED": True}, 2, given
    box = np.column_stack([box[:, :3], 1 / box[:, 3], box[:, 3]])
    item = np.array([[0, 5, 0, 2], [5, 6, 2, 3]], np.int32)
    given = {"item": item, "other": np.array([1, 0, 1], np.int32), "slot": np.array([13, 2], np.int32), "box": box}
    given |= {"surface": surface, "constant": make.uniform(2, 2), "value": make.normal(2, 32, 8), "points": 8}
    given |= {"xt": make.uniform(3, 11)}
    slots = {"pair": "pair/stokes_flow", "PRESSURE": False}
    yield "fields", slots, 2, given | {"factor": make.normal(2, 3), "u": make.normal(3, 11)}
    slots = {"pair": "pair/yukawa", "NP": 1, "TRUE_SIZE": True}
    yield "fields", slots, 2, given | {"factor": make.normal(2, 1), "u": make.normal(1, 11)}


GROUPS = {f.__name__: f for f in (matrix, translate, m2l, m2l_block, interchange, surfaces)}
TWICE = ("products",)  # names of workunits that are defined in two files
