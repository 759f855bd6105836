"""What a verb reads: an ELF file, an archive, or raw bytes at an address; by its path, in memory, or open already."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, TypeVar

from walkback.base.errors import ArgumentError, MissingError, UnreadableError, WalkbackError
from walkback.elf import layout
from walkback.elf.archive import is_archive, members
from walkback.elf.file import ElfFile, is_elf
from walkback.elf.opened import IN_MEMORY, Contents, OpenFile, view_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


Found = TypeVar("Found")
Input = str | os.PathLike[str] | bytes | bytearray | memoryview | OpenFile | ElfFile
"""A path, the bytes of a file, or an ELF file that is open."""


def contents_of(source: Input) -> tuple[Contents, str]:
    """The bytes of an input, and what errors call it."""
    if isinstance(source, ElfFile):
        return source.data, source.name
    if isinstance(source, str | os.PathLike):
        source = OpenFile(source)
    if isinstance(source, OpenFile):
        return source, source.name
    return view_of(source), IN_MEMORY


def one_elf(source: Input) -> ElfFile:
    """The input, which has to be one ELF file."""
    return source if isinstance(source, ElfFile) else ElfFile(source)


def each_of(source: Input, find: Callable[[ElfFile], Found | None], missing: str) -> Iterator[Found]:
    """What is found in a file, or in each member of an archive; if nothing is, that is `missing`."""
    data, name = contents_of(source)
    some, errors = False, []
    for elf in elf_files(data, name):
        try:
            found = find(elf)
            if found is not None:
                some = True
                yield found
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        raise MissingError(missing, file=name)


def elf_files(data: Contents, name: str) -> Iterator[ElfFile]:
    """The file, or each member of an archive that is an ELF file, named `archive(member)`.

    What is wrong with one member does not hide those after it: the first error is raised at the end.
    """
    if not is_archive(data):
        yield ElfFile(data, name)
        return
    brackets = "[]" if bytes(data[:8]) == layout.ARMAG_THIN else "()"
    errors: list[WalkbackError] = []
    for member in members(data, name):
        if is_archive(member.data):
            errors.append(
                UnreadableError("archives in archives are not read; extract it", file=f"{name}({member.name})")
            )
        elif is_elf(member.data):
            try:
                yield ElfFile(member.data, f"{name}{brackets[0]}{member.name}{brackets[1]}")
            except WalkbackError as error:
                errors.append(error)
    raise_first(errors, "members")


def raise_first(errors: list[WalkbackError], what: str) -> None:
    """Raise what was kept back so that the others could be read; the first stands for all."""
    if len(errors) > 1:
        errors[0].message += f" (and {len(errors) - 1} {what} more cannot be read)"
    if errors:
        raise errors[0]


def split_address(text: str) -> tuple[str, int | None]:
    """A path and the address behind its `@`, if there is one and no file of the whole name.

    Raises ArgumentError for an address that is none.
    """
    path, at, number = text.rpartition("@")
    if not at or os.path.lexists(text):
        return text, None
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}|[1-9][0-9]{0,19}|0", number) is None or int(number, 0) >= 2**64:
        raise ArgumentError(f"{number!r} is not an address; examples: 4096, 0x1000")
    return path, int(number, 0)
