"""CPython 3.11 to 3.15."""
