"""Where files are looked for, in one order: those with code by name and build ID, and the debug files of these.

Debug files are found as in the GDB manual, "Debugging Information in Separate Files": by the build ID in the
`.build-id` folder of each root, then by the name in `.gnu_debuglink`, beside the file, in `.debug` beside it, and under
each root at the file's own path. perf's build-ID cache is a root as well: it keeps the files that were recorded, also
after they were rebuilt. Last come servers, where there are any.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from walkback.base.errors import ArgumentError, ElfError, PassedOverWarning, UnreadableError
from walkback.elf.debugfiles import debug_link, with_symbols
from walkback.elf.file import ElfFile
from walkback.elf.opened import in_pieces, is_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

DEBUG_ROOTS = ("/usr/lib/debug",)
"""Where distributions put separate debug files."""
_PROGRAM_ROOTS = ("/usr/lib",)
"""Where some of them have links to programs, by build ID."""
_PERF_CACHE = "~/.debug"
"""Where perf keeps copies of the files that it recorded."""
_KEPT_NAMES = ("", "elf", "vdso")
"""What a file may be called below its build ID: nothing in the folders of distributions and of old perf."""
_LARGEST_CHECKED = 2 << 30
"""Bytes of a file whose checksum is made: a few seconds."""

_ANOTHER = "is of another build than {}"
_PROCESS_ROOT = re.compile(r"/proc/\d+/root(?=/)")

_Path = str | os.PathLike[str]


class FileServers(Protocol):
    """What fetches files by build ID."""

    def find(self, build_id: bytes, kind: str) -> Path | None:
        """A file that has that build ID; `kind` is `executable` or `debuginfo`."""

    def symbol_table(self, build_id: bytes) -> tuple[bytes, bytes] | None:
        """The symbols of that file, and the strings with their names."""

    def looked(self, build_id: bytes) -> dict[str, bool]:
        """Where such files were looked for so far and who was asked, and whether that had them."""


class FileSearch:
    """Looks for files, and remembers where.

    >>> search = walkback.naming.FileSearch()
    >>> search.debug_file(walkback.ElfFile("hello")) is None
    True
    """

    def __init__(
        self,
        *,
        sysroot: _Path | None = None,
        buildid_dir: _Path | None = None,
        debug_roots: Iterable[_Path] | None = None,
        servers: FileServers | None = None,
    ) -> None:
        """With a `sysroot`, the path of a file is looked up below that folder and not on this machine.

        `buildid_dir` is perf's build-ID cache, if it is not the usual one; `debug_roots` names all folders that have
        files by build ID. `servers` are asked for what is in none of them.
        """
        for name, folder in (("sysroot", sysroot), ("buildid_dir", buildid_dir)):
            if folder is not None and not os.path.isdir(folder):
                raise ArgumentError(f"{name}: {os.fsdecode(folder)} is no folder")
        self.sysroot = os.fspath(sysroot).rstrip("/") if sysroot is not None else None
        self.roots = _usual_roots(self.sysroot, buildid_dir) if debug_roots is None else tuple(map(str, debug_roots))
        """The folders that hold files by build ID and separate debug files."""
        self.servers = servers
        self.whole = True
        """Whether debug files are needed for more than their symbols."""
        self._looked: dict[str, dict[str, bool]] = {}

    def __repr__(self) -> str:
        return f"FileSearch(roots={list(self.roots)})"

    def path(self, name: str) -> list[str]:
        """Where the file is that a machine has at this path; nowhere if the path is not a whole one."""
        if self.sysroot is not None:
            return [f"{self.sysroot}/{name.lstrip('/')}"]
        return [name] if name.startswith("/") else []

    def programs(
        self, name: str, build_id: bytes | None, places: Sequence[str] = (), process: int | None = None
    ) -> Iterator[str]:
        """Files that may be the one with this name and build ID, first those at `places`.

        A `process` that has mapped it may have another root, as in a container, and still has what was deleted. Whoever
        opens one looks at its build ID.
        """
        for place in places:  # also where nothing is, so that it can be said why
            self._is_there(name, place)
            yield place
        if not build_id:
            return
        inside = f"/proc/{process}/root{name}"
        if process and self.sysroot is None and name.startswith("/"):
            if self._is_there(name, inside):
                yield inside
            yield from _deleted(name, process)
        text = build_id.hex()
        own = [f"{self.sysroot}{root}" for root in _PROGRAM_ROOTS] if self.sysroot is not None else []
        for root in (*self.roots, *own, *_PROGRAM_ROOTS):
            for kept in _KEPT_NAMES:
                path = os.path.join(root, ".build-id", text[:2], text[2:], kept).rstrip("/")
                if self._is_there(name, path):
                    yield path
        yield from map(str, self._served(name, build_id, "executable"))

    def debug_files(self, name: str, build_id: bytes) -> Iterator[str]:
        """Files that may be the debug file of the one with this name and build ID, which itself is gone."""
        for path in self._below_roots(self.roots, build_id):
            if self._is_there(name, path):
                yield str(path)
        yield from map(str, self._served(name, build_id, "debuginfo"))

    def debug_file(self, elf: ElfFile, *, fetch: bool = True) -> ElfFile | None:
        """The separate debug file of a file, or None if none of the places has one.

        A file that cannot be read, or is the wrong one, is passed over: one found by build ID must have that build ID;
        one found by the link must have the checksum of the link, and no other build ID. If it has not, or if the
        checksum would take too long, because the file is very large or mostly holes, a `PassedOverWarning` says so.
        Servers are asked only if it is to `fetch` the file.
        """
        return self.by_build_id(elf) or self._by_link(elf) or (self._fetched(elf) if fetch else None)

    def by_build_id(self, elf: ElfFile) -> ElfFile | None:
        """The same by the build ID alone, so that it does not matter where this file stands."""
        build_id = _build_id(elf)
        for path in self._debug_places(elf, build_id) if build_id else ():
            found = self._open(path, elf)
            if found is None:
                continue
            if _build_id(found) == build_id:
                return found
            is_known = _build_id(found) is not None
            self._pass_over(path, elf, _ANOTHER.format(elf.name) if is_known else "has no build ID that can be read")
        return None

    def symbol_file(self, elf: ElfFile) -> ElfFile | None:
        """From a server, a debug file of this one; with its symbols alone, where nothing else is needed."""
        build_id = _build_id(elf)
        if self.whole or self.servers is None or not build_id:
            return self._fetched(elf)
        found = self.servers.symbol_table(build_id)
        self._note_servers(_debug_name(elf), build_id)
        return with_symbols(elf, *found) if found is not None else self._fetched(elf)

    def supplements(self, elf: ElfFile, name: str, identifier: bytes) -> Iterator[Path]:
        """Where the file is that dwz made for several debug files: by its name, counted from one of them, or its ID.

        Whoever opens it looks at its identifier.
        """
        places = [Path(os.path.realpath(elf.name)).parent / name, *self._debug_places(elf, identifier)]
        usual = [name.removeprefix(f"{root}/") for root in DEBUG_ROOTS if name.startswith(f"{root}/")]
        places += (Path(root, below) for root in self.roots for below in usual)
        yield from (place for place in places if self._is_there(_debug_name(elf), place))
        yield from self._served(_debug_name(elf), identifier, "debuginfo")

    def report(self) -> list[str]:
        """For each file that was looked for, where it was found, and where it was looked for before."""
        lines = []
        for what, places in self._looked.items():
            found = [place for place, is_there in places.items() if is_there]
            lost = [place for place, is_there in places.items() if not is_there]
            line = f"{what}: {found[-1]}" if found else f"{what}: not found"
            lines.append(f"{line} (looked in {', '.join(lost)})" if lost else line)
        return lines

    def _is_there(self, what: str, path: _Path) -> bool:
        there = os.path.isfile(path)
        self._looked.setdefault(what, {})[os.fspath(path)] = there
        return there

    def _roots_of(self, elf: ElfFile) -> tuple[str, ...]:
        """First those of the process whose root a file is below."""
        root = _PROCESS_ROOT.match(elf.name)
        own = tuple(f"{root[0]}{one}" for one in DEBUG_ROOTS) if root is not None else ()
        return (*own, *self.roots)

    def _debug_places(self, elf: ElfFile, build_id: bytes) -> Iterator[Path]:
        return self._below_roots(self._roots_of(elf), build_id)

    def _below_roots(self, roots: Sequence[str], build_id: bytes) -> Iterator[Path]:
        text = build_id.hex()
        for root in roots:
            yield Path(root, ".build-id", text[:2], f"{text[2:]}.debug")
            yield Path(root, ".build-id", text[:2], text[2:], "debug")

    def _by_link(self, elf: ElfFile) -> ElfFile | None:
        build_id, link = elf.build_id, debug_link(elf)
        for path in self._by_name(elf, link.name) if link is not None else ():
            found = self._open(path, elf)
            if link is None or found is None:
                continue
            checksum = _checksum(found)
            if checksum == link.crc and (not build_id or _build_id(found) in {None, build_id}):
                return found
            self._pass_over(path, elf, _ANOTHER.format(elf.name) if checksum is not None else None)
        return None

    def _pass_over(self, path: Path, elf: ElfFile, why: str | None) -> None:
        """Do not use a debug file of this one; it is not said `why` if it was before."""
        self._looked[_debug_name(elf)][os.fspath(path)] = False
        if why is not None:
            warnings.warn(f"{path}: this debug file {why}, and is not used", PassedOverWarning, stacklevel=2)

    def _by_name(self, elf: ElfFile, name: str) -> Iterator[Path]:
        """Of the folder as it was named, and of the one that it is when symbolic links are followed."""
        with contextlib.suppress(ValueError):  # a NUL in the name
            path = Path(elf.name).absolute()
            for folder in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
                yield folder / name
                yield folder / ".debug" / name
                for root in self._roots_of(elf):
                    yield Path(root, *self._on_its_machine(folder).parts[1:], name)

    def _on_its_machine(self, folder: Path) -> Path:
        """How the machine or container that a folder is from names it."""
        if self.sysroot is not None:
            for root in (os.path.abspath(self.sysroot), os.path.realpath(self.sysroot)):
                if folder.is_relative_to(root):
                    return Path("/", folder.relative_to(root))
        return Path(_PROCESS_ROOT.sub("", str(folder)) or "/")

    def _fetched(self, elf: ElfFile) -> ElfFile | None:
        build_id = _build_id(elf)
        for path in self._served(_debug_name(elf), build_id, "debuginfo") if build_id else ():
            with contextlib.suppress(OSError, UnreadableError):
                return ElfFile(path)
        return None

    def _served(self, what: str, build_id: bytes, kind: str) -> Iterator[Path]:
        if self.servers is None:
            return
        path = self.servers.find(build_id, kind)
        self._note_servers(what, build_id)
        if path is not None:
            yield path

    def _note_servers(self, what: str, build_id: bytes) -> None:
        if self.servers is not None:
            self._looked.setdefault(what, {}).update(self.servers.looked(build_id))

    def _open(self, path: Path, elf: ElfFile) -> ElfFile | None:
        """The file there, unless it cannot be read or is the stripped file itself."""
        with contextlib.suppress(OSError, ValueError):
            if not self._is_there(_debug_name(elf), path):
                return None
            try:
                found = ElfFile(path)
            except UnreadableError:
                self._pass_over(path, elf, "cannot be read")
                return None
            # The stripped file may be no file at all, but a member of an archive or bytes in memory.
            with contextlib.suppress(OSError):
                if path.samefile(elf.name):
                    return None
            return found
        return None


def debug_file(elf: ElfFile, roots: Sequence[_Path] = DEBUG_ROOTS) -> ElfFile | None:
    """The separate debug file of a file, in the folders of distributions or in others, and beside it."""
    return FileSearch(debug_roots=roots).debug_file(elf)


def _usual_roots(sysroot: str | None, buildid_dir: _Path | None) -> tuple[str, ...]:
    """Perf's build-ID cache, and the folders of separate debug files.

    The cache is `buildid_dir`, else what the environment's PERF_BUILDID_DIR names, else `~/.debug`.
    """
    cache = os.fspath(buildid_dir) if buildid_dir is not None else os.environ.get("PERF_BUILDID_DIR") or _PERF_CACHE
    own = [f"{sysroot}{root}" for root in DEBUG_ROOTS] if sysroot is not None else []
    cache = os.path.expanduser(cache)
    # Without a home the path stays as it is, and would be in whatever folder this runs in.
    return (*(() if cache.startswith("~") else (cache,)), *own, *DEBUG_ROOTS)


def _debug_name(elf: ElfFile) -> str:
    return f"debug file of {elf.name}"


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


def _deleted(name: str, process: int) -> Iterator[str]:
    """A file that is not under its name any more, as a process that runs has mapped it."""
    folder = f"/proc/{process}/map_files"
    with contextlib.suppress(OSError):
        for entry in os.listdir(folder):
            with contextlib.suppress(OSError):  # unmapped since
                if os.readlink(f"{folder}/{entry}") == f"{name} (deleted)":
                    yield f"{folder}/{entry}"
                    return
