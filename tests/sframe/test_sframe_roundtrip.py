"""Whatever a section holds: encoding what was decoded gives its bytes, in either byte order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from effort import examples
from sframebuilder import Row, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.sframe.decoding import decode, decode_all
from walkback.sframe.encoding import encode, with_byteorder

pytestmark = pytest.mark.kernel

I8, U8, U16 = st.integers(-128, 127), st.integers(0, 255), st.integers(0, 0xFFFF)
I32, U32 = st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1)
JUNK = st.binary(max_size=9)


@st.composite
def rows_of(draw: DrawFn, fre_type: int) -> list[Row]:
    starts = st.integers(0, (0xFF, 0xFFFF, 0xFFFFFFFF)[fre_type])
    rows = []
    for _ in range(draw(st.integers(0, 4))):
        size = draw(st.sampled_from([1, 2, 4]))
        words = draw(st.lists(st.integers(-(1 << 8 * size - 1), (1 << 8 * size) - 1), max_size=15))
        rows.append(row(draw(starts), draw(st.integers(0, 1)), words, size=size, mangled=draw(st.booleans())))
    return rows


@st.composite
def builders(draw: DrawFn) -> SFrameBuilder:
    """A section with arbitrary fields that can all be read."""
    version = draw(st.sampled_from([1, 2, 3]))
    builder = SFrameBuilder(
        version,
        order=draw(st.sampled_from(["little", "big"])),
        abi=draw(st.one_of(st.sampled_from([1, 2, 3, 4]), U8)),
        flags=draw(st.one_of(st.integers(0, 7), U8)),
        fixed_fp=draw(I8),
        fixed_ra=draw(I8),
        auxiliary=draw(JUNK),
        before_index=draw(JUNK),
        between=draw(JUNK),
        tail=draw(JUNK),
        rows_first=draw(st.booleans()),
        num_fres=draw(U32),
    )
    for number in range(draw(st.integers(0, 4))):
        raw = draw(st.integers(-(2**63), 2**63 - 1) if version == 3 else I32)
        fre_type = draw(st.integers(0, 2))
        shares = draw(st.none() if number == 0 else st.sampled_from([None, None, 0]))
        if shares is None:
            info = fre_type | draw(st.integers(0, 15)) << 4
            extra = {"info": info, "info2": draw(U8)} if version == 3 else {"info": info}
            rows = draw(rows_of(fre_type))
            options = {"fre_type": fre_type, "rep_size": draw(U8), "before": draw(JUNK), **extra}
        else:
            first = builder.functions[0]
            rows, options = (
                first.rows,
                {"fre_type": first.fre_type, "rep_size": draw(U8), "shares": 0, **first.overrides},
            )
        builder.function(
            0, draw(U32), rows, raw=raw, **({**options, "padding": draw(U16)} if version == 2 else options)
        )
    return builder


@settings(max_examples=examples(250), deadline=None)
@given(builders(), st.integers(0, 2**64 - 1))
def test_bytes_come_back(builder: SFrameBuilder, address: int) -> None:
    data, labels = builder.assemble()
    # functions that share rows may claim more than there is room for
    section = decode(data, address=address, faults=True)
    if section.functions.fault.any():
        return
    assert encode(section) == data
    assert encode(decode(bytearray(data))) == data
    count = [len(one.rows) for one in builder.functions]
    assert section.functions.rows.tolist() == count
    owners = [0 if one.shares is not None else number for number, one in enumerate(builder.functions)]
    places = [labels[f"fre{owners[number]}.{n}"] for number in range(len(count)) for n in range(count[number])]
    assert section.row_offsets().tolist() == places
    starts: list[Any] = [one.raw for one in builder.functions]
    assert section.functions.start.tolist() == starts
    base = [address + (section.field_offset(n) if builder.flags & 4 else 0) for n in range(len(count))]
    assert section.code_address.tolist() == [(a + b) % 2**64 for a, b in zip(base, starts, strict=True)]


@settings(max_examples=examples(100), deadline=None)
@given(builders())
def test_byte_order_there_and_back(builder: SFrameBuilder) -> None:
    data = builder.bytes()
    section = decode(data, faults=True)
    if section.functions.fault.any():
        return
    other: ByteOrder = "big" if builder.order == "little" else "little"
    turned = encode(with_byteorder(section, other))
    builder.order = other
    assert turned == builder.bytes()
    assert encode(with_byteorder(decode(turned), section.byteorder)) == data


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(builders(), min_size=1, max_size=4))
def test_pieces_of_concatenated_sections(parts: list[SFrameBuilder]) -> None:
    data, places = b"", []
    for builder in parts:
        builder.tail, builder.rows_first = b"", False
        data += b"\0" * (-len(data) % 8)
        places.append(len(data))
        data += builder.bytes()
    found = list(decode_all(data, faults=True))
    assert [position for position, _ in found] == places
    ends = [*places[1:], len(data)]
    for (position, section), end in zip(found, ends, strict=True):
        if not section.functions.fault.any():
            assert encode(section) == data[position:end]
