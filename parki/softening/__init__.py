"""Sums of charges with a softening length each, by any method of summation in free space."""
