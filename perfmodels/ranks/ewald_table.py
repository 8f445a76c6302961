"""`parki model ewald --ranks`: tables of weak and strong scaling, of parts of exchanges, and of published times."""

from __future__ import annotations

from dataclasses import replace

from parki.ewald.choice.question import Question
from parki.perfmodels.machine import Machine
from parki.perfmodels.network import Network
from parki.perfmodels.published import table11
from parki.perfmodels.ranks import ewald
from parki.perfmodels.ranks.ewald import Shared


def text(question: Question, machine: Machine, network: Network, ranks: int, published: bool = False) -> str:
    """Return tables of weak and strong scaling, and the parts of the largest weak sum."""
    name, n = question.kernel.name, question.n_sources
    lines = [f"{name}, tolerance {question.tolerance:g}, on ranks of {machine.name}, {network.name}: {network}"]
    rows = list(ewald.weak(question, machine, network, ranks))
    best, last = rows[0].work, rows[-1]
    lines += ["", f"weak: {n:,} points a rank", *_table(rows, [best] * len(rows))]
    rows = list(ewald.strong(question, machine, network, ranks))
    lines += ["", f"strong: {n:,} points", *_table(rows, [rows[0].work / row.ranks for row in rows])]
    bricks = f"bricks {last.shape[0]} × {last.shape[1]} along y and z"
    head, base_question = f"{last.ranks} ranks, {n:,} points each", replace(last.question, rc=question.rc)
    lines += ["", f"{head}: {bricks}, a rank, {last.memory / 1e9:.2f} GB", *_phases(last)]
    lines += ["", f"{head}, one way after the other", *_parts(last, base_question, machine, best)]
    if published:
        lines += ["", *table11.table(network)]
    return "\n".join(lines)


def _table(rows: list[Shared], ideal: list[float]) -> list[str]:
    lines = [f"{'ranks':>7}{'grid':>18}{'work':>12}{'messages':>12}{'call':>12}{'efficiency':>12}{'apart':>8}{'GB':>8}"]
    for row, best in zip(rows, ideal, strict=True):
        grid = "×".join(str(m) for m in row.whole.parameters.grid)
        times = "".join(f"{1e3 * s:>9.2f} ms" for s in (row.work, row.exchanged(), row.seconds))
        shares = f"{best / row.seconds:>12.3f}{best / row.apart:>8.3f}"
        lines.append(f"{row.ranks:>7}{grid:>18}{times}{shares}{row.memory / 1e9:>8.2f}")
    return lines


def _phases(row: Shared) -> list[str]:
    """Return lines on the messages of a rank and its work, by phase."""
    lines = []
    for name, nbytes in row.volumes._asdict().items():
        traffic = f"{nbytes / 1e6:>10.2f} MB in {row.messages[name]:>4} messages"
        lines.append(f"  {name:<14}{traffic}{1e3 * row.exchanged(name):>10.3f} ms")
    for name, phase in row.whole.phases.items():
        lines.append(f"  {name:<14}{1e3 * phase.bound.seconds / row.ranks:>40.3f} ms")
    return lines


def _parts(row: Shared, base_question: Question, machine: Machine, best: float) -> list[str]:
    """Return lines on the gain of each way to shorten exchanges."""
    lines = [f"  {'':<38}{'bricks':>10}{'rc':>10}{'messages':>14}{'call':>12}{'efficiency':>12}"]
    for name, ways in ewald.PARTS.items():
        prediction = ewald.predict(base_question, machine, row.network, row.ranks, ways)
        bricks = "×".join(map(str, prediction.shape))
        nbytes = sum(prediction.volumes) - ways.placed * prediction.volumes.sort
        figures = f"{prediction.whole.parameters.rc:>10.4g}{nbytes / 1e6:>11.0f} MB{1e3 * prediction.seconds:>9.2f} ms"
        lines.append(f"  {name:<38}{bricks:>10}{figures}{best / prediction.seconds:>12.3f}")
    return lines
