"""Benchmarks of `parki bench`, in the order in which the command line lists them."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parki.engine import Space
    from parki.perfmodels.bench.measure import Row

N, FEWER = 100_000, 30_000  # particles where no --n is given; of benchmarks that hold many sums at once
SPHERES = 10_000  # spheres whose pairs pystokes sums in about a second
WATER = 2_685  # atoms of the box of water of the examples
ROOM = "parki.perfmodels.bench"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark: it measures rows, and prints and draws them.

    Functions are given as ``"module.function"`` of `parki.perfmodels.bench`, and are imported when they are called: the
    command line lists benchmarks without NumPy.

    Attributes
    ----------
    name : str
        Its word on the command line.
    help : str
        One line on the measured times.
    measures : str
        Function of the arguments and a space that returns rows.
    prints : str
        Function of rows that returns their table as text.
    draws : str
        Function of a figure and rows.
    n : int
        Number of particles where none is given.
    options : tuple of str
        Its options that not all benchmarks have: ``"only"``, ``"mpi"``, ``"points"``, ``"library"`` and ``"device"``.
    """

    name: str
    help: str
    measures: str
    prints: str = "measure.table"
    draws: str = "plot.bars"
    n: int = N
    options: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name

    def rows(self, args: argparse.Namespace, space: "Space") -> "list[Row]":
        """Measure and return the rows, each with its settings: those of the arguments, unless it has its own."""
        common = {name: value for name, value in self.settings(args, space).items() if name in ROW}
        return [r if "absent" in r else common | r for r in _function(self.measures)(args, space)]

    def settings(self, args: argparse.Namespace, space: "Space") -> "Row":
        """Return the settings asked for, with the threads and the space that None stands for."""
        from parki.engine import workers

        settings = {"n": args.n, "tolerance": args.tolerance, "threads": workers(space), "space": space.name}
        return settings | {"repeat": args.repeat}

    def command(self, args: argparse.Namespace) -> str:
        """Return the command that measures this again."""
        words = [f"parki bench {self.name} --n {args.n} --repeat {args.repeat} --tolerance {args.tolerance:g}"]
        words += [
            f"--{name} {getattr(args, name)}" for name in ("space", "threads", "points") if getattr(args, name, None)
        ]
        words += [
            f"--{name} {' '.join(getattr(args, name))}" for name in ("only", "library") if getattr(args, name, None)
        ]
        return " ".join(words)

    def table(self, rows: "Sequence[Row]") -> str:
        """Return the rows as text."""
        return _function(self.prints)(rows)

    def plot(self, figure: Any, rows: "list[Row]") -> None:
        """Draw the rows into a figure of Matplotlib."""
        _function(self.draws)(figure, rows)


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(".")
    return getattr(importlib.import_module(f"{ROOM}.{module}"), name)


def listed() -> str:
    """Return the names, the help and the options of all benchmarks, a line each."""
    width = max(map(len, BENCHMARKS))
    lines = []
    for benchmark in BENCHMARKS.values():
        options = f" ({', '.join(f'--{name}' for name in benchmark.options)})" if benchmark.options else ""
        lines.append(f"{benchmark.name:<{width}}  {benchmark.help}{options}")
    return "\n".join(lines)


def takes_points(name: str) -> bool:
    """Tell whether a benchmark takes --points in one process too."""
    return name in BENCHMARKS and "points" in (options := BENCHMARKS[name].options) and "mpi" not in options


ROW = ("n", "tolerance", "threads")  # settings of each row
ONLY, OVER_RANKS, DEVICE = ("only",), ("mpi", "points"), ("device",)
BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("p2p", "near fields and all pairs, beside loops written by hand", "kernels.p2p"),
        Benchmark("p2g", "spreading, beside finufft", "kernels.p2g"),
        Benchmark("g2p", "interpolation, beside finufft", "kernels.g2p"),
        Benchmark("fft", "transforms of a sum, by every installed library", "kernels.transforms"),
        Benchmark("variants", "all variants of P2P, P2G and G2P", "kernels.compare_variants"),
        Benchmark("ewald", "Ewald sums of three kernels, and their phases", "sums.ewald", options=("mpi",)),
        Benchmark("scaling", "Ewald sums of 10⁴ to N particles", "sums.scaling", draws="plot.against_n"),
        Benchmark(
            "tolerance", "Ewald sums to tolerances of 1e-3 to 1e-12", "sums.tolerances", draws="plot.against_tolerance"
        ),
        Benchmark("split", "Ewald sums with prolate and Gaussian splits", "sums.splits"),
        Benchmark("precision", "Ewald sums with far fields in double and single precision", "sums.precisions"),
        Benchmark("crowds", "Ewald sums of crowded points", "sums.crowds"),
        Benchmark("free", "Ewald sums in free space, beside FMM3D", "free.free_space"),
        Benchmark(
            "peers",
            "forces and potentials of ions, beside OpenMM, torch-pme and ESP",
            "peers.peers",
            options=("library",),
        ),
        Benchmark(
            "peers-free",
            "sums over trees, beside FMM3D, PVFMM, exafmm-t, DMK and BaryTree",
            "peers_free.peers_free",
            prints="peers_free.table",
            draws="peers_free.draw",
            options=("only", "points", "library"),
        ),
        Benchmark("spheres", "velocities of spheres, beside pystokes", "peers_pystokes.spheres", n=SPHERES),
        Benchmark(
            "water",
            "energies and forces of a box of water, beside OpenMM",
            "peers_openmm.water",
            prints="peers_openmm.table",
            n=WATER,
        ),
        Benchmark(
            "drift",
            "drift of the energy of flexible water, beside OpenMM",
            "drift_openmm.drift",
            prints="drift_openmm.table",
            n=WATER,
        ),
        Benchmark(
            "model",
            "Ewald sums, beside their predicted times",
            "models.predictions",
            prints="models.predictions_table",
            n=FEWER,
        ),
        Benchmark(
            "selection",
            "chosen parameters, beside the best of a sweep",
            "models.selections",
            prints="models.selections_table",
            n=FEWER,
        ),
        Benchmark(
            "roofline", "phases, beside the limits of the machine", "limits.rooflines", prints="limits.rooflines_table"
        ),
        Benchmark(
            "code", "hot loops of a GPU's kernels, as compiled", "code.code", prints="code.table", options=DEVICE
        ),
        Benchmark(
            "treecode",
            "treecodes, beside a published loop",
            "treecode.treecode",
            prints="treecode.table",
            options=OVER_RANKS,
        ),
        Benchmark(
            "treecode-scaling",
            "treecodes of N / 100 to N particles",
            "treecode.scaling",
            prints="treecode.scaling_table",
        ),
        Benchmark(
            "treecode-leaves", "leaves of treecodes, beside a sweep", "treecode.leaves", prints="treecode.leaves_table"
        ),
        Benchmark("treecode-free", "treecodes, beside FMM3D", "treecode.against_fmm"),
        Benchmark(
            "treecode-model",
            "treecodes, beside their predicted times",
            "treecode.predictions",
            prints="treecode.predictions_table",
        ),
        Benchmark("fmm", "fast multipole sums, and their phases", "fmm.sums", prints="fmm.table", options=OVER_RANKS),
        Benchmark(
            "fmm-leaves", "leaves of fast multipole sums, beside a sweep", "fmm.leaves", prints="trees.leaves_table"
        ),
        Benchmark("fmm-free", "fast multipole sums, beside FMM3D", "fmm.against_fmm"),
        Benchmark(
            "fmm-model",
            "fast multipole sums, beside their predicted times",
            "fmm.predictions",
            prints="fmm.predictions_table",
        ),
        Benchmark("plans", "parts of making plans over trees", "plans.plans", prints="plans.table"),
        Benchmark("accuracy", "all methods, against tolerance", "methods.accuracy", options=ONLY),
        Benchmark("growth", "all methods, against N", "methods.growth", options=ONLY),
        Benchmark("regret", "parki.sum, beside all methods", "regret.regret", prints="regret.table", n=FEWER),
        Benchmark("phases", "all methods, by phase", "methods.phases", options=ONLY),
        Benchmark("threads", "all methods, against threads", "methods.threads", options=ONLY),
    )
}
