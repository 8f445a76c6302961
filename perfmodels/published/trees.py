"""Published scaling of treecodes and fast multipole methods, and parki's models of the same sums.

Published efficiencies are of whole calls: trees, lists, locally essential trees and sums.  Parki's in the column "with
plan" are, too, with the plan on one core a rank; the column "call" has the efficiencies of a call alone.
"""

from __future__ import annotations

from collections.abc import Callable

from parki.perfmodels.ranks.sums import RankedSum

#: Points, GPUs, and options of Wilson et al. (2021), section 4.7 and figure 12, on P100.
TREECODES = 64_000_000, 32, (("theta", 0.7), ("degree", 8))
#: Published efficiencies of strong scaling, 64e6 points on 32 GPUs, by method and points.
EFFICIENCIES = {
    "dual": {"uniform": 0.77, "gaussian": 0.65, "plummer": 0.66},
    "pc": {"uniform": 0.83, "gaussian": 0.81, "plummer": 0.64},
}
NAMES = {"dual": "BLDTT", "pc": "BLTC"}
#: Lashuk et al. (SC09), section V: figure 3 (strong, efficiency 0.8 to 0.9 from 512 to 8K cores), figure 4 (weak,
#: from 16 to 64K cores 1.5 times as long), figure 6 (256 GPUs, a million points each: 1.8 to 2.3 s).
STRONG = 200_000_000, (512, 2048, 8192), "0.80-0.90"
WEAK = 25_000, (16, 512, 4096), "0.67 at 64K"
GPUS = 1_000_000, (1, 64, 256), "0.78 at 256"


def treecodes(predict: Callable[[str, str], RankedSum]) -> list[str]:
    """Return a table of Wilson et al. (2021), figure 12; `predict` takes points and a method."""
    n, ranks, _ = TREECODES
    lines = [
        f"Wilson et al. (2021), figure 12: {n:,} points on {ranks} GPUs, θ 0.7, degree 8, efficiency against one",
        f"{'':>8}{'points':>10}{'published':>11}{'call':>8}{'sorted':>8}{'with plan':>11}{'imbalance':>11}",
    ]
    for method, by_points in EFFICIENCIES.items():
        for points, published in by_points.items():
            row = predict(points, method)
            figures = f"{row.efficiency():>8.3f}{row.efficiency(placed=False):>8.3f}{row.with_plan:>11.3f}"
            lines.append(f"{NAMES[method]:>8}{points:>10}{published:>11.2f}{figures}{row.imbalance:>11.3f}")
    return lines


def sc09(predict: Callable[[int, int], RankedSum]) -> list[str]:
    """Return a table of Lashuk et al. (SC09), figures 3, 4 and 6; `predict` takes points and ranks."""
    lines = [
        "Lashuk et al. (SC09), uniform points; of weak scaling: time of the first row over that of each",
        f"{'':>28}{'ranks':>7}{'points':>11}{'published':>13}{'efficiency':>11}{'against first':>14}{'with plan':>11}",
    ]
    cases = (
        ("figure 3, strong", STRONG, lambda number, ranks: number),
        ("figure 4, weak", WEAK, lambda number, ranks: number * ranks),
        ("figure 6, weak, a GPU each", GPUS, lambda number, ranks: number * ranks),
    )
    for title, (number, rank_counts, published), points in cases:
        first = None
        for ranks in rank_counts:
            row = predict(points(number, ranks), ranks)
            first = first or (row.seconds() * ranks / row.n)
            relative_time = first * row.n / ranks / row.seconds()
            published_text = published if ranks == rank_counts[-1] else ""
            figures = f"{row.efficiency():>11.3f}{relative_time:>14.3f}{row.with_plan:>11.3f}"
            lines.append(f"{title:>28}{ranks:>7}{row.n:>11.4g}{published_text:>13}{figures}")
    return lines
