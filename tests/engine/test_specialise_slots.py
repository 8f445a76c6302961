"""Slots, imports and files: parts of a kernel, all faults in requests, and the same text every time."""

import hashlib
import os
import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from parki.engine.errors import KernelError
from parki.engine.text.source import package_modules
from parki.engine.text.specialise import specialise
from tests.engine import l1_files as l1
from tests.engine.programs.program import L1

files, body = l1.files, l1.body

PAIR = "def pair(r: real, s: List[real], u: List[real]) -> None:"


def pair_file(count, result, *head):
    return [*head, f"NS = {count}", "@pk.function", PAIR, f"    u[0] += {result}"]


@pytest.fixture
def p2p(files):
    """Return a kernel with a pair slot; `pair/one` reads one number per source, `pair/two` two and has a constant."""
    files("pair/one.py", *pair_file(1, "r * s[0]"))
    files("pair/two.py", *pair_file(2, "A * s[0] + s[1]", "A = 0.5", "SCREENED = False"))
    return files(
        "p2p.py", "from parki.kernels.pair.one import pair, NS", "TILE = 4", "REACH = 1.5", "@pk.workunit",
        "def w(i: int, x: pk.View1D[real]):", "    s: List[real] = [0.0] * NS", "    u: List[real] = [REACH]",
        "    for k in range(NS):", "        s[k] = x[TILE * i + k]", "    pair(x[i], s, u)", "    x[i] = u[0]",
    )  # fmt: skip


# Types and constants -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", ["float", "float32", np.float32, np.dtype(np.float32), np.dtype("f4")])
def test_real_takes_names_and_dtypes(p2p, value):
    l0 = specialise("p2p", "w", real=value)
    assert "def w(i: int, x: pk.View1D[pk.float]):" in l0.text
    assert "pk.double" not in l0.text
    assert l0.slots[0][0] == "real"
    assert l0.hash == specialise("p2p", "w", real="float").hash


def test_real_is_double_unless_asked(p2p):
    assert specialise("p2p", "w").text.count("pk.double") == specialise("p2p", "w", real=np.float64).text.count(
        "pk.double"
    )
    assert specialise("p2p", "w").slots == ()
    assert specialise("p2p", "w").hash == specialise("p2p", "w", real="double").hash


def test_numbers_of_numpy_are_numbers(p2p):
    l0 = specialise("p2p", "w", TILE=np.int64(8), REACH=np.float64(0.1))
    assert "u_0: pk.double = 0.1\n" in l0.text
    assert "s_0 = x[8 * i + 0]" in l0.text
    assert l0.slots == (("REACH", "0.1"), ("TILE", "8"))
    assert "u_0: pk.double = 2.0\n" in specialise("p2p", "w", REACH=2).text


@pytest.mark.parametrize(
    ("slots", "line"),
    [
        ({"TILE": 1.5}, 5),
        ({"TILE": True}, 5),
        ({"TILE": "four"}, 5),
        ({"TILE": (4,)}, 5),
        ({"REACH": float("nan")}, 6),
        ({"REACH": "double"}, 6),
        ({"real": 2}, 3),
        ({"real": "half"}, 3),
        ({"real": np.float16}, 3),
        ({"real": np.int32}, 3),
        ({"pair": 3}, 4),
        ({"pair": "pair/three"}, 4),
        ({"pair": ("pair/two", "near")}, 4),
        ({"tile": 4}, 8),
        ({"SCREENED": True}, 8),
        ({"w": 1}, 8),
        ({"REACH": object()}, 1),
    ],
)
def test_slots_that_fit_nothing(p2p, slots, line):
    error = l1.rejects("K021", line, specialise, "p2p", "w", **slots)
    assert next(iter(slots)) in error.reason or "pair/three" in error.reason
    assert error.loc.file == "kernels/p2p.py"


def test_an_unknown_slot_says_what_is_near(p2p):
    assert "'TILE'" in l1.rejects("K021", 8, specialise, "p2p", "w", TILES=4).advice
    assert "NS, REACH, TILE, pair, real" in l1.rejects("K021", 8, specialise, "p2p", "w", zzz=4).advice


# Function slots ------------------------------------------------------------------------------------------------------
def test_a_pair_slot_brings_its_constants(p2p):
    one, two = specialise("p2p", "w"), specialise("p2p", "w", pair="pair/two")
    assert "s_1" not in one.text
    assert "u_0 += 0.5 * s_0 + s_1" in two.text
    assert two.sources == ("kernels/p2p.py", "kernels/pair/two.py")
    assert "pair from kernels/pair/two.py" in two.text.splitlines()[0]


def test_constants_of_imported_files_are_slots(p2p):
    assert "u_0 += 0.25 * s_0 + s_1" in specialise("p2p", "w", pair="pair/two", A=0.25, SCREENED=True).text
    l1.rejects("K021", 8, specialise, "p2p", "w", A=0.25)


@pytest.mark.parametrize("form", ["path", "string", "function"])
def test_a_pair_file_of_ones_own(p2p, tmp_path, form):
    name = "near" if form == "function" else "pair"
    own = tmp_path / "own" / "mine.py"
    own.parent.mkdir()
    lines = pair_file(1, "r * pk.exp(-s[0])")
    own.write_text("\n".join([*L1, *lines]).replace("pair", name) + "\n")
    slot = {"path": own, "string": str(own), "function": (own, "near")}[form]
    l0 = specialise("p2p", "w", pair=slot)
    assert "u_0 += r_1 * pk.exp(-s_0)" in l0.text
    line = next(i for i, x in enumerate(l0.text.splitlines()) if "pk.exp" in x)
    assert l0.linemap[line] == (str(own), 7)


def test_a_replacement_may_wrap_what_it_replaces(p2p, files):
    own = files("twice.py", "from parki.kernels.pair.one import pair as base, NS", "@pk.function",
                PAIR.replace("pair", "double_layer"), "    base(r, s, u)", "    base(r, s, u)")  # fmt: skip
    text = specialise("p2p", "w", pair=(own, "double_layer")).text
    assert text.count("u_0 += r_1 * s_0") == 2
    same = files("same.py", "from parki.kernels.pair.one import pair, NS", "@pk.function",
                 PAIR.replace("pair", "near"), "    pair(r, s, u)", "    u[0] *= 2.0")  # fmt: skip
    assert "u_0 += r_1 * s_0\n    u_0 *= 2.0\n" in specialise("p2p", "w", pair=(same, "near")).text


def test_replacements_have_the_same_parameters_and_constants(p2p, files):
    other = files("other.py", *pair_file(1, "s[0]")[:-2], PAIR.replace("r: real", "r: real, q: real"), "    u[0] += q")
    l1.rejects("K021", 6, specialise, "p2p", "w", pair=other)
    without = files("without.py", *pair_file(1, "s[0]")[1:])
    error = l1.rejects("K021", 4, specialise, "p2p", "w", pair=without)
    assert "'NS'" in error.reason


def test_slots_reach_functions_behind_imports(files):
    files("pair/one.py", *pair_file(1, "r * s[0]"))
    files("pair/two.py", *pair_file(1, "r + s[0]"))
    files("near.py", "from parki.kernels.pair.one import pair", "@pk.function",
          "def near(r: real, s: List[real], u: List[real]) -> None:", "    pair(r, s, u)")  # fmt: skip
    path = files("k.py", "from parki.kernels.near import near", "@pk.workunit", "def w(i: int, x: pk.View1D[real]):",
                 "    s: List[real] = [1.0] * 1", "    near(x[i], s, s)", "    x[i] = s[0]")  # fmt: skip
    assert "s_0 += r_1 + s_0" in specialise(path, "w", pair="pair/two").text


# Imports and files ---------------------------------------------------------------------------------------------------
def test_import_cycles(files):
    files("b.py", "from parki.kernels.c import g", "@pk.function", "def f(x: real) -> real:", "    return g(x)")
    files("c.py", "from parki.kernels.b import f", "@pk.function", "def g(x: real) -> real:", "    return f(x)")
    path = files("k.py", "from parki.kernels.b import f", "@pk.workunit", "def w(i: int):", "    pass")
    error = l1.rejects("K021", 4, specialise, path, "w")
    assert error.loc.file == "kernels/c.py"
    assert "kernels/b.py → kernels/c.py → kernels/b.py" in error.reason


def test_constants_are_passed_on_by_files_between(files):
    files("a.py", "N = 3")
    files("b.py", "from parki.kernels.a import N", "M = N + 1")
    head = ["from parki.kernels.b import N as COUNT, M", "@pk.workunit", "def w(i: int, x: pk.View1D[real]):"]
    path = files("k.py", *head, "    x[COUNT] = x[M]")
    assert "x[3] = x[4]" in specialise(path, "w").text
    assert "x[5] = x[6]" in specialise(path, "w", N=5).text


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("import numpy", "K001"),
        ("from numpy import pi", "K021"),
        ("from .b import f", "K021"),
        ("from parki.kernels.nowhere import f", "K021"),
        ("from parki.kernels.b import nothing", "K021"),
        ("from parki.kernels.b import *", "K001"),
        ("N: int = 3", "K001"),
        ("N = open('x')", "K001"),
        ("print('hello')", "K001"),
        ("N = 'text'", "K001"),
        ("N = [1, 2]", "K001"),
        ("N = M + 1", "K003"),
        ("N = 1 // 0", "K021"),
        ("N = 2.0 ** 5000", "K021"),
        ("N = 9 ** 9 ** 9", "K021"),
        ("N = (1,) * 10 ** 9", "K021"),
        ("N = (1, (2, 3))", "K021"),
        ("N = math.sqrt(-1.0)", "K021"),
        ("N = math.inf", "K021"),
        ("real = pk.float", "K002"),
        ("pk = 3", "K003"),
        ("class N: pass", "K001"),
        ("def f(x: real) -> real: return x", "K001"),
        ("N = = 3", "K001"),
    ],
)
def test_module_level_faults(files, line, code):
    files("b.py", "A = 1")
    path = files("k.py", line, "@pk.workunit", "def w(i: int, x: pk.View1D[real]):", "    x[N] = 1.0", "M = 2")
    error = l1.rejects(code, 4, specialise, path, "w")
    assert error.loc.file == str(path)
    assert not Path("x").exists()


def test_statements_outside_the_subset(body):
    for line in ("try: pass\n    finally: pass", "with x: pass", "assert n", "import os", "global n", "class A: pass"):
        l1.rejects("K001", l1.FIRST + 2, body, line.split("\n    "))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("(real, lambda p: 3 * P * p.cap)", "(float, lambda p: (24 * p.cap + 1) // 2)"),
        ("(real, lambda p: (P + 1) * P)", "(float, lambda p: 36)"),
        ("(real, lambda p: 2 * P - 1)", "(float, lambda p: 8)"),
        ("(pk.double, lambda p: p.n)", "(float, lambda p: p.n)"),
        ("(pk.int32, lambda p: P * p.n)", "(int, lambda p: 8 * p.n)"),
        ("(int, lambda p: 4), (pk.int64, lambda p: 4)", "(int, lambda p: 4), (float, lambda p: 4)"),
    ],
)
def test_scratch_is_asked_for_in_the_units_of_upstream(files, entry, text):
    path = files("k.py", "P = 8", f"@pk.workunit(scratch=[{entry}])", "def w(team: pk.TeamMember):", "    pass")
    assert f"@pk.workunit(scratch=[{text}])\n" in specialise(path, "w", real="float").text


@pytest.mark.parametrize(
    "decorator",
    [
        "scratch=[(pk.uint8, lambda p: 4)]",
        "scratch=[(real, 4)]",
        "scratch=[(real, lambda q: 4)]",
        "scratch=4",
        "x=1",
        "1",
    ],
)
def test_faults_of_the_decorator(files, decorator):
    path = files("k.py", f"@pk.workunit({decorator})", "def w(team: pk.TeamMember):", "    pass")
    l1.rejects("K018", l1.FIRST, specialise, path, "w")


def test_files_and_workunits_that_do_not_exist(p2p, tmp_path):
    error = l1.rejects("K021", 1, specialise, "p2q", "w")
    assert "p2p" in error.advice
    l1.rejects("K021", 1, specialise, tmp_path / "none.py", "w")
    assert "w" in l1.rejects("K021", 1, specialise, "p2p", "nothing").advice
    with pytest.raises(TypeError, match="source is a int"):
        specialise(3, "w")


def test_kernel_text_is_never_executed(files):
    path = files("k.py", "import pykokkos.nothing as pk")
    l1.rejects("K001", 4, specialise, path, "w")


def test_the_kernels_of_the_package_are_found():
    assert {"scalar", "pair/laplace"} <= set(package_modules())


# The result ----------------------------------------------------------------------------------------------------------
def test_hash_and_name_come_from_the_text_without_its_header(p2p):
    l0 = specialise("p2p", "w", TILE=7)
    header, rest = l0.text.split("\n", 1)
    assert l0.hash == hashlib.blake2b(rest.encode(), digest_size=8).hexdigest()
    assert l0.filename == f"w_{l0.hash}.py"
    assert header == "# parki L0 · w from kernels/p2p.py, pair from kernels/pair/one.py · real=pk.double, TILE=7"


def test_slot_sets_with_one_text_share_one_file(p2p):
    a, b = specialise("p2p", "w"), specialise("p2p", "w", TILE=4, pair="pair/one")
    assert a.hash == b.hash
    assert a.text.split("\n", 1)[1] == b.text.split("\n", 1)[1]
    assert a.hash != specialise("p2p", "w", TILE=5).hash


def test_results_are_kept_until_a_file_changes(p2p, files):
    first = specialise("p2p", "w")
    assert specialise("p2p", "w") is first
    assert specialise("p2p", "w", TILE=4) is not specialise("p2p", "w", TILE=5)
    with pytest.raises(KernelError):
        specialise("p2p", "w", TILE=4.0)
    files("pair/one.py", *pair_file(1, "2.0 * r * s[0]"))
    assert "u_0 += 2.0 * r_1 * s_0" in specialise("p2p", "w").text
    path = files("pair/one.py", *pair_file(1, "3.0 * r * s[0]"))
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert "u_0 += 3.0 * r_1 * s_0" in specialise("p2p", "w").text


def test_the_text_does_not_depend_on_what_was_made_before(p2p, files):
    path = files("copy.py", *p2p.read_text().splitlines()[len(L1) :])
    fresh = specialise(path, "w", pair="pair/two")
    again = specialise("p2p", "w", pair="pair/two")
    assert fresh.text.replace(str(path), "kernels/p2p.py") == again.text


def test_specialising_is_quick(p2p):
    times = []
    for tile in range(100, 120):
        start = time.perf_counter()
        specialise("p2p", "w", TILE=tile, pair="pair/two")
        times.append(time.perf_counter() - start)
    assert statistics.median(times) < 0.03
