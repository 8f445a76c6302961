"""Compilers, the object cache, and calls into compiled kernels."""
