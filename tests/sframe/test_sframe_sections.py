"""Sections as a whole: the annotated example, order, gaps and tails, and several in one."""

from __future__ import annotations

import pytest

from sframe.vectors import DRAP, texts
from sframebuilder import PCREL, SFrameBuilder, row
from walkback.base.errors import SFrameError
from walkback.sframe.decoding import decode, decode_all
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table

pytestmark = pytest.mark.kernel


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
