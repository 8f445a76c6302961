"""Fast multipole sums over ranks: the boxes around a rank's own, values that travel, and work that is cut evenly."""
