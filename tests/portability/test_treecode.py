"""Trees, treecodes and all pair functions on every available space, against plain NumPy."""

from pathlib import Path

import numpy as np
import pytest

import parki
from parki import engine, flows
from parki.engine import RangePolicy, TeamPolicy
from parki.engine.run import spaces
from parki.proxies import THREADS, WARPS
from tests.portability import launching
from tests.portability import treecode_formulas as formulas
from tests.portability.formulas import close

RADIAL, VECTOR = formulas.RADIAL, formulas.VECTOR

pytestmark = [pytest.mark.portability, pytest.mark.usefixtures("all_digits")]

DTYPES = ("float64", "float32")
YUKAWA = {"pair": "pair/radial", "radial": "radial/yukawa", "VALUE": True, "GRADIENT": True}
FLOWS = {
    name: {"pair": flows.PAIR, **dict(flows.of(*parts, "VELOCITY")["slots"])}
    for name, parts in {"stresslet_tensor": ["TENSOR"], "stokes_comb_tensor": ["FORCE", "TENSOR"]}.items()
}
TENSOR = FLOWS["stokes_comb_tensor"]
M, MOST = 3, 4  # proxy points per direction, and the rows of the tables
SLOTS = {
    "piece_bounds": [{}],
    "piece_count": [{}],
    "piece_place": [{"AT_ONCE": False}, {"AT_ONCE": True}],
    "piece_copy": [{}],
    "unpack": [{}],
    "charges": [{"N1": M, "NC": 2, "BLOCK": 16}],
    "potentials": [{"N1": M, "NU": 2}],
    "transfer": [{"NC": 2, "ANTERPOLATE": True}, {"NC": 2, "ANTERPOLATE": False}],
    "ranges": [YUKAWA, TENSOR],
    "grids": [TENSOR | {"N1": M}, YUKAWA | {"N1": M, "NP": 1}],
}
FIRST = ("ranges", "grids")  # their second specialisations run with the slow tests
BOTH = ("VALUE", "GRADIENT")
PAIRS = {name: {"pair": "pair/radial", "radial": f"radial/{name}"} | dict.fromkeys(BOTH, True) for name in RADIAL}
PAIRS |= {name: {"pair": f"pair/{name}"} for name in VECTOR if name != "yukawa"} | FLOWS
PAIRS["screened"] = {"pair": "pair/yukawa"}
QUICK = ("regularised_yukawa", "thin_plate", "rotlet", "stokes_comb_tensor")  # the others run with the slow tests
SINGLE = ("oscillatory", "rpy")  # in both precisions by default
PARTS = [{"VALUE": True, "GRADIENT": False}, {"VALUE": False, "GRADIENT": True}]
SLOW = pytest.mark.slow
IN_DOUBLE = pytest.mark.parametrize("real", ["float64", pytest.param("float32", marks=SLOW)])


@pytest.fixture(scope="module", autouse=True)
def compiled(where):
    """Compile the workunits of default tests in parallel."""
    chosen = [(name, slots) for name in SLOTS for slots in SLOTS[name][: 1 if name in FIRST else None]]
    units = [unit(where[name], name, "float64", slots) for name, slots in chosen]
    units += [unit(where[name], name, "float32", slots) for name, slots in chosen if where[name] != "trees"]
    units += [unit("direct", "direct_sum", "float64", PAIRS[name]) for name in (*QUICK, *SINGLE)]
    units += [unit("direct", "direct_sum", "float32", PAIRS[name]) for name in SINGLE]
    for name in ("Serial", "GpuSim"):
        engine.compile_all(units, spaces.get(name))


def unit(file, name, real, slots):
    return engine.kernel(file, name, real=real, **slots)


@pytest.fixture(params=DTYPES)
def real(request):
    return request.param


@pytest.fixture
def launch(where, space, real):
    """Return a function that launches a compiled workunit, given by its name and place in the table."""

    def run(name, league, i=0, shape=THREADS, **given):
        policy = RangePolicy(space, league) if name == "unpack" else TeamPolicy(space, league, *shape)
        launching.parallel_for(policy, unit(where[name], name, real, SLOTS[name][i]), **given)

    return run


def test_every_workunit_is_here(where):
    assert {name for name, file in where.items() if file in ("trees", "proxy", "clusters")} == set(SLOTS)
    text = Path(__file__).read_text("utf-8")
    assert all(f"def test_{name}(" in text for name in SLOTS)


def test_every_pair_function_is_here(root):
    files = {
        folder: {path.stem for path in (root / "kernels" / folder).glob("[!_]*.py")} for folder in ("pair", "radial")
    }
    assert files["radial"] == set(RADIAL)
    periodic = {"laplace", "stokeslet", "stresslet", "stokes_comb"}  # in test_portability.py
    assert files["pair"] == {"radial", *VECTOR, *periodic} - {*FLOWS}


# Trees -------------------------------------------------------------------------------------------------------------
PIECES = np.array([[0, 70, 0], [70, 20, 0], [93, 37, 1]], np.int32)  # two of one cluster, and one of another
N = 130


def pieces():
    return [slice(first, first + n) for first, n, _ in PIECES]


@pytest.fixture
def sorting(rng, real):
    """Return records, middles (∞: not cut), and the child of each point within the pieces."""
    record = rng.random((N, 3)).astype(real)
    middle = np.array([[0.5, 0.3, 0.6], [np.inf, 0.4, np.inf]], real)
    code = np.zeros(N, np.uint8)
    for here, (_, _, row) in zip(pieces(), PIECES, strict=True):
        code[here] = (record[here] >= middle[row]) @ np.array([4, 2, 1])
    return record, middle, code


def bounds(points):
    """Return the lowest coordinates, and the negatives of the highest."""
    return np.concatenate([points.min(axis=0), -points.max(axis=0)])


@IN_DOUBLE
def test_piece_bounds(launch, sorting, real):
    record, bound = sorting[0], np.empty((3, 6), real)
    launch("piece_bounds", 3, x=np.ascontiguousarray(record.T), piece=PIECES, bound=bound)
    np.testing.assert_array_equal(bound, [bounds(record[here]) for here in pieces()])


@IN_DOUBLE
def test_piece_count(launch, sorting):
    record, middle, code = sorting
    made = {"code": np.zeros(N, np.uint8), "count": np.zeros((3, 2), np.int64)}
    launch("piece_count", 3, record=record, piece=PIECES, middle=middle, **made)
    np.testing.assert_array_equal(made["code"], code)
    counts = made["count"][:, :, None] >> np.arange(0, 64, 16) & 0xFFFF
    np.testing.assert_array_equal(counts.reshape(3, 8), [np.bincount(code[here], minlength=8) for here in pieces()])


@IN_DOUBLE
@pytest.mark.parametrize("at_once", [False, True])
def test_piece_place(at_once, launch, sorting, real, rng):
    """Test a stable order by child within each cluster; places outside all pieces are not written."""
    record, _, code = sorting
    order = rng.permutation(N).astype(np.int32)
    place, count, at = np.arange(N), np.zeros((3, 8), np.int32), np.zeros((3, 8), np.int32)
    for first, end in ((0, 90), (93, 130)):
        place[first:end] = first + np.argsort(code[first:end], kind="stable")
    where_to = np.argsort(place)
    for k, here in enumerate(pieces()):
        count[k] = np.bincount(code[here], minlength=8)
        at[k] = [where_to[here][code[here] == c].min(initial=N) for c in range(8)]
    out, order_out, bound = np.full(3 * N, -1, real), np.full(N, -1, np.int32), np.full((3, 8, 6), -1, real)
    given = {"record": record, "order": order, "piece": PIECES, "code": code, "at": at, "count": count}
    launch("piece_place", 3, int(at_once), **given, out=out, order_out=order_out, bound=bound)
    held = np.r_[0:90, 93:130]
    np.testing.assert_array_equal(out.reshape(N, 3)[held], record[place][held])
    np.testing.assert_array_equal(order_out[held], order[place][held])
    np.testing.assert_array_equal(order_out[90:93], -1)
    for k, here in enumerate(pieces()):
        for c in range(8):
            points = record[here][code[here] == c]
            np.testing.assert_array_equal(bound[k, c], bounds(points) if len(points) else np.full(6, -1))


@IN_DOUBLE
def test_piece_copy(launch, sorting, real):
    record, order = sorting[0], np.arange(N, dtype=np.int32)
    out, order_out = np.full((N, 3), -1, real), np.full(N, -1, np.int32)
    launch("piece_copy", 3, record=record, order=order, piece=PIECES, out=out, order_out=order_out)
    expected = record.copy()
    expected[90:93] = -1
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(order_out, np.where(expected[:, 0] < 0, -1, order))


@IN_DOUBLE
def test_unpack(launch, sorting):
    x = np.empty_like(sorting[0].T, order="C")
    launch("unpack", N, record=sorting[0], x=x)
    np.testing.assert_array_equal(x, sorting[0].T)


# Proxy points -----------------------------------------------------------------------------------------------------
BOX = np.array([[0.5, 0.4, 0.6, 0.5, 0.4, 0.3], [1.5, 1.5, 1.5, 0.5, 0.4, 0.5], [0.2, 0.3, 0.1, 0.1, 0.0, 0.2]])
TABLES = dict(zip(("nodes", "weights"), formulas.tables(MOST), strict=True))
LEAF = np.array([[0, 0, 37], [2, 37, 40]], np.int32)  # node, particles: more than BLOCK, and a flat node


def particles(rng, real):
    """Return particles of the leaves in their boxes, (3, 40); some are at proxy points."""
    x = np.concatenate([b[:3, None] + b[3:, None] * rng.uniform(-1, 1, (3, e - f)) for b, f, e in LEAF_BOXES], axis=1)
    x[:, :3] = formulas.grid(BOX[0], M)[:, [0, 13, 26]]
    return x.astype(real)


LEAF_BOXES = [(BOX[node], first, end) for node, first, end in LEAF]


def test_charges(launch, real, rng):
    src = np.concatenate([particles(rng, real), rng.standard_normal((2, 40))]).T.astype(real)
    src, charge = np.ascontiguousarray(src), np.full((3, 2 * M**3), 7.0, real)
    launch("charges", 2, shape=WARPS, leaf=LEAF, src=src, box=BOX, **TABLES, charge=charge)
    for node, first, end in LEAF:
        own = src[first:end].astype(float)
        expected = formulas.basis(own.T[:3], BOX[node], M).T @ own[:, 3:]
        close(charge[node], expected.ravel(), 10)
    np.testing.assert_array_equal(charge[1], 7.0)


def test_potentials(launch, real, rng):
    x, phi, u = particles(rng, real), rng.standard_normal((2, 3 * M**3)).astype(real), np.ones((2, 40), real)
    launch("potentials", 2, leaf=LEAF, xt=x, box=BOX, **TABLES, phi=phi, u=u)
    value = phi.astype(float).reshape(2, 3, -1)
    expected = [value[:, node] @ formulas.basis(x[:, first:end], BOX[node], M).T for node, first, end in LEAF]
    close(u, 1 + np.concatenate(expected, axis=1), 10)


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("numbers", [(3, 3), (4, 2), (2, 4), (1, 3)])
def test_transfer(up, numbers, launch, real, rng):
    """Test transfers to two clusters, from two and from one, which is flat."""
    m, n = numbers
    item, to_box = np.array([[0, 0, 2], [1, 2, 3]], np.int32), np.array([[1, 0.9, 1, 1.2, 1, 1], BOX[2] + 0.1])
    shape = ((3, 2 * m**3), (2, 2 * n**3)) if up else ((2, 3 * m**3), (2, 2 * n**3))
    given, made = rng.standard_normal(shape[0]).astype(real), np.ones(shape[1], real)
    views = {"item": item, "box": BOX, "to_box": to_box, **TABLES, "given": given, "made": made}
    launch("transfer", 2, int(not up), **views, m=m, n=n)
    exact = np.ones((2, n**3, 2))  # cluster, point, component
    given = given.astype(float).reshape((3, m**3, 2) if up else (2, 3, m**3))
    for to, begin, end in item:
        for c in range(begin, end):
            if up:
                exact[to] += formulas.basis(formulas.grid(BOX[c], m), to_box[to], n).T @ given[c]
            else:
                exact[to] += formulas.basis(formulas.grid(to_box[to], n), BOX[c], m) @ given[:, c].T
    close(made, exact.reshape(2, -1) if up else exact.transpose(2, 0, 1).reshape(2, -1), 30)


# Sums over lists --------------------------------------------------------------------------------------------------
ITEM = np.array([[0, 3, 19, 0, 0, 2], [1, 30, M**3, M, 1, 3]], np.int32)  # particles of a leaf, points of a cluster
SETTINGS = {"yukawa": (2, 4), "stokes_comb_tensor": (9, 3)}


def summed(name, x, src):
    if name == "yukawa":
        return formulas.radial_sum("yukawa", x, src, gradient=True)
    return formulas.vector_sum(name, x, src)


def strengths(name, n, rng):
    """Return strengths (n, numbers per source): numbers of each source, and parameters."""
    s = rng.standard_normal((n, SETTINGS[name][0]))
    if name == "yukawa":
        s[:, 1] = 0.75
    return s


def targets(x):
    """Return the targets of the items: given particles, and proxy points."""
    return x[:, 3:22].astype(float), formulas.grid(BOX[1], M)


@pytest.mark.parametrize("name", ["yukawa", pytest.param("stokes_comb_tensor", marks=SLOW)])
def test_ranges(name, launch, real, rng):
    """Test items in which a source coincides with a target."""
    x, u = rng.uniform(0, 1, (3, 40)).astype(real), np.ones((SETTINGS[name][1], 60), real)
    src = np.concatenate([rng.uniform(0, 1, (30, 3)), strengths(name, 30, rng)], axis=1).astype(real)
    src[2, :3] = x[:, 4]
    span = np.array([[0, 12], [12, 13], [17, 30]], np.int32)
    place = TABLES["nodes"].astype(real)
    given = {"item": ITEM, "xt": x, "box": BOX, "place": place, "span": span, "src": src, "tiny": 0.0}
    launch("ranges", 2, int(name != "yukawa"), u=u, **given)
    for (_, first, count, _, begin, end), at in zip(ITEM, targets(x), strict=True):
        own = np.concatenate([src[b:e] for b, e in span[begin:end]])
        exact = summed(name, at, own)
        close(u[:, first : first + count] - np.dtype(real).type(1), exact, 40)
    np.testing.assert_array_equal(u[:, 22:30], 1)


@pytest.mark.parametrize("name", ["stokes_comb_tensor", pytest.param("yukawa", marks=SLOW)])
def test_grids(name, launch, real, rng):
    """Test particles relative to the centres of their leaves; one of the clusters of sources is flat."""
    numbers, components = SETTINGS[name]
    x, u = rng.uniform(0, 1, (3, 40)), np.ones((components, 60), real)
    source = np.array([[4.0, 0.4, 0.6, 0.5, 0.4, 0.3], [3, 3, 2, 0.3, 0.0, 0.5], [-2.0, -1, 3, 0.1, 0.2, 0.3]])
    s = [strengths(name, M**3, rng).astype(real) for _ in source]
    own = numbers - (name == "yukawa")
    charge = np.ascontiguousarray([part[:, :own].ravel() for part in s])
    constant = np.append(s[0][0, own:], np.zeros(1, real)).astype(real)
    other, place = np.array([1, 0, 2], np.int32), TABLES["nodes"].astype(real)
    given = {
        "item": ITEM,
        "box": BOX,
        "place": place,
        "other": other,
        "source": source,
        "constant": constant,
    }
    near = np.ascontiguousarray((x - BOX[0, :3, None]).astype(real))
    launch("grids", 2, int(name == "yukawa"), xt=near, u=u, charge=charge, **given)
    for (_, first, count, _, begin, end), at in zip(ITEM, targets(x), strict=True):
        points = [np.concatenate([formulas.grid(source[c], M).T, s[c]], axis=1) for c in other[begin:end]]
        exact = summed(name, at, np.concatenate(points))
        close(u[:, first : first + count] - np.dtype(real).type(1), exact, 40)


# Pair functions ---------------------------------------------------------------------------------------------------
def by_pair(space, real, slots, components, src, x):
    u = np.empty((components, x.shape[1]), real)
    given = {"xt": x, "src": src, "u": u, "nt": x.shape[1], "ns": len(src), "chunk": 32, "tiny": 0.0}
    launching.parallel_for(TeamPolicy(space, 2, 32, 1), unit("direct", "direct_sum", real, slots), **given)
    return u


def problem(real, rng, own, more):
    """Return targets, some of them sources, and sources with `own` numbers each and `more` that all share."""
    x, src = rng.standard_normal((3, 47)).astype(real), rng.standard_normal((33, 3 + own + more)).astype(real)
    src[:, 3 + own :] = 0.3 + rng.random(more)
    x[:, :5] = src[::7, :3].T
    return x, src


def in_both(names):
    chosen = [("float64", (*QUICK, *SINGLE)), ("float32", SINGLE)]
    marks = [(name, real, () if name in quick else SLOW) for name in names for real, quick in chosen]
    return pytest.mark.parametrize(("name", "real"), [pytest.param(n, real, marks=m) for n, real, m in marks])


def parameters(name):
    return formulas.RADIAL[name][0].__code__.co_argcount - 1


@in_both(RADIAL)
def test_radial(name, real, space, rng):
    x, src = problem(real, rng, 1, parameters(name))
    exact = formulas.radial_sum(name, x, src, gradient=True)
    u = by_pair(space, real, PAIRS[name], 4, src, x)
    for found, expected in ((u[0], exact[0]), (u[1:], exact[1:])):
        close(found, expected, 10)


@SLOW
@pytest.mark.parametrize("part", PARTS, ids=["value", "gradient"])
@pytest.mark.parametrize("name", RADIAL)
def test_radial_in_part(name, part, real, space, rng):
    x, src = problem(real, rng, 1, parameters(name))
    exact = formulas.radial_sum(name, x, src, part["VALUE"], part["GRADIENT"])
    close(by_pair(space, real, PAIRS[name] | part, len(exact), src, x), exact, 10)


@in_both(VECTOR)
def test_vector(name, real, space, rng):
    numbers, components = VECTOR[name]
    more = int(name in ("yukawa", "regularised_stokeslet", "regularised_dipole", "rpy", "rpy_rotation", "faxen"))
    x, src = problem(real, rng, numbers - more, more)
    x[:, 5:15] = src[5:15, :3].T + np.dtype(real).type(0.1)  # spheres that overlap
    slots = PAIRS["screened" if name == "yukawa" else name]
    close(by_pair(space, real, slots, components, src, x), formulas.vector_sum(name, x, src), 20)


# Whole sums -------------------------------------------------------------------------------------------------------
METHODS = {"dual": ("bldtt", {}), "pc": ("bltc", {"variant": "pc"}), "cp": ("bltc", {"variant": "cp"})}
KINDS = {"dual": ("pp", "pc", "cp", "cc"), "pc": ("pp", "pc"), "cp": ("pp", "cp")}
KERNELS = {"coulomb": {}, "yukawa": {"kappa": 0.5}, "stokes_sl": {}, "stokes_comb": {}, "rpy": {"radius": 1e-3}}


@IN_DOUBLE
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", [name if name == "coulomb" else pytest.param(name, marks=SLOW) for name in KERNELS])
def test_sums(kernel, method, space, real, rng):
    """Check that each kind of pair takes part, and that spaces differ by rounding alone."""
    pair, parameters = parki.pairs.PAIRS[kernel], KERNELS[kernel]
    x = [rng.random((3, 200)), rng.random((3, 98)) * 0.1 + 2, rng.random((3, 2)) * 0.1 - 2]
    y = [rng.random((3, 200)), rng.random((3, 48)) * 0.1 - 3, rng.random((3, 2)) * 0.1 + 4]
    x, y = (np.concatenate(parts, axis=1).astype(real) for parts in (x, y))
    x[:, :50] = y[:, :50]
    dens = rng.standard_normal(250 if pair.dens == 1 else (pair.dens, 250)).astype(real)
    parameters = parameters | ({"normals": rng.standard_normal((3, 250)).astype(real)} if pair.normals else {})
    (name, variant), given = METHODS[method], (x, y, dens)
    options = variant | parameters | {"theta": 0.8, "degree": 2, "leaf_size": 30, "return_walltime": True}
    options["far_precision"] = {"float64": "double", "float32": "single"}[real]
    u, times = getattr(parki.treecode, name)(*given, kernel, execution_space=space, **options)
    assert u.dtype == real
    wanted = set(KINDS[method]) - ({"cp"} if method == "dual" and real == "float32" else set())  # grids cost less then
    assert wanted <= {kind for kind, n in times.pairs.items() if n} <= set(KINDS[method])
    exact = parki.direct.direct_sum(kernel, *given, **parameters)
    assert np.linalg.norm(u - exact) <= 0.01 * np.linalg.norm(exact)
    ours, _ = getattr(parki.treecode, name)(*given, kernel, execution_space="Serial", **options)
    close(u, ours, 1000 if real == "float64" else 10)
