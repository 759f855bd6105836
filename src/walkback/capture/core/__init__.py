"""Core files: their notes, memory and code."""
