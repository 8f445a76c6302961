"""Tiny launches of every workunit in kernels/: slots, league and arguments, for both dtypes."""

import math
import re
from dataclasses import dataclass

import numpy as np

from parki import engine
from tests.catalogue import PAIRS
from tests.engine import kernel_cases_energies as energies
from tests.engine import kernel_cases_fmm as fmm
from tests.engine import kernel_cases_near as near

DTYPES = {"double": np.float64, "float": np.float32}
TAPS = (4, 5, 9, 18)  # numbers of taps: even, odd, more than the lanes of a double, more than those of a float


@dataclass
class Case:
    """Launch of a workunit with its slots, league and arguments."""

    file: str
    workunit: str
    slots: dict
    league: int
    args: dict

    def unit(self, real):
        """Return the workunit, with its real type if it has one."""
        integers_only = self.workunit in ("chunk_count", "count_scan", "chunk_begin", "chunk_place")
        return engine.kernel(self.file, self.workunit, **self.slots, **({} if integers_only else {"real": real}))

    def fresh(self):
        return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in self.args.items()}


class Maker:
    """Maker of launches and their arguments for one dtype."""

    def __init__(self, real):
        self.real, self.dtype = real, DTYPES[real]
        self.rng = np.random.default_rng(7)

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(self.dtype)

    def uniform(self, *shape):
        return self.rng.uniform(0.01, 0.99, shape).astype(self.dtype)

    def zeros(self, *shape):
        return np.zeros(shape, self.dtype)

    def binned(self, n, shape, width):
        """Return sources in the unit box with `width` columns, sorted by cell, and the begin of each cell."""
        x = self.uniform(3, n)
        x[:, 0] = 0.11  # the first cell is not empty
        index = np.ravel_multi_index([(x[d] * m).astype(int) for d, m in enumerate(shape)], shape)
        order = np.argsort(index, kind="stable")
        begin = np.searchsorted(index[order], np.arange(np.prod(shape) + 1)).astype(np.int32)
        return np.concatenate([x, self.normal(width - 3, n)]).T[order].copy(), begin

    # Cell lists ------------------------------------------------------------------------------------------------------
    def cells(self):
        n, chunk, shape = 21, 8, (2, 3, 2)
        cells, chunks = int(np.prod(shape)), 3
        cell = self.rng.integers(0, cells, n, dtype=np.int32)
        count = np.array([np.bincount(cell[k : k + chunk], minlength=cells) for k in range(0, n, chunk)], np.int32)
        begin = np.concatenate([[0], np.cumsum(count.sum(axis=0))[:-1]]).astype(np.int32)
        place = (begin + np.cumsum(count, axis=0) - count).astype(np.int32)
        x, order = self.uniform(3, n), self.rng.permutation(n).astype(np.int32)
        sizes = {f"n{d}": m for d, m in enumerate(shape)} | {f"s{d}": float(m) for d, m in enumerate(shape)}
        some = {"n": n, "chunk": chunk}
        yield "cell_index", {}, n, {"x": x, "cell": np.zeros_like(cell), **sizes}
        yield "chunk_count", {}, chunks, {"cell": cell, "count": np.zeros_like(count), **some}
        yield "count_scan", {}, cells, {"count": count, "begin": np.zeros_like(begin), "chunks": chunks}
        yield "chunk_begin", {}, cells, {"count": count, "begin": begin, "chunks": chunks}
        yield "chunk_place", {}, chunks, {"cell": cell, "at": place, "order": np.zeros_like(order), **some}
        yield "gather_points", {}, n, {"x": x, "order": order, "out": self.zeros(3, n)}
        for nb in (1, 9):
            args = {"x": x, "strength": self.normal(nb, n), "order": order, "out": self.zeros(n, 3 + nb)}
            yield "gather_sources", {"NB": nb}, n, args
        batch = np.array([[0, 1], [1, 9], [9, 21]], np.int32)
        yield "batch_bounds", {}, 3, {"x": x, "batch": batch, "bound": self.zeros(3, 6)}
        args = {"a": self.normal(3, n), "b": self.normal(3, n), "order": order, "out": self.zeros(3, n)}
        for slots in ({}, {"FAR_SORTED": False}, {"far": "float"}):
            args["b"] = args["b"].astype(np.float32) if "far" in slots else args["b"]
            yield (
                "scatter_sum",
                slots,
                n,
                {**args, "components": 2, "constant": self.normal(2), "factor": self.normal(2, 2)},
            )

    def glue(self):
        """Yield all steps between kernels, with additions and copies from another type."""
        n, order = 21, self.rng.permutation(21).astype(np.int32)
        a, rows, factor, matrix = self.normal(n), self.normal(6, n), self.normal(6, 2), self.normal(3, 3)
        yield "fill", {}, n, {"out": self.zeros(n), "value": 1.5}
        for slots in ({"other": self.real}, {"other": "float"}):
            given = a.astype(DTYPES[slots["other"]])
            yield "copy", slots, n, {"a": given, "out": self.zeros(n)}
            yield "add", slots, n, {"a": given, "out": self.normal(n)}
        wide = {"other": "double", "wide": "double"}
        yield "add", wide, n, {"a": a.astype(np.float64), "out": self.normal(n)}
        loaded = {"a": rows, "factor": factor, "out": self.zeros(6, n)}
        yield "load", {}, n, loaded | {"rows": 6}
        yield "load_vectors", {}, n, loaded | {"matrix": matrix, "vectors": 2}
        yield "turn_vectors", {}, n, {"u": self.normal(3, n), "matrix": matrix}
        tilts = {"t01": 0.1, "t02": -0.3, "t12": 0.2}
        yield "along_sides", {}, n, {"v": self.normal(3, n), "out": self.zeros(3, n), **tilts}
        yield "gather", {}, n, {"a": rows, "order": order, "out": self.zeros(6, n), "rows": 6}
        yield "gather_columns", {}, n, {"a": rows, "order": order, "out": self.zeros(n, 9), "first": 3, "rows": 6}
        yield "scatter", {}, n, {"a": rows, "order": order, "out": self.zeros(6, n), "rows": 6}
        both = {"a": rows, "b": self.normal(6, n), "order": order, "out": self.zeros(6, n), "rows": 6}
        yield "scatter_both", {}, n, both
        yield "scatter_columns", {}, n, {"a": self.normal(n, 6), "order": order, "out": self.zeros(6, n), "rows": 6}

    # Grids -----------------------------------------------------------------------------------------------------------
    def window(self, taps, degree=3):
        return 0.5 * self.normal(degree + 1, taps)

    def coord(self, slots):
        """Return the dtype of coordinates."""
        return DTYPES[slots.get("coord", self.real)]

    @staticmethod
    def spread_slots():
        """Return components, slots and strengths of one right-hand side, for P2G."""
        both, dipoles = {"COMB": True}, {"COMB": True, "SINGLE": False}
        few = (1, {}, 1), (3, {}, 3), (4, both, 9), (1, {}, 1), (1, {"RHS": 5}, 1), (4, dipoles | {"SKEW": True}, 12)
        return *few, (4, both | {"coord": "double"}, 9)

    def p2g(self):
        for taps, (nc, changes, width) in zip((*TAPS, 5, 4, 6), self.spread_slots(), strict=True):
            cells, points, rhs = (4, 1, 1), (4 * (taps + 1), 6, 6), changes.get("RHS", 1)
            src, begin = self.binned(3 if taps > 9 else 7, cells, 3 + rhs * width)
            src = src.astype(self.coord(changes))
            block = np.array([[9, 9, 9, 9, 9, 9], [0, 1, 0, 1, 0, 1], [2, 3, 0, 1, 0, 1]], np.int32)
            args = {"src": src, "grid": self.normal(rhs * nc, *(m + taps for m in points)), "block": block}
            args |= {"cell_begin": begin, "window": self.window(taps), "slope": self.window(taps)}
            args |= {"first": 1, "n1": 1, "n2": 1} | {f"s{d}": float(m) for d, m in enumerate(points)}
            yield "p2g_block", {"P": taps, "DEGREE": 3, "NC": nc, "BATCH": 2, **changes}, 2 * rhs * nc, args

    def scattered(self):
        """Yield the other loops of P2G."""
        for taps, (nc, changes, width) in zip((4, 5, 7, 4, 4, 5, 6), self.spread_slots(), strict=True):
            cells, points, rhs = (2, 1, 3), (3, 2, 4), changes.get("RHS", 1)
            src, begin = self.binned(5, cells, 3 + rhs * width)
            src = src.astype(self.coord(changes))
            slots = {"P": taps, "DEGREE": 3, "NC": nc, **changes}
            e = [m + taps for m in points]
            args = {
                "src": src,
                "grid": self.normal(rhs * nc, *e),
                "window": self.window(taps),
                "slope": self.window(taps),
            }
            args |= {f"s{d}": float(m) for d, m in enumerate(points)}
            yield "p2g_atomic", slots, len(src), args
            batch = np.array([[0, 2], [2, len(src)]], np.int32)
            bound = np.array([[*src[a:b, :3].min(axis=0), *src[a:b, :3].max(axis=0)] for a, b in batch], src.dtype)
            yield "p2g_hybrid", slots | {"CAP": 2, "ZT": 4}, 2, {**args, "batch": batch, "bound": bound}
            args = args | {f"n{d}": m for d, m in enumerate(cells)} | {f"h{d}": 1.0 / m for d, m in enumerate(cells)}
            args |= {"cell_begin": begin, "e1": e[1], "e2": e[2]}
            yield "p2g_grid", slots, e[0] * e[1], args
            tile = {"TX": 4, "TY": 4, "TZ": 2, "YT": 2, "LINE": 2, "LANES": 4, "ZS": 1}
            tile |= {"COLUMNS": 1, "CANDIDATES": 3, "CAP": 2}
            tiles = math.prod(-(-n // tile[side]) for n, side in zip(e, ("TX", "TY", "TZ"), strict=True))
            yield "p2g_tile", slots | tile, rhs * tiles, args | {"e0": e[0]}

    def g2p(self):
        both, slopes = {"SLOPES": True, "SKEW": True}, {"SLOPES": True, "VALUE": False}
        kinds = (1, 1, {}), (3, 1, both), (2, 3, slopes), (1, 1, {}), (2, 1, {"coord": "double"})
        for taps, (nc, rhs, changes) in zip((*TAPS, 6), kinds, strict=True):
            nt, points = 3 if taps > 9 else 7, (6, 7, 8)
            args = {
                "xt": self.uniform(3, nt).astype(self.coord(changes)),
                "grid": self.normal(rhs * nc, *(m + taps for m in points)),
            }
            parts = changes.get("VALUE", 1) + 3 * changes.get("SLOPES", 0)
            args |= {"u": self.zeros(rhs * nc * parts, nt), "window": self.window(taps), "slope": self.window(taps)}
            args |= {f"s{d}": float(m) for d, m in enumerate(points)} | {"s01": 0.1, "s02": -0.2, "s12": 0.3}
            slots = {"P": taps, "DEGREE": 3, "NC": nc, "RHS": rhs, **changes}
            batch = np.array([[i, min(i + 2, nt)] for i in (*range(2, nt, 2), 0, nt)], np.int32)
            given = {**args, "batch": batch, "batches": len(batch)}
            yield "g2p_target", slots | {"BATCH": 2}, rhs * len(batch), given
            yield "g2p_base", slots, nt, args
            cells, sides = (2, 1, 3), (4, 5, 8)
            x, begin = self.binned(nt, cells, 3)
            tiles = [m // side + 1 for m, side in zip(points, sides, strict=True)]
            tile = {f"B{axis}": side for axis, side in zip("XYZ", sides, strict=True)}
            tile |= {"YL": 3, "ZL": 2, "ROW": 8 + taps, "CAP": 2, "PIECE": 3}
            given = args | {"xt": x.T.astype(self.coord(changes)), "cell_begin": begin}
            given |= {"tiles": int(np.prod(tiles)), "tiles1": tiles[1], "tiles2": tiles[2]}
            for d, (n, m) in enumerate(zip(cells, points, strict=True)):
                given |= {f"n{d}": n, f"h{d}": 1.0 / n, f"e{d}": m + taps}
            del slots["RHS"]
            yield "g2p_tile", slots | tile, rhs * int(np.prod(tiles)), given

    def halo(self):
        for taps, m in ((5, (3, 4, 6)), (4, (5, 4, 11))):
            low, high = taps // 2, taps - taps // 2
            lows, highs = {f"low{d}": low for d in range(3)}, {f"high{d}": high for d in range(3)}
            e, sizes = [v + taps for v in m], {f"m{d}": v for d, v in enumerate(m)}
            grid = self.normal(2, *e)
            if max(low, high) <= min(m):
                yield "halo_fold", {}, 2 * m[0] * m[1], {"grid": grid, **lows, **highs, **sizes}
            yield "halo_ends", {}, 2 * m[0] * m[1], {"grid": grid, **lows, "high2": high, **sizes}
            args = {"grid": grid, "low0": low, "low1": low, "m0": m[0], "m1": m[1]}
            extent = {f"e{d}": v for d, v in enumerate(e)}
            yield "halo_rows", {}, 2 * e[0] * e[1], {**args, **extent}
            yield "halo_clear", {}, 2 * e[0] * e[1], {"grid": grid, **extent}

    def bricks(self):
        """Yield three lines of five to others of six, also to narrower ones; rows of four; integers and back."""
        lines, target = np.int32([12, 0, 6]), np.int32([3, 15, 0])
        a, out = self.normal(2, 5, 3, 7), self.normal(2, 6, 3, 7)
        sizes = {"lines": 3, "n1": 3, "n2": 7}
        ends = {"source": lines, "target": target, "source_rows": 3, "target_rows": 3}
        for add in (False, True):
            yield "lines_to_lines", {"ADD": add}, 2 * 3, {"a": a, "out": out} | ends | sizes
        narrow = {"a": a, "out": out.astype(np.float32)}
        yield "lines_to_lines", {"wire": "float32"}, 2 * 3, narrow | ends | sizes
        rows = ends | {"source": lines + 1, "lines": 3, "n1": 1, "n2": 7}
        yield "lines_to_lines", {}, 2 * 3, {"a": a, "out": out} | rows
        integers = {"norm": self.uniform(18), "high": self.rng.integers(-(2**29), 2**29, (18, 7)).astype(np.int32)}
        integers["low"] = self.rng.integers(1, 256, (18, 7)).astype(np.uint8)
        whole = {"a": np.round(8 * a) if self.real == "double" else np.copysign(np.float32([1, 2, 1, 2, 1, 2, 1]), a)}
        yield "lines_to_integers", {}, 18, whole | {"source": lines, "source_rows": 3} | integers | sizes
        yield "integers_to_lines", {}, 18, {"out": out, "target": target, "target_rows": 3} | integers | sizes

    def planes(self):
        """Yield two right-hand sides of two components in a spectrum with room for three; the last plane is no mode."""
        (n0, n1, n2), (planes, rows, length), components, stride = (6, 3, 8), (3, 5, 11), 2, 3
        shared = {
            "grid": self.normal(2 * components, n0, n1, n2),
            "spec": self.normal(2 * stride, planes, rows, 2 * length),
        }
        shared |= {"mode": np.array([1, 0, 2, 3], np.int32), "first": 2, "count": 4, "components": components}
        shared |= {"stride": stride, "n0": n0, "n1": n1, "n2": n2, "planes": planes}
        yield "planes_gather", {}, 2 * components * planes * rows, {**shared, "rows": rows, "length": length}
        for both in (True, False):
            yield "planes_scatter", {"BOTH": both}, 2 * components * planes * n1, shared

    def convolve(self):
        planes, rows, length, skew = 3, 4, 11, {"s01": 0.1, "s02": -0.2, "s12": 0.3}
        for name, stride in (
            ("scalar", 1),
            ("divergence", 3),
            ("stokes", 3),
            ("stokes_comb", 4),
        ):
            for slots in ({}, {"SKEW": True, "RHS": 2}, {"SINGLE": True}):
                axes = {k: self.normal(n) for k, n in (("kx", 4), ("ky", rows), ("kz", length))}
                axes["ky"][0] = axes["kz"][0] = axes["kx"][2] = 0
                args = {"spec": self.normal(slots.get("RHS", 1) * stride, planes, rows, 2 * length), **axes, **skew}
                args |= {"green": self.normal(4, rows, length), "first": 2, "count": 4, "rows": rows, "length": length}
                slots = {"multiply": f"multiplier/{name}", "STRIDE": stride, **slots}
                yield "convolve", slots, planes * rows, args

    # Trees ------------------------------------------------------------------------------------------------------------
    def trees(self):
        """Yield two pieces of one cluster and one piece of another, with some empty children."""
        n, piece = 130, np.array([[0, 70, 0], [70, 20, 0], [93, 30, 1]], np.int32)
        record, order = self.uniform(n, 3), self.rng.permutation(n).astype(np.int32)
        middle = np.array([[0.5, 0.3, 0.6], [np.inf, 0.4, np.inf]], self.dtype)
        code, count, at = np.zeros(n, np.uint8), np.zeros((3, 8), np.int32), np.zeros((3, 8), np.int32)
        for k, (first, size, row) in enumerate(piece):
            here = slice(first, first + size)
            code[here] = (record[here] >= middle[row]) @ np.array([4, 2, 1])
            count[k] = np.bincount(code[here], minlength=8)
        for first, rows in ((0, slice(0, 2)), (93, slice(2, 3))):
            at[rows] = first + (np.cumsum(count[rows].T) - count[rows].T.ravel()).reshape(8, -1).T
        shared = {"record": record, "piece": piece}
        bound = self.zeros(3, 6)
        yield "piece_bounds", {"SLOTS": 24}, 3, {"x": record.T.copy(), "piece": piece, "bound": bound}
        made = {"middle": middle, "code": np.zeros_like(code), "count": np.zeros((3, 2), np.int64)}
        yield "piece_count", {}, 3, shared | made
        shared |= {"order": order, "order_out": np.zeros_like(order)}
        made = {"code": code, "at": at, "count": count, "out": self.zeros(3 * n), "bound": self.zeros(3, 8, 6)}
        for at_once in (False, True):
            yield "piece_place", {"AT_ONCE": at_once, "SLOTS": 24}, 3, shared | made
        yield "piece_copy", {}, 3, shared | {"out": self.zeros(n, 3)}
        yield "unpack", {}, n, {"record": record, "x": self.zeros(3, n)}

    # Treecodes --------------------------------------------------------------------------------------------------------
    def proxy_tables(self, most=4):
        nodes, weights = np.zeros((most, most)), np.zeros((most, most))
        for m in range(1, most + 1):
            nodes[m - 1, :m] = np.cos(np.pi * np.arange(m) / max(m - 1, 1)) if m > 1 else 0
            apart = nodes[m - 1, :m, None] - nodes[m - 1, :m] + np.eye(m)
            weights[m - 1, :m] = 1 / apart.prod(axis=1)
        return {"nodes": nodes, "weights": weights}

    def rows(self):
        """Yield rows of 21 sources, followed by rows of two crowds, of two pieces and of one."""
        piece = np.array([[2, 11, 0], [11, 13, 1], [13, 20, 0]], np.int32)
        crowd, order = np.array([[2, 0, 2], [13, 2, 3]], np.int32), self.rng.permutation(21).astype(np.int32)
        for slots in ({"NC": 1, "NP": 2}, {"NC": 3, "NP": 0}):
            src = self.normal(23, 3 + slots["NC"] + slots["NP"])
            args = {"x": self.uniform(3, 21), "charge": self.normal(slots["NC"], 21), "constant": self.normal(3)}
            yield "source_rows", slots, 21, args | {"order": order, "src": src}
            shared = {"piece": piece, "src": src}
            yield "crowd_sums", {"NC": slots["NC"], "SUMS": 2}, 3, shared | {"part": self.zeros(3, slots["NC"])}
            yield "crowd_rows", slots, 2, shared | {"part": self.normal(3, slots["NC"]), "crowd": crowd, "place": 21}

    def proxy(self):
        """Yield two clusters with points, one flat with two points; potentials and charges of two components."""
        box = np.array([[0.5, 0.4, 0.6, 0.5, 0.4, 0.3], [1.5, 1.5, 1.5, 0.5, 0.5, 0.5], [0.2, 0.3, 0.1, 0.1, 0, 0.2]])
        leaf = np.array([[0, 0, 19], [2, 19, 21]], np.int32)
        x, tables = self.uniform(3, 21), self.proxy_tables()
        src = np.concatenate([x, self.normal(2, 21)]).T.copy()
        given = {"leaf": leaf, "box": box, **tables}
        yield "charges", {"N1": 3, "NC": 2, "BLOCK": 16}, 2, given | {"src": src, "charge": self.zeros(3, 54)}
        yield "potentials", {"N1": 3, "NU": 2}, 2, given | {"xt": x, "phi": self.normal(2, 81), "u": self.normal(2, 21)}
        item = np.array([[0, 0, 2], [1, 1, 3]], np.int32)
        given = {"item": item, "box": box, "to_box": box[:2] * 2, **tables, "m": 3, "n": 4}
        up = {"given": self.normal(3, 54), "made": self.normal(2, 128)}
        yield "transfer", {"NC": 2, "ANTERPOLATE": True}, 2, given | up
        down = {"given": self.normal(2, 81), "made": self.normal(2, 128)}
        yield "transfer", {"NC": 2, "ANTERPOLATE": False}, 2, given | down

    def clusters(self):
        """Yield particles of one leaf and proxy points of one cluster."""
        item = np.array([[0, 0, 19, 0, 0, 2], [1, 19, 27, 3, 1, 2]], np.int32)
        box = np.array([[0.5, 0.4, 0.6, 0.5, 0.4, 0.3], [1.5, 1.5, 1.5, 0.5, 0.5, 0.5]])
        source = np.array([[3.5, 0.4, 0.6, 0.5, 0.4, 0.3], [1.5, 5.5, 1.5, 0.5, 0.0, 0.5]])
        place = self.proxy_tables()["nodes"].astype(self.dtype)
        for pair in ("laplace", "stokes_comb"):
            ns, nu, _ = PAIRS[pair]
            shared = {"item": item, "box": box, "place": place, "xt": self.uniform(3, 46), "u": self.normal(nu, 46)}
            src = np.concatenate([self.uniform(3, 30), self.normal(ns, 30)]).T.copy()
            span = np.array([[0, 12], [17, 30]], np.int32)
            yield "ranges", {"pair": f"pair/{pair}"}, 2, shared | {"src": src, "span": span, "tiny": 0.0}
            more = {"other": np.array([1, 0], np.int32), "source": source, "constant": self.normal(2)}
            slots = {"pair": f"pair/{pair}", "N1": 3, "NP": int(ns > 3)}
            yield "grids", slots, 2, shared | more | {"charge": self.normal(2, 27 * (ns - slots["NP"]))}


PUBLISHED = ("p2p_sm_2d", "p2g_grid")
ALONE = ("p2p_list", "p2p_list_2d", "p2p_half", "g2p_tile", *PUBLISHED)  # workunits of the only file with their name
GROUPS = "cells glue p2g scattered g2p halo bricks planes convolve trees rows proxy clusters".split()


def cases(real):
    """Return all launches for this dtype, by name."""
    maker, made = Maker(real), {}
    groups = {group: getattr(maker, group)() for group in GROUPS}
    groups |= {group: function(maker) for group, function in (energies.GROUPS | fmm.GROUPS | near.GROUPS).items()}
    for group, launches in groups.items():
        for n, (workunit, slots, league, args) in enumerate(launches):
            file = workunit if group == "scattered" or workunit in ALONE else group
            file = f"published/{file}" if workunit in PUBLISHED else file
            name = workunit if workunit not in fmm.TWICE else f"{group}-{workunit}"
            made[f"{name}-{n}"] = Case(file, workunit, slots, league, args)
    return made


ALL = {f"{name}-{real}": (case, real) for real in DTYPES for name, case in cases(real).items()}


def workunits_of(folder):
    """Return all workunits that the kernel files define, as (file, name)."""
    heads = re.compile(r"^@pk\.workunit.*?^def (\w+)\(", re.MULTILINE | re.DOTALL)
    paths = [*folder.glob("*.py"), *(folder / "published").glob("*.py")]
    files = {path.relative_to(folder).with_suffix("").as_posix(): path.read_text("utf-8") for path in paths}
    return {(file, name) for file, text in files.items() for name in heads.findall(text)}
