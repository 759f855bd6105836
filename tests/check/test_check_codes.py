"""Each rule of `check`: one section that breaks it, with the exact place, and one that just does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cfibuilder import CfiBuilder, cfa
from elfbuilder import ElfBuilder, Image
from sframebuilder import AARCH64, PCREL, S390X, SORTED, Row, SFrameBuilder, row
from sframefiles import PC32, PC64, SFRAME, SIZE, TEXT, linked, placing, relocatable, small, unplaced, written
from walkback.sections.check import check, check_source
from walkback.sframe.checking import CODES, Finding, Report, Severity
from walkback.sframe.files import from_bytes

DOCS = Path(__file__).resolve().parents[2] / "docs" / "findings.md"
Content = bytes | ElfBuilder | Image
CONSUMERS = ("linux", "glibc", "gnu-ld")


@dataclass
class Case:
    """An input, and where it breaks the rule; a `near` one does not break it."""

    content: Content
    offset: int | None = None
    function: int | None = None
    row: int | None = None
    near: bool = False


@dataclass
class Cases:
    """By code."""

    made: dict[str, list[Callable[..., Case]]] = field(default_factory=dict)

    def __call__(self, code: str, make: Callable[..., Case]) -> None:
        self.made.setdefault(code, []).append(make)

    def of(self, code: str) -> Callable[[Callable[..., Case]], None]:
        return lambda make: self(code, make)


case = Cases()


def report(content: Content, folder: Path, *, code: str = "") -> Report:
    consumer = next((name for name in CONSUMERS if code.startswith(f"{name}-")), None)
    if isinstance(content, bytes):
        return check_source(from_bytes(content, address=SFRAME), consumer=consumer)
    (told,) = check(written(folder, content), consumer=consumer)
    return told


def findings(content: Content, folder: Path, code: str) -> list[Finding]:
    return [finding for finding in report(content, folder, code=code).findings if finding.code == code]


def at(builder: SFrameBuilder, label: str, function: int | None = None, row: int | None = None, **options: Any) -> Case:
    """Broken at a labelled place of raw bytes."""
    data, labels = builder.assemble()
    return Case(data, labels[label], function, row)


def in_file(builder: SFrameBuilder, label: str, function: int | None = None, row: int | None = None) -> Case:
    """Broken at a labelled place of a linked file."""
    data, labels = builder.assemble()
    return Case(linked(data), labels[label], function, row)


def fine(content: Content | SFrameBuilder) -> Case:
    return Case(content.bytes() if isinstance(content, SFrameBuilder) else content, near=True)


def one(rows: list[Row], *, version: int = 3, size: int = SIZE, **options: Any) -> SFrameBuilder:
    """A section of one function with these rows; options are of the section, or else of the function."""
    of_section = {"abi", "order", "flags", "fixed_ra", "fixed_fp"}
    builder = SFrameBuilder(version, address=SFRAME, **{k: v for k, v in options.items() if k in of_section})
    builder.function(TEXT, size, rows, **{k: v for k, v in options.items() if k not in of_section})
    return builder


def changed(number: int, builder: SFrameBuilder | None = None, **overrides: Any) -> SFrameBuilder:
    """`small` with fields of one function set."""
    builder = builder or small()
    builder.functions[number].overrides |= overrides
    return builder


PUSHED = [row(0, 1, [8]), row(1, 1, [16, -16])]


# The header


case("header-size", lambda: Case(b"\xe2\xde\x03\x05\x03\0\xf8\0", 0))
case("header-size", lambda: fine(SFrameBuilder(3)))
case("header-magic", lambda: Case(b"\xe2\xdf" + small().bytes()[2:], 0))
case("header-magic", lambda: fine(small(order="big", abi=1, fixed_ra=0)))


@case.of("header-version")
def _() -> Case:
    data, labels = small().assemble()
    return Case(data[:2] + b"\4" + data[3:], labels["version"])


case("header-version", lambda: fine(small(1)))
case("header-flags", lambda: at(small(3, flags=SORTED | PCREL | 2), "flags"))
case("header-flags", lambda: at(small(2, flags=SORTED | 8), "flags"))
case("header-flags", lambda: fine(small(2, flags=SORTED | PCREL | 2)))
case("header-abi", lambda: at(small(abi=5), "abi_arch"))
case("header-abi", lambda: fine(small(abi=S390X, order="big")))
case("header-byteorder", lambda: at(small(order="big"), "magic"))
case("header-byteorder", lambda: fine(small(order="big", abi=1)))
case("header-auxiliary", lambda: at(small(auxhdr_len=255), "auxhdr_len"))
case("header-auxiliary", lambda: fine(small(auxiliary=b"four")))
case("header-fixed-ra", lambda: at(small(fixed_ra=-16), "cfa_fixed_ra_offset"))
case("header-fixed-ra", lambda: fine(small(abi=AARCH64, fixed_ra=0)))
case("header-fixed-fp", lambda: at(small(fixed_fp=-16), "cfa_fixed_fp_offset"))
case("header-fixed-fp", lambda: fine(small(fixed_fp=0)))


# The parts


case("index-bounds", lambda: at(small(num_fdes=40), "num_fdes"))
case("index-bounds", lambda: fine(SFrameBuilder(3, fdeoff=0xFFFF)))


@case.of("rows-bounds")
def _() -> Case:
    builder = small()
    return at(small(fre_len=len(builder.bytes()) - 0x1C - 3 * 16 + 1), "fre_len")


@case.of("rows-bounds")
def _() -> Case:
    builder = small()
    return fine(small(fre_len=len(builder.bytes()) - 0x1C - 3 * 16))


case("sections-overlap", lambda: at(small(freoff=3 * 16 - 1), "fdeoff"))
case("sections-overlap", lambda: at(small(rows_first=True), "freoff"))  # libsframe refuses this order too
case("sections-overlap", lambda: fine(small(between=b"\0")))
case("index-gap", lambda: at(small(before_index=b"gap"), "auxiliary"))
case("index-gap", lambda: fine(small(auxiliary=b"gap")))


@case.of("rows-gap")
def _() -> Case:
    builder = small()
    builder.functions[1].before = b"gap"
    data, labels = builder.assemble()
    return Case(data, labels["attribute1.num_fres"] - 3)


case("rows-gap", lambda: fine(small(tail=b"gap")))
case("section-tail", lambda: at(small(tail=b"rest"), "end"))
case("section-tail", lambda: at(small(tail=bytes(8)), "end"))
case("section-tail", lambda: fine(small(tail=bytes(7))))
case("row-count", lambda: at(small(num_fres=13), "num_fres"))
case("row-count", lambda: fine(small(num_fres=12)))


# The functions


case("function-fre-type", lambda: at(one(PUSHED, fre_type=3), "attribute0.info", 0))
case("function-fre-type", lambda: fine(one(PUSHED, fre_type=2)))
case("function-type", lambda: at(one(PUSHED, info2=2), "attribute0.info2", 0))
case("function-type", lambda: fine(one([row(0, 0, [0x39, 8])], flex=True)))


@case.of("function-attribute")
def _() -> Case:
    _, labels = small().assemble()
    place = labels["end"] - 4
    return Case(changed(2, fre_offset=place - labels["rows"]).bytes(), place, 2)


@case.of("function-attribute")
def _() -> Case:
    builder = small()
    builder.functions[2].rows = []  # its record is the last thing in the section
    return fine(builder)


@case.of("function-order")
def _() -> Case:
    builder = small(functions=2)
    builder.functions.reverse()
    return at(builder, "fde1.start", 1)


@case.of("function-order")
def _() -> Case:
    builder = small(flags=PCREL)
    builder.functions.reverse()
    return fine(builder)


@case.of("function-order")
def _() -> Case:
    builder = small(1, functions=2, flags=0)  # version 1 is always sorted
    builder.functions.reverse()
    return at(builder, "fde1.start", 1)


case("function-block", lambda: at(one(PUSHED, mask=True, rep_size=0), "attribute0.info", 0))
case("function-block", lambda: fine(one(PUSHED, mask=True, rep_size=16)))
case("function-block", lambda: fine(one(PUSHED, mask=True, version=1)))  # which carries no size


@case.of("function-offset")
def _() -> Case:
    builder = changed(2, small(2), fre_offset=1 << 16, num_fres=0)
    return at(builder, "fde2.fre_offset", 2)


@case.of("function-offset")
def _() -> Case:
    _, labels = small(2).assemble()
    return fine(changed(2, small(2), fre_offset=labels["end"] - labels["rows"], num_fres=0))


case("function-bits", lambda: at(changed(1, small(2), info=0x40), "fde1.info", 1))
case("function-bits", lambda: at(changed(1, info2=0x20), "attribute1.info2", 1))
case(
    "function-bits", lambda: at(changed(1, info=0x20), "attribute1.info", 1)
)  # AMD64 has no pointer-authentication keys
case("function-bits", lambda: fine(one([row(0, 1, [0])], abi=AARCH64, key_b=True)))
case("function-padding", lambda: at(changed(1, small(2), padding=1), "fde1.padding", 1))
case("function-padding", lambda: fine(small(2)))
case("function-no-rows", lambda: at(one([]), "fde0.start", 0))
case("function-no-rows", lambda: fine(one([], signal=True)))


@case.of("function-overlap")
def _() -> Case:
    builder = small()
    builder.functions[0].size = SIZE + 1
    return at(builder, "fde1.start", 1)


@case.of("function-overlap")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT + 8  # an empty one overlaps nothing
    builder.functions[1].size = 0
    builder.functions[1].rows = [row(0, 1, [8])]
    return fine(builder)


@case.of("function-duplicate")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT
    return at(builder, "fde1.start", 1)


@case.of("function-duplicate")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT + 1  # an overlap, not a duplicate
    return fine(builder)


@case.of("function-outside-code")
def _() -> Case:
    builder = small()
    builder.functions[2].start = TEXT + 0x100 - SIZE + 1
    return in_file(builder, "fde2.start", 2)


@case.of("function-outside-code")
def _() -> Case:
    builder = small()
    builder.functions[2].start = TEXT + 0x100 - SIZE
    return fine(linked(builder.bytes()))


@case.of("function-outside-code")
def _() -> Case:
    elf = relocatable(small(), [*placing(3, 2), (0x3C, PC64, ".text", 0x100 - SIZE + 1)])
    return Case(elf, 0x3C, 2)


case("function-outside-code", lambda: fine(relocatable(small(), [*placing(3, 2), (0x3C, PC64, ".text", 0x100 - SIZE)])))


# The rows


@case.of("row-cut-off")
def _() -> Case:
    # The last function claims one row more, which would begin where the rows end.
    builder = changed(2, small(2), num_fres=5)
    builder.header["num_fres"] = 13
    return at(builder, "end", 2)


@case.of("row-cut-off")
def _() -> Case:
    builder = small(2)
    builder.header["fre_len"] = len(builder.bytes()) - 0x1C - 60 - 1
    return at(builder, "fre2.3", 2)


case("row-cut-off", lambda: fine(small(2)))
case("row-word-size", lambda: at(one([row(0, 1, [8]), row(1, 0, [16], info=0x63)]), "fre0.1", 0))
case("row-word-size", lambda: fine(one([row(0, 1, [8]), row(1, 1, [16], size=4)])))
case("row-order", lambda: at(one([row(0, 1, [8]), row(4, 1, [16]), row(4, 1, [8])]), "fre0.2", 0, 2))
case("row-order", lambda: fine(one([row(0, 1, [8]), row(4, 1, [16]), row(5, 1, [8])])))
case("row-range", lambda: at(one([row(0, 1, [8]), row(SIZE + 1, 1, [8])]), "fre0.1", 0, 1))
case("row-range", lambda: at(one([row(0, 1, [8]), row(16, 1, [8])], mask=True, rep_size=16), "fre0.1", 0, 1))
case("row-range", lambda: fine(one([row(0, 1, [8]), row(SIZE - 1, 1, [8])])))
case("row-at-end", lambda: at(one([row(0, 1, [8]), row(SIZE, 1, [8])]), "fre0.1", 0, 1))
case("row-at-end", lambda: fine(one([row(0, 1, [8])], size=0)))
case("row-extra-words", lambda: at(one([row(0, 1, [8]), row(1, 1, [16, -16, -24])]), "fre0.1", 0, 1))
case("row-extra-words", lambda: at(one([row(0, 0, [0x39, 8, 0, 2, -16, 1])], flex=True), "fre0.0", 0, 0))
case("row-extra-words", lambda: fine(one([row(0, 1, [16, -8, -16])], abi=AARCH64)))
case("row-extra-words", lambda: fine(one([row(0, 0, [0x39, 8, 2, -24, 2, -16])], flex=True)))
case("row-no-words", lambda: at(one([row(0, 0, info=0)], version=1), "fre0.0", 0, 0))
case("row-no-words", lambda: fine(one([row(0, 0, info=0)], version=2)))
case("flex-words", lambda: at(one([row(0, 0, [0x39, 16, 0, 2])], flex=True), "fre0.0", 0, 0))
case("flex-words", lambda: fine(one([row(0, 0, [0x39, 16, 0, 2, -16])], flex=True)))
case("flex-cfa", lambda: at(one([row(0, 0, [2, 16])], flex=True), "fre0.0", 0, 0))
case("flex-cfa", lambda: fine(one([row(0, 0, [0x53, 16])], flex=True)))


@case.of("rows-overlap")
def _() -> Case:
    _, labels = small(2).assemble()
    builder = changed(1, small(2), fre_offset=labels["fre0.2"] - labels["rows"], num_fres=2)
    builder.header["num_fres"] = 10
    return Case(builder.bytes(), labels["fre0.2"], 1)


case("rows-overlap", lambda: fine(shared()))


def shared() -> SFrameBuilder:
    builder = small(2)
    builder.functions[1].shares = 0
    return builder


case("rows-same", lambda: at(shared(), "rows", 1))
case("rows-same", lambda: fine(small(2)))
case("rows-shared", lambda: at(many_shared(3124), "rows", 3123))
case("rows-shared", lambda: fine(many_shared(3123)))


def many_shared(functions: int) -> SFrameBuilder:
    """Functions that all claim the same 31 rows."""
    builder = SFrameBuilder(2, address=SFRAME)
    for number in range(functions):
        rows = [row(start, 1, [8]) for start in range(31)]
        builder.function(TEXT + SIZE * number, SIZE, rows, shares=0 if number else None)
    return builder


case("row-bits", lambda: at(one([row(0, 0, [0x3D, 8])], flex=True), "fre0.0", 0, 0))  # bit 2 of the control word
case("row-bits", lambda: at(one([row(0, 0, [0x39, 8], info=0x05)], flex=True), "fre0.0", 0, 0))
case("row-bits", lambda: at(one([row(0, 0, info=0x21)]), "fre0.0", 0, 0))
case("row-bits", lambda: fine(one([row(0, 0, info=0)])))
case("row-mangled", lambda: at(one([row(0, 1, [8], mangled=True)]), "fre0.0", 0, 0))
case("row-mangled", lambda: fine(one([row(0, 1, [0], mangled=True)], abi=AARCH64)))
case("row-register", lambda: at(one([row(0, 1, [0x39, 8, 0, -5, 8], size=4)], flex=True), "fre0.0", 0, 0))
case("row-register", lambda: fine(one([row(0, 0, [15 << 3 | 1, 8])], flex=True)))
case("saved-align", lambda: at(one([row(0, 1, [16, -12])]), "fre0.0", 0, 0))
case("saved-align", lambda: fine(one([row(0, 1, [16, -16])])))
case("saved-together", lambda: at(one([row(0, 1, [16, -8])]), "fre0.0", 0, 0))
case("saved-together", lambda: fine(one([row(0, 1, [16, -16])])))
case("fp-lost", lambda: at(one([row(0, 0, [16])]), "fre0.0", 0, 0))
case("fp-lost", lambda: fine(one([row(0, 0, [16, -16])])))
case("row-align", lambda: at(one([row(0, 1, [0]), row(6, 1, [16])], abi=AARCH64), "fre0.1", 0, 1))
case("row-align", lambda: fine(one([row(0, 1, [0]), row(8, 1, [16])], abi=AARCH64)))
case("function-align", lambda: at(one([row(0, 1, [0])], size=SIZE + 2, abi=AARCH64), "fde0.start", 0))
case("function-align", lambda: fine(one([row(0, 1, [0])], size=SIZE + 2, abi=S390X, order="big")))
case("function-remainder", lambda: at(one([row(0, 1, [8])], mask=True, rep_size=17), "attribute0.info", 0))
case("function-remainder", lambda: fine(one([row(0, 1, [8])], mask=True, rep_size=16)))
case("saved-above-cfa", lambda: at(one([row(0, 1, [16, 8])]), "fre0.0", 0, 0))
case("saved-above-cfa", lambda: fine(one([row(0, 1, [16, -16])])))
case("cfa-below-sp", lambda: at(one([row(0, 1, [-8])]), "fre0.0", 0, 0))
case("cfa-below-sp", lambda: fine(one([row(0, 0, [-8, -16])])))  # from FP


@case.of("frame-pointer-flag")
def _() -> Case:
    builder = one([row(0, 1, [8]), row(4, 1, [32])], version=2, flags=SORTED | PCREL | 2)
    return at(builder, "fde0.start", 0)


case("frame-pointer-flag", lambda: fine(small(2, flags=SORTED | PCREL | 2)))
case("frame-pointer-flag", lambda: fine(one([row(0, 1, [8])], version=2, flags=SORTED | PCREL | 2)))  # makes no frame
# The ELF file


case("abi-machine", lambda: Case(linked(small().bytes(), machine=183), 4))
case("abi-machine", lambda: Case(linked(small().bytes(), order="big"), 0))
case("abi-machine", lambda: fine(linked(small(abi=AARCH64).bytes(), machine=183)))


case("section-unsorted", lambda: Case(linked(small(flags=PCREL).bytes()), 3))
case("section-unsorted", lambda: Case(linked(small(2, flags=0).bytes()), 3))
case("section-unsorted", lambda: fine(linked(small().bytes())))
case("section-unsorted", lambda: fine(relocatable(small(flags=PCREL), placing(3))))


@case.of("section-pieces")
def _() -> Case:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    return Case(linked(first + small(address=SFRAME + len(first)).bytes()), len(first))


@case.of("section-pieces")
def _() -> Case:
    first = small(functions=2).bytes()
    return fine(linked(first + bytes(-len(first) % 8) + small(version=3).bytes()[:20]))


case("section-type", lambda: Case(linked(small().bytes(), kind=1)))
case("section-type", lambda: fine(linked(small(2, flags=SORTED).bytes(), kind=1)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=3)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=0)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=0x82)))
case("section-flags", lambda: fine(relocatable(small(), placing(3), flags=0x82)))
case("segment-missing", lambda: Case(linked(small().bytes(), segment=False)))
case("segment-missing", lambda: fine(relocatable(small(), placing(3))))
case("segment-place", lambda: Case(linked(small().bytes()).build().segment(2, "p_vaddr", SFRAME + 8)))
case("segment-place", lambda: fine(linked(small().bytes())))


@case.of("segment-size")
def _() -> Case:
    data = small().bytes()
    return Case(linked(data).build().segment(2, "p_filesz", len(data) + 1))


@case.of("segment-size")
def _() -> Case:
    data = small().bytes()
    return Case(linked(data).build().segment(2, "p_memsz", len(data) + 1))


case("segment-size", lambda: fine(linked(small().bytes())))
case("plt-got-row", lambda: Case(plt_got(16), 0x1C, 0, 0))
case("plt-got-row", lambda: fine(plt_got(8)))


def plt_got(cfa: int) -> ElfBuilder:
    elf = linked(one([row(0, 1, [cfa])], mask=True, rep_size=8).bytes())
    elf.section(".plt.got", bytes(SIZE), flags=6, addr=TEXT)
    return elf


case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3), (0x60, PC64, "f0", 0)]), 0x60))
case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3, 2), (0x3C, PC32, "f2", 0)]), 0x3C))
case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3, 2), (0x3C, PC64, "nothing", 0)]), 0x3C))
case("relocation-stray", lambda: fine(relocatable(small(), [*placing(3), (0x60, 0, "", 0)])))  # R_X86_64_NONE
case("relocation-missing", lambda: Case(relocatable(small(), placing(3, 2)), 0x3C, 2))
case("relocation-missing", lambda: fine(relocatable(small(), placing(3))))


def kept(addend: int) -> ElfBuilder:
    """A linked file with its relocations kept; the second one may lie."""
    elf = linked(small().bytes())
    table = next(iter(elf.symbol_tables))
    text = elf.symbol(table, "", TEXT, section=1, kind=3, binding=0)
    entries = [(SFRAME + 0x1C, PC64, text, 0), (SFRAME + 0x2C, PC64, text, addend)]
    elf.relocations(2, table, entries)
    return elf


case("relocation-mismatch", lambda: Case(kept(0), 0x2C, 1))
case("relocation-mismatch", lambda: fine(kept(SIZE)))


# What Linux wants


def without_version() -> bytes:
    data = bytearray(small().bytes())
    data[2] = 9
    return bytes(data)


case("linux-unreadable", lambda: Case(linked(without_version())))
case("glibc-unreadable", lambda: Case(linked(without_version())))
case("gnu-ld-unreadable", lambda: Case(linked(without_version())))
case("linux-version", lambda: Case(linked(small(2).bytes()), 2))
case("linux-flags", lambda: Case(linked(small(flags=PCREL).bytes()), 3))
case("linux-auxiliary", lambda: Case(linked(small(auxiliary=b"four").bytes()), 7))
case("linux-empty", lambda: Case(linked(SFrameBuilder(3).bytes()), 8))
case("linux-machine", lambda: Case(linked(small(order="big", abi=1).bytes(), machine=183, order="big"), 4))


@case.of("linux-order")
def _() -> Case:
    builder = small()
    builder.functions[1].start = TEXT
    builder.functions[1].size = 0
    builder.functions[1].rows = [row(0, 1, [8])]
    return in_file(builder, "fde1.start", 1)


case("linux-layout", lambda: Case(linked(small(rows_first=True).bytes()), 0x18))
case("linux-rows", lambda: Case(linked(one([row(0, 1, [8]), row(1, 1, [16, -16, -24])]).bytes())))
case("linux-flex", lambda: Case(linked(one([row(0, 0, [2, 16])], flex=True).bytes())))
case("linux-segment", lambda: Case(linked(small().bytes(), segment=False)))
case("glibc-version", lambda: Case(linked(small().bytes()), 2))
case("glibc-sorted", lambda: Case(linked(small(2, flags=PCREL).bytes()), 3))
case("glibc-machine", lambda: Case(linked(small(2, order="big").bytes(), order="big"), 4))
case("glibc-rows", lambda: Case(linked(one([row(0, 0, [16], info=0x63)], version=2).bytes())))
case("glibc-layout", lambda: Case(linked(small(2, rows_first=True).bytes()), 0x14))
case("linux-code", lambda: Case(linked(small(functions=9).bytes())))
case("glibc-segment", lambda: Case(linked(small(2).bytes(), segment=False)))
case("gnu-ld-type", lambda: Case(relocatable(small(), placing(3), kind=1)))
case("gnu-ld-version", lambda: Case(relocatable(small(2), placing(2)), 2))


@case.of("gnu-ld-pcrel")
def _() -> Case:
    data = bytearray(unplaced(small()))
    data[3] = 0
    return Case(relocatable(bytes(data), placing(3)), 3)


case("gnu-ld-abi", lambda: Case(relocatable(small(abi=AARCH64), placing(3)), 4))
case("gnu-ld-decode", lambda: Case(relocatable(one([row(0, 0, [8], info=0x63)]), placing(3, 1))))
case("gnu-ld-relocations", lambda: Case(relocatable(small(), placing(3, 2))))
case("gnu-ld-object", lambda: Case(linked(small().bytes())))


# Where the walk of a consumer stops


def containing(content: bytes, code: bytes, place: int, **options: Any) -> ElfBuilder:
    """A linked file with some code at an offset of `.text`."""
    elf = linked(content, **options)
    text = elf.sections[1]
    text.data = text.data[:place] + code + text.data[place + len(code) :]
    return elf


CALL = bytes.fromhex("e820000000")
"""At the end of the first function, and to the start of the third."""
SIGRETURN = bytes.fromhex("48c7c00f0000000f05")
SAYING = cfa("def_cfa 7 8; offset 16 1")
OUTERMOST = cfa("def_cfa 7 8; undefined 16")
BY_FP = [7 << 3 | 1, 8, 0, 6 << 3 | 3, 0]
"""CFA = rsp+8, FP = *rbp"""


def described(version: int, program: bytes = SAYING, code: bytes = b"") -> ElfBuilder:
    """A linked file whose call frame information has one function that its SFrame has not, with this program."""
    elf = containing(small(version).bytes(), code, 3 * SIZE)
    frames = CfiBuilder(address=0x3000)
    cie = frames.cie(program)
    frames.fde(cie, TEXT, SIZE)
    frames.fde(cie, TEXT + 3 * SIZE, SIZE)
    elf.section(".eh_frame", frames.bytes(), flags=2, addr=0x3000)
    elf.segment(1, ".eh_frame", vaddr=0x3000)
    return elf


case("glibc-outermost", lambda: in_file(one([row(0, 1, [8]), row(4, 1)], version=2), "fde0.start", 0))
case("glibc-no-row", lambda: in_file(one([row(4, 1, [8])], version=2), "fde0.start", 0))
case("linux-no-row", lambda: in_file(one([row(4, 1, [8])]), "fde0.start", 0))
case("linux-no-row", lambda: in_file(one([], signal=True), "fde0.start", 0))
case("linux-innermost", lambda: in_file(one([row(0, 0, [10 << 3 | 1, 8])], flex=True), "fde0.start", 0))
case("linux-innermost", lambda: fine(linked(one([row(0, 0, [6 << 3 | 3, -8])], flex=True).bytes())))
case("linux-innermost", lambda: in_file(one([row(0, 0, BY_FP)], flex=True), "fde0.start", 0))
case("glibc-signal-code", lambda: Case(containing(small(2).bytes(), SIGRETURN, SIZE), 0x1C + 20, 1))
case("glibc-signal-code", lambda: Case(containing(small(2).bytes(), SIGRETURN, SIZE + 1), 0x1C + 20, 1))
case("glibc-signal-code", lambda: fine(containing(small(2).bytes(), SIGRETURN, SIZE + 2)))
for name, version in (("glibc", 2), ("linux", 3)):
    content = small(version).bytes()
    case(f"{name}-call-end", lambda content=content: Case(containing(content, CALL, SIZE - 5), 0x1C, 0))
    # To where the next row of a function begins.
    inner = containing(content, b"\xe8\x1c\0\0\0", SIZE - 1)
    entry = {2: 20, 3: 16}[version]
    case(f"{name}-call-end", lambda inner=inner, entry=entry: Case(inner, 0x1C + entry, 1))
    case(f"{name}-call-end", lambda content=content: fine(containing(content, CALL, 12)))
    # To where no function begins.
    case(f"{name}-call-end", lambda content=content: fine(containing(content, b"\xe8\x21\0\0\0", SIZE - 5)))
    case(f"{name}-uncovered", lambda version=version: Case(described(version)))
    case(f"{name}-uncovered", lambda version=version: Case(described(version, OUTERMOST)))
    case(f"{name}-uncovered", lambda version=version: fine(described(version, OUTERMOST, b"\x31\xed")))
case("glibc-uncovered", lambda: fine(described(2, code=SIGRETURN)))
case("glibc-register", lambda: Case(linked(one([row(0, 1, [16])], version=2, abi=AARCH64).bytes(), machine=183)))
case(
    "glibc-signed",
    lambda: Case(linked(one([row(0, 1, [16, -8, -16], mangled=True)], version=2, abi=AARCH64).bytes(), machine=183)),
)


# What each consumer takes

for consumer, accepted in {
    "linux": lambda: fine(linked(small().bytes())),
    "glibc": lambda: fine(linked(small(2).bytes())),
    "gnu-ld": lambda: fine(relocatable(small(), placing(3))),
}.items():
    for code in CODES:
        if code.startswith(f"{consumer}-"):
            case(code, accepted)

PARAMETERS = [
    pytest.param(code, make, id=f"{code}-{number}")
    for code, makers in case.made.items()
    for number, make in enumerate(makers)
]


@pytest.mark.whole
@pytest.mark.parametrize(("code", "make"), PARAMETERS)
def test_the_rule_is_found_broken_at_its_place_and_nowhere_else(
    code: str, make: Callable[[], Case], tmp_path: Path
) -> None:
    expected = make()
    found = findings(expected.content, tmp_path, code)
    if expected.near:
        assert found == []
        return
    (finding,) = found
    assert (finding.offset, finding.function, finding.row) == (expected.offset, expected.function, expected.row)
    assert finding.severity is CODES[code].severity
    assert finding.message
    assert "\n" not in finding.message


def test_every_rule_has_a_breach_and_a_near_miss() -> None:
    kinds = {code: {make().near for make in makers} for code, makers in case.made.items()}
    assert kinds == {code: {True, False} for code in CODES}


def test_every_rule_is_documented_with_its_severity() -> None:
    text = DOCS.read_text()
    for severity in Severity:
        part = text.partition(f"\n## {severity.name.capitalize()}")[2].partition("\n## ")[0]
        told = {line.removeprefix("### `").rstrip("`") for line in part.splitlines() if line.startswith("### `")}
        assert told == {code for code, rule in CODES.items() if rule.severity is severity}


def test_codes_are_words_joined_by_hyphens_and_reasons_are_sentences() -> None:
    for name, code in CODES.items():
        assert name == code.name
        assert name.replace("-", "").isalpha()
        assert name == name.lower()
        assert code.reason[0].isupper()
        assert code.reason.endswith(".")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_sound_sections_have_no_findings(version: int, tmp_path: Path) -> None:
    builder = small(version)
    assert report(builder.bytes(), tmp_path).findings == []
    assert report(linked(builder.bytes()), tmp_path).findings == []
    assert report(relocatable(builder, placing(version)), tmp_path).findings == []


def test_what_is_said_of_functions_names_them(tmp_path: Path) -> None:
    builder = small()
    builder.functions[1].rows[2].words = [16, 16]
    (finding,) = findings(linked(builder.bytes()), tmp_path, "saved-above-cfa")
    assert (finding.symbol, finding.function, finding.row) == ("f1", 1, 2)
