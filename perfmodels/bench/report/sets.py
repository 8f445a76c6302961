"""Named sets: lists of benchmarks with their parameters; `parki bench` repeats each benchmark alone."""

import argparse
from dataclasses import dataclass

from parki.perfmodels.bench.benchmark import BENCHMARKS
from parki.perfmodels.bench.methods import DIRECT, TOLERANT


@dataclass(frozen=True)
class ReportEntry:
    """A benchmark of `parki bench` with its parameters.

    Attributes
    ----------
    name
        Name in a record and for ``--only``.
    benchmark
        Key of `parki.perfmodels.bench.benchmark.BENCHMARKS`.
    n, tolerance, repeat, only
        Options of the command.
    scales
        Whether the benchmark runs on several numbers of threads, up to the number asked for.
    """

    name: str
    benchmark: str
    n: int
    tolerance: float = 1e-7
    repeat: int = 3
    only: str | None = None
    scales: bool = False

    def asked(self, space: str | None = None, threads: int | None = None) -> argparse.Namespace:
        """Return the arguments of the command; by default with one thread, or with all if the benchmark scales."""
        return argparse.Namespace(
            name=self.benchmark,
            n=self.n,
            tolerance=self.tolerance,
            repeat=self.repeat,
            space=space,
            threads=threads or (None if self.scales else 1),
            only=None if self.only is None else [self.only],
        )

    def command(self, space: str | None = None, threads: int | None = None) -> str:
        """Return the command that measures this entry alone."""
        return BENCHMARKS[self.benchmark].command(self.asked(space, threads))


def _methods(n: int, largest: int, finest: float, repeat: int, few_repeats: int) -> list[ReportEntry]:
    """Return one entry for each sum: accuracy at `n` down to `finest`, growth to `largest`; and phases and threads.

    Growth, which takes longest, is repeated `few_repeats` times.
    """
    entries = [
        ReportEntry(f"accuracy-{method_sum}", "accuracy", n, finest, repeat, str(method_sum)) for method_sum in TOLERANT
    ]
    entries += [
        ReportEntry(f"growth-{method_sum}", "growth", largest, 1e-5, few_repeats, str(method_sum))
        for method_sum in (*TOLERANT, DIRECT)
    ]
    entries += [ReportEntry("phases", "phases", n, 1e-6, repeat)]
    return [*entries, ReportEntry("threads", "threads", n, 1e-6, repeat, scales=True)]


def _others(n: int, near: int, grid: int, variants: int, repeat: int) -> list[ReportEntry]:
    """Return the entries beside other programs at `n`, beside other code at `near` and `grid`, and of variants."""
    return [
        ReportEntry("free-ewald", "free", n, repeat=repeat),
        ReportEntry("free-treecode", "treecode-free", n, repeat=repeat),
        ReportEntry("free-fmm", "fmm-free", n, repeat=repeat),
        ReportEntry("periodic", "peers", n, repeat=repeat),
        ReportEntry("near-field", "p2p", near, repeat=repeat),
        ReportEntry("spreading", "p2g", grid, repeat=repeat),
        ReportEntry("interpolation", "g2p", grid, repeat=repeat),
        ReportEntry("variants", "variants", variants, repeat=repeat),
    ]


#: Name → entries.  `quick` checks that everything runs; `standard` is shown on the site; `full` goes to N = 10⁷.
SETS: dict[str, list[ReportEntry]] = {
    "quick": [*_methods(10_000, 30_000, 1e-7, 1, 1), *_others(2_000, 6_000, 10_000, 2_000, 1)],
    "standard": [*_methods(50_000, 1_000_000, 1e-11, 3, 2), *_others(20_000, 60_000, 100_000, 20_000, 3)],
    "full": [
        *_methods(100_000, 10_000_000, 1e-11, 5, 2),
        *_others(100_000, 60_000, 100_000, 20_000, 5),
        ReportEntry("right-hand-sides", "ewald", 100_000, repeat=5),
        ReportEntry("precisions", "precision", 100_000, repeat=5),
        ReportEntry("splits", "split", 1_000_000, 1e-9, 2),
        ReportEntry("crowds", "crowds", 100_000, repeat=5),
        ReportEntry("transforms", "fft", 100_000, repeat=5),
    ],
}
