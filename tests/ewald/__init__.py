"""Tests of Ewald sums, and helpers that they share."""
