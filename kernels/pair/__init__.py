"""Pair interactions, one file each: the `pair` slot of the summation kernels."""
