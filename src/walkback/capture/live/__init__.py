"""Processes that run: their memory, mappings, registers and threads."""
