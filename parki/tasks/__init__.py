"""Sums cut into tasks: their graph, and its schedules and runs on the cores and devices of a node."""
