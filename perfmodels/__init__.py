"""Performance models: what each kernel costs, and the choices that follow."""
