"""`parki run`: a sum over the particles of a file, and its potential in another."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from parki import formats, ranks
from parki.arguments import PUBLISHED
from parki.arrays import Array
from parki.ewald import api, kernels
from parki.ewald.method import Ewald
from parki.ewald.options import EwaldOptions
from parki.ewald.report import Params
from parki.plan import make
from parki.portions import Portion
from parki.progress import Progress

FACTS = ("rc", "kmax", "c", "split", "window_P", "grid_shape_ext", "h")


def run(
    source: Path,
    result: Path,
    kernel: str,
    dtype: str | None,
    wanted: Mapping[str, Any],
    box: Sequence[float] | None = None,
    progress: Progress | None = None,
    kappa: float | None = None,
) -> list[str]:
    """Sum over the particles of one file into another; return what to say about it, the main line first.

    Parameters
    ----------
    source : Path
        File with ``src``, ``dens``, ``box``, for double layers also ``normals``; without ``trg`` the targets are the
        sources.  See `parki.formats.load`.
    result : Path
        File that gets ``potential`` and, where its format has a place for them, the parameters.  See
        `parki.formats.save`.
    kernel : str
        A kernel's name.
    dtype : {"float32", "float64"}, optional
        Convert the arrays first.
    wanted : mapping
        Options of `parki.ewald.EwaldOptions` but the box.  With ``comm`` all ranks make this call, each reads its
        part of the particles and writes that of the potential, and the last of what is said is on all ranks.
    box : sequence of three floats, optional
        For files without one.
    progress : Progress, optional
        Shows what is being done.
    kappa : float, optional
        For ``yukawa``.

    Raises
    ------
    ValueError, OSError
        For files and arrays that do not fit, by name; over ranks on all of them.
    """
    comm = ranks.of(wanted["comm"]) if ranks.several(wanted.get("comm")) else None
    portion = Portion.of(comm)
    with progress or Progress(None) as showing:
        showing("reading")
        with ranks.together(comm, "reading") as check:
            _check_apart(source, result)
            found = formats.load(source, kernel, box, wanted.get("periodicity") != 0, portion)
            # On a GPU, phases are timed only if asked for.
            options = EwaldOptions.resolve(box=found.pop("box"), return_walltime=True, **wanted)
            formats.check_output(result)
            if dtype is not None:
                found = {name: _converted(name, array, dtype) for name, array in found.items()}
            method = Ewald(kernels.find(kernel, kappa=kappa), options, names=PUBLISHED)
            if check is not None:
                check.same = {f"the shape of {name}": shape for name, shape in portion.shapes.items()}
        src, trg = found["src"], found.get("trg", found["src"])
        began = time.perf_counter()
        showing("preparing")
        plan = make(api.over(method), trg, src)
        plan.walltime.watch = showing
        potential = plan(*(found[name] for name in formats.strengths(kernel)))
        spent = time.perf_counter() - began
        params = Params(plan.parameters)
        facts = {"kernel": kernel, "tolerance": options.tolerance, "box": plan.parameters.box}
        facts |= {name: getattr(params, name) for name in FACTS}
        showing("writing")
        if comm is None:
            formats.save(result, potential, trg, facts)
        else:
            from parki import assembly

            assembly.save(options.comm, result, potential, trg, facts)
    n_sources, n_targets = (ranks.total(comm, a.shape[-1]) for a in (src, trg))
    return [
        f"{kernel}: {n_sources} sources, {n_targets} targets, tolerance {options.tolerance:g}: {spent:.3g} s, "
        f"potential → {result}",
        str(params),
        plan.walltime.table() if comm is None else plan.walltime.summary(),
    ]


def _check_apart(source: Path, result: Path) -> None:
    """Raise ValueError where the file of the result is the input."""
    written = formats.place(result).file
    if written.exists() and written.samefile(formats.place(source).file):
        raise ValueError(f"{result} is the input too; expected another file for the result.")


def _converted(name: str, array: Array, dtype: str) -> Array:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers that convert to {dtype}.")
    return array.astype(dtype)
