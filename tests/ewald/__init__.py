"""Tests of Ewald sums, and what they share."""
