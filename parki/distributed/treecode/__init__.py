"""Treecodes over ranks: every rank has the targets of its places, and the sources that these need."""
