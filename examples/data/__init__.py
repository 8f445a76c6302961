"""Files that examples read."""
