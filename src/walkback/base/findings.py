"""What is wrong with some bytes, and where: the shapes that formats share."""

from __future__ import annotations

from enum import IntEnum
from typing import Self, TypedDict

from walkback.base.dataclass import dataclass
from walkback.base.errors import BacktraceError


class Fault(IntEnum):
    """What can be wrong: a number for columns, words for people, and the name of the rule that it breaks."""

    words: str
    rule: str

    def __new__(cls, number: int, words: str = "", rule: str = "") -> Self:
        """A member is a number, or a number with these."""
        member = int.__new__(cls, number)
        member._value_, member.words, member.rule = number, words, rule
        return member


class ByteFindingObject(TypedDict):
    """A finding in some bytes, as JSON."""

    offset: int
    """The offset."""
    rule: str
    """The rule."""
    message: str
    """A description."""
    note: bool
    """Whether nothing is wrong."""


@dataclass(frozen=True, slots=True)
class ByteFinding:
    """A rule of CBF or CIF that is broken at some byte."""

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

    def as_object(self) -> ByteFindingObject:
        """The same for JSON."""
        return {"offset": self.offset, "rule": self.rule, "message": self.message, "note": self.note}
