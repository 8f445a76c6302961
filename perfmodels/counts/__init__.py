"""Counts of work: operations and bytes of each kernel, from their texts and the sizes of a sum."""
