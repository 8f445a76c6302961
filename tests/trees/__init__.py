"""Tests of trees, and what they share."""
