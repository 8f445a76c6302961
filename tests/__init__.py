"""Tests of parki."""
