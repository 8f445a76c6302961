"""Wall-clock times of a fast multipole sum by phase."""

from parki.timing import PhaseTimes

PHASES = {
    "tree": "octree",
    "lists": "interaction lists",
    "prepare": "operators, launches",
    "upward": "upward (P2M, M2M)",
    "across": "across (M2L)",
    "uneven": "uneven (M2P, P2L)",
    "downward": "downward (L2L, L2P)",
    "near": "near (P2P)",
}
PLANNED = ("tree", "lists", "prepare")


class WallTime(PhaseTimes):
    """Seconds of wall-clock time of each phase of one or more sums; they add up.

    Attributes
    ----------
    time : dict
        Seconds by phase: ``"tree"``, ``"lists"`` and ``"prepare"`` (operators, arrays and launches) of making a plan,
        ``"upward"``, ``"across"``, ``"uneven"``, ``"downward"`` and ``"near"`` of its sums.
    pairs : dict
        Evaluations of the kernel in one sum, of phases that have nothing else: ``"near"``, ``"uneven"``.
    """

    PHASES, PLANNED = PHASES, PLANNED
