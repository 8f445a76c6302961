"""Wall-clock times of a treecode sum by phase."""

from parki.timing import PhaseTimes

PHASES = {
    "tree": "trees",
    "lists": "interaction lists",
    "upward": "upward pass",
    "pp": "particle–particle (PP)",
    "pc": "particle–cluster (PC)",
    "cp": "cluster–particle (CP)",
    "cc": "cluster–cluster (CC)",
    "downward": "downward pass",
}
PLANNED = ("tree", "lists")


class WallTime(PhaseTimes):
    """Seconds of wall-clock time of each phase of one or more sums; they add up.

    Attributes
    ----------
    time : dict
        Seconds by phase: ``"tree"`` and ``"lists"`` of making a plan, ``"upward"``, ``"pp"``, ``"pc"``, ``"cp"``,
        ``"cc"`` and ``"downward"`` of its sums.
    pairs : dict
        Evaluations of the kernel in one sum: ``"pp"``, ``"pc"``, ``"cp"``, ``"cc"``.
    """

    PHASES, PLANNED = PHASES, PLANNED
