"""Damage: with any one byte of a real section changed, `check` finds something, or the section is truly valid.

What is truly valid is decided by `verify`, a second reader that shares nothing with walkback: it reads field by field,
and stops at the first thing that cannot be right. What nobody could notice, as another offset in a row, is valid.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from corpus import corpus
from peers import run
from walkback.elf import ElfFile
from walkback.sections.check import check_source
from walkback.sframe.encoding import encode
from walkback.sframe.files import Source, from_bytes
from walkback.sframe.files import read as sources

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers

MUTATIONS = 1000
TOLERATED = {"segment-size"}
"""Findings that an intact file of the corpus may have, for it to be mutated."""
LARGEST = 200_000
MACHINES = {1: 183, 2: 183, 3: 62, 4: 22}
PATTERNS = (lambda old, roll: old ^ 1 << roll % 8, lambda old, roll: roll, lambda old, roll: old + 1)


class DamagedError(Exception):
    """What cannot be right."""


def need(condition: object, why: str) -> None:
    if not condition:
        raise DamagedError(why)


@dataclass
class Reader:
    """The fields of a section, of either byte order."""

    data: bytes
    order: str

    def take(self, place: int, code: str) -> tuple[int, ...]:
        need(place + struct.calcsize("=" + code) <= len(self.data), f"{place:#x} is outside")
        return struct.unpack_from(self.order + code, self.data, place)


def verify(data: bytes, address: int, elf: ElfFile) -> None:
    """Raises `DamagedError` if anything in the section contradicts itself, the file or the machine."""
    need(data[:2] in {b"\xe2\xde", b"\xde\xe2"}, "magic")
    read = Reader(data, "<" if data[:1] == b"\xe2" else ">")
    _, version, flags, abi, fixed_fp, fixed_ra, aux, fdes, fres, length, fdeoff, freoff = read.take(0, "HBBBbbBIIIII")
    need(version in {1, 2, 3}, "version")
    need(flags & ~{1: 3, 2: 7, 3: 5}[version] == 0, "flags")
    need(MACHINES.get(abi) == elf.machine, "abi")
    need((read.order == "<") == (elf.byteorder == "little") == (abi in {2, 3}), "byte order")
    need((fixed_fp, fixed_ra, aux) == (0, -8 if abi == 3 else 0, 0), "fixed offsets")
    entry = {1: 17, 2: 20, 3: 16}[version]
    need(fdeoff == 0, "fdeoff")
    need(freoff == fdes * entry, "freoff")
    need(0 <= len(data) - (28 + freoff + length) < 8, "length")
    total, used, places = 0, 0, []
    for number in range(fdes):
        field = 28 + number * entry
        if version == 3:
            start, size, offset = read.take(field, "qII")
            count, info, info2, block = read.take(28 + freoff + offset, "HBBB")
            offset += 5
            need(info2 in {0, 1}, "info2")
            need(info & 0x40 == 0, "info")
        else:
            start, size, offset, count, info = read.take(field, "iIIIB")
            block, padding = read.take(field + 17, "BH") if version == 2 else (16, 0)
            info2 = 0
            need(info & 0xC0 == padding == 0, "info or padding")
        need(info & 15 < 3, "FRE type")
        need(not info & 0x20 or abi < 3, "key")
        base = address + (field if flags & 4 else 0)
        places.append(((start + base) % 2**64, size))
        total += count
        end = rows(read, 28 + freoff + offset, count, (info, info2), size, block, version, abi)
        used += end - (28 + freoff + offset) + (5 if version == 3 else 0)
    need(total == fres, "num_fres")
    need(used == length, "fre_len")
    if elf.type != 1:
        placed(places, elf, flags & 1 or version == 1)


def rows(
    read: Reader, place: int, count: int, infos: tuple[int, int], size: int, block: int, version: int, abi: int
) -> int:
    """Reads the rows of one function, and returns where they end."""
    info, flex = infos
    masked = info >> 4 & 1
    limit = block if masked else size
    need(not masked or block, "block")
    before = -1
    for _ in range(count):
        (start,) = read.take(place, "BHI"[info & 15])
        place += (1, 2, 4)[info & 15]
        need(start > before, "row order")
        # An assembler may write a row at the end, and one at the beginning of an empty function.
        need(start <= limit if not masked else start < limit, "row range")
        before = start
        (kind,) = read.take(place, "B")
        code = kind >> 5 & 3
        need(code < 3, "word size")
        need(not kind & 0x80 or abi < 3, "mangled")
        words = [read.take(place + 1 + n * (1 << code), "bhi"[code])[0] for n in range(kind >> 1 & 15)]
        place += 1 + len(words) * (1 << code)
        need(words or version > 1, "no words")
        need(words or kind & 0x7F == 0, "unused bits")
        if flex:
            flex_words(words, kind, 8 << code)
        elif words:
            need(len(words) <= (2 if abi == 3 else 3), "too many words")
            need(not kind & 1 or abi == 4 or words[0] >= 0, "CFA below SP")
            saved = [word for word in words[1:] if not (version == 2 and abi == 4 and word & 1)]
            need(all(word < 0 or (abi == 4 and word == 0) for word in saved), "saved above the CFA")
    return place


def flex_words(words: list[int], kind: int, bits: int) -> None:
    need(not kind & 1, "unused bits")
    for name in ("CFA", "RA", "FP"):
        if not words:
            need(name != "CFA" or not kind >> 1 & 15, "no CFA")
            return
        control = words.pop(0) % (1 << bits)
        if not control:
            need(name != "CFA", "no CFA")
            continue
        need(words, "no offset")
        offset = words.pop(0)
        need(control & 1 or name != "CFA", "CFA from CFA")
        need(not control & 4 and (control & 1 or control < 8) and control >> 3 < 128, "control word")
        need(name != "CFA" or control != 0x39 or offset >= 0, "CFA below SP")
        need(control != 2 or offset < 0, "saved above the CFA")
    need(not words, "too many words")


def placed(places: list[tuple[int, int]], elf: ElfFile, in_order: object) -> None:
    """Functions lie in executable code, in order if promised, and not upon each other."""
    code = [
        (int(segment["vaddr"]), int(segment["vaddr"]) + int(segment["memsz"]))
        for segment in elf.segments
        if segment["type"] == 1 and segment["flags"] & 1
    ]
    for start, size in places:
        need(any(low <= start and start + size <= high for low, high in code), "outside of code")
    need(not in_order or [start for start, _ in places] == sorted(start for start, _ in places), "order")
    ends = 0
    for start, size in sorted(place for place in places if place[1]):
        need(start >= ends, "overlap")
        ends = start + size


@dataclass
class Sound:
    """A file of the corpus in which `check` finds nothing."""

    path: Path
    data: bytes
    offset: int
    size: int
    address: int


def only(data: bytes, folder: Path) -> Source:
    path = folder / "mutated"
    path.write_bytes(data)
    (source,) = sources(path)
    return source


@pytest.fixture(scope="module")
def sound() -> list[Sound]:
    pool = []
    for sample in corpus():
        if sample.kind in {"archive", "lld"} or sample.path.stat().st_size > LARGEST:
            continue
        source = next(sources(sample.path))
        if not len(source.data) or {one.code for one in check_source(source).findings} - TOLERATED:
            continue
        data = sample.path.read_bytes()
        pool.append(Sound(sample.path, data, source.file_offset or 0, len(source.data), source.address))
    assert len(pool) > 200
    return pool


def test_the_second_reader_takes_all_sections_that_check_takes(sound: list[Sound]) -> None:
    for one in sound:
        verify(one.data[one.offset :][: one.size], one.address, ElfFile(one.data, str(one.path)))


@pytest.mark.parametrize("seed", range(4))
def test_what_check_does_not_notice_is_valid(sound: list[Sound], seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    unnoticed = 0
    for _ in range(MUTATIONS // 4):
        one = dice.choice(sound)
        place = dice.randrange(one.size)
        data = bytearray(one.data)
        old = data[one.offset + place]
        new = dice.choice(PATTERNS)(old, dice.randrange(256)) % 256
        data[one.offset + place] = new
        source = only(bytes(data), tmp_path)
        found = {finding.code for finding in check_source(source).findings} - TOLERATED
        if found or new == old:
            continue
        unnoticed += 1
        what = f"seed {seed}: {one.path}, section byte {place:#x}: {old:#x} to {new:#x}"
        whole = bytes(source.data)
        try:
            verify(whole, one.address, ElfFile(bytes(data), what))
        except DamagedError as error:
            # An empty function hides its rows from `check`: see the expected failures of test_check_reports.
            if str(error) != "row range" or not hidden_by_size(source):
                pytest.fail(f"{what}: {error}")
        for piece in source.pieces():
            assert encode(piece.section) == whole, what
    assert unnoticed < MUTATIONS // 8


def hidden_by_size(source: Source) -> bool:
    (piece,) = source.pieces()
    return bool((piece.section.functions.size == 0).any())


def test_readelf_prints_what_check_does_not_notice(sound: list[Sound], tmp_path: Path) -> None:
    dice = random.Random("readelf")
    peer = {62: "", 183: "aarch64-", 22: "s390x-"}
    for _ in range(150):
        one = dice.choice(sound)
        data = bytearray(one.data)
        data[one.offset + dice.randrange(one.size)] ^= 1 << dice.randrange(8)
        source = only(bytes(data), tmp_path)
        if {finding.code for finding in check_source(source).findings} - TOLERATED or hidden_by_size(source):
            continue
        assert source.elf is not None
        version = "2.40" if source.data[2] == 1 else "new"
        told = run(f"{peer[source.elf.machine]}readelf-{version}", "--sframe", tmp_path / "mutated")
        assert (told.returncode, told.stderr) == (0, b"")


def test_sections_that_are_cut_off_anywhere_are_noticed(sound: list[Sound]) -> None:
    dice = random.Random("cut")
    for one in dice.sample(sound, 10):
        whole = one.data[one.offset :][: one.size]
        for length in dice.sample(range(1, len(whole)), 20):
            report = check_source(from_bytes(whole[:length], address=one.address))
            assert report.findings or not any(whole[length:]), (one.path, length)
