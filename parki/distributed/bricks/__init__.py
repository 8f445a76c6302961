"""Ewald sums over ranks: bricks of the grid with whole lines along x, and planes of modes in between."""
