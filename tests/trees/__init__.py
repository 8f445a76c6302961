"""Tests of trees, with shared helpers."""
