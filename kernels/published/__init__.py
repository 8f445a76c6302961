"""Variants of the published systems that are kept for comparison; no choice of parameters takes them by itself."""
