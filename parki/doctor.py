"""`parki doctor`: compilers, devices and libraries that are present or missing, and ways to get them."""

import importlib.metadata
import importlib.util
import platform
from pathlib import Path
from typing import Any

import parki
from parki import prediction
from parki.engine import BuildError, cache, compiler, devices, rtc, spaces
from parki.perfmodels import machine

# module to look for, title of its line, distribution, message if it is missing
OPTIONAL = (
    ("mpi4py", "MPI", "mpi4py", 'mpi4py is not installed, sums are of one process → pip install "parki[mpi]"'),
    (
        "matplotlib",
        "matplotlib",
        "matplotlib",
        'not installed, parki demo draws no picture → pip install "parki[plot]"',
    ),
    ("pykokkos", "PyKokkos", "pykokkos", "not installed, and not needed: parki compiles its kernels itself"),
)


def report(comm: Any = None) -> tuple[str, bool]:
    """Return the report, on all ranks of a communicator if there is one, and whether kernels can run here."""
    versions = [f"{name} {importlib.metadata.version(name.lower())}" for name in ("NumPy", "SciPy")]
    python = f"Python {platform.python_version()}"
    lines = ["   ".join([f"parki {parki.__version__}", python, *versions, f"{platform.system()} {platform.machine()}"])]
    lines += _compiler()
    entries = cache.entries()
    lines.append(_line("cache", f"{_short(cache.folder())}   {len(entries)} kernels, {_megabytes(cache.size())}"))
    reasons = spaces.available()
    for name, reason in reasons.items():
        states = [f"ready    {text}" for text in _ready(name)] if reason is None else [f"missing  {reason}"]
        lines += [_line(name, text) for text in states]
    lines.append(_line("CuPy", _cupy()))
    for module, title, distribution, reason in OPTIONAL:
        is_present = importlib.util.find_spec(module) is not None
        lines.append(
            _line(title, f"present  {_version(distribution)}".rstrip() if is_present else f"missing  {reason}")
        )
    lines += [] if comm is None else _ranks(comm)
    return "\n".join(lines), any(reason is None for reason in reasons.values())


def _ranks(comm: Any) -> list[str]:
    """Return lines on the ranks of a communicator and the messages between them."""
    from mpi4py import MPI

    from parki.distributed import communicators, network

    ranks = communicators.of(comm)
    nodes = len({node[0] for node in ranks.allgather(ranks.node)})
    library = MPI.Get_library_version().partition("\n")[0].replace("\t", " ").rstrip("\0").strip()
    threads = max(1, spaces.threads() // ranks.peers)
    places = f"{ranks.size} on {_count(nodes, 'machine')}, {_count(threads, 'thread')} each"
    rates = network.measure(ranks)
    if ranks.rank == 0:
        network.keep(rates)
    return [
        _line("ranks", f"{places}   {library}"),
        _line("network", f"{rates}; kept for sums over ranks"),
    ]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def backend(space: spaces.Space) -> str:
    """Return one line on the device or compiler that runs kernels in this space."""
    if space.own_memory:
        text = _device(devices.current() or devices.find(space.name)[0])
        return f"{space.name}, {text}, {rtc.version('cuda' if space.name == devices.CUDA else 'hip')}"
    cxx, target = compiler.toolchains()[0]
    if space.checks_accesses:
        return f"{space.name}, {_ready(space.name)[0]}, {cxx.version}"
    return f"{space.name}, {_count(spaces.workers(space), 'thread')}, {cxx.version}, {_vectors(target.vector_bytes)}"


def _ready(name: str) -> list[str]:
    """Return the lines that describe a space that is here: one for each device."""
    space = spaces.Space(name)
    if space.own_memory:
        return [_device(device) for device in devices.find(name)]
    if space.checks_accesses:
        return [f"GPU kernels on the host, slow and checked, warps of {space.warp} threads"]
    return [f"{spaces.threads()} threads" if name == "OpenMP" else "1 thread"]


def _device(device: devices.Device) -> str:
    """Return name, compute capability or architecture, memory, multiprocessors and driver on one line."""
    architecture = f"compute capability {device.capability}" if device.capability else device.arch
    memory = f"{device.memory_bytes / 1e9:.0f} GB"
    return f"{device.name}, {architecture}, {memory}, {device.multiprocessors} multiprocessors, driver {device.driver}"


def _cupy() -> str:
    """Return one line on CuPy, and on whether kernels can be compiled for GPUs, which needs no GPU."""
    kind = devices.platform() or devices.CUDA
    reason = devices.missing_compiler(kind)
    if devices.platform() is None:
        return f"missing  {reason}"
    compiles = f"not compiling for GPUs: {reason}" if reason else rtc.version("cuda" if kind == devices.CUDA else "hip")
    return f"present  {devices.distribution(kind)}, {compiles}"


def _compiler() -> list[str]:
    try:
        cxx, target = compiler.toolchains()[0]
    except BuildError as error:
        return [_line("compiler", f"missing  {error}")]
    instructions = target.resolved.rpartition("-")[0] or target.resolved
    try:
        lines = [_line("compiler", f"{compiler.find_compiler().version}   ({cxx.path})")]
    except BuildError as error:
        note = f"kernels in the cache by {cxx.version} fit this processor and run; others cannot be compiled"
        lines = [_line("compiler", f"missing  {error}"), _line("prepared", note)]
    return [
        *lines,
        _line("target", f"{target.arch}: {instructions}"),
        _line("vectors", _vectors(target.vector_bytes)),
        _line("threads", f"{spaces.threads()} of {compiler.cpus()} CPUs"),
        _line("rates", _rates()),
    ]


def _rates() -> str:
    """Return the origin of the rates by which parameters are chosen."""
    if machine.ignored():
        return f"common ones, as PARKI_CALIBRATION={machine.ignored()}"
    if machine.calibrated(prediction.built()):
        return "measured here"
    reason = "were by another compiler or for other vectors" if machine.calibrated() else "have not been measured here"
    return f"common ones, others {reason} → parki calibrate"


def _vectors(width: int) -> str:
    return f"{8 * width}-bit vectors ({width // 8} doubles)"


def _line(title: str, text: str) -> str:
    return f"  {title:<11} {text}"


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
