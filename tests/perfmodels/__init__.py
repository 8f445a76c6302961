"""Tests of performance models and benchmarks, and their shared helpers."""
