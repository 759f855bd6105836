"""Notes and build IDs, against the specification, `readelf -n`, pyelftools and LIEF."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from elf.notes import note
from elf.realfiles import FILES
from elfbuilder import ElfBuilder
from peers import peer
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError
from walkback.elf import ElfFile, layout

ORDERS = pytest.mark.parametrize("order", ["little", "big"])
GNU = b"GNU\0"


def parse(*contents: bytes, order: ByteOrder = "little", align: int = 4, segments: bool = False) -> ElfFile:
    builder = ElfBuilder(order, kind=3)
    for number, data in enumerate(contents):
        builder.section(f".note.{number}", data, kind=1 if segments else 7, addralign=align)
        if segments:
            builder.segment(4, f".note.{number}")
    image = builder.build()
    for number in range(len(contents) * segments):
        image.segment(number, "p_align", align)
    return ElfFile(bytes(image), "test.elf")


def told(elf: ElfFile) -> list[tuple[str, int, bytes]]:
    return [(found.name, found.type, bytes(found.desc)) for found in elf.notes()]


class TestNotes:
    @ORDERS
    @pytest.mark.parametrize("align", [0, 1, 4, 8])
    @pytest.mark.parametrize("segments", [False, True])
    def test_names_and_contents_are_aligned_to_4_or_8(self, order: ByteOrder, align: int, segments: bool) -> None:
        ours = [(b"GNU\0", 3, b"12345"), (b"stapsdt\0", 3, b""), (b"", 7, b"123"), (b"Go\0", 4, b"12345678")]
        data = b"".join(note(*each, order=order, align=max(align, 4)) for each in ours)
        elf = parse(data, order=order, align=align, segments=segments)
        assert told(elf) == [(name.rstrip(b"\0").decode(), kind, desc) for name, kind, desc in ours]
        offsets = [found.offset for found in elf.notes()]
        assert offsets[0] == (int(elf.segments["offset"][0]) if segments else int(elf.sections["offset"][1]))
        assert offsets == sorted(offsets)

    def test_the_last_one_needs_no_padding(self) -> None:
        assert told(parse(note(GNU, 5, b"12345")[:-3])) == [("GNU", 5, b"12345")]

    def test_padding_at_the_end_is_no_note(self) -> None:
        assert told(parse(note(GNU, 5, b"1234") + bytes(8))) == [("GNU", 5, b"1234")]

    def test_sections_go_before_segments(self) -> None:
        builder = ElfBuilder(kind=3)
        builder.section(".note", note(GNU, 3, b"section"), kind=7)
        builder.section(".other", note(GNU, 3, b"segment"))
        builder.segment(4, ".other")
        assert ElfFile(bytes(builder.build()), "test.elf").build_id == b"section"

    def test_a_file_without_notes_has_none(self) -> None:
        assert told(parse()) == []
        assert parse().build_id is None


class TestBuildId:
    @ORDERS
    @pytest.mark.parametrize("segments", [False, True])
    def test_it_is_the_first_note_of_its_type_and_owner(self, order: ByteOrder, segments: bool) -> None:
        data = b"".join(
            note(name, kind, desc, order=order)
            for name, kind, desc in [(GNU, 1, b"abi"), (b"Go\0", 3, b"go"), (GNU, 3, b"id"), (GNU, 3, b"other")]
        )
        assert parse(b"", data, order=order, segments=segments).build_id == b"id"

    def test_damage_behind_it_is_not_looked_at(self) -> None:
        assert parse(note(GNU, 3, b"id") + b"\xff" * 20).build_id == b"id"


class TestDamage:
    @pytest.mark.parametrize("sizes", [(4, 2**32 - 1), (2**32 - 1, 4), (2**32 - 1, 2**32 - 1), (4, 9)])
    @pytest.mark.parametrize("segments", [False, True])
    def test_sizes_beyond_the_section_are_an_error_at_the_note(self, sizes: tuple[int, int], segments: bool) -> None:
        elf = parse(note(GNU, 1, b"fine") + note(GNU, 3, b"12345678", sizes=sizes), segments=segments)
        with pytest.raises(ElfError, match="a note reaches beyond the end") as caught:
            list(elf.notes())
        first = next(elf.notes())
        assert (first.name, caught.value.offset) == ("GNU", first.offset + 20)
        with pytest.raises(ElfError, match=r"^test\.elf: offset 0x"):
            _ = elf.build_id

    def test_every_truncation_is_an_error_or_loses_padding_only(self) -> None:
        whole = note(GNU, 1, b"1234567") + note(GNU, 3, b"12345678")
        for length in range(len(whole) + 1):
            elf = parse(whole[:length])
            if length in {0, 23, 24, len(whole)}:
                assert len(told(elf)) == (length > 0) + (length == len(whole))
            else:
                with pytest.raises(ElfError, match="note"):
                    told(elf)

    def test_names_that_are_not_text_are_escaped(self) -> None:
        assert told(parse(note(b"\xff\0\0\0", 1, b"")))[0][0] == "\\xff\0\0"


@FILES
def test_notes_are_those_of_pyelftools(path: Path) -> None:
    elffile = pytest.importorskip("elftools.elf.elffile")
    with path.open("rb") as file, ElfFile(path) as elf:
        expected = [
            (found["n_name"], found["n_offset"], found["n_descdata"])
            for section in elffile.ELFFile(file).iter_sections("SHT_NOTE")
            for found in section.iter_notes()
        ]
        assert [(found.name, found.offset, bytes(found.desc)) for found in elf.notes()] == expected


@FILES
def test_notes_in_segments_are_those_of_lief(path: Path) -> None:
    lief = pytest.importorskip("lief")
    contents = bytearray(path.read_bytes())
    with ElfFile(path) as elf:
        sections = elf.build_id
        if elf.is_relocatable or not len(elf.segments):
            return
    contents[0x28:0x30] = bytes(8)  # e_shoff
    contents[0x3C:0x40] = bytes(4)  # e_shnum and e_shstrndx
    elf = ElfFile(bytes(contents), "test.elf")
    assert len(elf.sections) == 0
    assert elf.build_id == sections
    theirs = lief.ELF.parse(list(contents))
    # LIEF leaves the NUL at names that it does not know.
    expected = {(found.name.rstrip("\0"), bytes(found.description)) for found in theirs.notes}
    assert expected <= {(found.name, bytes(found.desc)) for found in elf.notes()}


@pytest.mark.peers
@FILES
def test_build_ids_are_those_of_readelf(path: Path) -> None:
    done = subprocess.run(
        [peer("readelf-new"), "-n", path], capture_output=True, check=True, env=os.environ | {"LC_ALL": "C"}
    )
    found = re.search(rb"Build ID: ([0-9a-f]+)", done.stdout)
    with ElfFile(path) as elf:
        assert elf.build_id == (bytes.fromhex(found[1].decode()) if found else None)


def test_the_type_is_that_of_the_specification() -> None:
    assert (layout.NT_GNU_BUILD_ID, layout.SHT_NOTE, layout.PT_NOTE) == (3, 7, 4)
