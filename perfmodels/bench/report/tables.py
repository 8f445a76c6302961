"""Tables of the pages, in Markdown, each below a sentence that explains its figures."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from parki.perfmodels.bench.measure import Row, apart, spread
from parki.perfmodels.bench.report import record

SPACE = "\N{NO-BREAK SPACE}"  # between a number and its unit
PARTS = "plan and call", "call again"
Body = Callable[[Sequence[Row]], tuple[str, str]]


def seconds(value: float) -> str:
    """Return a time as text, with three digits and a unit."""
    unit, scale = ("s", 1.0) if value >= 1 else ("ms", 1e3) if value >= 1e-3 else ("µs", 1e6)
    return f"{scale * value:.3g}{SPACE}{unit}"


def milliseconds(value: float) -> str:
    """Return milliseconds as text without unit, with three digits and no exponent."""
    return f"{1e3 * value:.3g}" if value < 0.9995 else f"{1e3 * value:.0f}"


def factor(value: float) -> str:
    """Return a ratio as text, with two or three digits."""
    return f"{value:.2g}" if value < 0.095 else f"{value:.2f}" if value < 9.95 else f"{value:.3g}"


def grid(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown: the first column aligned left, others right."""
    marks = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, marks, *lines))


def series(entries: Sequence[Row], part: str | None = None) -> dict[str, list[Row]]:
    """Return the rows by their sum; if a part of a run is named, only rows of this part."""
    result: dict[str, list[Row]] = {}
    for entry in entries:
        for r in record.measured(entry):
            if part is None or r["part"] == part:
                result.setdefault(r["series"], []).append(r)
    return result


def accuracy(entries: Sequence[Row]) -> tuple[str, str]:
    """Return errors and times by tolerance, a line each."""
    first, rows_again = (series(entries, part) for part in PARTS)
    lines, growths = [], {}
    for name, rows in first.items():
        growths[name] = record.ratio(rows[-1], rows[0])
        for r, row_again in zip(rows, rows_again[name], strict=True):
            figures = (
                f"{r['tolerance']:.0e}",
                f"{r['error']:.1e}",
                seconds(r["seconds"]),
                seconds(row_again["seconds"]),
            )
            lines.append((f"`{name}`", *figures, f"{r['memory'] / r['n']:.0f}"))
    sums = [r for rows in first.values() for r in rows]
    hits = sum(r["error"] <= r["tolerance"] for r in sums)
    reading = (
        f"The measured error is at most the tolerance in {hits} of {len(sums)} sums. A plan and its first call take "
        f"{_range(growths)} times as long at the smallest tolerance as at the largest."
    )
    return reading, grid(("sum", "tolerance", "error", *PARTS, "bytes a particle"), lines)


def growth(entries: Sequence[Row]) -> tuple[str, str]:
    """Return microseconds a particle by N, a sum a line."""
    first, rows_again = (series(entries, part) for part in PARTS)
    counts = sorted({r["n"] for rows in first.values() for r in rows})
    lines, growths = [], {}
    for name, rows in first.items():
        growths[name] = record.ratio(rows[-1], rows[0]) * rows[0]["n"] / rows[-1]["n"]
        cells = {
            r["n"]: f"{1e6 * r['seconds'] / r['n']:.3g} / {1e6 * row_again['seconds'] / r['n']:.3g}"
            for r, row_again in zip(rows, rows_again[name], strict=True)
        }
        lines.append((f"`{name}`", *(cells.get(n, "–") for n in counts)))
    reading = (
        "Microseconds a particle: a plan and its first call / the next call. At the largest N of each sum a particle "
        f"of the former takes {_range(growths)} times as long as at the smallest."
    )
    return reading, grid(("sum", *(f"N = {n:,}" for n in counts)), lines)


def phases(entries: Sequence[Row]) -> tuple[str, str]:
    """Return the milliseconds of each phase in the fastest run, a table for each set of phases."""
    times_of_sums = {name: fastest(rows) for name, rows in series(entries).items()}
    families: dict[str, list[str]] = {}
    for name in times_of_sums:
        families.setdefault("free" if name.startswith(("bldtt", "bltc")) else name.partition("-")[0], []).append(name)
    tables, longest = [], []
    for names in families.values():
        parts = list(dict.fromkeys(part for name in names for part in times_of_sums[name] if part != PARTS[0]))
        lines = []
        for part in (*parts, PARTS[0]):
            cells = [times_of_sums[name].get(part) for name in names]
            lines.append((part, *("–" if value is None else milliseconds(value) for value in cells)))
        tables.append(grid(("ms", *(f"`{name}`" for name in names)), lines))
    for name, parts in times_of_sums.items():
        longest_part = max((part for part in parts if part != PARTS[0]), key=lambda part: parts[part])
        longest.append(f"{longest_part} ({100 * parts[longest_part] / parts[PARTS[0]]:.0f} %) of `{name}`")
    return f"The longest phases: {', '.join(longest)}.", "\n\n".join(tables)


def fastest(rows: Sequence[Row]) -> dict[str, float]:
    """Return the seconds of each part of one sum in its fastest run."""
    record.together(rows, "a sum by its phases")
    [call] = [r for r in rows if r["part"] == PARTS[0]]
    index = call["times"].index(call["seconds"])
    return {r["part"]: r["times"][index] for r in rows}


def programs(entries: Sequence[Row]) -> tuple[str, str]:
    """Return times and errors of parki and of other programs, a line for each ratio."""
    lines, ratios = [], []
    for r, reference in compared(entries):
        common, name, own_name = apart(reference["what"], r["what"])
        ratios.append(record.ratio(reference, r))
        reference_text = f"{name}: {reference['error']:.1e}, {seconds(reference['seconds'])}"
        own_text = f"{own_name}: {r['error']:.1e}, {seconds(r['seconds'])}"
        lines.append((common, reference_text, own_text, factor(ratios[-1])))
    if not lines:
        return "No other program was there to compare with.", ""
    return _against("program", ratios), grid(("", "other: error, time", "parki: error, time", "ratio"), lines)


def kernels(entries: Sequence[Row]) -> tuple[str, str]:
    """Return rates of parki's kernels and of other code, a line for each ratio."""
    lines, ratios = [], []
    for r, reference in compared(entries):
        common, name, own_name = apart(reference["what"], r["what"])
        ratios.append(r["ratio"])
        reference_text, own_text = f"{name}: {reference['rate']:.3g}", f"{own_name}: {r['rate']:.3g}"
        lines.append((common, reference_text, own_text, r["unit"], factor(r["ratio"])))
    if not lines:
        return "No other code was there to compare with.", ""
    return _against("code", ratios), grid(("", "other", "parki", "unit", "ratio"), lines)


def threads(entries: Sequence[Row]) -> tuple[str, str]:
    """Return times on numbers of threads, a sum a line."""
    rows_of_sums = series(entries)
    counts = sorted({r["threads"] for rows in rows_of_sums.values() for r in rows})
    lines = []
    for name, rows in rows_of_sums.items():
        faster = [f" ({factor(r['ratio'])})" if "ratio" in r else "" for r in rows]
        cells = {r["threads"]: seconds(r["seconds"]) + note for r, note in zip(rows, faster, strict=True)}
        lines.append((f"`{name}`", f"{rows[0]['n']:,}", *(cells.get(n, "–") for n in counts)))
    speedups = {name: rows[-1]["ratio"] for name, rows in rows_of_sums.items() if "ratio" in rows[-1]}
    lowest, highest = (count(n, "thread") for n in (counts[0], counts[-1]))
    reading = f"A plan's further calls, and in brackets how many times as fast as on {lowest} they are"
    reading += f": on {highest} {_range(speedups)}." if speedups else "."
    return reading, grid(("sum", "N", *(count(n, "thread") for n in counts)), lines)


def rates(entries: Sequence[Row]) -> tuple[str, str]:
    """Return times and rates of all rows, with ratios where rows have them."""
    lines, ratios = [], []
    for entry in entries:
        for r in record.measured(entry):
            comparison = ""
            if "ratio" in r:
                ratios.append(r["ratio"])
                comparison = f"{factor(r['ratio'])} × {apart(r['against'], r['what'])[1]}"
            noise = f"+{spread(r['times']):.0%}" if len(r["times"]) > 1 else ""
            lines.append((r["what"], seconds(r["seconds"]), noise, f"{r['rate']:.3g} {r['unit']}", comparison))
    reading = "Each rate over that of the row that is named"
    reading += f": from {factor(min(ratios))} to {factor(max(ratios))}." if ratios else "."
    return reading, grid(("", "least", "median", "rate", "ratio"), lines)


def compared(entries: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return the rows with a ratio, each with the row that it is compared to."""
    pairs = []
    for entry in entries:
        rows = {r["what"]: r for r in record.measured(entry)}
        pairs += [(r, rows[r["against"]]) for r in rows.values() if "ratio" in r]
    return pairs


def _against(noun: str, ratios: Sequence[float]) -> str:
    """Return a sentence on ratios of the times of others to parki's."""
    faster = sum(ratio > 1 for ratio in ratios)
    middle = math.exp(statistics.fmean(map(math.log, ratios)))
    return (
        f"Parki takes less time than the other {noun} in {faster} of {len(ratios)} lines; the other's time over "
        f"parki's is from {factor(min(ratios))} to {factor(max(ratios))}, with a geometric mean of {factor(middle)}."
    )


def count(n: int, noun: str) -> str:
    """Return a number with its noun, in singular or plural."""
    return f"{n} {noun}s" if n != 1 else f"one {noun}"


def _range(factors: dict[str, float]) -> str:
    """Return the least and the largest of some numbers, each with its name."""
    low, high = (choose(factors, key=lambda name: factors[name]) for choose in (min, max))
    if low == high:
        return f"{factor(factors[low])} (`{low}`)"
    return f"from {factor(factors[low])} (`{low}`) to {factor(factors[high])} (`{high}`)"
