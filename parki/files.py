"""`parki run`: particles from, and their potential to, NumPy's .npz files."""

import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parki.arrays import Array
from parki.ewald import api
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params

FACTS = ("rc", "kmax", "c", "split", "window_P", "grid_shape_ext", "h")


def run(source: Path, result: Path, kernel: str, dtype: str | None, wanted: Mapping[str, Any]) -> list[str]:
    """Sum over the particles of one file into another; return what to say about it, the main line first.

    Parameters
    ----------
    source : Path
        File with ``src``, ``dens``, ``box``, for ``stokes_comb`` also ``normals``; without ``trg`` the targets are the
        sources.
    result : Path
        File that gets ``potential`` and the parameters.
    kernel : {"laplace", "stokes_sl", "stokes_comb"}
    dtype : {"float32", "float64"}, optional
        Convert the arrays first.
    wanted : mapping
        Options of `parki.ewald.EwaldOptions` but the box.

    Raises
    ------
    ValueError
        For files and arrays that do not fit, by name.
    """
    if result.exists() and result.samefile(source):
        raise ValueError(f"{result} is the input too; expected another file for the result.")
    strengths = ("dens", "normals") if kernel == "stokes_comb" else ("dens",)
    found = load(source, ("src", *strengths, "box"), ("trg",))
    options = EwaldOptions.resolve(box=found.pop("box"), **wanted)
    if dtype is not None:
        found = {name: _converted(name, array, dtype) for name, array in found.items()}
    src, trg = found["src"], found.get("trg", found["src"])
    began = time.perf_counter()
    plan = api.plan(kernel, trg, src, options)
    potential = plan(*(found[name] for name in strengths))
    spent = time.perf_counter() - began
    params = Params(plan.parameters)
    facts = {"kernel": kernel, "tolerance": options.tolerance, "box": options.box}
    save(result, potential, facts | {name: getattr(params, name) for name in FACTS})
    return [
        f"{kernel}: {src.shape[-1]} sources, {trg.shape[-1]} targets, tolerance {options.tolerance:g}: {spent:.3g} s, "
        f"potential → {result}",
        str(params),
        plan.walltime.table(),
    ]


def load(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Array]:
    """Read arrays from an .npz file.

    Raises
    ------
    ValueError
        If the file is no .npz file, or if a needed array is missing: its name, and what was found.
    OSError
        If the file cannot be read.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds a single array without a name")
        with file:
            found = list(file.files)
            arrays = {name: file[name] for name in (*needed, *optional) if name in found}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not an .npz file of plain arrays ({error}). Write one with numpy.savez."
        ) from error
    missing = [name for name in needed if name not in found]
    if missing:
        raise ValueError(
            f"{path} has no array {' and no '.join(repr(name) for name in missing)}; expected "
            f"{', '.join(needed)}{''.join(f' [, {name}]' for name in optional)}, found {', '.join(found) or 'none'}."
        )
    return arrays


def save(path: Path, potential: Array, facts: Mapping[str, Any]) -> None:
    """Write ``potential`` and the facts of its computation, each an array of its own, to exactly this path."""
    with path.open("wb") as file:  # an open file, because numpy.savez appends .npz to a name without it
        np.savez(file, potential=potential, **{name: np.asarray(value) for name, value in facts.items()})


def _converted(name: str, array: Array, dtype: str) -> Array:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers that convert to {dtype}.")
    return array.astype(dtype)
