"""Compilers, the cache of objects, and loading."""
