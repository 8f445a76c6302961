"""Trees of clusters of points, and lists of pairs of clusters: geometry only, for whichever method sums over them."""
