"""From a kernel file and the values of its slots to one complete, readable text."""
