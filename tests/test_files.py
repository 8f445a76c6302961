"""Files of particles and of potentials: round trips in all formats, equality with the call, and messages of errors."""

import csv
import importlib
import io
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import parki
from parki import cli, formats

COLUMNS = {
    "laplace": "x y z q".split(),
    "stokes_sl": "x y z fx fy fz".split(),
    "stokes_comb": "x y z fx fy fz qx qy qz nx ny nz".split(),
}
BOX = (1.0, 1.5, 2.0)
NUMBERS = hnp.arrays("f8", hnp.array_shapes(min_dims=2, max_dims=2, max_side=6).map(lambda s: (s[0], 4)))


def need(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f'{name} is not installed: pip install "parki[io]"')
    return importlib.import_module(name)


def table_of(kernel, n=12, dtype="f8"):
    rng = np.random.default_rng(8)
    strengths = rng.standard_normal((n, len(COLUMNS[kernel]) - 3))
    return np.hstack([rng.random((n, 3)) * BOX, strengths]).astype(dtype)


def arrays_of(kernel, table):
    """Return the arguments of the call that a table stands for."""
    found = {"src": table[:, :3].T, "dens": table[:, 3] if kernel == "laplace" else table[:, 3:9].T}
    return found | ({"normals": table[:, 9:].T} if kernel == "stokes_comb" else {})


def write_csv(path, names, table, quote=csv.QUOTE_MINIMAL):
    with path.open("w", newline="") as file:
        out = csv.writer(file, quoting=quote)
        out.writerow(names)
        out.writerows([[repr(float(value)) for value in row] for row in table])


def write(path, kernel, table):
    """Write a table of particles in the format of the path's suffix; return further options of the command."""
    arrays = arrays_of(kernel, table)
    if path.suffix == ".npz":
        np.savez(path, **arrays, box=np.array(BOX))
        return []
    if path.suffix in formats.HDF5:
        with need("h5py").File(path, "w") as file:
            file.update(arrays | {"box": np.array(BOX)})
        return []
    if path.suffix == ".csv":
        write_csv(path, COLUMNS[kernel], table)
    else:
        np.save(path, table)
    return ["--box", *map(str, BOX)]


def vtu(path):
    """Return the arrays of a .vtu file with raw appended data, by name."""
    head, _, tail = path.read_bytes().partition(b"<AppendedData")
    raw = tail[tail.index(b"_") + 1 :]
    types = {"Float32": "f4", "Float64": "f8", "Int32": "i4", "Int64": "i8", "UInt8": "u1"}
    found = {}
    for item in ElementTree.parse(io.BytesIO(head + b"</VTKFile>")).iter("DataArray"):
        at = int(item.get("offset"))
        size = int(np.frombuffer(raw, "u8", 1, at)[0])
        data = np.frombuffer(raw[at + 8 : at + 8 + size], types[item.get("type")])
        found[item.get("Name")] = data.reshape(-1, 3).T if item.get("NumberOfComponents") == "3" else data
    return found


def read(path):
    """Return the potential of a result, and the targets where the file has them."""
    if path.suffix in formats.HDF5:
        with need("h5py").File(path) as file:
            return file["potential"][()], None
    if path.suffix == ".csv":
        lines = path.read_text().splitlines()
        assert lines[0] in ("x,y,z,potential", "x,y,z,ux,uy,uz")
        width = len(lines[0].split(","))
        table = np.array([[float(text) for text in line.split(",")] for line in lines[1:]]).reshape(-1, width)
        return (table[:, 3] if width == 4 else table[:, 3:].T), table[:, :3].T
    if path.suffix == ".vtu":
        found = vtu(path)
        return found["potential"], found["points"]
    if path.suffix == ".npy":
        return np.load(path), None
    with np.load(path) as file:
        return file["potential"], None


@pytest.mark.parametrize("kernel", COLUMNS)
@pytest.mark.parametrize("suffix", formats.READ)
def test_every_input_is_the_call(suffix, kernel, tmp_path):
    """Check that the same particles in any format give the bits of the call in one thread."""
    table = table_of(kernel)
    source, result = tmp_path / f"in{suffix}", tmp_path / "out.npz"
    more = write(source, kernel, table)
    options = ["--tolerance", "1e-4", "--space", "Serial"]
    assert cli.main(["run", str(source), "--kernel", kernel, "-o", str(result), *options, *more]) == 0
    arrays = arrays_of(kernel, table)
    call = getattr(parki.ewald, kernel)
    expected = call(arrays["src"], box=BOX, tolerance=1e-4, execution_space="Serial", **arrays)
    with np.load(result) as file:
        np.testing.assert_array_equal(file["potential"], expected)
        assert file["box"].tolist() == list(BOX)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(9,), (3, 9), (0,), (3, 0)])
@pytest.mark.parametrize("suffix", formats.WRITTEN)
def test_every_output_reads_back(suffix, shape, dtype, tmp_path, rng):
    """Check that a result reads back bit for bit, under exactly the requested name, and that there is no other file."""
    if suffix in formats.LIBRARIES:
        need(formats.LIBRARIES[suffix])
    potential, trg = rng.standard_normal(shape).astype(dtype), rng.random((3, shape[-1])).astype(dtype)
    facts = {"kernel": "laplace", "rc": 0.25, "box": BOX, "grid_shape_ext": np.array([8, 12, 16])}
    if suffix == ".vtu" and not trg.size:
        with pytest.raises(ValueError, match=r"out\.vtu: there are no targets; expected at least one"):
            formats.save(tmp_path / "out.vtu", {"potential": potential}, trg, facts)
        assert list(tmp_path.iterdir()) == []
        return
    for spelled in (suffix, suffix.upper()):
        path = tmp_path / f"an out.2{spelled}"
        formats.check_output(path)
        formats.save(path, {"potential": potential}, trg, facts)
        assert list(tmp_path.iterdir()) == [path]
        path = path.rename(tmp_path / f"out{suffix}")
        found, points = read(path)
        assert found.reshape(shape).astype(dtype).tobytes() == potential.tobytes()
        assert points is None or points.astype(dtype).tobytes() == trg.tobytes()
        path.unlink()


def test_the_forms_of_one_result_agree(tmp_path, capsys):
    kernel = "stokes_sl"
    table = table_of(kernel)
    more = write(tmp_path / "in.csv", kernel, table)
    found = {}
    for suffix in formats.WRITTEN:
        path = tmp_path / f"out{suffix}"
        if suffix in formats.LIBRARIES and importlib.util.find_spec(formats.LIBRARIES[suffix]) is None:
            continue
        command = ["run", str(tmp_path / "in.csv"), "--kernel", kernel, "--tolerance", "1e-3", "--space", "Serial"]
        assert cli.main([*command, "-o", str(path), *more]) == 0
        assert "12 sources, 12 targets, tolerance 0.001: " in capsys.readouterr().out
        found[suffix], points = read(path)
        assert points is None or np.array_equal(points, table[:, :3].T)
    assert {".npz", ".npy", ".csv"} <= set(found)
    assert all(np.array_equal(potential, found[".npz"]) for potential in found.values())


def test_parameters_are_attributes_in_hdf5(tmp_path):
    need("h5py")
    more = write(tmp_path / "in.npz", "laplace", table_of("laplace"))
    command = ["run", str(tmp_path / "in.npz"), "--kernel", "laplace", "--tolerance", "1e-3", *more]
    for suffix in (".npz", ".h5"):
        assert cli.main([*command, "-o", str(tmp_path / f"out{suffix}")]) == 0
    with np.load(tmp_path / "out.npz") as file:
        facts = {name: file[name] for name in file.files if name != "potential"}
    with need("h5py").File(tmp_path / "out.h5") as file:
        assert list(file) == ["potential"]
        assert set(file.attrs) == set(facts)
        for name, value in facts.items():
            assert np.array_equal(file.attrs[name], value.item() if value.ndim == 0 else value)


@given(table=NUMBERS)
def test_csv_and_npz_tables_round_trip(table, tmp_path_factory):
    """Check any doubles, with NaN, infinities and −0: reading does not judge them."""
    folder = tmp_path_factory.mktemp("tables")
    write_csv(folder / "in.csv", COLUMNS["laplace"], table)
    np.savez(folder / "in.npz", src=table[:, :3].T, dens=table[:, 3], box=BOX)
    np.save(folder / "in.npy", table)
    for suffix, box in ((".csv", BOX), (".npz", None), (".npy", BOX)):
        found = formats.load(folder / f"in{suffix}", "laplace", box)
        np.testing.assert_array_equal(found["src"], table[:, :3].T)
        np.testing.assert_array_equal(
            np.signbit(found["dens"])[~np.isnan(table[:, 3])], np.signbit(table[:, 3])[~np.isnan(table[:, 3])]
        )
        np.testing.assert_array_equal(found["dens"], table[:, 3])
        assert tuple(found["box"]) == BOX


@given(
    values=hnp.arrays(
        st.sampled_from(["f4", "f8"]), st.tuples(st.just(4), st.integers(1, 6)), elements={"allow_subnormal": True}
    )
)
def test_a_csv_result_round_trips(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("results") / "out.csv"
    formats.save(path, {"potential": values[3]}, values[:3], {})
    potential, trg = read(path)
    np.testing.assert_array_equal(potential.astype(values.dtype), values[3])
    np.testing.assert_array_equal(trg.astype(values.dtype), values[:3])


def test_columns_may_come_in_any_order_with_others(tmp_path):
    """Check that case, blanks, quotes, comments, a byte-order mark and other columns make no difference."""
    path = tmp_path / "in.csv"
    path.write_text('\ufeff# id, Q ,"z",Y,x,note\n1,0.5,0.3,0.2,0.1,"a, b"\n\n# half-way\n2,-5e-1,"0.6",0.5,0.4,\n')
    found = formats.load(path, "laplace", BOX)
    assert found["src"].tolist() == [[0.1, 0.4], [0.2, 0.5], [0.3, 0.6]]
    assert found["dens"].tolist() == [0.5, -0.5]


def test_fields_of_a_structured_array(tmp_path):
    table = np.zeros(2, [("id", "i8"), ("q", "f4"), ("z", "f4"), ("y", "f4"), ("x", "f4")])
    table["q"], table["x"] = [1, -1], [0.25, 0.5]
    np.save(tmp_path / "in.npy", table)
    found = formats.load(tmp_path / "in.npy", "laplace", BOX)
    assert found["src"].dtype == found["dens"].dtype == np.float32
    assert found["src"].tolist() == [[0.25, 0.5], [0, 0], [0, 0]]
    assert found["dens"].tolist() == [1, -1]


def test_a_table_in_single_precision(tmp_path):
    np.save(tmp_path / "in.npy", table_of("laplace", dtype="f4"))
    command = ["run", str(tmp_path / "in.npy"), "--kernel", "laplace", "--tolerance", "1e-3", "--box", *map(str, BOX)]
    assert cli.main([*command, "-o", str(tmp_path / "out.npy")]) == 0
    assert np.load(tmp_path / "out.npy").dtype == np.float32
    assert cli.main([*command, "-o", str(tmp_path / "out.npy"), "--dtype", "float64"]) == 0
    assert np.load(tmp_path / "out.npy").dtype == np.float64


def test_groups_of_an_hdf5_file(tmp_path):
    """Check several inputs in one file and several results in another; a group is replaced, the others stay."""
    h5py = need("h5py")
    tables = {"day/one": table_of("laplace", 5), "day/two": table_of("laplace", 7)}
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name, table in tables.items():
            file.create_group(name).update(arrays_of("laplace", table) | {"box": np.array(BOX), "trg": table[:2, :3].T})
    out = tmp_path / "out.hdf5"
    for name, tolerance in (("day/one", "1e-3"), ("day/two", "1e-3"), ("day/one", "1e-5")):
        command = ["run", f"{tmp_path}/in.h5:/{name}", "--kernel", "laplace", "--tolerance", tolerance]
        assert cli.main([*command, "-o", f"{out}:/results/{name[4:]}"]) == 0
    with h5py.File(out) as file:
        assert set(file["results"]) == {"one", "two"}
        assert file["results/one"].attrs["tolerance"] == 1e-5
        table = tables["day/one"]
        found = file["results/one/potential"][()]
    expected = parki.ewald.laplace(table[:2, :3].T, **arrays_of("laplace", table), box=BOX, tolerance=1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def broken(folder):
    """Yield files that `load` refuses for stokes_sl, whether a box is given, and a pattern of the message."""
    table, names = table_of("stokes_sl"), COLUMNS["stokes_sl"]
    listed = "x, y, z, fx, fy, fz"

    def text(name, content):
        (folder / name).write_text(content)
        return folder / name

    def numbers(name, array):
        np.save(folder / name, array)
        return folder / name

    head = ",".join(names)
    yield text("no box.csv", head), False, r"no box\.csv has no box: .*expected --box LX LY LZ"
    yield text("empty.csv", ""), True, rf"empty\.csv has no column 'x' and .*expected {listed}, found none"
    yield (
        text("q.csv", "x,y,z,q\n"),
        True,
        rf"no column 'fx' and no 'fy' and no 'fz'; expected {listed}, found x, y, z, q",
    )
    yield text("twice.csv", f"{head},X\n"), True, r"several columns 'x'; expected one"
    yield (
        text("word.csv", f"{head}\n1,1,1,1,1,1\n\n1,1,1,1,two,1\n"),
        True,
        r"line 4, column fy: found 'two'; expected a",
    )
    yield text("short.csv", f"{head}\n1,1,1\n"), True, r"line 2, has 3 columns; expected 6"
    yield text("commas.csv", f"{head}\n0,5,0,5,0,5,0,5,0,5,0,5\n"), True, r"line 2, has 12 columns; expected 6"
    yield text("gap.csv", f"{head}\n1,1,,1,1,1\n"), True, r"column z: found ''; expected a number"
    (folder / "binary.csv").write_bytes(b"\xff\xfe\x00\x81")
    yield folder / "binary.csv", True, r"binary\.csv is not a \.csv file"
    yield numbers("no box.npy", table), False, r"no box\.npy has no box"
    yield (
        numbers("flat.npy", table.T),
        True,
        rf"holds an array \(6, 12\) of float64; expected a table \(N, 6\).*{listed}",
    )
    yield numbers("one.npy", table[0]), True, r"holds an array \(6,\) of float64"
    fields = np.zeros(3, [(name, "f8") for name in names[:-1]])
    yield numbers("fields.npy", fields), True, rf"no column 'fz'; expected {listed}, found x, y, z, fx, fy\."
    yield numbers("fields2.npy", fields[None]), True, r"holds an array \(1, 3\) of fields"
    yield text("text.npy", "no array"), True, r"text\.npy is not an \.npy file of plain numbers"
    yield text("empty.npy", ""), True, r"empty\.npy is not an \.npy file"
    np.savez(folder / "several.npz", src=table[:, :3].T, dens=table[:, 3:].T, box=BOX)
    (folder / "several.npy").write_bytes((folder / "several.npz").read_bytes())
    yield folder / "several.npy", True, r"several\.npy is not an \.npy file .*it holds several arrays"
    yield folder / "several.npz", True, r"has a box, \[1\.0, 1\.5, 2\.0\]; expected no --box"
    np.savez(folder / "boxless.npz", src=table[:, :3].T, dens=table[:, 3:].T)
    yield (
        folder / "boxless.npz",
        False,
        r"no array 'box'; expected src, dens, box \[, trg\], found src, dens\. .*--box LX LY LZ",
    )
    yield text("particles.xyz", head), True, r"not an \.npz file .*by their suffixes: \.npz, \.npy, \.csv, \.h5, \.hdf5"


def test_files_that_cannot_be_used(tmp_path):
    for path, boxed, said in broken(tmp_path):
        with pytest.raises(ValueError, match=said) as caught:
            formats.load(path, "stokes_sl", BOX if boxed else None)
        assert str(path) in str(caught.value)


def test_hdf5_files_that_cannot_be_used(tmp_path, capsys):
    h5py = need("h5py")
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["src"], file["day/dens"] = np.zeros((3, 2)), np.zeros(2)
    (tmp_path / "text.h5").write_text("no HDF5")
    cases = [
        (tmp_path / "none.h5", FileNotFoundError, r"No such file or directory: '.*none\.h5'"),
        (tmp_path / "text.h5", ValueError, r"text\.h5 is not an HDF5 file"),
        (path, ValueError, r"in\.h5 has no array 'dens' and no 'box'; expected src, dens, box \[, trg\], found src\."),
        (Path(f"{path}:/day"), ValueError, r"in\.h5:/day has no array 'src' and no 'box'; .* found dens\."),
        (Path(f"{path}:/night"), ValueError, r"in\.h5 has no group /night; found day"),
        (Path(f"{path}:src"), ValueError, r"in\.h5 has no group /src; found day"),
    ]
    for given_path, kind, said in cases:
        with pytest.raises(kind, match=said):
            formats.load(given_path, "laplace")
    arguments = ["run", f"{path}:/day", "--kernel", "laplace", "-o", f"{path}:/result"]
    assert cli.main(arguments) == 2
    assert "is the input too" in capsys.readouterr().err
    with pytest.raises(ValueError, match=r"/src is an array; expected the name of a group"):
        formats.check_output(Path(f"{path}:/src/result"))
    with pytest.raises(ValueError, match=r"text\.h5 is not an HDF5 file"):
        formats.check_output(tmp_path / "text.h5:/result")
    formats.check_output(tmp_path / "text.h5")  # a file that is written anew


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("out.vtk", r"has the suffix '\.vtk'; expected one of \.npz, \.npy, \.csv, \.h5, \.hdf5, \.vtu\."),
        ("none/out.csv", r"there is no folder .*none\."),
    ],
)
def test_outputs_are_refused_before_the_sum(name, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("parki.ewald.api.plan", lambda *_: pytest.fail("a sum was begun"))
    more = write(tmp_path / "in.csv", "laplace", table_of("laplace"))
    command = ["run", str(tmp_path / "in.csv"), "--kernel", "laplace", "-o", str(tmp_path / name), *more]
    assert cli.main(command) == 2
    err = capsys.readouterr().err
    assert re.search(said, err)
    assert err.count("\n") == 1


@pytest.mark.parametrize(("name", "library"), [("out.h5", "h5py"), ("out.hdf5:/a", "h5py"), ("out.vtu", "pyevtk")])
def test_a_missing_library_is_named_with_its_remedy(name, library, tmp_path, monkeypatch):
    for module in (library, f"{library}.hl"):
        monkeypatch.setitem(importlib.sys.modules, module, None)
    said = re.escape(f'{name} needs {library}, which is not installed: pip install "parki[io]"')
    with pytest.raises(ValueError, match=said):
        formats.check_output(tmp_path / name)
    if library == "h5py":
        with pytest.raises(ValueError, match=said):
            formats.load(tmp_path / name, "laplace")


def test_no_particles(tmp_path):
    """Check a table with only a header: no sources, no targets, an empty result."""
    (tmp_path / "in.csv").write_text("x,y,z,q\n")
    command = ["run", str(tmp_path / "in.csv"), "--kernel", "laplace", "--box", "1", "1", "1"]
    assert cli.main([*command, "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text() == "x,y,z,potential\n"


def test_a_bad_box_is_named(tmp_path, capsys):
    more = write(tmp_path / "in.csv", "laplace", table_of("laplace"))
    command = ["run", str(tmp_path / "in.csv"), "--kernel", "laplace", "-o", str(tmp_path / "out.csv")]
    assert cli.main([*command, *more[:3], "-2"]) == 2
    assert "box is" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*command, "--box", "1", "1"])
    assert "--box: found '1 1'; expected 3 side lengths" in capsys.readouterr().err
