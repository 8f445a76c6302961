"""Workunits: plain PyKokkos kernel files, read as text by parki.engine and never executed."""
