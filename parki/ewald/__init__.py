"""Spectral Ewald sums."""
