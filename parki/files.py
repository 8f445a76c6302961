"""`parki run`: a sum over the particles of a file, and its result in another."""

import time
from pathlib import Path

from parki import formats, ranks
from parki.app.sums import FileSum
from parki.arrays import Array
from parki.portions import Portion
from parki.progress import Progress


def run(
    source: Path, result: Path, question: FileSum, dtype: str | None = None, progress: Progress | None = None
) -> list[str]:
    """Sum over the particles of one file into another; return the lines of a report, the main line first.

    Parameters
    ----------
    source : Path
        File with ``src``, ``dens``, in boxes ``box``, for double layers also ``normals``; without ``trg`` the targets
        are the sources.  See `parki.formats.load`.
    result : Path
        File that gets ``potential``, ``gradient`` or both and, where its format has a place for them, the parameters.
        See `parki.formats.save`.
    question : FileSum
        With ``comm`` all ranks make this call, each reads its part of the particles and writes that of the result, and
        the last line of the report is on all ranks.
    dtype : {"float32", "float64"}, optional
        Convert the arrays first.
    progress : Progress, optional
        Display of the step in progress.

    Raises
    ------
    ValueError, OSError
        For arguments, files and arrays that do not fit, by name; over ranks on all of them.
    """
    comm = ranks.of(question.comm) if ranks.several(question.comm) else None
    portion = Portion.of(comm)
    with progress or Progress(None) as show:
        show("reading")
        with ranks.together(comm, "reading") as check:
            _check_apart(source, result)
            question.check()
            pair = question.pair()
            contents = formats.load(source, pair, question.box, question.boxed, portion)
            question.check_file(source, contents, portion)
            make_plan = question.prepare(contents.pop("box"))
            formats.check_output(result)
            if dtype is not None:
                contents = {name: _converted(name, array, dtype) for name, array in contents.items()}
            if check is not None:
                check.same = {f"the shape of {name}": shape for name, shape in portion.shapes.items()}
        src, trg = contents["src"], contents.get("trg", contents["src"])
        start = time.perf_counter()
        show("preparing")
        plan = make_plan(trg, src)
        show.titles |= plan.walltime.phases
        plan.walltime.watch = show
        sums = question.results(plan(*(contents[name] for name in formats.strengths(pair))))
        seconds = time.perf_counter() - start
        show("writing")
        if comm is None:
            formats.save(result, sums, trg, question.facts(plan))
        else:
            from parki import assembly

            assembly.save(question.comm, result, sums, trg, question.facts(plan))
    n_sources, n_targets = (ranks.total(comm, a.shape[-1]) for a in (src, trg))
    accuracy = "" if question.method == "direct" else f", tolerance {question.given_tolerance:g}"
    return [
        f"{question.name}: {n_sources} sources, {n_targets} targets{accuracy}: {seconds:.3g} s, "
        f"{' and '.join(sums)} → {result}",
        str(plan.method.report(plan.parameters)),
        plan.walltime.table() if comm is None else plan.walltime.summary(),
    ]


def _check_apart(source: Path, result: Path) -> None:
    """Raise ValueError where the file of the result is the input."""
    target = formats.place(result).file
    if target.exists() and target.samefile(formats.place(source).file):
        raise ValueError(f"{result} is the input too; expected another file for the result.")


def _converted(name: str, array: Array, dtype: str) -> Array:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers that convert to {dtype}.")
    return array.astype(dtype)
