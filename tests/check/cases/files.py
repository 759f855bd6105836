"""Cases of the ELF file around a section."""

from __future__ import annotations

from check.cases.making import Case, Cases, fine, one
from elfbuilder import ElfBuilder
from sframebuilder import AARCH64, PCREL, SORTED, row
from sframefiles import PC32, PC64, SFRAME, SIZE, TEXT, linked, placing, relocatable, small

case = Cases()


case("abi-machine", lambda: Case(linked(small().bytes(), machine=183), 4))
case("abi-machine", lambda: Case(linked(small().bytes(), order="big"), 0))
case("abi-machine", lambda: fine(linked(small(abi=AARCH64).bytes(), machine=183)))


case("section-unsorted", lambda: Case(linked(small(flags=PCREL).bytes()), 3))
case("section-unsorted", lambda: Case(linked(small(2, flags=0).bytes()), 3))
case("section-unsorted", lambda: fine(linked(small().bytes())))
case("section-unsorted", lambda: fine(relocatable(small(flags=PCREL), placing(3))))


@case.of("section-pieces")
def _() -> Case:
    first = small(functions=2).bytes()
    first += bytes(-len(first) % 8)
    return Case(linked(first + small(address=SFRAME + len(first)).bytes()), len(first))


@case.of("section-pieces")
def _() -> Case:
    first = small(functions=2).bytes()
    return fine(linked(first + bytes(-len(first) % 8) + small(version=3).bytes()[:20]))


case("section-type", lambda: Case(linked(small().bytes(), kind=1)))
case("section-type", lambda: fine(linked(small(2, flags=SORTED).bytes(), kind=1)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=3)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=0)))
case("section-flags", lambda: Case(linked(small().bytes(), flags=0x82)))
case("section-flags", lambda: fine(relocatable(small(), placing(3), flags=0x82)))
case("segment-missing", lambda: Case(linked(small().bytes(), segment=False)))
case("segment-missing", lambda: fine(relocatable(small(), placing(3))))
case("segment-place", lambda: Case(linked(small().bytes()).build().segment(2, "p_vaddr", SFRAME + 8)))
case("segment-place", lambda: fine(linked(small().bytes())))


@case.of("segment-size")
def _() -> Case:
    data = small().bytes()
    return Case(linked(data).build().segment(2, "p_filesz", len(data) + 1))


@case.of("segment-size")
def _() -> Case:
    data = small().bytes()
    return Case(linked(data).build().segment(2, "p_memsz", len(data) + 1))


case("segment-size", lambda: fine(linked(small().bytes())))
case("plt-got-row", lambda: Case(plt_got(16), 0x1C, 0, 0))
case("plt-got-row", lambda: fine(plt_got(8)))


def plt_got(cfa: int) -> ElfBuilder:
    elf = linked(one([row(0, 1, [cfa])], mask=True, rep_size=8).bytes())
    elf.section(".plt.got", bytes(SIZE), flags=6, addr=TEXT)
    return elf


case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3), (0x60, PC64, "f0", 0)]), 0x60))
case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3, 2), (0x3C, PC32, "f2", 0)]), 0x3C))
case("relocation-stray", lambda: Case(relocatable(small(), [*placing(3, 2), (0x3C, PC64, "nothing", 0)]), 0x3C))
case("relocation-stray", lambda: fine(relocatable(small(), [*placing(3), (0x60, 0, "", 0)])))  # R_X86_64_NONE
case("relocation-missing", lambda: Case(relocatable(small(), placing(3, 2)), 0x3C, 2))
case("relocation-missing", lambda: fine(relocatable(small(), placing(3))))


def kept(addend: int) -> ElfBuilder:
    """A linked file with its relocations kept; the second one may lie."""
    elf = linked(small().bytes())
    table = next(iter(elf.symbol_tables))
    text = elf.symbol(table, "", TEXT, section=1, kind=3, binding=0)
    entries = [(SFRAME + 0x1C, PC64, text, 0), (SFRAME + 0x2C, PC64, text, addend)]
    elf.relocations(2, table, entries)
    return elf


case("relocation-mismatch", lambda: Case(kept(0), 0x2C, 1))
case("relocation-mismatch", lambda: fine(kept(SIZE)))
