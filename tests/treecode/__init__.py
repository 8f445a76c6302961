"""Tests of treecodes, and what they share."""
