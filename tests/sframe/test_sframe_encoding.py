"""Sections are written in either byte order, and not where a field cannot hold a number."""

from __future__ import annotations

import pytest

from sframe.vectors import one_function
from sframebuilder import AMD64, SFrameBuilder, row
from walkback.base.errors import InexpressibleError
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode, with_byteorder

pytestmark = pytest.mark.kernel


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
