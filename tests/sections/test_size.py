"""What sizes are told: against real sections, against the bytes that are made, and by hand for a small file."""

from __future__ import annotations

import random
import struct
import subprocess
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

import pytest

from cfibuilder import CfiBuilder, cfa
from corpus import corpus
from peers import peer
from sframefiles import small, written
from sized import START, a_program
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.sections.derive import derive
from walkback.sections.size import Parts
from walkback.sections.size import size as measure
from walkback.sections.size.parts import parts_of, parts_of_built
from walkback.sframe.building import build
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.files import read as sources
from walkback.sframe.rules import to_table

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return written(tmp_path, a_program(), "program")


def test_parts_of_versions_counted_by_hand(program: Path) -> None:
    sizes = measure(program)
    assert {version: one.parts for version, one in sizes.versions.items()} == {
        1: Parts(header=28, index=3 * 17, starts=6, info=6, words=6),
        2: Parts(header=28, index=3 * 18, padding=3 * 2, starts=6, info=6, words=6),
        3: Parts(header=28, index=4 * 16, attributes=4 * 5, starts=7, info=7, words=8),
    }
    assert [(one.functions, one.covered, one.uncovered) for one in sizes.versions.values()] == [
        (4, 3, 1),
        (4, 3, 1),
        (4, 4, 0),
    ]
    assert (sizes.text_bytes, sizes.eh_frame_hdr, sizes.call_frames) == (0x100, 44, sizes.eh_frame + 44)
    assert sizes.file_bytes == program.stat().st_size


def test_what_ifs_of_version_2_counted_by_hand(program: Path) -> None:
    assert measure(program).versions[2].what_if == {
        "compact_index": 28 + 3 * 16 + 6 * 3,
        "slim_header": 12 + 3 * 20 + 6 * 3,
        "section_per_text": 106,
        "section_per_text_slim": 90,
        "section_per_function": 3 * 28 + 2 * 64 + 3 * 20 + 6 * 3,
        "section_per_function_slim": 3 * 12 + 2 * 64 + 3 * 20 + 6 * 3,
        "shared_rows": 28 + 3 * 20 + 4 * 3,
        "palette": 28 + 3 * 20 + 6 * 4 + 2 * 12,
    }


def test_what_ifs_of_version_3_counted_by_hand(program: Path) -> None:
    assert measure(program).versions[3].what_if == {
        "slim_header": 134 - 16,
        "section_per_text": 134,
        "section_per_text_slim": 134 - 16,
        "section_per_function": 134 + 3 * (28 + 64),
        "section_per_function_slim": 134 - 16 + 3 * (12 + 64),
        "shared_rows": 134 - (5 + 2 * 3),
        "palette": 28 + 4 * (16 + 5) + 7 * 4 + 3 * 12,
        # Two entries for each of three functions, one for the last, one for the end of the code.
        "stack_deltas": 8 * 4 + 3 * 12 + 8,
    }


def test_a_replacement_of_eh_frame_counted_by_hand(program: Path) -> None:
    found = measure(program).replacement
    assert (found.personality_functions, found.lsda_functions, found.exception_bytes) == (2, 1, 2 * 1 + 4 + 4)
    assert (found.register_functions, found.register_rows, found.sets) == (1, 2, 2)
    # The row where only r12 is saved is like the one before: a start, an info byte, a word.
    assert (found.added_rows, found.added_row_bytes) == (1, 3)
    # rbx; then rbx and r12: a count, and a control word and an offset of 1 byte each.
    assert found.register_bytes == (1 + 2) + (1 + 4)
    assert found.numbered_bytes == 2 * 2 + (1 + 2) + (1 + 4)
    assert found.total == 10 + 3 + 8
    assert found.numbered_total == 10 + 3 + 12


def test_wide_registers_and_offsets_take_wider_words() -> None:
    from walkback.base.arch import AMD64
    from walkback.dwarf.decoding import decode as decode_frames
    from walkback.dwarf.others import side_table
    from walkback.sections.size.replacement import set_bytes

    builder = CfiBuilder()
    cie = builder.cie(cfa(START))
    for program in (
        "",
        "offset 3 2",
        "offset 3 17",  # -136
        "offset 3 2; offset_extended 32 3",  # a control word of 9 bits
        "offset 3 10000",
        "undefined 3; same_value 12",
        "offset 12 2; expression 3 77100620",
    ):
        builder.fde(cie, 0x1000, 16, cfa(program))
    others = side_table(decode_frames(builder.bytes(), AMD64))
    assert set_bytes(others)[others.row_set].tolist() == [0, 3, 5, 9, 9, 5, 1 + 4 + 4]


@pytest.mark.whole
def test_a_function_of_many_rows_needs_several_compact_entries() -> None:
    from walkback.base.arch import AMD64
    from walkback.sections.size.whatif import what_ifs
    from walkback.sframe.builder import SectionBuilder

    builder = SectionBuilder(AMD64)
    rows = [(offset, f"CFA = rsp+{8 + 8 * (offset % 2)}") for offset in range(70000)]
    builder.function(0x1000, 70000, rows)
    section = build(builder.table(), version=2).section
    size = section.length
    found = what_ifs(section, size, 1)
    assert found["compact_index"] == size - 20 + 2 * 16
    # Starts of 16 bits: two parts, and one row more.
    assert found["palette"] == 28 + 2 * 20 + 70001 * 4 + 2 * 12


def test_stack_deltas_count_pages_and_gaps() -> None:
    from walkback.base.arch import AMD64
    from walkback.sections.size.whatif import stack_deltas
    from walkback.sframe.builder import SectionBuilder

    builder = SectionBuilder(AMD64)
    builder.function(0x10000, 0x30000, ["CFA = rsp+8"])  # three pages
    builder.function(0x40000, 16, ["CFA = rsp+8"])  # a fourth, and nothing changes
    builder.function(0x40020, 16, ["CFA = rsp+8"])  # after a gap, in the same
    section = build(builder.table(), version=3).section
    assert stack_deltas(to_table(section)) == 4 * 4 + 12 + 4 * 8


def test_sections_without_functions_have_what_ifs() -> None:
    from walkback.base.arch import AMD64
    from walkback.sections.size.whatif import stack_deltas, what_ifs
    from walkback.sframe.builder import SectionBuilder

    section = build(SectionBuilder(AMD64).table(), version=3).section
    found = what_ifs(section, 28, 0)
    assert found["section_per_function"] == found["shared_rows"] == found["palette"] == 28
    assert stack_deltas(to_table(section)) == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_functions_that_share_rows_have_them_counted_once(version: int) -> None:
    builder = small(version)
    section = decode(builder.bytes())
    alone = parts_of(section)
    data = bytearray(builder.bytes())
    entry = {1: 17, 2: 20, 3: 16}[version]
    place = 28 + entry + {1: 8, 2: 8, 3: 12}[version]
    data[place : place + 4] = data[place - entry : place - entry + 4]
    if version < 3:
        data[place + 4 : place + 8] = data[place - entry + 4 : place - entry + 8]
        data[place + 8] = data[place - entry + 8]
    shared = parts_of(decode(bytes(data), faults=True))
    assert shared.total == alone.total == len(data)
    assert shared.other > 0
    assert (shared.header, shared.index, shared.padding) == (alone.header, alone.index, alone.padding)
    assert shared.info < alone.info


@pytest.mark.parametrize("version", [1, 2, 3])
def test_parts_of_what_was_built_are_those_of_its_bytes(program: Path, version: int) -> None:
    made = derive(program, version=version)
    assert len(made.section.functions) > 1
    assert parts_of_built(made.section) == parts_of(decode(made.contents, address=made.section.address))


def test_cut_off_rows_are_counted_as_far_as_they_go() -> None:
    builder = small()
    data = builder.bytes()
    (length,) = struct.unpack_from("<I", data, 16)
    broken = decode(data[:16] + struct.pack("<I", length - 1) + data[20:-1], faults=True)
    parts = parts_of(broken)
    assert parts.total == len(data) - 1
    assert parts.info == parts_of(decode(data)).info - 1
    assert parts.other > 0


@pytest.mark.whole
@pytest.mark.parametrize("version", [1, 2, 3])
def test_damaged_sections_have_parts_that_add_up(version: int) -> None:
    random.seed(version)
    sound, read = small(version).bytes(), 0
    for _ in range(3000):
        data = bytearray(sound)
        for _ in range(random.randint(1, 3)):
            data[random.randrange(3, len(data))] = random.randrange(256)
        try:
            section = decode(bytes(data), faults=True)
        except WalkbackError:
            continue
        read += 1
        parts = parts_of(section)
        assert parts.total == section.length
        assert min(astuple(parts)) >= 0
    assert read > 500


@pytest.mark.whole
def test_damaged_files_are_measured_or_refused(program: Path, tmp_path: Path) -> None:
    random.seed(3)
    sound, measured = program.read_bytes(), 0
    with ElfFile(program) as elf:
        first, size = int(elf.sections["offset"][2]), int(elf.sections["size"][2])
    for turn in range(400):
        data = bytearray(sound)
        for _ in range(random.randint(1, 4)):
            place = random.randrange(first, first + size) if turn % 2 else random.randrange(4, len(data))
            data[place] = random.randrange(256)
        path = tmp_path / "damaged"
        path.write_bytes(data)
        try:
            sizes = measure(path)
        except WalkbackError:
            continue
        measured += 1
        for one in sizes.versions.values():
            assert min(astuple(one.parts)) >= 0
            assert min(one.what_if.values(), default=0) >= 0
    assert measured > 100


def walked(data: bytes, order: str) -> Parts:
    """Reads a section byte by byte, with the shapes of the specification and nothing of walkback."""
    version = data[2]
    count, _, length, fde_at, fre_at = struct.unpack_from(order + "5I", data, 8)
    start = 28 + data[7]
    parts = Parts(header=start)
    for index in range(count):
        entry = start + fde_at + index * {1: 17, 2: 20, 3: 16}[version]
        if version == 3:
            (place,) = struct.unpack_from(order + "I", data, entry + 12)
            place += start + fre_at
            rows, info = struct.unpack_from(order + "HB", data, place)
            place += 5
            parts.attributes += 5
            parts.index += 16
        else:
            place, rows, info = struct.unpack_from(order + "IIB", data, entry + 8)
            place += start + fre_at
            parts.index += {1: 17, 2: 18}[version]
            parts.padding += {1: 0, 2: 2}[version]
        for _ in range(rows):
            width = 1 << (info & 15)
            head = data[place + width]
            words = (head >> 1 & 15) << (head >> 5 & 3)
            parts.starts += width
            parts.info += 1
            parts.words += words
            place += width + 1 + words
        assert place <= start + fre_at + length
    return parts


def assert_parts_are_real(path: Path) -> None:
    """What is told of each version is what deriving gives, and its parts are what reading it again gives."""
    sizes = measure(path)
    with ElfFile(path) as elf:
        order = "<" if elf.byteorder == "little" else ">"
        place = None if elf.is_relocatable else 0x10000000
        for version, told in sizes.versions.items():
            made = derive(elf, version=version, address=place)
            assert told.parts.total == len(made.contents) == len(encode(made.section))
            assert told.parts == walked(made.contents, order)
            assert (told.covered, told.uncovered) == (made.covered, made.functions - made.covered)
            assert told.rows == struct.unpack_from(order + "I", made.contents, 12)[0]


def test_a_small_program_takes_what_deriving_gives(program: Path) -> None:
    assert_parts_are_real(program)


@pytest.mark.skipif(not LIBC.exists(), reason=f"no {LIBC}")
def test_libc_takes_what_deriving_gives() -> None:
    assert_parts_are_real(LIBC)


@pytest.mark.peers
def test_the_corpus_takes_what_deriving_gives() -> None:
    paths = [one.path for one in corpus() if one.producer == "new" and one.path.name.startswith("program")]
    paths = [path for path in paths if path.suffix != ".a"]
    assert len(paths) > 10
    for path in paths:
        assert_parts_are_real(path)


@pytest.mark.peers
def test_parts_of_real_sections_add_up_to_what_size_tells() -> None:
    seen = 0
    for sample in corpus():
        if sample.kind == "archive":
            continue
        told = subprocess.run([peer("size-new"), "-A", sample.path], capture_output=True, text=True, check=True).stdout
        real: dict[str, int] = {}
        for fields in (line.split() for line in told.splitlines()):
            if len(fields) == 3 and fields[0].startswith("."):
                real[fields[0]] = real.get(fields[0], 0) + int(fields[1])
        sizes = measure(sample.path)
        assert sizes.sframe is not None
        assert sizes.sframe.parts.total == real[".sframe"]
        assert sizes.eh_frame == real.get(".eh_frame", 0)
        assert sizes.eh_frame_hdr == real.get(".eh_frame_hdr", 0)
        order = "<" if sample.arch in {"amd64", "aarch64"} else ">"
        pieces = [(source, piece) for source in sources(sample.path) for piece in source.pieces()]
        for source, piece in pieces:
            section = piece.section
            data = bytes(source.data[piece.position : piece.position + section.length])
            expected = walked(data, order)
            expected.other = len(data) - expected.total
            assert parts_of(section) == expected, sample.path
        seen += len(pieces)
    assert seen > 300


@pytest.mark.peers
def test_the_text_is_what_readelf_calls_executable() -> None:
    for sample in corpus():
        if sample.path.name not in {"program.so", "program-dynamic", "program-r.o"}:
            continue
        told = subprocess.run(
            [peer("readelf-new"), "-SW", sample.path], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.partition("]")[2].split() for line in told.splitlines() if line.lstrip().startswith("[")]
        real = sum(int(row[4], 16) for row in rows if len(row) > 9 and "X" in row[6] and row[1] != "NOBITS")
        assert measure(sample.path).text_bytes == real > 0


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.skipif(not LIBC.exists(), reason=f"no {LIBC}")
def test_shared_rows_are_those_that_bytes_tell(version: int) -> None:
    with ElfFile(LIBC) as elf:
        made = derive(elf, version=version, address=0x10000000)
    functions, data = made.section.functions, made.contents
    begin = made.section.fre_start
    offsets = [*functions.fre_offset.tolist(), made.section.fre_len]
    size, seen = len(data), set()
    for index, (start, end) in enumerate(pairwise(offsets)):
        key = (data[begin + start : begin + end], int(functions.info[index]) & 15, int(functions.num_fres[index]))
        if key in seen:
            size -= end - start
        seen.add(key)
    assert measure(LIBC).versions[version].what_if["shared_rows"] == size
