"""Where code comes from."""

from __future__ import annotations

from typing import NamedTuple


class SourceLine(NamedTuple):
    """A line of a source file, and the function around it."""

    file: str | None
    """None where it is not known."""
    line: int
    """0 where it is not known: compilers give some instructions none."""
    function: str | None = None
    """As debugging information has it: the name of its symbol, if there is one."""

    @property
    def place(self) -> str:
        """The file and the line, as people write them."""
        return f"{self.file}:{self.line}"
