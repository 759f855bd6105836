"""A copy of an `ar` archive in which some members have other contents.

Headers, names, order and padding stay. The size in a member's header follows, and so do the offsets in the symbol
index, which are those of the headers of members; the symbols are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError, GraftError
from walkback.elf import layout
from walkback.elf.archive import AR_HEADER, ArchiveIndex, Member, entries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from walkback.base.arrays import I64, Numbers
    from walkback.elf.write import Part

_SIZE_FIELD = slice(48, 58)
_LARGEST_MEMBER = 10**10


@dataclass(frozen=True, slots=True)
class _Change:
    """New contents for a stretch of the archive, which is a member up to its padding."""

    start: int
    end: int
    """Where what follows begins."""
    parts: list[Part]

    @property
    def growth(self) -> int:
        return sum(map(len, self.parts)) - (self.end - self.start)


def rewritten(data: memoryview, name: str, change: Callable[[Member], Sequence[Part] | None]) -> list[Part]:
    """A copy of an archive with the contents that `change` gives for a member; None leaves it as it is."""
    if bytes(data[:8]) == layout.ARMAG_THIN:
        raise GraftError(
            "this is a thin archive, which holds no objects; change the object files themselves", file=name
        )
    found = list(entries(data, name))
    members = [entry for entry in found if isinstance(entry, Member)]
    changes = []
    for member in members:
        contents = change(member)
        if contents is not None:
            changes.append(_changed(data, name, member, contents))
    if not changes:
        return [data]
    moved = _Moved(np.array([one.header for one in members], np.int64), changes)
    indexes = [_moved_index(one, name, moved) for one in found if isinstance(one, ArchiveIndex)]
    parts: list[Part] = []
    position = 0
    for one in sorted([*changes, *indexes], key=lambda one: one.start):
        parts += [data[position : one.start], *one.parts]
        position = one.end
    return [*parts, data[position:]]


def _changed(data: memoryview, name: str, member: Member, contents: Sequence[Part]) -> _Change:
    """A member with other contents; what BSD keeps of its name before them stays."""
    body = member.header + AR_HEADER.size
    size = member.offset - body + sum(map(len, contents))
    if size >= _LARGEST_MEMBER:
        raise GraftError(
            f"member {member.name} becomes larger than an archive can say", file=name, offset=member.header
        )
    header = bytearray(data[member.header : member.offset])
    header[_SIZE_FIELD] = b"%-10d" % size
    end = member.offset + len(member.data)
    end = min(end + end % 2, len(data))
    return _Change(member.header, end, [bytes(header), *contents, b"\n" * (size % 2)])


class _Moved:
    """Where the headers of members come to stand."""

    def __init__(self, headers: I64, changes: list[_Change]) -> None:
        self.headers = headers
        growth = np.cumsum([0, *(one.growth for one in changes)])
        self._now = headers + growth[np.searchsorted([one.start for one in changes], headers)]

    def __call__(self, offsets: I64) -> I64 | None:
        """The new offsets; None if one of them is not that of a header."""
        if not len(offsets):
            return offsets
        numbers = np.searchsorted(self.headers, offsets).clip(max=len(self.headers) - 1)
        known = bool(len(self.headers)) and bool((self.headers[numbers] == offsets).all())
        return self._now[numbers] if known else None


def _moved_index(index: ArchiveIndex, name: str, moved: _Moved) -> _Change:
    """The index with the new offsets; its size is the same."""
    for shape in _shapes(index):
        copy = bytearray(index.data)
        numbers = np.frombuffer(copy, shape, len(copy) // shape.itemsize)
        offsets = _offsets_in(index, numbers)
        now = None if offsets is None else moved(offsets.astype(np.int64))
        if offsets is None or now is None:
            continue
        if len(now) and now.max() > np.iinfo(shape).max:
            text = f"the offsets of members become too large for the symbol index {index.name}"
            raise GraftError(text, file=name, offset=index.offset)
        offsets[:] = now
        return _Change(index.offset, index.offset + len(copy), [bytes(copy)])
    raise ElfError(f"the symbol index {index.name} does not lead to members", file=name, offset=index.offset)


def _shapes(index: ArchiveIndex) -> list[np.dtype[Any]]:
    """The numbers it may consist of: System V's are big-endian, BSD's in the byte order of the machine."""
    width = 8 if "64" in index.name else 4
    return [np.dtype(f"{order}u{width}") for order in (">" if index.name.startswith("/") else "<>")]


def _offsets_in(index: ArchiveIndex, numbers: Numbers) -> Numbers | None:
    """Those of its numbers that are offsets; None if they cannot be all there.

    System V: how many there are, and then they. BSD: how many bytes follow, and then pairs of a name and an offset.
    """
    if not len(numbers):
        return None
    pairs = not index.name.startswith("/")
    count = int(numbers[0]) // numbers.itemsize if pairs else int(numbers[0])
    if count >= len(numbers):
        return None
    return numbers[2 : count + 1 : 2] if pairs else numbers[1 : count + 1]
