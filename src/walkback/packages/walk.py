"""The ELF files in a file: itself, or what packages and archives in it hold, to a fixed depth.

An error in one part is reported and the others are still read, as far as that can be. Nothing that an archive says of
itself is believed: names are only text here, as nothing is ever written under one, and what may come out of a file is
bounded by its size.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from walkback.base.dataclass import dataclass
from walkback.base.errors import ElfError, UnreadableError
from walkback.base.replace import CHANGED
from walkback.base.text import printable
from walkback.elf import Contents, OpenFile, archive
from walkback.packages import cpio, deb, kernel, rpm, tar, wheel
from walkback.packages.kinds import COMPRESSED, HEAD, PackageKind, kind_of
from walkback.packages.streams import (
    ExhaustedError,
    Link,
    MemoryBudget,
    MemoryStream,
    RangeStream,
    TooLargeError,
    inflated,
    limit_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from walkback.packages.streams import Stream

DEPTH: Final = 8
"""Archives in archives; compression counts, too."""
_MOST_BROKEN: Final = 1000
_MOST_CONTROL: Final = 1 << 20
_LONGEST_NAME: Final = 4096
"""What is longer is no name of a file, and is cut off."""


@dataclass(frozen=True, slots=True)
class Package:
    """What a package says of itself."""

    name: str
    version: str | None
    architecture: str | None
    format: str
    """`deb`, `rpm` or `wheel`."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """An ELF file."""

    member: str | None
    """Where in the file it is; None if it is the file itself, or that decompressed."""
    package: Package | None
    """The innermost package that it is in."""
    data: Contents
    """Its bytes, until the next one is asked for."""


@dataclass(frozen=True, slots=True)
class Again:
    """Another name of an ELF file: a hard link to it, or to an archive that it is in."""

    member: str | None
    package: Package | None
    index: int
    """Which of the files that were found it is, counted from 0."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What could not be read."""

    member: str | None
    what: str
    """`damaged`, `unsupported`, or `too large`, also of what is too deep or too much. And `unreadable`, which is no
    fault of the file: the system does not let it be read here and now, or has no memory or disk for it."""
    message: str


_Seen = FoundFile | Again | Broken


@dataclass(frozen=True, slots=True)
class _WalkPlace:
    """Where the walk is."""

    names: tuple[str, ...] = ()
    package: Package | None = None
    depth: int = 0

    @property
    def member(self) -> str | None:
        """Members of members stand in brackets."""
        return "(".join(self.names) + ")" * (len(self.names) - 1) if self.names else None

    def inside(self, name: str) -> _WalkPlace:
        """A member of what is here."""
        return replace(self, names=(*self.names, name))


def elf_files_in(path: str) -> Iterator[_Seen]:
    """The ELF files in this file, one by one, and what of it cannot be read; nothing of a file of another kind."""
    try:
        file = OpenFile(path)
    except UnreadableError as error:
        yield Broken(None, "unreadable", printable(error.message))
        return
    walk, place = _PackageWalk(MemoryBudget(limit_of(len(file)))), _WalkPlace()
    try:
        if kind_of(bytes(file[:HEAD]), path) is PackageKind.ELF:
            yield FoundFile(None, None, file)  # only the parts wanted are read
        else:
            yield from walk.guarded(walk.opened(RangeStream(file), place, path), place)
    except ExhaustedError as error:
        yield _broken(error, place)


def may_hold_elf(stream: Stream, name: str) -> bool | Broken:
    """Whether this is an ELF file or may hold some; of what is compressed only the beginning is read."""
    room = MemoryBudget(limit_of(0))
    try:
        for _ in range(DEPTH):
            kind = kind_of(stream.peek(HEAD), name)
            if kind not in COMPRESSED:
                return kind is not None
            stream = inflated(COMPRESSED[kind], stream, room)
    except (UnreadableError, MemoryError) as error:
        return _broken(error, _WalkPlace())
    return True


class _PackageWalk:
    """One walk through a file."""

    def __init__(self, room: MemoryBudget) -> None:
        self._room = room
        self._reported: BaseException | None = None
        self._broken = 0
        self._files = 0
        self._names: list[tuple[_WalkPlace, int]] = []
        """Names of files that were found, to which there may be links, and which of the files it is."""

    def guarded(self, found: Iterator[_Seen], place: _WalkPlace) -> Iterator[_Seen]:
        """What was found; an error ends this only, and is reported once in however many layers it shows."""
        try:
            yield from found
        except ExhaustedError:
            raise
        except (UnreadableError, OSError, MemoryError) as error:
            if error is not self._reported:
                self._reported = error.with_traceback(None)  # which would hold all that was read
                self._broken += 1
                if self._broken > _MOST_BROKEN:
                    raise ExhaustedError(f"has more than {_MOST_BROKEN} members that cannot be read") from None
                yield _broken(error, place)

    def opened(self, stream: Stream, place: _WalkPlace, name: str) -> Iterator[_Seen]:
        """What is in a stream; an error ends it."""
        kind = kind_of(stream.peek(HEAD), name)
        if kind is PackageKind.ELF:
            data = stream.whole()
            self._names.append((place, self._files))
            self._files += 1
            yield FoundFile(place.member, place.package, data)
            return
        if kind is not None and place.depth >= DEPTH:
            raise TooLargeError(f"is an archive in {DEPTH} others, and more are not opened")
        deeper = replace(place, depth=place.depth + 1)
        match kind:
            case None:
                return
            case PackageKind.TAR:
                yield from self._members(tar.members(stream, self._room), deeper)
            case PackageKind.AR:
                yield from self._ar(stream.whole(), deeper)
            case PackageKind.WHEEL:
                yield from self._wheel(stream.whole(), deeper, name)
            case PackageKind.RPM:
                yield from self._rpm(stream, deeper)
            case PackageKind.KERNEL:
                yield from self.opened(kernel.unpacked(stream, self._room), deeper, name)
            case PackageKind.DEB:
                yield from self._deb(stream, deeper)
            case _:
                yield from self.opened(self._plain(stream), deeper, name)

    def _plain(self, stream: Stream) -> Stream:
        """The stream, decompressed if it is compressed."""
        kind = kind_of(stream.peek(HEAD), "")
        return inflated(COMPRESSED[kind], stream, self._room) if kind in COMPRESSED else stream

    def _members(
        self, members: Iterable[tuple[bytes, Stream | Link]], place: _WalkPlace, folder: str = ""
    ) -> Iterator[_Seen]:
        """What members hold; a member may be a link to an earlier one."""
        names: dict[bytes, range] = {}
        for raw, contents in members:
            key = raw.removeprefix(b"./")
            name = folder + _shown(key.decode(errors="backslashreplace"))
            if isinstance(contents, Link):
                target = contents.target.removeprefix(b"./")
                if target == key:
                    continue
                inside = names.get(target, range(0))
                yield from self._again(inside, place, name)
            else:
                first = len(self._names)
                yield from self._member(name, contents, place)
                inside = range(first, len(self._names))
            names.pop(key, None)
            if inside and len(key) <= _LONGEST_NAME:
                names[key] = inside

    def _again(self, inside: range, place: _WalkPlace, name: str) -> Iterator[Again]:
        """What is found under another name of a member that had these."""
        for number in inside:
            if number > inside.start:  # the link itself has taken of the room
                self._room.take_member()
            found, index = self._names[number]
            here = replace(found, names=(*place.names, name, *found.names[len(place.names) + 1 :]))
            if place.names:  # an archive around this one can have links to it
                self._names.append((here, index))
            yield Again(here.member, here.package, index)

    def _member(self, name: str, contents: Stream, place: _WalkPlace) -> Iterator[_Seen]:
        inner = place.inside(name)
        yield from self.guarded(self.opened(contents, inner, name), inner)

    def _ar(self, data: memoryview, place: _WalkPlace) -> Iterator[_Seen]:
        for member in archive.members(data, ""):
            self._room.take_member()
            yield from self._member(_shown(member.name), MemoryStream(member.data), place)

    def _wheel(self, data: memoryview, place: _WalkPlace, name: str) -> Iterator[_Seen]:
        named = wheel.package_of(os.fsencode(name).decode(errors="backslashreplace"))
        package = _package(*named, PackageKind.WHEEL) if named else place.package
        yield from self._members(wheel.members(data, self._room), replace(place, package=package))

    def _rpm(self, stream: Stream, place: _WalkPlace) -> Iterator[_Seen]:
        header = rpm.read_headers(stream)
        name = header.text(rpm.NAME)
        if name is not None:
            place = replace(place, package=_package(name, header.version, header.text(rpm.ARCH), PackageKind.RPM))
        yield from self._members(cpio.members(self._plain(stream), self._room, rpm.RpmFiles(header).entry), place)

    def _deb(self, stream: Stream, place: _WalkPlace) -> Iterator[_Seen]:
        fields: dict[str, str] = {}
        whole = False
        for name, part in deb.members(stream, self._room):
            if name.startswith(deb.CONTROL):
                yield from self.guarded(self._control(part, place, fields), place.inside(name))
                place = replace(place, package=_deb_package(fields) or place.package)
            elif name.startswith(deb.DATA):
                whole = True
                yield from self.guarded(self._data(part, place), place.inside(name))
        if not whole:
            raise ElfError(f"ends without {deb.DATA}")

    def _control(self, part: Stream, place: _WalkPlace, fields: dict[str, str]) -> Iterator[_Seen]:
        """What the package says of itself, wherever in the archive it stands; and programs that help to install it."""
        data = self._plain(part).whole()
        for raw, contents in tar.members(MemoryStream(data), self._room):
            if raw.removeprefix(b"./") == b"control" and not isinstance(contents, Link):
                fields |= deb.fields(contents.peek(_MOST_CONTROL))
        place = replace(place, package=_deb_package(fields) or place.package)
        yield from self._members(tar.members(MemoryStream(data), self._room), place, "DEBIAN/")

    def _data(self, part: Stream, place: _WalkPlace) -> Iterator[_Seen]:
        yield from self._members(tar.members(self._plain(part), self._room), place)


def _deb_package(fields: dict[str, str]) -> Package | None:
    if "package" not in fields:
        return None
    return _package(fields["package"], fields.get("version"), fields.get("architecture"), PackageKind.DEB)


def _package(name: str, version: str | None, architecture: str | None, kind: PackageKind) -> Package:
    return Package(_shown(name), version and _shown(version), architecture and _shown(architecture), kind.value)


def _shown(name: str) -> str:
    return printable(name[:_LONGEST_NAME])


def _broken(error: BaseException, place: _WalkPlace) -> Broken:
    if isinstance(error, MemoryError):
        return Broken(place.member, "unreadable", "takes more memory than there is")
    if isinstance(error, OSError):
        return Broken(place.member, "unreadable", printable(error.strerror or str(error)))
    if isinstance(error, UnreadableError) and error.message == CHANGED:
        return Broken(place.member, "changed", CHANGED)
    what = "damaged" if isinstance(error, ElfError) else "unsupported"
    return Broken(place.member, "too large" if isinstance(error, TooLargeError) else what, printable(str(error)))
