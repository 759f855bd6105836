"""Every way an input can be wrong.

    WalkbackError
    |-- UnreadableError        the file cannot be opened, or is not of a kind that is read here
    |   `-- ElfError           an ELF file or archive whose structure contradicts itself
    |-- MissingError           the file is sound and does not hold what was asked for
    |-- SFrameError            bytes that break a rule of the SFrame format
    |-- DwarfError             call frame information that breaks a rule of its format
    |-- GoError                a table of Go's functions that contradicts itself
    |-- OrcError               the kernel's unwind table, damaged or in an unknown layout
    |-- BacktraceError         bytes that break a rule of the formats of backtraces, CBF and CIF
    |-- InexpressibleError     a rule or a function that the chosen format cannot say
    |   `-- IncompleteError    several functions, each with its reason
    |-- GraftError             a file that a section cannot be put into or taken out of
    `-- ArgumentError          an argument that makes no sense; it is a ValueError as well

An error is one line: the file, the section and offset in it, the function, what is wrong, and the code of the
rule that is broken. The code that notices knows the offset; the callers above it add the file and section with
`within`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from walkback.base.dataclass import dataclass
from walkback.base.text import printable


class WalkbackError(Exception):
    """Base of all errors that an input can cause; `str()` of it is one line.

    >>> try:
    ...     walkback.ElfFile("nowhere")
    ... except walkback.WalkbackError as error:
    ...     print(error)
    nowhere: No such file or directory
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        section: str | None = None,
        offset: int | None = None,
        function: str | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.section = section
        self.offset = offset
        self.function = function
        self.rule = rule

    def within(self, *, file: str | None = None, section: str | None = None) -> Self:
        """Fill in the place that the raising code did not know, and return the error."""
        self.file = self.file or file
        self.section = self.section or section
        return self

    def __str__(self) -> str:
        place = self.section or ""
        if self.offset is not None:
            place += f"+{self.offset:#x}" if place else f"offset {self.offset:#x}"
        parts = [part for part in (self.file, place, self.function, self.message) if part]
        line = ": ".join(parts)
        if self.rule:
            line += f" [{self.rule}]"
        return printable(line)


class UnreadableError(WalkbackError):
    """The file cannot be opened, or is not of a kind that is read here.

    >>> walkback.ElfFile("nowhere")
    Traceback (most recent call last):
    ...
    walkback.UnreadableError: nowhere: No such file or directory
    """


class ElfError(UnreadableError):
    """An ELF file or archive whose structure contradicts itself.

    >>> walkback.ElfFile(bytes.fromhex("7f454c4602"))
    Traceback (most recent call last):
    ...
    walkback.ElfError: <bytes>: offset 0x0: the file ends within its ELF header
    """


class MissingError(WalkbackError):
    """The file is sound and does not hold what was asked for.

    >>> walkback.derive("a.out")
    Traceback (most recent call last):
    ...
    walkback.MissingError: a.out: there is no .eh_frame or .debug_frame section
    """


class SFrameError(WalkbackError):
    """Bytes that break a rule of the SFrame format.

    >>> walkback.sframe.decode(bytes.fromhex("e2de09") + bytes(40))
    Traceback (most recent call last):
    ...
    walkback.SFrameError: offset 0x2: version 9 is not known; versions 1, 2 and 3 are [header-version]
    """


class DwarfError(WalkbackError):
    """Call frame information that breaks a rule of its format.

    >>> from pathlib import Path
    >>> [source] = walkback.dwarf.read("hello")
    >>> damaged = bytearray(Path("hello").read_bytes())
    >>> damaged[source.elf.sections["offset"][source.index]] = 255
    >>> walkback.derive(damaged)
    Traceback (most recent call last):
    ...
    walkback.DwarfError: <bytes>: .eh_frame+0x0: an entry reaches beyond the end of the section [cfi-length]
    """


class GoError(WalkbackError):
    """A table of Go's functions that contradicts itself.

    >>> walkback.gopclntab.decode(bytes(64))
    Traceback (most recent call last):
    ...
    walkback.GoError: offset 0x0: this is no table of Go's functions [go-magic]
    """


class OrcError(WalkbackError):
    """The Linux kernel's unwind table, damaged or in an unknown layout.

    >>> walkback.orc.decode(bytes(5), bytes(4), walkback.orc.Layout.LINUX_6_4)
    Traceback (most recent call last):
    ...
    walkback.OrcError: offset 0x0: 5 bytes are no whole number of entries, which have 6 bytes [orc-size]
    """


class BacktraceError(WalkbackError):
    """Bytes that break a rule of the Compact Backtrace Format or the Compact Image Map Format.

    >>> walkback.cbf.decode(b"")
    Traceback (most recent call last):
    ...
    walkback.BacktraceError: offset 0x0: there is no information byte [no-data]
    """


class InexpressibleError(WalkbackError):
    """A rule or a function that the chosen format cannot say.

    >>> builder = walkback.sframe.SectionBuilder("AMD64")
    >>> builder.function(0x1000, 32, ["CFA = r10"])
    >>> walkback.sframe.build(builder.table(), version=2)
    Traceback (most recent call last):
    ...
    walkback.InexpressibleError: function 0 at 0x1000: version 2 cannot say a CFA based on a register ...
    """


class PassedOverWarning(UserWarning):
    """A file that belongs to an input is not read, because that would take too much; the work goes on without it."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A function that a result does not have, or would not have."""

    file: str
    """The file that it is in."""
    section: str | None
    """In relocatable files, the text section."""
    start: int
    """The address; in relocatable files, the offset in the section."""
    size: int
    """The bytes of code."""
    name: str | None
    """The symbol."""
    reason: str
    """The reason."""

    @property
    def place(self) -> str:
        """Where it is, for a person."""
        where = f"{self.start:#x}" if self.section is None else f"{self.section}+{self.start:#x}"
        return f"{where} {self.name} ({self.size} bytes)" if self.name else f"{where} ({self.size} bytes)"


class IncompleteError(InexpressibleError):
    """Functions that a result would not have; nothing is written.

    >>> builder = walkback.sframe.SectionBuilder("AMD64")
    >>> builder.function(0x1000, 32, ["CFA = r10"])
    >>> walkback.convert(builder.encode(), "old.sframe", version=2)
    Traceback (most recent call last):
    ...
    walkback.IncompleteError: 1 function cannot be written in version 2; nothing is written
    """

    def __init__(self, message: str, left_out: Sequence[LeftOut], *, file: str | None = None) -> None:
        super().__init__(message, file=file)
        self.left_out = left_out


class ArgumentError(WalkbackError, ValueError):
    """An argument of a call that makes no sense, whatever the input is.

    >>> walkback.Rule.parse("CFA = nonsense+8", walkback.ElfFile("a.out").sframe[0].table.machine)
    Traceback (most recent call last):
    ...
    walkback.ArgumentError: AMD64 has no register 'nonsense'
    """


class GraftError(WalkbackError):
    """A file that a section cannot be put into or taken out of.

    >>> walkback.split("a.out", "split.o")
    Traceback (most recent call last):
    ...
    walkback.GraftError: a.out: this is a linked file; its text sections are one
    """


# As users import them, and as tracebacks name them.
for _error in (
    ArgumentError,
    BacktraceError,
    DwarfError,
    ElfError,
    GoError,
    GraftError,
    IncompleteError,
    InexpressibleError,
    MissingError,
    OrcError,
    SFrameError,
    UnreadableError,
    WalkbackError,
):
    _error.__module__ = "walkback"
