"""Upstream PyKokkos as a second engine: it translates, compiles and runs the same L0 files.

The first use imports PyKokkos.  PyKokkos leaves its builds in ``pk_cpp`` below the current directory; parki writes the
L0 files into its cache folder, by content, so a build is never that of another kernel.
"""

import ast
import contextlib
import importlib
import importlib.util
import io
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from parki.engine import config, forks
from parki.engine.compile import cache, trust
from parki.engine.errors import KernelError, LaunchError, Loc
from parki.engine.run import devices, spaces
from parki.engine.run.policy import RangePolicy, TeamPolicy
from parki.engine.text.source import digest
from parki.engine.text.syntax import parsed
from parki.engine.tree import ir
from parki.engine.workunit import Workunit

FOLDER = "pykokkos"  # folder of the L0 files in the cache
CHANGING = ("PK_FUSION", "PK_LOOP_FUSE", "PK_MEM_FUSE", "PK_RESTRICT")  # variables that change PyKokkos' code
# PyKokkos passes the arguments of a kernel on by keyword, beside parameters of its own with these names.
TAKEN = frozenset(
    "name policy workunit operation initial_value parser entity module_setup members space reducer ast_signature "
    "updated_decorator updated_types types_signature restrict_views restrict_signature force_uvm self".split()
)
CASTS = ("int", "pk.double", "pk.float")
SHOWN = 12  # lines of PyKokkos' output in an error
COLOUR, LINE = re.compile(r"\x1b\[\d*m"), re.compile(r"(?:on|,) line (\d+)\s*:?\s*")

log = logging.getLogger(config.LOGGER)
_lock = forks.lock()
_modules: dict[tuple[ModuleType, Path], ModuleType] = {}  # kept: PyKokkos reads the file of a workunit again


def available() -> str | None:
    """Return None if kernels can run through PyKokkos, else the sentence that says why not; imports PyKokkos."""
    names = [name for name in CHANGING if name in os.environ]
    if names:
        return f"PyKokkos compiles something else while {' and '.join(names)} is set in the environment. Unset it."
    try:
        with _without_gpu():
            pk = importlib.import_module("pykokkos")
    except (Exception, SystemExit) as error:  # its compiled part fails in many ways
        return f"PyKokkos cannot be imported: {type(error).__name__}: {error}."
    if not _knows_scratch(pk):
        return "This PyKokkos does not know @pk.workunit(scratch=[…]). Install its main branch of March 2026 or newer."
    return None


@contextlib.contextmanager
def _without_gpu() -> Iterator[None]:
    """Hide CuPy where there is no GPU: PyKokkos asks CuPy for the current GPU during its import, and fails."""
    if "pykokkos" in sys.modules or any(devices.find(kind) for kind in devices.PLATFORMS):
        yield
        return
    module = sys.modules.pop("cupy", None)
    sys.modules["cupy"] = None
    try:
        yield
    finally:
        del sys.modules["cupy"]
        if module is not None:
            sys.modules["cupy"] = module


def _knows_scratch(pk: ModuleType) -> bool:
    def probe() -> None:
        pass

    try:
        return hasattr(pk.workunit(scratch=[(float, lambda p: 1)])(probe), "_pk_scratch")
    except (AttributeError, TypeError):
        return False


def _required() -> ModuleType:
    reason = available()
    if reason is not None:
        raise LaunchError(reason)
    return sys.modules["pykokkos"]


# The L0 file ---------------------------------------------------------------------------------------------------------
def L0_file(workunit: Workunit, device: bool = False) -> Path:
    """Write the L0 text of a workunit, `rewritten` for PyKokkos, into the cache folder, and return its path.

    The file is named after the rewritten text, and written once.
    """
    text, filename = rewritten(workunit.l0.text, device), workunit.l0.filename
    if text != workunit.l0.text:
        number = digest(text.partition("\n")[2])
        filename = f"{workunit.l0.name}_{number}.py"
    path = cache.folder() / cache.FORMAT / FOLDER / filename
    data = text.encode()
    with contextlib.suppress(OSError):
        if trust.read(path).partition(b"\n")[2] == data.partition(b"\n")[2]:  # first lines tell slots, and may differ
            return path
    cache.write(path, data)
    return path


def rewritten(text: str, device: bool = False) -> str:
    """Return an L0 text with replacements for expressions that PyKokkos takes differently; no line moves.

    ``x.extent(d)``, which is unsigned in C++, becomes ``int(x.extent(d))``.  For hosts (`device` False) ``pk.rsqrt(e)``
    becomes ``(1.0 / pk.sqrt(e))``: only compilers for GPUs have the C function ``rsqrt`` that PyKokkos calls.
    ``pk.double(int(a))`` becomes ``pk.double(int(+a))``: C++ takes ``(double(int(a))) - b`` for a cast of ``-b``.
    """
    lines = [line.encode() for line in text.split("\n")]  # columns of a syntax tree count bytes
    edits: list[tuple[int, int, int, bytes]] = []  # line, first and last column, new text
    for node in ast.walk(parsed(text)):
        if not isinstance(node, ast.Call):
            continue
        f, line, begin, end = ast.unparse(node.func), node.lineno, node.col_offset, node.end_col_offset or 0
        if f.endswith(".extent"):
            edits += (line, begin, begin, b"int("), (line, end, end, b")")
        elif f == "pk.rsqrt" and not device:
            edits += (line, begin, node.func.end_col_offset or 0, b"(1.0 / pk.sqrt"), (line, end, end, b")")
        elif f in CASTS:
            match node.args:
                case [ast.Call(func=function, args=[ast.Name(col_offset=column)])] if ast.unparse(function) in CASTS:
                    edits.append((line, column, column, b"+"))
    for line, begin, end, new in sorted(edits, reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:begin] + new + old[end:]
    return b"\n".join(lines).decode()


def _function(pk: ModuleType, path: Path, name: str) -> Any:
    """Return the decorated workunit of an L0 file, which is imported once."""
    key = pk, path
    with _lock:
        if key not in _modules:
            spec = importlib.util.spec_from_file_location(f"parki_l0_{path.stem}", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _modules[key] = module
    return getattr(_modules[key], name)


# Messages of PyKokkos ------------------------------------------------------------------------------------------------
@contextlib.contextmanager
def _heard(workunit: Workunit, path: Path) -> Iterator[None]:
    """Turn a failure of PyKokkos, which prints and ends the program, into a KernelError."""
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            yield
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, str) else ""
        raise _rejected(workunit, f"rejects {path.name}", f"{output.getvalue()}\n{code}") from stop
    if output.getvalue().strip():
        log.info("PyKokkos on %s: %s", path, output.getvalue().strip())


def _rejected(workunit: Workunit, doing: str, output: str) -> KernelError:
    """Return K022 with the useful lines of the output, at the L1 line of the first L0 line that they name."""
    lines = [line.rstrip() for line in COLOUR.sub("", output).splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror\b", line, re.IGNORECASE)] or lines
    loc, match = workunit.ir.loc, LINE.search("\n".join(errors))
    if match and 1 <= int(match[1]) <= len(workunit.l0.linemap):
        file, line = workunit.l0.linemap[int(match[1]) - 1]
        loc = Loc(file, line) if line else loc
    shown = "\n".join(errors[:SHOWN]) or "it says nothing"
    return KernelError("K022", loc, f"PyKokkos {doing}: {shown}")


def translate(workunit: Workunit) -> str:
    """Return the C++ that PyKokkos makes of a workunit: functor, casts and bindings, one after another.

    Parser, symbols pass and translators of PyKokkos run, but no compiler.

    Raises
    ------
    KernelError
        K022: PyKokkos rejects the workunit, or its translator stops; with its message, at the L1 line named there.
    LaunchError
        PyKokkos is not available.
    """
    _required()
    parsers = importlib.import_module("pykokkos.core.parsers")
    translators = importlib.import_module("pykokkos.core.translators")
    path = L0_file(workunit)
    with _lock, _heard(workunit, path):
        try:
            parser = parsers.Parser(str(path))  # a fresh one: translating changes its trees
            entity, classes = parser.get_entity(workunit.l0.name), parser.get_classtypes()
            for decorator in entity.AST.decorator_list:
                if isinstance(decorator, ast.Call):  # a launch, too, puts the arrays' layouts in place of the scratch
                    decorator.keywords = []
            entity.AST = translators.StaticTranslator.add_parent_refs(entity.AST)
            members = translators.PyKokkosMembers()
            members.extract(entity, classes)
            translator = translators.StaticTranslator("kernel", "functor.hpp", "functor_cast.hpp", members)
            functor, bindings, casts = translator.translate(entity, classes, set())
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise _rejected(workunit, f"stops while it translates {path.name}", message) from error
    return "\n".join((*functor, *casts, *bindings))


# Launches ------------------------------------------------------------------------------------------------------------
class UpstreamCall:
    """A launch through PyKokkos, bound to its arguments."""

    def __init__(self, policy: RangePolicy | TeamPolicy, workunit: Workunit) -> None:
        self.policy, self.workunit, self.kernel = policy, workunit, workunit.ir
        self._pk = _required()
        space = policy.space
        self.device = space.kind == "device"
        self.threads = 1 if space.name == "Serial" else spaces.threads()
        if space.name == "OpenMP" and space.threads not in (None, self.threads):
            reason = f"PyKokkos takes the number of threads from OMP_NUM_THREADS, here {self.threads}"
            raise LaunchError(f"threads={space.threads}: {reason}")
        names = sorted(TAKEN & {p.name for p in self.kernel.params})
        if names:
            raise LaunchError(f"{self.kernel.name}: PyKokkos has parameters of its own called {names}. Rename them")
        self.path = L0_file(workunit, self.device)
        self._function = _function(self._pk, self.path, workunit.l0.name)
        self._args: dict[str, Any] = {}
        self._gaps: dict[str, Any] = {}  # arrays with gaps, of which PyKokkos gets copies
        self._layouts: dict[str, bool] = {}
        self._ready: dict[str, bool] | None = None  # the layouts that have run
        self._total: float | int = 0

    def bind(self, name: str, a: Any) -> None:
        """Pass this array, or a copy without gaps: PyKokkos reads every array as if it had no gaps."""
        self._gaps.pop(name, None)
        if not (a.flags.c_contiguous or a.flags.f_contiguous):
            self._gaps[name], a = a, spaces.array_module(self.policy.space).empty(a.shape, a.dtype)
        self._args[name], self._layouts[name] = a, a.flags.f_contiguous

    def numbers(self, scalars: dict[str, float | int]) -> None:
        """Pass these numbers, as Python's int, float and bool."""
        for name, value in scalars.items():
            kind = self.kernel.param(name).type
            self._args[name] = (float if kind in ir.REALS else bool if kind == "bool" else int)(value)

    def run(self) -> None:
        """Launch, and wait.

        Raises
        ------
        KernelError
            K022: PyKokkos or the C++ compiler it calls rejects the kernel.
        LaunchError
            PyKokkos cannot run the launch.
        """
        for name, a in self._gaps.items():  # all entries: those that the kernel does not write stay
            self._args[name][...] = a
        self._wait()
        if self._ready == self._layouts:
            self._dispatch()
        else:  # PyKokkos has no lock of its own around translating and compiling
            with _lock, cache.building(self.path.stem[-16:], threading.Event()), _heard(self.workunit, self.path):
                self._dispatch()
            self._ready = dict(self._layouts)
        self._wait()
        for name, a in self._gaps.items():
            if self.kernel.param(name).written:
                a[...] = self._args[name]

    def _wait(self) -> None:
        """Wait for the GPU: PyKokkos launches in a stream of its own, and does not wait."""
        if self.device:
            spaces.array_module(self.policy.space).cuda.runtime.deviceSynchronize()

    def _dispatch(self) -> None:
        k, pk = self.kernel, self._pk
        try:
            self._total = getattr(pk, f"parallel_{k.kind}")(self._policy(), self._function, **self._args)
        except Exception as error:
            # PyKokkos takes a folder for a finished build, also after a compiler error and Ctrl-C.
            incomplete = isinstance(error, ImportError | OSError)
            advice = ". A build may be incomplete: remove pk_cpp below the current directory" if incomplete else ""
            raise LaunchError(f"{k.name}: PyKokkos stops with {type(error).__name__}: {error}{advice}") from error

    def _policy(self) -> Any:
        """Return a new policy: PyKokkos leaves the scratch size of the first kernel in a policy."""
        p, pk = self.policy, self._pk
        space = getattr(pk.ExecutionSpace, "Serial" if spaces.forked() and not self.device else p.space.name)
        if p.kind == "range":
            return pk.RangePolicy(space, 0, p.league)
        if self.device:
            return pk.TeamPolicy(space, p.league, p.team_size or "auto", p.vector_length or 1)
        return pk.TeamPolicy(space, p.league, 1, 1)

    def total(self) -> float | int:
        """Return the result of a reduction or scan that has run."""
        return (float if self.kernel.acc_type in ir.REALS else int)(self._total)
