"""Compilation ahead of launches: all workunits that a driver is about to launch, in parallel."""

from collections.abc import Iterable, Mapping

from parki.engine import config
from parki.engine.compile import objects
from parki.engine.run import spaces
from parki.engine.run.spaces import Space
from parki.engine.workunit import Workunit, checking, load

Wanted = tuple[Workunit, dict[str, str], int | None]  # a workunit, layouts of its views, threads of a device's block


def compile_all(
    workunits: Iterable[Workunit], space: str | Space | None = None, threads: Mapping[Workunit, int] | None = None
) -> None:
    """Compile workunits that are not yet loaded, in parallel, for C-ordered views.

    Parameters
    ----------
    workunits : iterable of Workunit
        Workunits to compile; a launch with other layouts compiles its own.
    space : str or Space, optional
        The space that they will run in; None is the best host space.  For an engine other than parki's nothing is
        compiled ahead.
    threads : dict, optional
        Threads of a block on a device, for workunits that are launched with another number than the default.

    Raises
    ------
    BuildError
        There is no compiler, or the compiler failed.

    See Also
    --------
    compile_for : Compile for views of other layouts.
    prepare : Compile one workunit for its arguments.

    Examples
    --------
    >>> from parki import engine
    >>> units = [engine.kernel("cells", "gather_points", real=real) for real in ("double", "float")]
    >>> engine.compile_all(units, "Serial")
    >>> engine.object_path(units[0]).exists()
    True
    """
    blocks = threads or {}
    compile_for([(w, w.default_layouts(), blocks.get(w)) for w in workunits], spaces.get(space))


def compile_for(wanted: Iterable[Wanted], space: Space, on_host: Iterable[Workunit] = ()) -> None:
    """Compile workunits that are not yet loaded, in parallel, for views of given layouts.

    Parameters
    ----------
    wanted : iterable of (Workunit, dict, int or None)
        Workunits, layouts of their views, and threads of a block on a device.
    space : Space
        The space that they will run in.
    on_host : iterable of Workunit, optional
        Workunits that will run on the host for C-ordered views, whatever the space.

    Raises
    ------
    BuildError
        The compiler is missing, or failed.

    See Also
    --------
    compile_all : Compile for C-ordered views.

    Examples
    --------
    >>> from parki import engine
    >>> unit = engine.kernel("cells", "gather_points", real="double")
    >>> layouts = unit.default_layouts() | {"x": "F"}
    >>> engine.compile_for([(unit, layouts, None)], engine.RangePolicy("Serial", 0).space)
    """
    host_units = [(w, w.default_layouts(), None) for w in on_host]
    match space.kind if space.engine == config.NAME else "":
        case "host":
            wanted, host_units = [*wanted, *host_units], []
            _host(wanted)
        case "sim":
            from parki.engine.calls import sim

            sim.load_all(wanted)
        case "device":
            from parki.engine.calls import device

            device.load_all(wanted)
    if host_units and spaces.get("Serial").engine == config.NAME:
        _host(host_units)


def _host(requests: Iterable[Wanted]) -> None:
    units = {}
    for w, layouts, _ in requests:
        key = w.key(layouts, checking())
        if key not in w.objects:
            units[w, key] = w.unit(layouts, checking())
    paths = objects.build_many(unit for unit, _ in units.values())
    for (w, key), (_, lowered), path in zip(units, units.values(), paths, strict=True):
        w.objects[key] = load(path, lowered)
