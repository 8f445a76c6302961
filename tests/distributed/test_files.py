"""Files that simulated ranks read and write in parts: equal to those of one process, with errors on all ranks."""

import errno
from pathlib import Path

import numpy as np
import pytest

from parki import files, formats, portions
from parki.app.sums import FileSum
from parki.distributed.simulated import World
from parki.portions import Portion
from tests.distributed.shares import far
from tests.quick import but
from tests.test_files import BOX, arrays_of, need, read, table_of, write

ROWS = 10**11  # rows of files with holes: more than any memory holds


def summed(source, result, comm=None, kernel="laplace", **more):
    """Sum a file as `parki run` does, and return the texts that it prints."""
    box = BOX if source.suffix in formats.TABLES else None
    return files.run(source, result, FileSum(kernel, comm=comm, box=box, **{"tolerance": 1e-6} | more))


def facts(path):
    """Return the potential in a result, and all other contents, which must not depend on rounding."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            found = dict(file)
    elif path.suffix in formats.HDF5:
        with need("h5py").File(path) as file:
            found = dict(file.attrs) | {name: a[()] for name, a in file.items()}
    else:
        found = {"potential": read(path)[0]}
    potential = found.pop("potential")
    return potential, {name: np.asarray(a).tolist() for name, a in found.items()} | {"dtype": potential.dtype.str}


# Reading --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("ranks", [1, 3, 20])
@pytest.mark.parametrize("kernel", ["laplace", "stokes_comb"])
@pytest.mark.parametrize("suffix", formats.READ)
def test_parts_make_the_whole(suffix, kernel, ranks, tmp_path):
    path = tmp_path / f"in{suffix}"
    box = BOX if write(path, kernel, table_of(kernel)) else None
    whole = formats.load(path, kernel, box)
    found = [formats.load(path, kernel, box, portion=Portion(rank, ranks)) for rank in range(ranks)]
    for name in ("src", *formats.strengths(kernel)):
        joined = np.concatenate([own[name] for own in found], axis=-1)
        np.testing.assert_array_equal(joined, whole[name])
        assert joined.dtype == whole[name].dtype
        assert {own[name].shape[-1] for own in found} <= {12 // ranks, -(-12 // ranks)}
    assert all(np.array_equal(own["box"], BOX) for own in found)


@pytest.mark.parametrize("form", ["compressed", "columns", "fields", "none"])
def test_parts_of_other_layouts(form, tmp_path):
    table, path = table_of("laplace"), tmp_path / "in.npz"
    if form == "fields":
        path = tmp_path / "in.npy"
        np.save(path, np.array([tuple(row) for row in table[:, ::-1]], [(name, "f4") for name in "qzyx"]))
    elif form == "none":
        path = tmp_path / "in.npy"
        np.save(path, table[:0])
    elif form == "compressed":
        np.savez_compressed(path, **arrays_of("laplace", table), trg=table[:5, :3].T)
    else:
        np.savez(path, **{name: np.asfortranarray(a) for name, a in arrays_of("laplace", table).items()})
    whole = formats.load(path, "laplace", BOX)
    found = [formats.load(path, "laplace", BOX, portion=Portion(rank, 5)) for rank in range(5)]
    for name, a in whole.items():
        if name in portions.ALONG:
            joined = np.concatenate([own[name] for own in found], axis=-1)
            np.testing.assert_array_equal(joined, a)
            assert joined.dtype == a.dtype


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
def test_a_rank_reads_its_part_alone(suffix, tmp_path):
    """Read a part of a file that is larger than any memory, and nearly all zero."""
    path, rank, ranks = tmp_path / f"in{suffix}", 7, ROWS // 4
    try:
        if suffix == ".npy":
            table = np.lib.format.open_memmap(path, "w+", "f8", (ROWS, 4))
            table[4 * rank + 1, 3] = 5.0
            table.flush()
            del table
        else:
            with need("h5py").File(path, "w") as file:
                src = file.create_dataset("src", (3, ROWS), "f8", chunks=(3, 64))
                file.create_dataset("dens", (ROWS,), "f8", chunks=(64,))[4 * rank + 1] = 5.0
                src[0, 0] = 1.0
    except OSError as error:
        pytest.skip(f"no files with holes of this size: {error}")
    found = formats.load(path, "laplace", BOX, portion=Portion(rank, ranks))
    assert found["dens"].tolist() == [0, 5, 0, 0]
    assert found["src"].tolist() == [[0.0] * 4] * 3


# Results --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kernel", but("laplace", of=["laplace", "stokes_sl"]))
@pytest.mark.parametrize("suffix", formats.WRITTEN)
def test_ranks_write_the_file_of_one_process(suffix, kernel, tmp_path):
    if suffix in formats.LIBRARIES:
        need(formats.LIBRARIES[suffix])
    source, one, many = (tmp_path / name for name in ("in.npz", f"one{suffix}", f"many{suffix}"))
    table = table_of(kernel, 60)
    np.savez(source, **arrays_of(kernel, table), box=BOX, trg=table[:7, :3].T)
    said = summed(source, one, kernel=kernel)
    assert said[0].startswith(f"{kernel}: 60 sources, 7 targets, ")
    many.write_text("an old file")
    every = World(9, 1).run(lambda comm: summed(source, many, comm, kernel))  # some have no target
    for found in every:
        assert found[0].split(": ")[1] == said[0].split(": ")[1]
        assert found[1] == said[1]
        assert "busy: largest over mean" in found[2]
    expected, others = facts(one)
    potential, found = facts(many)
    assert potential.shape == expected.shape
    assert far(potential, expected) < 1e-12
    assert found == others
    if suffix == ".npy":
        assert many.read_bytes()[:128] == one.read_bytes()[:128]
    if suffix == ".vtu":
        np.testing.assert_array_equal(read(many)[1], read(one)[1])
    assert sorted(tmp_path.iterdir()) == sorted([source, one, many])


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".npz", ".csv"])
def test_ranks_without_any_particle(suffix, tmp_path):
    if suffix in formats.LIBRARIES:
        need(formats.LIBRARIES[suffix])
    source, result = tmp_path / "in.csv", tmp_path / f"out{suffix}"
    source.write_text("x,y,z,q\n")
    World(3).run(lambda comm: summed(source, result, comm))
    assert read(result)[0].shape == (0,)


def test_ranks_replace_one_group_of_a_file(tmp_path):
    h5py = need("h5py")
    source, out = tmp_path / "in.npz", tmp_path / "out.h5"
    write(source, "laplace", table_of("laplace"))
    with h5py.File(out, "w") as file:
        file["other/potential"], file["a/b/potential"], file["a/b/note"] = np.ones(3), np.ones(5), 7
    World(3).run(lambda comm: summed(source, Path(f"{out}:/a/b"), comm))
    summed(source, tmp_path / "one.npy")
    with h5py.File(out) as file:
        assert file["other/potential"][()].tolist() == [1, 1, 1]
        assert file["a/b/note"][()] == 7
        assert file["a/b"].attrs["kernel"] == "laplace"
        assert far(file["a/b/potential"][()], np.load(tmp_path / "one.npy")) < 1e-12


# Errors ---------------------------------------------------------------------------------------------------------------
def everyone(ranks, kind, match, source, result, **more):
    """Check that a sum fails on all ranks with one error; return its message and notes on each rank."""

    def work(comm):
        with pytest.raises(kind, match=match) as caught:
            summed(source(comm) if callable(source) else source, result, comm, **more)
        return str(caught.value), "".join(caught.value.__notes__)

    return World(ranks).run(work)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"src": np.zeros((12, 3))}, r"src has shape \(12, 3\); expected \(3, N\)"),
        ({"src": np.zeros(())}, r"src has shape \(\); expected \(3, N\)"),
        ({"trg": np.zeros(3)}, r"trg has shape \(3,\); expected \(3, N\)"),
        ({"dens": np.ones(11)}, r"dens has shape \(11,\); expected 12 values along the last axis"),
        ({"dens": np.ones(())}, r"dens has shape \(\); expected 12 values along the last axis"),
        ({"dens": np.ones((12, 1))}, r"dens has shape \(12, 1\); expected 12 values along the last axis"),
        ({"dens": np.ones((2, 2, 12))}, r"dens has shape \(2, 2, 4\)"),
        ({"dens": np.r_[np.ones(9), np.nan, 1, 1]}, r"dens has 1 of 4 values that are NaN .*dens\[1\] = nan"),
        ({"box": np.ones(2)}, "box is"),
        ({"dens": np.ones(12, complex)}, "dens has dtype complex128"),
    ],
)
def test_bad_arrays(change, said, tmp_path):
    source, result = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, **{"src": table_of("laplace")[:, :3].T, "dens": np.ones(12), "box": BOX} | change)
    told = everyone(3, ValueError, said, source, result)
    assert len(set(told)) == 1
    assert "raised on all ranks" in told[0][1]
    with pytest.raises(ValueError, match=r"trg|dens|box"):
        summed(source, result)
    assert not result.exists()


def test_files_that_are_not_those_of_other_ranks(tmp_path):
    a, b, out = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "out.npy"
    write(a, "laplace", table_of("laplace", 12))
    write(b, "laplace", table_of("laplace", 15))
    for second, kind, said in (
        (b, ValueError, r"the shape of src is \(3, 15\) on rank 1; expected \(3, 12\), as on rank 0"),
        (tmp_path / "c.npz", FileNotFoundError, "No such file or directory"),
        (out, FileNotFoundError, "No such file or directory"),
    ):
        told = everyone(3, kind, said, lambda comm, second=second: second if comm.rank == 1 else a, out)
        assert all("raised on all ranks" in notes for _, notes in told)
    everyone(2, ValueError, "is the input too", a, a)
    everyone(2, ValueError, "there is no folder", a, tmp_path / "none" / "out.npy")
    everyone(2, ValueError, "tolerance is 3", a, out, tolerance=3)
    assert not out.exists()


@pytest.mark.parametrize("suffix", [".npy", ".h5"])
@pytest.mark.parametrize("bad", [0, 1])
def test_a_disk_that_is_full_for_one_rank(bad, suffix, tmp_path, monkeypatch):
    """Keep the old file, leave no other, and raise the error on all ranks."""
    module = np.lib.format if suffix == ".npy" else need("h5py")
    name = "open_memmap" if suffix == ".npy" else "File"
    source, result, calls, real = tmp_path / "in.csv", tmp_path / f"out{suffix}", [], getattr(module, name)
    more = write(source, "laplace", table_of("laplace"))
    assert more
    result.write_text("an old file")

    def full(*given, **named):
        calls.append(given)
        if len(calls) == 1 + bad:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    monkeypatch.setattr(module, name, full)
    told = everyone(3, OSError, "No space left on device", source, result)
    assert f"{result} cannot be written: " in told[0][0]
    assert all(f"Found by rank {bad} of 3" in notes for _, notes in told)
    assert len(calls) == 1 + bad
    assert result.read_text() == "an old file"
    assert sorted(tmp_path.iterdir()) == sorted([source, result])


def test_what_only_the_first_rank_writes_fails_for_all(tmp_path):
    source, result = tmp_path / "in.csv", tmp_path / "out.vtu"
    need("pyevtk")
    source.write_text("x,y,z,q\n")
    everyone(3, ValueError, "there are no targets", source, result)
    assert list(tmp_path.iterdir()) == [source]
