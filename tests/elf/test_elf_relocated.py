"""Contents of relocatable files with their relocations applied, as if every section were at address 0."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from elfbuilder import ElfBuilder
from walkback.base.arch import ByteOrder
from walkback.elf import ElfFile, relocated
from walkback.elf.relocated import Relocated

X86_64, AARCH64, S390 = 62, 183, 22
# (machine, byte order, kind, width, whether relative)
KINDS = [
    (X86_64, "little", 2, 4, True),
    (X86_64, "little", 24, 8, True),
    (X86_64, "little", 1, 8, False),
    (X86_64, "little", 10, 4, False),
    (X86_64, "little", 11, 4, False),
    (AARCH64, "little", 261, 4, True),
    (AARCH64, "big", 260, 8, True),
    (AARCH64, "little", 257, 8, False),
    (AARCH64, "big", 258, 4, False),
    (S390, "big", 5, 4, True),
    (S390, "big", 23, 8, True),
    (S390, "big", 22, 8, False),
    (S390, "big", 4, 4, False),
]


def made(
    entries: list[tuple[int, int, str, int]],
    *,
    machine: int = X86_64,
    order: ByteOrder = "little",
    size: int = 64,
    addends: bool = True,
    contents: bytes | None = None,
) -> tuple[Relocated, int, int]:
    """A file with one section and its relocations: (offset, kind, which symbol, addend)."""
    elf = ElfBuilder(order, machine)
    text = elf.code(size=0x200)
    target = elf.section(".eh_frame", contents or bytes(range(size)), flags=2)
    symtab = elf.symtab()
    symbols = {
        "section": elf.symbol(symtab, "", 0, section=text, kind=3, binding=0),
        "function": elf.symbol(symtab, "f", 0x40, section=text),
        "undefined": elf.symbol(symtab, "u", 0),
        "absolute": elf.symbol(symtab, "a", 5, section=0xFFF1),
        "itself": elf.symbol(symtab, "", 0, section=target, kind=3, binding=0),
        "nobody": 1000,
    }
    listed = [(offset, kind, symbols[name], addend) for offset, kind, name, addend in entries]
    elf.relocations(target, symtab, listed, addends=addends)
    return relocated(ElfFile(bytes(elf.build()), "test.o"), target), text, target


def number(found: Relocated, offset: int, width: int, order: ByteOrder = "little") -> int:
    return int.from_bytes(found.data[offset : offset + width], order, signed=True)


@pytest.mark.parametrize(("machine", "order", "kind", "width", "relative"), KINDS)
def test_every_kind_writes_its_value_and_nothing_else(
    machine: int, order: ByteOrder, kind: int, width: int, relative: bool
) -> None:
    found, text, _ = made([(17, kind, "function", 0x123)], machine=machine, order=order)
    assert number(found, 17, width, order) == 0x163 - (17 if relative else 0)
    plain = bytes(range(64))
    assert bytes(found.data[:17]) == plain[:17]
    assert bytes(found.data[17 + width :]) == plain[17 + width :]
    assert (found.offset.tolist(), found.section.tolist()) == ([17], [text])


@pytest.mark.parametrize(("machine", "order", "kind", "width", "relative"), KINDS)
def test_without_an_addend_the_place_has_it(
    machine: int, order: ByteOrder, kind: int, width: int, relative: bool
) -> None:
    contents = bytes(8) + (-40).to_bytes(width, order, signed=True) + bytes(40)
    entry = [(8, kind, "function", 0)]
    found, _, _ = made(entry, machine=machine, order=order, addends=False, contents=contents)
    assert number(found, 8, width, order) == 0x40 - 40 - (8 if relative else 0)


def test_values_are_cut_to_their_width() -> None:
    found, _, _ = made([(0, 2, "function", -0x7FFFFFFF), (8, 10, "function", 0xFFFFFFF0), (16, 1, "function", -1)])
    assert number(found, 0, 4) == 0x40 - 0x7FFFFFFF
    assert number(found, 8, 4) == 0x30
    assert number(found, 12, 4) == int.from_bytes(bytes(range(12, 16)), "little")
    assert number(found, 16, 8) == 0x3F


def test_symbols_of_other_sections_are_told_apart() -> None:
    found, text, target = made([(0, 2, "section", 0), (8, 10, "itself", 20), (16, 2, "function", 4)])
    assert found.section.tolist() == [text, target, text]
    assert number(found, 8, 4) == 20
    assert found.section_at(np.array([0, 4, 8, 16, 63])).tolist() == [text, 0, target, text, 0]


@pytest.mark.parametrize("name", ["undefined", "absolute", "nobody"])
def test_symbols_in_no_section_change_nothing(name: str) -> None:
    found, _, _ = made([(0, 2, name, 99), (8, 1, name, 99)])
    assert bytes(found.data) == bytes(range(64))
    assert len(found.offset) == 0
    assert found.section_at(np.array([0, 8])).tolist() == [0, 0]


@pytest.mark.parametrize("kind", [0, 3, 4, 9, 41, 261])
def test_kinds_that_are_not_known_change_nothing(kind: int) -> None:
    found, _, _ = made([(0, kind, "function", 99)])
    assert bytes(found.data) == bytes(range(64))


@pytest.mark.parametrize("offset", [61, 64, 100, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 4, 2**64 - 1])
def test_places_outside_of_the_section_change_nothing(offset: int) -> None:
    found, text, _ = made([(0, 2, "function", 0), (offset, 2, "function", 99)])
    assert number(found, 0, 4) == 0x40
    assert bytes(found.data[4:]) == bytes(range(4, 64))
    assert found.section_at(np.array([0, offset if offset < 2**63 else 5])).tolist() == [text, 0]


def test_the_last_place_of_a_section() -> None:
    found, _, _ = made([(60, 2, "function", 0)])
    assert number(found, 60, 4) == 0x40 - 60


@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_section_too_small_for_any(size: int) -> None:
    found, _, _ = made([(0, 1, "function", 0), (0, 2, "function", 0)], size=size)
    assert bytes(found.data) == bytes(range(size))


def test_of_several_at_one_place_the_first_is_applied() -> None:
    found, _, _ = made([(8, 2, "function", 0), (8, 2, "section", 0x100), (8, 1, "function", 7)])
    assert number(found, 8, 4) == 0x40 - 8
    assert number(found, 12, 4) == int.from_bytes(bytes(range(12, 16)), "little")
    assert found.offset.tolist() == [8]


def test_a_section_without_relocations_is_as_it_stands() -> None:
    elf = ElfBuilder()
    target = elf.section(".eh_frame", b"contents")
    found = relocated(ElfFile(bytes(elf.build()), "test.o"), target)
    assert bytes(found.data) == b"contents"
    assert found.section_at(np.array([0, 4])).tolist() == [0, 0]


def test_the_file_itself_stays_as_it_is() -> None:
    elf = ElfBuilder()
    text = elf.code()
    target = elf.section(".eh_frame", bytes(8))
    symtab = elf.symtab()
    elf.relocations(target, symtab, [(0, 1, elf.symbol(symtab, "f", 8, section=text), 0)])
    file = ElfFile(bytes(elf.build()), "test.o")
    assert bytes(relocated(file, target).data) == struct.pack("<Q", 8)
    assert bytes(file.section_data(target)) == bytes(8)


def test_many_relocations() -> None:
    count = 5000
    found, text, _ = made([(4 * n, 2, "function", n) for n in range(count)], contents=bytes(4 * count))
    values = np.frombuffer(found.data, "<i4")
    assert values.tolist() == [0x40 + n - 4 * n for n in range(count)]
    assert (found.section_at(np.arange(0, 4 * count, 4)) == text).all()
