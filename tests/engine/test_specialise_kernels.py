"""Whole kernels specialised: their L0 text runs as plain Python and agrees with direct sums."""

import itertools

import numpy as np
import pytest

from parki.engine.text import source
from parki.engine.text.specialise import specialise
from parki.engine.tree.parse import parse
from tests.engine import l1_kernels as l1

REALS = {"double": np.float64, "float": np.float32}
ALL = [
    ("p2p", "p2p_sm1d", {}),
    ("p2p", "p2p_sm1d", {"pair": "pair/stokes_comb", "TILE": 32}),
    ("p2g", "p2g_hybrid", {"P": 6}),
    ("cluster", "cluster_to_particles", {"N1": 5}),
    ("cells", "cell_count", {}),
    ("cells", "chunk_scan", {}),
    ("cells", "chunk_add", {}),
    ("cells", "cell_scatter", {}),
]


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Replace the folder of the package's kernels by one with the tests' kernels; return its path."""
    (tmp_path / "pair").mkdir()
    for name, text in l1.FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(source, "kernels_root", lambda: tmp_path)
    return tmp_path


def laplace(d, s):
    r = np.sqrt((d * d).sum(-1))
    return np.where(r > 0, s[:, 0] / np.where(r > 0, r, 1), 0)[..., None]


def stokes_comb(d, s):
    """Return f/r + r (r.f)/r^3 - 6 r (r.q)(r.n)/r^5, with zero for r = 0."""
    f, q, n = s[:, :3], s[:, 3:6], s[:, 6:]
    r = np.sqrt((d * d).sum(-1))[..., None]
    w = np.where(r > 0, 1 / np.where(r > 0, r, 1), 0)
    rf, rq, rn = ((d * v).sum(-1)[..., None] for v in (f, q, n))
    return f * w + d * w**3 * rf - 6 * d * w**5 * rq * rn


PAIRS = {"pair/laplace": (laplace, 1), "pair/stokes_comb": (stokes_comb, 9)}


# Properties of all texts ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize(("name", "workunit", "slots"), ALL)
def test_l0_is_a_complete_file_of_the_subset(kernels, name, workunit, slots, real):
    l0 = specialise(name, workunit, real=real, **slots)
    kernel = parse(l0.text, l0.linemap)
    assert kernel.name == workunit
    assert ("double" in l0.text) == (real == "double" and "pk.double" in l0.text)
    assert l0.text.startswith(f"# parki L0 · {workunit} from kernels/{name}.py")
    assert l0.text.splitlines()[1] == "import pykokkos as pk"


@pytest.mark.parametrize(("name", "workunit", "slots"), ALL)
def test_line_map_leads_back_to_the_lines_people_wrote(kernels, name, workunit, slots):
    l0 = specialise(name, workunit, **slots)
    lines = l0.text.splitlines()
    assert len(l0.linemap) == len(lines)
    texts = {f"kernels/{k}": v.splitlines() for k, v in l1.FILES.items()}
    same = 0
    for line, (file, number) in zip(lines, l0.linemap, strict=True):
        if not file:
            assert number == 0
            assert not line or line.startswith(("# parki", "import", "from"))
            continue
        written = texts[file][number - 1]
        same += line.strip() == written.strip()
        first = line.split()[0] if line.split() else ""
        if first in ("for", "def", "if", "@pk.function"):
            assert written.split()[0] == first
    assert same > 0.1 * len(lines)
    mapped = l0.linemap[_start(lines, workunit) - 1]
    assert mapped == (f"kernels/{name}.py", _start(texts[mapped[0]], workunit))


def _start(lines, workunit):
    """Return the number of the line with a workunit's `def`."""
    return next(i for i, line in enumerate(lines, 1) if line.startswith(f"def {workunit}("))


# P2P -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("pair", PAIRS)
def test_p2p_is_the_direct_sum(kernels, rng, pair, real):
    formula, ns = PAIRS[pair]
    dtype = REALS[real]
    counts = np.array([4, 0, 7])
    begin = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    x = rng.random((3, counts.sum())).astype(dtype)
    dens = rng.standard_normal((ns, counts.sum())).astype(dtype)
    batch = np.array([[0, 3], [3, 11]], np.int32)
    cells = np.array([0, 2, 1, 2], np.int32)
    shift = np.array([[0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, -1]], dtype)
    lists = np.array([0, 2, 4], np.int32)
    l0 = specialise("p2p", "p2p_sm1d", pair=pair, real=real, TILE=3)
    u = np.zeros((3 if ns == 9 else 1, counts.sum()), dtype)
    l1.run_team(
        l0, 2, xt=x, xs=x, dens=dens, u=u, batch=batch, list_begin=lists, list_cell=cells, list_shift=shift,
        cell_begin=begin,
    )  # fmt: skip
    expected = np.zeros(u.shape)
    for b in range(2):
        t = slice(*batch[b])
        for k in range(lists[b], lists[b + 1]):
            s = slice(begin[cells[k]], begin[cells[k] + 1])
            d = x[:, t].T[:, None] - (x[:, s].T + shift[k])[None]
            expected[:, t] += formula(d.astype(float), dens[:, s].T).sum(1).T
    assert u.dtype == dtype
    tolerance = 1e-12 if real == "double" else 2e-4
    assert np.abs(u - expected).max() <= tolerance * np.abs(expected).max()


def test_p2p_text(kernels):
    text = specialise("p2p", "p2p_sm1d", pair="pair/stokes_comb", real=np.float32).text
    assert "List" not in text
    assert "@pk.workunit(scratch=[(float, lambda p: 768)])" in text
    assert "    for k in range(9):\n" in text, "a loop over scratch stays a loop"
    assert "s_8 = tile[1408 + j]" in text
    assert "dy_1: pk.float = y - tile[128 + j]" in text
    assert "c_0: pk.float = 6.0" in text
    assert text.count("def rinv_or_zero(r2: pk.float) -> pk.float:") == 1
    assert '"""1/sqrt' not in text
    assert '    """u[:, i] += sum over listed cells' in text


# P2G -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("p", [4, 6])
def test_p2g_spreads_every_source(kernels, rng, p, real):
    dtype = REALS[real]
    n, m, cap = (9, 10, 12), 5, 8
    # A cell is p // 2 grid points wide: its sources have anchors in a range of that width.
    cell = np.array([0, 2, 1])
    lo = cell * (p // 2) - (p // 2 - 1)
    anchor = (lo[:, None] + rng.integers(0, p // 2 + 1, (3, m))).astype(np.int32)
    w = rng.random((3, p, m)).astype(dtype)
    q = rng.standard_normal(m).astype(dtype)
    grid = np.zeros(n, dtype)
    l0 = specialise("p2g", "p2g_hybrid", P=p, real=real)
    l1.run_team(
        l0, 1, w=w, anchor=anchor, q=q, grid=grid, block=np.array([[0, m]], np.int32),
        lo=lo[None].astype(np.int32), n0=n[0], n1=n[1], n2=n[2], cap=cap,
    )  # fmt: skip
    expected = np.zeros(n)
    for s in range(m):
        for a, b, c in itertools.product(range(p), repeat=3):
            at = tuple((anchor[d, s] + k) % n[d] for d, k in enumerate((a, b, c)))
            expected[at] += q[s] * float(w[0, a, s]) * w[1, b, s] * w[2, c, s]
    assert np.abs(grid - expected).max() <= (1e-13 if real == "double" else 1e-5) * np.abs(expected).max()


def test_p2g_text(kernels):
    text = specialise("p2g", "p2g_hybrid", P=6, real="float").text
    assert "scratch=[(float, lambda p: (18 * p.cap + 1) // 2), (int, lambda p: p.cap)" in text
    assert "gx: int = g // 81" in text
    assert "pk.TeamThreadRange(team, 729)" in text


# Treecode ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("pair", PAIRS)
def test_clusters_act_through_their_nodes(kernels, rng, pair):
    formula, ns = PAIRS[pair]
    n1, clusters = 3, 3
    node = rng.random((clusters, 3, n1)) + np.arange(clusters)[:, None, None]
    qhat = rng.standard_normal((clusters, ns, n1**3))
    xt = rng.random((3, 4)) - 2
    batch, lists = np.array([[0, 1], [1, 4]], np.int32), np.array([0, 2, 3], np.int32)
    listed = np.array([0, 2, 1], np.int32)
    u = np.zeros((3 if ns == 9 else 1, 4))
    l0 = specialise("cluster", "cluster_to_particles", N1=n1, pair=pair)
    l1.run_team(l0, 2, xt=xt, u=u, batch=batch, list_begin=lists, list_cluster=listed, node=node, qhat=qhat)
    expected = np.zeros_like(u)
    for b, (first, last) in enumerate(batch):
        for c in listed[lists[b] : lists[b + 1]]:
            points = np.array(list(itertools.product(*node[c])))
            d = xt[:, first:last].T[:, None] - points[None]
            expected[:, first:last] += formula(d, qhat[c].T).sum(1).T
    assert np.abs(u - expected).max() <= 1e-12 * np.abs(expected).max()


# Cells ---------------------------------------------------------------------------------------------------------------
def test_counting_sort_puts_points_into_their_cells(kernels, rng):
    n, m = (3, 2, 4), 50
    x = rng.random((3, m)) * np.array(n)[:, None]
    x[:, 0] = n  # the upper corner of the box
    cell, slot, order = (np.zeros(m, np.int32) for _ in range(3))
    count = np.zeros(24, np.int32)
    sizes = {"n0": 3, "n1": 2, "n2": 4, "h0": 1.0, "h1": 1.0, "h2": 1.0}
    l1.run_range(specialise("cells", "cell_count"), m, x=x, cell=cell, slot=slot, count=count, **sizes)
    begin = np.cumsum(count, dtype=np.int32) - count
    l1.run_range(specialise("cells", "cell_scatter"), m, cell=cell, slot=slot, begin=begin, order=order)
    index = np.minimum(x.astype(int), np.array(n)[:, None] - 1)
    expected = (index[0] * 2 + index[1]) * 4 + index[2]
    assert sorted(order) == list(range(m))
    assert (cell[order] == np.sort(expected)).all()
    assert cell[0] == 23


def test_scan_keeps_its_form(kernels):
    text = specialise("cells", "chunk_scan").text
    assert "s: pk.int32 = pk.parallel_scan(pk.TeamThreadRange(team, m), scan)" in text
    assert "        def scan" not in text
    assert "    def scan(j: int, acc: pk.Acc[pk.int32], last: bool):" in text
    assert "    pk.single(pk.PerTeam(team), publish)" in text
