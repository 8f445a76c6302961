"""Tests of treecodes, and helpers that they share."""
