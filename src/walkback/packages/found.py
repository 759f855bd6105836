"""The ELF files that a verb finds in what it is given: a file, an archive or a package."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import Contents, ElfFile, Input, OpenFile, contents_of, elf_files, is_archive, is_elf
from walkback.packages.kinds import COMPRESSED, HEAD, PackageKind, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKED = {
    PackageKind.DEB: "a Debian package",
    PackageKind.RPM: "an RPM package",
    PackageKind.WHEEL: "a wheel",
    PackageKind.TAR: "a tar archive",
    PackageKind.KERNEL: "a boot image of the kernel",
}


def found_elf_files(source: Input, errors: list[WalkbackError]) -> Iterator[ElfFile]:
    """The file itself, or those in it; what is wrong with one goes to `errors`, and does not hide the others."""
    if isinstance(source, ElfFile):
        yield source
        return
    data, name = contents_of(source)
    kind = kind_of(bytes(data[:HEAD]), name)
    if kind in {None, PackageKind.ELF, PackageKind.AR} or not isinstance(data, OpenFile):
        if not is_elf(data) and not is_archive(data):
            raise UnreadableError("this is not an ELF file, archive or package", file=name)
        yield from elf_files(data, name)
        return
    from walkback.packages.walk import Broken, FoundFile, elf_files_in

    for found in elf_files_in(name):
        inner = f"{name}({found.member})" if found.member else name
        try:
            if isinstance(found, Broken):
                errors.append(UnreadableError(found.message, file=inner))
            elif isinstance(found, FoundFile):
                yield ElfFile(found.data, inner)
        except WalkbackError as error:
            errors.append(error.within(file=inner))


def found_one(source: Input) -> ElfFile:
    """The input, which has to be one ELF file, compressed or not, or a kernel."""
    if isinstance(source, ElfFile):
        return source
    data, name = contents_of(source)
    if not isinstance(data, OpenFile) or not is_wrapped(data, name):
        return ElfFile(data, name)
    from walkback.packages.walk import Broken, FoundFile, elf_files_in

    found = list(islice(elf_files_in(name), 2))
    if len(found) == 1 and isinstance(found[0], Broken):
        raise UnreadableError(found[0].message, file=name)
    if len(found) != 1 or not isinstance(found[0], FoundFile) or found[0].member is not None:
        raise UnreadableError("expected one ELF file, got an archive; walkback survey looks into it", file=name)
    return ElfFile(found[0].data, name)


def one_to_rewrite(source: Input) -> ElfFile:
    """The input, which has to be one ELF file as it is: what is written takes its place."""
    if isinstance(source, ElfFile):
        return source
    data, name = contents_of(source)
    refuse_packed(data, name)
    return ElfFile(data, name)


def refuse_packed(data: Contents, name: str) -> None:
    """Raise an error for what has an ELF file in it, and is none and no archive of objects."""
    words = packed_words(data, name)
    if words is not None and not is_archive(data):
        raise UnreadableError(f"this is {words}; unpack it first", file=name)


def packed_words(data: Contents, name: str) -> str | None:
    """What a file is that has ELF files in it; None if it is one, or an archive of objects, or something else."""
    kind = kind_of(bytes(data[:HEAD]), name)
    if kind in {None, PackageKind.ELF, PackageKind.AR}:
        return None
    return _PACKED.get(kind) or f"compressed with {kind.value}"


def is_wrapped(data: Contents, name: str) -> bool:
    """Whether a file is compressed, or a boot image of the kernel: one ELF file, if it is no compressed archive."""
    kind = kind_of(bytes(data[:HEAD]), name)
    return kind is PackageKind.KERNEL or kind in COMPRESSED


def input_name(source: Input) -> str:
    """What errors call it."""
    return source.name if isinstance(source, ElfFile) else contents_of(source)[1]
