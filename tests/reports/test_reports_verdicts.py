"""What a page knows of the proof, against `walkback.verify`."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import walkback
from reports.binarypage import LIBC, several
from reports.listed import program
from reports.provable import FUNCTIONS, PUSH, WRONG_BYTES, library, page_data, things
from sframefiles import TEXT, linked, small, written
from walkback.proof.values import Verdict
from walkback.reports import verdicts
from walkback.sections.explain import listed
from walkback.sections.verified import Verified


def verdict_at(meta: dict[str, Any], columns: dict[str, Any], function: int, offset: int) -> int:
    """The verdict that the page has for an offset of a function."""
    for at, begin, number in things(columns, "run", function):
        if begin <= offset < begin + columns["runSize"][at]:
            found: int = meta["causes"][number][0]
            return found
    return Verdict.PROVED


def compare(path: Path, chosen: list[int] | None = None) -> Counter[Verdict]:
    """Hold the instructions of functions in a page against what `verify` explains; how many have each verdict."""
    functions, meta, columns = page_data(path)
    [verified] = walkback.verify(path)
    seen: Counter[Verdict] = Counter()
    for function in range(len(functions)) if chosen is None else chosen:
        start, section = int(functions.table.range_start[function]), int(functions.table.range_section[function])
        place = verified.prover.image_address(section, start)
        end = start + int(functions.table.range_size[function])
        explained = [one for one in verified.explain(place).instructions() if start <= one.address < end]
        its = things(columns, "code", function)
        if its:
            assert [start + offset for _, offset, _ in its] == [one.address for one in explained]
        for one in explained:
            assert verdict_at(meta, columns, function, one.address - start) == one.verdict
            seen[one.verdict] += 1
        before = None
        for (at, _, text), one in zip(its, explained, strict=False):
            has = meta["computed"][columns["codeComputed"][at]].lower().split(", ")
            wrong = f"{one.what} = {one.state[one.what]}" if one.what else ""
            changed = listed(one.state, before).lower().split(", ")
            assert set(has) - {""} == {wrong, *changed} - {""}
            assert columns["codeTexts"][text] == one.text
            before = one.state
    return seen


def sums_are_those_of(verified: Verified, meta: dict[str, Any], columns: dict[str, Any]) -> None:
    assert meta["functions"] == verified.functions
    assert meta["functionsProved"] == verified.functions_proved
    assert meta["functionsWrong"] == verified.functions_wrong
    bytes_of = Counter[int]()
    for number, size in zip(columns["runNumber"], columns["runSize"], strict=True):
        bytes_of[meta["causes"][number][0]] += int(size)
    for verdict in ("wrong", "assumed", "unknown"):
        assert meta[verdict] == getattr(verified, verdict) == bytes_of[Verdict[verdict.upper()]]
    assert (meta["proved"], meta["reached"]) == (verified.proved, verified.reached)


@pytest.mark.parametrize("options", [(), ("-c",)])
def test_each_function_has_its_verdicts_and_instructions(options: tuple[str, ...], tmp_path: Path) -> None:
    path = library(tmp_path, None, *options)
    functions, meta, columns = page_data(path)
    assert functions.names == list(FUNCTIONS)
    found = {
        name: [
            (offset, int(columns["runSize"][at]), *meta["causes"][cause])
            for at, offset, cause in things(columns, "run", number)
        ]
        for number, name in enumerate(functions.names)
    }
    assert found == {
        "right": [],
        "wrong": [(1, WRONG_BYTES, Verdict.WRONG, "cfa")],
        "unknown": [(1, 1, Verdict.UNKNOWN, "expression")],
        "assumed": [(3, 3, Verdict.ASSUMED, "no-path")],
    }
    assert columns["codeCount"].tolist() == [5, 5, 3, 4]
    assert meta["computed"][:3] == ["", "CFA = rsp+8, RA = *(CFA-8)", "CFA = rsp+16"]
    assert set(compare(path)) == {Verdict.PROVED, Verdict.WRONG, Verdict.UNKNOWN, Verdict.ASSUMED}
    [verified] = walkback.verify(path)
    sums_are_those_of(verified, meta, columns)


def test_a_function_that_nothing_reaches_is_not_judged(tmp_path: Path) -> None:
    """Its first row has a rule that no entry has."""
    _, meta, columns = page_data(library(tmp_path, {"unreached": ".cfi_escape 0xf,3,0x77,8,6; nop; ret"}))
    [(at, offset, cause)] = things(columns, "run", 0)
    assert (offset, columns["runSize"][at], *meta["causes"][cause]) == (0, 2, Verdict.NOT_REACHED, "")
    assert columns["codeCount"].tolist() == [0]


@pytest.mark.whole
@pytest.mark.skipif(not LIBC.exists(), reason="needs a C library for AMD64")
def test_a_large_file_has_all_verdicts_and_the_instructions_of_what_is_not_proved() -> None:
    functions, meta, columns = page_data(LIBC)
    [verified] = walkback.verify(LIBC)
    sums_are_those_of(verified, meta, columns)
    bad = [
        number
        for number in range(len(functions))
        if any(meta["causes"][cause][0] for _, _, cause in things(columns, "run", number))
    ]
    assert [number for number in range(len(functions)) if columns["codeCount"][number]] == bad
    chance = random.Random(3)
    assert compare(LIBC, [*bad, *chance.sample(range(len(functions)), 50)])[Verdict.PROVED] > 1000


def test_what_is_worst_comes_first_where_there_is_little_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = library(tmp_path)
    for most, names in ((9, ["wrong", "unknown"]), (12, ["wrong", "unknown", "assumed"]), (4, []), (99, None)):
        monkeypatch.setattr(verdicts, "_MOST_INSTRUCTIONS", most)
        functions, _, columns = page_data(path)
        has = [name for number, name in enumerate(functions.names) if columns["codeCount"][number]]
        assert has == (["right", "wrong", "unknown", "assumed"] if names is None else names)
    monkeypatch.setattr(verdicts, "_SMALL", 10)
    functions, _, columns = page_data(path)
    assert columns["codeCount"].tolist() == [0, 5, 3, 4]


def test_a_function_in_pieces_has_its_verdicts_in_each(tmp_path: Path) -> None:
    """The bytes are `push %rax`, so that from the second on the CFA is elsewhere, also where they fall into another."""
    elf = program((TEXT, 48, ""), (TEXT + 16, 16, "nop"))
    elf.sections[1].data = b"\x50" * 16 + b"\xc3" + b"\x90" * 15 + b"\x50" * 16
    functions, meta, columns = page_data(written(tmp_path, elf))
    assert len(functions) == 3
    found = [
        [
            (offset, int(columns["runSize"][at]), meta["causes"][cause])
            for at, offset, cause in things(columns, "run", n)
        ]
        for n in range(3)
    ]
    assert found[0] == [(1, 15, (Verdict.WRONG, "cfa"))]
    assert found[1] == [(0, 1, (Verdict.WRONG, "cfa"))]


def test_a_file_with_sframe_alone_has_the_verdicts_of_that(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(3).bytes()))
    _, meta, columns = page_data(path)
    [verified] = walkback.verify(path)
    assert verified.table == ".sframe"
    sums_are_those_of(verified, meta, columns)


def test_without_a_proof_there_is_the_reason(tmp_path: Path) -> None:
    elf = several()
    elf.section(".rodata", b"x", flags=2, addr=0x9000, offset=1 << 40)
    _, meta, columns = page_data(written(tmp_path, elf))
    assert list(meta) == ["missing"]
    assert ".rodata" in meta["missing"]
    assert columns == {}


def test_an_instruction_beside_a_page_is_the_same_text(tmp_path: Path) -> None:
    pytest.importorskip("capstone")
    _, _, columns = page_data(library(tmp_path, {"right": f"{PUSH} pop %rbx; .cfi_def_cfa_offset 8; ret"}))
    texts = [columns["codeTexts"][number] for _, _, number in things(columns, "code", 0)]
    assert texts == ["pushq %rbx", "xorl %ebx, %ebx", "popq %rbx", "retq"]
