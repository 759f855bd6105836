"""Damaged files raise ElfError or UnreadableError, whatever is asked of them, and nothing else."""

from __future__ import annotations

import lzma
import random
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import pytest

from elfbuilder import HEADER, SECTION, SEGMENT, ElfBuilder
from walkback.base.arch import ByteOrder
from walkback.base.errors import UnreadableError
from walkback.elf import ElfFile, debug_data, debug_file, layout, relocations_for
from walkback.symbols import SymbolIndex

VALUES = [0, 1, 2, 7, 24, 56, 63, 64, 65, 0xFF, 0xFF00, 0xFFF1, 0xFFFF, 2**31, 2**32 - 1, 2**63 - 1, 2**63]
VALUES += [2**64 - 1, 2**64 - 64]


def example(order: ByteOrder, *, extended: bool) -> ElfBuilder:
    builder = ElfBuilder(order, 183, extended=extended)
    text = builder.code()
    frames = builder.section(".sframe", bytes(40), kind=layout.SHT_GNU_SFRAME, flags=2)
    symtab = builder.symtab()
    builder.symbol(symtab, "function", 0, section=text, size=16)
    builder.symbol(symtab, "$x", 0, section=text, kind=0)
    builder.symbol(symtab, "label@@V1", 32, section=text, kind=0)
    builder.relocations(frames, symtab, [(0, 261, 1, 4), (8, 260, 2, 0)])
    builder.relocations(frames, symtab, [(4, 261, 1, 0)], addends=False)
    builder.segment(1, ".text", flags=5)
    builder.segment(layout.PT_GNU_SFRAME, ".sframe")
    return builder


def questions(elf: ElfFile) -> Iterator[Callable[..., object]]:
    """Everything that can be asked."""
    yield elf.section_names
    yield lambda: elf.sections_named(".sframe")
    yield lambda: elf.sections_of_type(layout.SHT_GNU_SFRAME)
    for index in range(10):
        yield lambda index=index: elf.section_name(index)
        yield lambda index=index: elf.section_data(index)
        yield lambda index=index: elf.symbols(index)
        yield lambda index=index: relocations_for(elf, index)
        yield lambda index=index: relocations_for(elf, index).targets(elf)
    for index in range(3):
        yield lambda index=index: elf.segment_data(index)
    yield lambda: elf.mapped_data(0, 16)
    yield elf.executable_ranges
    yield lambda: list(elf.notes())
    yield lambda: elf.build_id
    yield lambda: debug_data(elf)
    yield lambda: debug_file(elf, ("/nowhere",))
    symbols = SymbolIndex(elf)
    yield lambda: symbols.name_at(0, 1)
    yield lambda: symbols.describe(40, 1)
    yield lambda: symbols.describe(2**64 - 1, 1)
    yield lambda: symbols.names_at(elf.sections["addr"], elf.sections["info"])
    yield lambda: symbols.lookup("label")


def stripped(order: ByteOrder) -> ElfBuilder:
    """With everything that a stripped file has: notes, a link, and its symbols compressed."""
    inner = ElfBuilder(order, kind=3)
    inner.symbol(inner.symtab(), "hidden", 0x1000, section=inner.code(addr=0x1000))
    builder = ElfBuilder(order, kind=3)
    builder.code(addr=0x1000)
    name = struct.pack(("<" if order == "little" else ">") + "III4s8s", 4, 8, 3, b"GNU", b"build-id")
    builder.section(".note.gnu.build-id", name, kind=7, addralign=4)
    builder.section(".gnu_debuglink", b"hostile\0" + bytes(4))
    builder.section(".gnu_debugdata", lzma.compress(bytes(inner.build())))
    header = struct.pack(("<" if order == "little" else ">") + "IIQQ", 1, 0, 100, 1)
    builder.section(".debug_frame", header + zlib.compress(bytes(100)), flags=layout.SHF_COMPRESSED)
    builder.section(".zdebug_frame", b"ZLIB" + bytes(7) + b"\x64" + zlib.compress(bytes(100)))
    builder.segment(1, ".text", flags=5, vaddr=0x1000)
    builder.segment(4, ".note.gnu.build-id")
    return builder


def ask_everything(data: bytes) -> int:
    errors = []
    try:
        elf = ElfFile(data, "hostile")
    except UnreadableError:
        return 1
    for question in questions(elf):
        try:
            question()
        except UnreadableError as error:
            errors.append(str(error))
    assert all(line.startswith("hostile: ") and "\n" not in line for line in errors)
    return len(errors)


CASES = pytest.mark.parametrize("order", ["little", "big"])


@CASES
def test_the_undamaged_file_answers(order: ByteOrder) -> None:
    image = example(order, extended=False).build()
    # Of the questions about sections 8 and 9 and segment 2, which are not there, and the symbols of 7 others.
    assert ask_everything(bytes(image)) == 6 + 1 + 7


@pytest.mark.whole
@pytest.mark.parametrize(("order", "extended"), [("little", False), ("big", True)])
def test_every_field_with_every_odd_value(order: ByteOrder, extended: bool) -> None:
    image = example(order, extended=extended).build()
    places = [(offset, code) for offset, code in HEADER.values()]
    places += [(image.labels["phdr"] + 56 * i + offset, code) for i in range(2) for offset, code in SEGMENT.values()]
    places += [(image.labels["shdr"] + 64 * i + offset, code) for i in range(8) for offset, code in SECTION.values()]
    original = bytes(image)
    usual = ask_everything(original)
    damaged = 0
    for offset, code in places:
        limit = {"H": 2**16, "I": 2**32, "Q": 2**64}[code]
        for value in VALUES:
            if value < limit:
                image.data[:] = original
                damaged += ask_everything(bytes(image.patch(offset, code, value))) != usual
    assert damaged > 300


@CASES
def test_every_truncation(order: ByteOrder) -> None:
    data = bytes(example(order, extended=True).build())
    for length in range(0, len(data), 3):
        assert ask_everything(data[:length]) > 0


@pytest.mark.whole
@CASES
def test_random_damage(order: ByteOrder) -> None:
    chance = random.Random(order)
    original = bytes(example(order, extended=chance.random() < 0.5).build())
    for _ in range(1500):
        data = bytearray(original)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        ask_everything(bytes(data))


@pytest.mark.whole
@CASES
def test_random_damage_of_a_stripped_file(order: ByteOrder) -> None:
    chance = random.Random(order)
    original = bytes(stripped(order).build())
    usual = ask_everything(original)
    damaged = 0
    for _ in range(1000):
        data = bytearray(original)
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        damaged += ask_everything(bytes(data)) != usual
    assert damaged > 300


@CASES
def test_every_truncation_of_a_stripped_file(order: ByteOrder) -> None:
    data = bytes(stripped(order).build())
    for length in range(0, len(data), 3):
        assert ask_everything(data[:length]) > 0


def test_claimed_sizes_do_not_decide_allocations() -> None:
    image = example("little", extended=True).build()
    for index in range(1, 9):
        image.section(index, "sh_size", 2**40)
    image.section(0, "sh_size", 2**40)
    ask_everything(bytes(image))  # imports and caches
    tracemalloc.start()
    ask_everything(bytes(image))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
