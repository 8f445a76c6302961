"""Published numbers, and models of the published methods."""
