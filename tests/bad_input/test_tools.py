"""Bad input beside sums: pairs, cell lists, point sets, helpers, files."""

import numpy as np
import pytest

from parki import CellList, formats, memory, pairs, samples, utils
from tests.bad_input.refused import INF, NAN, Q, V, X, refused, rows


@rows(
    (lambda: pairs.find("nope"), "kernel is 'nope'"),
    (lambda: pairs.find(None), "kernel is a NoneType"),
    (lambda: pairs.find(3.5), "kernel is a float"),
    (lambda: pairs.find("yukawa", kappa=-1), "kappa is -1"),
    (lambda: pairs.find("yukawa", kapa=1), "kapa was given, but yukawa"),
    (lambda: pairs.find("coulomb", kappa=1), "kappa was given, but coulomb"),
    (lambda: pairs.find("rpy"), "radius is missing"),
    (lambda: pairs.find("rpy", radius="a"), "radius is 'a'"),
    (lambda: pairs.named("x", pairs.PAIRS), "kernel is 'x'"),
    (lambda: pairs.own("nofile.py"), "no kernel file 'nofile.py'"),
    (lambda: pairs.own(None), "source is a NoneType"),
    (lambda: pairs.PAIRS["rotlet"].with_gradient(), "rotlet has no gradient"),
    (lambda: pairs.PAIRS["stokeslet"].with_gradient(), "stokeslet has its gradient alone"),
)
def test_pairs(call, message):
    refused(call, message)


def cells(x=X, cutoff=0.1, box=(1, 1, 1), **more):
    """Return a call that makes a cell list with some arguments in place of good ones."""
    return lambda: CellList(x, cutoff, box, **more)


@rows(
    (cells(None), "particles has dtype object"),
    (cells(X.T), r"particles has shape \(9, 3\)"),
    (cells(X + 1), "particles has 9 of 9 points that lie outside"),
    (cells(X * NAN), "particles has 9 of 9 points that lie outside the box .* or are not finite"),
    (cells(X.astype(int)), "particles has dtype int64"),
    (cells(cutoff=None), "cutoff is None"),
    (cells(cutoff=0), "cutoff is 0"),
    (cells(cutoff=NAN), "cutoff is nan"),
    (cells(cutoff="a"), "cutoff is 'a'"),
    (cells(cutoff=1e-9), "cutoff is 1e-09"),
    (cells(cutoff=2.0, periodicity=3), "cutoff is 2.0"),
    (cells(box=None), "box is None"),
    (cells(box=(1, 1)), "box is"),
    (cells(box="111"), "box is '111'"),
    (cells(box=(1, 1, INF)), "box is"),
    (cells(periodicity=4), "periodicity is 4"),
    (cells(periodicity="a"), "periodicity is 'a'"),
    (cells(padding_factor=0), "padding_factor is 0"),
    (cells(padding_factor=1.5), "padding_factor is 1.5"),
    (cells(skip_empty_cells="no"), "skip_empty_cells is 'no'"),
    (cells(build_nonempty_neighbors=3), "build_nonempty_neighbors is 3"),
    (cells(execution_space="x"), "execution space 'x'"),
    (cells(forces=Q[:3]), "forces has shape"),
    (cells(forces="f"), "forces has dtype"),
    (cells(forces=(Q, V.T)), r"forces\[1\] has shape"),
)
def test_cell_lists(call, message):
    refused(call, message)


def test_cells_that_do_not_fit(monkeypatch):
    monkeypatch.setattr(memory, "free", lambda: 10**6)
    refused(cells(cutoff=0.01), "a list of 1000000 cells needs .* A longer cutoff takes less")
    assert cells(cutoff=0.1)().num_cells == 1000


@rows(
    (lambda: samples.uniform(-1), "n is -1"),
    (lambda: samples.uniform(2.5), "n is 2.5"),
    (lambda: samples.uniform("a"), "n is 'a'"),
    (lambda: samples.uniform(None), "n is None"),
    (lambda: samples.uniform(10**15), "n = 1000000000000000 needs"),
    (lambda: samples.uniform(10**30), "n = 1000000000000000000000000000000 needs"),
    (lambda: samples.uniform(5, seed=-1), "seed is -1"),
    (lambda: samples.uniform(5, seed="a"), "seed is 'a'"),
    (lambda: samples.uniform(5, low=2, high=1), "low is 2 and high is 1"),
    (lambda: samples.uniform(5, low=NAN), "low is nan"),
    (lambda: samples.uniform(5, low="a"), "low is 'a'"),
    (lambda: samples.uniform(5, high=INF), "high is inf"),
    (lambda: samples.gaussian(5, variance=0), "variance is 0"),
    (lambda: samples.gaussian(5, variance="a"), "variance is 'a'"),
    (lambda: samples.plummer(5, cutoff=-1), "cutoff is -1"),
    (lambda: samples.plummer(5, cutoff=None), "cutoff is None"),
    (lambda: samples.box(5, sides=(1, 2)), "sides is"),
    (lambda: samples.box(5, sides=(1, 2, 0)), "sides is 0"),
    (lambda: samples.box(5, sides="abc"), "sides is 'abc'"),
    (lambda: samples.sphere(5, radius=-1), "radius is -1"),
    (lambda: samples.sphere(5, radius=[1]), r"radius is \[1\]"),
    (lambda: samples.sphere(5, radius=1j), "radius is 1j"),
    (lambda: samples.charges(-5), "n is -5"),
    (lambda: samples.charges(5, seed=None), "seed is None"),
)
def test_point_sets(call, message):
    refused(call, message)


@rows(
    (lambda: utils.wrap("x", (1, 1, 1)), "x has dtype"),
    (lambda: utils.wrap(X, (1, 1)), "box is"),
    (lambda: utils.wrap(X, (1, 1, 0)), "box is"),
    (lambda: utils.wrap(X, None), "box is None"),
    (lambda: utils.wrap(X, "abc"), "box is 'abc'"),
    (lambda: utils.wrap(X, (1, 1, 1), layout="x"), "layout is 'x'"),
    (lambda: utils.get_dtype("int"), "dtype is 'int'"),
    (lambda: utils.get_dtype(None), "dtype is None"),
    (lambda: utils.round_up(3, 0), "factor is 0"),
    (lambda: utils.get_execution_space("x"), "execution space 'x'"),
)
def test_helpers(call, message):
    refused(call, message)


FILES = {
    "text.npz": (lambda path: path.write_text("x"), "text.npz is not an .npz file"),
    "empty.npy": (lambda path: path.touch(), "empty.npy is not an .npy file"),
    "objects.npy": (lambda path: np.save(path, np.array([{}], dtype=object)), "objects.npy is not an .npy file"),
    "narrow.npy": (lambda path: np.save(path, np.zeros((3, 2))), r"narrow.npy holds an array \(3, 2\)"),
    "flat.npy": (lambda path: np.save(path, np.zeros(3)), r"flat.npy holds an array \(3,\)"),
    "short.csv": (lambda path: path.write_text("x,y,z,q\n1,2,3\n"), "short.csv, line 2, has 3 columns"),
    "letters.csv": (
        lambda path: path.write_text("x,y,z,q\n1,2,3,four\n"),
        "letters.csv, line 2, column q: found 'four'",
    ),
    "nameless.csv": (lambda path: path.write_text("1,2,3,4\n"), "nameless.csv has no column 'x'"),
    "twice.csv": (lambda path: path.write_text("x,y,z,q,q\n1,2,3,4,5\n"), "twice.csv has several columns 'q'"),
    "bytes.csv": (lambda path: path.write_bytes(b"\xff\xfe\x00"), "bytes.csv is not a .csv file"),
    "none.csv": (lambda path: path.touch(), "none.csv has no column 'x'"),
    "less.npz": (lambda path: np.savez(path, src=X), "less.npz has no array 'dens'"),
    "text.h5": (lambda path: path.write_text("x"), "text.h5 is not an HDF5 file"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_read(name, tmp_path):
    make, message = FILES[name]
    if name.endswith(".h5"):
        pytest.importorskip("h5py")
    make(tmp_path / name)
    refused(lambda: formats.load(tmp_path / name, "laplace", (1, 1, 1) if ".npz" not in name else None), message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.txt", "out.txt has the suffix '.txt'"),
        ("none/out.npz", "there is no folder"),
        ("out.vtk", "suffix '.vtk'"),
    ],
)
def test_files_that_are_written(name, message, tmp_path):
    refused(lambda: formats.check_output(tmp_path / name), message)
