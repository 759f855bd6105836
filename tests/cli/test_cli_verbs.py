"""What each verb prints: targets of `--function` and `find`, formats, JSON and its documented keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from cli.documented import undocumented
from cli.inprocess import run
from sframebuilder import SFrameBuilder, row
from sframefiles import PC64, SIZE, archive, linked, placing, relocatable, small, written


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return written(tmp_path, linked(small().bytes()), "library.so")


@pytest.fixture
def two_texts(tmp_path: Path) -> Path:
    """An object whose functions are in `.text` and `.text.other`."""
    elf = relocatable(small(functions=2), placing(3, 1))
    other = elf.code(".text.other", 0x40)
    table = next(iter(elf.symbol_tables))
    symbol = elf.symbol(table, "other", 16, section=other, size=SIZE)
    (relocations,) = (section for section in elf.sections if section.name == ".rela.sframe")
    relocations.data += (0x2C).to_bytes(8, "little") + (symbol << 32 | PC64).to_bytes(8, "little") + bytes(8)
    return written(tmp_path, elf, "two.o")


# show


def shown(result: Result) -> list[str]:
    """The functions that were shown, by name."""
    return re.findall(r"^(\S+|function \d+)  [.\w]*\+?0x", result.stdout, re.MULTILINE)


def test_show_tells_the_facts_then_each_function_with_a_row_a_line(library: Path) -> None:
    result = run("show", library)
    assert result.exit_code == 0
    assert result.stdout == (
        f"{library}: .sframe section at 0x2000, 136 bytes\n"
        "  SFrame version 3, AMD64 little-endian; sorted, function starts are relative to their own fields\n"
        "  RA is always at *(CFA-8)\n"
        "  3 functions, 12 rows; header 28 bytes, index 48, rows 60\n"
        + "".join(
            f"\nf{number}  {start:#x}, 32 bytes\n"
            f"   {start:#x}  CFA = rsp+8   RA = *(CFA-8)  FP unchanged\n"
            f"   {start + 1:#x}  CFA = rsp+16  RA = *(CFA-8)  FP = *(CFA-16)\n"
            f"   {start + 4:#x}  CFA = rbp+16  RA = *(CFA-8)  FP = *(CFA-16)\n"
            f"   {start + 31:#x}  CFA = rsp+8   RA = *(CFA-8)  FP = *(CFA-16)\n"
            for number, start in enumerate((0x1000, 0x1020, 0x1040))
        )
    )


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("f1", ["f1"]),
        ("f1+0x1f", ["f1"]),
        ("f1 + 4", ["f1"]),
        ("f1+0x20", ["f2"]),
        ("0x1020", ["f1"]),
        ("0x103f", ["f1"]),
        ("4160", ["f2"]),
    ],
)
def test_show_narrows_to_a_function(library: Path, target: str, names: list[str]) -> None:
    for style in ("readable", "gnu", "llvm"):
        result = run("show", library, "--function", target, "--format", style)
        if style == "readable":
            assert shown(result) == names
        if style == "gnu":
            assert re.findall(r"func idx \[(\d)\]", result.stdout) == [name[1] for name in names]
    lines = [json.loads(line) for line in run("show", library, "--json", "--function", target).stdout.splitlines()]
    assert [line["name"] for line in lines if line["type"] == "function"] == names


def test_show_narrows_to_several_functions_in_the_order_of_the_section(library: Path) -> None:
    assert shown(run("show", library, "--function", "f2", "--function", "f0")) == ["f0", "f2"]


@pytest.mark.parametrize("target", ["f7", "nobody", "0x1060", "0xfff", "f2+0x20", ".text+0x1000"])
def test_show_says_that_a_function_is_not_there_and_1(library: Path, target: str) -> None:
    result = run("show", library, "--function", target, "--function", "f0")
    assert result.exit_code == 1
    assert shown(result) == ["f0"]
    why = f"no function in this section has the name or covers the address {target}"
    assert result.stderr == f"walkback: {library}: {why}\n"


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("f0", ["f0"]),
        (".text+0x1f", ["f0"]),
        (".text.other+0x10", ["other"]),
        ("other+1", ["other"]),
        (".text.other+0x2f", ["other"]),
        ("0x18", ["f0", "other"]),
        ("0", ["f0"]),
    ],
)
def test_show_finds_functions_of_objects_by_section_and_offset(two_texts: Path, target: str, names: list[str]) -> None:
    result = run("show", two_texts, "--function", target)
    assert shown(result) == names
    assert result.exit_code == 0


def test_a_section_and_offset_is_a_target_in_linked_files_too(library: Path) -> None:
    assert shown(run("show", library, "--function", ".text+0x20")) == ["f1"]
    assert run("find", library, ".text+0x20").exit_code == 0


def test_show_prints_what_is_unknown_as_it_is(tmp_path: Path) -> None:
    result = run("show", written(tmp_path, small(abi=9).bytes()))
    assert result.exit_code == 0
    assert "unknown ABI 9" in result.stdout
    assert "info 0x05, words [16, -16]" in result.stdout
    builder = small()
    builder.functions[0].overrides["info2"] = 7
    result = run("show", written(tmp_path, builder.bytes()))
    assert "unknown type 7" in result.stdout
    assert "no rule: the function type is unknown" in result.stdout


def test_show_says_what_is_special_about_functions(tmp_path: Path) -> None:
    builder = SFrameBuilder(3, address=0x2000, auxiliary=b"aux!")
    builder.function(0x1000, 32, [row(0, 1, [8]), row(11, 1, [16])], mask=True, rep_size=16)
    builder.function(0x1020, 32, [row(0, 0, [0x39, 8])], flex=True, signal=True)
    builder.function(0x1040, 32, [row(0, 0, info=0)])
    builder.function(0x1060, 32, [])
    text = run("show", written(tmp_path, builder.bytes()), "--address", "0x2000").stdout
    assert re.search(
        r"^function 0  0x1000, 32 bytes, repeating blocks of 16\n  \+0x0 +CFA = rsp\+8", text, re.MULTILINE
    )
    assert "function 1  0x1020, 32 bytes, signal frame, flex\n" in text
    assert "0x1040  outermost frame\n" in text
    assert "function 3  0x1060, 32 bytes\n  no rows\n" in text
    assert "  auxiliary header: 61 75 78 21\n" in text


def test_the_llvm_format_is_for_version_2(library: Path, tmp_path: Path) -> None:
    result = run("show", "--format", "llvm", library)
    assert result.exit_code == 3
    assert "llvm-readobj prints version 2 only, and this is version 3" in result.stderr
    two = written(tmp_path, linked(small(2).bytes()))
    text = run("show", "--format", "llvm", two).stdout
    assert text.startswith("SFrame section '.sframe' {\n  Header {\n    Magic: 0xDEE2\n    Version: V2 (0x2)\n")
    assert text.endswith("  ]\n}\n")


# check


def test_check_prints_a_finding_a_line_and_1(tmp_path: Path) -> None:
    builder = small(num_fres=13)
    builder.functions[1].rows[1].words = [16, 8]
    path = written(tmp_path, linked(builder.bytes(), segment=False))
    result = run("check", path)
    assert result.exit_code == 1
    frame_pointer = "the frame pointer would be saved at CFA+8, in the caller's frame [saved-above-cfa]"
    assert result.stdout.splitlines() == [
        f"{path}: .sframe+0xc: broken: the header counts 13 rows, the functions 12 [row-count]",
        f"{path}: .sframe: wrong: there is no PT_GNU_SFRAME [segment-missing]",
        f"{path}: .sframe+0x68: wrong: function 1 (f1), row 1: {frame_pointer}",
    ]


def test_check_bounds_what_it_lists(tmp_path: Path) -> None:
    builder = small(2, functions=5)
    for function in builder.functions:
        function.overrides["padding"] = 1
    path = written(tmp_path, linked(builder.bytes()))
    lines = run("check", path, "--limit", 2).stdout.splitlines()
    assert len(lines) == 3
    assert lines[2] == f"{path}: .sframe: and 3 more [function-padding]"
    (report,) = map(json.loads, run("check", "--json", path, "--limit", 2).stdout.splitlines())
    assert report["unlisted"] == {"function-padding": 3}
    assert run("check", path, "--ignore", "function-padding").exit_code == 0


def test_check_for_a_consumer_says_yes_or_no(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(tail=b"odd").bytes()))
    assert "linux would load it" in run("check", "--for", "linux", path).stdout
    path = written(tmp_path, linked(small(2).bytes()))
    assert "linux would not load it" in run("check", "--for", "linux", path).stdout


# find


def test_find_tells_function_rule_numbers_row_and_bytes(library: Path) -> None:
    result = run("find", library, "f1+4")
    assert result.exit_code == 0
    assert result.stdout == (
        "f1+4: f1+0x4 (function 1: 0x1020, 32 bytes)\n"
        "  CFA = rbp+16, RA = *(CFA-8), FP = *(CFA-16)\n"
        "  kind, register, offset: cfa register 6 16; ra at_cfa 0 -8; fp at_cfa 0 -16\n"
        "  row 2, from +0x4 on, at .sframe+0x6c: 04 04 10 f0\n"
    )


@pytest.mark.parametrize(
    ("target", "place"), [("f0", "f0+0x0"), ("0x101f", "f0+0x1f"), ("4128", "f1+0x0"), ("f0+0x21", "f1+0x1")]
)
def test_find_takes_addresses_symbols_and_offsets(library: Path, target: str, place: str) -> None:
    assert run("find", library, target).stdout.startswith(f"{target}: {place} ")


def test_find_answers_several_targets_in_their_order(library: Path) -> None:
    lines = [json.loads(line) for line in run("find", "--json", library, "f2", "0x1001", "f1").stdout.splitlines()]
    assert [line["target"] for line in lines] == ["f2", "0x1001", "f1"]


@pytest.mark.parametrize("target", ["0xfff", "0x1060", "f7", "0xffffffffffffffff"])
def test_find_says_that_nothing_covers_an_address_and_1(library: Path, target: str) -> None:
    result = run("find", library, target, "f0")
    assert (result.exit_code, result.stderr) == (1, f"walkback: {library}: no function covers {target}\n")
    assert result.stdout.startswith("f0: ")


@pytest.mark.parametrize("target", ["nobody", "0x10000000000000000", "f0+nobody"])
def test_find_says_that_a_symbol_is_unknown_and_1(library: Path, target: str) -> None:
    result = run("find", library, target, "f0")
    assert (result.exit_code, result.stderr) == (1, f"walkback: {library}: there is no symbol or section {target}\n")
    assert result.stdout.startswith("f0: ")


def test_find_tells_of_every_target_that_it_did_not_find(library: Path) -> None:
    result = run("find", library, "nobody", "0xfff")
    assert "nobody" in result.stderr
    assert "0xfff" in result.stderr


def test_find_says_that_a_function_has_no_row_for_a_place(tmp_path: Path) -> None:
    builder = SFrameBuilder(3, address=0x2000)
    builder.function(0x1000, 32, [row(4, 1, [8])])
    result = run("find", written(tmp_path, linked(builder.bytes())), "0x1003", "0x1004")
    assert "0x1003: f0+0x3 (function 0: 0x1000, 32 bytes)\n  no row holds here\n" in result.stdout
    assert "0x1004: f0+0x4 (function 0: 0x1000, 32 bytes)\n  CFA = rsp+8" in result.stdout


def test_find_reduces_an_address_in_a_repeating_block(tmp_path: Path) -> None:
    builder = SFrameBuilder(3, address=0x2000)
    builder.function(0x1000, 64, [row(0, 1, [8]), row(11, 1, [16])], mask=True, rep_size=16)
    result = run("find", written(tmp_path, linked(builder.bytes())), "0x102a", "0x102b")
    assert re.findall(r"CFA = rsp\+(\d+)", result.stdout) == ["8", "16"]
    assert "blocks of 16" in result.stdout


def test_find_refuses_what_has_no_meaning(tmp_path: Path) -> None:
    result = run("find", written(tmp_path, small(abi=9).bytes()), "0")
    assert result.exit_code == 3
    assert "ABI 9 is unknown" in result.stderr


def test_find_in_an_archive_says_in_which_member(tmp_path: Path) -> None:
    one = written(tmp_path, relocatable(small(), placing(3)), "one.o")
    two = written(tmp_path, relocatable(small(2), placing(2)), "two.o")
    text = run("find", archive(tmp_path, "all.a", one, two), "f1").stdout
    assert "one.o" in text
    assert "two.o" in text


# JSON


@pytest.mark.parametrize("verb", ["show", "check", "find"])
def test_json_is_one_object_a_line_and_its_keys_are_documented(verb: str, tmp_path: Path) -> None:
    builder = small()
    builder.function(0x1080, 32, [row(0, 0, [0x51, 0, 0, 0x33, 0])], flex=True)
    builder.function(0x10A0, 32, [row(0, 0, info=0)])
    builder.function(0x10C0, 32, [row(0, 0, [2, 8])], flex=True)
    path = written(tmp_path, linked(builder.bytes()))
    result = run(verb, path, "--json", *(["f0", "f4", "f5", "f6"] if verb == "find" else []))
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert undocumented(lines, verb) == []


def test_json_of_a_row_says_the_rule_in_parts(library: Path) -> None:
    lines = [json.loads(line) for line in run("show", "--json", library).stdout.splitlines()]
    assert [line["type"] for line in lines] == ["section", "function", "function", "function"]
    assert lines[0]["version"] == 3
    assert lines[1]["rows"][1] == {
        "offset": 1,
        "info": 5,
        "words": [16, -16],
        "cfa": {"kind": "register", "register": "rsp", "number": 7, "offset": 16},
        "ra": {"kind": "at_cfa", "offset": -8},
        "fp": {"kind": "at_cfa", "offset": -16},
        "ra_signed": False,
    }
    (found,) = [json.loads(line) for line in run("find", "--json", library, "f0+1").stdout.splitlines()]
    assert found["rule"] == {key: lines[1]["rows"][1][key] for key in ("cfa", "ra", "fp", "ra_signed")}
    assert (found["name"], found["row"], found["bytes"]) == ("f0", 1, "010510f0")
