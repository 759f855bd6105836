"""The members of an `ar` archive: GNU (System V), BSD and GNU thin archives.

Layout as in <ar.h>: a magic line, then members at even offsets, each behind a header of 60 printable bytes.
Symbol indexes and the table of long names are not members here. A member that is itself an archive is given
as it is.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import claims, layout
from walkback.elf.opened import Contents, OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.elf.opened import Buffer

AR_HEADER = struct.Struct("16s12s6s6s8s10s2s")
ARFMAG = b"`\n"

_BSD_INDEXES = {b"__.SYMDEF", b"__.SYMDEF SORTED", b"__.SYMDEF_64", b"__.SYMDEF_64 SORTED"}
_INDEXES = frozenset({b"/", b"/SYM64/"} | _BSD_INDEXES)
_LONG_NAMES = frozenset({b"//", b"ARFILENAMES/"})
_LONGEST_NAME = 0x10000
"""Names are file names or paths, far shorter than this."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file in an archive."""

    name: str
    data: memoryview
    offset: int
    """Where its bytes begin in the archive; in a thin archive, which has none, where they would."""
    header: int
    """Where the header before it begins."""


@dataclass(frozen=True, slots=True)
class ArchiveIndex:
    """The index of the symbols that members define; an archive may have several."""

    name: str
    """`/` and `/SYM64/` of System V, `__.SYMDEF`, `__.SYMDEF_64` and their kin of BSD."""
    data: memoryview
    offset: int


def is_archive(data: Buffer | OpenFile) -> bool:
    """Whether these bytes begin as an archive does, thin or not."""
    return bytes(data[:8]) in {layout.ARMAG, layout.ARMAG_THIN}


def members(data: Buffer | OpenFile, name: str) -> Iterator[Member]:
    """The members in their order; `name` is the archive's path, beside which a thin one finds its files."""
    return (entry for entry in entries(data, name) if isinstance(entry, Member))


def entries(data: Buffer | OpenFile, name: str) -> Iterator[Member | ArchiveIndex]:
    """The members, and the indexes between them."""
    reader = _MemberReader(data if isinstance(data, OpenFile) else memoryview(data).cast("B"), name)
    position = len(layout.ARMAG)
    while position < len(reader.data):
        raw_name, start, size = reader.header(position)
        if raw_name in _INDEXES:
            position = _even(reader.end(start, size))
            yield ArchiveIndex(_text(raw_name), reader.data[start : start + size], start)
        elif raw_name in _LONG_NAMES:
            position = _even(reader.end(start, size))
            reader.long_names = reader.data[start : start + size]
        elif reader.thin:
            position = start
            yield reader.outside(raw_name, start, size)
        else:
            position = _even(reader.end(start, size))
            yield reader.inside(raw_name, start, size)


def _even(offset: int) -> int:
    return offset + offset % 2


class _MemberReader:
    def __init__(self, data: Contents, name: str) -> None:
        if not is_archive(data):
            raise UnreadableError("this is not an archive", file=name)
        self.data = data
        self.name = name
        self.thin = bytes(data[:8]) == layout.ARMAG_THIN
        self.long_names = memoryview(b"")
        self._named: set[tuple[int, int]] = set()
        """The files that a thin archive names."""
        self._stored = self._claimed = 0
        self._inner: _MemberReader | None = None
        """The archive that had the last member of this thin one."""

    def error(self, message: str, offset: int) -> ElfError:
        return ElfError(message, file=self.name, offset=offset)

    def header(self, position: int) -> tuple[bytes, int, int]:
        """The name as it is stored, where the contents begin and their size."""
        if position + AR_HEADER.size > len(self.data):
            raise self.error("the archive ends within a member's header", position)
        name, _, _, _, _, size, magic = AR_HEADER.unpack(self.data[position : position + AR_HEADER.size])
        digits = size.rstrip(b" ")
        if magic != ARFMAG or not digits.isdigit():
            raise self.error("this is not a member's header", position)
        return name.rstrip(b" "), position + AR_HEADER.size, int(digits)

    def end(self, start: int, size: int) -> int:
        if start + size > len(self.data):
            raise self.error(f"a member of {size:#x} bytes reaches beyond the end of the archive", start)
        return start + size

    def inside(self, raw_name: bytes, start: int, size: int) -> Member | ArchiveIndex:
        """A member whose contents are here; or BSD's index under a long name."""
        header, end = start - AR_HEADER.size, start + size
        if raw_name.startswith(b"#1/"):  # BSD: the name stands before the contents
            digits = raw_name[3:]
            if not digits.isdigit() or int(digits) > min(size, _LONGEST_NAME):
                raise self.error("the length of a member's name is wrong", header)
            body = start + int(digits)
            name = bytes(self.data[start:body]).rstrip(b"\0")
            if name in _INDEXES:
                return ArchiveIndex(_text(name), self.data[body:end], body)
            start = body
        else:
            name = self.member_name(raw_name, start)
        return Member(_text(name), self.data[start:end], start, header)

    def outside(self, raw_name: bytes, start: int, size: int) -> Member:
        """A member of a thin archive: a file beside it, or a member of an archive beside it."""
        reference, _, origin = raw_name.partition(b":") if raw_name.startswith(b"/") else (raw_name, b"", b"")
        name, header = self.member_name(reference, start), start - AR_HEADER.size
        path = str(Path(self.name).parent / os.fsdecode(name))
        try:
            contents = OpenFile(path)
        except UnreadableError as error:
            raise self.error(f"member {_text(name)} of this thin archive: {error.message}", header) from error
        if origin:
            return self.nested(contents, path, origin, start)
        if len(contents) != size:
            text = f"member {_text(name)} of this thin archive has {len(contents)} bytes instead of {size}"
            raise self.error(text, header)
        self._claim(contents, size, header)
        return Member(_text(name), contents[:], start, header)

    def _claim(self, contents: OpenFile, size: int, header: int) -> None:
        """Refuse to read one file again and again."""
        file = contents.status.st_dev, contents.status.st_ino
        if file not in self._named:
            self._named.add(file)
            self._stored += len(contents)
        self._claimed += size
        if self._claimed > claims.most(self._stored):
            raise self.error("the members of this thin archive name the same files again and again", header)

    def nested(self, contents: OpenFile, path: str, origin: bytes, start: int) -> Member:
        """`ar` puts the members of an ordinary archive into a thin one by the offsets of their headers."""
        if not origin.isdigit() or not is_archive(contents):
            raise self.error(f"{path} does not have the member that is wanted of it", start - AR_HEADER.size)
        inner = self._inner
        if inner is None or inner.name != path:
            inner = self._inner = _MemberReader(contents, path)
            inner.long_names = next(inner.long_name_tables(), memoryview(b""))
            self._claim(contents, len(inner.long_names), start - AR_HEADER.size)
        raw_name, body, size = inner.header(int(origin))
        inner.end(body, size)
        if inner.thin:
            raise self.error(f"{path}: thin archives in thin archives are not read", start - AR_HEADER.size)
        self._claim(contents, size, start - AR_HEADER.size)
        member = inner.inside(raw_name, body, size)
        if isinstance(member, ArchiveIndex):
            raise self.error(f"{path} has an index where a member is wanted of it", start - AR_HEADER.size)
        return Member(member.name, member.data, start, start - AR_HEADER.size)

    def long_name_tables(self) -> Iterator[memoryview]:
        """The table of long names, which stands before all members but the indexes."""
        position = len(layout.ARMAG)
        while position < len(self.data):
            raw_name, start, size = self.header(position)
            position = _even(self.end(start, size))
            if raw_name in _LONG_NAMES:
                yield self.data[start : start + size]
            elif raw_name not in _INDEXES:
                return

    def member_name(self, raw_name: bytes, start: int) -> bytes:
        """A GNU name: `name/`, or `/offset` into the long names, which end with `/` and a newline."""
        if not raw_name.startswith(b"/"):
            return raw_name.removesuffix(b"/")
        digits = raw_name[1:]
        if digits.isdigit() and int(digits) < len(self.long_names):
            offset = int(digits)
            name, newline, _ = bytes(self.long_names[offset : offset + _LONGEST_NAME]).partition(b"\n")
            if newline:
                return name.removesuffix(b"/")
        raise self.error(f"the member name {_text(raw_name)} does not refer to any long name", start - AR_HEADER.size)


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
