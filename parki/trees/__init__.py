"""Trees of clusters of points, and lists of pairs of clusters: geometry only, for any method that sums over them."""
