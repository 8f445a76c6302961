"""Every kernel on every space."""
