"""Typed tree of one L0 text, and the analyses that read it."""
