"""Tests of parki in notebooks."""
