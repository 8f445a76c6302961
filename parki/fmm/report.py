"""Phases of a fast multipole sum, for which `PhaseTimes` gives wall-clock times."""

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
