"""Tables of files, kept on disk.

An entry's name is a digest of what it was made from, so what is found is right: there is nothing to invalidate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arraycache import ArrayCache
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import ElfFile, debug_file, in_pieces
from walkback.elf import layout as elf_layout
from walkback.elf.golang import FUNCTIONS
from walkback.walking.moduletable import WHOLE, ModuleTable, Tables, code_size, may_need_code, module_table, no_table

_FORMAT = 14
_SMALL = 1 << 20
"""Bytes of tables that are made as soon as looked up."""
_LITTLE = 32
"""How many times as large as its tables the code is of a file whose rules are likely to be made from the code."""
_LARGEST_TABLES = 1 << 30
"""Bytes; the largest programs have a fifth of it."""
_LARGEST_WHOLE = 1 << 28
"""Bytes of a file that has no build ID, and so is known by all of its contents."""

_SECTIONS = (".sframe", ".eh_frame", ".debug_frame", ".zdebug_frame", *FUNCTIONS)


class TableCache:
    """The tables in a cache; None keeps nothing."""

    def __init__(self, kept: ArrayCache | None) -> None:
        self._kept = kept

    def table(self, elf: ElfFile, machine: Machine, only: Tables | None) -> ModuleTable:
        """The table of a file, made if it is not there."""
        size = _tables_size(elf)
        if size > _LARGEST_TABLES:
            return no_table(f"{elf.name}: its tables of {size} bytes are larger than {_LARGEST_TABLES}, and not read")
        from_code = _may_be_from_code(elf, only) and (only == "code" or size * _LITTLE < code_size(elf))
        if self._kept is None or (size < _SMALL and not from_code):
            return module_table(elf, machine, only)
        key = _digest(elf, machine, only)
        if key is None:
            return module_table(elf, machine, only)
        found = _of_entry(self._kept.read(f"{key}.table"))
        if found is None:
            found = module_table(elf, machine, only)
            rest = {"shift": found.shift, "declared": found.declared, "troubles": found.troubles}
            self._kept.write(f"{key}.table", found.columns(), rest)
        return found


def _of_entry(entry: tuple[dict[str, np.ndarray], dict[str, Any]] | None) -> ModuleTable | None:
    """The table that an entry has; None if it has none."""
    if entry is None:
        return None
    arrays, rest = entry
    try:
        troubles = [str(line) for line in rest["troubles"]]
        return ModuleTable.of_columns(arrays, int(rest["shift"]), bool(rest["declared"]), troubles)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


def _may_be_from_code(elf: ElfFile, only: Tables | None) -> bool:
    """Whether the table of a file may be made from its code."""
    return only == "code" or (only in WHOLE and may_need_code(elf))


def _tables_size(elf: ElfFile) -> int:
    """Bytes of the tables; a file without section headers counts as large."""
    with contextlib.suppress(WalkbackError):
        if len(elf.sections):
            found = [index for name in _SECTIONS for index in elf.sections_named(name)]
            return sum(int(elf.sections["size"][index]) for index in found)
    return _SMALL


def _digest(elf: ElfFile, machine: Machine, only: Tables | None) -> str | None:
    """A name for what the table of a file is made from; None if that cannot be read, or is too much for that."""
    import hashlib  # which takes longer to import than the table of a small file to make

    digest = hashlib.blake2b(digest_size=20)
    digest.update(f"{_FORMAT} {machine.name} {elf.byteorder} {only} {elf.type}\n".encode())
    try:
        for one in (elf, debug_file(elf)):
            if one is None:
                continue
            digest.update(one.segments.tobytes())
            for part in _identity(one, whole=_may_be_from_code(one, only)):
                digest.update(part)
    except WalkbackError:
        return None
    return digest.hexdigest()


def _identity(elf: ElfFile, *, whole: bool) -> Iterator[bytes | memoryview]:
    """What the table of a file is made from, or distinguishes it from all others: the `whole` file if need be."""
    if not len(elf.sections) or not elf.build_id or whole:
        if len(elf.data) > _LARGEST_WHOLE:
            raise UnreadableError("the file is too large to be known by its contents", file=elf.name)
        yield from in_pieces(elf.data)
    yield elf.build_id or b""
    for index in np.flatnonzero(elf.sections["flags"] & np.uint64(elf_layout.SHF_EXECINSTR)).tolist():
        yield elf.sections[index].tobytes()
    for name in _SECTIONS:
        for index in elf.sections_named(name):
            contents = elf.section_data(index)
            yield f"{name} {elf.sections['addr'][index]} {len(contents)}\n".encode()
            yield contents
