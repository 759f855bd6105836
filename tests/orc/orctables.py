"""Assembles ORC tables for tests, and knows nothing of `walkback.orc.layout`."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from elfbuilder import ElfBuilder

HASHES = {
    "6.3": "db84aed4103b31dd51e017f8f79783ca985c2c51",
    "6.4": "fe5d32bf581bd63b2ca9a5c65ba5a625eab3fe24",
    "7.2": "137c36ad7627c4dd55932176bb0ecdbd5041fc82",
}
UNDEFINED, CALL, SP, BP, PREV_SP = 0, 2, 5, 4, 1
"""Of Linux 6.4."""
PC32 = 2


@dataclass(frozen=True)
class Entry:
    """One entry, with the numbers that the layout has."""

    address: int
    sp_offset: int = 0
    bp_offset: int = 0
    sp: int = UNDEFINED
    bp: int = UNDEFINED
    rest: int = UNDEFINED
    """The bits behind the registers."""

    def bytes(self) -> bytes:
        return struct.pack("<hhH", self.sp_offset, self.bp_offset, self.sp | self.bp << 4 | self.rest << 8)


FUNCTION = (
    Entry(0, 8, sp=SP, rest=CALL),
    Entry(1, 16, -16, sp=SP, bp=PREV_SP, rest=CALL),
    Entry(30, 8, sp=SP, rest=CALL),
    Entry(31),
)
"""A function that pushes the frame pointer."""


def module(
    entries: tuple[Entry, ...] = FUNCTION, *, release: str | None = "6.4.0", header: str | None = "6.4", size: int = 64
) -> ElfBuilder:
    """A module of a kernel, with one function."""
    elf = ElfBuilder()
    text = elf.section(".text", bytes([0x55, *[0x90] * 28, 0x5D, 0xC3, *[0xCC] * (size - 31)]), flags=6)
    if release is not None:
        elf.section(".modinfo", b"license=GPL\0vermagic=" + release.encode() + b" SMP mod_unload \0", flags=2)
    if header is not None:
        elf.section(".orc_header", bytes.fromhex(HASHES.get(header, header)), flags=2)
    elf.section(".orc_unwind", b"".join(one.bytes() for one in entries), flags=2)
    places = elf.section(".orc_unwind_ip", bytes(4 * len(entries)), flags=2)
    table = elf.symtab()
    of_text = elf.symbol(table, "", 0, section=text, kind=3, binding=0)
    elf.symbol(table, "init_module", 0, section=text, size=31)
    elf.relocations(places, table, [(4 * number, PC32, of_text, one.address) for number, one in enumerate(entries)])
    return elf


def kernel(entries: tuple[Entry, ...], *, text: int = 0xFFFFFFFF81000000, release: str = "6.4.0") -> bytes:
    """The kernel itself, without symbols."""
    elf = ElfBuilder(kind=2)
    elf.section(".text", bytes(0x200), flags=6, addr=text)
    elf.section(".rodata", f"Linux version {release} (someone)".encode() + bytes(8), flags=2, addr=text + 0x1000)
    if release >= "6.3":
        elf.section(".orc_header", bytes.fromhex(HASHES["6.4"]), flags=2, addr=text + 0x1800)
    place = text + 0x2000
    words = b"".join(struct.pack("<i", one.address - place - 4 * number) for number, one in enumerate(entries))
    elf.section(".orc_unwind_ip", words, flags=2, addr=place)
    elf.section(".orc_unwind", b"".join(one.bytes() for one in entries), flags=2, addr=place + 0x800)
    return bytes(elf.build())
