"""Values that several ranks make parts of and others use: rows of arrays, from contributors to users."""
