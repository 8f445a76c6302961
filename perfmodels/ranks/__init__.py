"""Models of sums over ranks: work, messages and the making of plans."""
