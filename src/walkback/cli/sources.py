"""`--source`: which tables of a file a verb reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_READ = "Read call frame information, Go's table of functions, the Linux kernel's ORC table, the code itself, or all."


def source_option(
    *names: str,
    default: str | None = "auto",
    text: str = _READ,
) -> Callable[[F], F]:
    """The option; of no default, where a verb reads something else without it."""
    kinds = click.Choice(["auto", "cfi", "go", "orc", "code"])
    return click.option(*(names or ("--source", "tables")), type=kinds, default=default, show_default=True, help=text)


SOURCE = source_option()
MEASURED = source_option(
    default=None, text="Measure what is made of these, as by `derive`. [default: the tables that the file has]"
)
WORDS = {"cfi": "call frame information", "go": "Go's table", "orc": "the ORC table", "code": "the code"}
"""What the kinds are called."""


def missing_from(tables: str | None) -> str:
    """What a file without the tables that `--source` chooses does not have."""
    return WORDS.get(tables or "", "unwind tables")
