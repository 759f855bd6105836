"""Which ELF file a report is about: the file of a path, or one member of an archive, named as `archive(member)`."""

from __future__ import annotations

import os
import re

from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import Contents, ElfFile, OpenFile, elf_files, is_archive, is_elf
from walkback.packages.found import found_one, is_wrapped, packed_words

_SHOWN = 3
_MEMBER = re.compile(r"(.+?)(\(.+\)|\[.+\])", re.DOTALL)


def file_of(path: str) -> str:
    """The file that is read for a path: of a member its archive."""
    parts = None if os.path.lexists(path) else _MEMBER.fullmatch(path)
    return parts[1] if parts else path


def one_elf_file(path: str | os.PathLike[str]) -> ElfFile:
    """The file, also one that is compressed, or a kernel.

    An archive of several is refused, with names of members that can be asked for.
    """
    name = os.fsdecode(path)
    file = file_of(name)
    parts = file != name
    data = OpenFile(file)
    if is_elf(data) and not parts:
        return ElfFile(data, name)
    if is_wrapped(data, file) and not parts:
        return found_one(data)
    if (packed := packed_words(data, file)) is not None:
        message = f"this is {packed}; walkback survey looks into it, and walkback report shows what it finds"
        raise UnreadableError(message, file=file)
    if not is_archive(data):
        message = "this is not an archive, so it has no members" if parts else "this is not an ELF file or archive"
        raise UnreadableError(message, file=file)
    members, error = _members(data, file)
    chosen = [one for one in members if one.name == name] if parts else members
    if len(chosen) == 1:
        return chosen[0]
    if chosen and parts:
        raise UnreadableError(f"the archive has {len(chosen)} members of this name", file=name)
    if error is not None:
        raise error
    if parts:
        raise UnreadableError(f"there is no ELF file {name[len(file) + 1 : -1]} in it", file=file)
    names = ", ".join(one.name for one in members[:_SHOWN])
    message = f"this is an archive of {len(members)} ELF files; name one of them, as in {names}"
    raise UnreadableError(message if members else "there is no ELF file in this archive", file=file)


def _members(data: Contents, file: str) -> tuple[list[ElfFile], WalkbackError | None]:
    """The members that can be read, and what is wrong with others."""
    found: list[ElfFile] = []
    try:
        found.extend(elf_files(data, file))
    except WalkbackError as error:
        return found, error
    return found, None
