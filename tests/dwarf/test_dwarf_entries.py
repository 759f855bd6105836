"""CIEs and FDEs: their layouts in both kinds of sections, encodings of pointers, augmentations, and what is refused."""

from __future__ import annotations

from typing import Any

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
    cfa,
    expr,
)
from walkback.base.arch import AARCH64, AMD64, ByteOrder, Machine
from walkback.base.errors import DwarfError
from walkback.dwarf.decoding import decode
from walkback.dwarf.frames import Frames
from walkback.dwarf.layout import EntryFault
from walkback.dwarf.rules import to_table

pytestmark = pytest.mark.kernel

AT_START = cfa("def_cfa 7 8; offset 16 1")
PUSH = cfa("advance_loc 1; def_cfa_offset 16")
BOTH = pytest.mark.parametrize("order", ["little", "big"])
KINDS = pytest.mark.parametrize("eh", [True, False], ids=["eh_frame", "debug_frame"])
FORMS = [ABSPTR, ULEB128, UDATA2, UDATA4, UDATA8, SLEB128, SDATA2, SDATA4, SDATA8]


def read(builder: CfiBuilder, machine: Machine = AMD64, **options: Any) -> Frames:
    data = builder.bytes()
    known: dict[str, Any] = {
        "address": builder.address,
        "byteorder": builder.order,
        "text": builder.text,
        "got": builder.got,
    }
    return decode(data, machine, eh=builder.eh, **known, **options)


def places(frames: Frames) -> list[tuple[int, int]]:
    return list(zip(frames.fdes.start.tolist(), frames.fdes.size.tolist(), strict=True))


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


# Encodings


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


# Augmentations


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
    assert frames.fdes.lsda.tolist() == [b"L" in letters, 0]
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
    assert frames.fdes.lsda.tolist() == [b"L" in letters]


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


# Faults


def broken(name: str) -> CfiBuilder:
    """A section whose third FDE has a fault; the others are sound."""
    builder = CfiBuilder(address=0x100)
    good = builder.cie(AT_START)
    builder.fde(good, 0x1000, 16)
    builder.fde(good, 0x2000, 16, PUSH)
    encoding, program = PCREL_SDATA4, PUSH
    options: dict[str, Any] = {}
    cie: dict[str, Any] = {}
    match name:
        case "CUT_OFF":
            options = {"data_length": 200}
        case "CIE_POINTER":
            options = {"pointer": 4}
        case "CIE_FAULT":
            cie = {"version": 2}
        case "ENCODING":
            encoding = OMIT
        case "INSTRUCTION":
            program = PUSH + b"\x3f"
        case "RESTORE":
            program = PUSH + cfa("restore_state")
        case "LOCATION":
            program = cfa("advance_loc4 0xffffffff; advance_loc4 0xffffffff")
        case "INDIRECT":
            encoding |= INDIRECT
    builder.fde(builder.cie(AT_START, encoding=encoding, **cie), 0x3000, 16, program, **options)
    builder.fde(good, 0x4000, 16)
    return builder


OF_FUNCTIONS = ["CUT_OFF", "CIE_POINTER", "CIE_FAULT", "ENCODING", "INSTRUCTION", "RESTORE", "LOCATION", "INDIRECT"]


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_fault_is_told_in_one_line_with_its_place_and_rule(name: str) -> None:
    builder = broken(name)
    with pytest.raises(DwarfError) as caught:
        read(builder)
    error = caught.value
    assert error.offset == builder.assemble()[1]["fde2"]
    assert error.rule == "cfi-" + name.lower().replace("_", "-")
    words = EntryFault[name].words
    assert str(error) == f"offset {error.offset:#x}: FDE 2: {words} [{error.rule}]"
    assert len(str(error).splitlines()) == 1


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_a_fault_hides_nothing_else(name: str) -> None:
    frames = read(broken(name), faults=True)
    assert frames.fdes.fault.tolist() == [0, 0, EntryFault[name], 0]
    table = to_table(frames)
    assert table.range_rows.tolist() == [1, 2, 1, 1]
    texts = [table.rule(int(row)).text(AMD64) for row in table.range_first_row]
    assert texts[2].startswith("CFA inexpressible (the rows cannot be read)")
    assert {texts[0], texts[1], texts[3]} == {"CFA = rsp+8, RA = *(CFA-8), FP unchanged"}


@pytest.mark.parametrize(
    ("fault", "options"),
    [
        (EntryFault.CIE_VERSION, {"version": 2}),
        (EntryFault.CIE_VERSION, {"version": 5}),
        (EntryFault.CIE_VERSION, {"version": 0xFF}),
        (EntryFault.ADDRESS_SIZE, {"version": 4, "address_size": 3}),
        (EntryFault.ADDRESS_SIZE, {"version": 4, "address_size": 16}),
        (EntryFault.SEGMENT, {"version": 4, "segment_size": 2}),
        (EntryFault.ENCODING, {"augmentation": b"zPR", "data": bytes([0x0D]) + bytes(12)}),
        (EntryFault.CUT_OFF, {"data_length": 1000}),
        (EntryFault.CUT_OFF, {"data_length": 0}),
        (EntryFault.CUT_OFF, {"augmentation": b"zRLP", "data": bytes([PCREL_SDATA4])}),
    ],
)
def test_faults_of_a_cie(fault: EntryFault, options: dict[str, Any]) -> None:
    builder = CfiBuilder()
    builder.fde(builder.cie(AT_START, **options), 0x1000, 16)
    frames = read(builder, faults=True)
    assert frames.cies.fault.tolist() == [fault]
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_FAULT]
    assert frames.fdes.rows.tolist() == [0]
    with pytest.raises(DwarfError, match="its CIE cannot be read"):
        read(builder)


@pytest.mark.parametrize("program", ["restore_state", f"def_cfa_expression {expr('breg7 8')}"])
def test_a_fault_in_the_program_of_a_cie(program: str) -> None:
    builder = CfiBuilder()
    whole = cfa(program)
    builder.cie(AT_START + (whole if program == "restore_state" else whole[:-1]), padding=1)
    builder.fde(0, 0x1000, 16)
    frames = read(builder, faults=True)
    assert (frames.cies.fault[0], frames.fdes.fault[0]) in {
        (EntryFault.RESTORE, EntryFault.CIE_FAULT),
        (EntryFault.INSTRUCTION, EntryFault.CIE_FAULT),
    }


def test_every_cut_of_a_cie_is_told() -> None:
    builder = CfiBuilder()
    builder.cie(AT_START, augmentation=b"zPLR", personality=(UDATA8, 1), padding=1)
    data, labels = builder.assemble()
    for length in range(labels["cie0.version"] + 1, labels["cie0.program"]):
        cut = (length - 4).to_bytes(4, "little") + data[4:length]
        frames = decode(cut, AMD64, faults=True)
        assert frames.cies.fault.tolist() == [EntryFault.CUT_OFF], length


def test_every_cut_of_a_function_is_told() -> None:
    for wide in (False, True):
        builder = CfiBuilder(wide=wide)
        builder.fde(builder.cie(AT_START, augmentation=b"zLR", lsda=UDATA4), 0x100, 16, lsda=4, padding=1)
        data, labels = builder.assemble()
        first = labels["fde0"]
        for length in range(labels["fde0.start"], labels["fde0.program"]):
            size = (length - labels["fde0.id"]).to_bytes(8 if wide else 4, "little")
            field = labels["fde0.id"] - len(size)
            cut = data[:field] + size + data[field + len(size) : length]
            frames = decode(cut, AMD64, faults=True)
            assert frames.fdes.position.tolist() == [first]
            assert frames.fdes.fault.tolist() == [EntryFault.CUT_OFF], length


@KINDS
@pytest.mark.parametrize("length", [1, 3, 21, 1000, 0xFFFFFFEF, 0xFFFFFFF0, 0xFFFFFFFE])
def test_an_entry_that_goes_on_after_the_end_stops_the_reading(eh: bool, length: int) -> None:
    builder = CfiBuilder(eh=eh, address=0x100)
    builder.fde(builder.cie(AT_START), 0x1000, 16)
    place = builder.assemble()[1]["end"]
    data = builder.bytes() + length.to_bytes(4, "little") + bytes(20)
    with pytest.raises(DwarfError) as caught:
        decode(data, AMD64, eh=eh, address=0x100)
    assert (caught.value.offset, caught.value.rule) == (place, "cfi-length")
    frames = decode(data, AMD64, eh=eh, address=0x100, faults=True)
    assert (frames.stop, places(frames)) == (place, [(0x1000, 16)])


@pytest.mark.parametrize("length", [21, 2**32, 2**63, 2**64 - 1])
def test_a_wide_length_beyond_the_end(length: int) -> None:
    data = b"\xff\xff\xff\xff" + length.to_bytes(8, "little") + bytes(20)
    assert decode(data, AMD64, faults=True).stop == 0


@pytest.mark.parametrize("tail", [1, 2, 3])
def test_bytes_after_the_last_entry(tail: int) -> None:
    builder = CfiBuilder(address=0x100)
    builder.fde(builder.cie(AT_START), 0x1000, 16)
    assert decode(builder.bytes() + bytes(tail), AMD64, address=0x100, faults=True).stop == len(builder.bytes())


@KINDS
@pytest.mark.parametrize("pointer", [1, 4, 0x18, 0x7FFFFFFF, 0xFFFFFFF0])
def test_a_pointer_to_no_cie(eh: bool, pointer: int) -> None:
    builder = CfiBuilder(eh=eh)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16, identifier=pointer)
    builder.fde(0, 0x1000, 16)
    assert read(builder, faults=True).fdes.fault.tolist() == [EntryFault.CIE_POINTER, 0]


def test_a_function_is_no_cie() -> None:
    builder = CfiBuilder(eh=False)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16)
    builder.fde(0, 0x1000, 16, pointer=builder.assemble()[1]["fde0"])
    assert read(builder, faults=True).fdes.fault.tolist() == [0, EntryFault.CIE_POINTER]


def test_functions_without_any_cie() -> None:
    builder = CfiBuilder(eh=False)
    builder.cie(AT_START)
    builder.fde(0, 0x1000, 16, pointer=0)
    builder.entries.pop(0)
    frames = read(builder, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.CIE_POINTER]
    assert len(to_table(frames)) == 1


def test_a_number_of_more_than_64_bits_is_cut_off() -> None:
    builder = CfiBuilder()
    builder.cie(AT_START)
    for operand in (b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x01"):
        builder.fde(0, 0x1000, 16, b"\x0e" + operand)
    builder.fde(0, 0x1000, 16, b"\x0e" + b"\x90" + b"\x80" * 12 + b"\0")  # as long, and small
    frames = read(builder, faults=True)
    assert frames.fdes.fault.tolist() == [EntryFault.INSTRUCTION, EntryFault.INSTRUCTION, EntryFault.NONE]
    table = to_table(frames)
    assert table.rule(int(table.range_first_row[2])).cfa.offset == 16


def test_aarch64_keys_are_those_of_the_cie() -> None:
    builder = CfiBuilder(address=0x100)
    one = builder.cie(cfa("def_cfa 31 0"), augmentation=b"zR", ra=30)
    other = builder.cie(cfa("def_cfa 31 0"), augmentation=b"zRB", ra=30)
    for number, cie in enumerate([one, other, one]):
        builder.fde(cie, 0x100 * number, 16)
    assert to_table(read(builder, AARCH64)).range_pauth_key.tolist() == [0, 1, 0]
