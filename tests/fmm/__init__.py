"""Tests of fast multipole sums, and what they share."""
