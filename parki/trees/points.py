"""Points in the order of a tree."""

from dataclasses import dataclass

from parki.arrays import Array, module_of


@dataclass(frozen=True)
class Sorted:
    """Points in the order of a tree, in the space of the caller's points.

    Attributes
    ----------
    points : array (3, N)
    order : array (N,) of int32
        points[:, j] is the caller's point order[j].
    """

    points: Array
    order: Array

    @property
    def n(self) -> int:
        """Return the number of points."""
        return int(self.points.shape[1])

    @property
    def nbytes(self) -> int:
        """Return the bytes of both arrays."""
        return int(self.points.nbytes + self.order.nbytes)

    def originals(self) -> Array:
        """Return the points in the caller's order, exactly as they were sorted."""
        x = module_of(self.points).empty(self.points.shape, self.points.dtype)
        x[:, self.order] = self.points
        return x
