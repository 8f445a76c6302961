"""Programs for tests: drawn at random, written by hand, with one fault each; and batches of compiled programs."""
