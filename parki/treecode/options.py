"""Options of a treecode."""

from dataclasses import dataclass
from typing import ClassVar

from parki.arrays import PRECISIONS
from parki.names import Precision, TreecodeMethod
from parki.options import ToleranceOptions, option, share, whole
from parki.treecode import params

METHODS = ("dual", "pc", "cp")


@dataclass(frozen=True, kw_only=True)
class TreecodeOptions(ToleranceOptions):
    """Options of a treecode.

    Parameters
    ----------
    method : {"dual", "pc", "cp"}, default "dual"
        Dual tree traversal; batches of targets against clusters of sources; clusters of targets against batches of
        sources.
    theta : float, default 0.7
        Clusters are far where the sum of their radii is less than theta times the distance of their centres.
    degree : int, default 8
        Degree of interpolation of clusters at that limit, up to 23; those further apart have less, for the same error.
    tolerance : float, optional
        Relative error, as a 2-norm over all targets; instead of `theta` and `degree`, which are then chosen.
    leaf_size : int, optional
        Points of a leaf of the sources' tree (``"cp"``: of the targets') at most; chosen if not given.
    batch_size : int, optional
        Points of a leaf of the targets' tree, or of a batch, at most; chosen if not given.
    far_precision : {"double", "single"}, optional
        Precision of sums over proxy points; by default single where the error allows.
    """

    TITLE: ClassVar[str] = "treecodes"
    method: TreecodeMethod = option("dual", choices=METHODS)
    theta: float | None = option(None, share)
    degree: int | None = option(None, whole(params.MOST_DEGREE))
    batch_size: int | None = option(None, whole())
    far_precision: Precision | None = option(None, choices=(None, *PRECISIONS))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tolerance is not None and (self.theta is not None or self.degree is not None):
            raise ValueError("tolerance was given with theta or degree, which it chooses; expected one or the other.")
