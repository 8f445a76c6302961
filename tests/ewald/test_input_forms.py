"""Awkward points and every form of input: what a caller may pass, and what comes back."""
