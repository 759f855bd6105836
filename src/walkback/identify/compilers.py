"""Compilers and linkers by what they write of themselves: in DW_AT_producer, and in the section `.comment`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple


class Compiler(NamedTuple):
    """A family of compilers, and the version if one is given."""

    family: str
    version: str | None

    def __str__(self) -> str:
        return f"{self.family} {self.version}" if self.version else self.family


GCC: Final = "GCC"
CLANG: Final = "Clang"
LLVM: Final = "LLVM"
"""A compiler that makes its code with LLVM, where nothing shows which."""
RUSTC: Final = "rustc"
GO: Final = "Go"
GNU_AS: Final = "GNU as"
LLVM_MC: Final = "llvm-mc"
GHC: Final = "GHC"
OCAML: Final = "OCaml"
SWIFT: Final = "Swift"
LDC: Final = "LDC"
FREE_PASCAL: Final = "Free Pascal"

ONE_LANGUAGE: Final = {
    RUSTC: "Rust",
    GO: "Go",
    GHC: "Haskell",
    OCAML: "OCaml",
    SWIFT: "Swift",
    LDC: "D",
    FREE_PASCAL: "Pascal",
}
"""Families that compile nothing else."""

_NUMBER = r"(\d+(?:\.\d+)+)"
_KNOWN = tuple(
    (re.compile(pattern), family)
    for pattern, family in (
        (rf"(?:clang LLVM \()?rustc version {_NUMBER}?", RUSTC),
        (rf"GNU AS {_NUMBER}?", GNU_AS),
        # GNU C++17 14.2.0 -mtune=generic; GNU GIMPLE 12.2.0, where the linker had the code compiled.
        (rf"GNU [A-Z]\S* {_NUMBER}", GCC),
        # GCC: (Debian 12.2.0-14) 12.2.0: what is in the brackets is the distribution's.
        (rf"GCC: \(.*?\) {_NUMBER}", GCC),
        (rf"(?:.* )?clang version {_NUMBER}?", CLANG),
        (rf"llvm-mc \(based on LLVM {_NUMBER}?", LLVM_MC),
        (rf"Go cmd/compile (?:go{_NUMBER})?", GO),
        (rf"(?:LDC|ldc version) {_NUMBER}?", LDC),
        (rf"The Glorious Glasgow Haskell Compilation System {_NUMBER}?", GHC),
        (rf"(?:.* )?Swift version {_NUMBER}?", SWIFT),
        (rf"(?:FPC|Free Pascal) {_NUMBER}?", FREE_PASCAL),
    )
)
_OTHER = re.compile(rf"([^(\[]{{1,40}}?),?(?: version)? v?{_NUMBER}")
_LINKERS = tuple(
    (re.compile(pattern), name)
    for pattern, name in ((rf"Linker: (?:.* )?LLD {_NUMBER}?", "LLD"), (rf"mold {_NUMBER}?", "mold"))
)
OF_C: Final = (CLANG, GCC)
"""Whose marks are in files of all other compilers too: of libraries of C that are linked in, and GCC's of the start-up
code of nearly every file."""


def known_compiler(text: str) -> Compiler | None:
    """The compiler of a text that one writes of itself; None where that may be anything else."""
    return _first_match(_KNOWN, text)


def _first_match(patterns: Iterable[tuple[re.Pattern[str], str]], text: str) -> Compiler | None:
    """The first of the names whose pattern fits, with the version."""
    return next((Compiler(name, match[1]) for pattern, name in patterns if (match := pattern.match(text))), None)


def compiler_of(producer: str) -> Compiler | None:
    """The compiler of a DW_AT_producer; of one that is not known here the name and version that stand there."""
    match = _OTHER.match(producer)
    other = Compiler(match[1].strip(), match[2]) if match and match[1].strip() else None
    return known_compiler(producer) or other


def linker_of(text: str) -> str | None:
    """The linker of an entry of `.comment`; None if that is of no linker."""
    if linker := _first_match(_LINKERS, text):
        return str(linker)
    if text.startswith("Linker: "):
        return text.removeprefix("Linker: ")[:40]
    return None


def likeliest(named: Iterable[Compiler]) -> Compiler | None:
    """The one of those in `.comment` that compiled the file; of several versions the last.

    How much is whose it does not say, but start-up code is mostly older than what it is linked with.
    """
    return max(named, key=lambda one: (-_rank(one.family), one.family, _numbers(one.version)), default=None)


def _rank(family: str) -> int:
    return OF_C.index(family) + 1 if family in OF_C else 0


def _numbers(version: str | None) -> list[int]:
    return [int(part) for part in version.split(".")] if version else []
