"""Tests of performance models and benchmarks, and what they share."""
