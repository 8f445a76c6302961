"""Models of sums in one process: the command `parki model`."""
