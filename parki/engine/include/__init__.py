"""C++ headers of the generated code (package data)."""
