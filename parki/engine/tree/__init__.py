"""From that text to a typed tree, and the analyses that read the tree."""
