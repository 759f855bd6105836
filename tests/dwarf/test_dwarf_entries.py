"""CIEs and FDEs: their layouts in both kinds of sections, in any order."""

from __future__ import annotations

import pytest

from cfibuilder import (
    CfiBuilder,
    cfa,
)
from dwarf.entries import AT_START, BOTH, KINDS, PUSH, places, read
from walkback.base.arch import AARCH64, AMD64, ByteOrder
from walkback.dwarf.decoding import decode
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table

pytestmark = pytest.mark.kernel


@KINDS
@BOTH
@pytest.mark.parametrize("wide", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("version", [1, 3, 4])
def test_both_kinds_lengths_and_all_versions(eh: bool, order: ByteOrder, wide: bool, version: int) -> None:
    builder = CfiBuilder(eh=eh, order=order, wide=wide, address=0x7000)
    cie = builder.cie(AT_START, version=version, code_align=2, data_align=-4, ra=16)
    builder.fde(cie, 0x1234, 0x56, PUSH)
    frames = read(builder)
    labels = builder.assemble()[1]
    cies, fdes = frames.cies, frames.fdes
    assert (cies.version.tolist(), cies.code_align.tolist(), cies.data_align.tolist()) == ([version], [2], [-4])
    assert (cies.ra_column.tolist(), cies.address_size.tolist()) == ([16], [8])
    assert cies.program.tolist() == [labels["cie0.program"]]
    assert (cies.position.tolist(), cies.end.tolist()) == ([0], [labels["fde0"]])
    assert (fdes.position.tolist(), fdes.end.tolist()) == ([labels["fde0"]], [labels["end"]])
    assert fdes.start_field.tolist() == [labels["fde0.start"]]
    assert fdes.program.tolist() == [labels["fde0.program"]]
    assert places(frames) == [(0x1234, 0x56)]
    assert frames.row_offset.tolist() == [0, 2]
    assert (frames.eh, frames.byteorder, frames.stop) == (eh, order, None)


def test_the_return_column_of_version_1_is_a_byte_and_of_others_leb128() -> None:
    for version, ra in ((1, 0xF0), (3, 0x1234), (4, 0x1234)):
        builder = CfiBuilder()
        builder.cie(version=version, ra=ra)
        assert read(builder).cies.ra_column.tolist() == [ra]


def test_lengths_of_both_sizes_stand_in_one_section() -> None:
    for eh in (True, False):
        builder = CfiBuilder(eh=eh, address=0x100)
        wide = builder.cie(AT_START, wide=True)
        narrow = builder.cie(AT_START)
        builder.fde(wide, 0x1000, 16, wide=True)
        builder.fde(narrow, 0x2000, 16)
        if eh:
            builder.fde(narrow, 0x3000, 16, wide=True)
        assert read(builder).fdes.cie.tolist() == [0, 1, 1][: 2 + eh]


@KINDS
def test_several_cies_each_with_its_functions(eh: bool) -> None:
    builder = CfiBuilder(eh=eh, address=0x100)
    first = builder.cie(AT_START)
    builder.fde(first, 0x1000, 16)
    second = builder.cie(cfa("def_cfa 6 16; offset 16 1"))
    builder.fde(second, 0x2000, 16)
    builder.fde(first, 0x3000, 16)
    frames = read(builder)
    table = to_table(frames)
    assert frames.fdes.cie.tolist() == [0, 1, 0]
    assert table.rules["cfa"]["register"][table.row_rule].tolist() == [7, 6, 7]


@KINDS
def test_a_cie_can_stand_after_its_functions(eh: bool) -> None:
    builder = CfiBuilder(eh=eh, address=0x100)
    builder.cie(AT_START)
    late = builder.entries.pop()
    builder.fde(0, 0x1000, 16)
    builder.entries.append(late)
    # In .eh_frame the distance would be negative, which no reader takes.
    frames = read(builder, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_POINTER if eh else EntryFault.NONE]
    assert eh or places(frames) == [(0x1000, 16)]


@KINDS
def test_terminators_are_no_end(eh: bool) -> None:
    builder = CfiBuilder(eh=eh, address=0x100)
    builder.zero()
    cie = builder.cie(AT_START)
    builder.zero()
    builder.fde(cie, 0x1000, 16)
    builder.zero()
    builder.zero()
    builder.fde(cie, 0x2000, 16)
    builder.zero()
    frames = read(builder)
    assert places(frames) == [(0x1000, 16), (0x2000, 16)]
    assert frames.stop is None


@KINDS
def test_a_section_can_be_empty(eh: bool) -> None:
    for data in (b"", bytes(4), bytes(12)):
        frames = decode(data, AMD64, eh=eh)
        assert (len(frames.cies), len(frames.fdes), frames.stop) == (0, 0, None)
        assert len(to_table(frames)) == 0


def test_any_buffer_can_be_read() -> None:
    builder = CfiBuilder(address=0x100)
    builder.fde(builder.cie(AT_START), 0x1000, 16)
    data = builder.bytes()
    for one in (bytearray(data), memoryview(data), memoryview(b"x" + data)[1:]):
        assert places(decode(one, AMD64, address=0x100)) == [(0x1000, 16)]


def test_aarch64_keys_are_those_of_the_cie() -> None:
    builder = CfiBuilder(address=0x100)
    one = builder.cie(cfa("def_cfa 31 0"), augmentation=b"zR", ra=30)
    other = builder.cie(cfa("def_cfa 31 0"), augmentation=b"zRB", ra=30)
    for number, cie in enumerate([one, other, one]):
        builder.fde(cie, 0x100 * number, 16)
    assert to_table(read(builder, AARCH64)).range_pauth_key.tolist() == [0, 1, 0]
