"""Shapes of products of spectra whose sources are in scratch (`kernels/m2l_block.py`), by the scratch of a team."""

from dataclasses import dataclass

from parki.fmm.blocks import DIRECTIONS

MATRIX = 128  # numbers of the translations between two octets: 8 × 8 complex ones


@dataclass(frozen=True)
class Staged:
    """Shape of a team's work.

    Attributes
    ----------
    run : int
        Target octets of a block.
    rows : int
        Target octets that a row of lanes adds up at a time.
    cap : int
        Source octets in scratch; blocks with more take them in turns.
    stride : int
        Numbers from one octet to the next in scratch: octets in a row begin in different banks.
    lanes : int
        Lanes of a row.
    """

    run: int
    rows: int
    cap: int
    stride: int
    lanes: int = 4

    @property
    def slots(self) -> dict[str, int]:
        """Return the slots of the workunit."""
        return {"RUN": self.run, "ROWS": self.rows, "CAP": self.cap, "LANES": self.lanes, "STRIDE": self.stride}

    @property
    def team(self) -> tuple[int, int]:
        """Return the rows of lanes of a team, and the lanes of a row."""
        return self.run // self.rows, self.lanes

    def scratch(self, itemsize: int) -> int:
        """Return the bytes of scratch of a team."""
        return itemsize * (MATRIX * DIRECTIONS + (self.cap + 1) * self.stride) + 4 * self.run * DIRECTIONS


#: Shapes with the sources of a cube of octets, which has those around it: 360 of 4 × 4 × 8, 216 of 4 × 4 × 4.
SHAPES = (Staged(128, 2, 360, 18), Staged(64, 1, 216, 17))


def shape(scratch: int, itemsize: int) -> Staged | None:
    """Return the first shape that a team's bytes of scratch suffice for; None if none fits, as with 0 bytes."""
    return next((shape for shape in SHAPES if shape.scratch(itemsize) <= scratch), None)
