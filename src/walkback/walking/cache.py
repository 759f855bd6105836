"""Tables of files, kept on disk.

An entry's name is a digest of what it was made from, so what is found is right: there is nothing to invalidate. Entries
are written beside and renamed, so that processes can share a folder; what cannot be read is made again. The folder is
bounded: the entries that were not used for longest go first. It can be removed at any time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from walkback.base.arch import Machine
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.elf import ElfFile, debug_file, in_pieces, read_file
from walkback.elf import layout as elf_layout
from walkback.elf.golang import FUNCTIONS
from walkback.walking.moduletable import WHOLE, ModuleTable, Tables, code_size, may_need_code, module_table, no_table

_FORMAT = 11
_MAGIC = b"walkback table\n"
_SMALL = 1 << 20
"""Bytes of tables that are made as soon as looked up."""
_LITTLE = 32
"""How many times as large as its tables the code is of a file whose rules are likely to be made from the code."""
_LARGEST_TABLES = 1 << 30
"""Bytes; the largest programs have a fifth of it."""
_LARGEST_WHOLE = 1 << 28
"""Bytes of a file that has no build ID, and so is known by all of its contents."""
_DEFAULT_LIMIT = 1 << 30
_ENTRY = re.compile(r"[0-9a-f]{40}\.table|\.[0-9a-f]{12}\.part")
_ALIGNMENT = 64

_SECTIONS = (".sframe", ".eh_frame", ".debug_frame", ".zdebug_frame", *FUNCTIONS)


def default_folder() -> Path:
    """Where entries are kept: `WALKBACK_CACHE`, else by the XDG conventions."""
    chosen = os.environ.get("WALKBACK_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) / "walkback" if base and base.startswith("/") else Path("~/.cache/walkback").expanduser()


class TableCache:
    """A folder of entries; None keeps nothing."""

    def __init__(self, folder: Path | None, *, limit: int = _DEFAULT_LIMIT) -> None:
        """`limit` is to how many bytes the entries may come."""
        self._folder = folder
        self._limit = limit

    def table(self, elf: ElfFile, machine: Machine, only: Tables | None) -> ModuleTable:
        """The table of a file, made if it is not there."""
        size = _tables_size(elf)
        if size > _LARGEST_TABLES:
            return no_table(f"{elf.name}: its tables of {size} bytes are larger than {_LARGEST_TABLES}, and not read")
        from_code = _may_be_from_code(elf, only) and (only == "code" or size * _LITTLE < code_size(elf))
        if self._folder is None or (size < _SMALL and not from_code):
            return module_table(elf, machine, only)
        key = _digest(elf, machine, only)
        if key is None:
            return module_table(elf, machine, only)
        found = _read(self._folder, f"{key}.table")
        if found is None:
            found = module_table(elf, machine, only)
            self._write(self._folder, f"{key}.table", found)
        return found

    def _write(self, folder: Path, name: str, table: ModuleTable) -> None:
        """Keep an entry; a folder that cannot be written, or that somebody else can write, keeps nothing."""
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _held(folder) as held:
                temporary = f".{os.urandom(6).hex()}.part"
                try:
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=held), "wb") as out:
                        out.writelines(_contents(table))
                    os.rename(temporary, name, src_dir_fd=held, dst_dir_fd=held)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.unlink(temporary, dir_fd=held)
                    raise
                self._shrink(held)

    def _shrink(self, folder: int) -> None:
        """Take away what was not used for longest, until the rest is within the limit."""
        entries = []
        for name in os.listdir(folder):
            # Whatever else is in the folder is not ours.
            if _ENTRY.fullmatch(name):
                with contextlib.suppress(OSError):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        entries.append((status.st_mtime_ns, status.st_size, name))
        size = sum(one for _, one, _ in entries)
        for _, one, name in sorted(entries):
            if size <= self._limit:
                break
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
                size -= one


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[int]:
    """The folder, open, so that it stays the one that nobody else can write, whatever its name stands for."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(errno.EPERM, "others can write there", os.fspath(folder))
        yield descriptor
    finally:
        os.close(descriptor)


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


# What an entry is: the magic, a line of JSON with the shape of every array, and the arrays, aligned.


def _contents(table: ModuleTable) -> list[bytes]:
    """An entry, piece by piece."""
    import hashlib
    import json

    arrays = table.columns()
    shapes = {name: [array.dtype.str, len(array)] for name, array in arrays.items()}
    rest = {"shift": table.shift, "declared": table.declared, "troubles": table.troubles}
    head = _MAGIC + json.dumps({"arrays": shapes, **rest}).encode() + b"\n"
    parts = [head, bytes(-len(head) % _ALIGNMENT)]
    for array in arrays.values():
        parts += [array.tobytes(), bytes(-array.nbytes % _ALIGNMENT)]
    digest = hashlib.blake2b(digest_size=20)
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def _entry(folder: Path, name: str) -> memoryview:
    """The bytes of an entry, which is a file of our own and no link."""
    with _held(folder) as held:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=held)
        try:
            if os.fstat(descriptor).st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, "this is not ours", name)
            data = read_file(f"/proc/self/fd/{descriptor}")
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        finally:
            os.close(descriptor)
    return data


def _read(folder: Path, name: str) -> ModuleTable | None:
    """An entry, or None if there is none that is whole."""
    import hashlib
    import json

    try:
        data = _entry(folder, name)
        if hashlib.blake2b(data[:-20], digest_size=20).digest() != bytes(data[-20:]):
            return None
        end = bytes(data[: 1 << 16]).index(b"\n", len(_MAGIC)) + 1
        head = json.loads(bytes(data[len(_MAGIC) : end]))
        place = -(-end // _ALIGNMENT) * _ALIGNMENT
        arrays: dict[str, np.ndarray] = {}
        for column, (dtype, count) in head["arrays"].items():
            arrays[column] = np.frombuffer(data, np.dtype(dtype), count, place)
            place += -(-arrays[column].nbytes // _ALIGNMENT) * _ALIGNMENT
        troubles = [str(line) for line in head["troubles"]]
        return ModuleTable.of_columns(arrays, int(head["shift"]), bool(head["declared"]), troubles)
    except (WalkbackError, OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
