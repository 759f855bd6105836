"""What an index says of functions: where they start, their info words, and blocks that repeat."""

from __future__ import annotations

import struct

import pytest

from sframe.vectors import one_function, texts
from sframebuilder import AARCH64, AMD64, PCREL, SORTED, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.base.errors import InexpressibleError, SFrameError
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table
from walkback.sframe.section import RowFault

pytestmark = pytest.mark.kernel


def test_signal_frame_has_its_bit_and_a_word_of_two_bytes() -> None:
    data = one_function(3, AMD64, [row(0, 1, [160], size=2)], signal=True)
    assert data[-9:] == bytes.fromhex("0100800000 0023a000")
    section = decode(data)
    assert section.signal.tolist() == [True]
    assert to_table(section).range_signal.tolist() == [True]
    assert texts(data) == ["CFA = rsp+160, RA = *(CFA-8), FP unchanged"]


def test_signal_frame_without_rows() -> None:
    data = one_function(3, AMD64, [], signal=True)
    assert data[-5:] == bytes.fromhex("0000800000")
    found = to_table(decode(data)).find(0x1000)
    assert found is not None
    assert (found.row, found.rule, found.signal) == (None, None, True)


def test_start_beyond_two_gigabytes() -> None:
    data = bytearray(one_function(3, AMD64, [row(0, 1, [8])]))
    data[28:36] = bytes.fromhex("e4ffbfff01000000")
    assert decode(data, address=0x400000).code_address.tolist() == [0x400000 + 0x1C + 0x1FFBFFFE4]


# Starts.


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("flags", [0, SORTED, PCREL, SORTED | PCREL])
@pytest.mark.parametrize("address", [0, 0x401000, 2**63, 2**64 - 16])
def test_starts_count_from_field_or_section(version: int, flags: int, address: int) -> None:
    builder = SFrameBuilder(version, flags=flags, address=address, auxiliary=b"\0" * 4)
    starts = [(address + away) % 2**64 for away in (-0x1000, 0, 0x7000)]
    for start in starts:
        builder.function(start, 8)
    data, labels = builder.assemble()
    assert decode(data, address=address).code_address.tolist() == starts
    stored = [struct.unpack_from("<q" if version == 3 else "<i", data, labels[f"fde{i}.start"])[0] for i in range(3)]
    away = [labels[f"fde{i}.start"] if flags & PCREL else 0 for i in range(3)]
    assert stored == [one - field for one, field in zip((-0x1000, 0, 0x7000), away, strict=True)]


# The info words of functions.


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("fre_type", "largest"), [(0, 0xFF), (1, 0xFFFF), (2, 0xFFFFFFFF)])
@pytest.mark.parametrize("order", ["little", "big"])
def test_fre_types(version: int, fre_type: int, largest: int, order: ByteOrder) -> None:
    builder = SFrameBuilder(version, order=order)
    builder.function(0x100, 0xFFFFFFFF, [row(0, 1, [8]), row(largest, 1, [16])], fre_type=fre_type)
    section = decode(builder.bytes())
    assert section.row_start.tolist() == [0, largest]
    assert section.functions.fre_type.tolist() == [fre_type]
    assert encode(section) == builder.bytes()


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("fre_type", range(3, 16))
def test_unknown_fre_types_are_faults(version: int, fre_type: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0, 8, [row(0, 1, [8])])
    builder.function(8, 8, [row(0, 1, [8])], info=fre_type)
    builder.function(16, 8, [row(0, 1, [24])])
    with pytest.raises(SFrameError) as error:
        decode(builder.bytes())
    assert (error.value.rule, error.value.function) == ("function-fre-type", "function 1")
    section = decode(builder.bytes(), faults=True)
    assert section.functions.fault.tolist() == [0, RowFault.FRE_TYPE, 0]
    assert section.functions.rows.tolist() == [1, 0, 1]
    assert section.functions.num_fres.tolist() == [1, 1, 1]
    found = to_table(section)
    assert [found.find(at).row for at in (0, 8, 16)] == [0, None, 1]
    with pytest.raises(InexpressibleError) as refused:
        encode(section)
    assert refused.value.rule == "function-unreadable"


def test_attribute_record_of_version_3() -> None:
    builder = SFrameBuilder(3, abi=AARCH64)
    builder.function(0, 8, [row(0, 1, [0])], mask=True, key_b=True, signal=True, flex=True, rep_size=0xEE, fre_type=1)
    data, labels = builder.assemble()
    assert labels["attribute0.num_fres"] == labels["rows"]
    assert data[labels["rows"] :][:5] == bytes.fromhex("0100b101ee")
    section = decode(data)
    functions = section.functions
    assert functions.num_fres.tolist() == [1]
    assert (functions.fre_type.tolist(), functions.pc_type.tolist(), functions.pauth_key.tolist()) == ([1], [1], [1])
    assert (functions.fde_type.tolist(), functions.rep_size.tolist()) == ([1], [0xEE])
    assert section.signal.tolist() == [True]
    assert section.block_size.tolist() == [0xEE]


def test_rows_of_version_3_are_counted_in_16_bits() -> None:
    builder = SFrameBuilder(3)
    builder.function(0, 2**17, [row(n, 1, [8]) for n in range(0xFFFF)], fre_type=1)
    section = decode(builder.bytes())
    assert section.functions.rows.tolist() == [0xFFFF]
    assert len(section.shapes) == 1


@pytest.mark.parametrize("version", [1, 2])
def test_bit_7_means_nothing_before_version_3(version: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0, 8, [row(0, 1, [8])], info=0x80)
    assert decode(builder.bytes()).signal.tolist() == [False]


def test_padding_of_version_2_is_kept() -> None:
    builder = SFrameBuilder(2)
    builder.function(0, 8, [row(0, 1, [8])], padding=0xBEEF)
    section = decode(builder.bytes())
    assert section.functions.padding.tolist() == [0xBEEF]
    assert encode(section) == builder.bytes()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pointer_authentication_key(version: int) -> None:
    builder = SFrameBuilder(version, abi=AARCH64)
    builder.function(0, 8, [row(0, 1, [0], mangled=True)])
    builder.function(8, 8, [row(0, 1, [0], mangled=True)], key_b=True)
    found = to_table(decode(builder.bytes()))
    assert [found.find(at).pauth_key for at in (0, 8)] == [0, 1]


def test_pointer_authentication_key_is_aarch64s() -> None:
    builder = SFrameBuilder(3)
    builder.function(0, 8, [row(0, 1, [8])], key_b=True)
    assert to_table(decode(builder.bytes())).range_pauth_key.tolist() == [0]


# Repeating blocks.


@pytest.mark.parametrize(("version", "rep_size", "block"), [(1, 0, 16), (2, 24, 24), (3, 24, 24), (3, 255, 255)])
def test_repeating_blocks(version: int, rep_size: int, block: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0x1008, 3 * block, [row(0, 1, [8]), row(11, 1, [16])], mask=True, rep_size=rep_size)
    data = builder.bytes()
    found = to_table(decode(data))
    assert encode(decode(data)) == data
    for offset in range(3 * block):
        one = found.find(0x1008 + offset)
        assert one.row == (1 if offset % block >= 11 else 0)
        assert one.offset == offset % block
    assert found.find(0x1007) is None
    assert found.find(0x1008 + 3 * block) is None


@pytest.mark.parametrize("version", [2, 3])
def test_repeating_blocks_of_no_size_have_no_rules(version: int) -> None:
    data = one_function(version, AMD64, [row(0, 1, [8])], mask=True, rep_size=0)
    assert texts(data)[0].startswith("CFA inexpressible (the repeating block has size 0)")


@pytest.mark.parametrize("version", [2, 3])
def test_block_size_means_nothing_without_a_block(version: int) -> None:
    data = one_function(version, AMD64, [row(0, 1, [8]), row(4, 1, [16])], rep_size=4)
    assert to_table(decode(data)).find(0x1007).row == 1
