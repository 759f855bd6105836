"""Bytes and what they mean: one test for each sentence of the specifications that can be got wrong."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from sframebuilder import AARCH64, AARCH64_BIG, AMD64, FDE_SIZES, PCREL, S390X, SORTED, Row, SFrameBuilder, row
from walkback.base.arch import AARCH64 as MACHINE_AARCH64
from walkback.base.arch import AMD64 as MACHINE_AMD64
from walkback.base.arch import S390X as MACHINE_S390X
from walkback.base.arch import ByteOrder
from walkback.base.errors import InexpressibleError, SFrameError
from walkback.sframe.decoding import decode, decode_all
from walkback.sframe.encoding import encode, with_byteorder
from walkback.sframe.rules import to_table
from walkback.sframe.section import RowFault
from walkback.table.rule import OUTERMOST, Part, PartKind, Reason, Rule

pytestmark = pytest.mark.kernel

BIG_ABIS = {AARCH64_BIG, S390X}
MACHINES = {AMD64: MACHINE_AMD64, AARCH64: MACHINE_AARCH64, AARCH64_BIG: MACHINE_AARCH64, S390X: MACHINE_S390X}


def one_function(
    version: int,
    abi: int,
    rows: list[Row],
    *,
    size: int = 64,
    fixed_ra: int | None = None,
    fixed_fp: int = 0,
    **options: Any,
) -> bytes:
    order: ByteOrder = "big" if abi in BIG_ABIS else "little"
    builder = SFrameBuilder(version, order=order, abi=abi, fixed_ra=fixed_ra, fixed_fp=fixed_fp)
    builder.function(0x1000, size, rows, **options)
    return builder.bytes()


def texts(data: bytes, **options: Any) -> list[str]:
    """The rules of all rows, as people write them; also checks that the bytes come back."""
    section = decode(data, **options)
    assert encode(section) == data
    found = to_table(section)
    return [found.rule(row).text(found.machine) for row in range(len(found.row_rule))]


def rule_of(version: int, abi: int, words: list[int], *, base: int = 1, **options: Any) -> str:
    size = options.pop("word_size", 1)
    mangled = options.pop("mangled", False)
    data = one_function(version, abi, [row(0, base, words, size=size, mangled=mangled)], **options)
    (text,) = texts(data)
    return text


# The annotated example of FORMAT 1.8: gas 2.47.50 on amd64-drap.s.

DRAP = bytes.fromhex(
    "e2de03040300f800 0100000006000000 29000000000000001000000000000000000000001c00000000000000"
    "0600000100 00043908 05045100 110a5100003300 130a33f8003300 160a5100003300 1b0a39080033 00"
)


def test_annotated_example() -> None:
    section = decode(DRAP, address=0x5000)
    assert (section.version, section.flags, section.abi_arch) == (3, 4, 3)
    assert (section.cfa_fixed_fp_offset, section.cfa_fixed_ra_offset, section.auxiliary) == (0, -8, b"")
    assert (section.num_fdes, section.num_fres, section.fre_len) == (1, 6, 0x29)
    assert (section.fdeoff, section.freoff, section.length) == (0, 0x10, 0x55)
    assert section.gaps == ()
    assert section.code_address.tolist() == [0x501C]
    assert section.row_offsets().tolist() == [0x31, 0x35, 0x39, 0x40, 0x47, 0x4E]
    found = to_table(section)
    assert [(int(at), found.rule(i).text(found.machine)) for i, at in enumerate(found.row_offset)] == [
        (0, "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        (5, "CFA = r10, RA = *(CFA-8), FP unchanged"),
        (17, "CFA = r10, RA = *(CFA-8), FP = *(rbp)"),
        (19, "CFA = *(rbp-8), RA = *(CFA-8), FP = *(rbp)"),
        (22, "CFA = r10, RA = *(CFA-8), FP = *(rbp)"),
        (27, "CFA = rsp+8, RA = *(CFA-8), FP = *(rbp)"),
    ]
    assert encode(section) == DRAP


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


# The header.


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_fields(version: int, order: ByteOrder) -> None:
    builder = SFrameBuilder(
        version,
        order=order,
        abi=AARCH64,
        flags=1,
        fixed_fp=-128,
        fixed_ra=127,
        auxiliary=b"\1\2\3",
        num_fres=0x01020304,
    )
    builder.function(0x10, 0x80000001, [row(255, 0, [-128])])
    data, labels = builder.assemble()
    section = decode(data, address=0x1000)
    assert (section.version, section.byteorder, section.flags, section.abi_arch) == (version, order, 1, 2)
    assert (section.cfa_fixed_fp_offset, section.cfa_fixed_ra_offset) == (-128, 127)
    assert section.auxiliary == b"\1\2\3"
    assert (section.num_fdes, section.num_fres) == (1, 0x01020304)
    assert section.header_end == 31
    assert (section.fde_start, section.fre_start, section.end) == (labels["index"], labels["rows"], labels["end"])
    assert section.functions.size.tolist() == [0x80000001]
    assert section.row_start.tolist() == [255]
    assert section.shapes.words.tolist() == [-128]
    assert encode(section) == data
    # without PCREL a start counts from the section
    assert section.code_address.tolist() == [0x1010]


@pytest.mark.parametrize(("version", "size"), FDE_SIZES.items())
def test_size_of_an_index_entry(version: int, size: int) -> None:
    builder = SFrameBuilder(version)
    for start in (0, 64, 128):
        builder.function(start, 64)
    data, labels = builder.assemble()
    section = decode(data)
    assert section.fde_size == size
    assert [section.field_offset(i) for i in range(3)] == [labels[f"fde{i}.start"] for i in range(3)]
    assert [section.field_offset(i) for i in range(3)] == [28, 28 + size, 28 + 2 * size]


@pytest.mark.parametrize("order", ["little", "big"])
def test_the_magic_number_tells_the_byte_order(order: ByteOrder) -> None:
    data = SFrameBuilder(2, order=order).bytes()
    assert data[:2] == (b"\xe2\xde" if order == "little" else b"\xde\xe2")
    assert decode(data).byteorder == order


@pytest.mark.parametrize("flags", range(8))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_flags_as_they_stand(version: int, flags: int) -> None:
    builder = SFrameBuilder(version, flags=flags)
    builder.function(0x100, 8, [row(0, 1, [8])])
    section = decode(builder.bytes())
    assert (section.flags, section.sorted, section.pcrel) == (flags, bool(flags & 1), bool(flags & 4))
    assert section.code_address.tolist() == [0x100]


def test_unknown_flags_and_reserved_bits_are_kept() -> None:
    builder = SFrameBuilder(3, flags=0xFC)
    builder.function(0, 8, [row(0, 1, [8])], info=0x40, info2=0xE0, rep_size=9)
    section = decode(builder.bytes())
    assert section.flags == 0xFC
    assert section.functions.info.tolist() == [0x40]
    assert (section.functions.info2.tolist(), section.functions.fde_type.tolist()) == ([0xE0], [0])
    assert section.block_size.tolist() == [0]
    assert encode(section) == builder.bytes()


@pytest.mark.parametrize(
    ("change", "rule", "offset"),
    [
        ({"magic": 0xDEE3}, "header-magic", 0),
        ({"magic": 0x0000}, "header-magic", 0),
        ({"version": 0}, "header-version", 2),
        ({"version": 4}, "header-version", 2),
        ({"auxhdr_len": 255}, "header-auxiliary", 7),
        ({"num_fdes": 10}, "index-bounds", 8),
        ({"num_fdes": 0xFFFFFFFF}, "index-bounds", 8),
        ({"fdeoff": 0xFFFFFFFF}, "index-bounds", 8),
        ({"fre_len": 0xFFFFFFFF}, "rows-bounds", 0x10),
        ({"freoff": 0xFFFFFFFF}, "rows-bounds", 0x10),
        ({"fre_len": 0x100}, "rows-bounds", 0x10),
    ],
)
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_header_errors_name_rule_and_offset(
    version: int, order: ByteOrder, change: dict[str, int], rule: str, offset: int
) -> None:
    builder = SFrameBuilder(version, order=order)
    builder.header |= change
    builder.function(0, 8, [row(0, 1, [8])])
    for faults in (False, True):
        with pytest.raises(SFrameError) as error:
            decode(builder.bytes(), faults=faults)
        assert (error.value.rule, error.value.offset) == (rule, offset)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("length", range(28))
def test_too_short_for_a_header(length: int) -> None:
    with pytest.raises(SFrameError, match=f"{length} bytes are too few") as error:
        decode(DRAP[:length])
    assert (error.value.rule, error.value.offset) == ("header-size", 0)


def test_header_alone() -> None:
    data = SFrameBuilder(3).bytes()
    section = decode(data)
    assert (len(section.functions), len(section.row_start), len(section.shapes), section.gaps) == (0, 0, 0, ())
    assert encode(section) == data
    assert to_table(section).find(0) is None


def test_index_offset_is_of_no_matter_without_functions() -> None:
    data = SFrameBuilder(2, fdeoff=0xFFFFFFFF).bytes()
    section = decode(data)
    assert encode(section) == data


def test_index_may_stand_after_the_rows() -> None:
    builder = SFrameBuilder(3, rows_first=True)
    builder.function(0x100, 8, [row(0, 1, [8])])
    builder.function(0x200, 8, [row(0, 1, [16])])
    assert [rule.split(",")[0] for rule in texts(builder.bytes())] == ["CFA = rsp+8", "CFA = rsp+16"]
    assert decode(builder.bytes()).code_address.tolist() == [0x100, 0x200]


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


# Rows.


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("count", range(16))
def test_words_of_every_size_and_number(order: ByteOrder, size: int, count: int) -> None:
    words = [(-1) ** n * ((1 << (8 * size - 1)) - 1 - n) for n in range(count)]
    builder = SFrameBuilder(3, order=order)
    builder.function(0, 8, [row(0, 1, words, size=size), row(1, 0, words, size=size)])
    section = decode(builder.bytes())
    shapes = section.shapes
    assert shapes.words.tolist() == words * 2
    assert shapes.word_count.tolist() == [count] * 2
    assert shapes.word_size.tolist() == [size] * 2
    assert shapes.length.tolist() == [1 + count * size] * 2
    assert [shapes.word(n).tolist() for n in range(count)] == [[word] * 2 for word in words]
    assert shapes.word(count).tolist() == [0, 0]
    assert encode(section) == builder.bytes()


@pytest.mark.parametrize("words", [[-(2**31)], [2**31 - 1], [-1], [0]])
def test_words_are_signed(words: list[int]) -> None:
    assert rule_of(3, AMD64, words, word_size=4).startswith(f"CFA = rsp{words[0]:+d}" if words[0] else "CFA = rsp,")


def test_word_size_varies_from_row_to_row_and_equal_rules_become_one() -> None:
    data = one_function(3, AMD64, [row(0, 1, [8]), row(1, 1, [8], size=2), row(2, 1, [8], size=4)])
    section = decode(data)
    assert len(section.shapes) == 3
    found = to_table(section)
    assert len(found.rules) == 1
    assert found.row_rule.tolist() == [0, 0, 0]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_word_size_code_3_is_a_fault(version: int) -> None:
    rows = [row(0, 1, [8]), row(1, 0, info=0x63), row(2, 1, [8])]
    builder = SFrameBuilder(version)
    builder.function(0, 8, rows)
    data, labels = builder.assemble()
    with pytest.raises(SFrameError) as error:
        decode(data)
    assert (error.value.rule, error.value.offset) == ("row-word-size", labels["fre0.1"])
    section = decode(data, faults=True)
    assert section.functions.fault.tolist() == [RowFault.WORD_SIZE]
    assert section.functions.fault_offset.tolist() == [labels["fre0.1"]]
    # the rows before it are kept, and not relied on
    assert section.functions.rows.tolist() == [1]
    assert to_table(section).rule(0).cfa == Part(PartKind.INEXPRESSIBLE, 0, Reason.UNREADABLE)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("cut", range(1, 9))
def test_a_row_that_runs_over_the_end(version: int, cut: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0, 8, [row(0, 1, [8], size=2), row(1, 1, [16, -16], size=2)], fre_type=1)
    whole, labels = builder.assemble()
    data = bytearray(whole[:-cut])
    size = struct.unpack_from("<I", data, 16)[0]
    struct.pack_into("<I", data, 16, size - cut)
    where = labels["fre0.1"] if cut <= 7 else labels["fre0.0"]
    with pytest.raises(SFrameError) as error:
        decode(data)
    assert (error.value.rule, error.value.offset) == ("row-cut-off", where)
    section = decode(data, faults=True)
    assert section.functions.fault.tolist() == [RowFault.CUT_OFF]
    assert section.functions.rows.tolist() == [1 if cut <= 7 else 0]


def test_rows_end_with_the_sub_section_not_with_the_section() -> None:
    builder = SFrameBuilder(2, tail=bytes.fromhex("0103080103080103080103"))
    builder.function(0, 8, [row(0, 1, [8])], num_fres=2)
    with pytest.raises(SFrameError) as error:
        decode(builder.bytes())
    assert error.value.rule == "row-cut-off"


@pytest.mark.parametrize("away", [-4, 0, 1, 0xFFFFFF00])
def test_attribute_record_must_lie_in_the_sub_section(away: int) -> None:
    builder = SFrameBuilder(3, tail=b"\0" * 64)
    builder.function(0, 8, [row(0, 1, [8])])
    builder.function(8, 8, [], fre_offset=13 + away)
    data, labels = builder.assemble()
    with pytest.raises(SFrameError) as error:
        decode(data)
    assert error.value.rule == "function-attribute"
    assert error.value.offset == labels["rows"] + 13 + away
    section = decode(data, faults=True)
    assert section.functions.fault.tolist() == [0, RowFault.ATTRIBUTE]
    assert to_table(section).find(0).rule is not None


def shared_by(count: int, rows: int = 255) -> bytes:
    builder = SFrameBuilder(2)
    for number in range(count):
        builder.function(256 * number, 256, [row(n, 1, [8]) for n in range(rows)], shares=0 if number else None)
    return builder.bytes()


def test_many_functions_may_share_rows() -> None:
    section = decode(shared_by(100))
    assert section.functions.rows.tolist() == [255] * 100
    assert len(section.shapes) == 1
    assert encode(section) == shared_by(100)


def test_more_shared_rows_than_a_section_of_this_size_may_have() -> None:
    """They are given up from some function on: what a few bytes claim does not fill the memory."""
    data = shared_by(400)
    with pytest.raises(SFrameError) as error:
        decode(data)
    assert error.value.rule == "rows-shared"
    section = decode(data, faults=True)
    sound = section.functions.fault == 0
    assert set(section.functions.fault.tolist()) == {0, RowFault.SHARED}
    assert section.functions.rows.tolist() == np.where(sound, 255, 0).tolist()
    assert sound.tolist() == sorted(sound.tolist(), reverse=True)
    assert sound.sum() > 200


def test_a_function_that_claims_too_much_does_no_harm_to_the_others() -> None:
    builder = SFrameBuilder(2)
    for number in range(12):
        claim = {"num_fres": 0xFFFFFFFF} if number in {1, 3, 5} else {}
        builder.function(32 * number, 32, [row(n, 1, [8 + n]) for n in range(30)], **claim)
    section = decode(builder.bytes(), faults=True)
    assert np.flatnonzero(section.functions.fault).tolist() == [1, 3, 5]


# What default rows mean.


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("words", "base", "text"),
    [
        ([8], 1, "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        ([16], 0, "CFA = rbp+16, RA = *(CFA-8), FP unchanged"),
        ([16, -16], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)"),
        ([16, 0], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA)"),
        ([16, -16, 99], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)"),
        ([-8], 1, "CFA = rsp-8, RA = *(CFA-8), FP unchanged"),
    ],
)
def test_amd64(version: int, words: list[int], base: int, text: str) -> None:
    assert rule_of(version, AMD64, words, base=base) == text


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BIG])
@pytest.mark.parametrize(
    ("words", "base", "text"),
    [
        ([0], 1, "CFA = sp, RA unchanged, FP unchanged"),
        ([32, -24], 1, "CFA = sp+32, RA = *(CFA-24), FP unchanged"),
        ([32, -24, -32], 0, "CFA = x29+32, RA = *(CFA-24), FP = *(CFA-32)"),
        ([32, 0, 0], 0, "CFA = x29+32, RA = *(CFA), FP = *(CFA)"),
        ([32, -23, -31], 1, "CFA = sp+32, RA = *(CFA-23), FP = *(CFA-31)"),
    ],
)
def test_aarch64(version: int, abi: int, words: list[int], base: int, text: str) -> None:
    assert rule_of(version, abi, words, base=base) == text


@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BIG])
def test_mangled_return_address(abi: int) -> None:
    text = "CFA = sp+32, RA = *(CFA-24) signed, FP = *(CFA-32)"
    assert rule_of(2, abi, [32, -24, -32], mangled=True) == text


@pytest.mark.parametrize(("fixed_ra", "fixed_fp"), [(-8, -16), (0, -16), (-8, 0), (0, 0), (127, -128)])
def test_fixed_places_take_no_words(fixed_ra: int, fixed_fp: int) -> None:
    words, expected = [48], ["CFA = sp+48"]
    for name, fixed, word in (("RA", fixed_ra, -40), ("FP", fixed_fp, -48)):
        if not fixed:
            words.append(word)
        expected.append(f"{name} = *(CFA{fixed or word:+d})")
    assert rule_of(2, AARCH64, words, fixed_ra=fixed_ra, fixed_fp=fixed_fp) == ", ".join(expected)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([0], "CFA = r15+160, RA unchanged, FP unchanged"),
        ([4], "CFA = r15+192, RA unchanged, FP unchanged"),
        ([-20], "CFA = r15, RA unchanged, FP unchanged"),
        ([-128], "CFA = r15-864, RA unchanged, FP unchanged"),
        ([0, -48], "CFA = r15+160, RA = *(CFA-48), FP unchanged"),
        ([0, 0, -72], "CFA = r15+160, RA unchanged, FP = *(CFA-72)"),
        ([0, -48, -72], "CFA = r15+160, RA = *(CFA-48), FP = *(CFA-72)"),
        ([0, 0], "CFA = r15+160, RA unchanged, FP unchanged"),
    ],
)
def test_s390x(version: int, words: list[int], text: str) -> None:
    assert rule_of(version, S390X, words) == text


def test_s390x_scaling_of_wide_words() -> None:
    assert rule_of(2, S390X, [0x0400], word_size=2).startswith("CFA = r15+8352,")
    assert rule_of(2, S390X, [2**31 - 1], word_size=4).startswith(f"CFA = r15+{8 * (2**31 - 1) + 160},")


def test_s390x_registers_in_odd_words_of_version_2() -> None:
    # the encoding of DWARF register n is n << 1 | 1
    text = "CFA = r15+160, RA = f0, FP = f2"
    assert rule_of(2, S390X, [0, 16 << 1 | 1, 17 << 1 | 1]) == text
    assert rule_of(2, S390X, [0, 0 << 1 | 1]) == "CFA = r15+160, RA = r0, FP unchanged"


def test_odd_words_are_offsets_in_version_3() -> None:
    assert rule_of(3, S390X, [0, -47, 33]) == "CFA = r15+160, RA = *(CFA-47), FP = *(CFA+33)"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", [AMD64, AARCH64, AARCH64_BIG, S390X])
@pytest.mark.parametrize("info", [0x00, 0x01, 0x80, 0x20, 0x41])
def test_rows_without_words_are_outermost(version: int, abi: int, info: int) -> None:
    data = one_function(version, abi, [row(0, 0, info=info)])
    assert texts(data) == ["outermost frame"]
    assert to_table(decode(data)).rule(0) == OUTERMOST


@pytest.mark.parametrize("version", [1, 2, 3])
def test_functions_without_rows(version: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0x100, 8)
    builder.function(0x108, 8, [row(0, 1, [8])])
    builder.function(0x110, 8)
    section = decode(builder.bytes())
    assert encode(section) == builder.bytes()
    assert section.functions.first_row.tolist() == [0, 0, 1]
    found = to_table(section)
    assert [found.find(at).row for at in (0x100, 0x108, 0x110)] == [None, 0, None]


# What flex rows mean.

RSP, RSP_AT, RBP, RBP_AT, R10, RBX, RAX = 0x39, 0x3B, 0x31, 0x33, 0x51, 0x19, 0x01


def flex(abi: int, words: list[int], *, size: int = 1, mangled: bool = False, **options: Any) -> str:
    return rule_of(3, abi, words, base=0, word_size=size, mangled=mangled, flex=True, **options)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([RSP, 8], "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        ([RSP_AT, 8], "CFA = *(rsp+8), RA = *(CFA-8), FP unchanged"),
        ([RAX, 0], "CFA = rax, RA = *(CFA-8), FP unchanged"),
        ([RBX, 0, 0, RBP_AT, -1], "CFA = rbx, RA = *(CFA-8), FP = *(rbp-1)"),
        ([RBP_AT, -8, 0, RBP_AT, 0], "CFA = *(rbp-8), RA = *(CFA-8), FP = *(rbp)"),
        ([R10, 0, 2, -16], "CFA = r10, RA = *(CFA-16), FP unchanged"),
        ([R10, 0, 2, 0], "CFA = r10, RA = *(CFA), FP unchanged"),
        ([R10, 0, 2, -16, 2, -24], "CFA = r10, RA = *(CFA-16), FP = *(CFA-24)"),
        ([R10, 0, R10, 1, R10 | 2, 2], "CFA = r10, RA = r10+1, FP = *(r10+2)"),
        ([R10, 0, 0], "CFA = r10, RA = *(CFA-8), FP unchanged"),
        ([R10, 0, 0, 0], "CFA = r10, RA = *(CFA-8), FP unchanged"),
        # control words are unsigned: 0xf9 is register 31
        ([0xF9, 8], "CFA = r31+8, RA = *(CFA-8), FP unchanged"),
        ([0xFB, -8], "CFA = *(r31-8), RA = *(CFA-8), FP unchanged"),
    ],
)
def test_flex_control_words(words: list[int], text: str) -> None:
    assert flex(AMD64, words) == text


@pytest.mark.parametrize(
    ("size", "control", "register"),
    [(2, 0x101, 32), (2, 0xFFF9, 8191), (4, 0x101, 32), (4, 0xFFFFFFF9, 2**29 - 1)],
)
def test_flex_registers_in_wide_words(size: int, control: int, register: int) -> None:
    assert flex(AMD64, [control, -2], size=size) == f"CFA = r{register}-2, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([RSP], "the data words end inside a rule"),
        ([0], "the CFA has no base register"),
        ([0, 8], "the CFA has no base register"),
        ([2, 8], "the CFA has no base register"),
        ([4, 8], "the CFA has no base register"),
    ],
)
def test_flex_rows_without_a_cfa(words: list[int], reason: str) -> None:
    assert flex(AMD64, words).startswith(f"CFA inexpressible ({reason})")


def test_flex_rows_that_end_inside_a_pair() -> None:
    cut = "inexpressible (the data words end inside a rule)"
    assert flex(AMD64, [RSP, 8, 2]) == f"CFA = rsp+8, RA {cut}, FP unchanged"
    assert flex(AMD64, [RSP, 8, 0, 2]) == f"CFA = rsp+8, RA = *(CFA-8), FP {cut}"
    assert flex(AMD64, [RSP, 8, 2, -8, 2]) == f"CFA = rsp+8, RA = *(CFA-8), FP {cut}"


def test_flex_rows_with_more_words_than_there_are_parts() -> None:
    assert flex(AMD64, [RSP, 8, 2, -8, 2, -16, *range(9)]) == "CFA = rsp+8, RA = *(CFA-8), FP = *(CFA-16)"


def test_flex_padding_leaves_fixed_places_and_unfixed_ones_alone() -> None:
    assert flex(S390X, [0x79, 0, 0, 2, -72]) == "CFA = r15+160, RA unchanged, FP = *(CFA-72)"
    assert flex(AMD64, [RSP, 8, 0, 0], fixed_fp=-16) == "CFA = rsp+8, RA = *(CFA-8), FP = *(CFA-16)"
    assert flex(AMD64, [RSP, 8, 0, RAX, 1], fixed_fp=-16) == "CFA = rsp+8, RA = *(CFA-8), FP = rax+1"


def test_flex_cfa_of_s390x_is_scaled() -> None:
    assert flex(S390X, [0x79, 0]).startswith("CFA = r15+160,")
    assert flex(S390X, [0x79, 0x0400], size=2).startswith("CFA = r15+8352,")
    assert flex(S390X, [0x79 | 2, 1]).startswith("CFA = *(r15+168),")
    # RA and FP are not
    assert flex(S390X, [0x79, 0, 0x81, 8, 0x8B, 16]) == "CFA = r15+160, RA = f0+8, FP = *(f2+16)"


def test_flex_mangled_and_outermost() -> None:
    assert flex(AARCH64, [0xF9, 16, 2, -8], mangled=True) == "CFA = sp+16, RA = *(CFA-8) signed, FP unchanged"
    assert flex(AARCH64, [], mangled=True) == "outermost frame"


def test_equal_bytes_of_a_flex_and_a_default_row_are_two_rules() -> None:
    builder = SFrameBuilder(3)
    builder.function(0, 8, [row(0, 0, [RSP, 8])])
    builder.function(8, 8, [row(0, 0, [RSP, 8])], flex=True)
    assert texts(builder.bytes()) == [
        "CFA = rbp+57, RA = *(CFA-8), FP = *(CFA+8)",
        "CFA = rsp+8, RA = *(CFA-8), FP unchanged",
    ]


def test_info2_is_no_type_before_version_3() -> None:
    # flex is a matter of version 3, so the same words are offsets in version 2
    assert rule_of(2, AMD64, [RSP, 8], base=0) == "CFA = rbp+57, RA = *(CFA-8), FP = *(CFA+8)"


@pytest.mark.parametrize("fde_type", [2, 31])
def test_unknown_function_types_have_no_rules(fde_type: int) -> None:
    data = one_function(3, AMD64, [row(0, 1, [8]), row(1, 1)], info2=fde_type)
    text = "inexpressible (the function type is unknown)"
    assert texts(data) == [f"CFA {text}, RA {text}, FP {text}"] * 2


def test_unknown_abi_is_read_and_has_no_rules() -> None:
    data = SFrameBuilder(3, abi=9)
    data.function(0, 8, [row(0, 1, [8])])
    section = decode(data.bytes())
    assert section.machine is None
    assert encode(section) == data.bytes()
    with pytest.raises(InexpressibleError) as error:
        to_table(section)
    assert (error.value.rule, error.value.offset) == ("header-abi", 4)


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


# Order, gaps, tails.


def test_unsorted_functions() -> None:
    builder = SFrameBuilder(3, flags=PCREL)
    for start in (0x300, 0x100, 0x200):
        builder.function(start, 0x80, [row(0, 1, [start >> 4])])
    found = to_table(decode(builder.bytes()))
    assert [found.find(at).range for at in (0x100, 0x200, 0x300)] == [1, 2, 0]
    assert found.find(0x180) is None


def test_rows_in_another_order_than_functions() -> None:
    builder = SFrameBuilder(3)
    builder.function(0x100, 0x80, [row(0, 1, [8])], fre_offset=8)
    builder.function(0x200, 0x80, [row(0, 1, [16])], fre_offset=0)
    data, labels = builder.assemble()
    section = decode(data)
    assert encode(section) == data
    assert section.row_offsets().tolist() == [labels["fre1.0"], labels["fre0.0"]]
    assert texts(data)[0].startswith("CFA = rsp+16")


def test_shared_rows() -> None:
    builder = SFrameBuilder(2)
    builder.function(0x100, 0x80, [row(0, 1, [8]), row(1, 1, [16])])
    builder.function(0x200, 0x80, [row(0, 1, [8]), row(1, 1, [16])], shares=0)
    section = decode(builder.bytes())
    assert encode(section) == builder.bytes()
    assert section.functions.rows.tolist() == [2, 2]
    assert to_table(section).find(0x201).row == 3


@pytest.mark.parametrize("version", [1, 2, 3])
def test_gaps_and_tail_are_kept(version: int) -> None:
    builder = SFrameBuilder(version, auxiliary=b"aux", before_index=b"one", between=b"two", tail=b"four")
    builder.function(0x100, 8, [row(0, 1, [8])], before=b"three")
    builder.function(0x200, 8, [row(0, 1, [16])])
    data, _ = builder.assemble()
    section = decode(data)
    assert [content for _, content in section.gaps] == [b"one", b"two", b"three", b"four"]
    assert all(data[position : position + len(content)] == content for position, content in section.gaps)
    assert encode(section) == data
    assert section.length == section.end + 4


def test_falling_rows_are_kept_and_not_relied_on() -> None:
    builder = SFrameBuilder(3)
    builder.function(0, 16, [row(0, 1, [8]), row(8, 1, [16]), row(4, 1, [24])])
    builder.function(16, 16, [row(0, 1, [8]), row(0, 1, [16])])
    data = builder.bytes()
    rules = texts(data)
    assert all(rule.startswith("CFA inexpressible (the rows are not in order)") for rule in rules[:3])
    # of two rows with one start the last holds
    assert to_table(decode(data)).find(16).rule.cfa.offset == 16


# Several sections in one.


def three_pieces() -> tuple[bytes, list[int]]:
    out, places = b"", []
    for number, version in enumerate((3, 2, 3)):
        builder = SFrameBuilder(version, address=0x1000 + len(out))
        builder.function(0x5000 + 0x100 * number, 16, [row(0, 1, [8 + number])])
        places.append(len(out))
        out += builder.bytes()
        out += b"\0" * (-len(out) % 8 if number < 2 else 0)
    return out, places


def test_concatenated_sections() -> None:
    data, places = three_pieces()
    found = list(decode_all(data, address=0x1000))
    assert [position for position, _ in found] == places
    assert [section.code_address.tolist() for _, section in found] == [[0x5000], [0x5100], [0x5200]]
    assert [section.address for _, section in found] == [0x1000 + place for place in places]
    assert b"".join(encode(section) for _, section in found) == data


def test_one_section_is_one_piece() -> None:
    assert [(position, section.length) for position, section in decode_all(DRAP)] == [(0, len(DRAP))]
    assert [section.gaps for _, section in decode_all(DRAP + b"\0" * 40)] == [((len(DRAP), b"\0" * 40),)]


def test_what_follows_and_is_no_section_is_a_tail() -> None:
    for tail in (b"\1" + DRAP, b"\0" * 8 + DRAP, b"\xe2\xde\x09" + DRAP[3:], DRAP[:27]):
        assert [position for position, _ in decode_all(DRAP + tail)] == [0]


def test_concatenated_sections_with_their_index_after_the_rows() -> None:
    builder = SFrameBuilder(2, rows_first=True)
    builder.function(0, 16, [row(0, 1, [8]), row(1, 1, [16])])
    builder.function(16, 16, [row(0, 1, [8]), row(1, 1, [16])])
    data = builder.bytes()
    data += b"\0" * (-len(data) % 8)
    assert [position for position, _ in decode_all(data + data)] == [0, len(data)]


def test_a_broken_piece_is_named_by_its_error() -> None:
    data = bytearray(DRAP + b"\0" * 3 + DRAP)
    data[len(DRAP) + 3 + 0x30 - 1] = 0xFF
    with pytest.raises(SFrameError):
        list(decode_all(bytes(data[: len(DRAP) + 3]) + b"\xe2\xde\3" + b"\xff" * 40))


# Encoding.


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_other_byte_order(version: int) -> None:
    builder = SFrameBuilder(version, auxiliary=b"aux", tail=b"tail")
    builder.function(0x100, 600, [row(0, 1, [8], size=4), row(300, 0, [16, -300], size=2)], fre_type=1)
    mirror = SFrameBuilder(version, auxiliary=b"aux", tail=b"tail", order="big")
    mirror.functions = builder.functions
    little, big = builder.bytes(), mirror.bytes()
    assert encode(with_byteorder(decode(little), "big")) == big
    assert encode(with_byteorder(decode(big), "little")) == little


def test_what_a_field_cannot_hold_is_refused() -> None:
    section = decode(one_function(2, AMD64, [row(0, 1, [8])]))
    section.cfa_fixed_ra_offset = 128
    with pytest.raises(InexpressibleError, match="cfa_fixed_ra_offset 128 does not fit into 8 bits") as error:
        encode(section)
    assert error.value.rule == "field-range"
    section = decode(one_function(2, AMD64, [row(0, 1, [8])]))
    section.functions.start[0] = 2**31
    with pytest.raises(InexpressibleError, match="start 2147483648 does not fit into 32 bits"):
        encode(section)
    section = decode(one_function(3, AMD64, [row(0, 1, [8])]))
    section.functions.num_fres[0] = 2**16
    with pytest.raises(InexpressibleError, match="num_fres 65536 does not fit into 16 bits"):
        encode(section)
    section = decode(one_function(3, AMD64, [row(0, 1, [8])]))
    section.shapes.words[0] = 128
    with pytest.raises(InexpressibleError) as error:
        encode(section)
    assert error.value.rule == "word-range"
    section = decode(one_function(3, AMD64, [row(0, 1, [8])]))
    section.row_start[0] = 256
    with pytest.raises(InexpressibleError) as error:
        encode(section)
    assert error.value.rule == "row-start-range"


@pytest.mark.parametrize("length", [0, 27, 40, 44, 48, 51])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_does_not_fit_into_the_length_is_refused(version: int, length: int) -> None:
    section = decode(one_function(version, AMD64, [row(0, 1, [8], size=4)]))
    if length >= section.length:
        pytest.skip("it fits")
    section.length = length
    with pytest.raises(InexpressibleError) as error:
        encode(section)
    assert error.value.rule == "section-length"


def test_rules_are_what_the_machine_says() -> None:
    for abi, machine in MACHINES.items():
        order: ByteOrder = "big" if abi in BIG_ABIS else "little"
        builder = SFrameBuilder(2, abi=abi, order=order)
        builder.function(0, 8, [row(0, 1, [0]), row(1, 0, [0])])
        found = to_table(decode(builder.bytes()))
        assert found.machine is machine
        assert [found.rule(n).cfa.register for n in (0, 1)] == [machine.sp, machine.fp]
        assert isinstance(found.rule(0), Rule)
