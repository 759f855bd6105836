"""Rows as bytes: words of every size, rows that are cut off, and rows that functions share."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from sframe.vectors import one_function, rule_of
from sframebuilder import AMD64, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.base.errors import SFrameError
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table
from walkback.sframe.section import RowFault
from walkback.table.rule import Part, PartKind, Reason

pytestmark = pytest.mark.kernel


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
    assert shapes.first_words(count + 1).tolist() == [*([word] * 2 for word in words), [0, 0]]
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
