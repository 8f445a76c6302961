"""Radial kernels phi(r), one file each: the `radial` slot of pair/radial.py."""
