from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elfbuilder import ElfBuilder, Image
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import ElfFile, is_elf, layout, read_file

ORDERS = pytest.mark.parametrize("order", ["little", "big"])
EXTENDED = pytest.mark.parametrize("extended", [False, True])


def parse(image: Image) -> ElfFile:
    return ElfFile(bytes(image), "test.elf")


def example(order: ByteOrder = "little", *, extended: bool = False) -> ElfBuilder:
    builder = ElfBuilder(order, 183, 2, entry=0x401000, flags=0x12345678, extended=extended)
    builder.section(".text", b"\x90" * 40, flags=6, addr=0x401000, addralign=16)
    builder.section(".bss", kind=8, size=0x4000, flags=3, addr=0x500000)
    builder.section(".sframe", b"\xde\xe2\x03", kind=layout.SHT_GNU_SFRAME, flags=2, addr=0x402000)
    symtab = builder.symtab()
    builder.symbol(symtab, "main", 0x401000, section=1, size=40)
    builder.symbol(symtab, "limit", 5, section=layout.SHN_ABS, kind=1, binding=0)
    builder.symbol(symtab, "wanted", 0)
    builder.segment(1, ".text", flags=5, vaddr=0x401000)
    builder.segment(layout.PT_GNU_SFRAME, ".sframe", vaddr=0x402000)
    return builder


class TestHeader:
    @ORDERS
    def test_header_fields_come_from_either_byte_order(self, order: ByteOrder) -> None:
        elf = parse(example(order).build())
        assert (elf.byteorder, elf.machine, elf.type) == (order, 183, layout.ET_EXEC)
        assert (elf.entry, elf.flags, elf.is_relocatable) == (0x401000, 0x12345678, False)

    def test_an_object_file_is_relocatable(self) -> None:
        assert parse(ElfBuilder(kind=layout.ET_REL).build()).is_relocatable

    def test_is_elf_looks_at_the_magic(self) -> None:
        assert is_elf(b"\x7fELF")
        assert not is_elf(b"\x7fEL")
        assert not is_elf(b"")
        assert is_elf(memoryview(b"\x7fELF\x02"))

    def test_other_bytes_are_not_an_elf_file(self) -> None:
        with pytest.raises(UnreadableError, match=r"^name: this is not an ELF file$"):
            ElfFile(b"#!/bin/sh\n", "name")

    def test_32_bit_files_are_refused(self) -> None:
        data = b"\x7fELF\x01\x01\x01" + bytes(45)
        with pytest.raises(UnreadableError, match="32-bit ELF files are not supported") as caught:
            ElfFile(data, "name")
        assert not isinstance(caught.value, ElfError)

    @pytest.mark.parametrize(("place", "text"), [(4, "ELF class 7"), (5, "data encoding 7")])
    def test_unknown_class_and_encoding_are_errors_at_their_offset(self, place: int, text: str) -> None:
        data = example().build().data
        data[place] = 7
        with pytest.raises(ElfError, match=text) as caught:
            ElfFile(data, "name")
        assert caught.value.offset == place

    @pytest.mark.parametrize("length", [4, 5, 6, 16, 63])
    def test_a_cut_header_is_an_error(self, length: int) -> None:
        with pytest.raises(ElfError, match="ends within its ELF header"):
            ElfFile(bytes(example().build())[:length], "name")


class TestOpening:
    def test_a_mapped_file_is_read_only_and_closes_while_views_live(self, tmp_path: Path) -> None:
        path = tmp_path / "a"
        path.write_bytes(bytes(example().build()))
        with ElfFile(path) as elf:
            assert elf.name == str(path)
            sections, text = elf.sections, elf.section_data(1)
            assert text.readonly
        assert bytes(text) == b"\x90" * 40
        assert sections["addr"][1] == 0x401000
        with pytest.raises(ValueError, match="closed"):
            _ = elf.data
        elf.close()

    def test_missing_files_directories_and_empty_files_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableError, match=r"/none: No such file or directory$"):
            ElfFile(tmp_path / "none")
        with pytest.raises(UnreadableError, match="directory"):
            ElfFile(tmp_path)
        (tmp_path / "empty").touch()
        with pytest.raises(UnreadableError, match="empty"):
            ElfFile(str(tmp_path / "empty"))
        with pytest.raises(UnreadableError, match="null"):
            read_file("a\0b")

    def test_a_pipe_is_refused_without_waiting(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        message = "this is a named pipe, not a regular file; redirect it to standard input, and name that: -"
        with pytest.raises(UnreadableError, match=message):
            ElfFile(tmp_path / "pipe")

    def test_import_of_the_package_does_not_import_numpy(self) -> None:
        code = "import sys, walkback; sys.exit('numpy' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestSections:
    @ORDERS
    @EXTENDED
    def test_headers_names_and_contents(self, order: ByteOrder, extended: bool) -> None:
        elf = parse(example(order, extended=extended).build())
        names = ["", ".text", ".bss", ".sframe", ".strtab", ".symtab"]
        names += [".symtab_shndx"] * extended + [".shstrtab"]
        assert elf.section_names() == names
        assert [elf.section_name(i) for i in range(len(names))] == names
        assert elf.sections.dtype.isnative
        assert elf.sections[1].item()[1:] == (1, 6, 0x401000, elf.sections["offset"][1], 40, 0, 0, 16, 0)
        assert bytes(elf.section_data(3)) == b"\xde\xe2\x03"
        assert elf.sections_of_type(layout.SHT_GNU_SFRAME) == [3]
        assert elf.sections_of_type(layout.SHT_DYNSYM) == []

    @ORDERS
    def test_sections_are_found_by_their_whole_name(self, order: ByteOrder) -> None:
        builder = ElfBuilder(order)
        for name in (".text", ".text.a", ".sframe", ".text", "text"):
            builder.section(name)
        elf = parse(builder.build())
        assert elf.sections_named(".text") == [1, 4]
        assert elf.sections_named("text") == [5]
        assert elf.sections_named(".tex") == []
        assert elf.sections_named("") == [0]
        assert elf.sections_named("x" * 5000) == []
        assert elf.sections_named(".sframe") == [3]

    def test_sections_are_found_among_many(self) -> None:
        builder = ElfBuilder()
        for number in range(300):
            builder.section(f".text.{number:03}")
        builder.section(".text.007")
        elf = parse(builder.build())
        assert elf.sections_named(".text.007") == [8, 301]
        assert elf.sections_named(".text.") == []

    def test_a_file_may_have_neither_sections_nor_segments(self) -> None:
        image = ElfBuilder().build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
        elf = parse(image)
        assert len(elf.sections) == len(elf.segments) == 0
        assert elf.section_names() == elf.sections_named(".text") == []
        with pytest.raises(ElfError, match="no section 0"):
            elf.section_data(0)

    def test_a_file_without_section_names_has_empty_ones(self) -> None:
        elf = parse(example().build().header("e_shstrndx", layout.SHN_UNDEF))
        assert elf.section_name(1) == ""
        assert set(elf.section_names()) == {""}
        assert elf.sections_named(".text") == []

    def test_nobits_has_no_contents_wherever_it_points(self) -> None:
        elf = parse(example().build().section(2, "sh_offset", 2**63))
        assert elf.section_data(2).nbytes == 0

    def test_section_zero_has_no_contents_though_its_size_counts_sections(self) -> None:
        assert parse(example(extended=True).build()).section_data(0).nbytes == 0

    @pytest.mark.parametrize(("field", "value"), [("sh_offset", 1 << 63), ("sh_size", 2**64 - 1), ("sh_size", 1 << 20)])
    def test_contents_beyond_the_end_are_an_error_at_the_header(self, field: str, value: int) -> None:
        image = example().build().section(3, field, value)
        elf = parse(image)
        with pytest.raises(ElfError, match=r"section 3 \.sframe \(.*beyond the end of the file") as caught:
            elf.section_data(3)
        assert caught.value.offset == image.labels["shdr"] + 3 * 64
        assert str(caught.value).startswith("test.elf: offset 0x")
        assert bytes(elf.section_data(1)) == b"\x90" * 40

    @pytest.mark.parametrize("number", [-1, 99, 2**32])
    def test_a_wrong_section_number_is_an_error(self, number: int) -> None:
        elf = parse(example().build())
        for question in (elf.section_data, elf.section_name, elf.symbols, elf.segment_data):
            with pytest.raises(ElfError, match=f"there is no se.* {number}"):
                question(number)

    def test_a_name_outside_its_table_harms_no_other(self) -> None:
        elf = parse(example().build().section(1, "sh_name", 0x10000))
        with pytest.raises(ElfError, match="section 6 has no string that begins at 0x10000"):
            elf.section_name(1)
        assert elf.sections_named(".sframe") == [3]
        assert bytes(elf.section_data(1)) == b"\x90" * 40

    def test_names_that_are_not_utf8_are_escaped_and_found(self) -> None:
        builder = ElfBuilder()
        builder.section("\udcff\udcfe")
        elf = parse(builder.build())
        assert elf.section_name(1) == "\\xff\\xfe"
        assert elf.sections_named("\udcff\udcfe") == [1]


class TestDamagedTables:
    @pytest.mark.parametrize(
        ("field", "value"),
        [("e_shoff", 2**64 - 8), ("e_shoff", 0), ("e_shnum", 0xFEFF), ("e_shentsize", 40), ("e_shentsize", 0)],
    )
    def test_broken_section_headers_leave_segments_usable(self, field: str, value: int) -> None:
        elf = parse(example().build().header(field, value))
        for question in (lambda: elf.sections, elf.section_names, lambda: elf.sections_named(".text")):
            with pytest.raises(ElfError):
                question()
        assert elf.segments["type"].tolist() == [1, layout.PT_GNU_SFRAME]
        assert bytes(elf.segment_data(1)) == b"\xde\xe2\x03"

    @pytest.mark.parametrize(("field", "value"), [("e_phoff", 2**63), ("e_phnum", 0x7000), ("e_phentsize", 57)])
    def test_broken_program_headers_leave_sections_usable(self, field: str, value: int) -> None:
        elf = parse(example().build().header(field, value))
        with pytest.raises(ElfError, match="program headers"):
            _ = elf.segments
        assert elf.sections_named(".sframe") == [3]

    def test_a_count_in_section_zero_is_checked(self) -> None:
        elf = parse(example(extended=True).build().section(0, "sh_size", 2**63))
        with pytest.raises(ElfError, match=f"the {2**63} section headers reach beyond"):
            _ = elf.sections
        assert len(elf.segments) == 2

    def test_a_broken_name_table_leaves_contents_usable(self) -> None:
        elf = parse(example().build().header("e_shstrndx", 60))
        with pytest.raises(ElfError, match="no section 60"):
            elf.section_names()
        assert bytes(elf.section_data(3)) == b"\xde\xe2\x03"


class TestSegments:
    @ORDERS
    @EXTENDED
    def test_program_headers_and_contents(self, order: ByteOrder, extended: bool) -> None:
        elf = parse(example(order, extended=extended).build())
        kind, flags, _, vaddr, _, filesz, memsz, _ = elf.segments[0].item()
        assert (kind, flags, vaddr, filesz, memsz) == (1, 5, 0x401000, 40, 40)
        assert bytes(elf.segment_data(1)) == b"\xde\xe2\x03"

    @pytest.mark.parametrize(("field", "value"), [("p_offset", 2**64 - 1), ("p_filesz", 2**64 - 1)])
    def test_contents_beyond_the_end_are_an_error(self, field: str, value: int) -> None:
        elf = parse(example().build().segment(1, field, value))
        with pytest.raises(ElfError, match=r"segment 1 .*beyond the end"):
            elf.segment_data(1)


class TestMemory:
    def elf(self, order: ByteOrder = "little", **patches: Any) -> ElfFile:
        """Two loaded segments, the second larger in memory than in the file, and one that is not loaded."""
        builder = ElfBuilder(order, kind=layout.ET_DYN)
        builder.section(".text", bytes(range(0x40)), flags=6, addr=0x1000)
        builder.section(".data", b"0123456789abcdef", flags=3, addr=0x3000)
        builder.segment(layout.PT_NOTE, ".data", vaddr=0x9000)
        builder.segment(layout.PT_LOAD, ".text", flags=layout.PF_R | layout.PF_X, vaddr=0x1000)
        builder.segment(layout.PT_LOAD, ".data", flags=layout.PF_R | layout.PF_W, vaddr=0x3000)
        image = builder.build().segment(2, "p_memsz", 0x1000)
        for field, value in patches.items():
            image.segment(1, field, value)
        return parse(image)

    @ORDERS
    def test_bytes_are_found_by_their_address(self, order: ByteOrder) -> None:
        elf = self.elf(order)
        assert bytes(elf.mapped_data(0x1000, 4)) == b"\0\1\2\3"
        assert bytes(elf.mapped_data(0x103F, 1)) == b"\x3f"
        assert bytes(elf.mapped_data(0x3004, 12)) == bytes(elf.mapped_data(0x3004)) == b"456789abcdef"
        assert bytes(elf.mapped_data(0x3004, 0)) == b""

    def test_they_are_not_copied(self) -> None:
        elf = self.elf()
        assert elf.mapped_data(0x1000).obj is elf.data.obj

    @pytest.mark.parametrize(
        ("address", "size"),
        [
            (0xFFF, 4), (0x1040, 1), (0x1000, 0x41), (0x1001, 0x40), (0x3010, 1), (0x300F, 2), (0x9000, 1), (0, 1),
            (-1, 1), (2**64, 1), (0x1000, 2**64), (0x5000, 0),
        ],
    )  # fmt: skip
    def test_what_is_not_in_the_file_is_an_error(self, address: int, size: int) -> None:
        with pytest.raises(ElfError, match=f"no segment of this file loads {size:#x} bytes at address {address:#x}"):
            self.elf().mapped_data(address, size)

    def test_a_segment_beyond_the_end_of_the_file_is_an_error(self) -> None:
        with pytest.raises(ElfError, match=r"segment 1 .* beyond the end"):
            self.elf(p_offset=2**63).mapped_data(0x1000, 4)

    def test_an_object_file_has_no_addresses(self) -> None:
        with pytest.raises(ElfError, match=r"no segment of this file loads address 0x0"):
            parse(ElfBuilder(kind=layout.ET_REL).build()).mapped_data(0)

    def test_executable_ranges_are_those_of_the_segments_in_memory(self) -> None:
        start, end = self.elf(p_memsz=0x800).executable_ranges()
        assert (start.tolist(), end.tolist()) == ([0x1000], [0x1800])
        start, end = self.elf(p_vaddr=2**64 - 16, p_memsz=2**64 - 1).executable_ranges()
        assert (start.tolist(), end.tolist()) == ([2**64 - 16], [2**64 - 1])
        start, end = self.elf(p_flags=layout.PF_R).executable_ranges()
        assert len(start) == len(end) == 0


class TestSymbols:
    @ORDERS
    @EXTENDED
    def test_symbols(self, order: ByteOrder, extended: bool) -> None:
        elf = parse(example(order, extended=extended).build())
        (index,) = elf.sections_named(".symtab")
        symbols = elf.symbols(index)
        strtab = int(elf.sections["link"][index])
        names = elf.strings(strtab, symbols["name_offset"].tolist())
        assert names == ["", "main", "limit", "wanted"]
        assert [elf.string(strtab, offset) for offset in symbols["name_offset"].tolist()] == names
        assert symbols["section"].tolist() == [0, 1, layout.SECTION_ABS, 0]
        assert symbols["value"].tolist() == [0, 0x401000, 5, 0]
        assert symbols["size"].tolist() == [0, 40, 0, 0]
        assert symbols["info"].tolist() == [0, 0x12, 0x01, 0x12]

    @ORDERS
    def test_a_real_section_with_a_reserved_number_is_not_mistaken(self, order: ByteOrder) -> None:
        builder = ElfBuilder(order)
        symtab = builder.symtab()
        builder.symbol(symtab, "real", 0, section=(layout.SHN_ABS,))
        builder.symbol(symtab, "absolute", 0, section=layout.SHN_ABS)
        builder.symbol(symtab, "common", 0, section=layout.SHN_COMMON)
        sections = parse(builder.build()).symbols(symtab)["section"]
        assert sections.tolist() == [0, layout.SHN_ABS, layout.SECTION_ABS, layout.SECTION_COMMON]

    def test_xindex_without_its_table_is_an_error(self) -> None:
        builder = ElfBuilder()
        symtab = builder.symtab()
        builder.symbol(symtab, "a", 0, section=layout.SHN_XINDEX)
        with pytest.raises(ElfError, match=r"section 2 \.symtab uses SHN_XINDEX without"):
            parse(builder.build()).symbols(symtab)

    def test_a_short_index_table_is_an_error(self) -> None:
        image = example(extended=True).build()
        with pytest.raises(ElfError, match=r"\.symtab_shndx is too short"):
            parse(image.section(6, "sh_size", 8)).symbols(5)

    @pytest.mark.parametrize(("field", "value"), [("sh_entsize", 16), ("sh_entsize", 0), ("sh_size", 25)])
    def test_a_table_that_is_not_of_symbols_size_is_an_error(self, field: str, value: int) -> None:
        with pytest.raises(ElfError, match=r"section 5 \.symtab has"):
            parse(example().build().section(5, field, value)).symbols(5)

    def test_only_symbol_tables_have_symbols(self) -> None:
        with pytest.raises(ElfError, match=r"section 1 \.text is not a symbol table"):
            parse(example().build()).symbols(1)

    def test_an_empty_symbol_table_is_empty(self) -> None:
        assert len(parse(example().build().section(5, "sh_size", 0)).symbols(5)) == 0


class TestStrings:
    def strtab(self, contents: bytes) -> ElfFile:
        builder = ElfBuilder()
        builder.section(".strtab", contents, kind=3)
        return parse(builder.build())

    @pytest.mark.parametrize("length", [0, 1, 126, 127, 128, 129, 511, 512, 5000])
    def test_strings_of_any_length(self, length: int) -> None:
        elf = self.strtab(b"\0" + b"x" * length + b"\0y\0")
        assert elf.string(1, 1) == "x" * length
        assert elf.strings(1, [1, length + 2, 1]) == ["x" * length, "y", "x" * length]

    @pytest.mark.parametrize("contents", [b"", b"x", b"x" * 127, b"x" * 128, b"x" * 129, b"\0" + b"x" * 600])
    def test_a_string_without_its_end_is_an_error(self, contents: bytes) -> None:
        elf = self.strtab(contents)
        for question in (lambda: elf.string(1, len(contents) and 1), lambda: elf.strings(1, [1])):
            with pytest.raises(ElfError, match=r"section 1 \.strtab has no string"):
                question()
        for repeats in (1, 1000):
            offsets = np.tile(np.array([0, 1, 2**32 - 1], np.uint32), repeats)
            assert elf.find_string(1, offsets, "x").tolist() == []

    def test_overlapping_strings_do_not_multiply(self) -> None:
        elf = self.strtab(b"x" * 20_000 + b"\0")
        with pytest.raises(ElfError, match="overlap too much"):
            elf.strings(1, range(20_000))
        assert len(elf.strings(1, range(19_900, 20_000))) == 100

    def test_find_string_ends_where_it_is_told(self) -> None:
        elf = self.strtab(b"\0foo\0foo@V1\0foobar\0")
        offsets = np.array([1, 5, 12, 12, 2], np.uint32)
        assert elf.find_string(1, offsets, "foo").tolist() == [0]
        assert elf.find_string(1, offsets, "foo", ends=b"\0@").tolist() == [0, 1]
        assert elf.find_string(1, offsets, "foobar").tolist() == [2, 3]
        assert elf.find_string(1, np.tile(offsets, 100), "oo").tolist() == list(range(4, 500, 5))
