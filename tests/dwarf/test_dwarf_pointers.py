"""Encodings of pointers: where functions start, and how large they are."""

from __future__ import annotations

import pytest

from cfibuilder import (
    ABSPTR,
    ALIGNED,
    DATAREL,
    FUNCREL,
    INDIRECT,
    OMIT,
    PCREL,
    PCREL_SDATA4,
    SDATA2,
    SDATA4,
    SDATA8,
    SLEB128,
    TEXTREL,
    UDATA2,
    UDATA4,
    UDATA8,
    ULEB128,
    CfiBuilder,
)
from dwarf.entries import AT_START, BOTH, PUSH, places, read
from walkback.base.arch import ByteOrder
from walkback.dwarf.layout import EntryFault

pytestmark = pytest.mark.kernel
FORMS = [ABSPTR, ULEB128, UDATA2, UDATA4, UDATA8, SLEB128, SDATA2, SDATA4, SDATA8]


@BOTH
@pytest.mark.parametrize("base", [ABSPTR, PCREL, TEXTREL, DATAREL])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form:#x}")
def test_every_encoding_of_a_start(order: ByteOrder, base: int, form: int) -> None:
    # What it counts from lies below it, so that the unsigned forms can say it.
    builder = CfiBuilder(order=order, address=0x20, text=0x700, got=0x800)
    builder.fde(builder.cie(AT_START, encoding=base | form), 0x1234, 0x79)
    assert places(read(builder)) == [(0x1234, 0x79)]


@pytest.mark.parametrize("base", [PCREL, TEXTREL, DATAREL])
@pytest.mark.parametrize("form", [SLEB128, SDATA2, SDATA4, SDATA8])
def test_signed_distances_go_back(base: int, form: int) -> None:
    builder = CfiBuilder(address=0x5000, text=0x4000, got=0x3000)
    builder.fde(builder.cie(AT_START, encoding=base | form), 0x1234, 0x79)
    assert places(read(builder)) == [(0x1234, 0x79)]


def test_addresses_wrap_around_at_64_bits() -> None:
    builder = CfiBuilder(address=2**64 - 0x100)
    builder.fde(builder.cie(AT_START), 2**64 + 0x40, 16)
    assert places(read(builder)) == [(0x40, 16)]
    builder = CfiBuilder(address=0x100)
    builder.fde(builder.cie(AT_START), -0x40, 16)
    assert places(read(builder)) == [(2**64 - 0x40, 16)]


def test_the_size_has_the_form_of_the_start_and_counts_from_nothing() -> None:
    builder = CfiBuilder(address=0x5000, got=0x1000)
    builder.fde(builder.cie(AT_START, encoding=DATAREL | UDATA2), 0x1800, 0xFFF0)
    builder.fde(builder.cie(AT_START, encoding=PCREL | ULEB128), 0x6000, 2**40)
    assert places(read(builder)) == [(0x1800, 0xFFF0), (0x6000, 2**40)]


@pytest.mark.parametrize("address", range(0x1000, 0x1009))
def test_an_aligned_start(address: int) -> None:
    builder = CfiBuilder(address=address)
    builder.fde(builder.cie(AT_START, encoding=ALIGNED), 0x123456789, 0x20, PUSH)
    frames = read(builder)
    assert places(frames) == [(0x123456789, 0x20)]
    assert frames.row_offset.tolist() == [0, 1]


@pytest.mark.parametrize("encoding", [INDIRECT, INDIRECT | PCREL_SDATA4, INDIRECT | DATAREL | SDATA4])
def test_an_indirect_start_is_where_the_pointer_points(encoding: int) -> None:
    builder = CfiBuilder(address=0x5000, got=0x6000)
    builder.fde(builder.cie(AT_START, encoding=encoding), 0x7000, 16, PUSH)
    builder.fde(0, 0x7008, 16)
    frames = read(builder, pointer_at={0x7000: 0x123456}.get, faults=True)
    assert frames.fdes.start.tolist()[0] == 0x123456
    assert frames.fdes.fault.tolist() == [EntryFault.NONE, EntryFault.INDIRECT]
    assert frames.fdes.rows.tolist() == [2, 0]


def test_a_start_from_the_function_is_what_is_stored() -> None:
    builder = CfiBuilder()
    builder.fde(builder.cie(AT_START, encoding=FUNCREL | UDATA4), 0x1234, 16)
    assert places(read(builder)) == [(0x1234, 16)]


@pytest.mark.parametrize("encoding", [OMIT, 0x05, 0x08, 0x0D, 0x0F, 0x60, 0x70, PCREL | 0x0E])
def test_encodings_that_mean_nothing(encoding: int) -> None:
    builder = CfiBuilder(address=0x5000)
    builder.fde(builder.cie(AT_START, encoding=encoding), 0x7000, 16)
    assert read(builder, faults=True).fdes.fault.tolist() == [EntryFault.ENCODING]


@pytest.mark.parametrize("size", [2, 4])
def test_addresses_of_fewer_bytes(size: int) -> None:
    builder = CfiBuilder(eh=False)
    builder.fde(builder.cie(AT_START, version=4, address_size=size), 0xF234, 0x80, PUSH)
    frames = read(builder)
    assert frames.cies.address_size.tolist() == [size]
    assert places(frames) == [(0xF234, 0x80)]
    assert frames.row_offset.tolist() == [0, 1]
