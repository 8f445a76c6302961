"""Counts of the near field (P2P): a batch of targets goes over the sources of the cells in its reach.

The text of the kernel says what a batch, a row of cells, a source that is looked at and a pair within rc take.  Past
the first level of memory go, whatever the variant, the sources of every batch; of all these, memory gives every source
and target once.
"""

from dataclasses import dataclass

from parki.perfmodels.counts import Counts, TextTotals, levels


@dataclass(frozen=True)
class Near:
    """What the batches of a near field meet, all together.

    Attributes
    ----------
    n_targets, n_sources
        Points.
    batches
        Batches of targets.
    slabs, rows, columns, runs
        Layers of cells along x, columns along z in these, those of them within reach, and runs of sources that these
        are in the box and its images.
    tiles
        Pieces of at most so many sources (of scratch) that the runs are cut into.
    met, listed
        Sources of the cells, and those within rc of one target of the batch at least.
    looked_at, within
        Pairs of a target and a source of the cells, and those within rc.
    boxed
        Sources within rc of the boxes around batches.
    """

    n_targets: int
    n_sources: int
    batches: float
    slabs: float
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
        """Targets of a batch, as the sources that it meets find them."""
        return self.looked_at / self.met if self.met else 1.0


def counts(
    useful: TextTotals, done: TextTotals, near: Near, row: int, result: int, itemsize: int, device: bool = False
) -> Counts:
    """Count one near field.

    Parameters
    ----------
    useful, done
        What the text adds up to, for pairs within rc and targets that there are; and for all lanes of the vectors that
        have one of either.
    near
        What the batches meet.
    row, result
        Numbers of a source, and of the result at a target.
    itemsize
        Bytes of a number.
    device
        Whether scratch is apart from memory.
    """
    ends = itemsize * near.n_targets * (3 + result)
    amount, all_lanes = sum(useful.operations.values()), sum(done.operations.values())
    return Counts(
        operations=useful.operations,
        bytes=levels(useful, itemsize * row * near.met + ends, itemsize * row * near.n_sources + ends, device),
        atomics=useful.atomics,
        launches=1,
        fill=min(1.0, amount / all_lanes) if all_lanes else 1.0,
    )
