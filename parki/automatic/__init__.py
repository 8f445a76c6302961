"""Sums by the method that is predicted to be the fastest one: `parki.sum` and `parki.fastest`."""
