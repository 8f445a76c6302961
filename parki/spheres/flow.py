"""Pair of which sums of spheres of several radii are made: the flow of forces and doublets, and its Laplacian."""

from dataclasses import replace

from parki.pairs import Pair

FAXEN = Pair(
    "rpy", 6, 6, "pair/faxen", names=("radius",), core=(2.0,), smooth=True, singular=False
)  # named as in a caller's request, for messages; the radius is the largest one
#: The same with doublets and Laplacians of the size of forces and flows, for methods that measure errors of all rows.
SIZED = replace(FAXEN, slots=(("SIZED", True),))
