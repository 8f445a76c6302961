"""Performance models: the cost of each kernel, and the choices that follow."""
