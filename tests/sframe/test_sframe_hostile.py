"""Damaged and made-up sections: only errors of walkback come out, in bounded memory and time."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import pytest

from effort import rounds
from sframebuilder import AARCH64, AARCH64_BIG, AMD64, PCREL, S390X, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.base.errors import SFrameError, WalkbackError
from walkback.sframe.decoding import decode, decode_all
from walkback.sframe.dump import View, gnu, json, llvm, readable
from walkback.sframe.encoding import encode
from walkback.sframe.files import SFrameSection, Source, from_bytes
from walkback.sframe.rules import to_table
from walkback.sframe.section import Section

pytestmark = pytest.mark.kernel

DUMPS = {"gnu": gnu, "readable": readable, "json": json, "llvm": llvm}
VALUES = [0, 1, 2, 3, 15, 16, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 5, 2**32 - 1]

# Measured: large sections made to be worst take 23 times their size to read and look up (an index entry of 16 bytes
# becomes columns of 66; the rest is what NumPy makes on the way), and 42 times with their text. On top of that stand
# the tables that a small section has too: an interner's (20 KiB), and a dump's buffer (256 KiB) and fixed texts.
DECODE_BASE, DECODE_TIMES = 64 << 10, 40
DUMP_BASE, DUMP_TIMES = 640 << 10, 64

# Functions may share rows, and claim rows that are not there, twice 65,536 rows more than the section has bytes for.
# A row costs 8 bytes in a section, 4 more in a table, 16 while its address is made into text; NumPy doubles that.
SHARED_ROWS = 2 << 16
SHARED_BYTES = 64 * SHARED_ROWS


def base_sections() -> list[bytes]:
    """Sound sections of all versions, machines and byte orders, with everything in them that may be in them."""
    out = []
    for version in (1, 2, 3):
        for abi in (AMD64, AARCH64, AARCH64_BIG, S390X):
            order: ByteOrder = "big" if abi in (AARCH64_BIG, S390X) else "little"
            builder = SFrameBuilder(version, abi=abi, order=order)
            builder.function(0x1000, 64, [row(0, 1, [8]), row(1, 1, [16, -16]), row(4, 0, [16, -16, -8]), row(9, 0)])
            builder.function(0x1040, 700, [row(0, 1, [4]), row(300, 1, [400, -48], size=2)], fre_type=1, key_b=True)
            builder.function(0x1400, 64, [row(0, 1, [0]), row(11, 1, [1])], mask=True, rep_size=16)
            builder.function(0x1500, 2**20, [row(0, 1, [2**20, 2, 3], size=4, mangled=True)], fre_type=2)
            builder.function(0x201500, 16)
            builder.function(0x1000, 64, builder.functions[0].rows, shares=0)
            if version == 3:
                rows = [
                    row(0, 0, [0x39, 8]),
                    row(5, 0, [0x51, 0, 0, 0x33, 0]),
                    row(7, 0, [0x101, 0, 2, -16, 2, -24], size=2),
                ]
                builder.function(0x2000, 32, rows, flex=True, signal=True)
            out.append(builder.bytes())
    out.append(out[8] + b"\0" * (-len(out[8]) % 8) + out[4] + b"\0" * (-len(out[4]) % 8) + out[0])
    odd = SFrameBuilder(
        2, flags=PCREL, auxiliary=b"auxiliary", before_index=b"12", between=b"345", tail=b"tail", rows_first=True
    )
    odd.function(0x1000, 64, [row(0, 1, [8])], before=b"gap")
    out.append(odd.bytes())
    return out


def damage(random: random.Random, bases: list[bytes]) -> bytes:
    """One to four changes to a sound section."""
    data = bytearray(random.choice(bases))
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        if data:
            # what stands in front decides more
            at = random.randrange(len(data) if random.random() < 0.6 else min(len(data), 120))
            random.choice((flip, poke, store, store, cut, drop, insert, splice))(random, data, at, bases)
    return bytes(data)


def flip(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    data[at] ^= 1 << random.randrange(8)


def poke(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    data[at] = random.randrange(256)


def store(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    code, size = random.choice((("<I", 4), (">I", 4), ("<H", 2), (">H", 2)))
    at = random.choice((at, 8, 12, 16, 20, 24))
    if at + size <= len(data):
        struct.pack_into(code, data, at, random.choice(VALUES) & (2 ** (8 * size) - 1))


def cut(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    del data[random.randrange(len(data)) :]


def drop(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    del data[at : at + random.randrange(1, 20)]


def insert(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    data[at:at] = random.randbytes(random.randrange(1, 20))


def splice(random: random.Random, data: bytearray, at: int, bases: list[bytes]) -> None:
    other = random.choice(bases)
    start = random.randrange(len(other))
    part = other[start : start + random.randrange(1, 60)]
    data[at : at + len(part)] = part


def ask(wanted: Callable[..., object]) -> bool:
    """Whether an answer came; errors of walkback are one line."""
    text = "fine"
    try:
        wanted()
    except WalkbackError as error:
        text = f"error: {error}"
    assert len(text.splitlines()) == 1
    return text == "fine"


def look_up(section: Section) -> None:
    table = to_table(section)
    starts = table.range_start
    pcs = np.concatenate([starts, starts + table.range_size, starts - np.uint64(1), starts + np.uint64(7)])
    ranges, rows = table.find_many(np.append(pcs, np.uint64(2**64 - 1)))
    assert ranges.max(initial=-1) < len(table)
    assert rows.max(initial=-1) < len(table.row_rule)
    for row_number in np.unique(rows[rows >= 0])[:5].tolist():
        assert table.rule(row_number).text(table.machine)
    table.rule_texts()


def ask_everything(data: bytes, address: int) -> None:
    if ask(lambda: decode(data, address=address)):
        assert encode(decode(data, address=address)) == data
    ask(lambda: list(decode_all(data, address=address)))
    try:
        sections = list(decode_all(data, address=address, faults=True))
    except SFrameError:
        return
    assert sections[0][0] == 0
    for position, section in sections:
        assert len(section.row_start) <= section.length + SHARED_ROWS
        assert section.functions.rows.sum() == len(section.row_start) == len(section.row_shape)
        ends = section.row_offsets() + 1
        assert ends.max(initial=0) <= section.length
        if not section.functions.fault.any():
            assert encode(section) == data[position : position + section.length]
        ask(lambda section=section: look_up(section))


def dump_everything(data: bytes, address: int) -> None:
    source = from_bytes(data, address=address)
    try:
        found = list(source.pieces(faults=True))
    except SFrameError:
        return
    for piece in found:
        for dump in DUMPS.values():
            ask(lambda dump=dump, piece=piece: write(dump, source, piece))


def write(dump: ModuleType, source: Source, piece: SFrameSection) -> int:
    return sum(len(part) for part in dump.dump(View.of(source, piece)))


def peak(wanted: Callable[..., object]) -> int:
    """Bytes allocated at most while it runs: the less of twice, as other threads of the tests allocate meanwhile."""
    found = []
    for _ in range(2):
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        wanted()
        found.append(tracemalloc.get_traced_memory()[1] - before)
    return min(found)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def test_sound_sections_are_sound() -> None:
    for data in base_sections()[:12]:
        assert encode(decode(data)) == data
        ask_everything(data, 0x400000)
        dump_everything(data, 0x400000)


@pytest.mark.parametrize("address", [0, 2**64 - 300])
def test_damaged_sections(address: int, interpreted: bool) -> None:
    bases = base_sections()
    for data in bases:  # what Python and NumPy keep from the first time is not counted
        ask_everything(data, address)
        dump_everything(data, address)
    count = rounds(100 if interpreted else 1000, quick=20 if interpreted else 300)
    for number in range(count):
        seed = f"{address}/{number}"
        data = damage(random.Random(seed), bases)
        began = time.process_time()
        if number % 8:
            ask_everything(data, address)
            dump_everything(data, address)
        else:
            # tracing makes it slow
            tracemalloc.start()
            asked = peak(lambda data=data: ask_everything(data, address))
            dumped = peak(lambda data=data: dump_everything(data, address))
            tracemalloc.stop()
            assert asked <= DECODE_BASE + DECODE_TIMES * len(data), f"{asked} bytes for {len(data)}: seed {seed}"
            assert dumped <= DUMP_BASE + DUMP_TIMES * len(data), f"{dumped} bytes for {len(data)}: seed {seed}"
        assert time.process_time() - began < 30, f"seed {seed}"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_cut_of_a_section(version: int, traced: None) -> None:
    data = base_sections()[4 * (version - 1)]
    for length in range(len(data)):
        with pytest.raises(SFrameError):
            decode(data[:length])
        ask_everything(data[:length], 0)


def header(
    version: int,
    *,
    fdes: int = 0,
    fres: int = 0,
    fre_len: int = 0,
    fdeoff: int = 0,
    freoff: int = 0,
    auxiliary: int = 0,
) -> bytes:
    return struct.pack("<HBBBbbB5I", 0xDEE2, version, 5, 3, 0, -8, auxiliary, fdes, fres, fre_len, fdeoff, freoff)


CLAIMS = {
    "a billion functions": header(2, fdes=10**9) + bytes(12),
    "functions past the end": header(3, fdes=1, fdeoff=2**32 - 1) + bytes(12),
    "four billion rows": header(2, fres=2**32 - 1) + bytes(12),
    "four gigabytes of rows": header(2, fre_len=2**32 - 1) + bytes(12),
    "rows past the end": header(2, freoff=2**32 - 1, fre_len=1) + bytes(12),
    "a function of four billion rows": header(2, fdes=1, fre_len=3, freoff=20)
    + struct.pack("<iIIIBBH", 0, 16, 0, 2**32 - 1, 0, 0, 0)
    + b"\0\3\x08",
    "a function without bytes": header(2, fdes=1, freoff=20) + struct.pack("<iIIIBBH", 0, 16, 0, 2**32 - 1, 0, 0, 0),
    "rows four gigabytes away": header(2, fdes=1, freoff=20) + struct.pack("<iIIIBBH", 0, 16, 2**32 - 1, 9, 0, 0, 0),
    "an attribute four gigabytes away": header(3, fdes=1, freoff=16) + struct.pack("<qII", 0, 16, 2**32 - 1),
    "everything at once": b"\xe2\xde\2" + b"\xff" * 37,
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_cost_nothing(name: str, traced: None) -> None:
    data = CLAIMS[name]
    began = time.process_time()
    assert peak(lambda: ask_everything(data, 0)) < DECODE_BASE + DECODE_TIMES * len(data)
    assert peak(lambda: dump_everything(data, 0)) < DUMP_BASE + DUMP_TIMES * len(data)
    assert time.process_time() - began < 5


def small_or_large(interpreted: bool) -> int:
    return 200 if interpreted else 3000


def many_functions(count: int) -> bytes:
    builder = SFrameBuilder(3)
    for number in range(count):
        builder.function(16 * number, 16, fre_offset=0)
    return builder.bytes()


def overlapping_functions(count: int) -> bytes:
    builder = SFrameBuilder(2)
    for number in range(count):
        builder.function(4 * number, 64, [row(0, 1, [8])], shares=0 if number else None)
    return builder.bytes()


def greedy_functions(count: int) -> bytes:
    builder = SFrameBuilder(2)
    for number in range(count):
        builder.function(16 * number, 16, [row(n, 1, [8]) for n in range(3)], num_fres=0xFFFFFFFF)
    return builder.bytes()


def rows_at_every_byte(count: int, infos: list[int], length: int) -> bytes:
    """Functions whose rows begin at every byte: as many rows as bytes, and each with words that no other has."""
    random_ = random.Random(1)
    body = bytes(random_.choice(infos) for _ in range(8 * count))
    index = b"".join(struct.pack("<iIIIBBH", 16 * n, 16, n, (len(body) - n) // length, 0, 0, 0) for n in range(length))
    return header(2, fdes=length, fre_len=len(body), freoff=len(index)) + index + body


def shared_rows(count: int) -> bytes:
    builder = SFrameBuilder(2)
    rows = [row(n, 1, [8]) for n in range(255)]
    for number in range(count // 6):
        builder.function(256 * number, 256, rows, shares=0 if number else None)
    return builder.bytes()


LARGE: dict[str, Callable[[int], bytes]] = {
    "shared rows": shared_rows,
    "many functions": many_functions,
    "overlapping functions": overlapping_functions,
    "greedy functions": greedy_functions,
    "rows without words at every byte": lambda count: rows_at_every_byte(count, [0x00, 0x01, 0x80, 0x81], 2),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", LARGE)
def test_large_sections_made_to_be_worst(name: str, traced: None, interpreted: bool) -> None:
    if interpreted and name in {"shared rows", "greedy functions"}:
        pytest.skip("a hundred thousand rows take minutes")
    data = LARGE[name](small_or_large(interpreted))
    section = decode(data, faults=True)
    shared = SHARED_BYTES if len(section.row_start) > section.fre_len // 2 else 0
    assert peak(lambda: decode(data, faults=True)) < DECODE_BASE + DECODE_TIMES * len(data) + shared
    assert peak(lambda: look_up(section)) < DECODE_BASE + DECODE_TIMES * len(data) + shared
    assert peak(lambda: dump_everything(data, 0)) < DUMP_BASE + DUMP_TIMES * len(data) + shared


@pytest.mark.parametrize(("infos", "length"), [([0x5E, 0x5F, 0xDE, 0xDF], 62), ([0x1E, 0x1F, 0x9E, 0x9F], 17)])
def test_overlapping_rows_with_many_words(traced: None, infos: list[int], length: int, interpreted: bool) -> None:
    # At every byte stands a row of its own, with 15 words that are kept in 4 bytes each, and an interner's entry: 100
    # bytes for each byte is what it comes to if nothing larger is made on the way.
    data = rows_at_every_byte(500 if interpreted else 8000, infos, length)
    assert peak(lambda: decode(data, faults=True)) < (4 << 20) + 128 * len(data)


def test_gaps_between_functions_are_found_quickly(interpreted: bool) -> None:
    count = small_or_large(interpreted)
    builder = SFrameBuilder(2)
    for number in range(count):
        builder.function(16 * number, 16, [row(0, 1, [8])], before=b"x")
    section = decode(builder.bytes())
    assert len(section.gaps) == count
    assert encode(section) == builder.bytes()
