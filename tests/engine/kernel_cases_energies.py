"""Tiny launches of the workunits of multipliers, forces, stresses, exclusions and close spheres."""

import numpy as np


def virial(maker):
    planes, rows, length = 3, 4, 11
    args = {k: maker.normal(n) for k, n in (("kx", 4), ("ky", rows), ("kz", length), ("weight", 4))}
    args |= {name: maker.normal(4, rows, length) for name in ("green", "slope")}
    args |= {"spec": maker.normal(1, planes, rows, 2 * length), "out": maker.zeros(4 * rows, 7)}
    args |= {"first": 2, "count": 4, "rows": rows, "length": length, "s01": 0.1, "s02": -0.2, "s12": 0.3}
    for skew in (False, True):
        yield "line_virials", {"SKEW": skew}, planes * rows, args


def modes(maker):
    sizes = {"x": 3, "y": 4, "z": 11}
    along = {f"{name}{axis}": maker.rng.uniform(0, 2, n) for name in "kd" for axis, n in sizes.items()}
    args = {"power": maker.rng.standard_normal(5), "number": np.array([2.0, 0.5, 4.0, 0.1, 0.1, -0.2, 0.3]), "terms": 5}
    soft = {"SOFTENED": True}
    for slots, rows in (
        ({}, 4), ({"SKEW": True}, 4), ({"SINGLE": True, "ROOT": True}, 1), (soft, 4), (soft | {"FLAT": True}, 4)
    ):  # fmt: skip
        green = maker.zeros(3, rows, 11)
        yield "plane_multipliers", slots, 3 * rows, args | along | {"green": green, "rows": rows, "columns": 11}


def own_field(maker):
    args = {"x": maker.uniform(3, 9), "strength": maker.normal(1, 9), "u": maker.normal(3, 9), "size": maker.normal(3)}
    args |= {"order": maker.rng.permutation(9).astype(np.int32), "s0": 6.0, "s1": 7.0, "s2": 8.0}
    yield "take_off", {}, 9, args


def left_out(maker):
    begin = np.array([0, 2, 2, 5], np.int32)
    args = {"xt": maker.uniform(3, 3), "begin": begin, "partner": np.array([1, 3, 0, 2, 3], np.int32)}
    args |= {"weight": maker.normal(5), "cell": np.diag([0.5, 0.4, 0.0]).astype(maker.dtype), "tiny": 0.0}
    args |= {"inverse": np.diag([2.0, 2.5, 0.0]).astype(maker.dtype)}
    for pair, strengths, components, periodic in (("laplace", 1, 1, True), ("stokes_comb", 9, 3, False)):
        src = np.concatenate([maker.uniform(3, 4), maker.normal(strengths, 4)]).T.copy()
        slots = {"pair": f"pair/{pair}", "PERIODIC": periodic}
        yield "left_out", slots, 3, args | {"src": src, "u": maker.zeros(components, 3)}


def close_pairs(maker):
    args = {"begin": np.array([0, 2, 2, 5], np.int32), "partner": np.array([1, 3, 0, 2, 3], np.int32)}
    args |= {"mobility": maker.normal(5, 5), "f": maker.normal(3, 4), "u": maker.normal(3, 3)}
    yield "close_pairs", {}, 3, args


GROUPS = {"virial": virial, "modes": modes, "own_field": own_field, "left_out": left_out, "close_pairs": close_pairs}
