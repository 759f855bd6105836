"""Damaged files: an error of one line or a file, never anything else, never for long, never much memory."""

from __future__ import annotations

import random
import struct
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from effort import rounds
from elfbuilder import HEADER, SECTION, SEGMENT, ElfBuilder
from grafting import PROGRAMS, compiled
from walkback.base.errors import WalkbackError
from walkback.elf import SECTION_RELOCATION, ElfFile, layout
from walkback.graft import (
    ObjectSection,
    Rewriting,
    add,
    add_to_object,
    drop,
    planned_address,
    set_sections,
)

COUNT = rounds(1500, quick=150)
VALUES = [0, 1, 2, 7, 24, 56, 63, 64, 65, 0x318, 0x1000, 0xFFFF, 2**31, 2**32 - 1, 2**47, 2**63, 2**64 - 64, 2**64 - 1]
SIZE = 1000
WIDTHS = {"H": 16, "I": 32, "Q": 64}


def try_all(data: bytes) -> None:
    relocations = np.array([(28, 0, 24, 1), (44, 0, 24, 2)], SECTION_RELOCATION)
    works: tuple[Callable[[ElfFile], Any], ...] = (
        lambda elf: add(elf, lambda _: bytes(SIZE), SIZE).parts,
        lambda elf: planned_address(elf, SIZE) and [],
        drop,
        lambda elf: Rewriting(elf).write(lambda _: bytes(SIZE // 2), SIZE // 2).parts,
        lambda elf: Rewriting(elf).address(SIZE) and [],
        lambda elf: add_to_object(elf, bytes(SIZE), relocations).parts,
        lambda elf: set_sections(elf, [ObjectSection(bytes(SIZE), relocations, link_order=1)] * 2),
        lambda elf: set_sections(elf, [ObjectSection(bytes(SIZE), relocations, group=6)]),
    )
    for work in works:
        try:
            parts = work(ElfFile(data, "name"))
        except WalkbackError as error:
            told = str(error)
        else:
            told = ""
            assert sum(map(len, parts)) <= 2 * len(data) + (1 << 25)
        assert "\n" not in told


def places(data: bytes) -> list[tuple[int, str]]:
    """Every field of the ELF header, the program headers and the section headers."""
    elf = ElfFile(data, "")
    found = [(offset, code) for offset, code in HEADER.values()]
    program = struct.unpack_from("<Q", data, HEADER["e_phoff"][0])[0]
    section = struct.unpack_from("<Q", data, HEADER["e_shoff"][0])[0]
    for index in range(len(elf.segments)):
        found += [(program + 56 * index + offset, code) for offset, code in SEGMENT.values()]
    for index in range(len(elf.sections)):
        found += [(section + 64 * index + offset, code) for offset, code in SECTION.values()]
    return found


def damage(data: bytearray, fields: list[tuple[int, str]], chance: random.Random) -> None:
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        match chance.randrange(6):
            case 0:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            case 1:
                del data[chance.randrange(64, len(data)) :]
                return
            case _:
                offset, code = chance.choice(fields)
                value = chance.choice([*VALUES, chance.randrange(len(data))])
                struct.pack_into(f"<{code}", data, offset, value % (1 << WIDTHS[code]))


def grouped() -> bytes:
    """An object with a group, a section in it without local symbol, and numbers in a table of their own."""
    builder = ElfBuilder(extended=True)
    builder.section(".text", bytes(32), flags=6)
    builder.section(".text.inline", bytes(32), flags=0x206)
    symtab = builder.symtab()
    builder.symbol(symtab, "local", 0, section=1, binding=0)
    builder.symbol(symtab, "inline", 0, section=2)
    builder.sections[symtab].fields["sh_info"] = 2
    builder.relocations(1, symtab, [(8, 1, 1, 0), (16, 1, 2, 0)])
    words = np.array([1, 2, 7], "<u4").tobytes()
    group = builder.section(".group", words, kind=layout.SHT_GROUP, link=symtab, info=2, entsize=4)
    builder.section(".sframe", bytes(64), kind=layout.SHT_GNU_SFRAME, flags=0x202)
    assert group == 6
    return bytes(builder.build())


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    folder = tmp_path_factory.mktemp("programs")
    found = [compiled(folder, name, PROGRAMS[name]).read_bytes() for name in ("pie-stripped", "exec", "no-build-id")]
    source = Path(__file__).resolve().parent / "objects.c"
    subprocess.run(["gcc", "-O2", "-c", source, "-o", folder / "object.o"], check=True)
    found.append((folder / "object.o").read_bytes())
    grafted = [b"".join(add(ElfFile(data, ""), lambda _: bytes(SIZE), SIZE).parts) for data in found[:2]]
    relocations = np.array([(28, 0, 24, 1)], SECTION_RELOCATION)
    added = b"".join(add_to_object(ElfFile(found[3], ""), bytes(SIZE), relocations).parts)
    return [*found, *grafted, added, grouped()]


def test_damaged_files_are_refused_or_done(samples: list[bytes]) -> None:
    chance = random.Random(7)
    known = [(data, places(data)) for data in samples]
    for round_ in range(COUNT):
        data, fields = known[round_ % len(known)]
        damaged = bytearray(data)
        damage(damaged, fields, chance)
        start = time.process_time()
        try_all(bytes(damaged))
        assert time.process_time() - start < 20, round_


def test_damaged_records_are_not_followed(samples: list[bytes]) -> None:
    chance = random.Random(8)
    grafted = samples[4]
    end = struct.unpack_from("<Q", grafted, HEADER["e_shoff"][0])[0]
    former = b"".join(drop(ElfFile(grafted, "")))
    for _ in range(COUNT // 5):
        damaged = bytearray(grafted)
        place = end - chance.choice([1, 16, 20, 24, 32, 40, 48, 56, 64, chance.randrange(1, 400)])
        struct.pack_into("<Q", damaged, min(place, len(damaged) - 8), chance.choice(VALUES))
        try_all(bytes(damaged))
    assert len(former) < len(grafted)


def test_a_section_may_claim_to_end_behind_all_addresses(samples: list[bytes]) -> None:
    elf = ElfFile(samples[0], "")
    for index in range(len(elf.sections)):
        for address in (2**64 - 8, 0):
            data = bytearray(samples[0])
            struct.pack_into("<Q", data, int.from_bytes(data[40:48], "little") + 64 * index + 16, address)
            try_all(bytes(data))


def test_a_claimed_alignment_does_not_fill_the_memory() -> None:
    builder = ElfBuilder(kind=2)
    builder.section(".text", bytes(4096), flags=6, addr=1 << 32)
    builder.segment(layout.PT_LOAD, ".text", flags=5, vaddr=1 << 32)
    image = builder.build()
    image.segment(0, "p_offset", 0).segment(0, "p_align", 1 << 30)
    tracemalloc.start()
    try_all(bytes(image))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 26


def test_many_sections_over_the_same_bytes_end_soon() -> None:
    builder = ElfBuilder()
    builder.section(".sframe", bytes(64), kind=layout.SHT_GNU_SFRAME, flags=2)
    symtab = builder.symtab()
    for number in range(20000):
        builder.symbol(symtab, "", number, section=1)
    tables = [builder.section(f"t{number}", kind=2, link=2, entsize=24) for number in range(2000)]
    image = builder.build()
    for index in tables:
        image.section(index, "sh_offset", image.labels[".symtab"]).section(index, "sh_size", 24 * 20000)
    start = time.process_time()
    try_all(bytes(image))
    assert time.process_time() - start < 20
