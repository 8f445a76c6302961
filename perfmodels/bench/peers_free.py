"""Sums in free space beside other programs, whose times are interpolated to parki's errors: `parki bench peers-free`.

FMM3D, PVFMM, exafmm-t and DMK stand beside `parki.fmm.kifmm`, BaryTree beside `parki.treecode.bldtt`, each with several
settings of its own accuracy: see `peers_free_programs`, `peers_free_libraries` and `peers_free_dmk`.  Everything is
measured in one process, in turns, on one core unless threads are asked for.  Sums of new points include trees and
lists; sums of new charges keep these, where a program can.  Potentials stand beside programs that can sum potentials
alone, gradients beside all.

Errors are relative 2-norms at 1000 targets against the direct sum, of gradients where these are computed.  Settings
that another one beats in time and error do not count.  Between the others the logarithm of time is linear in that of
the error.  Nothing is extrapolated: a parki more accurate than all settings gives a bound, the time of the most
accurate one; a parki less accurate than all gives no ratio.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from parki import direct, pairs, samples
from parki.arrays import Array
from parki.engine import Space, workers
from parki.perfmodels.bench import methods, peers_free_programs, plot
from parki.perfmodels.bench.measure import Row, clock, require_host, row, spread, turns
from parki.perfmodels.bench.peers import AGREE, relative
from parki.perfmodels.bench.peers_free_sums import PeerProgram, PeerSession, PeerSum
from parki.perfmodels.bench.trees import one_core

POINTS = ("uniform", "sphere", "plummer")
SUMS = (
    PeerSum("coulomb"),
    PeerSum("coulomb", gradient=True),
    PeerSum("yukawa"),
    PeerSum("yukawa", gradient=True),
    PeerSum("stokes_sl"),
)
TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9)  # of parki, down to the one that is asked for
SAMPLE = 1000  # targets at which errors are measured
NEW = "new points", "new charges"
LEAST, COARSER = "at least", "coarser than all"  # notes on times that are not interpolated


class OwnProgram(PeerProgram):
    """A method of parki, whose settings are tolerances, with gradients alone or beside potentials."""

    def __init__(self, method: str, is_alone: bool, tolerances: Sequence[float], space: Space) -> None:
        self.name, self.against, self.alone = f"parki {method}" + is_alone * " alone", method, is_alone
        self.tolerances, self.space = tolerances, space

    def settings(self, sum_: PeerSum) -> Sequence[float]:
        """Return tolerances."""
        return self.tolerances

    def label(self, setting: float) -> str:
        """Return the tolerance as text."""
        return f"{setting:g}"

    def session(self, sum_: PeerSum, setting: float) -> PeerSession:
        """Return a sum, with a plan of its own for new points."""
        return _OwnSession(self, sum_, setting)


class _OwnSession(PeerSession):
    def __init__(self, program: OwnProgram, sum_: PeerSum, tolerance: float) -> None:
        self.sum, self.make, self.plan = sum_, methods.PLANS[program.against], None
        self.gradient = "only" if sum_.gradient and program.alone else sum_.gradient
        self.options = {"tolerance": tolerance, "execution_space": program.space} | sum_.parameters

    def points(self, x: Array, q: Array) -> Array:
        self.plan = self.make(self.sum.kernel, x, x, gradient=self.gradient, **self.options)
        return self.charges(q)

    def charges(self, q: Array) -> Array:
        result = self.plan(q)
        return result[1] if self.gradient is True else result

    def close(self) -> None:
        self.plan = None


@dataclass(frozen=True)
class PeerTimes:
    """Error of a sum by one program with one setting, and the times of `NEW`: None where charges take a whole sum."""

    program: PeerProgram
    setting: Any
    error: float
    points: list[float]
    charges: list[float] | None

    def best(self, part: str) -> float:
        """Return the least time of a part of `NEW`."""
        return min(self.charges if part == NEW[1] and self.charges else self.points)


def peers_free(args: argparse.Namespace, space: Space) -> list[Row]:
    """Return rows of all points and sums, with parki's own, and for each absent program a row on its installation.

    Raises
    ------
    ValueError
        For a space that is not on the host, libraries that are not known or do not load, and sums of other names.
    RuntimeError
        If a program and the direct sum disagree.
    """
    require_host(space)
    space = one_core(args, space)
    programs, rows = peers_free_programs.programs(getattr(args, "library", None) or ())
    shapes = [args.points] if getattr(args, "points", None) else POINTS
    tolerances = [t for t in TOLERANCES if t >= args.tolerance] or [args.tolerance]
    with threadpool_limits(workers(space)):  # of OpenMP and of BLAS, in all libraries that are loaded by now
        for shape, sum_ in itertools.product(shapes, methods.chosen(args, SUMS)) if programs else ():
            rows += compared(programs, tolerances, shape, sum_, args, space)
    return rows


def compared(
    programs: Sequence[PeerProgram], tolerances: Sequence[float], shape: str, sum_: PeerSum,
    args: argparse.Namespace, space: Space,
) -> list[Row]:  # fmt: skip
    """Return the rows of one sum: those of the programs that have it, and of parki's methods that stand beside them."""
    peers = [program for program in programs if program.settings(sum_)]
    sides = dict.fromkeys(peer.side(sum_) for peer in peers)
    own_programs = [OwnProgram(*side, tolerances, space) for side in sides]
    times = measured([*peers, *own_programs], shape, sum_, args, space)
    rows = []
    for t, part in itertools.product(times, NEW):
        seconds = t.points if part == NEW[0] else t.charges
        if seconds is None:
            continue
        is_own = isinstance(t.program, OwnProgram)
        details = {"n": args.n, "threads": workers(space), "tolerance": t.setting if is_own else 0.0}
        details |= {"error": t.error, "series": t.program.name, "setting": t.program.label(t.setting)}
        details |= {"points": shape, "sum": str(sum_), "part": part}
        title = f"{shape}, {sum_}, N = {args.n:,}: {t.program.name}, {details['setting']}, {part}"
        rows.append(row(title, seconds, args.n / 1e6, "M particles", **details))
        if is_own:
            rows[-1] |= ratios(t, [peer for peer in peers if peer.side(sum_) == t.program.side(sum_)], times, part)
    return rows


def measured(
    programs: Sequence[PeerProgram], shape: str, sum_: PeerSum, args: argparse.Namespace, space: Space
) -> list[PeerTimes]:
    """Return errors and times of all programs with all their settings, which take turns.

    Raises
    ------
    RuntimeError
        If a program does not agree with the direct sum with any setting.
    """
    x, components = getattr(samples, shape)(args.n, seed=1), pairs.find(sum_.kernel, **sum_.parameters).dens
    q = samples.charges(components * args.n, seed=2)
    q = q if components == 1 else q.reshape(components, args.n)
    sample = np.random.default_rng(0).permutation(args.n)[:SAMPLE]
    options = {"gradient": "only" if sum_.gradient else False, "execution_space": space} | sum_.parameters
    exact = direct.plan(sum_.kernel, x[:, sample], x, **options)(q)
    runs = [(program, setting) for program in programs for setting in program.settings(sum_)]
    sessions = [program.session(sum_, setting) for program, setting in runs]
    errors = [_error(session, x, q, sample, exact) for session in sessions]  # the turn that does not count
    for program in programs:
        best = min(error for (owner, _), error in zip(runs, errors, strict=True) if owner is program)
        if not best < AGREE:
            raise RuntimeError(
                f"{program.name} and the direct sum of {sum_}, {shape} points, differ by {best:.1e}; "
                "expected the same sums"
            )
    times = turns([measure for session in sessions for measure in _clocks(session, x, q)], args.repeat, warm=False)
    return [
        PeerTimes(*run, error, points, charges if session.keeps else None)
        for run, session, error, points, charges in zip(runs, sessions, errors, times[::2], times[1::2], strict=True)
    ]


def _error(session: PeerSession, x: Array, q: Array, sample: Array, exact: Array) -> float:
    """Return the error of a sum of new points, or of one of new charges after other ones if that is larger."""
    error = relative(session.points(x, q)[..., sample], exact)
    if session.keeps:
        session.charges(q[..., ::-1].copy())
        error = max(error, relative(session.charges(q)[..., sample], exact))
    session.close()
    return error


def _clocks(session: PeerSession, x: Array, q: Array) -> tuple[Callable[[], float], Callable[[], float]]:
    """Return functions that time new points, and then new charges; only one session has a tree at a time."""

    def charges() -> float:
        seconds = clock(lambda: session.charges(q))() if session.keeps else math.nan
        session.close()
        return seconds

    return clock(lambda: session.points(x, q)), charges


# Interpolation -------------------------------------------------------------------------------------------------------
def front(results: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the errors and times that no other setting beats in both, the least error first.

    Errors that are as large as those of another sum do not count.
    """
    fastest: list[tuple[float, float]] = []
    for error, seconds in sorted(results):
        if error < AGREE and (not fastest or seconds < fastest[-1][1]):
            fastest.append((error, seconds))
    return fastest


def interpolated(error: float, results: Sequence[tuple[float, float]]) -> tuple[float | None, str]:
    """Return the time of a program at an error, and a note if it is not interpolated.

    Parameters
    ----------
    error
    results
        Errors and times of the program.

    Returns
    -------
    tuple
        Seconds and ``""``; below all errors the time of the least one, and `LEAST`; above all of them None and
        `COARSER`.
    """
    errors, times = np.array(front(results)).T
    if error > errors[-1]:
        return None, COARSER
    if error < errors[0]:
        return float(times[0]), LEAST
    return float(np.exp(np.interp(np.log(error), np.log(errors), np.log(times)))), ""


def ratios(times_of_parki: PeerTimes, peers: Sequence[PeerProgram], times: Sequence[PeerTimes], part: str) -> Row:
    """Return the times of programs at parki's error over that of parki, and the least of them with its program."""
    results, seconds_of_parki = [], times_of_parki.best(part)
    for peer in peers:
        seconds, note = interpolated(
            times_of_parki.error, [(t.error, t.best(part)) for t in times if t.program is peer]
        )
        results.append({"name": peer.name, "ratio": seconds and seconds / seconds_of_parki, "note": note})
    comparisons = [result for result in results if result["ratio"] is not None]
    if not comparisons:
        return {"peers": results}
    lowest = min(comparisons, key=lambda result: result["ratio"])
    return {"peers": results, "ratio": lowest["ratio"], "against": " ".join([lowest["note"], lowest["name"]]).strip()}


# Table and picture ---------------------------------------------------------------------------------------------------
def table(rows: Sequence[Row]) -> str:
    """Return errors and times, a setting a line, and the times of other programs at parki's errors over parki's."""
    rows_measured = [r for r in rows if "seconds" in r]
    lines = [f"{r['what']}: not measured, {r['absent']}" for r in rows if "absent" in r]
    width = max((len(_name(r)) for r in rows_measured), default=0)
    for title, group in itertools.groupby(rows_measured, lambda r: r["what"].partition(": ")[0]):
        lines += ["", f"{title:<{width}}{'error':>10}{'points, ms':>12}{'median':>8}{'charges, ms':>13}   over it"]
        for name, parts in itertools.groupby(group, _name):
            points, *charges = parts
            noise = f"{spread(points['times']):+.0%}" if len(points["times"]) > 1 else ""
            again = f"{1e3 * charges[0]['seconds']:.2f}" if charges else "–"
            figures = f"{points['error']:>10.1e}{1e3 * points['seconds']:>12.2f}{noise:>8}{again:>13}"
            lines.append(f"{name:<{width}}{figures}   {_over(points, *charges)}".rstrip())
    return "\n".join(lines).strip()


def _name(r: Row) -> str:
    return f"{r['series']}, {r['setting']}"


def _over(*parts: Row) -> str:
    """Return the ratios of the rows of new points and new charges, a program after the other."""
    programs = zip(*(r.get("peers", []) for r in parts), strict=True)
    return "; ".join(f"{results[0]['name']} {', '.join(map(_ratio, results))}" for results in programs)


def _ratio(result: Row) -> str:
    """Return a ratio as text, with a sign of a bound; a dash where there is none."""
    return "–" if result["ratio"] is None else "≥ " * (result["note"] == LEAST) + f"{result['ratio']:.3g}"


def draw(figure: Any, rows: Sequence[Row]) -> None:
    """Draw seconds against errors, a panel for each sum and kind of points; times of new charges are dashed.

    Lines join the settings that count.
    """
    shapes, sums = (list(dict.fromkeys(r[name] for r in rows)) for name in ("points", "sum"))
    figure.set_size_inches(3.2 * max(len(shapes), 2), 2.5 * max(len(sums), 1) + 1.0)
    if not rows:
        return
    panels = figure.subplots(len(sums), len(shapes), squeeze=False)
    series = list(dict.fromkeys(r["series"] for r in rows))
    for (i, sum_), (j, shape), (k, name) in itertools.product(*map(enumerate, (sums, shapes, series))):
        for part, style in zip(NEW, ("-", "--"), strict=True):
            values = {"points": shape, "sum": sum_, "part": part, "series": name}.items()
            if results := front([(r["error"], r["seconds"]) for r in rows if values <= r.items()]):
                label = name if part == NEW[0] else None
                mark = {"marker": plot.MARKS[k % len(plot.MARKS)], "ms": 4, "color": f"C{k}"}
                panels[i, j].plot(*zip(*results, strict=True), style, label=label, **mark)
    for (sum_, shape), axes in zip(itertools.product(sums, shapes), panels.flat, strict=True):
        axes.set(xscale="log", yscale="log", xlabel="error", ylabel="s")
        axes.set_title(f"{sum_}, {shape}", fontsize=9)
        axes.grid(alpha=0.3)
        axes.invert_xaxis()
    handles = {text: line for axes in panels.flat for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
