"""Augmentations of a CIE: their letters, and data that nobody asks for."""

from __future__ import annotations

import pytest

from cfibuilder import (
    ABSPTR,
    ALIGNED,
    INDIRECT,
    OMIT,
    PCREL,
    PCREL_SDATA4,
    SDATA4,
    SDATA8,
    SLEB128,
    UDATA2,
    UDATA4,
    UDATA8,
    ULEB128,
    CfiBuilder,
)
from dwarf.entries import AT_START, PUSH, places, read
from walkback.base.arch import AMD64
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table

pytestmark = pytest.mark.kernel


def test_no_augmentation_has_absolute_pointers() -> None:
    builder = CfiBuilder(address=0x5000)
    builder.fde(builder.cie(AT_START, augmentation=b""), 0x1234567890, 16, PUSH)
    frames = read(builder)
    assert places(frames) == [(0x1234567890, 16)]
    assert (frames.cies.sized.tolist(), frames.cies.fde_encoding.tolist()) == ([0], [ABSPTR])
    assert frames.row_offset.tolist() == [0, 1]


def test_the_augmentation_eh_has_a_pointer() -> None:
    builder = CfiBuilder(address=0x5000)
    builder.fde(builder.cie(AT_START, augmentation=b"eh", eh_pointer=0x7A7A7A7A7A7A7A7A), 0x1234, 16, PUSH)
    frames = read(builder)
    assert places(frames) == [(0x1234, 16)]
    assert to_table(frames).rule(0).text(AMD64) == "CFA = rsp+8, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize("letters", [b"z", b"zR", b"zRS", b"zSR", b"zPLR", b"zPLRS", b"zRB", b"zRG", b"zRLPSBG"])
def test_letters_of_sized_augmentations(letters: bytes) -> None:
    builder = CfiBuilder(address=0x5000)
    personality = (INDIRECT | PCREL | SDATA4, 0x4000)
    cie = builder.cie(AT_START, augmentation=letters, lsda=PCREL_SDATA4, personality=personality)
    builder.fde(cie, 0x1234, 16, PUSH, lsda=0x99)
    builder.fde(cie, 0x2234, 16, PUSH)
    frames = read(builder)
    cies, data = frames.cies, builder.assemble()[0]
    assert places(frames) == [(0x1234, 16), (0x2234, 16)]
    assert frames.row_offset.tolist() == [0, 1, 0, 1]
    assert cies.sized.tolist() == [1]
    assert cies.signal.tolist() == [b"S" in letters]
    assert cies.b_key.tolist() == [b"B" in letters]
    assert cies.fde_encoding.tolist() == [PCREL_SDATA4 if b"R" in letters else ABSPTR]
    assert cies.lsda_encoding.tolist() == [PCREL_SDATA4 if b"L" in letters else OMIT]
    assert (frames.fdes.lsda != 0).tolist() == [b"L" in letters, False]
    place = int(cies.personality[0])
    assert place == -1 if b"P" not in letters else data[place : place + 4] == (0x4000).to_bytes(4, "little")
    table = to_table(frames)
    assert table.range_signal.tolist() == [b"S" in letters] * 2
    assert table.range_pauth_key.tolist() == [b"B" in letters] * 2


@pytest.mark.parametrize("letters", [b"R", b"RS", b"PLR", b"SB"])
def test_letters_without_their_size(letters: bytes) -> None:
    builder = CfiBuilder(address=0x5000)
    cie = builder.cie(AT_START, augmentation=letters, lsda=UDATA4, personality=(UDATA4, 7))
    builder.fde(cie, 0x1234, 16, PUSH, lsda=0x99)
    frames = read(builder)
    assert places(frames) == [(0x1234, 16)]
    assert frames.row_offset.tolist() == [0, 1]
    assert frames.fdes.lsda.tolist() == [0x99 if b"L" in letters else 0]


@pytest.mark.parametrize("form", [ABSPTR, ULEB128, UDATA2, UDATA4, UDATA8, SLEB128, SDATA8])
def test_a_personality_of_any_encoding_is_passed_over(form: int) -> None:
    builder = CfiBuilder()
    builder.fde(builder.cie(AT_START, augmentation=b"zPR", personality=(form, 0x1234)), 0x1234, 16, PUSH)
    frames = read(builder)
    assert places(frames) == [(0x1234, 16)]
    assert frames.cies.fde_encoding.tolist() == [PCREL_SDATA4]


@pytest.mark.parametrize("address", range(8))
def test_an_aligned_personality(address: int) -> None:
    builder = CfiBuilder(address=address)
    builder.cie(AT_START, augmentation=b"zPR", data=b"")
    place = address + builder.assemble()[1]["cie0.data"] + 1
    builder.entries.clear()
    data = bytes([ALIGNED]) + bytes(-place % 8) + bytes(8) + bytes([PCREL_SDATA4])
    builder.cie(AT_START, augmentation=b"zPR", data=data)
    builder.fde(1, 0x1234, 16, pointer=0)
    builder.cies[1].options["encoding"] = PCREL_SDATA4
    assert places(read(builder)) == [(0x1234, 16)]


def test_a_personality_can_be_left_out() -> None:
    builder = CfiBuilder()
    builder.fde(builder.cie(AT_START, augmentation=b"zPR", personality=(OMIT, 0)), 0x1234, 16)
    frames = read(builder)
    assert (frames.cies.personality.tolist(), places(frames)) == ([-1], [(0x1234, 16)])


def test_unknown_letters_of_a_sized_augmentation_are_passed_over() -> None:
    builder = CfiBuilder(address=0x5000)
    cie = builder.cie(AT_START, augmentation=b"zRx", data=bytes([PCREL_SDATA4, 1, 2, 3]))
    builder.fde(cie, 0x1234, 16, PUSH, data=b"more")
    frames = read(builder)
    assert places(frames) == [(0x1234, 16)]
    assert frames.row_offset.tolist() == [0, 1]


@pytest.mark.parametrize("letters", [b"x", b"Rx", b"armcc+", b"e", b"ehx", b"eH"])
def test_unknown_letters_without_a_size_are_a_fault(letters: bytes) -> None:
    builder = CfiBuilder(address=0x5000)
    builder.fde(builder.cie(AT_START, augmentation=letters), 0x1234, 16)
    frames = read(builder, faults=True)
    assert frames.cies.fault.tolist() == [EntryFault.AUGMENTATION]
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_FAULT]


def test_more_augmentation_data_than_letters_use_are_passed_over() -> None:
    builder = CfiBuilder(address=0x5000)
    builder.fde(builder.cie(AT_START, data=bytes([PCREL_SDATA4]) + b"unknown"), 0x1234, 16, PUSH, data=b"unknown")
    assert read(builder).row_offset.tolist() == [0, 1]
