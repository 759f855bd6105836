"""ORC tables: each layout, what is refused, and what the entries become in the neutral table and back."""

from __future__ import annotations

import numpy as np
import pytest

import walkback
from elfbuilder import ElfBuilder
from orc.orctables import BP, CALL, FUNCTION, HASHES, PREV_SP, SP, Entry, kernel, module
from walkback.base.errors import InexpressibleError, OrcError
from walkback.orc import Layout, decode, encode, from_table, to_table
from walkback.orc.files import OrcSource
from walkback.orc.layout import Base, Kind, layout_of_release

END, REGS, PARTIAL, SIGNAL = 1, 3, 4, 8
BP_INDIRECT, SP_INDIRECT, R10, R13, DI, DX = 8, 9, 6, 7, 3, 2
"""Numbers of Linux 6.4."""
TEXT = 0xFFFFFFFF81000000


def source_of(contents: bytes) -> OrcSource:
    [source] = walkback.orc.read(contents)
    return source


def rules_of(*entries: Entry) -> list[str]:
    """The rule of each entry but the last."""
    table = source_of(kernel(entries)).table
    _, rows = table.find_many([one.address for one in entries[:-1]])
    return [table.rule(row).text("AMD64") for row in rows.tolist()]


def test_a_module_has_functions_at_its_symbols() -> None:
    table = source_of(bytes(module().build())).table
    assert table.columns()["rule"].tolist() == [
        "CFA = rsp+8, RA = *(CFA-8), FP unchanged",
        "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)",
        "CFA = rsp+8, RA = *(CFA-8), FP unchanged",
    ]
    assert table.range_size.tolist() == [31]


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        (Entry(TEXT, 16, sp=BP, rest=CALL), "CFA = rbp+16, RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, 8, -24, sp=SP, bp=BP, rest=CALL), "CFA = rsp+8, RA = *(CFA-8), FP = *(rbp-24)"),
        (Entry(TEXT, 0, sp=R10, rest=CALL), "CFA = r10, RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, 8, sp=R13, rest=CALL), "CFA = r13+8, RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, 8, sp=DI, rest=CALL), "CFA = rdi+8, RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, 8, sp=DX, rest=CALL), "CFA = rdx+8, RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, -8, -16, sp=BP_INDIRECT, bp=PREV_SP, rest=CALL), "CFA = *(rbp-8), RA = *(CFA-8), FP = *(CFA-16)"),
        (Entry(TEXT, 0, sp=SP_INDIRECT, rest=CALL), "CFA = *(rsp), RA = *(CFA-8), FP unchanged"),
        (Entry(TEXT, 0, sp=SP, rest=REGS), "CFA = *(rsp+152), RA = *(rsp+128), FP = *(rsp+32)"),
        (Entry(TEXT, 8, sp=SP, rest=PARTIAL), "CFA = *(rsp+32), RA = *(rsp+8), FP unchanged"),
        (Entry(TEXT, 8, -40, sp=SP, bp=PREV_SP, rest=PARTIAL), "CFA = *(rsp+32), RA = *(rsp+8), FP = *(rsp-32)"),
        (Entry(TEXT, 8, -40, sp=SP, bp=BP, rest=PARTIAL), "CFA = *(rsp+32), RA = *(rsp+8), FP = *(rbp-40)"),
        (Entry(TEXT, rest=END), "outermost frame"),
    ],
)
def test_each_kind_of_entry_is_a_rule_and_comes_back(entry: Entry, rule: str) -> None:
    source = source_of(kernel((entry, Entry(TEXT + 16))))
    assert rules_of(entry, Entry(TEXT + 16)) == [rule]
    assert encode(from_table(source.table, source.layout)).entries == bytes(source.data)


def test_a_frame_pointer_behind_saved_registers_counts_from_these() -> None:
    """As the kernel has it; the CFA is the stack pointer among them. No kernel has such an entry."""
    entries = (Entry(TEXT, 16, 8, sp=SP, bp=PREV_SP, rest=REGS), Entry(TEXT + 16))
    source = source_of(kernel(entries))
    assert rules_of(*entries) == ["CFA = *(rsp+168), RA = *(rsp+144), FP = *(rsp+24)"]
    assert to_table(from_table(source.table, source.layout)).rule_texts() == rules_of(*entries)


@pytest.mark.parametrize(
    "entry",
    [Entry(TEXT, 8, sp=SP_INDIRECT, rest=CALL), Entry(TEXT, 8, sp=R10, bp=R13, rest=CALL), Entry(TEXT, rest=CALL)],
)
def test_what_no_rule_can_say_is_inexpressible(entry: Entry) -> None:
    source = source_of(kernel((entry, Entry(TEXT + 16))))
    assert "inexpressible" in rules_of(entry, Entry(TEXT + 16))[0]
    with pytest.raises(InexpressibleError, match=r"no entry of this layout can say the rule at 0xffffffff81000000"):
        from_table(source.table, source.layout)
    assert from_table(source.table, source.layout, leave_out=True).kind.tolist() == [Kind.UNDEFINED]


def test_signal_frames_and_gaps_begin_functions_of_their_own() -> None:
    entries = (
        Entry(TEXT, 8, sp=SP, rest=CALL),
        Entry(TEXT + 16, 0, sp=SP, rest=REGS | SIGNAL),
        Entry(TEXT + 32, 8, sp=SP, rest=CALL),
        Entry(TEXT + 48),
        Entry(TEXT + 64, 8, sp=SP, rest=CALL),
        Entry(TEXT + 80),
    )
    source = source_of(kernel(entries))
    assert (source.table.range_start - np.uint64(TEXT)).tolist() == [0, 16, 32, 64]
    assert source.table.range_size.tolist() == [16, 16, 16, 16]
    assert source.table.range_signal.tolist() == [False, True, False, False]
    assert encode(from_table(source.table, source.layout)).entries == bytes(source.data)


def test_the_end_of_code_does_not_count_where_other_code_begins() -> None:
    one, two = Entry(TEXT, 8, sp=SP, rest=CALL), Entry(TEXT + 16, 16, sp=SP, rest=CALL)
    end = Entry(TEXT + 16)
    for order in ((one, end, two), (one, two, end)):
        table = source_of(kernel((*order, Entry(TEXT + 32)))).table
        assert table.range_size.tolist() == [32]
        assert table.row_offset.tolist() == [0, 16]


def test_the_entries_need_not_be_in_order() -> None:
    entries = (Entry(TEXT + 16, 16, sp=SP, rest=CALL), Entry(TEXT + 32), Entry(TEXT, 8, sp=SP, rest=CALL))
    source = source_of(kernel(entries))
    assert source.table.row_offset.tolist() == [0, 16]
    assert encode(source.entries, address=TEXT + 0x2000).places == bytes(source.places)


def test_every_layout_is_read_and_written() -> None:
    """The same frame in the numbers of each."""
    numbers = {  # the stack pointer, the CFA, and the bits for a call
        Layout.LINUX_4_14: (5, 1, 0),
        Layout.LINUX_6_3: (5, 1, 0),
        Layout.LINUX_6_4: (5, 1, 2),
        Layout.LINUX_7_2: (3, 8, 2),
    }
    for layout, (sp, cfa, call) in numbers.items():
        data = Entry(0, 24, -16, sp=sp, bp=cfa, rest=call).bytes() + Entry(0).bytes()
        table = decode(data, bytes(8), layout)
        assert (table.sp_base[0], table.bp_base[0], table.kind[0]) == (Base.SP, Base.PREV_SP, Kind.CALL)
        assert table.kind[1] == Kind.UNDEFINED
        assert encode(table).entries == data
    signal = Entry(0, 8, sp=5, rest=1 << 2).bytes()
    assert decode(signal, bytes(4), Layout.LINUX_6_3).signal.tolist() == [True]
    ends = {Layout.LINUX_4_14: 1 << 2, Layout.LINUX_6_3: 1 << 3, Layout.LINUX_6_4: 1, Layout.LINUX_7_2: 1}
    for layout, bits in ends.items():
        data = Entry(0, rest=bits).bytes()
        table = decode(data, bytes(4), layout)
        assert table.kind.tolist() == [Kind.END_OF_STACK]
        assert encode(table).entries == data


@pytest.mark.parametrize("version", HASHES)
def test_the_header_names_the_layout(version: str) -> None:
    source = source_of(bytes(module(header=version).build()))
    assert source.layout.name == f"LINUX_{version.replace('.', '_')}"


@pytest.mark.parametrize(
    ("release", "layout"),
    [
        ("4.14.0", Layout.LINUX_4_14),
        ("5.10.0-32-amd64", Layout.LINUX_4_14),
        ("6.2.16-generic", Layout.LINUX_4_14),
        ("6.3.0", Layout.LINUX_6_3),
        ("5.14.0-503.el9.x86_64", Layout.LINUX_4_14),
        ("5.14.0-517.el9.x86_64", Layout.LINUX_6_4),
        ("5.14.0-570.12.1.el9_6.x86_64", Layout.LINUX_6_4),
        ("4.13.0", None),
        ("6.4.0", None),
        ("6.12.0", None),
        ("7.0", None),
        ("none", None),
    ],
)
def test_a_release_without_header_names_its_layout_or_none(release: str, layout: Layout | None) -> None:
    assert layout_of_release(release) is layout


@pytest.mark.parametrize(
    ("elf", "message"),
    [
        (module(header="00" * 20), r"\.orc_header: it names a layout that is not known \[orc-layout\]"),
        (module(header=None), r"'6\.4\.0' is no kernel from 4\.14 to 6\.3"),
        (module(header=None, release=None), r"no \.orc_header, and no kernel release \[orc-layout\]"),
    ],
)
def test_a_layout_that_is_not_known_is_refused(elf: ElfBuilder, message: str) -> None:
    source = source_of(bytes(elf.build()))
    with pytest.raises(OrcError, match=message):
        _ = source.entries


@pytest.mark.parametrize(
    ("entries", "places", "message"),
    [
        (bytes(7), bytes(4), r"offset 0x6: 7 bytes are no whole number of entries.* \[orc-size\]"),
        (bytes(12), bytes(4), r"there are 2 entries and 4 bytes for their places.* \[orc-size\]"),
        (bytes(6) + bytes([0, 0, 0, 0, 0, 0x80]), bytes(8), r"offset 0x6: entry 1 sets bits.* \[orc-bits\]"),
        (Entry(0, sp=10, rest=CALL).bytes(), bytes(4), r"entry 0 names a register.* \[orc-register\]"),
        (Entry(0, bp=15, rest=CALL).bytes(), bytes(4), r"entry 0 names a register.* \[orc-register\]"),
        (Entry(0, sp=SP, rest=7).bytes(), bytes(4), r"entry 0 has a type.* \[orc-type\]"),
    ],
)
def test_damage_is_an_error_with_its_place(entries: bytes, places: bytes, message: str) -> None:
    with pytest.raises(OrcError, match=message):
        decode(entries, places, Layout.LINUX_6_4)


@pytest.mark.parametrize("rest", [1 << 2, 1], ids=["end", "type"])
def test_old_entries_that_contradict_themselves_are_refused(rest: int) -> None:
    sp = SP if rest == 1 << 2 else 0
    with pytest.raises(OrcError, match=r"\[orc-type\]"):
        decode(Entry(0, sp=sp, rest=rest).bytes(), bytes(4), Layout.LINUX_4_14)


def test_an_entry_without_relocation_is_refused() -> None:
    elf = module()
    [relocations] = (one for one in elf.sections if one.name.startswith(".rela"))
    relocations.data = relocations.data[:-24]
    with pytest.raises(OrcError, match=r"no relocation gives the place of entry 3 \[orc-place\]"):
        _ = source_of(bytes(elf.build())).entries


@pytest.mark.parametrize("place", [65, 1 << 30, -4])
def test_an_entry_of_no_code_of_its_section_is_refused(place: int) -> None:
    content = bytes(module((*FUNCTION[:-1], Entry(place))).build())
    with pytest.raises(OrcError, match=r"the place of entry 3 is in no section \[orc-place\]"):
        _ = source_of(content).entries


def test_only_amd64_has_entries() -> None:
    builder = walkback.sframe.SectionBuilder("AArch64")
    builder.function(0x1000, 32, ["CFA = sp"])
    with pytest.raises(InexpressibleError, match="ORC tables are for AMD64, not AArch64"):
        from_table(builder.table(), Layout.LINUX_6_4)


def test_offsets_and_registers_beyond_the_entry_are_refused() -> None:
    for rule in ("CFA = rsp+40000", "CFA = rsi+8", "CFA = rsp+8, FP = *(rsi)", "CFA = rsp+8, RA = *(CFA-16)"):
        builder = walkback.sframe.SectionBuilder("AMD64")
        builder.function(0x1000, 32, [rule])
        with pytest.raises(InexpressibleError, match="no entry of this layout"):
            from_table(builder.table(), Layout.LINUX_6_4)
    builder = walkback.sframe.SectionBuilder("AMD64")
    builder.function(0x1000, 32, ["CFA = rax+8"])
    with pytest.raises(InexpressibleError, match="no entry of this layout"):
        from_table(builder.table(), Layout.LINUX_6_4)
    assert from_table(builder.table(), Layout.LINUX_7_2).sp_base.tolist()[0] == Base.AX


def test_a_place_too_far_away_is_refused() -> None:
    builder = walkback.sframe.SectionBuilder("AMD64")
    builder.function(0x1000, 32, ["CFA = rsp+8"])
    with pytest.raises(InexpressibleError, match="0x1000 is too far away from 0x100000000"):
        encode(from_table(builder.table(), Layout.LINUX_6_4), address=1 << 32)


@pytest.mark.whole
def test_random_entries_come_back_or_are_refused() -> None:
    """Whatever the bits, what is read is written again; and the table of it finds what a plain search finds."""
    chance = np.random.default_rng(1)
    read = 0
    for layout in Layout:
        for _ in range(300):
            count = int(chance.integers(1, 12))
            data = chance.integers(0, 256, 6 * count, np.uint8)
            data[4::6] = chance.integers(0, 10, count) | chance.integers(0, 10, count) << 4
            data[5::6] &= chance.integers(0, 16, count, np.uint8)
            places = np.sort(chance.integers(0, 200, count)).astype("<i4") - 4 * np.arange(count, dtype="<i4") + 4096
            try:
                table = decode(data.tobytes(), places.tobytes(), layout)
            except OrcError:
                continue
            read += 1
            encoded = encode(table)
            assert (encoded.entries, encoded.places) == (data.tobytes(), places.tobytes())
            found = to_table(table, np.unique(chance.integers(4096, 4296, 5)).astype(np.uint64))
            for pc in range(4090, 4300):
                before = table.address[table.address <= pc]
                latest = np.flatnonzero(table.address == before.max(initial=0)).tolist()
                described = [number for number in latest if table.kind[number] != Kind.UNDEFINED]
                row = found.find(pc)
                assert (row is not None) == bool(described and pc < table.address[-1])
                if row is not None:
                    assert row.signal == table.signal[described[-1]]
    assert read > 100
