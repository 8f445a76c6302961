"""Benchmarks: everything that measures, and the command `parki bench`."""
