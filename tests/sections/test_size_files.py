"""What sizes are told of objects, archives and several files, and of files that lack something."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from cfibuilder import CfiBuilder, cfa
from corpus import corpus
from elfbuilder import ElfBuilder
from sframebuilder import SFrameBuilder
from sframefiles import archive, small, written
from sized import FRAMES, START, TEXT, a_program
from walkback.base.errors import MissingError, UnreadableError
from walkback.elf import ElfFile, elf_files, read_file
from walkback.sections.size import size as measure
from walkback.sections.size import total_size


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return written(tmp_path, a_program(), "program")


def test_relocatable_files_have_a_section_for_each_text_section(tmp_path: Path) -> None:
    source = tmp_path / "parts.c"
    source.write_text("int a(void){return 1;} int b(void){return 2;} int c(void){return 3;}")
    command = ["gcc", "-c", "-O1", "-ffunction-sections", "-fasynchronous-unwind-tables"]
    subprocess.run([*command, "-o", tmp_path / "parts.o", source], check=True)
    sizes = measure(tmp_path / "parts.o")
    found = sizes.versions[3]
    assert found.entries == 3
    assert found.what_if["section_per_text"] == found.parts.total + 2 * (28 + 64)
    assert found.what_if["section_per_text"] == found.what_if["section_per_function"]
    assert sizes.replacement.added_rows == 0


def test_an_archive_is_the_sum_of_its_members(tmp_path: Path) -> None:
    one = written(tmp_path, a_program(), "one.o")
    two = written(tmp_path, a_program(), "two.o")
    bare = written(tmp_path, ElfBuilder(kind=1), "bare.o")
    path = archive(tmp_path, "all.a", one, two, bare)
    path = tmp_path / "all.a" if path is None else path
    sizes, alone = measure(path), measure(one)
    assert (sizes.files, sizes.members, sizes.without) == (1, 3, 1)
    assert sizes.file_bytes == sum(len(elf.data) for elf in elf_files(read_file(path), "all.a"))
    assert sizes.eh_frame == 2 * alone.eh_frame
    for version in (1, 2, 3):
        double, single = sizes.versions[version], alone.versions[version]
        assert (double.files, double.parts.total) == (2, 2 * single.parts.total)
        assert double.what_if == {name: 2 * size for name, size in single.what_if.items()}
    assert sizes.replacement.register_bytes == 2 * alone.replacement.register_bytes


def test_totals_add_everything_up(program: Path) -> None:
    one = measure(program)
    both = total_size([one, one])
    assert (both.file, both.files, both.members) == ("total", 2, 2)
    assert both.versions[3].parts.total == 2 * one.versions[3].parts.total
    assert one == measure(program)
    nothing = total_size([])
    assert (nothing.files, nothing.versions, nothing.sframe) == (0, {}, None)


def test_a_file_with_sframe_alone_has_no_versions(tmp_path: Path) -> None:
    elf = ElfBuilder(kind=2)
    elf.code(".text", 0x100, TEXT)
    builder = small()
    elf.section(".sframe", builder.bytes(), kind=0x6FFFFFF4, flags=2, addr=0x3000)
    sizes = measure(written(tmp_path, elf, "program"))
    assert sizes.versions == {}
    assert sizes.replacement is None
    assert sizes.sframe.versions == (3,)
    assert sizes.sframe.parts.total == len(builder.bytes())
    assert (sizes.sframe.functions, sizes.sframe.rows) == (len(builder.functions), sizes.sframe.parts.info)


def test_pieces_of_several_versions_are_one_sum(tmp_path: Path) -> None:
    elf = ElfBuilder(kind=2)
    data = SFrameBuilder.bytes(small(3)), SFrameBuilder.bytes(small(2))
    padded = data[0] + bytes(-len(data[0]) % 8) + data[1]
    elf.section(".sframe", padded, kind=0x6FFFFFF4, flags=2, addr=0x3000)
    sizes = measure(written(tmp_path, elf, "program"))
    assert sizes.sframe.versions == (2, 3)
    assert sizes.sframe.parts.total == len(padded)
    assert sizes.sframe.parts.other == -len(data[0]) % 8
    assert sizes.sframe.parts.header == 56


def test_debug_frame_is_the_source_where_there_is_nothing_else(tmp_path: Path) -> None:
    frames = CfiBuilder(eh=False)
    frames.fde(frames.cie(cfa(START)), TEXT, 32, cfa("advance_loc 1; def_cfa_offset 16"))
    elf = ElfBuilder(kind=2)
    elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".debug_frame", frames.bytes())
    sizes = measure(written(tmp_path, elf, "program"))
    assert (sizes.debug_frame, sizes.call_frames) == (len(frames.bytes()), 0)
    assert sizes.versions[3].parts.total == 28 + 16 + 5 + 2 * 3


def test_ratios_are_over_files_that_have_both(tmp_path: Path) -> None:
    frames = CfiBuilder(eh=False)
    frames.fde(frames.cie(cfa(START)), TEXT, 32, cfa("advance_loc 1; def_cfa_offset 16"))
    elf = ElfBuilder(kind=2)
    elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".debug_frame", frames.bytes())
    with_both = measure(written(tmp_path, a_program(), "program"))
    both = total_size([with_both, measure(written(tmp_path, elf, "debug"))])
    assert both.versions[3].parts.total > with_both.versions[3].parts.total
    assert both.compared == with_both.compared
    assert both.compared[3].bytes == with_both.versions[3].parts.total


@pytest.mark.peers
def test_version_1_has_no_s390x() -> None:
    path = next(one.path for one in corpus() if one.arch == "s390x" and one.path.name == "program.so")
    sizes = measure(path)
    assert sorted(sizes.versions) == [2, 3]
    assert sizes.impossible == {1: "version 1 does not know s390x"}
    both = total_size([sizes, sizes])
    assert both.versions[2].files == 2
    assert both.impossible == sizes.impossible


def test_files_without_section_headers_are_measured_by_their_segments(program: Path, tmp_path: Path) -> None:
    frames = ElfFile(program).section_data(2)
    header = bytes([1, 0x1B, 0xFF, 0xFF]) + struct.pack("<i", FRAMES - (FRAMES + 0x804)) + bytes(4)
    elf = ElfBuilder(kind=2)
    elf.code(".text", 0x100, TEXT)
    elf.segment(1, ".text", flags=5, vaddr=TEXT)
    elf.section(".eh_frame", bytes(frames) + bytes(4), flags=2, addr=FRAMES)
    elf.segment(1, ".eh_frame", vaddr=FRAMES)
    elf.section(".eh_frame_hdr", header, flags=2, addr=FRAMES + 0x800)
    elf.segment(0x6474E550, ".eh_frame_hdr", vaddr=FRAMES + 0x800)
    image = elf.build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
    path = tmp_path / "bare"
    path.write_bytes(bytes(image))
    sizes = measure(path)
    assert (sizes.eh_frame, sizes.eh_frame_hdr, sizes.text_bytes) == (len(frames) + 4, len(header), 0x100)
    assert sizes.versions[3].parts.total == 134


def test_what_has_nothing_to_measure_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"bare.o: there is no \.eh_frame, \.debug_frame or \.sframe section"):
        measure(written(tmp_path, ElfBuilder(kind=1), "bare.o"))
    text = tmp_path / "text"
    text.write_text("nothing")
    with pytest.raises(UnreadableError, match="this is not an ELF file, archive or package"):
        measure(text)
