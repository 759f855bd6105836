"""What was stripped from a file and is kept elsewhere: separate debug files, and the MiniDebugInfo inside it.

Separate debug files are found as in the GDB manual, "Debugging Information in Separate Files": by the build ID in
the `.build-id` folder of each root, then by the name in `.gnu_debuglink`, beside the file, in `.debug` beside it, and
under each root at the file's own path. perf's build-ID cache is a root as well: it keeps the files that were recorded,
also after they were rebuilt. MiniDebugInfo ("Debugging information in a special section") is an ELF file
with nothing but a symbol table, compressed with xz, in the section `.gnu_debugdata`.
"""

from __future__ import annotations

import contextlib
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.errors import ElfError, PassedOverWarning, UnreadableError
from walkback.elf.compressed import decompress_xz, limit_of
from walkback.elf.file import ElfFile
from walkback.elf.opened import in_pieces, is_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEBUG_ROOTS = ("/usr/lib/debug",)
"""Where distributions put separate debug files."""

_PERF_CACHE = "~/.debug"
"""Where perf keeps copies of the files that it recorded."""
_KEPT_NAMES = ("", "elf", "vdso")
"""What a file may be called below its build ID: nothing in the folders of distributions and of old perf."""

_LARGEST_CHECKED = 2 << 30
"""Bytes of a file whose checksum is made: a few seconds."""
_NO_FILE_NAMES = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class DebugLink:
    """What `.gnu_debuglink` says of the separate debug file."""

    name: str
    crc: int
    """The CRC-32 of the whole file."""


def build_id_roots(buildid_dir: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """The folders with a `.build-id` folder: perf's build-ID cache, and those of separate debug files.

    The cache is `buildid_dir`, else what the environment's PERF_BUILDID_DIR names, else `~/.debug`.
    """
    cache = os.fspath(buildid_dir) if buildid_dir is not None else os.environ.get("PERF_BUILDID_DIR") or _PERF_CACHE
    # Without a home the path stays as it is, and nothing is there.
    return (os.path.expanduser(cache), *DEBUG_ROOTS)


def files_by_build_id(build_id: bytes, roots: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    """Where the file itself, with its code, is kept under its build ID. Whoever opens it looks at its build ID."""
    text = build_id.hex()
    for root in roots:
        for name in _KEPT_NAMES:
            path = Path(root, ".build-id", text[:2], text[2:], name)
            if os.path.isfile(path):
                yield path


def debug_link(elf: ElfFile) -> DebugLink | None:
    """The contents of `.gnu_debuglink`: a file name, its NUL, up to 3 bytes of padding, and the CRC."""
    for index in elf.sections_named(".gnu_debuglink"):
        contents = bytes(elf.section_data(index))
        name, _, _ = contents.partition(b"\0")
        crc = (len(name) + 4) & ~3
        if crc + 4 > len(contents):
            raise ElfError(".gnu_debuglink ends before its checksum", file=elf.name)
        text = os.fsdecode(name)
        if "/" in text or text in _NO_FILE_NAMES:
            raise ElfError(".gnu_debuglink holds something that is not a file name", file=elf.name)
        return DebugLink(text, int.from_bytes(contents[crc : crc + 4], elf.byteorder))
    return None


def debug_file(elf: ElfFile, roots: Sequence[str | os.PathLike[str]] = DEBUG_ROOTS) -> ElfFile | None:
    """The separate debug file of this one, or None if none of the places has one.

    A file that cannot be read, or is the wrong one, is passed over: one found by build ID must have that build ID; one
    found by the link must have the checksum of the link, and no other build ID. If the checksum would take too long,
    because the file is very large or mostly holes, a `PassedOverWarning` says so.
    """
    found = debug_file_by_build_id(elf, roots)
    if found is not None:
        return found
    build_id = elf.build_id
    link = debug_link(elf)
    if link is not None:
        for path in _places_by_name(elf, link.name, roots):
            found = _open(path, elf)
            if found is None or _checksum(found) != link.crc:
                continue
            if not build_id or _build_id(found) in {None, build_id}:
                return found
    return None


def debug_file_by_build_id(elf: ElfFile, roots: Sequence[str | os.PathLike[str]] = DEBUG_ROOTS) -> ElfFile | None:
    """The same by the build ID alone, so that it does not matter where this file stands."""
    build_id = elf.build_id
    if build_id:
        for path in _places_by_build_id(build_id, roots):
            found = _open(path, elf)
            if found is not None and _build_id(found) == build_id:
                return found
    return None


def debug_data(elf: ElfFile) -> ElfFile | None:
    """The ELF file in `.gnu_debugdata`, or None if there is none."""
    for index in elf.sections_named(".gnu_debugdata"):
        limit = limit_of(len(elf.data))
        try:
            contents = decompress_xz(elf.section_data(index), limit)
        except UnreadableError as error:
            raise error.within(file=elf.name, section=".gnu_debugdata") from None
        return ElfFile(contents, f"{elf.name}(.gnu_debugdata)", limit=limit - len(contents))
    return None


def _places_by_build_id(build_id: bytes, roots: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    text = build_id.hex()
    for root in roots:
        yield Path(root, ".build-id", text[:2], f"{text[2:]}.debug")
        yield Path(root, ".build-id", text[:2], text[2:], "debug")


def _places_by_name(elf: ElfFile, name: str, roots: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    """Of the folder as it was named, and of the one that it is when symbolic links are followed."""
    with contextlib.suppress(ValueError):  # a NUL in the name
        path = Path(elf.name).absolute()
        for folder in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
            yield folder / name
            yield folder / ".debug" / name
            for root in roots:
                yield Path(root, *folder.parts[1:], name)


def _open(path: Path, elf: ElfFile) -> ElfFile | None:
    """The file there, unless it cannot be read or is the stripped file itself."""
    with contextlib.suppress(OSError, ValueError, UnreadableError):
        found = ElfFile(path)
        # The stripped file may be no file at all, but a member of an archive or bytes in memory.
        with contextlib.suppress(OSError):
            if path.samefile(elf.name):
                return None
        return found
    return None


def _checksum(elf: ElfFile) -> int | None:
    """The CRC-32 of a file; None if it cannot be made, or would take too much."""
    size = len(elf.data)
    if size > _LARGEST_CHECKED or not is_stored(elf.data, 0, size):
        what = "mostly a hole" if size <= _LARGEST_CHECKED else f"larger than {_LARGEST_CHECKED}"
        warnings.warn(
            f"{elf.name}: this debug file of {size} bytes is {what}, so its checksum is not made and it is not used",
            PassedOverWarning,
            stacklevel=2,
        )
        return None
    value = 0
    with contextlib.suppress(UnreadableError):
        for piece in in_pieces(elf.data):
            value = zlib.crc32(piece, value)
        return value
    return None


def _build_id(elf: ElfFile) -> bytes | None:
    with contextlib.suppress(ElfError):
        return elf.build_id
    return None
