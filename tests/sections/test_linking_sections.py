"""Objects with many `.sframe` sections, of several versions: each is converted for itself, all are linked together."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from corpus import gas_object
from sections.joining import assembled, dumped, expected, header_of, link_with, read_object, symbols
from walkback import GraftError, convert, fix, sframe, split
from walkback.elf import ElfFile, layout
from walkback.sections.linking.relink import link_object

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers

JOINERS = ("ld.lld", "gold-2.44", "ld-2.35")


@pytest.fixture(params=JOINERS)
def linker(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("pair", list(permutations(("2.40", "2.44", "new"), 2)), ids="-".join)
def test_split_objects_of_two_versions_are_joined_converted_and_linked(
    pair: tuple[str, str], linker: str, tmp_path: Path
) -> None:
    objects = [tmp_path / f"{letter}.o" for letter in "ab"]
    for letter, producer, path in zip("ab", pair, objects, strict=True):
        # lld puts sections of one type only into one.
        convert(assembled(letter, producer), path, version=3 if producer == "new" else 2, pcrel=True)
        split(path)
    joined, converted, linked = (tmp_path / name for name in ("joined.o", "converted.o", "linked.o"))
    link_with(linker, joined, "-r", *objects)
    assert convert(joined, converted, version=3).functions == len(expected("ab"))
    assert {piece.section.version for source in sframe.read(converted) for piece in source.pieces()} == {3}
    highest = {joined: 3 if "new" in pair else 2, converted: 3}
    for path, version in highest.items():
        assert link_object(path, linked).functions == len(expected("ab"))
        assert (header_of(linked)[0], read_object(linked)) == (version, expected("ab"))
    elf = ElfFile(converted)
    ordered = elf.sections["link"][(elf.sections["flags"] & layout.SHF_LINK_ORDER) != 0]
    assert ordered.all()


def test_a_section_for_each_of_thousands_of_functions(tmp_path: Path) -> None:
    """What takes time in the square of the number of sections would take minutes here."""
    body = "\t.cfi_startproc\n\tpush %rbp\n\t.cfi_def_cfa_offset 16\n\tret\n\t.cfi_endproc\n"
    text = "".join(f'\t.section .text.f{n},"ax",@progbits\nf{n}:\n{body}' for n in range(5000))
    one = gas_object(text)
    many, again, older, linked = (tmp_path / name for name in ("many.o", "again.o", "older.o", "linked.o"))
    assert split(one, many).sections == 5000
    assert split(many, again).sections == 5000
    assert again.read_bytes() == many.read_bytes()
    assert convert(many, older, version=2).sections == 5000
    assert link_object(older, linked, version=3).functions == 5000
    whole, last = (next(sframe.read(path)).batches()[0].section for path in (one, linked))
    assert last.code_section.tolist() == whole.code_section.tolist()
    assert last.row_start.tolist() == whole.row_start.tolist()


def test_with_a_suffix_the_newest_gnu_ld_collects_what_nothing_refers_to(tmp_path: Path) -> None:
    """By the name alone it keeps all sections, and with all but one of an object their code."""
    body = "\t.cfi_startproc\n\tpush %rbp\n\t.cfi_def_cfa_offset 16\n\tret\n\t.cfi_endproc\n"
    text = "".join(f'\t.globl f{n}\n\t.section .text.f{n},"ax",@progbits\nf{n}:\n{body}' for n in range(5))
    parted, program = tmp_path / "parted.o", tmp_path / "program"
    split(gas_object(text), parted, suffix=True)
    names = [name for name in ElfFile(parted).section_names() if name.startswith(".sframe")]
    assert names == [f".sframe.text.f{n}" for n in range(5)]
    for number in range(5):
        link_with("ld-new", program, "--gc-sections", "-e", f"f{number}", parted)
        assert set(symbols(program)) & {f"f{n}" for n in range(5)} == {f"f{number}"}
        fix(program)
        [(_, rows)] = dumped(program)
        assert [row[:2] for row in rows] == [(0, "sp+8"), (1, "sp+16")]
    older = gas_object(text, version="2.44")
    with pytest.raises(GraftError, match=r"known by the name \.sframe only"):
        split(older, tmp_path / "older.o", suffix=True)
    assert not (tmp_path / "older.o").exists()
