"""The bytes of instructions as the file has them, and their texts, with the names of what they lead to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from walkback.base.arch import MACHINES
from walkback.code._listing import COLUMNS, listing
from walkback.code.disassembly import instruction_texts
from walkback.code.effects import Flow
from walkback.elf import layout
from walkback.elf.relocations import Relocations, relocations_for
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.symbols.demangle import demangle
from walkback.symbols.plt import PltNames

_LEADING = {Flow.CALL, Flow.JUMP, Flow.BRANCH}
_OPERAND = re.compile(r"[^ ,]+$")
"""The last operand of a call or jump, which is where it leads to."""
_FROM_END = {2, 4, 9, 19, 20, 22, 24, 26, 34, 41, 42}
"""AMD64: relocations that count from where they are, and the processor from the end of the instruction."""
_FROM_START = {16, 17, 18, 19, 20, 21, 23, 26}
"""s390x: the same from the beginning of the instruction."""

LONGEST = 15
"""Bytes of an instruction of any machine."""
_GOT_CALL, _GOT_CALL_BYTES = b"\xff\x15", 6
"""AMD64: a call through a word of the global offset table."""


class CodeText:
    """Of the code of one file."""

    def __init__(self, proof: Proof, prover: Prover) -> None:
        self._proof, self._prover, self._elf = proof, prover, prover.elf
        self._contents: dict[int, memoryview] = {}
        self._relocations: dict[int, Relocations] = {}

    def texts(self, instructions: Sequence[tuple[int, int]]) -> list[tuple[bytes, str]]:
        """The bytes and the text of each instruction, given by its address in the image and its length."""
        places = [self._prover.section_of(address) for address, _ in instructions]
        codes = [self._code(address, *place, size) for (address, size), place in zip(instructions, places, strict=True)]
        plain = instruction_texts(
            self._proof.machine, [(place, code) for (_, place), code in zip(places, codes, strict=True)]
        )
        return [
            (code, self._with_target(address, *place, code, text))
            for (address, _), place, code, text in zip(instructions, places, codes, plain, strict=True)
        ]

    def called(self, addresses: Sequence[int]) -> list[tuple[int, str | None]]:
        """The length of the call at each address, and the name of the function that it calls, if the file has that."""
        places = [self._prover.section_of(address) for address in addresses]
        codes = [self._code(address, *place, LONGEST) for address, place in zip(addresses, places, strict=True)]
        rows = [
            listing(MACHINES.index(self._proof.machine), code, place)[0].tolist()
            for (_, place), code in zip(places, codes, strict=True)
        ]
        slots = [
            address + _GOT_CALL_BYTES + int.from_bytes(code[2:_GOT_CALL_BYTES], "little", signed=True)
            if code.startswith(_GOT_CALL) and self._elf.machine == layout.EM_X86_64
            else 0
            for address, code in zip(addresses, codes, strict=True)
        ]
        in_slots = {} if self._elf.is_relocatable else self._plt.names_in(slots)
        found = []
        for (section, place), row, slot in zip(places, rows, slots, strict=True):
            one = dict(zip(COLUMNS, row, strict=True))
            name = self._relocated(section, place, one["length"]) if section >= 0 else in_slots.get(slot)
            if name is None and one["flow"] in _LEADING:
                target = one["target"] & 2**64 - 1
                name = self._imported.get(target) if section < 0 else None
                name = name or self._prover.symbols.name_at(target, section)
            found.append((one["length"], name and name.strip("<>").partition("@")[0]))
        return found

    def _code(self, address: int, section: int, place: int, size: int) -> bytes:
        """What the file has: the image of an object is relocated."""
        if section < 0:
            return self._proof.code_at(address, size)
        if section not in self._contents:
            self._contents[section] = memoryview(self._elf.section_data(section))
        return bytes(self._contents[section][place : place + size])

    def _with_target(self, address: int, section: int, place: int, code: bytes, text: str) -> str:
        """The text with the name of what it leads to; in an object only that, because the linker gives the address."""
        one = dict(zip(COLUMNS, listing(MACHINES.index(self._proof.machine), code, place)[0].tolist(), strict=True))
        is_leading = one["flow"] in _LEADING
        name = self._relocated(section, place, len(code)) if section >= 0 else None
        if name is None:
            if not is_leading:
                return text
            name = self._led_to(address, section, place, one["target"] & 2**64 - 1)
        if name is None:
            return text
        if section < 0 or not is_leading or text == code.hex(" "):
            return f"{text} {name}"
        return _OPERAND.sub(lambda _: name, text)

    def _led_to(self, address: int, section: int, place: int, target: int) -> str | None:
        """The name of where an instruction jumps to; within its function the section and offset of an object."""
        ranges, number = self._proof.ranges, self._proof.range_of(address)
        away = target - place + address - int(ranges.start[number])
        if 0 <= away < int(ranges.size[number]):
            return None if section < 0 else f"{self._elf.section_name(section)}+{target:#x}"
        found = self._imported.get(target) if section < 0 else None
        found = found or self._prover.symbols.describe(target, section)
        if found is None:
            return None if section < 0 else f"<{self._elf.section_name(section)}+{target:#x}>"
        return _shown(found)

    @cached_property
    def _plt(self) -> PltNames:
        return PltNames(self._elf)

    @cached_property
    def _imported(self) -> dict[int, str]:
        """Names of functions that other files define, by the addresses of their entries of the linkage table."""
        starts, _, stubs = self._plt.entries()
        return {start: name for start, name in zip(starts, stubs, strict=True) if name}

    def _relocated(self, section: int, place: int, size: int) -> str | None:
        """What an instruction of an object refers to, by the relocations in it."""
        if section not in self._relocations:
            self._relocations[section] = relocations_for(self._elf, section)
        table = self._relocations[section].table
        first, end = np.searchsorted(table["offset"], (place, place + size)).tolist()
        names = [self._symbol(row, place, size) for row in table[first:end].tolist() if row[2]]
        return ", ".join(dict.fromkeys(filter(None, names))) or None

    def _symbol(self, row: tuple[int, int, int, int, int, bool], place: int, size: int) -> str | None:
        """The symbol of a relocation, and how far from it the reference is."""
        offset, addend, kind, number, symtab, _ = row
        symbols = self._elf.symbols(symtab)
        if not 0 < number < len(symbols):
            return None
        if self._elf.machine == layout.EM_X86_64 and kind in _FROM_END:
            addend += place + size - offset
        elif self._elf.machine == layout.EM_S390 and kind in _FROM_START:
            addend -= offset - place
        symbol = symbols[number]
        section, value = int(symbol["section"]), int(symbol["value"])
        name = self._elf.string(int(self._elf.sections["link"][symtab]), int(symbol["name_offset"]))
        if name and symbol["info"] & 15 != layout.STT_SECTION:
            return _shown(f"{name}{addend:+#x}" if addend else name)
        if not 0 < section < len(self._elf.sections):
            return None
        found = self._prover.symbols.describe(value + addend, section)
        return _shown(found) if found else f"<{self._elf.section_name(section)}{value + addend:+#x}>"


def _shown(name: str) -> str:
    """A symbol and perhaps a distance."""
    symbol, sign, away = name.rpartition("+0x")
    if not sign:
        symbol, away = name, ""
    return f"<{demangle([symbol], parameters=False)[0]}{sign}{away}>"
