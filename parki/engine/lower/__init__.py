"""Lowering of the typed kernel to C++."""
