"""Rows of arrays whose values several ranks contribute to and others use, sent from contributors to users."""
