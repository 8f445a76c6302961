"""Examples, one file per task; they are read as text, see ``parki examples``."""
