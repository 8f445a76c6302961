"""Files of particles and of potentials: .npz, .npy, .csv, HDF5 and, written only, .vtu for ParaView.

A file of particles is named arrays, as the calls of `parki.ewald` take them (.npz, HDF5), or a table with one row for
each particle (.npy, .csv), whose columns `columns` lists.
"""

import array
import contextlib
import csv
import importlib
import operator
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from parki.app.words import is_number
from parki.arrays import Array
from parki.engine import writing
from parki.pairs import PAIRS, Pair
from parki.portions import Portion

READ = (".npz", ".npy", ".csv", ".h5", ".hdf5")
WRITTEN = (*READ, ".vtu")
HDF5 = (".h5", ".hdf5")
TABLES = (".npy", ".csv")
LIBRARIES = dict.fromkeys(HDF5, "h5py") | {".vtu": "pyevtk"}
FORCES, DIPOLES, DOUBLE, TORQUES = (tuple(f"{name}{axis}" for axis in "xyz") for name in "fdqt")
#: Columns of the densities of kernels of more than one component; others have ``q``.
DENSITIES = {
    "laplace_dipole": DIPOLES,
    "stokes_sl": FORCES,
    "stokes_dl": DOUBLE,
    "stokes_comb": FORCES + DOUBLE,
    "stokes_pressure": FORCES,
    "stokes_grad": FORCES,
    "stokes_dipole": tuple(f"d{i}{j}" for i in "xyz" for j in "xyz"),
    "rotlet": TORQUES,
    "regularised_stokeslet": FORCES,
    "regularised_dipole": DIPOLES,
    "rpy": FORCES,
    "rpy_rotation": FORCES + TORQUES,
}
#: Columns of potentials by their number; others are ``u1``, ``u2`` and so on.
RESULTS = {1: ("potential",), 3: ("ux", "uy", "uz"), 9: tuple(f"u{i}{j}" for i in "xyz" for j in "xyz")}
GRADIENTS = {3: ("gx", "gy", "gz"), 9: RESULTS[9]}
NAMES = ("potential", "gradient")  # names of results
DIGITS = {"float32": "%.9g", "float64": "%.17g"}  # formats whose texts read back to the same number


class DataLocation(NamedTuple):
    """A file, its suffix in small letters, and for HDF5 the group in it: ``file.h5:/group``."""

    file: Path
    suffix: str
    group: str = "/"


def place(path: Path) -> DataLocation:
    """Split the name of a group off the name of an HDF5 file."""
    if split := re.fullmatch(r"(.+\.(?:h5|hdf5)):(.*)", str(path), re.IGNORECASE | re.DOTALL):
        return DataLocation(Path(split[1]), Path(split[1]).suffix.lower(), f"/{split[2].strip('/')}")
    return DataLocation(path, path.suffix.lower())


def strengths(kernel: str | Pair) -> tuple[str, ...]:
    """Return the names of the arrays that a kernel takes for each source besides its position."""
    return ("dens", "normals") if _pair(kernel).normals else ("dens",)


def columns(kernel: str | Pair) -> dict[str, tuple[str, ...]]:
    """Return the columns of a table of particles by array, in their order."""
    pair = _pair(kernel)
    names = ("q",) if pair.dens == 1 else tuple(f"q{k}" for k in range(1, pair.dens + 1))
    result = {"src": ("x", "y", "z"), "dens": DENSITIES.get(pair.name, names)}
    return result | ({"normals": ("nx", "ny", "nz")} if pair.normals else {})


def _pair(kernel: str | Pair) -> Pair:
    return PAIRS[kernel] if isinstance(kernel, str) else kernel


def result_columns(name: str, a: Array) -> tuple[str, ...]:
    """Return the columns of a result ``(N,)`` or ``(components, N)``: of the ``potential`` or the ``gradient``."""
    n = 1 if a.ndim == 1 else len(a)
    table = RESULTS if name == "potential" else GRADIENTS
    return table.get(n) or tuple(f"{name[0] if name == 'gradient' else 'u'}{k}" for k in range(1, n + 1))


def load(
    path: Path, kernel: str | Pair, box: Sequence[Any] | None = None, boxed: bool = True, portion: Portion | None = None
) -> dict[str, Any]:
    """Read ``src``, ``dens``, ``box``, for double layers also ``normals``, and ``trg`` where it is there.

    Parameters
    ----------
    path : Path
        The suffix names the format; a name with another suffix than `READ` is taken for an .npz file.
    kernel : str or Pair
        A name of `parki.pairs.PAIRS`, or a pair.
    box : sequence of three floats or of three lattice vectors, optional
        Box of a file that has none.
    boxed : bool
        Whether there must be a box.
    portion : Portion, optional
        Particles to return, by default all.

    Raises
    ------
    ValueError
        Naming the file: if its format is not that of its suffix, it lacks arrays or columns, needs a missing library,
        or if the box is given twice or nowhere; in parts also if arrays do not fit each other.
    OSError
        If the file cannot be read.
    """
    location, portion = place(path), portion or Portion()
    if location.suffix in TABLES:
        if box is None and boxed:
            raise ValueError(f"{path} has no box: a table holds particles only; expected --box LX LY LZ beside it.")
        return (_npy if location.suffix == ".npy" else _csv)(path, kernel, portion) | {"box": box and tuple(box)}
    required = ("src", *strengths(kernel), *(("box",) if box is None and boxed else ()))
    names_read = ("src", *strengths(kernel), "box", "trg")
    names_found, arrays = (
        _hdf5(path, location, names_read, portion) if location.suffix in HDF5 else _npz(path, names_read, portion)
    )
    missing = [name for name in required if name not in names_found]
    if missing:
        raise ValueError(
            f"{path} has no array {' and no '.join(repr(name) for name in missing)}; expected "
            f"{', '.join(required)} [, trg], found {', '.join(names_found) or 'none'}."
            f"{' The box may be given as --box LX LY LZ.' if 'box' in missing else ''}"
        )
    portion.check(path)
    if box is not None and "box" in names_found:
        raise ValueError(f"{path} has a box, {arrays['box'].tolist()}; expected no --box beside it.")
    return {"box": None} | arrays if box is None else arrays | {"box": tuple(box)}


def check_output(path: Path) -> None:
    """Raise ValueError, before anything is computed, if `save` could not write, naming the file and the obstacle.

    A name without a suffix is that of an .npz file.
    """
    location = place(path)
    if location.suffix not in ("", *WRITTEN):
        raise ValueError(f"{path} has the suffix {location.suffix!r}; expected one of {', '.join(WRITTEN)}.")
    if not location.file.parent.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {location.file.parent}.")
    if location.suffix in LIBRARIES:
        library(path, location.suffix)
    if location.group != "/" and location.file.exists():
        h5py = _open_check(path, location)
        with h5py.File(location.file, "r") as file:
            parts = location.group.strip("/").split("/")
            for group in ("/".join(parts[: n + 1]) for n in range(len(parts))):
                if group in file and not isinstance(file[group], h5py.Group):
                    raise ValueError(
                        f"{path}: /{group} is an array; expected the name of a group, or one that is free."
                    )


def save(path: Path, results: Mapping[str, Array], trg: Array, facts: Mapping[str, Any]) -> None:
    """Write results to exactly this path, in the form that its suffix names.

    Parameters
    ----------
    path : Path
        .npz and names without a suffix: each result and each of the facts.  .npy: the result; of two results, the rows
        of the first above those of the second.  HDF5: one dataset per result, the facts as attributes of their group; a
        file is written anew, but in a named group only results are replaced.  .csv: a header, then ``x,y,z`` and
        `result_columns` of each target.  .vtu: targets with results as point data.
    results : mapping
        ``potential`` (N,), (3, N), (9, N) or of other components, ``gradient``, or both.
    trg : array (3, N)
    facts : mapping
        Texts, numbers and tuples or arrays of numbers.

    Raises
    ------
    ValueError
        For a .vtu file of no targets.
    OSError
        Naming the file, if it cannot be written; the old file stays.
    """
    location = place(path)
    if location.suffix == ".vtu" and not trg.size:
        raise ValueError(f"{path}: there are no targets; expected at least one in a .vtu file.")
    with writing.replacing(location.file, start=location.group != "/") as work:
        if location.suffix in HDF5:
            _save_hdf5(work, location, results, facts)
        elif location.suffix == ".csv":
            _save_csv(work, results, trg)
        elif location.suffix == ".vtu":
            _save_vtu(work, results, trg)
        else:
            with work.open("wb") as file:  # an open file, because NumPy appends its suffix to a name without it
                if location.suffix == ".npy":
                    np.save(file, stacked(results))
                else:
                    np.savez(file, **results, **{name: np.asarray(value) for name, value in facts.items()})


def stacked(results: Mapping[str, Array]) -> Array:
    """Return a single result unchanged, or the rows of several results in one array."""
    first, *rest = results.values()
    return np.vstack([first, *rest]) if rest else first


def _npz(path: Path, names: Sequence[str], portion: Portion) -> tuple[list[str], dict[str, Array]]:
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array without a name")
        with file:
            names_in_file = list(file.files)
            return names_in_file, {name: portion.columns(name, file[name]) for name in names if name in names_in_file}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        hint = "" if path.suffix.lower() == ".npz" else f" Other files are told by their suffixes: {', '.join(READ)}."
        raise ValueError(
            f"{path} is not an .npz file of plain arrays ({error}). Write one with numpy.savez.{hint}"
        ) from error


def _hdf5(
    path: Path, location: DataLocation, names: Sequence[str], portion: Portion
) -> tuple[list[str], dict[str, Array]]:
    h5py = _open_check(path, location)
    with h5py.File(location.file, "r") as file:
        group = file.get(location.group)
        if not isinstance(group, h5py.Group):
            groups = [name for name, item in file.items() if isinstance(item, h5py.Group)]
            raise ValueError(f"{location.file} has no group {location.group}; found {', '.join(groups) or 'none'}.")
        names_in_file = [name for name, item in group.items() if isinstance(item, h5py.Dataset)]
        try:
            return names_in_file, {name: portion.columns(name, group[name]) for name in names if name in names_in_file}
        except OSError as error:
            raise ValueError(f"{path} is damaged ({error}).") from error


def _npy(path: Path, kernel: str | Pair, portion: Portion) -> dict[str, Array]:
    names = [name for group in columns(kernel).values() for name in group]
    try:
        table = np.load(path, "r" if portion.size > 1 else None, allow_pickle=False)
        if not isinstance(table, np.ndarray):
            table.close()
            raise ValueError("it holds several arrays")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not an .npy file of plain numbers ({error}). Write one with numpy.save."
        ) from error
    if table.dtype.names is not None and table.ndim == 1:
        _check_names(path, names, table.dtype.names)
        table = portion.rows(table)
        return _arrays(kernel, {name: table[name] for name in names})
    if table.dtype.names is None and table.shape[1:] == (len(names),):
        return _arrays(kernel, dict(zip(names, portion.rows(table).T, strict=True)))
    raise ValueError(
        f"{path} holds an array {table.shape} of {'fields' if table.dtype.names else table.dtype}; expected a table "
        f"(N, {len(names)}) with the columns {', '.join(names)}, or (N,) with fields of these names."
    )


def _csv(path: Path, kernel: str | Pair, portion: Portion) -> dict[str, Array]:
    names = [name for group in columns(kernel).values() for name in group]
    values = array.array("d")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            header = [text.strip().lstrip("#").strip().lower() for text in next(rows, [])]
            _check_names(path, names, header)
            positions = [header.index(name) for name in names]
            pick = operator.itemgetter(*positions)
            for row in rows:
                if not row or row[0].lstrip().startswith("#"):
                    continue
                if len(row) != len(header):
                    raise ValueError(
                        f"{path}, line {rows.line_num}, has {len(row)} columns; expected {len(header)}, as its header."
                    )
                try:
                    values.extend(map(float, pick(row)))
                except ValueError:
                    name, text = next(
                        (n, row[k]) for n, k in zip(names, positions, strict=True) if not is_number(row[k])
                    )
                    raise ValueError(
                        f"{path}, line {rows.line_num}, column {name}: found {text!r}; expected a number."
                    ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a .csv file ({error}).") from error
    table = portion.rows(np.array(values).reshape(-1, len(names)))
    return _arrays(kernel, dict(zip(names, table.T, strict=True)))


def _check_names(path: Path, names: Sequence[str], header: Sequence[str]) -> None:
    """Raise unless each of `names` is among the columns that were found, and only once."""
    if missing := [name for name in names if name not in header]:
        raise ValueError(
            f"{path} has no column {' and no '.join(map(repr, missing))}; expected {', '.join(names)}, "
            f"found {', '.join(header) or 'none'}."
        )
    if repeats := [name for name in names if list(header).count(name) > 1]:
        raise ValueError(f"{path} has several columns {repeats[0]!r}; expected one.")


def _arrays(kernel: str | Pair, table: Mapping[str, Array]) -> dict[str, Array]:
    """Return the columns of a table as arrays ``(N,)`` for one component, else ``(components, N)``."""
    return {
        name: table[group[0]] if len(group) == 1 else np.stack([table[column] for column in group])
        for name, group in columns(kernel).items()
    }


@contextlib.contextmanager
def result_group(path: Path, location: DataLocation, facts: Mapping[str, Any], **keywords: Any) -> Iterator[Any]:
    """Yield the group of an HDF5 file that gets results: with the facts, and without old results.

    Parameters
    ----------
    path : Path
        The file that is written, which then takes the place `location`.
    location : DataLocation
    facts : mapping
    **how
        Keywords of h5py for opening the file.
    """
    with (
        full_disk(),
        library(path, location.suffix).File(path, "w" if location.group == "/" else "a", **keywords) as file,
    ):
        group = file.require_group(location.group)
        for name in NAMES:
            if name in group:
                del group[name]
        yield group
        group.attrs.update(facts)


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Turn errors of HDF5 on a full disk into errors of the system."""
    try:
        yield
    except RuntimeError as error:  # raised when a file is closed
        raise OSError(str(error)) from error


def _save_hdf5(path: Path, location: DataLocation, results: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
    with result_group(path, location, facts) as group:
        group.update(results)


def _save_csv(path: Path, results: Mapping[str, Array], trg: Array) -> None:
    names = ("x", "y", "z", *(column for name, a in results.items() for column in result_columns(name, a)))
    table = np.vstack([trg, *results.values()]).T
    np.savetxt(path, table, DIGITS[table.dtype.name], ",", header=",".join(names), comments="", encoding="utf-8")


def _save_vtu(path: Path, results: Mapping[str, Array], trg: Array) -> None:
    x, y, z = np.ascontiguousarray(trg)
    data: dict[str, Any] = {}
    for name, a in results.items():
        if a.ndim == 1:
            data[name] = a
        elif len(a) == 3:
            data[name] = tuple(np.ascontiguousarray(a))
        else:
            data |= dict(zip(result_columns(name, a), np.ascontiguousarray(a), strict=True))
    # pyevtk appends the suffix itself, in small letters.
    target = library(path, ".vtu").pointsToVTK(str(path)[:-4], x, y, z, data)
    if Path(target).name != path.name:
        Path(target).replace(path)


def library(path: Path, suffix: str) -> ModuleType:
    """Import the library that a suffix needs, or raise with the way to get it."""
    name = LIBRARIES[suffix]
    try:
        return importlib.import_module("pyevtk.hl" if name == "pyevtk" else name)
    except ImportError:
        raise ValueError(f'{path} needs {name}, which is not installed: pip install "parki[io]"') from None


def _open_check(path: Path, location: DataLocation) -> ModuleType:
    """Return h5py if the file is there, can be read and is an HDF5 file."""
    h5py = library(path, location.suffix)
    location.file.open("rb").close()  # its error is plainer than that of HDF5
    if not h5py.is_hdf5(location.file):
        raise ValueError(f"{location.file} is not an HDF5 file.")
    return h5py
