"""Questions that parameters are chosen for: kernel, points and their arrangement, tolerance, execution space."""

from dataclasses import dataclass, replace

import numpy as np

from parki.engine import Space
from parki.ewald import kernels
from parki.ewald.choice import params
from parki.ewald.choice.arrangement import Arrangement
from parki.ewald.choice.params import REACH
from parki.ewald.kernel import Kernel
from parki.ewald.split import profiles
from parki.perfmodels.select import Domain

WHOLE, LEAST_HEIGHT = 0.9, 2.0**-10  # shares of a free side: one that counts as all of it, and the least that counts


@dataclass(frozen=True)
class Question:
    """Sum that parameters are chosen for; lengths are in the unit of its stages.

    Attributes
    ----------
    kernel : Kernel
        Kernel or its name.
    box : tuple of float (3,)
        Sides.
    n_targets, n_sources : int
    tolerance : float
        Relative RMS error.  Smaller values than the types reach (5e-14, 1e-6) give the parameters of their reach.
    dtype, split : str
        Floating type and profile.
    rc : float, optional
        Cutoff of the near field, at most the shortest periodic side; chosen if neither `rc` nor `cell_size` is set.
    cell_size : float, optional
        Instead of `rc`: the expected number of sources in a cube of side rc (at most the shortest side).
    far : str, optional
        Type of the far field; by default single precision if the tolerance allows.
    periodicity, skew
        As in `Parameters`.
    rhs : int
        Right-hand sides at once.
    arrangement : Arrangement, optional
        Arrangement of the points; by default even, with targets equal to sources if their numbers are equal.
    sizes : tuple of float
        Sizes of the sum by layer of the kernel over those of random strengths, at most 1; empty if unknown.
    space : Space, optional
        Execution space of the sum, which decides its costs; by default those of `perfmodels.machine.Costs`.

    Raises
    ------
    ValueError
        For an unknown kernel, type or split, a box or tolerance that is not positive, negative numbers of points, a far
        field in double precision of a sum in single precision, both `rc` and `cell_size`, or an `rc` that is not
        positive or longer than a periodic side.
    """

    kernel: Kernel
    box: tuple[float, float, float]
    n_targets: int
    n_sources: int
    tolerance: float
    dtype: str = "float64"
    split: str = "prolate"
    rc: float | None = None
    cell_size: float | None = None
    far: str | None = None
    periodicity: int = 3
    skew: tuple[float, float, float] | None = None
    rhs: int = 1
    arrangement: Arrangement | None = None
    space: Space | None = None
    sizes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        kernel = kernels.find(self.kernel) if isinstance(self.kernel, str) else self.kernel
        values = {"kernel": kernel, "box": tuple(float(side) for side in self.box)}
        values |= {"dtype": np.dtype(self.dtype).name, "tolerance": float(self.tolerance)}
        if values["dtype"] == "float32" and self.far is None:
            values["far"] = "float32"
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check_types()
        self._check_numbers()

    @property
    def same(self) -> bool:
        """Tell whether the targets are the sources; without an arrangement, whether their numbers are equal."""
        return self.n_targets == self.n_sources if self.arrangement is None else self.arrangement.same

    @property
    def crowding(self) -> tuple[float, ...]:
        """Return `arrangement.crowding` of the points, empty without an arrangement."""
        return self.arrangement.crowding if self.arrangement else ()

    @property
    def reach(self) -> float:
        """Return the best relative error of the far field's type, or of the points' type if the former is not set."""
        return REACH[self.far or self.dtype]

    @property
    def domain(self) -> Domain:
        """Return the domain for the models, with a tolerance that the types reach."""
        edges = params.edges(self.box, self.skew)
        return Domain(self.box, self.periodicity, max(self.tolerance, self.reach), edges, self.crowding)

    def resolved(self) -> "Question":
        """Return the question with a cutoff in place of a cell size, of rounded regularity, and without a space.

        Nearby questions then share their parameters.
        """
        rc = self.rc
        if self.cell_size is not None:
            rc = (self.cell_size * float(np.prod(self.box)) / max(self.n_sources, 1)) ** (1 / 3)
        rc = None if rc is None else min(float(rc), params.most_cutoff(self.box, self.periodicity))
        regular = self.arrangement.regular if self.arrangement else 0.0
        # Rounded up, because even a shaken lattice is closer to a perfect one than to random points.
        crystal = float(np.ceil(16 * regular**0.7)) / 16 if regular > 0 else float(np.floor(8 * regular)) / 8
        height = self.arrangement.height if self.arrangement else 1.0
        # Rounded down, because a smaller one gives smaller sums.
        steps = 0.5 * np.floor(2 * np.log2(max(height, LEAST_HEIGHT)))
        height = 1.0 if height > WHOLE or self.periodicity != 2 else float(2.0**steps)
        arrangement = Arrangement(crystal, self.crowding, self.same, height)
        return replace(self, rc=rc, cell_size=None, arrangement=arrangement, space=None)

    def _check_types(self) -> None:
        if self.dtype not in REACH:
            raise ValueError(f"dtype: found {self.dtype!r}, expected one of {tuple(REACH)}")
        if self.far is not None and self.far not in REACH:
            raise ValueError(f"far: found {self.far!r}, expected one of {tuple(REACH)}, or None to have it chosen")
        if (self.dtype, self.far) == ("float32", "float64"):
            raise ValueError(f"far: found {self.far!r} with dtype {self.dtype!r}, expected 'float32'")
        if self.split not in profiles.SPLITS:
            raise ValueError(f"split: found {self.split!r}, expected one of {profiles.SPLITS}")

    def _check_numbers(self) -> None:
        if len(self.box) != 3 or not all(np.isfinite(side) and side > 0 for side in self.box):
            raise ValueError(f"box: found {self.box}, expected three positive lengths")
        if min(self.n_targets, self.n_sources) < 0:
            counts = f"{self.n_targets}, {self.n_sources}"
            raise ValueError(f"n_targets, n_sources: found {counts}, expected numbers >= 0")
        if not self.tolerance > 0:
            raise ValueError(f"tolerance: found {self.tolerance}, expected a positive number")
        if self.rc is not None and self.cell_size is not None:
            raise ValueError("rc, cell_size: found both, expected at most one")
        limit = min(self.box[: self.periodicity], default=np.inf)
        if self.rc is not None and not 0 < self.rc <= limit * (1 + 1e-12):
            raise ValueError(f"rc: found {self.rc}, expected a number in (0, {limit}], the shortest periodic side")
        if self.cell_size is not None and not self.cell_size > 0:
            raise ValueError(f"cell_size: found {self.cell_size}, expected a positive number")
