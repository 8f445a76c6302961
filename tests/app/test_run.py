"""Sums by `parki run` with every method: results equal those of the calls, in all file formats, also over ranks."""

import numpy as np
import pytest

import parki
from parki import cli, files, formats, pairs
from parki.app.sums import FileSum
from parki.app.words import KERNELS, METHODS
from parki.distributed.simulated import World
from tests.distributed.shares import far
from tests.test_files import need, vtu

CELL = ((1.0, 0.0, 0.0), (0.3, 1.0, 0.0), (-1e-1, 0.2, 1.1))
SOME = {"kappa": 1.5, "epsilon": 0.05, "k": 2.0, "width": 0.4, "unit": 2.0, "radius": 0.02}


def relative(u, exact):
    return np.linalg.norm(u - exact) / np.linalg.norm(exact)


def run(*arguments):
    assert cli.main(["run", *map(str, arguments)]) == 0


@pytest.fixture
def cloud(tmp_path, rng):
    """Return a small file of charges in the unit box, without a box, and its arrays."""
    arrays = {"src": rng.random((3, 300)), "dens": rng.standard_normal(300), "trg": rng.random((3, 40))}
    np.savez(tmp_path / "in.npz", **arrays)
    return tmp_path / "in.npz", arrays


# Methods and kernels --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [name for name in METHODS if name != "ewald"])
def test_every_method_sums_in_free_space(method, cloud, capsys):
    path, a = cloud
    out = path.with_name("out.npz")
    more = [] if method == "direct" else ["--tolerance", "1e-5"]
    run(path, "--kernel", "coulomb", "--method", method, "-o", out, *more)
    assert f"coulomb by {method}: 300 sources, 40 targets" in capsys.readouterr().out
    with np.load(out) as file:
        found = dict(file)
    exact = parki.direct.direct_sum("coulomb", a["trg"], a["src"], a["dens"])
    assert relative(found["potential"], exact) < (1e-5 if more else 1e-13)
    assert (found["kernel"], found["method"]) == ("coulomb", method)
    assert ("tolerance" in found) is bool(more)
    assert ("order" in found) is (METHODS[method][0] == "fmm")
    assert ("theta" in found) is (METHODS[method][0] == "treecode")


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_reads_its_columns(kernel, tmp_path, rng):
    """Check for the bits of the call, and one column of the result per component."""
    pair = pairs.PAIRS[kernel]
    parameters = {name: SOME[name] for name in pair.names}
    names = [name for some in formats.columns(kernel).values() for name in some]
    table = rng.standard_normal((20, len(names)))
    np.savetxt(tmp_path / "in.csv", table, "%.17g", ",", header=",".join(names), comments="")
    more = [f"--parameter={name}={value}" for name, value in parameters.items()]
    run(tmp_path / "in.csv", "--kernel", kernel, "--method", "direct", "-o", tmp_path / "out.csv", *more)
    x, dens, normals = table.T[:3], table.T[3 : 3 + pair.dens], table.T[3 + pair.dens :]
    given = (dens if pair.dens > 1 else dens[0], *([normals] if pair.normals else []))
    expected = parki.direct.plan(kernel, x, x, **parameters)(*given)
    found = np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1).T
    np.testing.assert_array_equal(found[3:].squeeze(), expected)
    assert np.array_equal(found[:3], x)


OWN = """\
from typing import List
import pykokkos as pk
real = pk.double
NS = 2
NU = 2
NF = 1

@pk.function
def pair(dx: real, dy: real, dz: real, r2: real, w: real, far: List[real], s: List[real], u: List[real]) -> None:
    u[0] += s[0] * pk.exp(-r2)
    u[1] += s[1] * pk.exp(-2.0 * r2)
"""


def test_a_kernel_of_ones_own(tmp_path, rng, monkeypatch):
    """Check a kernel file named relative to the current folder; its columns are numbered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    table = rng.random((30, 5))
    np.savetxt("in.csv", table, "%.17g", ",", header="x,y,z,q1,q2", comments="")
    run("in.csv", "--kernel", "mine.py", "--method", "bldtt", "--tolerance", "1e-6", "-o", "out.csv")
    r2 = np.square(table[:, None, :3] - table[:, :3]).sum(axis=2)
    exact = np.stack([np.exp(-r2) @ table[:, 3], np.exp(-2 * r2) @ table[:, 4]])
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "x,y,z,u1,u2"
    assert relative(np.loadtxt("out.csv", delimiter=",", skiprows=1).T[3:], exact) < 1e-6


def test_parameters_have_two_spellings(cloud):
    path, _ = cloud
    outs = [path.with_name(name) for name in ("one.npz", "two.npz")]
    for out, more in zip(outs, (["--kappa", "2"], ["--parameter", "kappa=2"]), strict=True):
        run(path, "--kernel", "yukawa", "--method", "direct", "-o", out, *more)
    with np.load(outs[0]) as one, np.load(outs[1]) as two:
        assert one.files == two.files
        assert one["kappa"] == two["kappa"] == 2
        np.testing.assert_array_equal(one["potential"], two["potential"])


# Gradients ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", formats.WRITTEN)
def test_potential_and_gradient(suffix, cloud):
    if suffix in formats.LIBRARIES:
        need(formats.LIBRARIES[suffix])
    path, a = cloud
    out = path.with_name(f"out{suffix}")
    run(path, "--kernel", "coulomb", "--method", "direct", "--gradient", "both", "-o", out)
    u, slope = parki.direct.plan("coulomb", a["trg"], a["src"], gradient=True)(a["dens"])
    if suffix == ".npy":
        found = dict(zip(("potential", "gradient"), np.split(np.load(out), [1]), strict=True))
    elif suffix == ".csv":
        assert out.read_text().splitlines()[0] == "x,y,z,potential,gx,gy,gz"
        table = np.loadtxt(out, delimiter=",", skiprows=1).T
        found = {"potential": table[3], "gradient": table[4:]}
    elif suffix == ".vtu":
        found = vtu(out)
    elif suffix == ".npz":
        with np.load(out) as file:
            found = dict(file)
    else:
        with need("h5py").File(out) as file:
            found = {name: a[()] for name, a in file.items()}
    np.testing.assert_array_equal(found["potential"].squeeze(), u)
    np.testing.assert_array_equal(found["gradient"], slope)


def test_a_group_keeps_no_older_gradient(cloud):
    h5py = need("h5py")
    path, _ = cloud
    out = path.with_name("out.h5")
    for more in (["--gradient", "both"], []):
        run(path, "--kernel", "coulomb", "--method", "direct", "-o", f"{out}:/a", *more)
        with h5py.File(out) as file:
            assert set(file["a"]) == {"potential", *(["gradient"] if more else [])}


def test_potential_and_gradient_of_an_ewald_sum(tmp_path, rng):
    src = rng.random((3, 30))
    dens = rng.standard_normal(30)
    np.savez(tmp_path / "in.npz", src=src, dens=dens, box=np.ones(3))
    more = ["--parameter", "kappa=2", "--gradient", "both", "--tolerance", "1e-4", "--periodicity", "1"]
    run(tmp_path / "in.npz", "--kernel", "yukawa", "-o", tmp_path / "out.npz", *more)
    given = {"box": (1, 1, 1), "periodicity": 1, "tolerance": 1e-4, "kappa": 2.0, "gradient": True}
    u, slope = parki.ewald.plan("yukawa", src, src, **given)(dens)
    with np.load(tmp_path / "out.npz") as file:
        np.testing.assert_array_equal(file["potential"], u)
        np.testing.assert_array_equal(file["gradient"], slope)


@pytest.mark.parametrize(("kernel", "call"), [("laplace", "laplace_grad"), ("stokes_sl", "stokes_grad")])
def test_the_gradient_alone_of_an_ewald_sum(kernel, call, tmp_path, rng):
    src, dens = rng.random((3, 30)), rng.standard_normal(30 if kernel == "laplace" else (3, 30))
    dens -= dens.mean(axis=-1, keepdims=True)
    np.savez(tmp_path / "in.npz", src=src, dens=dens, box=np.ones(3))
    more = ["--gradient", "only", "--tolerance", "1e-4", "--space", "Serial"]
    run(tmp_path / "in.npz", "--kernel", kernel, "-o", tmp_path / "out.npz", *more)
    expected = getattr(parki.ewald, call)(src, src, dens, box=(1, 1, 1), tolerance=1e-4, execution_space="Serial")
    with np.load(tmp_path / "out.npz") as file:
        assert "potential" not in file.files
        np.testing.assert_array_equal(file["gradient"], expected)


# Boxes and directions -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("where", ["npz", "h5", "words"])
def test_triclinic_boxes(where, tmp_path, rng):
    arrays = {"src": rng.random((3, 30)), "dens": rng.standard_normal(30)}
    arrays["dens"] -= arrays["dens"].mean()
    source, out, more = tmp_path / f"in.{where}", tmp_path / "out.h5", []
    if where == "h5":
        with need("h5py").File(source, "w") as file:
            file.update(arrays | {"box": np.array(CELL)})
    elif where == "npz":
        np.savez(source, **arrays, box=np.array(CELL))
    else:
        source = tmp_path / "in.npz"
        np.savez(source, **arrays)
        more = ["--box", *(repr(number) for row in CELL for number in row)]
    run(*more, source, "--kernel", "laplace", "--tolerance", "1e-4", "--space", "Serial", "-o", out)
    options = {"box": np.array(CELL), "tolerance": 1e-4, "execution_space": "Serial"}
    expected = parki.ewald.laplace(arrays["src"], **arrays, **options)
    with need("h5py").File(out) as file:
        np.testing.assert_array_equal(file["potential"][()], expected)
        assert np.array_equal(file.attrs["box"], CELL)


@pytest.mark.parametrize(
    ("word", "periodic"),
    [
        ("1", (True, False, False)),
        ("2", (True, True, False)),
        ("y", (False, True, False)),
        ("xz", (True, False, True)),
        ("011", (False, True, True)),
        ("zyx", (True, True, True)),
        ("000", (False, False, False)),
    ],
)
def test_periodic_directions(word, periodic, cloud):
    path, a = cloud
    box, out = (1.0, 1.2, 1.1), path.with_name("out.npz")
    more = ["--box", *box, "--periodicity", word, "--tolerance", "1e-4", "--space", "Serial"]
    a["dens"] -= a["dens"].mean()
    np.savez(path, **a)
    run(path, "--kernel", "laplace", "-o", out, *more)
    options = {"box": box, "periodicity": periodic, "tolerance": 1e-4, "execution_space": "Serial"}
    with np.load(out) as file:
        np.testing.assert_array_equal(file["potential"], parki.ewald.laplace(**a, **options))
        assert tuple(file["periodicity"]) == periodic


def test_a_box_is_left_out_on_purpose_only(cloud, capsys):
    path, a = cloud
    np.savez(path, **a, box=np.ones(3))
    command = ["run", str(path), "--kernel", "coulomb", "--method", "direct", "-o", str(path.with_name("out.npz"))]
    assert cli.main(command) == 2
    said = capsys.readouterr().err
    assert "in.npz has a box, and --method direct sums in free space" in said
    assert "--periodicity 0" in said
    assert cli.main([*command, "--periodicity", "0"]) == 0


# Errors ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--kernel coulomb --method fmm --box 1 1 1", "--box was given with --method fmm; expected no box"),
        ("--kernel coulomb --method fmm --periodicity x", "--periodicity is (True, False, False) with --method fmm"),
        ("--kernel coulomb --method treecode --rc 0.1", "--rc was given with --method treecode"),
        ("--kernel coulomb --method kifmm --split gaussian", "--split was given with --method kifmm"),
        ("--kernel coulomb --method direct --tolerance 1e-3", "--tolerance was given with --method direct"),
        ("--kernel gaussian --box 1 1 1", "--kernel is 'gaussian' with --method ewald; expected one of laplace, "),
        ("--kernel mine.py --box 1 1 1", "--kernel is 'mine.py' with --method ewald; expected one of laplace, "),
        ("--kernel coulombic --method fmm", "or a file NAME.py"),
        ("--kernel none.py --method fmm", "none.py"),
        ("--kernel stokes_sl --box 1 1 1 --gradient both", "stokes_sl has no gradient=True in Ewald sums"),
        ("--kernel stokes_pressure --box 1 1 1 --gradient only", "stokes_pressure has no gradient='only'"),
        ("--kernel gaussian --method bltc", "width is missing"),
        ("--kernel gaussian --method bltc --parameter width=-1", "width is -1"),
        ("--kernel gaussian --method bltc --parameter kappa=1", "kappa was given, but gaussian takes width"),
        ("--kernel yukawa --method bltc --kappa 1 --parameter kappa=1", "expected --parameter NAME=VALUE once"),
        ("--kernel coulomb --method bltc --tolerance 3", "tolerance is 3"),
        ("--kernel laplace --box 1 0 0 0 1 0 0.5 0 1 --periodicity 2", "at right angles to all others"),
    ],
)
def test_arguments_that_do_not_go_together(arguments, said, cloud, capsys):
    path, _ = cloud
    out = path.with_name("out.npz")
    assert cli.main(["run", str(path), "-o", str(out), *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--box", "1", "1", "1", "1"], "found '1 1 1 1'; expected 3 side lengths, or the 9 numbers"),
        (["--box", "--rc", "1"], "--box"),
        (["--periodicity", "xx"], "found 'xx'; expected 0, 1, 2 or 3"),
        (["--periodicity", "01"], "found '01'"),
        (["--parameter", "width"], "found 'width'; expected a name and a number"),
        (["--method", "pme"], "--method"),
    ],
)
def test_words_that_cannot_be_read(arguments, said, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["run", "in.npz", "--kernel", "laplace", "-o", "out.npz", *arguments])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_arrays_of_a_wrong_shape_are_named(tmp_path, capsys):
    np.savez(tmp_path / "in.npz", src=np.zeros((30, 3)), dens=np.ones(30))
    command = ["run", str(tmp_path / "in.npz"), "--kernel", "coulomb", "--method", "fmm"]
    assert cli.main([*command, "-o", str(tmp_path / "out.npz")]) == 2
    assert "in.npz: src has shape (30, 3); expected (3, N)." in capsys.readouterr().err


# Ranks ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["bldtt", "kifmm", "direct"])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".h5"])
def test_ranks_write_what_one_process_does(suffix, method, cloud):
    if suffix in formats.LIBRARIES:
        need(formats.LIBRARIES[suffix])
    path, _ = cloud

    def summed(name, comm=None):
        asked = FileSum("coulomb", method, gradient="both", comm=comm)
        assert files.run(path, path.with_name(name + suffix), asked)

    summed("one")
    World(3).run(lambda comm: summed("many", comm))
    one, many = (_results(path.with_name(name + suffix)) for name in ("one", "many"))
    assert one.shape == (4, 40)
    assert far(many, one) < (1e-12 if method == "direct" else 1e-6)


def _results(path):
    """Return the rows of potential and gradient in a file."""
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path) as file:
            return np.vstack([file["potential"], file["gradient"]])
    with need("h5py").File(path) as file:
        return np.vstack([file["potential"][()], file["gradient"][()]])
