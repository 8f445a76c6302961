"""Counts of the near field (P2P): a batch of targets goes over the sources of the cells in its reach.

The kernel's text gives the operations of a batch, a row of cells, a source that is looked at and a pair within rc.  In
every variant the sources of every batch go past the first level of memory; memory itself gives every source and target
once.
"""

from dataclasses import dataclass

from parki.perfmodels.counts.totals import Counts, TextTotals, levels


@dataclass(frozen=True)
class Near:
    """Totals of cells, sources and pairs that the batches of a near field meet.

    Attributes
    ----------
    n_targets, n_sources
        Points.
    batches
        Batches of targets.
    rows, columns, runs
        Columns of cells along z, columns within reach, and runs of sources that these columns form in the box and its
        images.
    tiles
        Pieces that the runs are cut into, each of at most as many sources as scratch holds.
    met, listed
        Sources of the cells, and sources within rc of at least one target of the batch.
    looked_at, within
        Pairs of a target and a source of the cells, and pairs within rc.
    boxed
        Sources within rc of the boxes around batches.
    """

    n_targets: int
    n_sources: int
    batches: float
    rows: float
    columns: float
    runs: float
    tiles: float
    met: float
    listed: float
    looked_at: float
    within: float
    boxed: float = 0.0

    @property
    def size(self) -> float:
        """Mean number of targets of a batch, weighted with the sources that it meets."""
        return self.looked_at / self.met if self.met else 1.0


def counts(
    useful: TextTotals, lane_totals: TextTotals, near: Near, row: int, result: int, itemsize: int, device: bool = False
) -> Counts:
    """Count the work of one near field.

    Parameters
    ----------
    useful, lane_totals
        Totals of the kernel's text: for pairs within rc and targets that exist; and for all lanes of the vectors that
        have one of either.
    near
        Totals of the batches.
    row, result
        Numbers of a source, and of the result at a target.
    itemsize
        Bytes of a number.
    device
        Whether scratch is apart from memory.
    """
    ends = itemsize * near.n_targets * (3 + result)
    amount, all_lanes = sum(useful.operations.values()), sum(lane_totals.operations.values())
    return Counts(
        operations=useful.operations,
        bytes=levels(useful, itemsize * row * near.met + ends, itemsize * row * near.n_sources + ends, device),
        atomics=useful.atomics,
        launches=1,
        fill=min(1.0, amount / all_lanes) if all_lanes else 1.0,
    )
