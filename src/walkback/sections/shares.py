"""What each of the tables of a file gives."""

from __future__ import annotations

from typing import TypedDict

from walkback.base.dataclass import dataclass
from walkback.table.source import Kind, TableSource


class ShareObject(TypedDict):
    """What one of several tables gives, as JSON."""

    name: str
    """The section, or `code`."""
    kind: Kind
    """The kind, as for `--source`."""
    bytes: int | None
    """Its size; null for a table of Go that has no section of its own, and for the code."""
    functions: int
    """The number of functions."""
    code_bytes: int
    """The bytes of their code."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one of several tables gives."""

    source: TableSource
    functions: int
    """How many functions."""
    code_bytes: int
    """Bytes of their code."""

    @property
    def kind(self) -> Kind:
        """What kind of table it is."""
        return self.source.kind

    def as_object(self) -> ShareObject:
        """For JSON."""
        return {
            "name": self.source.name,
            "kind": self.kind,
            "bytes": self.source.bytes,
            "functions": self.functions,
            "code_bytes": self.code_bytes,
        }
