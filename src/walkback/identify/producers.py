"""Who made a file: the compiler of most of it, all that left a mark, the language, and the linker.

The evidence, the surest first: DW_AT_producer of the file or of its separate debug file; what Go writes into its
programs; `.comment`; names of symbols and sections, and what run-time libraries say; the style of the call frame
information. What cannot be read is none, and a file without any is counted as `unknown`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Final

from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import FrameSource
from walkback.dwarf.units import compile_units
from walkback.elf import ElfFile, FileSearch
from walkback.identify import compilers
from walkback.identify.compilers import OF_C, Compiler, compiler_of, likeliest
from walkback.identify.framestyle import frame_style
from walkback.identify.marks import UNKNOWN, Mark, Marks

ASSEMBLY: Final = "Assembly"

_STARTUP = 8
"""Up to this many units of GCC's may come with the start-up code of the C library."""
_MOST_PRODUCERS = 32
_IN_STRINGS = (compilers.RUSTC, compilers.GHC)

_Written = tuple[Compiler | None, str | None]
"""The compiler and the language of a unit."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a file."""

    producer: str
    """The compiler of most of it: `GCC`, `Clang`, `rustc`; or `unknown`."""
    version: str | None
    evidence: str | None
    """What shows it: `DW_AT_producer`, a section of Go's, `.comment`, `symbols`, `sections`, `strings` or `frames`."""
    producers: tuple[str, ...]
    """All that left a mark, with their versions."""
    language: str
    linker: str | None
    """None of GNU ld, which leaves no mark."""


def origin(elf: ElfFile, sources: Sequence[FrameSource], debug: ElfFile | None = None) -> Origin:
    """Who made a file; `sources` are its call frame information and `debug` its separate debug file."""
    files = [elf] if debug is None else [elf, debug]
    try:
        return _Evidence(files, sources).weighed()
    except WalkbackError:  # not even its sections can be listed
        return Origin(UNKNOWN, None, None, (), UNKNOWN, None)


def origin_with_debug_file(elf: ElfFile, sources: Sequence[FrameSource], roots: Sequence[str]) -> Origin:
    """The same, with the separate debug file that these folders have for the file."""
    debug = None
    with suppress(WalkbackError):  # a damaged note names no debug file
        debug = FileSearch(debug_roots=roots).by_build_id(elf)
    return origin(elf, sources, debug)


class _Evidence:
    """What shows who made a file, in it and in its debug file."""

    def __init__(self, files: Sequence[ElfFile], sources: Sequence[FrameSource]) -> None:
        self.sources = sources
        self.units = _units(files)
        marks = [Marks(file) for file in files]
        # Distributions strip `.comment` from the file and keep it in the debug file.
        self.comment = next((one.comment for one in marks if one.comment.compilers), marks[0].comment)
        self.linker = next(filter(None, (one.linker() for one in marks)), None)
        self.go = marks[0].go()
        self.mark = self.go or _mark(marks)

    def weighed(self) -> Origin:
        compiler, evidence = self._compiler()
        named = {*self.comment.compilers, *(one for one, _ in self.units if one)}
        if compiler and all(one.family != compiler.family for one in named):
            named.add(compiler)
        return Origin(
            compiler.family if compiler else UNKNOWN,
            compiler.version if compiler else None,
            evidence,
            tuple(sorted(map(str, named))[:_MOST_PRODUCERS]),
            self._language(compiler, evidence),
            self.linker,
        )

    def _compiler(self) -> tuple[Compiler | None, str | None]:
        """The compiler of most of the file, and what shows it."""
        written = Counter({one: count for one, count in self.units.items() if one[0] and one[1] != ASSEMBLY})
        if written and not self._is_part(written):
            return _most(written), "DW_AT_producer"
        mark, special = self.mark, self.mark.compiler if self.mark else None
        named = likeliest(self.comment.compilers)
        only_c = named is None or named.family in OF_C
        if mark and special and special.family not in OF_C and (mark is self.go or only_c):
            return special, mark.evidence
        if named and not (named.family == compilers.GCC and self._style == compilers.LLVM):
            return named, ".comment"
        if mark and special:
            return special, mark.evidence
        assembled = Counter({one: count for one, count in self.units.items() if one[0]})
        if assembled and not written and not named:
            return _most(assembled), "DW_AT_producer"
        return (Compiler(self._style, None), "frames") if self._style else (None, None)

    def _is_part(self, written: Counter[_Written]) -> bool:
        """Whether the units are those of what was linked in, as a compiler left marks that none of them names."""
        families = {one.family for one, _ in written if one}
        named = likeliest(self.comment.compilers)
        for one in (named, self.mark.compiler if self.mark else None):
            if one and one.family not in OF_C and one.family not in families:
                return True
        clang = named is not None and named.family == compilers.CLANG
        return clang and families == {compilers.GCC} and written.total() <= _STARTUP

    @cached_property
    def _style(self) -> str | None:
        return frame_style(self.sources)

    def _language(self, compiler: Compiler | None, evidence: str | None) -> str:
        if evidence == "DW_AT_producer":
            languages: Counter[str] = Counter()
            for (_, language), count in self.units.items():
                languages[language or UNKNOWN] += count
            # Hand-written pieces, and units that do not say it, count where there are no others.
            last = (ASSEMBLY, UNKNOWN)
            return min(languages, key=lambda one: (one in last, -languages[one], one))
        if compiler and compiler.family in compilers.ONE_LANGUAGE:
            return compilers.ONE_LANGUAGE[compiler.family]
        if self.mark:
            return self.mark.language
        # C leaves no mark: what the compilers of C made, and nothing else has marked, is C.
        return "C" if compiler and compiler.family in OF_C else UNKNOWN


def _units(files: Sequence[ElfFile]) -> Counter[_Written]:
    """The units of the file, or where it has none of its debug file, by compiler and language."""
    found: Counter[_Written] = Counter()
    for file in files:
        for unit, count in compile_units(file).items():
            found[compiler_of(unit.producer) if unit.producer else None, unit.language] += count
        if found:
            break
    return found


def _most(written: Counter[_Written]) -> Compiler:
    """The family of most units, and its version of most."""
    families: Counter[str] = Counter()
    compilers_of: Counter[Compiler] = Counter()
    for (one, _), count in written.items():
        if one:
            families[one.family] += count
            compilers_of[one] += count
    family = min(families, key=lambda one: (-families[one], one))
    own = [one for one in compilers_of if one.family == family]
    return min(own, key=lambda one: (-compilers_of[one], str(one)))


def _mark(marks: Sequence[Marks]) -> Mark | None:
    """The language that has left a mark; with the version of its compiler where a run-time library has it."""
    mark = marks[0].in_sections()
    for one in marks:
        mark = mark or one.in_symbols()
    named = mark.compiler if mark else None
    if mark is None or (named and named.family in _IN_STRINGS and not named.version):
        found = marks[0].in_strings()
        if mark is None:
            return found
        if found and found.language == mark.language:
            return mark._replace(compiler=found.compiler)
    return mark
