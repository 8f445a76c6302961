"""L1 kernels for the tests of specialising, and a stand-in for ``pykokkos`` that runs L0 text as plain Python."""

import sys
import types

import numpy as np

FILES = {
    "scalar.py": '''\
"""Scalar helpers."""
import pykokkos as pk
real = pk.double

@pk.function
def rinv_or_zero(r2: real) -> real:
    """1/sqrt(r2), and 0 for a self pair."""
    safe: real = r2
    if r2 == 0.0:
        safe = 1.0
    w: real = pk.rsqrt(safe)
    if r2 == 0.0:
        w = 0.0
    return w
''',
    "pair/laplace.py": '''\
"""Laplace: u = q / r.  r = target - source."""
import pykokkos as pk
from typing import List
from parki.kernels.scalar import rinv_or_zero
real = pk.double
NS = 1          # numbers per source: q
NU = 1          # numbers per target

@pk.function
def pair(dx: real, dy: real, dz: real, s: List[real], u: List[real]) -> None:
    w: real = rinv_or_zero(dx * dx + dy * dy + dz * dz)
    u[0] += s[0] * w
''',
    "pair/stokes_comb.py": '''\
"""Stokes single and double layer: f/r + r (r.f)/r^3 - 6 r (r.q)(r.n)/r^5."""
import pykokkos as pk
from typing import List
from parki.kernels.scalar import rinv_or_zero
real = pk.double
NS = 9          # f (3), q (3), n (3)
NU = 3

@pk.function
def pair(dx: real, dy: real, dz: real, s: List[real], u: List[real]) -> None:
    w: real = rinv_or_zero(dx * dx + dy * dy + dz * dz)
    w2: real = w * w
    w3: real = w * w2
    rf: real = dx * s[0] + dy * s[1] + dz * s[2]
    rq: real = dx * s[3] + dy * s[4] + dz * s[5]
    rn: real = dx * s[6] + dy * s[7] + dz * s[8]
    g: real = w3 * (rf - 6.0 * w2 * (rq * rn))
    u[0] += w * s[0] + g * dx
    u[1] += w * s[1] + g * dy
    u[2] += w * s[2] + g * dz
''',
    "p2p.py": '''\
"""Particle-particle over interaction lists. Particles are sorted by cell; one team per batch of targets."""
import pykokkos as pk
from typing import List
from parki.kernels.pair.laplace import pair, NS, NU
real = pk.double
TILE = 128      # sources per scratch tile

@pk.workunit(scratch=[(real, lambda p: (3 + NS) * TILE)])
def p2p_sm1d(team: pk.TeamMember, xt: pk.View2D[real], xs: pk.View2D[real], dens: pk.View2D[real], u: pk.View2D[real],
             batch: pk.View2D[pk.int32], list_begin: pk.View1D[pk.int32], list_cell: pk.View1D[pk.int32],
             list_shift: pk.View2D[real], cell_begin: pk.View1D[pk.int32]):
    """u[:, i] += sum over listed cells; list_shift is the periodic image of each listed cell."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    l_begin: int = list_begin[b]
    l_end: int = list_begin[b + 1]
    tile: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), (3 + NS) * TILE)
    for l in range(l_begin, l_end):
        c: int = list_cell[l]
        s_begin: int = cell_begin[c]
        s_end: int = cell_begin[c + 1]
        hx: real = list_shift[l][0]
        hy: real = list_shift[l][1]
        hz: real = list_shift[l][2]
        for s0 in range(s_begin, s_end, TILE):
            m: int = s_end - s0
            if m > TILE:
                m = TILE
            def load(e: int):
                tile[e] = xs[0][s0 + e] + hx
                tile[TILE + e] = xs[1][s0 + e] + hy
                tile[2 * TILE + e] = xs[2][s0 + e] + hz
                for k in range(NS):
                    tile[(3 + k) * TILE + e] = dens[k][s0 + e]
            pk.parallel_for(pk.TeamThreadRange(team, m), load)
            team.team_barrier()
            def target(t: int):
                i: int = t_begin + t
                x: real = xt[0][i]
                y: real = xt[1][i]
                z: real = xt[2][i]
                acc: List[real] = [0.0] * NU
                for j in range(m):
                    s: List[real] = [0.0] * NS
                    for k in range(NS):
                        s[k] = tile[(3 + k) * TILE + j]
                    pair(x - tile[j], y - tile[TILE + j], z - tile[2 * TILE + j], s, acc)
                for k in range(NU):
                    u[k][i] += acc[k]
            pk.parallel_for(pk.TeamThreadRange(team, nt), target)
            team.team_barrier()
''',
    "p2g.py": '''\
"""Particle-to-grid. One team per block of at most `cap` sources of one cell; a cell is P/2 grid points wide,
so its sources reach 3P/2 points per direction. `lo` = first of them,
cell * P/2 - (P/2 - 1), may be negative; anchors are floor(x/h) - (P/2 - 1)."""
import pykokkos as pk
real = pk.double
P = 8
G = 3 * P // 2

@pk.workunit(
    scratch=[
        (real, lambda p: 3 * P * p.cap),
        (pk.int32, lambda p: p.cap),
        (pk.int32, lambda p: p.cap),
        (pk.int32, lambda p: p.cap),
    ]
)
def p2g_hybrid(team: pk.TeamMember, w: pk.View3D[real], anchor: pk.View2D[pk.int32], q: pk.View1D[real],
               grid: pk.View3D[real], block: pk.View2D[pk.int32], lo: pk.View2D[pk.int32],
               n0: int, n1: int, n2: int, cap: int):
    """w[d][k][s]: the P window values of source s in direction d; anchor[d][s]: its first grid point, unwrapped."""
    b: int = team.league_rank()
    s_begin: int = block[b][0]
    m: int = block[b][1] - s_begin
    x0: int = lo[b][0]
    y0: int = lo[b][1]
    z0: int = lo[b][2]
    win: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 3 * P * cap)
    ax: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), cap)
    ay: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), cap)
    az: pk.ScratchView1D[pk.int32] = pk.ScratchView1D(team.team_scratch(0), cap)
    def load(e: int):
        src: int = s_begin + e
        ax[e] = anchor[0][src] - x0
        ay[e] = anchor[1][src] - y0
        az[e] = anchor[2][src] - z0
        strength: real = q[src]
        for k in range(P):
            win[e * P + k] = w[0][k][src] * strength
            win[(cap + e) * P + k] = w[1][k][src]
            win[(2 * cap + e) * P + k] = w[2][k][src]
    pk.parallel_for(pk.TeamThreadRange(team, m), load)
    team.team_barrier()
    def point(g: int):
        gx: int = g // (G * G)
        gy: int = g // G % G
        gz: int = g % G
        phi: real = 0.0
        for j in range(m):
            ox: int = gx - ax[j]
            oy: int = gy - ay[j]
            oz: int = gz - az[j]
            if ox >= 0 and ox < P and oy >= 0 and oy < P and oz >= 0 and oz < P:
                phi += win[j * P + ox] * win[(cap + j) * P + oy] * win[(2 * cap + j) * P + oz]
        if phi != 0.0:
            px: int = (gx + x0 + n0) % n0
            py: int = (gy + y0 + n1) % n1
            pz: int = (gz + z0 + n2) % n2
            pk.atomic_add(grid, [px, py, pz], phi)
    pk.parallel_for(pk.TeamThreadRange(team, G * G * G), point)
''',
    "cluster.py": '''\
"""Far field of a treecode: targets of a batch against the Chebyshev nodes of accepted clusters."""
import pykokkos as pk
from typing import List
from parki.kernels.pair.laplace import pair, NS, NU
real = pk.double
N1 = 9          # nodes per direction: degree + 1

@pk.workunit
def cluster_to_particles(team: pk.TeamMember, xt: pk.View2D[real], u: pk.View2D[real], batch: pk.View2D[pk.int32],
                         list_begin: pk.View1D[pk.int32], list_cluster: pk.View1D[pk.int32], node: pk.View3D[real],
                         qhat: pk.View3D[real]):
    """node[c][d][k]: node k of cluster c in direction d; qhat[c][k][n]: modified charge k at tensor node n."""
    b: int = team.league_rank()
    t_begin: int = batch[b][0]
    nt: int = batch[b][1] - t_begin
    l_begin: int = list_begin[b]
    l_end: int = list_begin[b + 1]
    def target(t: int):
        i: int = t_begin + t
        x: real = xt[0][i]
        y: real = xt[1][i]
        z: real = xt[2][i]
        acc: List[real] = [0.0] * NU
        for l in range(l_begin, l_end):
            c: int = list_cluster[l]
            for k0 in range(N1):
                dx: real = x - node[c][0][k0]
                for k1 in range(N1):
                    dy: real = y - node[c][1][k1]
                    row: int = (k0 * N1 + k1) * N1
                    for k2 in range(N1):
                        s: List[real] = [0.0] * NS
                        for k in range(NS):
                            s[k] = qhat[c][k][row + k2]
                        pair(dx, dy, z - node[c][2][k2], s, acc)
        for k in range(NU):
            u[k][i] += acc[k]
    pk.parallel_for(pk.TeamThreadRange(team, nt), target)
''',
    "cells.py": '''\
"""Cell lists by counting sort: count -> scan of chunks -> (scan of totals) -> add -> scatter."""
import pykokkos as pk
real = pk.double

@pk.workunit
def cell_count(i: int, x: pk.View2D[real], cell: pk.View1D[pk.int32], slot: pk.View1D[pk.int32],
               count: pk.View1D[pk.int32], n0: int, n1: int, n2: int, h0: real, h1: real, h2: real):
    """Points lie in [0, n/h) per direction; a point on the upper face goes to the last cell."""
    a: int = int(x[0][i] * h0)
    b: int = int(x[1][i] * h1)
    c: int = int(x[2][i] * h2)
    if a >= n0:
        a = n0 - 1
    if b >= n1:
        b = n1 - 1
    if c >= n2:
        c = n2 - 1
    id: int = (a * n1 + b) * n2 + c
    cell[i] = id
    r: int = pk.atomic_fetch_add(count, [id], 1)
    slot[i] = r

@pk.workunit
def chunk_scan(team: pk.TeamMember, count: pk.View1D[pk.int32], begin: pk.View1D[pk.int32], total: pk.View1D[pk.int32],
               n: int, chunk: int):
    """Exclusive scan inside each chunk; the chunk sums go to `total`. Run again on `total` until one
    chunk is left."""
    first: int = team.league_rank() * chunk
    m: int = n - first
    if m > chunk:
        m = chunk
    def scan(j: int, acc: pk.Acc[pk.int32], last: bool):
        if last:
            begin[first + j] = acc
        acc += count[first + j]
    s: pk.int32 = pk.parallel_scan(pk.TeamThreadRange(team, m), scan)
    def publish():
        total[team.league_rank()] = s
    pk.single(pk.PerTeam(team), publish)

@pk.workunit
def chunk_add(i: int, begin: pk.View1D[pk.int32], base: pk.View1D[pk.int32], chunk: int):
    begin[i] += base[i // chunk]

@pk.workunit
def cell_scatter(i: int, cell: pk.View1D[pk.int32], slot: pk.View1D[pk.int32], begin: pk.View1D[pk.int32],
                 order: pk.View1D[pk.int32]):
    c: int = cell[i]
    order[begin[c] + slot[i]] = i
''',
}


class _Type:
    """Stand-in for a ``pk`` type: subscripted in annotations, called as a cast."""

    def __init__(self, cast=None):
        self.cast = cast

    def __getitem__(self, item):
        return self

    def __call__(self, *args):
        return self.cast(*args)


class _Team:
    def __init__(self, rank):
        self.league_rank = lambda: rank

    def team_scratch(self, level):
        return level

    def team_barrier(self):
        pass


def module(seed=0):
    """Return a ``pykokkos`` module with NumPy views, ranges in random order and fresh scratch without numbers."""
    order = np.random.default_rng(seed)
    pk = types.ModuleType("pykokkos")

    def workunit(f=None, *, scratch=None):
        return f or (lambda g: g)

    def parallel_for(indices, body):
        for j in order.permutation(indices):
            body(int(j))

    def atomic_add(view, index, value):
        view[tuple(index)] += value

    def atomic_fetch_add(view, index, value):
        old = view[tuple(index)]
        view[tuple(index)] += value
        return int(old)

    for name in ("TeamMember", "Acc", "int32", "View1D", "View2D", "View3D", "View4D"):
        setattr(pk, name, _Type())
    pk.double, pk.float = _Type(np.float64), _Type(np.float32)
    pk.ScratchView1D = _Type(lambda level, size: np.full(size, None))
    pk.workunit, pk.function = workunit, lambda f: f
    pk.parallel_for, pk.atomic_add, pk.atomic_fetch_add = parallel_for, atomic_add, atomic_fetch_add
    pk.TeamThreadRange = lambda team, *bounds: range(*map(int, bounds))
    pk.rsqrt, pk.sqrt, pk.exp = (lambda x: 1 / np.sqrt(x)), np.sqrt, np.exp
    return pk


def load(l0):
    """Return the workunit of an L0 text as a Python function."""
    before = sys.modules.get("pykokkos")
    sys.modules["pykokkos"] = module()
    try:
        names = {}
        exec(compile(l0.text, l0.filename, "exec"), names)
    finally:
        if before is None:
            del sys.modules["pykokkos"]
        else:
            sys.modules["pykokkos"] = before
    return names[l0.name]


def run_team(l0, league, /, **args):
    """Run a TeamPolicy workunit over a league."""
    f = load(l0)
    for rank in range(league):
        f(_Team(rank), **args)


def run_range(l0, count, /, **args):
    """Run a RangePolicy workunit."""
    f = load(l0)
    for i in range(count):
        f(i, **args)
