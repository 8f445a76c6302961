"""Tests of the engine, and the helpers that they share."""
