"""PyKokkos as a second engine, with a stand-in in its place: its inputs, and the handling of its failures."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from parki import engine
from parki.engine import KernelError, LaunchError, RangePolicy, TeamPolicy
from parki.engine.run import spaces, upstream
from parki.engine.run.spaces import Space
from tests.engine import kernel_cases as cases
from tests.engine import pykokkos_standin as standin

gather, prepare = standin.gather, standin.prepare


@pytest.fixture
def kernel(tmp_path):
    """Return a function that gives a workunit of the stand-in's file by its name."""
    file = tmp_path / "sum.py"
    file.write_text(standin.SUM)
    return lambda name: engine.kernel(file, name)


# L0 files ------------------------------------------------------------------------------------------------------------
def test_the_file_is_the_l0_text_in_the_cache(pk, tmp_path):
    unit, _ = gather()
    path = upstream.L0_file(unit)
    assert path == tmp_path / "cache" / "v1" / "pykokkos" / unit.l0.filename
    assert path.read_text("utf-8") == unit.l0.text
    before = path.stat().st_ino
    assert upstream.L0_file(unit) == path
    assert path.stat().st_ino == before
    path.write_text("damaged")
    assert upstream.L0_file(unit).read_text("utf-8") == unit.l0.text
    assert list(path.parent.iterdir()) == [path]


def test_rsqrt_is_replaced_on_hosts_only(pk, kernel):
    unit = kernel("roots")
    device, host = upstream.L0_file(unit, device=True), upstream.L0_file(unit)
    assert device.name == unit.l0.filename
    assert device.read_text("utf-8") == unit.l0.text
    assert host.name != device.name
    changed = host.read_text("utf-8")
    assert "y[i] = 2.0 / (1.0 / pk.sqrt(x[i] * (1.0 / pk.sqrt(x[i]))))" in changed
    assert changed.count("\n") == unit.l0.text.count("\n")
    x, y = np.array([1.0, 16.0, 81.0]), np.zeros(3)
    prepare(RangePolicy("Serial", 3), unit, {"x": x, "y": y}).run()
    np.testing.assert_allclose(y, 2 * x**0.25)


def test_extents_are_signed(pk, kernel):
    """Check the casts of extents, which are unsigned in C++: 0 - extent would be a huge number."""
    unit = kernel("rest")
    text = upstream.L0_file(unit, device=True).read_text("utf-8")
    assert "out[i] = int(x.extent(0)) - i * int(x.extent(1))" in text
    assert upstream.L0_file(unit) == upstream.L0_file(unit, device=True)


def test_casts_of_casts_are_expressions(pk, kernel):
    """Check casts of casts: in C++ (double(int(a))) - a begins with the name of a type, that of a function."""
    text = upstream.L0_file(kernel("whole")).read_text("utf-8")
    assert "x[i] = pk.double(int(+a)) - a + x[i]" in text


@pytest.mark.parametrize("pair", ["laplace", "stokes_comb"])
def test_no_kernel_keeps_rsqrt_and_lines_stay(pk, pair):
    unit = engine.kernel("p2p", "p2p_gm_1d", pair=f"pair/{pair}", SCREENED=True)
    assert "pk.rsqrt(" in unit.l0.text
    text = upstream.rewritten(unit.l0.text)
    assert "pk.rsqrt(" not in text
    old, new = unit.l0.text.split("\n"), text.split("\n")
    assert len(old) == len(new)
    assert all(a == b or "pk.rsqrt(" in a for a, b in zip(old, new, strict=True))


def test_every_file_imports_as_plain_python(pk, root):
    for file, name in sorted(cases.workunits_of(root / "kernels")):
        unit = engine.kernel(file, name)
        function = upstream._function(pk, upstream.L0_file(unit), unit.l0.name)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        assert set(names) >= {p.name for p in unit.ir.params}
        assert hasattr(function, "_pk_scratch") == bool(unit.ir.scratch_size)


# Launches through the stand-in ---------------------------------------------------------------------------------------
def test_a_range_launch(pk):
    unit, args = gather()
    expected = args["x"][:, args["order"]]
    prepared = prepare(RangePolicy("OpenMP", 4), unit, args)
    assert pk.launches == []
    assert prepared.run() is None
    kind, policy, function, passed = pk.launches[0]
    assert (kind, policy.kind, policy.begin, policy.end) == ("for", "range", 0, 4)
    assert policy.space is pk.ExecutionSpace.OpenMP
    assert function.__name__ == "gather_points"
    assert passed.keys() == args.keys()
    assert all(passed[name] is a for name, a in args.items())
    np.testing.assert_array_equal(args["out"], expected)


def test_each_launch_has_a_fresh_policy_and_teams_of_one(pk):
    case, real = cases.ALL["p2g_block-0-double"]
    unit, args = case.unit(real), case.fresh()
    prepared = prepare(TeamPolicy("Serial", case.league, 32, 4), unit, args)
    prepared.run()
    prepared.run()
    (_, first, function, passed), (_, second, again, _) = pk.launches
    assert first is not second
    assert function is again
    for policy in (first, second):
        assert (policy.space, policy.league, policy.team, policy.vector) == (
            pk.ExecutionSpace.Serial,
            case.league,
            1,
            1,
        )
    assert function._pk_scratch[0][1](None) == 2 * 6 * 4
    for p in unit.ir.params:
        wanted = np.ndarray if p.rank else float if p.type == "double" else int
        assert type(passed[p.name]) is wanted


def test_of_arrays_with_gaps_it_takes_copies(pk):
    """Check that arrays with gaps are copied: PyKokkos reads memory as if there were no gaps."""
    unit, args = gather()
    x, out = np.full((2, 3, 6), -1.0), np.full((3, 5), 7.0)
    x[0, :, 1:5] = args["x"]
    expected = args["x"][:, args["order"]]
    prepared = prepare(RangePolicy("Serial", 4), unit, args | {"x": x[0, :, 1:5], "out": out[:, :4]})
    for _ in range(2):
        prepared.run()
        passed = pk.launches[-1][3]
        assert passed["x"].flags.c_contiguous
        assert passed["out"].flags.c_contiguous
        assert passed["order"] is args["order"]
        np.testing.assert_array_equal(out[:, :4], expected)
        assert np.all(out[:, 4] == 7.0)
        x += 1.0
        expected = expected + 1.0
    whole = np.zeros((3, 4))
    prepared.set(out=whole)
    prepared.run()
    assert pk.launches[-1][3]["out"] is whole
    np.testing.assert_array_equal(whole, expected)


def test_numbers_are_those_of_python(pk, kernel):
    pk.result = np.float64(3.5)
    args = {"x": np.ones(3), "scale": np.float32(2), "even": np.True_}
    prepared = prepare(RangePolicy("Serial", 3), kernel("total"), args)
    result = prepared.run()
    assert (result, type(result)) == (3.5, float)
    kind, _, _, passed = pk.launches[0]
    assert kind == "reduce"
    assert (passed["scale"], type(passed["scale"])) == (2.0, float)
    assert passed["even"] is True
    prepared.set(scale=np.int64(7), even=False)
    prepared.run()
    passed = pk.launches[1][3]
    assert (passed["scale"], type(passed["scale"]), passed["even"]) == (7.0, float, False)
    assert passed["x"] is args["x"]


def test_scans_return_integers(pk, kernel):
    pk.result = 6.0
    args = {"n": np.ones(6, np.int32), "out": np.zeros(6, np.int32)}
    result = prepare(RangePolicy("Serial", 6), kernel("running"), args).run()
    assert pk.launches[0][0] == "scan"
    assert (result, type(result)) == (6, int)


def test_nothing_is_launched_over_nothing(pk, kernel):
    args = {"x": np.ones(3), "scale": 1.0, "even": True}
    assert prepare(RangePolicy("Serial", 0), kernel("total"), args).run() == 0.0
    assert pk.launches == []


def test_set_replaces_arrays_or_nothing(pk):
    unit, args = gather()
    prepared = prepare(RangePolicy("Serial", 4), unit, args)
    other = np.full((3, 4), 7.0)
    for wrong, reason in [
        ({"out": np.zeros((3, 4)), "x": np.zeros(3)}, "'x' has 1 dimension"),
        ({"out": np.zeros((3, 4)), "x": np.zeros((3, 8))[:, ::2]}, "'x' has another layout"),
        ({"x": np.asfortranarray(other)}, "'x' has another layout"),
        ({"out": args["x"]}, "overlaps"),
        ({"y": 1}, "no argument 'y'"),
    ]:
        with pytest.raises(LaunchError, match=reason):
            prepared.set(**wrong)
    prepared.run()
    assert pk.launches[0][3]["out"] is args["out"]
    assert pk.launches[0][3]["x"] is args["x"]
    prepared.set(x=other)
    prepared.run()
    assert pk.launches[1][3]["x"] is other
    assert np.all(args["out"] == 7.0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a.pop("order"), "missing arguments .'order'."),
        (lambda a: a.update(extra=1), "unknown arguments .'extra'."),
        (lambda a: a.update(order=np.zeros(4)), "'order' has 1 dimension"),
    ],
)
def test_arguments_are_checked(pk, change, reason):
    unit, args = gather()
    change(args)
    with pytest.raises(LaunchError, match=reason):
        prepare(RangePolicy("Serial", 4), unit, args)


def test_what_cannot_be_launched_through_it(pk, kernel, monkeypatch):
    unit, args = gather()
    with pytest.raises(LaunchError, match="gather_points needs a range policy"):
        prepare(TeamPolicy("Serial", 4), unit, args)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(LaunchError, match="threads=3: PyKokkos takes the number of threads from OMP_NUM_THREADS"):
        prepare(RangePolicy(Space("OpenMP", 3), 4), unit, args)
    prepare(RangePolicy(Space("OpenMP", 2), 4), unit, args).run()
    assert pk.launches[0][1].space is pk.ExecutionSpace.OpenMP
    with pytest.raises(LaunchError, match=r"parameters of its own called \['policy'\]"):
        prepare(RangePolicy("Serial", 3), kernel("unlucky"), {"x": np.zeros(3), "policy": 1})
    with pytest.raises(ValueError, match="GpuSim runs what parki's own engine generates"):
        prepare(RangePolicy("GpuSim", 4), unit, args)


def test_a_forked_process_runs_serial(pk, monkeypatch):
    unit, args = gather()
    prepared = prepare(RangePolicy("OpenMP", 4), unit, args)
    monkeypatch.setattr(spaces, "_forked", True)
    prepared.run()
    assert pk.launches[0][1].space is pk.ExecutionSpace.Serial


@pytest.mark.parametrize(("sizes", "expected"), [((None, None), ("auto", 1)), ((16, 8), (16, 8))])
def test_on_a_device(pk, monkeypatch, sizes, expected):
    waits = []
    runtime = SimpleNamespace(deviceSynchronize=lambda: waits.append(len(pk.launches)))
    module = SimpleNamespace(ndarray=np.ndarray, cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(spaces, "array_module", lambda space: module)
    case, real = cases.ALL["direct_sum-0-double"]
    unit, space = case.unit(real), Space("Cuda")
    policy = SimpleNamespace(kind="team", space=space, league=2, team_size=sizes[0], vector_length=sizes[1])
    prepared = prepare(policy, unit, case.fresh())
    prepared.run()
    found = pk.launches[0][1]
    assert (found.space, found.league, found.team, found.vector) == (pk.ExecutionSpace.Cuda, 2, *expected)
    assert waits == [0, 1]
    assert upstream.L0_file(unit, device=True).read_text("utf-8") == unit.l0.text
    assert "pk.rsqrt(" in unit.l0.text
    assert Path(pk.launches[0][2].__code__.co_filename) == upstream.L0_file(unit, device=True)


# Failures ------------------------------------------------------------------------------------------------------------
def test_the_end_of_the_program_becomes_an_error(pk, capsys):
    unit, args = gather()
    line = next(n for n, text in enumerate(unit.l0.text.split("\n"), 1) if "order[j]" in text)

    def fails():
        print(f"\n\033[31m\033[01mError on line {line} \033[0m: a word of wisdom\nDEBUG AST:\nName(id='i')")  # noqa: T201
        sys.exit("PyKokkos: Translation failed")

    pk.fails = fails
    prepared = prepare(RangePolicy("Serial", 4), unit, args)
    with pytest.raises(KernelError, match=rf"K022: PyKokkos rejects gather_points_\w+\.py: Error on line {line} ") as e:
        prepared.run()
    assert str(e.value).endswith(": a word of wisdom")
    assert (e.value.loc.file, e.value.loc.line) == unit.l0.linemap[line - 1]
    assert capsys.readouterr() == ("", "")
    pk.fails = None
    prepared.run()
    np.testing.assert_array_equal(args["out"], args["x"][:, ::-1])


def test_an_end_without_words_and_a_compiler_that_fails(pk):
    unit, args = gather()
    pk.fails = sys.exit
    with pytest.raises(KernelError, match="it says nothing") as e:
        prepare(RangePolicy("Serial", 4), unit, args).run()
    assert e.value.loc == unit.ir.loc

    def compiler():
        print("In file included from bindings.cpp:\n./functor.hpp:12:3: error: 'q' was not declared", file=sys.stderr)  # noqa: T201
        sys.exit(1)

    pk.fails = compiler
    with pytest.raises(KernelError, match=r"\.py: \./functor\.hpp:12:3: error: 'q' was not declared$") as e:
        prepare(RangePolicy("Serial", 4), unit, args).run()
    assert e.value.loc == unit.ir.loc


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TypeError("incompatible arguments"), "TypeError: incompatible arguments$"),
        (ImportError("kernel.so: no such file"), "ImportError: kernel.so: no such file. .* remove pk_cpp below"),
    ],
)
def test_other_errors_name_the_kernel(pk, error, said):
    def fails():
        raise error

    unit, args = gather()
    pk.fails = fails
    with pytest.raises(LaunchError, match=rf"gather_points: PyKokkos stops with {said}") as e:
        prepare(RangePolicy("Serial", 4), unit, args).run()
    assert e.value.__cause__ is error


def test_what_it_prints_goes_to_the_log(pk, caplog, capsys):
    pk.fails = lambda: print("patchelf is missing")  # noqa: T201
    unit, args = gather()
    with caplog.at_level(logging.INFO, "parki.engine"):
        prepare(RangePolicy("Serial", 4), unit, args).run()
    assert "patchelf is missing" in caplog.text
    assert capsys.readouterr() == ("", "")


# Its front end -------------------------------------------------------------------------------------------------------
def test_translate_takes_the_host_file(pk, kernel):
    unit = kernel("roots")
    name = upstream.L0_file(unit).name
    assert name != unit.l0.filename
    assert upstream.translate(unit).split("\n") == ["@pk.workunit", f"members of {name}", "casts", "bindings"]


def test_translate_leaves_the_scratch_out(pk):
    unit = engine.kernel("p2g", "p2g_block")
    assert "@pk.workunit(scratch=[" in unit.l0.text
    assert upstream.translate(unit).split("\n")[0] == "@pk.workunit()"


def test_rejections_and_crashes_of_the_front_end(pk, kernel):
    unit = kernel("roots")
    line = next(n for n, text in enumerate(unit.l0.text.split("\n"), 1) if "pk.rsqrt" in text)

    def rejects():
        print(f'File "{upstream.L0_file(unit)}", line {line}:\n undefined symbol rsqrt used')  # noqa: T201
        sys.exit()

    pk.fails = rejects
    with pytest.raises(KernelError, match="undefined symbol rsqrt used") as e:
        upstream.translate(unit)
    place = standin.SUM.split("\n").index("def roots(i: int, x: pk.View1D[real], y: pk.View1D[real]):") + 2
    assert (e.value.code, e.value.loc.line) == ("K022", place)
    pk.fails = lambda: {}["bool"]
    with pytest.raises(KernelError, match=r"PyKokkos stops while it translates .*KeyError: 'bool'"):
        upstream.translate(unit)
