"""Entries that are refused: each fault has its place and words, and hides nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from cfibuilder import (
    INDIRECT,
    OMIT,
    PCREL_SDATA4,
    UDATA4,
    UDATA8,
    CfiBuilder,
    cfa,
    expr,
)
from dwarf.entries import AT_START, KINDS, PUSH, places, read
from walkback.base.arch import AMD64
from walkback.base.errors import DwarfError
from walkback.dwarf.decoding import decode
from walkback.dwarf.files import frame_sources
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table
from walkback.elf import ElfFile

pytestmark = pytest.mark.kernel


def broken(name: str) -> CfiBuilder:
    """A section whose third FDE has a fault; the others are sound."""
    builder = CfiBuilder(address=0x100)
    good = builder.cie(AT_START)
    builder.fde(good, 0x1000, 16)
    builder.fde(good, 0x2000, 16, PUSH)
    encoding, program = PCREL_SDATA4, PUSH
    options: dict[str, Any] = {}
    cie: dict[str, Any] = {}
    match name:
        case "CUT_OFF":
            options = {"data_length": 200}
        case "CIE_POINTER":
            options = {"pointer": 4}
        case "CIE_FAULT":
            cie = {"version": 2}
        case "ENCODING":
            encoding = OMIT
        case "INSTRUCTION":
            program = PUSH + b"\x3f"
        case "RESTORE":
            program = PUSH + cfa("restore_state")
        case "LOCATION":
            program = cfa("advance_loc4 0xffffffff; advance_loc4 0xffffffff")
        case "INDIRECT":
            encoding |= INDIRECT
    builder.fde(builder.cie(AT_START, encoding=encoding, **cie), 0x3000, 16, program, **options)
    builder.fde(good, 0x4000, 16)
    return builder


OF_FUNCTIONS = ["CUT_OFF", "CIE_POINTER", "CIE_FAULT", "ENCODING", "INSTRUCTION", "RESTORE", "LOCATION", "INDIRECT"]


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_fault_is_told_in_one_line_with_its_place_and_rule(name: str) -> None:
    builder = broken(name)
    with pytest.raises(DwarfError) as caught:
        read(builder)
    error = caught.value
    assert error.offset == builder.assemble()[1]["fde2"]
    assert error.rule == "cfi-" + name.lower().replace("_", "-")
    words = EntryFault[name].words
    assert str(error) == f"offset {error.offset:#x}: FDE 2: {words} [{error.rule}]"
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_fault_hides_nothing_else(name: str) -> None:
    frames = read(broken(name), faults=True)
    assert frames.fdes.fault.tolist() == [0, 0, EntryFault[name], 0]
    table = to_table(frames)
    assert table.range_rows.tolist() == [1, 2, 1, 1]
    texts = [table.rule(int(row)).text(AMD64) for row in table.range_first_row]
    assert texts[2].startswith("CFA inexpressible (the rows cannot be read)")
    assert {texts[0], texts[1], texts[3]} == {"CFA = rsp+8, RA = *(CFA-8), FP unchanged"}


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        (EntryFault.CIE_VERSION, {"version": 2}),
        (EntryFault.CIE_VERSION, {"version": 5}),
        (EntryFault.CIE_VERSION, {"version": 0xFF}),
        (EntryFault.ADDRESS_SIZE, {"version": 4, "address_size": 3}),
        (EntryFault.ADDRESS_SIZE, {"version": 4, "address_size": 16}),
        (EntryFault.SEGMENT, {"version": 4, "segment_size": 2}),
        (EntryFault.ENCODING, {"augmentation": b"zPR", "data": bytes([0x0D]) + bytes(12)}),
        (EntryFault.CUT_OFF, {"data_length": 1000}),
        (EntryFault.CUT_OFF, {"data_length": 0}),
        (EntryFault.CUT_OFF, {"augmentation": b"zRLP", "data": bytes([PCREL_SDATA4])}),
    ],
)
def test_faults_of_a_cie(fault: EntryFault, options: dict[str, Any]) -> None:
    builder = CfiBuilder()
    builder.fde(builder.cie(AT_START, **options), 0x1000, 16)
    frames = read(builder, faults=True)
    assert frames.cies.fault.tolist() == [fault]
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_FAULT]
    assert frames.fdes.rows.tolist() == [0]
    with pytest.raises(DwarfError, match="its CIE cannot be read"):
        read(builder)


@pytest.mark.parametrize("program", ["restore_state", f"def_cfa_expression {expr('breg7 8')}"])
def test_a_fault_in_the_program_of_a_cie(program: str) -> None:
    builder = CfiBuilder()
    whole = cfa(program)
    builder.cie(AT_START + (whole if program == "restore_state" else whole[:-1]), padding=1)
    builder.fde(0, 0x1000, 16)
    frames = read(builder, faults=True)
    assert (frames.cies.fault[0], frames.fdes.fault[0]) in {
        (EntryFault.RESTORE, EntryFault.CIE_FAULT),
        (EntryFault.INSTRUCTION, EntryFault.CIE_FAULT),
    }


def test_every_cut_of_a_cie_is_told() -> None:
    builder = CfiBuilder()
    builder.cie(AT_START, augmentation=b"zPLR", personality=(UDATA8, 1), padding=1)
    data, labels = builder.assemble()
    for length in range(labels["cie0.version"] + 1, labels["cie0.program"]):
        cut = (length - 4).to_bytes(4, "little") + data[4:length]
        frames = decode(cut, AMD64, faults=True)
        assert frames.cies.fault.tolist() == [EntryFault.CUT_OFF], length


def test_every_cut_of_a_function_is_told() -> None:
    for wide in (False, True):
        builder = CfiBuilder(wide=wide)
        builder.fde(builder.cie(AT_START, augmentation=b"zLR", lsda=UDATA4), 0x100, 16, lsda=4, padding=1)
        data, labels = builder.assemble()
        first = labels["fde0"]
        for length in range(labels["fde0.start"], labels["fde0.program"]):
            size = (length - labels["fde0.id"]).to_bytes(8 if wide else 4, "little")
            field = labels["fde0.id"] - len(size)
            cut = data[:field] + size + data[field + len(size) : length]
            frames = decode(cut, AMD64, faults=True)
            assert frames.fdes.position.tolist() == [first]
            assert frames.fdes.fault.tolist() == [EntryFault.CUT_OFF], length


@KINDS
@pytest.mark.parametrize("length", [1, 3, 21, 1000, 0xFFFFFFEF, 0xFFFFFFF0, 0xFFFFFFFE])
def test_an_entry_that_goes_on_after_the_end_stops_the_reading(eh: bool, length: int) -> None:
    builder = CfiBuilder(eh=eh, address=0x100)
    builder.fde(builder.cie(AT_START), 0x1000, 16)
    place = builder.assemble()[1]["end"]
    data = builder.bytes() + length.to_bytes(4, "little") + bytes(20)
    with pytest.raises(DwarfError) as caught:
        decode(data, AMD64, eh=eh, address=0x100)
    assert (caught.value.offset, caught.value.rule) == (place, "cfi-length")
    frames = decode(data, AMD64, eh=eh, address=0x100, faults=True)
    assert (frames.stop, places(frames)) == (place, [(0x1000, 16)])


@pytest.mark.parametrize("length", [21, 2**32, 2**63, 2**64 - 1])
def test_a_wide_length_beyond_the_end(length: int) -> None:
    data = b"\xff\xff\xff\xff" + length.to_bytes(8, "little") + bytes(20)
    assert decode(data, AMD64, faults=True).stop == 0


@pytest.mark.parametrize("tail", [1, 2, 3])
def test_bytes_after_the_last_entry(tail: int) -> None:
    builder = CfiBuilder(address=0x100)
    builder.fde(builder.cie(AT_START), 0x1000, 16)
    assert decode(builder.bytes() + bytes(tail), AMD64, address=0x100, faults=True).stop == len(builder.bytes())


@KINDS
@pytest.mark.parametrize("pointer", [1, 4, 0x18, 0x7FFFFFFF, 0xFFFFFFF0])
def test_a_pointer_to_no_cie(eh: bool, pointer: int) -> None:
    builder = CfiBuilder(eh=eh)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16, identifier=pointer)
    builder.fde(0, 0x1000, 16)
    assert read(builder, faults=True).fdes.fault.tolist() == [EntryFault.CIE_POINTER, 0]


def test_a_function_is_no_cie() -> None:
    builder = CfiBuilder(eh=False)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16)
    builder.fde(0, 0x1000, 16, pointer=builder.assemble()[1]["fde0"])
    assert read(builder, faults=True).fdes.fault.tolist() == [0, EntryFault.CIE_POINTER]


def test_functions_without_any_cie() -> None:
    builder = CfiBuilder(eh=False)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16, pointer=0)
    builder.entries.pop(0)
    frames = read(builder, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_POINTER]
    assert len(to_table(frames)) == 1


def test_a_number_of_more_than_64_bits_is_cut_off() -> None:
    builder = CfiBuilder()
    builder.cie(AT_START)
    for operand in (b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x01"):
        builder.fde(0, 0x1000, 16, b"\x0e" + operand)
    builder.fde(0, 0x1000, 16, b"\x0e" + b"\x90" + b"\x80" * 12 + b"\0")  # as long, and small
    frames = read(builder, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.INSTRUCTION, EntryFault.INSTRUCTION, EntryFault.NONE]
    table = to_table(frames)
    assert table.rule(int(table.range_first_row[2])).cfa.offset == 16


FREE_PASCAL = """
 .text
f: push %rbx
 pop %rbx
 ret
 .section .debug_frame,"",@progbits
0: .long 2f - 1f
1: .long -1
 .byte 1, 0, 1, 0x7c, 16, 0xc, 7, 8
 .balign 8
2: .long 4f - 3f
3: .quad 0b
 .quad f
 .quad 3
4:
"""
"""A pointer to the CIE has 4 bytes, and here 8: what stands behind it is no start, and no size."""


def test_a_size_is_none_where_the_start_is_none(tmp_path: Path) -> None:
    subprocess.run(["as", "-o", tmp_path / "f.o", "-"], input=FREE_PASCAL.encode(), check=True)
    [source] = frame_sources(ElfFile(tmp_path / "f.o"))
    assert source.frames.fdes.fault.tolist() == [EntryFault.RELOCATION]
    assert source.frames.fdes.size.tolist() == [0]
