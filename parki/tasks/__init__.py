"""Sums cut into tasks: their graph, schedules of it on the cores and devices of a node, and runs of these."""
