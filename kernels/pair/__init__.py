"""Pair interactions, one file each: the `pair` slot of the summation kernels.

``pair`` adds the field of one source to the NU numbers of u: (dx, dy, dz) = target - source, r2 is its square, w = 1/r
or 0 for a coincident pair, s has the NS numbers of the source, and far the NF far parts of the split if SCREENED.
"""
