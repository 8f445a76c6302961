"""Wall-clock times of a fast multipole sum by phase."""

from parki.timing import PhaseTimes

PHASES = {
    "tree": "octree",
    "lists": "interaction lists",
    "prepare": "operators, launches",
    "upward": "upward (P2M, M2M)",
    "m2l": "M2L",
    "p2l_m2p": "P2L, M2P",
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
        ``"upward"``, ``"m2l"``, ``"p2l_m2p"``, ``"downward"`` and ``"near"`` of its sums.
    pairs : dict
        Evaluations of the kernel in one sum, of phases that have nothing else: ``"near"``, ``"p2l_m2p"``.
    """

    PHASES, PLANNED = PHASES, PLANNED
