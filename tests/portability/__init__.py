"""Tests of every kernel on every space."""
