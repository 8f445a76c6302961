"""Tests of fast multipole sums, and their helpers."""
