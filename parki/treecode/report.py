"""Phases of a treecode sum, for which `PhaseTimes` gives wall-clock times."""

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
