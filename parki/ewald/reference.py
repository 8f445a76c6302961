"""Options of second sums that share no parameter with a first sum, to measure its error."""

from typing import Any

from parki.ewald.choice.params import Parameters
from parki.ewald.geometry import Geometry
from parki.ewald.options import EwaldOptions

FINEST = 1e-13  # least tolerance of the second sum, as a hundredth of the first may exceed double precision
LARGE, SMALL = 0.45, 0.3  # near-field radius of the second sum in shortest sides; large is cheap for few targets
APART = 1.25  # least ratio of the radii of the two sums


def other(options: EwaldOptions, p: Parameters, geometry: Geometry) -> dict[str, Any]:
    """Return the options in which the second sum differs from the first; parameters are in the stages' unit."""
    shortest = min(p.box[: p.periodicity])
    radius = (LARGE if not LARGE / APART < p.rc / shortest < LARGE * APART else SMALL) * shortest
    split = "gaussian" if options.split == "prolate" else "prolate"
    finer = {"tolerance": max(options.tolerance / 100, FINEST), "split": split, "cell_size": None}
    return finer | {"rc": geometry.outer(radius), "far_precision": "double"}
