"""One tree for all ranks, that of one process: every rank has the nodes of its own run of points."""
