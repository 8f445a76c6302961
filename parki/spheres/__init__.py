"""Mobilities of spheres of several radii, by any method of summation."""
