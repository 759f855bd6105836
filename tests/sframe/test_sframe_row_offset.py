"""Where rows stand: of one row the same as of all, and where the builder put it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import examples
from sframebuilder import Row, SFrameBuilder, row
from walkback.base.arch import ByteOrder
from walkback.sframe.decoding import decode

pytestmark = pytest.mark.kernel

ROW = st.builds(
    row,
    st.integers(0, 255),
    st.integers(0, 1),
    st.lists(st.integers(-100, 100), max_size=15),
    size=st.sampled_from([1, 2, 4]),
)
FUNCTION = st.tuples(st.integers(0, 2), st.lists(ROW, max_size=20), st.binary(max_size=3))


@settings(max_examples=examples(150), deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from(["little", "big"]),
    st.lists(FUNCTION, max_size=6),
    st.binary(max_size=8),
    st.booleans(),
    st.booleans(),
)
def test_the_place_of_one_row_is_that_among_all(
    version: int,
    order: ByteOrder,
    functions: list[tuple[int, list[Row], bytes]],
    bytes_between: bytes,
    rows_first: bool,
    sharing: bool,
) -> None:
    builder = SFrameBuilder(version, order=order, between=bytes_between, auxiliary=b"aux", rows_first=rows_first)
    for number, (kind, rows, before) in enumerate(functions):
        builder.function(100 * number, 100, rows, fre_type=kind, before=before)
    if functions and sharing:
        kind, rows, _ = functions[0]
        builder.function(9000, 100, rows, fre_type=kind, shares=0)
    data, labels = builder.assemble()
    section = decode(data)
    offsets = section.row_offsets().tolist()
    assert len(offsets) == sum(len(function.rows) for function in builder.functions)
    for number, function in enumerate(builder.functions):
        owner = number if function.shares is None else function.shares
        first = int(section.functions.first_row[number])
        for position in range(len(function.rows)):
            place = labels[f"fre{owner}.{position}"]
            assert (section.row_offset(number, first + position), offsets[first + position]) == (place, place)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_rows_before_one_that_cannot_be_read_have_their_places(version: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0, 100, [row(0, 1, [8]), row(1, 1, [16, -16]), row(2, 1, info=0x63)])
    builder.function(100, 100, [row(0, 1, [8, 8], size=4), row(9, 1, [16])], fre_type=1)
    data, labels = builder.assemble()
    section = decode(data, faults=True)
    assert section.functions.rows.tolist() == [2, 2]
    places = [labels[f"fre{function}.{position}"] for function in (0, 1) for position in (0, 1)]
    assert section.row_offsets().tolist() == places
    assert [
        section.row_offset(function, 2 * function + position) for function in (0, 1) for position in (0, 1)
    ] == places
