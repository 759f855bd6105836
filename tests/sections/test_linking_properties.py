"""What holds of any pieces: linking in any order and grouping, conversion there and back, damaged input.

What the result should say is worked out here address by address from the functions themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus import corpus
from effort import examples
from walkback import WalkbackError, convert, fix, link, split
from walkback.sections.linking.relink import link_object
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.files import from_bytes

pytestmark = pytest.mark.kernel

FAR = 0x10000
"""Where sections stand: behind all code, and far enough apart."""
MOST = 0x400
"""Code ends before."""
RULES = ["CFA = rsp+8", "CFA = rsp+16, FP = *(CFA-16)", "CFA = rbp+16, FP = *(CFA-16)", "CFA = rsp+40000"]
SETTINGS = [(1, False), (2, True), (2, False), (3, True), (3, False)]


@dataclass(frozen=True)
class Code:
    """A function that every version can say."""

    start: int
    size: int
    rows: tuple[tuple[int, str], ...]

    def rule(self, pc: int) -> str | None:
        held = [rule for offset, rule in self.rows if offset <= pc - self.start]
        return held[-1] if held else None


@st.composite
def code(draw: st.DrawFn, starts: st.SearchStrategy[int], sizes: st.SearchStrategy[int]) -> Code:
    size = draw(sizes)
    offsets = draw(st.sets(st.integers(0, max(size - 1, 0)), max_size=3))
    return Code(draw(starts), size, tuple((offset, draw(st.sampled_from(RULES))) for offset in sorted(offsets)))


ANYWHERE = code(st.integers(0, MOST - 80), st.integers(0, 80))
IN_SLOTS = code(st.integers(0, 7).map(lambda slot: 64 * slot), st.sampled_from([0, 1, 20, 64]))
"""Functions of these overlap only where they start at one address, as copies of one function do."""
ON_BOTH_SIDES = code(st.one_of(st.integers(0, FAR - 80), st.integers(FAR + MOST, 2 * FAR)), st.integers(1, 80))
"""Around the place of a section."""


@dataclass(frozen=True)
class Piece:
    """A section to link: functions and the form that they are written in."""

    functions: tuple[Code, ...]
    version: int
    pcrel: bool
    address: int

    def contents(self) -> bytes:
        builder = SectionBuilder("AMD64")
        for one in self.functions:
            builder.function(one.start, one.size, one.rows)
        return builder.encode(version=self.version, pcrel=self.pcrel, address=self.address)


@st.composite
def pieces(draw: st.DrawFn, functions: st.SearchStrategy[Code], most: int = 4) -> list[Piece]:
    found = []
    for number in range(draw(st.integers(1, most))):
        version, pcrel = draw(st.sampled_from(SETTINGS))
        some = tuple(draw(st.lists(functions, max_size=6)))
        found.append(Piece(some, version, pcrel, FAR * (number + 1)))
    return found


def written(folder: Path, parts: list[Piece]) -> list[str]:
    """The pieces as files, with their addresses, as `link` takes them."""
    names = []
    for part in parts:
        path = folder / f"piece-{part.address:x}"
        path.write_bytes(part.contents())
        names.append(f"{path}@{part.address:#x}")
    return names


def rules_at(contents: bytes, address: int) -> dict[int, str]:
    """The rule that a section gives at each address of code."""
    found = {}
    for piece in from_bytes(contents, address=address).pieces():
        table = piece.table
        ranges, rows = table.find_many(list(range(MOST)))
        for pc, (number, row) in enumerate(zip(ranges.tolist(), rows.tolist(), strict=True)):
            if number >= 0:
                found[pc] = table.rule(row).text(table.machine) if row >= 0 else ""
    return found


def wanted_at(parts: list[Piece]) -> dict[int, set[str]]:
    """What may hold at each address: of the functions there the last to start, of those the largest, of those any."""
    found: dict[int, set[str]] = {}
    functions = [one for part in parts for one in part.functions]
    for pc in range(MOST):
        here = [one for one in functions if one.start <= pc < one.start + one.size]
        if here:
            best = max((one.start, one.size) for one in here)
            found[pc] = {TEXTS.get(one.rule(pc), "") for one in here if (one.start, one.size) == best}
    return found


def _texts() -> dict[str | None, str]:
    """Every rule as a table prints it."""
    builder = SectionBuilder("AMD64")
    for number, rule in enumerate(RULES):
        builder.function(number, 1, [rule])
    table = builder.table()
    return {rule: table.rule(number).text(table.machine) for number, rule in enumerate(RULES)}


TEXTS = _texts()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pieces")


def linked(folder: Path, names: list[str], **options: Any) -> bytes:
    output = folder / "linked"
    link(names, output, **options)
    return output.read_bytes()


@settings(max_examples=examples(80), deadline=None)
@given(parts=pieces(ANYWHERE), address=st.sampled_from([FAR * 9, FAR]))
def test_every_address_has_the_rule_of_the_function_that_holds(folder: Path, parts: list[Piece], address: int) -> None:
    contents = linked(folder, written(folder, parts), address=address)
    told, wanted = rules_at(contents, address), wanted_at(parts)
    assert set(told) == set(wanted)
    assert all(told[pc] in wanted[pc] for pc in wanted)
    [piece] = from_bytes(contents, address=address).pieces()
    assert piece.section.sorted
    assert piece.section.version == max(part.version for part in parts)
    starts = piece.section.code_address.tolist()
    assert starts == sorted(set(starts))


@settings(max_examples=examples(80), deadline=None)
@given(parts=pieces(ANYWHERE), data=st.data())
def test_the_order_of_pieces_does_not_matter(folder: Path, parts: list[Piece], data: st.DataObject) -> None:
    names = written(folder, parts)
    options = {"address": FAR * 9}
    contents = linked(folder, names, **options)
    assert linked(folder, data.draw(st.permutations(names)), **options) == contents
    assert linked(folder, [*names, *names], **options) == contents


@settings(max_examples=examples(80), deadline=None)
@given(parts=pieces(ANYWHERE, most=3), data=st.data())
def test_the_form_of_pieces_does_not_matter(folder: Path, parts: list[Piece], data: st.DataObject) -> None:
    """The same functions in another version, with other starts, and shuffled, give the same section."""
    contents = linked(folder, written(folder, parts), address=FAR * 9, version=3)
    others = []
    for part in parts:
        version, pcrel = data.draw(st.sampled_from(SETTINGS))
        functions = tuple(data.draw(st.permutations(part.functions)))
        others.append(Piece(functions, version, pcrel, part.address))
    assert linked(folder, written(folder, others), address=FAR * 9, version=3) == contents
    assert rules_at(linked(folder, written(folder, others), address=FAR * 9), FAR * 9) == rules_at(contents, FAR * 9)


@pytest.mark.whole
@settings(max_examples=examples(80), deadline=None)
@given(parts=pieces(IN_SLOTS, most=4))
def test_linking_is_associative(folder: Path, parts: list[Piece]) -> None:
    """Of functions that overlap only where they start.

    Where one begins within another, what is left of that begins later than it did.
    """
    names = written(folder, parts)
    whole = linked(folder, names, address=FAR * 9, version=3, pcrel=True)
    for border in range(1, len(names)):
        sides = []
        for number, side in enumerate((names[:border], names[border:])):
            address = FAR * (10 + number)
            path = folder / f"side-{number}"
            link(side, path, address=address)
            sides.append(f"{path}@{address:#x}")
        assert linked(folder, sides, address=FAR * 9, version=3, pcrel=True) == whole


@settings(max_examples=examples(80), deadline=None)
@given(parts=pieces(ANYWHERE))
def test_an_index_made_of_the_linking_view_is_the_one_made_directly(folder: Path, parts: list[Piece]) -> None:
    names = written(folder, parts)
    options: dict[str, Any] = {"version": 3, "pcrel": True}
    direct = linked(folder, names, address=FAR * 9, **options)
    path = folder / "linking"
    link(names, path, address=FAR * 10, view="linking", **options)
    if not path.read_bytes():  # no function is left, so there are no pieces
        assert rules_at(direct, FAR * 9) == {}
        return
    assert rules_at(path.read_bytes(), FAR * 10) == rules_at(direct, FAR * 9)
    assert linked(folder, [f"{path}@{FAR * 10:#x}"], address=FAR * 9, **options) == direct


@settings(max_examples=examples(80), deadline=None)
@given(functions=st.lists(IN_SLOTS, max_size=8), data=st.data())
def test_conversion_there_and_back_gives_the_bytes(folder: Path, functions: list[Code], data: st.DataObject) -> None:
    version, pcrel = data.draw(st.sampled_from(SETTINGS))
    other, other_pcrel = data.draw(st.sampled_from(SETTINGS))
    path = folder / "raw"
    contents = Piece(tuple(functions), version, pcrel, FAR).contents()
    path.write_bytes(contents)
    convert(path, version=other, pcrel=other_pcrel)
    there = path.read_bytes()
    assert there[2] == other
    assert rules_at(there, FAR) == rules_at(contents, FAR)
    convert(path, version=version, pcrel=pcrel)
    assert path.read_bytes() == contents


@settings(max_examples=examples(60), deadline=None)
@given(functions=st.lists(ON_BOTH_SIDES, max_size=6), data=st.data())
def test_converted_bytes_are_sorted_where_they_will_be_loaded(
    folder: Path, functions: list[Code], data: st.DataObject
) -> None:
    """Code may stand on both sides of a section, of which raw bytes do not tell the address."""
    version, pcrel = data.draw(st.sampled_from(SETTINGS))
    other, other_pcrel = data.draw(st.sampled_from(SETTINGS))
    path = folder / "raw"
    path.write_bytes(Piece(tuple(functions), version, pcrel, FAR).contents())
    convert(path, version=other, pcrel=other_pcrel)
    [piece] = from_bytes(path.read_bytes(), address=FAR).pieces()
    starts = piece.section.code_address.tolist()
    assert starts == sorted(starts)
    assert piece.section.sorted


@settings(max_examples=examples(120), deadline=None)
@given(parts=pieces(ANYWHERE, most=3), data=st.data())
def test_damaged_sections_are_refused_or_linked(folder: Path, parts: list[Piece], data: st.DataObject) -> None:
    names = []
    for name in written(folder, parts):
        path = Path(name.split("@")[0])
        contents = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(0, 3))):
            contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(bytes(contents[: data.draw(st.one_of(st.just(len(contents)), st.integers(0, len(contents))))]))
        names.append(name)
    output = folder / "damaged"
    began = time.process_time()
    for leave_out in (False, True):
        for view in ("execution", "linking"):
            try:
                link(names, output, view=view, leave_out=leave_out)
            except WalkbackError:
                continue
            assert not output.read_bytes() or list(from_bytes(output.read_bytes()).pieces())
        for version in (1, 3):
            try:
                convert(names[0].split("@")[0], output, version=version, leave_out=leave_out)
            except WalkbackError:
                continue
            assert list(from_bytes(output.read_bytes()).pieces()) or not output.read_bytes()
    assert time.process_time() - began < 5


@pytest.fixture(scope="module")
def samples() -> dict[str, list[bytes]]:
    """Real objects and linked files, small ones."""
    names = (
        "amd64-comdat-a.o",
        "amd64-sections-empty-simple.o",
        "comdat-r.o",
        "comdat.so",
        "plt-lazy-lld.so",
        "comdat-gc",
    )
    found = [one for one in corpus() if one.path.name in names]
    return {
        "objects": [one.path.read_bytes() for one in found if one.path.suffix == ".o"],
        "linked": [one.path.read_bytes() for one in found if one.path.suffix != ".o"],
    }


@pytest.mark.peers
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_or_rewritten(
    samples: dict[str, list[bytes]], folder: Path, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(["objects", "linked"]))
    contents = bytearray(data.draw(st.sampled_from(samples[kind])))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(contents) - 1))
        contents[position] = data.draw(st.one_of(st.integers(0, 255), st.sampled_from([contents[position] ^ 1])))
    path, output = folder / "file", folder / "output"
    path.write_bytes(contents)
    work: dict[str, tuple[Callable[[], object], ...]] = {
        "objects": (lambda: link_object(path, output), lambda: split(path, output)),
        "linked": (lambda: fix(path, output), lambda: link([path], output)),
    }
    began = time.process_time()
    converts: tuple[Callable[[], object], ...] = (
        lambda: convert(path, output, version=3),
        lambda: convert(path, output, version=2),
    )
    for one in (*work[kind], *converts):
        output.unlink(missing_ok=True)
        try:
            one()
        except WalkbackError:
            assert not output.exists()
            continue
        assert output.exists()
    assert path.read_bytes() == contents
    assert time.process_time() - began < 5


@pytest.mark.peers
def test_an_index_of_an_object_made_of_its_linking_view_is_the_one_made_directly(tmp_path: Path) -> None:
    """For every object that joins others in the corpus, and those with several text sections."""
    joined = [one for one in corpus() if one.path.suffix == ".o" and "program" in one.path.name + one.source]
    several = [
        one for one in corpus() if one.path.suffix == ".o" and ("comdat" in one.path.name or ".cc" in one.source)
    ]
    seen = 0
    for one in {*joined, *several}:
        direct, linking, again = tmp_path / "direct.o", tmp_path / "linking.o", tmp_path / "again.o"
        link_object(one.path, direct)
        link_object(one.path, linking, view="linking")
        link_object(linking, again)
        assert again.read_bytes() == direct.read_bytes(), one.path
        seen += 1
    assert seen > 20


def test_sections_for_different_machines_are_refused(tmp_path: Path) -> None:
    names = []
    for number, machine in enumerate(["AMD64", "AArch64"]):
        builder = SectionBuilder(machine)
        builder.function(0x100 * number, 16, ["CFA = rsp+8" if machine == "AMD64" else "CFA = sp+0"])
        path = tmp_path / machine
        path.write_bytes(builder.encode(address=FAR * (number + 1)))
        names.append(f"{path}@{FAR * (number + 1):#x}")
    with pytest.raises(WalkbackError, match="this section is for AArch64"):
        link(names, tmp_path / "output")
    assert not (tmp_path / "output").exists()
