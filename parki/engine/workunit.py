"""A workunit with its slots filled: its L0 text, its typed and checked tree, and its compiled forms."""

import ctypes
import os
import platform
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from parki.engine import config, settled
from parki.engine.compile import jobs, loading, objects, translations
from parki.engine.compile.compiler import target, toolchains
from parki.engine.errors import BuildError
from parki.engine.lower import gpu, host
from parki.engine.lower.common import FIELD, Lowered
from parki.engine.lower.jam import jam
from parki.engine.lower.neighbours import neighbour_views
from parki.engine.settled import once
from parki.engine.text import functions
from parki.engine.text.specialise import L0, specialise
from parki.engine.tree import ir
from parki.engine.tree.check import check
from parki.engine.tree.parse import parse
from parki.engine.tree.small import small_views
from parki.engine.tree.walk import walk

# Compiler options by hint, and the hints that GPUs know, by the function that they are about.
GPU_HINTS = {
    "rsqrt": ("finite_rsqrt",),
    "exp": ("rounded_exp", "short_exp", "shorter_exp", "shortest_exp"),
}
HINTS = {
    "finite_rsqrt": ("-DPK_RSQRT_FINITE",),
    "ordinary_rsqrt": ("-DPK_RSQRT_ORDINARY",),
    "bounded_rsqrt": ("-DPK_RSQRT_BOUNDED",),
    "short_rsqrt": ("-DPK_RSQRT_SHORT",),
    "shorter_rsqrt": ("-DPK_RSQRT_SHORTER",),
    "brief_rsqrt": ("-DPK_RSQRT_BRIEF",),
    "shortest_rsqrt": ("-DPK_RSQRT_SHORTEST",),
    "rounded_exp": ("-DPK_EXP_ROUNDED",),
    "short_exp": ("-DPK_EXP_SHORT",),
    "shorter_exp": ("-DPK_EXP_SHORTER",),
    "shortest_exp": ("-DPK_EXP_SHORTEST",),
    "long_blocks": ("-fschedule-insns",),
    "open_lists": ("-DPK_OPEN_LISTS",),
}
JAM = {f"jam_{turns}": turns for turns in range(2, 9)}  # turns of loops at once, by hint
RESIDENT = "resident_512"
T = TypeVar("T")
PLAIN = (str, int, float, np.dtype)  # types of slots that are compared by their values
LANES = {f"lanes_{1 << power}": 1 << power for power in range(6)}  # lanes of a GPU's rows, by hint


SANITIZERS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@once
def checking() -> bool:
    """Tell whether launches use checked builds: ``PARKI_DEBUG`` holds ``1`` (or ``check``)."""
    return _debugging("1", "check")


@once
def sanitizing() -> bool:
    """Tell whether host kernels are built with sanitizers (addresses, undefined behaviour): ``PARKI_DEBUG=asan``."""
    return _debugging("asan")


def _sanitizers() -> tuple[str, ...]:
    """Return the compiler options for sanitizers; none where sanitizers are not asked for.

    Raises
    ------
    BuildError
        If the sanitizers' runtime was not loaded with the process: loading an object would end the process.
    """
    if not sanitizing():
        return ()
    compiler = toolchains()[0][0]
    if not hasattr(ctypes.CDLL(None), "__asan_init"):
        runtime = "libasan.so" if compiler.kind == "g++" else f"libclang_rt.asan-{platform.machine()}.so"
        raise BuildError(
            f"{config.DEBUG}=asan: the sanitizers' runtime is not loaded; expected a process begun as ASAN_OPTIONS="
            f"detect_leaks=0 LD_PRELOAD=$({compiler.path} -print-file-name={runtime}) python …"
        )
    return SANITIZERS if compiler.kind == "g++" else (*SANITIZERS, "-shared-libsan")


def _debugging(*words: str) -> bool:
    """Tell whether ``PARKI_DEBUG``, a list separated by commas, holds one of `words`."""
    return not set(words).isdisjoint(os.environ.get(config.DEBUG, "").split(","))


@dataclass(frozen=True)
class Compiled:
    """Compiled object of a workunit: its entry point, its argument structure, and the places a checked build reports.

    `pause` pauses the OpenMP runtime that the object is linked to; None without OpenMP or without such a function.
    """

    run: ctypes._CFuncPtr
    struct: type[ctypes.Structure]
    lowered: Lowered
    path: Path
    pause: ctypes._CFuncPtr | None = None


class Workunit:
    """Hold one specialisation of a workunit, made by `kernel` and launched by `parallel_for` or `prepare`.

    Parameters
    ----------
    l0 : L0
        The specialised text.
    hints : tuple of str, optional
        Facts about it, as `kernel` takes them.

    See Also
    --------
    kernel : Make a workunit from a kernel's file.
    operations : Count the operations of a workunit.

    Examples
    --------
    >>> from parki import engine
    >>> engine.kernel("cells", "gather_points", real="double").label
    'gather_points (double)'
    """

    def __init__(self, l0: L0, hints: tuple[str, ...] = ()) -> None:
        self.l0, self.hints = l0, hints
        self._identity = jobs.digest((l0.text, repr(l0.linemap)))
        self.ir: ir.KernelTree = self._kept(self._checked, "tree")
        self.objects: dict[tuple, Any] = {}  # compiled objects, by the properties that each was compiled for
        self._gpu: dict[tuple, Lowered] = {}

    def __repr__(self) -> str:
        slots = ", ".join(f"{k}={v}" for k, v in self.l0.slots)
        return f"<workunit {self.l0.name}({slots})>"

    def _checked(self) -> ir.KernelTree:
        """Return the tree of the text, checked."""
        tree = parse(self.l0.text, self.l0.linemap, self.l0.filename)
        check(tree)
        return tree

    @property
    def label(self) -> str:
        """Return the workunit's name and the values of its slots, for people."""
        slots = ", ".join(v for _, v in self.l0.slots)
        return f"{self.l0.name} ({slots})" if slots else self.l0.name

    @cached_property
    def params(self) -> dict[str, ir.Param]:
        """Return the parameters by name."""
        return {p.name: p for p in self.ir.params}

    @cached_property
    def views(self) -> tuple[ir.Param, ...]:
        """Return the parameters that are arrays."""
        return tuple(p for p in self.ir.params if p.rank)

    @cached_property
    def numbers(self) -> tuple[ir.Param, ...]:
        """Return the parameters that are numbers."""
        return tuple(p for p in self.ir.params if not p.rank)

    @cached_property
    def _jammed(self) -> ir.KernelTree:
        """Return the tree with loops of several turns at once, as the hints ask for."""
        return jam(self.ir, self._turns)

    @property
    def _turns(self) -> int:
        """Return the turns of loops at once that the hints ask for."""
        return max((JAM[hint] for hint in self.hints if hint in JAM), default=1)

    def _kept(self, make: Callable[[], T], *purpose: str) -> T:
        """Return the result of `make`, which depends on the text and the turns of loops, from the cache if there."""
        return translations.kept(make, *purpose, str(self._turns), self._identity)

    @cached_property
    def small(self) -> dict[str, int]:
        """Return the elements that the workunit reads of each view that a GPU can take by value."""
        return self._kept(lambda: small_views(self.ir), "small")

    @cached_property
    def neighbours(self) -> frozenset[str]:
        """Return the views that a GPU reads two elements at once, where rows begin at even elements of memory."""
        return self._kept(lambda: neighbour_views(self._jammed), "neighbours")

    def default_layouts(self) -> dict[str, str]:
        """Return C-ordered layouts of all views.

        Returns
        -------
        dict
            ``"C"`` by the name of each view.
        """
        return {p.name: "C" for p in self.views}

    def unit(self, layouts: dict[str, str], checked: bool, flags: tuple[str, ...] = ()) -> tuple[objects.Unit, Lowered]:
        """Return the unit to compile for these layouts; ``PARKI_DEBUG=source`` shows its text and its kernel's."""
        lowered = self._kept(
            lambda: host.lower(self.ir if checked else self._jammed, layouts, checked), f"host {checked}", repr(layouts)
        )
        unit = objects.Unit(
            name=f"{self.l0.name}_{self.l0.hash}",
            label=self.label,
            source=lowered.source,
            headers=host.HEADERS,
            target=target(),
            flags=(*(flag for hint in self.hints for flag in HINTS.get(hint, ())), *flags, *_sanitizers()),
            l0=self.l0.text,
        )
        if _debugging("source"):
            self._show(lowered)
        return unit, lowered

    def gpu(self, layouts: dict[str, str]) -> Lowered:
        """Return the GPU text for these layouts; ``PARKI_DEBUG=source`` shows this text and its kernel's."""
        key = tuple(layouts.values())
        if key not in self._gpu:
            self._gpu[key] = self._kept(lambda: gpu.lower(self._jammed, layouts, self.small), "gpu", repr(layouts))
            if _debugging("source"):
                self._show(self._gpu[key])
        return self._gpu[key]

    @cached_property
    def gpu_macros(self) -> tuple[str, ...]:
        """Return the compiler options of a GPU that the hints ask for, on functions that the workunit calls."""
        bodies = (self.ir.body, *(f.body for f in self.ir.functions))
        names = {node.name for body in bodies for node in walk(body) if isinstance(node, ir.Math)}
        hints = {hint for name in names for hint in GPU_HINTS.get(name, ())}
        rows = () if self.lanes is None else (f"-DPK_ROW={self.lanes}",)
        rows += ("-DPK_RESIDENT=512",) if RESIDENT in self.hints else ()
        return (*(flag for hint in self.hints if hint in hints for flag in HINTS[hint]), *rows)

    @property
    def lanes(self) -> int | None:
        """Return the lanes of a GPU's rows for which the workunit is compiled; None for any."""
        return next((LANES[hint] for hint in self.hints if hint in LANES), None)

    def _show(self, lowered: Lowered) -> None:
        sys.stderr.write(f"# {self.l0.filename}\n{self.l0.text}\n// {self.label}\n{lowered.source}\n")

    def key(self, layouts: dict[str, str], checked: bool, flags: tuple[str, ...] = ()) -> tuple:
        """Return the key of one compiled object: layouts, checks, flags, target and sanitizers."""
        return (tuple(layouts.values()), checked, flags, target(), sanitizing())

    def compiled(self, layouts: dict[str, str], checked: bool, flags: tuple[str, ...] = ()) -> Compiled:
        """Return the compiled object for these layouts, built on first use."""
        key = self.key(layouts, checked, flags)
        if key not in self.objects:
            unit, lowered = self.unit(layouts, checked, flags)
            self.objects[key] = load(objects.build(unit), lowered)
        return self.objects[key]


def load(path: Path, lowered: Lowered, entry: str = "pk_run") -> Compiled:
    """Load one workunit's entry point from the shared object at `path`."""
    library = loading.load(path, keep=sanitizing())
    try:
        run = library[entry]
    except AttributeError:
        loading.unusable(path, f"it has no {entry}")
    run.argtypes, run.restype = [ctypes.c_void_p], None
    fields = [(name, FIELD[kind]) for kind, name in lowered.fields]
    struct = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
    return Compiled(run, struct, lowered, path, getattr(library, "omp_pause_resource_all", None))


@lru_cache(maxsize=512)
def _of(l0: L0, hints: tuple[str, ...]) -> Workunit:
    return Workunit(l0, hints)


def kernel(source: str | os.PathLike, workunit: str, *, hints: Iterable[str] = (), **slots: object) -> Workunit:
    """Specialise, parse and check one workunit; nothing is compiled yet.

    Parameters
    ----------
    source : str or path
        Name of a kernel file of parki (``"p2p"``, ``"pair/laplace"``), or the path of a file of your own.
    workunit : str
        Name of the ``@pk.workunit`` in it.
    hints : iterable of str, optional
        Facts that make the workunit faster; of roots GPUs know ``"finite_rsqrt"`` alone, and they ignore
        ``"long_blocks"`` and ``"open_lists"``.

        - ``"finite_rsqrt"``: the values of ``pk.rsqrt`` at 0 and at infinity are not used: they may be NaN, or on GPUs
          any number, also of subnormal numbers.
        - ``"ordinary_rsqrt"``: nor are its values of numbers that are not between 1e-36 and 1e36: they may be anything.
        - ``"bounded_rsqrt"``: nor are those of numbers above 1e36 that are compared with a least one, below or at which
          0 replaces the root.
        - ``"short_rsqrt"``: a relative error of 1.5e-13 of ``pk.rsqrt`` is enough in double precision.
        - ``"shorter_rsqrt"``: likewise 1.5e-10.
        - ``"brief_rsqrt"``: likewise 5.7e-9.
        - ``"shortest_rsqrt"``: likewise 2.1e-7, also in single precision.
        - ``"rounded_exp"``: the arguments of ``pk.exp`` are from -1e60 to 708 (in single precision -1e20 to 88), and
          rounded: an error of ``|x|/2`` more units in the last place of e^x is allowed, and results below 2^-1021
          (2^-125) may be 0.
        - ``"short_exp"``: with ``"rounded_exp"``, a relative error of 2.6e-12 is enough in double precision.
        - ``"shorter_exp"``: likewise 1.9e-9.
        - ``"shortest_exp"``: likewise 4.3e-7, in single precision 5.5e-7.
        - ``"long_blocks"``: the loops hold many independent terms without branches: g++ mixes their instructions
          before it allocates registers, which is slow to compile and sometimes spills.
        - ``"open_lists"``: elements of scratch after a list that a scan makes are not used before they are stored
          again: they may change, up to the length of a vector.
        - ``"jam_2"`` … ``"jam_8"``: the innermost loops of unknown length that take roots run so many turns at once,
          as many as registers hold: the latency of one turn's root hides behind the others'.
        - ``"lanes_1"``, ``"lanes_2"``, ``"lanes_4"`` … ``"lanes_32"``: launches on GPUs have so many lanes in a row,
          so that loops over as many lanes vanish, and others count in constants.
        - ``"resident_512"``: a multiprocessor of a GPU holds at least 512 threads, so each has 128 registers at most.
    **slots
        Values of module-level names: ``real="float"``, ``P=8``, ``pair="pair/stokes_comb"``; for functions also a
        Python function, which is read at this call (`parki.engine.text.functions`).

    Returns
    -------
    Workunit
        The specialisation, which is compiled when it is first launched.

    Raises
    ------
    KernelError
        The file, or its form with these slots, is outside the workunit subset.
    ValueError
        There is no such hint, or a Python function cannot be read.

    See Also
    --------
    parallel_for : Launch a workunit once.
    prepare : Prepare a workunit for many launches.
    constants : Return constants of a kernel's file.

    Examples
    --------
    >>> from parki import engine
    >>> engine.kernel("cells", "gather_points", real="float")
    <workunit gather_points(real=float)>
    """
    hints = tuple(sorted(set(hints)))
    for hint in hints:
        if not (hint in HINTS or hint in JAM or hint in LANES or hint == RESIDENT):
            names = ", ".join([*HINTS, *JAM, *LANES, RESIDENT])
            raise ValueError(f"hints: found {hint!r}, expected some of {names}")
    answers = settled.answers()
    if answers is None:
        return _of(specialise(source, workunit, **slots), hints)
    slots = {name: a if isinstance(a, PLAIN) else functions.text_of(a, f"slot '{name}'") for name, a in slots.items()}
    types = tuple(map(type, slots.values()))  # 1 and True are different slots
    key = (source, workunit, hints, *slots, types, *(a if isinstance(a, PLAIN) else repr(a) for a in slots.values()))
    if key not in answers:
        answers[key] = _of(specialise(source, workunit, **slots), hints)
    return answers[key]


def object_path(workunit: Workunit) -> Path:
    """Return the path of the compiled object for C-ordered views, which is compiled if need be.

    Parameters
    ----------
    workunit : Workunit
        A result of `kernel`.

    Returns
    -------
    Path
        A shared object in the cache.

    See Also
    --------
    compile_all : Compile many workunits side by side.

    Examples
    --------
    >>> from parki import engine
    >>> engine.object_path(engine.kernel("cells", "gather_points", real="double")).is_file()
    True
    """
    return workunit.compiled(workunit.default_layouts(), checking()).path
