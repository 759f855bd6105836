"""What is wrong with some bytes, and where: the shape that the small formats share, CBF and CIF."""

from __future__ import annotations

from dataclasses import dataclass

from walkback.errors import BacktraceError


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that is broken at some byte."""

    offset: int
    """In the bytes that were read."""
    rule: str
    """Its name, which does not change."""
    message: str
    note: bool = False
    """Whether this is only worth knowing: a strict reader takes it."""

    def __str__(self) -> str:
        kind = "note" if self.note else "wrong"
        return f"offset {self.offset:#x}: {kind}: {self.message} [{self.rule}]"

    def error(self) -> BacktraceError:
        """The same, to be raised."""
        return BacktraceError(self.message, offset=self.offset, rule=self.rule)

    def as_object(self) -> dict[str, object]:
        """The same for JSON."""
        return {"offset": self.offset, "rule": self.rule, "message": self.message, "note": self.note}
