"""Tests of the engine, and what they share."""
