"""Where sections are found: ELF files, archives and raw bytes; and how functions get their places."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from elfbuilder import ElfBuilder
from sframefiles import (
    GNU_SFRAME,
    PC64,
    SFRAME,
    SIZE,
    TEXT,
    archive,
    linked,
    placing,
    relocatable,
    small,
    starts,
    written,
)
from walkback import MissingError, SFrameError, UnreadableError
from walkback.base.arch import ByteOrder
from walkback.elf.file import ElfFile
from walkback.sections.check import check_source
from walkback.sframe.files import from_bytes, read

if TYPE_CHECKING:
    from pathlib import Path


# ELF files


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_section_is_found_by_its_name(tmp_path: Path, version: int) -> None:
    path = written(tmp_path, linked(small(version).bytes(), kind=1))
    (source,) = read(path)
    assert (source.file, source.name, source.address) == (str(path), ".sframe", SFRAME)
    assert starts(path) == [TEXT, TEXT + SIZE, TEXT + 2 * SIZE]


def test_a_section_is_found_by_its_type_whatever_its_name(tmp_path: Path) -> None:
    elf = linked(small().bytes())
    elf.sections[2].name = ".other"
    for segment in elf.segments:
        segment["section"] = str(segment["section"]).replace(".sframe", ".other")
    (source,) = read(written(tmp_path, elf))
    assert source.name == ".other"
    assert len(list(source.pieces())) == 1


def test_a_section_is_found_by_its_segment_when_section_headers_are_gone(tmp_path: Path) -> None:
    data = small().bytes()
    image = linked(data).build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
    (source,) = read(written(tmp_path, image))
    assert (source.name, source.address, bytes(source.data)) == ("PT_GNU_SFRAME", SFRAME, data)
    assert source.index is source.file_offset is None


def test_the_segment_that_is_larger_than_its_section_is_cut_to_what_the_header_says(tmp_path: Path) -> None:
    data = small().bytes()
    image = linked(data + b"another section").build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
    (source,) = read(written(tmp_path, image))
    assert bytes(source.data) == data


def test_several_sections_in_one_file_are_all_found_and_one_can_be_chosen(tmp_path: Path) -> None:
    elf = linked(small().bytes())
    elf.section(".sframe.cold", small(2, 1).bytes(), kind=GNU_SFRAME, flags=2, addr=SFRAME)
    path = written(tmp_path, elf)
    assert [source.name for source in read(path)] == [".sframe", ".sframe.cold"]
    (source,) = read(path, section=".sframe.cold")
    assert [piece.section.version for piece in source.pieces()] == [2]
    with pytest.raises(MissingError, match=r"there is no \.cold section"):
        list(read(path, section=".cold"))


def test_what_stands_in_any_section_is_read_if_it_is_named(tmp_path: Path) -> None:
    elf = linked(small().bytes(), kind=1)
    elf.sections[2].name = ".mine"
    elf.segments = elf.segments[:1]
    path = written(tmp_path, elf)
    with pytest.raises(MissingError):
        list(read(path))
    assert len(list(read(path, section=".mine"))) == 1


def test_an_empty_section_is_a_source_without_pieces(tmp_path: Path) -> None:
    (source,) = read(written(tmp_path, linked(b"")))
    assert list(source.pieces()) == []


def test_a_compressed_section_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes(), flags=0x802))
    with pytest.raises(UnreadableError, match="compressed"):
        list(read(path))


def test_a_section_without_contents_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, linked(b"", kind=8))
    with pytest.raises(MissingError, match=r"no contents in this file \(SHT_NOBITS\)"):
        list(read(path))


def test_several_sections_in_one_are_all_read_with_zeros_between_them(tmp_path: Path) -> None:
    one = small(3, 2).bytes()
    assert len(one) % 8
    second = len(one) + -len(one) % 8
    whole = one + bytes(second - len(one)) + small(3, 1, address=SFRAME + second).bytes()
    path = written(tmp_path, linked(whole))
    (source,) = read(path)
    pieces = list(source.pieces())
    assert [piece.position for piece in pieces] == [0, second]
    assert [len(piece.section.functions) for piece in pieces] == [2, 1]
    assert [piece.section.address for piece in pieces] == [SFRAME, SFRAME + second]
    assert starts(path) == [TEXT, TEXT + SIZE, TEXT]


def test_an_error_in_a_later_piece_tells_its_offset_in_the_section(tmp_path: Path) -> None:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    path = written(tmp_path, linked(first + small(num_fdes=200).bytes()))
    (source,) = read(path)
    with pytest.raises(SFrameError) as told:
        list(source.pieces())
    assert told.value.offset == len(first) + 8


# Relocatable files


@pytest.mark.parametrize("version", [1, 2, 3])
def test_relocations_place_the_functions_of_an_object(tmp_path: Path, version: int) -> None:
    path = written(tmp_path, relocatable(small(version), placing(version)))
    (source,) = read(path)
    (piece,) = source.pieces()
    assert piece.section.code_address.tolist() == [0, SIZE, 2 * SIZE]
    assert piece.section.code_section.tolist() == [1, 1, 1]
    assert source.function_names(piece.section) == ["f0", "f1", "f2"]
    assert check_source(source).findings == []


def test_a_relocation_against_a_function_counts_from_it(tmp_path: Path) -> None:
    entries = [(0x1C + 16 * number, PC64, f"f{2 - number}", 0) for number in range(3)]
    assert starts(written(tmp_path, relocatable(small(), entries))) == [2 * SIZE, SIZE, 0]


def test_a_relocation_without_addend_adds_to_the_field(tmp_path: Path) -> None:
    builder = small()
    for number, function in enumerate(builder.functions):
        function.raw = 2 * number
    path = written(tmp_path, relocatable(builder, placing(3), addends=False))
    assert starts(path) == [0, 2, 4]


def test_a_relocation_elsewhere_is_told_and_not_applied(tmp_path: Path) -> None:
    entries = [*placing(3), (8, PC64, "f1", 0), (0x20, PC64, "f1", 0)]
    path = written(tmp_path, relocatable(small(), entries))
    (source,) = read(path)
    (piece,) = source.pieces()
    assert piece.section.code_address.tolist() == [0, SIZE, 2 * SIZE]
    assert [stray.offset for stray in source.strays] == [8, 0x20]


def test_reading_the_pieces_again_tells_no_stray_twice(tmp_path: Path) -> None:
    path = written(tmp_path, relocatable(small(), [*placing(3), (8, PC64, "f1", 0)]))
    (source,) = read(path)
    list(source.pieces())
    list(source.pieces())
    assert len(source.strays) == 1


def test_a_section_without_functions_may_have_relocations(tmp_path: Path) -> None:
    path = written(tmp_path, relocatable(small(num_fdes=0), placing(3)))
    (source,) = read(path)
    assert [len(piece.section.functions) for piece in source.pieces()] == [0]


def test_functions_of_several_text_sections_keep_theirs(tmp_path: Path) -> None:
    elf = relocatable(small(functions=2), placing(3, 1))
    other = elf.code(".text.other", 0x40)
    table = next(iter(elf.symbol_tables))
    symbol = elf.symbol(table, "", 0, section=other, kind=3, binding=0)
    (relocations,) = (s for s in elf.sections if s.name == ".rela.sframe")
    relocations.data += struct.pack("<QQq", 0x2C, symbol << 32 | PC64, 16)
    (source,) = read(written(tmp_path, elf))
    (piece,) = source.pieces()
    assert piece.section.code_section.tolist() == [1, other]
    assert piece.table.find(16, section=other).range == 1
    assert piece.table.find(16, section=1).range == 0
    assert piece.table.find(16 + SIZE, section=other) is None


# Archives


def test_every_member_with_a_section_is_a_source(tmp_path: Path) -> None:
    one = written(tmp_path, relocatable(small(), placing(3)), "one.o")
    none = written(tmp_path, ElfBuilder(), "none.o")
    text = written(tmp_path, b"some text\n", "text")
    two = written(tmp_path, relocatable(small(2), placing(2)), "two.o")
    path = archive(tmp_path, "all.a", one, none, text, two)
    assert [source.file for source in read(path)] == [f"{path}(one.o)", f"{path}(two.o)"]


def test_an_archive_without_any_section_says_so(tmp_path: Path) -> None:
    path = archive(tmp_path, "none.a", written(tmp_path, ElfBuilder(), "none.o"))
    with pytest.raises(MissingError, match=r"none\.a: there is no \.sframe section"):
        list(read(path))


def test_a_member_that_cannot_be_read_does_not_hide_those_behind_it(tmp_path: Path) -> None:
    good = relocatable(small(), placing(3))
    bad = good.build()
    bad.data[4] = 1
    members = [written(tmp_path, good, "one.o"), written(tmp_path, bad, "bad.o"), written(tmp_path, good, "two.o")]
    path = archive(tmp_path, "all.a", *members)
    names: list[Any] = []
    # It is told at the end, when the others have been given.
    with pytest.raises(UnreadableError, match=r"all\.a\(bad\.o\): 32-bit"):
        names.extend(source.file for source in read(path))
    assert names == [f"{path}(one.o)", f"{path}(two.o)"]


# Raw bytes, and what is none of all


@pytest.mark.parametrize("order", ["little", "big"])
def test_raw_bytes_are_read_from_a_file_with_their_address(tmp_path: Path, order: ByteOrder) -> None:
    abi = {"little": 2, "big": 1}[order]
    path = written(tmp_path, small(order=order, abi=abi, fixed_ra=0).bytes())
    (source,) = read(path, address=SFRAME)
    assert (source.name, source.elf) == ("", None)
    assert [int(a) for a in next(source.pieces()).section.code_address] == [TEXT, TEXT + SIZE, TEXT + 2 * SIZE]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_raw_bytes_are_read_from_any_buffer(kind: type) -> None:
    source = from_bytes(kind(small().bytes()), address=SFRAME, name="mine")
    (piece,) = source.pieces()
    assert piece.section.code_address[0] == TEXT
    assert source.file == "mine"
    with pytest.raises(SFrameError, match=r"mine: .*too few"):
        list(from_bytes(kind(b"\xe2\xde"), name="mine").pieces())


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "the file is empty"), (b"hello\n", "not an ELF file"), (b"\xe2", "not an ELF file")]
)
def test_what_is_no_section_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        list(read(written(tmp_path, content)))


def test_addresses_at_the_end_of_the_address_space_do_not_overflow(tmp_path: Path) -> None:
    data = small(address=2**64 - 0x1000).bytes()
    (piece,) = from_bytes(data, address=2**64 - 0x1000).pieces()
    assert piece.section.code_address[0] == TEXT
    found = piece.table.find_many(np.array([TEXT, TEXT + 3 * SIZE - 1, TEXT + 3 * SIZE], np.uint64))
    assert found[0].tolist() == [0, 2, -1]


def test_an_input_may_be_a_path_bytes_or_an_open_file(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()))
    names = [source.file for given in (path, str(path), path.read_bytes(), ElfFile(path)) for source in read(given)]
    assert names == [str(path), str(path), "<bytes>", str(path)]


def test_a_consumer_that_there_is_not(tmp_path: Path) -> None:
    (source,) = read(written(tmp_path, linked(small().bytes())))
    with pytest.raises(ValueError, match="there is no consumer 'bsd'"):
        check_source(source, consumer="bsd")
