"""Command line: its words, and the commands that are more than one call of the library."""
