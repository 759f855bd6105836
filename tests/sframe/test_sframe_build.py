"""What is put into a section comes out of it: at every address the same rule, in every version, wherever it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from effort import examples
from sframe.functionlists import KINDS, TOP, check, collect, compare, function_lists
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder
from walkback.base.errors import InexpressibleError
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.building import build
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode, with_byteorder
from walkback.sframe.planning import refusals
from walkback.sframe.rules import to_table
from walkback.sframe.words import Refusal
from walkback.table.rule import Part, PartKind, Rule

pytestmark = pytest.mark.kernel


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_near_functions(data: DataObject) -> None:
    machine, version = data.draw(st.sampled_from(KINDS))
    starts, sizes = st.integers(0x1000, 0x8000), st.one_of(st.integers(0, 400), st.integers(0, 0x20000))
    functions = data.draw(function_lists(machine, version, starts, sizes))
    pcrel = data.draw(st.sampled_from([None, False] if version == 1 else [None, False, True]))
    order = data.draw(st.sampled_from([None, "little", "big"]))
    address = data.draw(st.sampled_from([0, 0x400, 0x1234, 0x20000, 0x7FFF0000]))
    check(machine, version, functions, pcrel=pcrel, byteorder=order, address=address)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_functions_anywhere(data: DataObject) -> None:
    machine = data.draw(st.sampled_from([AMD64, AARCH64, S390X]))
    anywhere = st.one_of(
        st.integers(0, TOP - 1),
        st.integers(TOP - 500, TOP - 1),
        st.integers(2**63 - 200, 2**63 + 200),
        st.integers(0, 99),
    )
    sizes = st.one_of(st.integers(0, 400), st.integers(0, 2**32 - 1))
    functions = data.draw(function_lists(machine, 3, anywhere, sizes))
    check(machine, 3, functions, address=data.draw(anywhere), pcrel=data.draw(st.sampled_from([None, False])))


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_reach_of_32_bits(data: DataObject) -> None:
    """A function near enough is written, around the end of the address space too; one farther away is refused."""
    version = data.draw(st.sampled_from([1, 2]))
    pcrel = version == 2 and data.draw(st.booleans())
    address = data.draw(st.sampled_from([0, 2**31, 2**40, 2**63, TOP - 2**12]))
    edge = data.draw(st.sampled_from([-(2**31), 2**31 - 1]))
    away = edge + data.draw(st.integers(-2, 2))
    start = (address + (28 if pcrel else 0) + away) % TOP
    assume(start < TOP - 16)
    functions: list[Any] = [(start, 8, [(0, Rule(Part(PartKind.REGISTER, 7, 8), Part(PartKind.AT_CFA, 0, -8)))], {})]
    if -(2**31) <= away < 2**31:
        check(AMD64, version, functions, address=address, pcrel=pcrel)
    else:
        with pytest.raises(InexpressibleError, match="more than 2 GiB away") as error:
            collect(AMD64, functions).build(version=version, address=address, pcrel=pcrel)
        assert error.value.rule == "function-reach"


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_from_version_to_version(data: DataObject) -> None:
    """A table read from one version and written in another that can say it stays the same."""
    machine, version = data.draw(st.sampled_from([one for one in KINDS if one[1] < 3]))
    functions = data.draw(function_lists(machine, version, st.integers(0, 0x4000), st.integers(0, 400)))
    functions.sort(key=lambda one: one[:2])
    table = to_table(decode(collect(machine, functions).encode(version=version)))
    for other in (2, 3) if machine is S390X else (1, 2, 3):
        built = build(table, version=other, leave_out=True)
        left_out = {one.range: one.reason for one in built.refused}
        # the words of s390x in version 2 have room for larger register numbers than control words
        reasons = {Refusal.OUTERMOST, Refusal.BLOCK_SIZE} if other < version else {Refusal.CONTROL_RANGE}
        assert set(left_out.values()) <= reasons
        compare(
            [one for number, one in enumerate(functions) if number not in left_out],
            to_table(decode(encode(built.section))),
        )


@pytest.mark.parametrize("order", ["little", "big"])
def test_byte_order_and_abi(order: ByteOrder) -> None:
    for machine, abi in ((AMD64, 3), (AARCH64, 1 if order == "big" else 2), (S390X, 4)):
        section = SectionBuilder(machine).build(byteorder=order).section
        assert (section.abi_arch, section.byteorder) == (abi, order)
    assert [SectionBuilder(machine).build().section.byteorder for machine in (AMD64, AARCH64, S390X)] == [
        *("little", "little", "big")
    ]


def test_header_that_is_written() -> None:
    builder = SectionBuilder("amd64")
    builder.function(0x2000, 16, ["CFA = rsp+8"])
    builder.function(0x1000, 16, ["CFA = rsp+8", (1, "CFA = rsp+16, FP = *(CFA-16)")])
    data = builder.encode(address=0x4000)
    assert data[:28] == bytes.fromhex("e2de0305 0300f800 02000000 03000000") + bytes([20, *[0] * 7, 32, 0, 0, 0])
    assert [one.flags for one in (builder.build(version=n).section for n in (1, 2, 3))] == [1, 5, 5]
    assert builder.build(version=2, pcrel=False, frame_pointer=True).section.flags == 3
    # rows follow in the order of the index
    assert decode(data, address=0x4000).functions.fre_offset.tolist() == [0, 12]
    assert data[60:] == bytes.fromhex("0200000000 00 03 08 01 05 10 f00100000000 00 03 08")


@pytest.mark.parametrize(("version", "options"), [(1, {"pcrel": True}), (3, {"frame_pointer": True}), (0, {}), (4, {})])
def test_flags_and_versions_that_there_are_not(version: int, options: dict[str, Any]) -> None:
    with pytest.raises(InexpressibleError) as error:
        SectionBuilder(AMD64).build(version=version, **options)
    assert error.value.rule == ("header-flags" if options else "header-version")


def test_relocatable_files_keep_their_order_and_have_no_starts() -> None:
    builder = SectionBuilder(AARCH64)
    for section, start in ((5, 0x20), (2, 0), (5, 0)):
        builder.function(start, 16, [f"CFA = sp+{section + start}"], section=section)
    for version in (1, 2, 3):
        built = builder.build(version=version).section
        assert not built.sorted
        assert built.functions.start.tolist() == [0, 0, 0]
        assert built.code_section.tolist() == [5, 2, 5]
        assert built.code_address.tolist() == [0x20, 0, 0]
        again = decode(encode(built))
        again.code_section, again.code_address = built.code_section, built.code_address
        table = to_table(again)
        assert [table.find(at, section=where).rule.cfa.offset for where, at in ((5, 0x20), (2, 0), (5, 0))] == [
            37,
            2,
            5,
        ]


@pytest.mark.whole
@pytest.mark.parametrize("rows", [65535, 65536, 65547, 2 * 65535 + 1])
def test_functions_of_very_many_rows_are_split(rows: int, interpreted: bool) -> None:
    if interpreted and rows > 65547:
        pytest.skip("the same, slower")
    builder = SectionBuilder(AMD64)
    builder.function(0x1000, 16, ["CFA = rsp+8"])
    builder.function(
        0x10000,
        3 * rows + 5,
        [(3 * n + 2, Rule(Part(PartKind.REGISTER, 7, 8 * (n % 7)), Part(PartKind.AT_CFA, 0, -8))) for n in range(rows)],
        signal=True,
    )
    built = builder.build(address=0x8000)
    parts = -(-rows // 65535)
    assert built.split == ((1,) if parts > 1 else ())
    section = decode(encode(built.section), address=0x8000)
    assert section.functions.rows.tolist() == [1, *[65535] * (rows // 65535), *([rows % 65535] if rows % 65535 else [])]
    assert section.code_address.tolist() == [0x1000, 0x10000, *[0x10000 + 3 * 65535 * n + 2 for n in range(1, parts)]]
    assert int(section.functions.size[1:].sum()) == 3 * rows + 5
    assert section.signal.tolist() == [False, *[True] * parts]
    table, before = to_table(section), builder.table()
    pcs = np.arange(0x10000, 0x10000 + 3 * rows + 6, 7 if interpreted else 1, dtype=np.uint64)
    new, old = table.find_many(pcs)[1], before.find_many(pcs)[1]
    assert np.array_equal(new, old)
    assert np.array_equal(table.rules[table.row_rule]["cfa"]["offset"], before.rules[before.row_rule]["cfa"]["offset"])
    # the other versions count rows in 32 bits
    assert builder.build(version=2, address=0x8000, leave_out=True).split == ()


def test_equal_rules_share_a_shape() -> None:
    builder = SectionBuilder(AMD64)
    for n in range(300):
        builder.function(n * 16, 16, ["CFA = rsp+8", (1, "CFA = rsp+16"), (9, "CFA = rsp+8")])
    assert len(builder.build().section.shapes) == 2
    assert len(decode(builder.encode()).shapes) == 2


def test_one_row_that_needs_flex_makes_the_function_flex() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8", (1, "CFA = r10")])
    builder.function(16, 16, ["CFA = rsp+8"])
    section = builder.build().section
    assert section.functions.fde_type.tolist() == [1, 0]
    assert section.shapes.info[section.row_shape].tolist() == [0x04, 0x04, 0x03]


def test_drap_is_written_as_the_assembler_writes_it() -> None:
    builder = SectionBuilder(AMD64)
    saved = "CFA = r10, FP = *(rbp)"
    rows: list[str | Rule | tuple[int, str | Rule]] = [
        "CFA = rsp+8",
        (5, "CFA = r10"),
        (17, saved),
        (19, "CFA = *(rbp-8), FP = *(rbp)"),
        (22, saved),
    ]
    builder.function(0, 28, [*rows, (27, "CFA = rsp+8, FP = *(rbp)")], section=1)
    assert builder.encode() == bytes.fromhex(
        "e2de03040300f800 0100000006000000 29000000000000001000000000000000000000001c00000000000000"
        "0600000100 00043908 05045100 110a5100003300 130a33f8003300 160a5100003300 1b0a39080033 00"
    )


@pytest.mark.parametrize(
    "rows",
    [
        [(1, "CFA = rsp"), (1, "CFA = rsp")],
        [(2, "CFA = rsp"), (1, "CFA = rsp")],
        [(-1, "CFA = rsp")],
        [(16, "CFA = rsp")],
    ],
)
def test_rows_rise_and_lie_inside(rows: list[tuple[int, str]]) -> None:
    with pytest.raises(ValueError, match="rows rise and lie inside"):
        SectionBuilder(AMD64).function(0, 16, rows)


def test_machines_and_keys_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="unknown machine 'vax'"):
        SectionBuilder("vax")
    with pytest.raises(ValueError, match="the key is A or B"):
        SectionBuilder(AARCH64).function(0, 16, [], pauth_key="C")


def test_a_refused_function_leaves_nothing_behind() -> None:
    builder = SectionBuilder(AMD64)
    with pytest.raises(ValueError, match="rows rise"):
        builder.function(0x1000, 32, ["CFA = rsp+8", (99, "CFA = rbp+16")])
    builder.function(0x2000, 32, ["CFA = rsp+24"])
    assert len(builder.table()) == 1
    assert builder.table().find(0x2000).rule.text(AMD64) == "CFA = rsp+24, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize(("section", "block"), [(-2, 0), (2**31, 0), (-1, -16), (-1, 2**32)])
def test_text_sections_and_blocks_that_there_are_not(section: int, block: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        SectionBuilder(AMD64).function(0, 16, ["CFA = rsp+8"], section=section, block=block)


def test_functions_with_addresses_and_in_text_sections_do_not_mix() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8"])
    builder.function(0, 16, ["CFA = rsp+8"], section=1)
    with pytest.raises(ValueError, match="do not go into one section"):
        builder.build()


def test_byte_orders_and_versions_that_there_are_not() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8"])
    middle: Any = "middle"
    with pytest.raises(ValueError, match="not 'middle'"):
        builder.build(byteorder=middle)
    with pytest.raises(ValueError, match="not 'middle'"):
        with_byteorder(builder.build().section, middle)
    for call in (refusals, lambda table, version: build(table, version=version)):
        with pytest.raises(InexpressibleError, match="version 7 is not known"):
            call(builder.table(), 7)
        with pytest.raises(InexpressibleError, match="version 1 does not know s390x"):
            call(SectionBuilder(S390X).table(), 1)


@pytest.mark.parametrize(
    "change",
    [{"length": 1 << 60}, {"length": 27}, {"length": -1}, {"version": 9}, {"num_fdes": 1 << 40}, {"fdeoff": -9}],
)
def test_a_section_that_contradicts_itself_is_not_written(change: dict[str, Any]) -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8"])
    with pytest.raises(InexpressibleError):
        encode(replace(builder.build().section, **change))


def test_an_outermost_row_that_loses_its_cfa_is_told() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["outermost frame"])
    builder.function(16, 16, ["CFA = rsp+8, RA undefined"])
    builder.function(32, 16, ["CFA = rsp+8"])
    assert builder.build().outermost == (1,)


def test_what_was_refused_is_told_in_the_order_of_the_table() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(1 << 40, 16, ["CFA = rsp+8"])
    builder.function(16, 16, ["CFA = r10"])
    refused = builder.build(version=2, leave_out=True).refused
    assert [(one.range, one.reason.name) for one in refused] == [(0, "FUNCTION_REACH"), (1, "CFA_BASE")]
