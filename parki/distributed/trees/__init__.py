"""Tree of all ranks, the same as in one process: every rank has the nodes of its own run of points."""
