"""Cases of what each consumer takes, and of where its walk stops."""

from __future__ import annotations

from typing import Any

from cfibuilder import CfiBuilder, cfa
from check.cases.making import Case, Cases, fine, in_file, one
from elfbuilder import ElfBuilder
from sframebuilder import AARCH64, PCREL, SFrameBuilder, row
from sframefiles import SIZE, TEXT, linked, placing, relocatable, small, unplaced
from walkback.sframe.checking import CODES, CONSUMERS

case = Cases()


def consumer_of(code: str) -> str | None:
    """The consumer whose rule this is."""
    return max((name for name in CONSUMERS if code.startswith(f"{name}-")), key=len, default=None)


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


def arm(content: SFrameBuilder) -> ElfBuilder:
    """The same in a file of AArch64."""
    return linked(content.bytes(), machine=183)


def rows_of_arm(rows: list[Any], **options: Any) -> Any:
    """Of a function of AArch64."""
    return one(rows, abi=AARCH64, **options)


case("linux-kernel-unreadable", lambda: Case(linked(without_version())))
case("linux-kernel-version", lambda: Case(arm(small(2, abi=AARCH64)), 2))
case("linux-kernel-flags", lambda: Case(arm(small(abi=AARCH64, flags=PCREL)), 3))
case("linux-kernel-auxiliary", lambda: Case(arm(small(abi=AARCH64, auxiliary=b"four")), 7))
case("linux-kernel-empty", lambda: Case(arm(SFrameBuilder(3, abi=AARCH64)), 8))
case("linux-kernel-machine", lambda: Case(linked(small().bytes()), 4))
case("linux-kernel-layout", lambda: Case(arm(small(abi=AARCH64, rows_first=True)), 0x18))
case("linux-kernel-rows", lambda: Case(arm(rows_of_arm([row(0, 1, [8]), row(1, 1, [16, -16, -24, -32])]))))
case("linux-kernel-flex", lambda: Case(arm(rows_of_arm([row(0, 0, [2, 16])], flex=True))))
case("linux-kernel-outermost", lambda: Case(arm(rows_of_arm([row(0, 1, [16]), row(4, 1)])), 0x1C, 0))
case("linux-kernel-no-row", lambda: Case(arm(rows_of_arm([row(4, 1, [16])])), 0x1C, 0))
case("linux-kernel-register", lambda: Case(arm(rows_of_arm([row(0, 0, [10 << 3 | 1, 16])], flex=True)), 0x1C, 0))
case("linux-kernel-register", lambda: Case(arm(rows_of_arm([row(0, 0, [29 << 3 | 3, -8])], flex=True)), 0x1C, 0))
case("linux-kernel-register", lambda: fine(arm(rows_of_arm([row(0, 0, [31 << 3 | 1, 16])], flex=True))))


@case.of("linux-kernel-order")
def _() -> Case:
    builder = small(abi=AARCH64)
    builder.functions.reverse()
    return Case(arm(builder))


@case.of("linux-kernel-uncovered")
def _() -> Case:
    elf = arm(small(abi=AARCH64))
    frames = CfiBuilder(address=0x3000)
    frames.fde(frames.cie(cfa("def_cfa 31 0")), TEXT + 3 * SIZE, SIZE)
    elf.section(".eh_frame", frames.bytes(), flags=2, addr=0x3000)
    elf.segment(1, ".eh_frame", vaddr=0x3000)
    return Case(elf)


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
    "linux-kernel": lambda: fine(arm(small(abi=AARCH64))),
    "glibc": lambda: fine(linked(small(2).bytes())),
    "gnu-ld": lambda: fine(relocatable(small(), placing(3))),
}.items():
    for code in CODES:
        if consumer_of(code) == consumer:
            case(code, accepted)
