"""Operations counted from the texts of kernels, against the instructions that a build executes."""

import pickle
import re
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from parki import engine
from parki.engine.calls.arguments import set_shape
from parki.engine.compile import compiler
from tests.catalogue import PAIRS

CHILD = """
import ctypes, pickle, sys
for path, blob, views in pickle.load(open(sys.argv[1], "rb")):
    args, held = ctypes.create_string_buffer(blob, len(blob)), []
    for offset, data in views:
        held.append(ctypes.create_string_buffer(data, len(data)))
        ctypes.c_void_p.from_buffer(args, offset).value = ctypes.addressof(held[-1])
    run = ctypes.CDLL(path).pk_run
    run.argtypes, run.restype = [ctypes.c_void_p], None
    run(ctypes.addressof(args))
"""


def call(unit, league, args):
    """Return a workunit's object, and its argument structure with the arrays' bytes."""
    compiled = unit.compiled(unit.default_layouts(), False)
    struct, views = compiled.struct(), []
    struct.pk_league, struct.pk_threads = league, 1
    for name, value in {**args, "pk_fault_at": np.zeros(4, np.int64), "pk_partial": np.zeros(league)}.items():
        if isinstance(value, np.ndarray):
            views.append((getattr(compiled.struct, name).offset, value.tobytes()))
            set_shape(struct, name, value)
        else:
            setattr(struct, name, value)
    return str(compiled.path), bytes(struct), views


def executed(calls, folder):
    """Return the counts of executed instructions, by object and name of the instruction."""
    (folder / "given").write_bytes(pickle.dumps(calls))
    out = folder / "callgrind.out"
    tool = ["valgrind", "--tool=callgrind", "--dump-instr=yes", "--compress-strings=no", "--compress-pos=no"]
    program = [sys.executable, "-I", "-S", "-c", CHILD, str(folder / "given")]
    subprocess.run([*tool, f"--callgrind-out-file={out}", *program], check=True, capture_output=True)
    counts, of, inclusive = {path: Counter() for path, _, _ in calls}, None, False
    for line in out.read_text().splitlines():
        if line.startswith("ob="):
            of = counts.get(line[3:])
        elif line.startswith("calls="):
            inclusive = True
        elif line.startswith("0x"):
            if of is not None and not inclusive:
                of[int(line.split()[0], 16)] += int(line.split()[-1])
            inclusive = False
    found = {}
    for path, at in counts.items():
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True)
        names = {int(m[1], 16): m[2] for m in re.finditer(r"^\s*([0-9a-f]+):\t(\S+)", text.stdout, re.MULTILINE)}
        found[path] = Counter()
        for address, n in at.items():
            found[path][names[address]] += n
    return found


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("objdump")), reason="needs valgrind and objdump")
def test_a_build_executes_what_is_counted(tmp_path, monkeypatch, rng):
    monkeypatch.setenv("PARKI_ARCH", "x86-64-v3")  # the newest level that valgrind knows: 4 lanes, fused operations
    monkeypatch.delenv("PARKI_VECTOR_BYTES", raising=False)
    try:
        lanes = compiler.target().vector_bytes // 8
        compiler_text = compiler.find_compiler().version
    except engine.BuildError as e:
        pytest.skip(f"no compiler for x86-64-v3: {e}")
    if lanes != 4 or not re.search(r"g\+\+|gcc", compiler_text, re.IGNORECASE):
        pytest.skip(f"{compiler_text} has {lanes} lanes; this is about GCC's code for 4")
    nt, ns, units, calls = 64, 100, {}, []
    for pair in ("laplace", "stokeslet", "stokes_comb"):
        numbers, result, _ = PAIRS[pair]
        args = {"xt": rng.random((3, nt)), "src": rng.random((ns, 3 + numbers)), "u": np.zeros((result, nt))}
        units[pair] = engine.kernel("direct", "direct_sum", pair=f"pair/{pair}", hints=("jam_6",))
        calls.append(call(units[pair], 1, {**args, "nt": nt, "ns": ns, "chunk": nt, "tiny": 0.0}))
    found = executed(calls, tmp_path)
    vectors = nt // lanes * ns
    for (pair, unit), (path, _, _) in zip(units.items(), calls, strict=True):
        text = engine.operations(unit).total({"t": nt, "e": ns}, lanes=lanes)
        done = {
            "add": sum(n for name, n in found[path].items() if re.fullmatch("v(add|sub)pd", name)),
            "mul": found[path]["vmulpd"],
            "fma": sum(n for name, n in found[path].items() if re.fullmatch(r"vfn?m(add|sub)\d+pd", name)),
            "rsqrt": found[path]["vrsqrtps"],
        }
        # The reciprocal square root is two products and six fused operations after an approximation.
        own = {"add": 0, "mul": 2, "fma": 6, "rsqrt": 0}
        expected = {name: text.operations[name] / lanes + own[name] * vectors for name in done}
        assert done == pytest.approx(expected, rel=0.01), pair
        # Each number of a source is loaded once for all lanes, and one constant may be loaded besides.
        loaded = found[path]["vbroadcastsd"] / text.loads["src"]
        assert loaded < 1 + 1.3 / (3 + PAIRS[pair][0]), pair
