from __future__ import annotations

from typing import Any

import pytest

from elfbuilder import ElfBuilder, Image
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import ElfFile, layout, relocations_for

ORDERS = pytest.mark.parametrize("order", ["little", "big"])


def parse(image: Image) -> ElfFile:
    return ElfFile(bytes(image), "test.o")


def start(order: ByteOrder = "little", **options: Any) -> tuple[ElfBuilder, int, int]:
    builder = ElfBuilder(order, **options)
    target = builder.section(".sframe", bytes(64), addr=0x1000 if options.get("kind", 1) != 1 else 0)
    return builder, target, builder.symtab()


@ORDERS
def test_rela_entries_carry_their_addend(order: ByteOrder) -> None:
    builder, target, symtab = start(order)
    builder.relocations(target, symtab, [(8, 2, 1, -4), (28, 24, 0xFFFFFFFF, 2**63 - 1)])
    found = relocations_for(parse(builder.build()), target)
    assert found.table["offset"].tolist() == [8, 28]
    assert found.table["type"].tolist() == [2, 24]
    assert found.table["symbol"].tolist() == [1, 0xFFFFFFFF]
    assert found.table["addend"].tolist() == [-4, 2**63 - 1]
    assert found.table["has_addend"].tolist() == [True, True]
    assert found.table["symtab"].tolist() == [symtab, symtab]


@ORDERS
def test_rel_entries_have_none(order: ByteOrder) -> None:
    builder, target, symtab = start(order)
    source = builder.relocations(target, symtab, [(8, 2, 1, 99)], addends=False)
    found = relocations_for(parse(builder.build()), target)
    assert found.table[0].item() == (8, 0, 2, 1, symtab, False)
    assert found.sources == (source,)
    assert len(found) == 1


def test_several_tables_are_merged_by_offset_and_keep_the_order_of_one_place() -> None:
    builder, target, symtab = start()
    first = builder.relocations(target, symtab, [(8, 2, 1, 0), (24, 2, 2, 0)])
    second = builder.relocations(target, symtab, [(16, 2, 3, 0), (8, 2, 4, 0)], addends=False)
    found = relocations_for(parse(builder.build()), target)
    assert found.table["offset"].tolist() == [8, 8, 16, 24]
    assert found.table["symbol"].tolist() == [1, 4, 3, 2]
    assert found.table["has_addend"].tolist() == [True, False, False, True]
    assert found.sources == (first, second)


def test_relocations_of_other_sections_are_left_out() -> None:
    builder, target, symtab = start()
    other = builder.section(".text", bytes(8))
    builder.relocations(other, symtab, [(0, 2, 1, 0)])
    elf = parse(builder.build())
    assert len(relocations_for(elf, target)) == 0
    assert relocations_for(elf, target).sources == ()
    assert len(relocations_for(elf, other)) == 1


def test_offsets_count_from_the_section_in_linked_files_too() -> None:
    builder, target, symtab = start(kind=layout.ET_DYN)
    builder.relocations(target, symtab, [(0x1008, 2, 1, 0)])
    assert relocations_for(parse(builder.build()), target).table["offset"].tolist() == [8]


def test_the_dynamic_linkers_relocations_belong_to_no_section() -> None:
    builder, target, symtab = start(kind=layout.ET_DYN)
    builder.relocations(0, symtab, [(0x1008, 2, 1, 0)], name=".rela.dyn")
    elf = parse(builder.build())
    assert len(relocations_for(elf, 0)) == len(relocations_for(elf, target)) == 0
    assert len(relocations_for(elf, 99)) == 0


def test_tables_that_share_bytes_are_refused() -> None:
    builder, target, symtab = start()
    builder.relocations(target, symtab, [(0, 2, 1, 0)] * 100)
    for number in range(4):
        builder.section(f".rela{number}", kind=4, info=target, entsize=24)
    image = builder.build()
    for number in range(4, 9):
        image.section(number, "sh_offset", image.labels[".rela.sframe"]).section(number, "sh_size", 2400)
    with pytest.raises(ElfError, match="relocation sections of section 1 overlap"):
        relocations_for(parse(image), target)


def test_a_table_whose_entries_have_another_size_is_an_error() -> None:
    builder, target, symtab = start()
    source = builder.relocations(target, symtab, [(0, 2, 1, 0)])
    for field, value in (("sh_entsize", 16), ("sh_size", 23)):
        with pytest.raises(ElfError, match=r"section 4 \.rela\.sframe has"):
            relocations_for(parse(builder.build().section(source, field, value)), target)


def test_compact_relocations_are_not_passed_over() -> None:
    builder, target, _ = start()
    builder.section(".crel.sframe", b"\0", kind=layout.SHT_CREL, info=target)
    with pytest.raises(UnreadableError, match="SHT_CREL"):
        relocations_for(parse(builder.build()), target)


def test_relocations_of_mips_are_refused() -> None:
    builder, target, symtab = start(machine=layout.EM_MIPS)
    builder.relocations(target, symtab, [(0, 2, 1, 0)])
    with pytest.raises(UnreadableError, match="MIPS"):
        relocations_for(parse(builder.build()), target)


class TestTargets:
    @ORDERS
    def test_each_is_the_section_and_value_of_its_symbol(self, order: ByteOrder) -> None:
        builder, target, symtab = start(order)
        text = builder.code()
        for value, section in ((0x10, text), (0, 0), (5, layout.SHN_ABS), (8, layout.SHN_COMMON), (2**64 - 1, text)):
            builder.symbol(symtab, f"s{value}", value, section=section)
        builder.symbol(symtab, "lost", 7, section=99)
        builder.relocations(target, symtab, [(8 * number, 2, number, -4) for number in range(7)])
        elf = parse(builder.build())
        targets = relocations_for(elf, target).targets(elf)
        assert targets["section"].tolist() == [0, text, 0, 0, 0, text, 0]
        assert targets["value"].tolist() == [0, 0x10, 0, 5, 8, -1, 7]

    def test_without_a_symbol_there_is_none(self) -> None:
        builder, target, symtab = start()
        builder.relocations(target, symtab, [(0, 2, 1, 0), (8, 2, 2**32 - 1, 0)])
        elf = parse(builder.build())
        assert relocations_for(elf, target).targets(elf).tolist() == [(-1, 0), (-1, 0)]

    def test_each_relocation_section_has_its_own_symbol_table(self) -> None:
        builder, target, symtab = start()
        text = builder.code()
        dynsym = builder.symtab(".dynsym", 11)
        builder.symbol(symtab, "a", 1, section=text)
        builder.symbol(dynsym, "b", 2, section=target)
        builder.relocations(target, symtab, [(8, 2, 1, 0)])
        builder.relocations(target, dynsym, [(0, 2, 1, 0)], name=".rela.other")
        elf = parse(builder.build())
        assert relocations_for(elf, target).targets(elf).tolist() == [(target, 2), (text, 1)]

    def test_no_relocations_have_no_targets(self) -> None:
        builder, target, _ = start()
        elf = parse(builder.build())
        assert relocations_for(elf, target).targets(elf).tolist() == []

    def test_a_link_to_no_symbol_table_is_an_error(self) -> None:
        builder, target, symtab = start()
        source = builder.relocations(target, symtab, [(8, 2, 1, 0)])
        elf = parse(builder.build().section(source, "sh_link", target))
        with pytest.raises(ElfError, match="is not a symbol table"):
            relocations_for(elf, target).targets(elf)
