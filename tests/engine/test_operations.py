"""Operations counted from the texts of kernels, against counts by hand."""

import ast
from collections import defaultdict

import pytest

from parki import engine
from parki.engine.text import source
from parki.ewald.stages.near import LOOPS
from tests.engine import kernel_cases
from tests.engine.programs.program import L1, write


@pytest.fixture
def tree(tmp_path):
    """Return a function that makes the blocks of a workunit ``w`` from its body."""

    def make(body, before="", args="x: pk.View1D[real], u: pk.View1D[real], v: pk.View2D[real], n: int, a: real"):
        path = tmp_path / f"w{len(list(tmp_path.iterdir()))}.py"
        path.write_text(write(f"i: int, {args}", body.strip("\n").splitlines(), [before], head=L1))
        return engine.operations(engine.kernel(path, "w"))

    return make


def counted(block, **trips):
    return dict(block.total(trips).operations)


# Operations of an expression


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * x[i] + x[n]", {"fma": 1}),
        ("x[n] - a * x[i]", {"fma": 1}),
        ("-(a * x[i]) + x[n]", {"fma": 1}),
        ("a * x[i] + a * x[n]", {"fma": 1, "mul": 1}),  # one product is left for a fused addition
        ("a * x[i] + x[i] * a", {"mul": 1, "add": 1}),  # the same product twice
        ("a * x[i] * x[n]", {"mul": 2}),
        ("x[i] / a - 1.0", {"div": 1, "add": 1}),
        ("(a + x[i]) * (x[i] + a)", {"add": 1, "mul": 1}),
        ("pk.exp(a) * pk.sqrt(x[i]) + pk.erfc(a)", {"exp": 1, "sqrt": 1, "erfc": 1, "fma": 1}),
        ("pk.fmax(a, x[i]) + pk.floor(a)", {"compare": 2, "add": 1}),
        ("x[i] - 0.0 + 1.0 * a", {"add": 1}),
        ("real(n * i + 1)", {"integer": 3}),  # one of the operations is a conversion
        ("-x[i]", {}),
    ],
)
def test_an_expression_by_hand(text, expected, tree):
    assert counted(tree(f"u[i] = {text}")) == expected


def test_a_value_is_computed_once_where_it_can_be_reached(tree):
    body = """
p: real = a * x[i]
q: real = a * x[i]
if n > 3:
    u[i] = a * x[i] + p * q
else:
    v[n][i] = x[i] / a
"""
    block = tree(body)
    assert counted(block, **{"n > 3": 0.0}) == {"mul": 1, "integer": 1, "fma": 0, "div": 1}
    assert counted(block, **{"n > 3": 1.0}) == {"mul": 1, "integer": 1, "fma": 1, "div": 0}
    found = block.total({"n > 3": 0.25})
    assert (found.loads, found.stores, found.memory) == ({"x": 1}, {"u": 0.25, "v": 0.75}, 16)
    assert found.operations["div"] == 0.75
    assert block.total({"n > 3": 0.25, "not n > 3": 0.5}).operations["div"] == 0.5


def test_what_does_not_change_in_a_loop_is_computed_before_it(tree):
    body = """
b: real = x[i]
for j in range(n):
    for k in range(3):
        v[i][j] += (a + b) * (x[j] - a) + x[k] * (a * a)
"""
    block = tree(body)
    assert block.expected() == ["j"]
    # a * a and a + b are outside the loop; x[j] - a stays where x[j] is loaded
    assert counted(block, j=10) == {"add": 1 + 30 + 30, "mul": 1 + 30, "fma": 30}
    found = block.total({"j": 10})
    # the written view is loaded each time; x[j] does not change along k, but is not moved out of the loop
    assert found.loads == {"x": 1 + 60, "v": 30}
    assert found.stores == {"v": 30}
    assert block.at("k").trips == 3
    assert counted(block.at("k")) == {"add": 2, "mul": 1, "fma": 1}


def test_a_value_that_changes_in_a_loop_stays_there(tree):
    body = """
b: real = a
for j in range(n):
    v[i][j] = b * b
    if x[j] > 0.0:
        b = b * a
u[i] = b * b
"""
    assert counted(tree(body), j=8, **{"x[j] > 0.0": 0.5}) == {"mul": 8 + 4 + 1, "compare": 8}


def test_a_named_condition_and_a_while_loop_are_counted_by_name(tree):
    body = """
for j in range(n):
    in_reach: bool = x[j] < a
    if in_reach:
        v[i][j] = a / x[j]
m: int = 0
while 2.0 * x[m] < a:
    m += 1
    v[i][m] = a * x[m]
"""
    block = tree(body)
    assert block.expected() == ["j", "j:in_reach", "m"]
    expected = {"integer": 5, "compare": 8 + 5, "div": 2, "mul": 2 * 5}
    assert counted(block, j=8, in_reach=0.25, m=5) == expected


def test_functions_are_walked_into(tree):
    before = """
@pk.function
def square(v: real) -> real:
    w: real = v * v
    if v < 0.0:
        w = -w
    return w


@pk.function
def twice(v: real) -> real:
    return square(v) + square(v + 1.0)
"""
    block = tree("u[i] = twice(x[i])", before=before)
    assert counted(block) == {"mul": 2, "add": 2, "compare": 2}


def test_branches_over_integers_alone_are_selections(tree):
    body = """
m: int = n - i
if m > 5:
    m = 5 + n
u[m] = 0.0
"""
    block = tree(body)
    assert (block.expected(), counted(block)) == ([], {"integer": 3})


def test_what_nobody_reads_is_not_computed(tree):
    body = """
length: real = pk.sqrt(x[i])
size: real = 0.0
other: real = 0.0
for j in range(3):
    other += a / x[j]
if length > 0.0:
    size = a / length
    other = size * a
u[i] = a + x[n]
"""
    found = tree(body).total()
    assert (found.operations, found.loads) == ({"add": 1}, {"x": 1})
    read = tree(body.replace("a + x[n]", "other + x[n]")).total({"length > 0.0": 0.5})
    assert read.operations == {"sqrt": 1, "div": 3 + 0.5, "add": 3 + 1, "mul": 0.5, "compare": 1}


def test_the_other_branch_counts_where_nobody_reads_the_first(tree):
    body = """
size: real = 0.0
if x[i] > a:
    size = a / x[i]
else:
    u[i] = a * x[i]
"""
    block = tree(body)
    assert counted(block, **{"x[i] > a": 0.25})["mul"] == 0.75


@pytest.mark.parametrize(("pair", "expected"), [("scalar", {}), ("stokes", {"rsqrt": 1})])
def test_multipliers_that_take_no_direction_compute_none(pair, expected):
    block = engine.operations(engine.kernel("convolve", "convolve", multiply=f"multiplier/{pair}")).at("j")
    found = block.total({"is_constant": 0.0}, otherwise=1.0).operations
    assert {name: n for name, n in found.items() if name in ("sqrt", "rsqrt", "div")} == expected


def test_private_arrays_count_nothing(tree):
    body = """
s: List[real] = [0.0] * 3
for k in range(3):
    s[k] = x[k]
for j in range(n):
    for k in range(3):
        s[k] += a * x[j]
for k in range(3):
    v[i][k] = s[k]
"""
    found = tree(body).total({"j": 5})
    assert (found.operations, found.loads, found.stores) == ({"fma": 15}, {"x": 8}, {"v": 3})


def test_scratch_reductions_atomics_and_singles(tmp_path):
    path = tmp_path / "w.py"
    body = """
b: int = team.league_rank()
s: pk.ScratchView1D[real] = pk.ScratchView1D(team.team_scratch(0), 64)

def stage(t: int):
    s[t] = x[b][t]

pk.parallel_for(pk.TeamThreadRange(team, n), stage)
team.team_barrier()

def row(t: int):
    def lane(k: int, acc: pk.Acc[real]):
        acc += s[t] * s[k]

    v: real = pk.parallel_reduce(pk.ThreadVectorRange(team, 12), lane)

    def store():
        u[t] = v
        pk.atomic_add(c, [t], 1)

    pk.single(pk.PerThread(team), store)

pk.parallel_for(pk.TeamThreadRange(team, n), row)
"""
    views = "x: pk.View2D[real], u: pk.View1D[real], c: pk.View1D[pk.int32], n: int"
    scratch = "(real, lambda p: 64)"
    path.write_text(write(f"team: pk.TeamMember, {views}", body.splitlines(), scratch=scratch, head=L1))
    block = engine.operations(engine.kernel(path, "w"))
    assert block.expected() == ["t"]
    assert [child.name for child in block.children] == ["t", "t"]
    found = block.total({"t": 8})
    assert found.operations == {"fma": 8 * 12}
    assert (found.loads, found.stores, found.updates) == ({"x": 8, "s": 8 * 24}, {"s": 8, "u": 8}, {"c": 8})
    assert (found.atomics, found.flops) == (8, 2 * 8 * 12)
    assert (found.memory, found.scratch) == (8 * 8 + 8 * 8 + 2 * 4 * 8, 8 * (8 * 24 + 8))
    # In vectors of 8, lanes k are split into two vectors; s[t] is loaded once for both.
    assert block.total({"t": 8}, lanes=8).loads["s"] == 8 * (12 + 2)


# Names


def test_names_are_those_of_the_kernel_file():
    block = engine.operations(engine.kernel("p2g_hybrid", "p2g_hybrid", P=12, ZT=4, NC=4, COMB=True, NS=9))
    assert "e_begin:r:q:t" in block.expected()
    short = engine.operations(engine.kernel("p2g_hybrid", "p2g_hybrid", P=4, ZT=2, NC=4, COMB=True, NS=9))
    assert block.expected() == short.expected()  # independent of the slots
    assert any(path.endswith(":in_window") for path in block.expected())


def test_a_longer_name_is_meant_for_fewer(tree):
    body = """
for j in range(n):
    for k in range(n):
        v[i][k] = a * x[k]
for k in range(n):
    v[i][k] = a / x[k]
"""
    block = tree(body)
    assert block.expected() == ["j", "j:k", "k"]
    assert counted(block, j=2, k=5) == {"mul": 10, "div": 5}
    assert counted(block, j=2, k=5, **{"j:k": 7}) == {"mul": 14, "div": 5}
    with pytest.raises(ValueError, match="trips: found no number of 'j' of w, expected 'j', 'j:k', 'k'"):
        block.total({"k": 5})
    assert block.missing({"k": 5}) == ["j"]
    assert dict(block.total({"k": 5}, otherwise=1.0).operations) == {"mul": 5, "div": 5}
    with pytest.raises(ValueError, match="path: found 'm', expected an end of one of 'j', 'j:k', 'k'"):
        block.at("m")


def test_a_file_that_is_gone_leaves_the_names_of_the_specialised_text(tmp_path):
    path = tmp_path / "w.py"
    lines = ["for j in range(n):", "    if j > i:", "        u[i] = 2.0 * u[i]"]
    path.write_text(write("i: int, u: pk.View1D[real], n: int", lines, head=L1))
    unit = engine.kernel(path, "w")
    path.unlink()
    source._parsed.clear()
    found = engine.operations(unit)
    assert found.expected()[0] == "j"
    assert found.total(otherwise=3.0).operations == {"mul": 9, "integer": 3}


# Pairs by hand

# Per pair: three differences, a product and two fused with it; 1/r; the test for coincident points.
DIRECT = {
    # u += s w
    "laplace": {"add": 3, "mul": 1, "fma": 2 + 1, "rsqrt": 1, "compare": 1},
    # w w w; r.f; b (r.f); three times u += a f + g r, where one product is separate from the sums
    "stokeslet": {"add": 3 + 3, "mul": 1 + 2 + 1 + 1 + 3, "fma": 2 + 2 + 3, "rsqrt": 1, "compare": 1},
    # w2, w3; r.f, r.q, r.n; -6 w2 w3; b rf + d (rq rn); three components
    "stokes_comb": {
        "add": 3 + 3, "mul": 1 + 2 + 3 + 2 + 2 + 3, "fma": 2 + 6 + 1 + 3, "rsqrt": 1, "compare": 1,
    },
}  # fmt: skip

# Within rc, with tables of 16 terms: t = r2 scale - 1, t2, and for each table 14 fused and one more for odd + even t.
SCREENED = {
    # w - F; u += s a
    "laplace": {"fma": 1 + 15 + 1, "mul": 1, "add": 1},
    # w - (D + r2 E); b + E; as above
    "stokeslet": {"fma": 1 + 2 * 15 + 1 + 2 + 3, "mul": 1 + 2 + 1 + 1 + 3, "add": 1 + 1 + 3},
    # d + 4 G is fused; c = -(3 E + 2 (r2 G)); g += c (q.n); cq, cn; three components twice
    "stokes_comb": {
        "fma": 1 + 3 * 15 + 1 + 1 + 6 + 1 + 1 + (2 + 1) + 3 + 3,
        "mul": 1 + 2 + 2 + 3 + 2 + 2 + 1 + 2 + 3 + 3,
        "add": 1 + 1 + 3 + 3,
    },
}


@pytest.mark.parametrize("pair", DIRECT)
def test_a_pair_of_a_direct_sum_by_hand(pair):
    block = engine.operations(engine.kernel("direct", "direct_sum", pair=f"pair/{pair}"))
    found = block.at("e").total()
    assert dict(found.operations) == DIRECT[pair]
    assert found.loads == {"src": 3 + {"laplace": 1, "stokeslet": 3, "stokes_comb": 9}[pair]}
    flops = {"laplace": 3 + 1 + 2 * 3 + 1, "stokeslet": 6 + 8 + 2 * 7 + 1, "stokes_comb": 6 + 13 + 2 * 12 + 1}
    assert found.flops == flops[pair]


@pytest.mark.parametrize("pair", SCREENED)
@pytest.mark.parametrize("loop", ["GM-1D", "GM-2D", "SM-1D", "SM-2D"])
def test_a_pair_of_the_near_field_by_hand(pair, loop):
    slots = {"pair": f"pair/{pair}", "SCREENED": True, "TERMS": 16}
    tree = engine.operations(engine.kernel(*LOOPS[loop], **slots))
    block = tree.at("in_reach")
    found = dict(block.total().operations)
    assert found.pop("integer") > 0  # integer operations for the places of coefficients
    assert found == {**SCREENED[pair], "rsqrt": 1, "compare": 1}
    # All candidate pairs compute a distance; the shift of an image is subtracted from the target once per run.
    looked_at = tree.at("j" if "SM" in loop else "e")
    assert {k: looked_at.own[("operation", k, True)] for k in ("add", "mul", "fma", "compare")} == {
        "add": 3, "mul": 1, "fma": 2, "compare": 1,
    }  # fmt: skip


# All kernels


def workunits():
    for file in source.package_modules():
        text = source.read(source.package_place(file)).text
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and "workunit" in ast.unparse(node.decorator_list):
                yield file, node.name


def walks(unit):
    """Return the tree, after checks that hold for all kernels."""
    block = engine.operations(unit)
    found = block.total(otherwise=2.0)
    views = {p.name: p for p in unit.ir.params if p.rank}
    assert block.missing(dict.fromkeys(block.expected(), 1.0)) == []
    assert {*found.loads, *found.stores, *found.updates} <= {*views, *found.arrays}
    assert {*found.stores, *found.updates} - found.arrays == {name for name, p in views.items() if p.written}
    assert min([*found.operations.values(), *found.loads.values(), *found.stores.values()]) >= 0
    assert found.memory > 0
    assert bool(found.scratch) == bool(unit.ir.scratch_size)
    return block


@pytest.mark.parametrize(("file", "name"), list(workunits()))
def test_every_workunit_is_counted_as_it_stands(file, name):
    walks(engine.kernel(file, name))


def test_specialisations_of_every_workunit_are_counted():
    found = defaultdict(list)
    for case in kernel_cases.cases("float").values():
        found[case.file, case.workunit].append(case)
    assert len(found) > 20
    for cases in found.values():
        for case in {id(case): case for case in (cases[0], cases[len(cases) // 2], cases[-1])}.values():
            total = walks(case.unit("float")).total(otherwise=2.0)
            sizes = {"xt": 8, "src": 8} if case.slots.get("coord") == "double" else {"xt": 4, "src": 4}
            for name, size in ({"grid": 4} | sizes).items():
                assert total.itemsize.get(name, size) == size
