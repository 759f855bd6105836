"""Damaged and made-up debugging information: answers or none come out, in bounded memory and time."""

from __future__ import annotations

import random
import re
import time
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest

from debuginfo.test_debuginfo_lines import built, code_of
from effort import rounds
from elfbuilder import ElfBuilder
from walkback.debuginfo import DebugLines
from walkback.debuginfo.lines import _owners as owners
from walkback.elf import ElfFile

SECTIONS = ["info", "abbrev", "str", "line", "line_str", "rnglists", "addr", "str_offsets", "ranges", "sup"]
VALUES = [0, 1, 0x7F, 0x80, 0xFF]
CODE = np.arange(0x1000, 0x1100, dtype=np.uint64)


def with_sections(**contents: bytes) -> ElfFile:
    """A program with code at 0x1000, and these sections."""
    builder = ElfBuilder()
    builder.code(addr=0x1000)
    for name, data in contents.items():
        builder.section(f".debug_{name}", data)
    return ElfFile(bytes(builder.build()))


def sections_of(path: Path) -> dict[str, bytes]:
    elf = ElfFile(path)
    found = {name: elf.sections_named(f".debug_{name}") for name in SECTIONS}
    return {name: bytes(elf.section_data(indices[0])) for name, indices in found.items() if indices}


@pytest.mark.kernel
@pytest.mark.parametrize("form", ["-gdwarf-4", "-gdwarf-5"])
def test_damaged_sections_give_answers_or_none(tmp_path: Path, form: str) -> None:
    path = built(tmp_path, form)
    sound, asked = sections_of(path), code_of(ElfFile(path))
    chance = random.Random(form)
    for _ in range(rounds(300, 60)):
        damaged = dict(sound)
        name = chance.choice(sorted(sound))
        data = bytearray(damaged[name])
        for _ in range(chance.choice((1, 1, 2, 20))):
            data[chance.randrange(len(data))] = chance.choice((*VALUES, chance.randrange(256)))
        damaged[name] = bytes(data[: chance.randrange(len(data))] if chance.random() < 0.1 else data)
        if chance.random() < 0.05:
            del damaged[name]
        found = DebugLines(with_sections(**damaged)).find(asked)
        assert len(found) == len(asked)


@pytest.mark.parametrize("form", ["-gdwarf-4", "-gdwarf-5"])
@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("info", "the unit at 0x0 of .debug_info cannot be read"),
        ("abbrev", "the unit at 0x0 of .debug_info cannot be read"),
        ("line", "the line number program at 0x0 of .debug_line cannot be read"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, form: str, name: str, trouble: str) -> None:
    sound = sections_of(built(tmp_path, form))
    for contents, expected in ((sound[name], None), (bytes([0xA5]) * len(sound[name]), trouble)):
        lines = DebugLines(with_sections(**sound | {name: contents}))
        lines.find(code_of(ElfFile(tmp_path / "prog")))
        assert lines.trouble == expected


@pytest.mark.parametrize("form", ["-gdwarf-4", "-gdwarf-5"])
def test_a_unit_that_can_be_read_only_in_part_is_named(tmp_path: Path, form: str) -> None:
    sound = sections_of(built(tmp_path, form))
    half = sound["abbrev"][: len(sound["abbrev"]) // 2]
    lines = DebugLines(with_sections(**sound | {"abbrev": half}))
    lines.find(code_of(ElfFile(tmp_path / "prog")))
    assert re.fullmatch(r"the entry at 0x\w+ of \.debug_info cannot be read", lines.trouble or "")


def header(size: int, abbrev: int = 0) -> bytes:
    """The header of a DWARF 4 unit whose entries take `size` bytes."""
    return (7 + size).to_bytes(4, "little") + b"\x04\x00" + abbrev.to_bytes(4, "little") + b"\x08"


ROOT = b"\x01\x11\x01\x11\x01\x12\x07\x55\x17\x00\x00"
"""A unit with children: low_pc, a size of 8 bytes, and a list of ranges."""
FUNCTION = b"\x02\x2e\x01\x55\x17\x00\x00"
"""A function with children: a list of ranges."""
AROUND = (0x1000).to_bytes(8, "little") + (0x100).to_bytes(8, "little") + bytes(4)
"""What the root says: all of the code, and the list at 0."""
PROGRAM = b"\x04\x00" + (18).to_bytes(4, "little") + b"\x01\x01\x01\xfb\x0e\x0d"
"""The beginning of a line number program, behind its length."""
PAIR = (0).to_bytes(8, "little") + (0x100).to_bytes(8, "little")


def many_units() -> dict[str, bytes]:
    """Each reads the same declarations from another place on, which never end."""
    declarations = b"\x01\x11\x00\x00\x00" * 40_000
    unit = [header(1, 5 * number) + b"\x01" for number in range(16_000)]
    return {"info": b"".join(unit), "abbrev": declarations}


def many_ranges() -> dict[str, bytes]:
    """Each of many functions has the same list, which is long and has the whole code each time."""
    body = b"\x01" + AROUND + (b"\x02" + bytes(4) + b"\x00") * 50_000
    return {"info": header(len(body)) + body, "abbrev": ROOT + FUNCTION + b"\x00", "ranges": PAIR * 20_000}


def deep_entries() -> dict[str, bytes]:
    """Functions in functions."""
    body = b"\x01" + AROUND + (b"\x02" + bytes(4)) * 200_000
    return {"info": header(len(body)) + body, "abbrev": ROOT + FUNCTION + b"\x00", "ranges": PAIR + bytes(16)}


def circle() -> dict[str, bytes]:
    """A function that is an instance of itself."""
    origin = b"\x02\x2e\x00\x31\x13\x55\x17\x00\x00"
    body = b"\x01" + AROUND
    place = len(header(0)) + len(body)
    body += b"\x02" + place.to_bytes(4, "little") + bytes(4)
    return {"info": header(len(body)) + body, "abbrev": ROOT + origin + b"\x00", "ranges": PAIR + bytes(16)}


def many_declarations() -> dict[str, bytes]:
    """Those of entries are searched from the beginning, as their codes do not rise."""
    numbers = [(number & 0x7F | 0x80).to_bytes(1, "little") + bytes([number >> 7]) for number in range(1, 16_000)]
    body = b"\x01" + AROUND + b"\x82\x01" * 100_000
    abbrev = ROOT + b"".join(number + b"\x34\x00\x00\x00" for number in reversed(numbers))
    return {"info": header(len(body)) + body, "abbrev": abbrev + b"\x00", "ranges": PAIR + bytes(16)}


def many_programs() -> dict[str, bytes]:
    """Line number programs of many units begin at each other's bytes."""
    root = b"\x01\x11\x00\x11\x01\x12\x07\x10\x17\x00\x00\x00"
    units = []
    for number in range(256):
        at = AROUND[:8].replace(b"\x00\x10", bytes([number, 0x10]), 1) + (1).to_bytes(8, "little")
        units.append(header(21) + b"\x01" + at + (32 * number).to_bytes(4, "little"))
    end = 2_000_000
    heads = [
        (end - 32 * number - 4).to_bytes(4, "little")
        + b"\x04\x00"
        + (18).to_bytes(4, "little")
        + b"\x01\x01\x01\xfb\x0e\x0d"
        for number in range(256)
    ]
    line = b"".join(head.ljust(32, b"\x00") for head in heads)
    return {"info": b"".join(units), "abbrev": root, "line": line.ljust(end, b"\x01")}


def many_rows() -> dict[str, bytes]:
    """A program that passes over all addresses again and again."""
    root = b"\x01\x11\x00\x11\x01\x12\x07\x10\x17\x00\x00\x00"
    body = b"\x01" + AROUND[:16] + bytes(4)
    sequence = b"\x00\x09\x02" + (0x1000).to_bytes(8, "little") + b"\x01\x02\x80\x02\x00\x01\x01"
    program = sequence * 60_000
    head = PROGRAM + bytes(12)
    line = (len(head) + len(program)).to_bytes(4, "little") + head + program
    return {"info": header(len(body)) + body, "abbrev": root, "line": line}


@pytest.mark.parametrize(
    "sibling", [0, 1, 0x21, 0x2C, 0x30, 0x39, 0x3A, 0x3B, 0x3C, 0x1000, 1 << 31, 1 << 63, (1 << 64) - 1]
)
def test_what_says_where_the_next_entry_is_may_be_wrong(sibling: int) -> None:
    """Of two functions in a namespace the second has the code; an entry that is passed over gives it no namespace."""
    namespace, function = b"\x03\x39\x01\x01\x14\x03\x08\x00\x00", b"\x02\x2e\x00\x03\x08\x55\x17\x00\x00"
    body = b"\x01" + AROUND + b"\x03" + sibling.to_bytes(8, "little") + b"space\x00"
    body += b"\x02f\x00" + (64).to_bytes(4, "little") + b"\x02g\x00" + bytes(4) + b"\x00\x00"
    abbrev = ROOT + namespace + function + b"\x00"
    ranges = PAIR + bytes(64)
    lines = DebugLines(with_sections(info=header(len(body)) + body, abbrev=abbrev, ranges=ranges)).find(CODE)
    assert {line.function for [line] in lines} <= {"g", "space::g"}


def test_what_is_too_large_is_not_read() -> None:
    compressed = (1).to_bytes(8, "little") + (2 << 30).to_bytes(8, "little") + (1).to_bytes(8, "little")
    builder = ElfBuilder()
    builder.code(addr=0x1000)
    builder.section(".debug_info", compressed + zlib.compress(bytes(100)), flags=0x800)
    lines = DebugLines(ElfFile(bytes(builder.build())))
    assert lines.find(CODE) == [()] * len(CODE)
    assert lines.trouble == f"its debug information has {2 << 30} bytes, more than {1 << 30}, and is not read"


@pytest.mark.parametrize("name", [b"x" * 5000, b"/dev/zero", b"/", b"\xff/\xfe", b"../" * 3000])
def test_names_of_split_files_that_cannot_be(name: bytes) -> None:
    root = b"\x01\x11\x00\x11\x01\x12\x07\xb0\x42\x08\x00\x00\x00"
    body = b"\x01" + AROUND[:16] + name + b"\x00"
    lines = DebugLines(with_sections(info=header(len(body)) + body, abbrev=root))
    assert lines.find(CODE) == [()] * len(CODE)
    assert [one.encode(errors="surrogateescape") for one in lines.missing] == [name]
    assert lines.trouble is not None


@pytest.mark.parametrize(
    "make", [many_units, many_ranges, deep_entries, circle, many_declarations, many_programs, many_rows]
)
def test_time_and_memory_are_bounded(make: type) -> None:
    elf = with_sections(**make())
    begin = time.process_time()
    tracemalloc.start()
    try:
        lines = DebugLines(elf).find(CODE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(lines) == len(CODE)
    assert peak < 64 * len(elf.data) + (32 << 20)
    assert time.process_time() - begin < 20


def test_the_unit_of_an_address_is_that_of_the_last_range_that_begins_before_and_reaches_it() -> None:
    chance = random.Random(3)
    for _ in range(rounds(300, 30)):
        code = np.array([(begin := chance.randrange(60), begin + chance.randrange(20), unit) for unit in range(12)])
        addresses = np.arange(90, dtype=np.uint64)
        wanted = []
        for address in range(90):
            around = [
                (begin, -unit) for begin, behind, unit in code.tolist() if begin <= address < behind and begin >= 5
            ]
            wanted.append(-max(around)[1] if around else -1)
        assert owners(code.astype(np.uint64), addresses, 5).tolist() == wanted


def test_many_ranges_before_one_that_reaches_far_cost_little() -> None:
    count = 300_000
    begin = np.arange(count, dtype=np.uint64)
    code = np.column_stack((begin, begin + np.uint64(1), begin))
    code[0, 1] = 10 * count
    begun = time.process_time()
    assert set(owners(code, np.arange(count, 2 * count, dtype=np.uint64), 0).tolist()) == {0}
    assert time.process_time() - begun < 10
