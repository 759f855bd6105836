"""What languages and compilers leave in a file besides what they write of themselves.

Names in string tables, sections, and the notes of Go; each was found in what the compilers of distributions made. Only
bytes are looked at, and no more than the beginning of large tables.
"""

from __future__ import annotations

import contextlib
import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from walkback.base.errors import WalkbackError
from walkback.elf import layout
from walkback.identify import compilers
from walkback.identify.compilers import Compiler, known_compiler, linker_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from walkback.elf import ElfFile
    from walkback.elf.file import Table

UNKNOWN: Final = "unknown"

_LARGEST = 1 << 20
_LARGEST_STRINGS = 1 << 18
"""The bytes of the constants, and of a string table, that are looked at."""
_LONGEST_COMMENT = 1 << 14
"""An entry is there once, however many files were linked."""
_LONGEST_ENTRY = 256


class Comment(NamedTuple):
    """What `.comment` names."""

    compilers: tuple[Compiler, ...]
    linker: str | None


class Mark(NamedTuple):
    """A language that a file has, where that is seen, and the compiler if that follows from it."""

    language: str
    evidence: str
    compiler: Compiler | None = None


_NAMES: Final = (
    # The code of OCaml's own; libraries of C for OCaml have names in small letters behind an underscore.
    (re.compile(rb"\0caml[A-Z]"), Mark("OCaml", "symbols", Compiler(compilers.OCAML, None))),
    (re.compile(rb"\0stg_[A-Za-z]"), Mark("Haskell", "symbols", Compiler(compilers.GHC, None))),
    (re.compile(rb"\0__crystal_"), Mark("Crystal", "symbols", Compiler("Crystal", None))),
    (re.compile(rb"__gccgo_personality_v0"), Mark("Go", "symbols", Compiler(compilers.GCC, None))),
    (re.compile(rb"__gdc_personality_v0"), Mark("D", "symbols", Compiler(compilers.GCC, None))),
    (re.compile(rb"\0__gnat_"), Mark("Ada", "symbols", Compiler(compilers.GCC, None))),
    (re.compile(rb"\0__gnu_objc_personality_v0|\0objc_msg_lookup\0"), Mark("Objective-C", "symbols")),
)
_FEWEST_FORTRAN = 8
_D_NAME = re.compile(rb"\0_D\d")
_LONGEST_NAME = 256
_MOST_NAMES = 50_000
_OLD_RUST = re.compile(rb"17h[0-9a-f]{16}E[\0.]")
_NEW_RUST = re.compile(rb"\0_RI?N[vtCS][CMXYNI]")
_RUST: Final = Mark("Rust", "symbols", Compiler(compilers.RUSTC, None))
_SWIFT: Final = Mark("Swift", "symbols", Compiler(compilers.SWIFT, None))
_SWIFT_SECTION: Final = "swift5_typeref"
_D_SECTIONS: Final = ("__minfo", "minfo")
"""LDC's, and GCC's; what Digital Mars writes was not seen."""
_GO_SECTIONS: Final = (".go.buildinfo", ".note.go.buildid", ".gopclntab")
_GO_MAGIC: Final = b"\xff Go buildinf:"
_GO_FLAGS: Final = 15
_GO_INLINE: Final = 2
"""The flag that says that the version stands in the section; before Go 1.18 there were pointers to it."""
_GO_LENGTH: Final = 32
"""Where the length of the version is, and behind it the version."""
_GO_VERSION = re.compile(rb"go(\d+(?:\.\d+)+)")

_RUST_SOURCE = re.compile(rb"/rustc(?:/[0-9a-f]{40}|-(\d+\.\d+\.\d+)(?:-src)?)/library/")
"""What a panic names: where the standard library was compiled."""
_GOLD = re.compile(rb"gold (\d+(?:\.\d+)+)")

_GHC_LIBRARY = re.compile(rb"-linux-ghc-(\d+(?:\.\d+)+)")
_GHC_TEXT = b"(GHC version %s for %s)"
"""What the run-time system of GHC says when it breaks."""


class Marks:
    """What can be seen in one file."""

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf
        self._first: dict[str, int] = {}
        with contextlib.suppress(WalkbackError):
            for index, name in enumerate(elf.section_names()):
                self._first.setdefault(name, index)

    @cached_property
    def comment(self) -> Comment:
        """The compilers of `.comment`, and the linker."""
        found: dict[Compiler, None] = {}
        linker = None
        for entry in self._section(".comment", _LONGEST_COMMENT).split(b"\0"):
            text = entry[:_LONGEST_ENTRY].decode(errors="backslashreplace")
            linked = linker_of(text)
            named = None if linked else known_compiler(text)
            linker = linked or linker
            if named:
                found[named] = None
        return Comment(tuple(found), linker)

    def go(self) -> Mark | None:
        """What the linker of Go writes into its programs: the version too, from Go 1.18 on."""
        name = next((name for name in _GO_SECTIONS if name in self._first), None)
        if name is None:
            return None
        data = self._section(_GO_SECTIONS[0], 4096)
        inline = data.startswith(_GO_MAGIC) and len(data) > _GO_LENGTH and data[_GO_FLAGS] & _GO_INLINE
        end = _GO_LENGTH + 1 + data[_GO_LENGTH] if inline else 0
        match = _GO_VERSION.match(data, _GO_LENGTH + 1) if inline and end <= len(data) else None
        return Mark("Go", name, Compiler(compilers.GO, match[1].decode() if match else None))

    def linker(self) -> str | None:
        """The linker, by `.comment`, the note that gold leaves, or what only that of Go leaves out: start-up code."""
        gold = _GOLD.search(self._section(".note.gnu.gold-version", 64))
        if self.comment.linker or gold:
            return self.comment.linker or (f"gold {gold[1].decode()}" if gold else None)
        own = not self.elf.is_relocatable and ".init" not in self._first and ".eh_frame" not in self._first
        return compilers.GO if own and self.go() else None

    def in_sections(self) -> Mark | None:
        """A language by sections that only it has."""
        if any(name in self._first for name in _D_SECTIONS):
            return Mark("D", "sections")
        pascal = known_compiler(self._section(".fpcdata", 256).split(b"\0")[0].decode(errors="backslashreplace"))
        if pascal:
            return Mark("Pascal", "sections", pascal)
        if b"rust" in self._section(".debug_gdb_scripts", 256):
            return _RUST._replace(evidence="sections")
        return None

    def in_symbols(self) -> Mark | None:
        """A language by the names that its compilers give, and by its routines for exceptions."""
        tables = dict(_string_tables(self.elf))
        names = b"".join(tables.values())
        for pattern, mark in _NAMES:
            if pattern.search(names):
                return mark
        old = len(_OLD_RUST.findall(names))
        counts = {
            _RUST: old + len(_NEW_RUST.findall(names)) + names.count(b"rust_eh_personality"),
            _SWIFT: names.count(b"\0$s"),
            Mark("D", "symbols"): len(_D_NAME.findall(names)),
            Mark("C++", "symbols"): names.count(b"\0_Z") + names.count(b"__gxx_personality_v0") - old,
        }
        most = max(counts, key=lambda mark: counts[mark])
        if counts[most] > 0:
            return most
        if _SWIFT_SECTION in self._first:
            return _SWIFT._replace(evidence="sections")
        with contextlib.suppress(WalkbackError):
            for index, strings in tables.items():
                language = _fortran(self.elf.symbols(index)[:_MOST_NAMES], strings)
                if language:
                    return Mark(language, "symbols")
        return None

    def in_strings(self) -> Mark | None:
        """A language by what its run-time library says."""
        constants = self._section(".rodata", _LARGEST)
        match = _RUST_SOURCE.search(constants)
        if match:
            return Mark("Rust", "strings", Compiler(compilers.RUSTC, match[1].decode() if match[1] else None))
        match = _GHC_LIBRARY.search(constants)
        if match or _GHC_TEXT in constants:
            return Mark("Haskell", "strings", Compiler(compilers.GHC, match[1].decode() if match else None))
        return None

    def _section(self, name: str, most: int) -> bytes:
        """The beginning of the first section of a name; nothing where there is none that can be read."""
        if name in self._first:
            with contextlib.suppress(WalkbackError):
                return bytes(self.elf.section_data(self._first[name])[:most])
        return b""


def _string_tables(elf: ElfFile) -> Iterator[tuple[int, bytes]]:
    """The symbol tables, each with the beginning of its strings."""
    for kind in (layout.SHT_SYMTAB, layout.SHT_DYNSYM):
        with contextlib.suppress(WalkbackError):
            for index in elf.sections_of_type(kind)[:1]:
                yield index, bytes(elf.section_data(int(elf.sections["link"][index]))[:_LARGEST_STRINGS])


def _fortran(symbols: Table, strings: bytes) -> str | None:
    """Fortran, where the run-time library of GCC's is asked for; `unknown` where many functions may be of Fortran.

    Their names end with an underscore, as Fortran's do, and there is none without it: but some libraries of C have such
    names too. What is only called shows nothing, as many call libraries of Fortran.
    """
    place = strings.find(b"\0_gfortran_") + 1
    asked = symbols["section"] == layout.SHN_UNDEF
    if place and bool((asked & (symbols["name_offset"] == place)).any()):
        return "Fortran"
    if b"_\0" not in strings:
        return None
    functions = symbols[~asked & (symbols["info"] & 15 == layout.STT_FUNC) & (symbols["name_offset"] < len(strings))]
    names = {strings[start : start + _LONGEST_NAME].partition(b"\0")[0] for start in functions["name_offset"].tolist()}
    count = sum(name.endswith(b"_") and name[:-1] not in names for name in names)
    return UNKNOWN if count >= _FEWEST_FORTRAN and 4 * count >= len(names) else None
