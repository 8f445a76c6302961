"""Make the calls of a case, by names that earlier commits know: results, warnings and exceptions, in order."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import parki
from tests.house.cases import THREADS, Case
from tests.house.inputs import Inputs

RHS = 3  # right-hand sides of a case with several
Steps = Iterator[tuple[str, Callable[[], Any]]]


def results(case: Case) -> list[tuple[str, Any]]:
    """Return labels with arrays, or with texts of exceptions and warnings, which are results, too."""
    made: list[tuple[str, Any]] = []
    steps = pieces(case) if case.method == "pieces" else once(case) if case.way == "once" else of_plan(case)
    for label, step in steps:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                values = step()
            except Exception as error:
                made.append((label, f"{type(error).__name__}: {error}"))
                return made
            finally:
                made += [(f"{label} warning", f"{w.category.__name__}: {w.message}") for w in said]
        parts = values if isinstance(values, tuple) else (values,)
        made += [(f"{label} {i}" if i else label, _kept(part)) for i, part in enumerate(parts) if part is not None]
    return made


def _kept(value: Any) -> Any:
    """Return a copy of an array, which later steps do not change; other values themselves."""
    return value.copy() if isinstance(value, np.ndarray) else value


def place(case: Case) -> dict[str, Any]:
    """Return the options that set the space and threads of a case."""
    return {"execution_space": case.space} | ({"threads": THREADS[case.space]} if case.space in THREADS else {})


def once(case: Case) -> Steps:
    """Yield the step of the one-shot call."""
    given = Inputs(case)
    points, density, normals = given.points(), given.density(), given.normals()
    options = place(case) | case.options
    if case.method == "ewald":
        function = getattr(parki.ewald, case.kernel)
        yield "once", lambda: function(*points, density, *normals, *given.parameters().values(), **options)
        return
    options |= given.parameters()
    if case.method == "direct":
        yield "once", lambda: parki.direct.direct_sum(case.kernel, *points, density, *normals, **options)
        return
    options |= {"normals": normals[0]} if normals else {}
    options |= {"variant": case.method} if case.method in ("pc", "cp") else {}
    room = parki.fmm if case.method in ("kifmm", "chebyshev") else parki.treecode
    function = getattr(room, "bltc" if case.method in ("pc", "cp") else case.method)
    yield "once", lambda: function(*points, density, case.kernel, **options)


def plan(case: Case, given: Inputs, points: tuple[np.ndarray, np.ndarray]) -> Any:
    """Return the plan of a case for these targets and sources."""
    options = place(case) | case.options | given.parameters()
    if case.method == "ewald":
        return parki.ewald.plan(case.kernel, *points, **options)
    method = {"bldtt": "dual"}.get(case.method, case.method)
    room = parki.fmm if method in ("kifmm", "chebyshev") else parki.treecode
    return room.plan(case.kernel, *points, method=method, **options)


def move(plan: Any, targets: np.ndarray, sources: np.ndarray) -> None:
    """Move a plan's points, by the names that its method has: a positional pair means different things in each."""
    names = inspect.signature(plan.move).parameters
    if targets is sources and "points" in names:
        plan.move(sources)
    elif "sources" in names:
        plan.move(targets=targets, sources=sources)
    else:
        plan.move(src=sources, **({} if targets is sources else {"trg": targets}))


def of_plan(case: Case) -> Steps:
    """Yield the steps that make a plan and call it."""
    given = Inputs(case)
    points, densities, normals, later = given.points(), (given.density(), given.density()), given.normals(), None
    made: list[Any] = []
    yield "plan", lambda: made.append(plan(case, given, points))
    if case.way == "operator":
        names = inspect.signature(made[0].operator).parameters
        keywords = {"normals": normals[0]} if normals and "normals" in names else {}
        yield "operator", lambda: made[0].operator(**keywords) @ densities[0].reshape(-1)
        return
    if case.way == "rhs":
        several = given.density(RHS)
        yield "several", lambda: made[0](several, *normals)
    yield "call", lambda: made[0](densities[0], *normals)
    later = given.points()
    yield "move", lambda: move(made[0], *later)
    yield "call after a move", lambda: made[0](densities[1], *normals)
    if case.way == "rhs":
        yield "several after a move", lambda: made[0](several, *normals)
    else:
        result = np.empty_like(made[0](densities[0], *normals)) if case.options.get("gradient") is not True else None
        yield "call into an array", lambda: made[0](densities[0], *normals, out=result)


def pieces(case: Case) -> Steps:
    """Yield the steps that call small public functions."""
    given = Inputs(case)
    x = given.points()[1]
    match case.kernel:
        case "wrap":
            yield "wrap", lambda: parki.utils.wrap(3 * x - 1, (1.0, 0.7, 1.3))
            yield "wrap nd", lambda: parki.utils.wrap(np.ascontiguousarray(x.T) - 4, (1.0, 0.7, 1.3), "nd")
            yield "dtype", lambda: str(parki.utils.get_dtype(case.dtype))
            yield "round_up", lambda: np.array([parki.utils.round_up(n, 32) for n in range(100)])
        case "cell_list":
            keywords = {"execution_space": case.space, "forces": given.density()} | case.options
            yield "cell_list", lambda: _lists(parki.CellList(x, 0.2, (1.0, 1.0, 1.0), **keywords))
        case "samples":
            for name in ("uniform", "gaussian", "plummer", "box", "sphere", "charges"):
                yield name, lambda name=name: getattr(parki.samples, name)(case.n, 3)


def _lists(cells: Any) -> tuple[np.ndarray, ...]:
    names = ("nonempty_cells", "nonempty_cell_index", "counter", "particle_index", "particle_list", "force_list",
             "nonempty_neighbors")  # fmt: skip
    return (*(getattr(cells, name) for name in names), np.array(cells.cell_grid_shape))
