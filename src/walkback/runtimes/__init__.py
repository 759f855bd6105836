"""Interpreters of other languages: which functions of a program their evaluators run, by the memory of its process."""
