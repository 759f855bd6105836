"""Dumps to columns, to an ELF file and to lines, and what is done with damaged ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from effort import rounds
from jitdump.dumpbuilder import DumpBuilder
from walkback.base.arch import AMD64, S390X
from walkback.base.errors import UnreadableError
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.jitdump.decoding import JitDump, decode
from walkback.jitdump.image import image_of
from walkback.jitdump.lines import DumpLines
from walkback.symbols import SymbolIndex

if TYPE_CHECKING:
    from walkback.base.arch import ByteOrder, Machine

ORDERS: list[tuple[ByteOrder, Machine]] = [("little", AMD64), ("big", S390X)]


def names(dump: JitDump) -> list[str]:
    return [dump.data[begin:end].decode() for begin, end in dump.loads.name.tolist()]


def lines(dump: JitDump, load: int, *offsets: int) -> list[tuple[str | None, int]]:
    start = image_of(dump, AMD64)[1]
    found = DumpLines(dump, start).find(start[load] + np.array(offsets, np.uint64))
    return [(line[0].file, line[0].line) if line else (None, 0) for line in found]


@pytest.mark.parametrize(("byteorder", "machine"), ORDERS)
def test_names_and_places(byteorder: ByteOrder, machine: Machine) -> None:
    built = DumpBuilder(byteorder).load(b"f", 0x1000, b"abcd", 1).load(b"g(int)", 0x2000, b"xyz", 2)
    dump = decode(bytes(built.move(0x1000, 0x3000, 4, 1)), "jit-7.dump")
    assert (names(dump), dump.trouble, dump.is_monotonic) == (["f", "g(int)"], None, True)
    assert dump.moves.address.tolist() == [0x1000, 0x2000, 0x3000]
    assert dump.moves.load.tolist() == [0, 1, 0]
    image, start = image_of(dump, machine)
    elf = ElfFile(image)
    assert (elf.byteorder, elf.machine) == (byteorder, machine.elf_machine)
    assert [bytes(elf.mapped_data(at, size)) for at, size in zip(start.tolist(), (4, 3), strict=True)] == [
        b"abcd",
        b"xyz",
    ]
    index = SymbolIndex(elf)
    assert index.names_of(index.holders(start + np.uint64(2))) == ["f", "g(int)"]


@pytest.mark.parametrize(("byteorder", "machine"), ORDERS)
def test_unwinding_information_is_of_the_code_that_follows(byteorder: ByteOrder, machine: Machine) -> None:
    built = DumpBuilder(byteorder)
    built.frames(built.entries(13), b"header").load(b"f", 0x1000, bytes(13)).load(b"g", 0x2000, bytes(40))
    built.frames(built.entries(24)).load(b"h", 0x3000, bytes(24))
    image, start = image_of(decode(bytes(built), "jit-7.dump"), machine)
    [source] = frame_sources(ElfFile(image))
    fdes = source.frames.fdes
    assert not fdes.fault.any()
    assert fdes.start.tolist() == start[[0, 2]].tolist()
    assert fdes.size.tolist() == [13, 24]


def test_damaged_unwinding_information_spoils_no_other() -> None:
    built = DumpBuilder()
    good = built.entries(16)
    for bad in (b"\xff\xff\xff\xff" + good[4:], good[:20], b"\1\2\3\4\5\6", good[:7] + b"\x77" + good[8:]):
        built.frames(bad).load(b"bad", 0x1000, bytes(16))
    image, start = image_of(decode(bytes(built.frames(good).load(b"f", 0x1000, bytes(16))), "jit-7.dump"), AMD64)
    [source] = frame_sources(ElfFile(image))
    assert int(start[-1]) in source.frames.fdes.start[source.frames.fdes.fault == 0].tolist()


def test_lines_are_those_of_the_code_that_follows() -> None:
    built = DumpBuilder().lines(0x1000, (0, 3, b"a.js"), (2, 4, b"\xff"), (6, 9, b"b.js")).load(b"f", 0x1000, bytes(9))
    built.load(b"g", 0x2000, bytes(9)).lines(0x5000, (0, 1, b"c")).load(b"h", 0x3000, bytes(9))
    dump = decode(bytes(built), "jit-7.dump")
    assert lines(dump, 0, 0, 1, 2, 5, 6, 8) == [("a.js", 3)] * 2 + [("a.js", 4)] * 2 + [("b.js", 9)] * 2
    assert lines(dump, 1, 3) == lines(dump, 2, 3) == [(None, 0)]


def test_lines_of_v8_count_from_where_perf_had_code_once() -> None:
    built = DumpBuilder().lines(0x1000, (0x40, 3, b"a.js"), (0x44, 4, b"a.js")).load(b"f", 0x1000, bytes(9))
    assert lines(decode(bytes(built), "jit-7.dump"), 0, 0, 3, 4) == [("a.js", 3), ("a.js", 3), ("a.js", 4)]
    # If any function has a line before that, all count from their beginning.
    built.lines(0x2000, (0x3F, 5, b"a.js")).load(b"g", 0x2000, bytes(99))
    assert lines(decode(bytes(built), "jit-7.dump"), 0, 0, 4) == [(None, 0), (None, 0)]


def test_lines_elsewhere_are_not_believed() -> None:
    built = DumpBuilder().lines(0x1000, (0, 3, b"a.js"), (2**63, 4, b"a.js")).load(b"f", 0x1000, bytes(9))
    assert lines(decode(bytes(built), "jit-7.dump"), 0, 0, 3) == [(None, 0), (None, 0)]


def test_what_is_not_whole_yet_is_passed_over() -> None:
    built = DumpBuilder().load(b"f", 0x1000, b"abcd")
    whole = len(bytes(built))
    data = bytes(built.load(b"g", 0x2000, b"xyz"))
    for end in range(whole, len(data)):
        dump = decode(data[:end], "jit-7.dump")
        assert (names(dump), dump.trouble, dump.end) == (["f"], None, whole)


def test_nothing_follows_the_end() -> None:
    assert names(decode(bytes(DumpBuilder().close().load(b"f", 0x1000, b"abcd")), "jit-7.dump")) == []


@pytest.mark.parametrize(
    ("built", "trouble"),
    [
        (DumpBuilder().record(0, b"short"), "the contents of 1 records contradict their size"),
        (DumpBuilder().record(1, bytes(8)), "the contents of 1 records contradict their size"),
        (DumpBuilder().record(4, bytes((255,)) * 24), "the contents of 1 records contradict their size"),
        (DumpBuilder().move(1, 2, 3, 4), "the contents of 1 records contradict their size"),
        (DumpBuilder().load(b"f", 2**64 - 2, b"abcd"), "the contents of 1 records contradict their size"),
        (DumpBuilder(records=bytes(16)), "at 0x28 is a record of 0 bytes; nothing behind it is read"),
    ],
)
def test_damaged_records(built: DumpBuilder, trouble: str) -> None:
    dump = decode(bytes(built), "jit-7.dump")
    assert trouble in (dump.trouble or "")
    assert not len(dump.loads.address)


@pytest.mark.parametrize("data", [b"", b"DTiJ", bytes(40), bytes(DumpBuilder(version=2))])
def test_other_files(data: bytes) -> None:
    with pytest.raises(UnreadableError, match=r"jit-7.dump: (this is not a dump|a dump of version 2)"):
        decode(data, "jit-7.dump")


def test_no_damage_does_harm() -> None:
    built = DumpBuilder()
    built.frames(built.entries(16)).lines(0x1000, (0, 3, b"a.js"), (2, 4, b"\xff")).load(b"f", 0x1000, bytes(16), 1)
    original = bytes(built.move(0x1000, 0x2000, 16, 1).load(b"g", 0x1000, bytes(5)))
    chance = random.Random(4)
    for _ in range(rounds(400, 100)):
        data = bytearray(original)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(40, len(data))] = chance.choice((0, 1, 0x40, 0x7F, 0xFF, chance.randrange(256)))
        dump = decode(bytes(data), "jit-7.dump")
        image, start = image_of(dump, AMD64)
        DumpLines(dump, start).find(start)
        for source in frame_sources(ElfFile(image)):
            assert len(source.frames.fdes) <= 2
