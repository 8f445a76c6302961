"""Spaces, policies and launches."""
