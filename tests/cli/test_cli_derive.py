"""`walkback derive`, `add` and `drop`: what they tell, as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cfibuilder import cfa, expr
from cli.commands import run as process
from cli.documented import undocumented
from cli.hello import (
    LEAP,
    hello_object,
    library,
    whole,
    writing,
)
from cli.inprocess import run, told_object
from walkback.elf import ElfFile


def test_derive_tells_what_it_made_and_what_not_with_the_reason(hello: Path) -> None:
    done = run("derive", hello, "-o", hello.parent / "s")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(
        rf"{hello}: \.eh_frame has 152 bytes; SFrame version 3 for 0x[0-9a-f]+ takes 117\n"
        r"  covered: 3 of 4 functions, 35 of 44 bytes of code \(79\.545 %\)\n"
        rf"  not covered: 0x[0-9a-f]+ {re.escape(LEAP)}\n",
        done.stdout,
    )
    assert (hello.parent / "s").stat().st_size == 117


def test_in_an_object_a_place_has_its_section(tmp_path: Path) -> None:
    text = run("derive", hello_object(tmp_path), "-o", tmp_path / "s").stdout
    assert "SFrame version 3 takes 117\n" in text
    assert f"  not covered: .text+0x23 {LEAP}\n" in text


def test_add_tells_the_same_and_that_it_is_proved_and_written(hello: Path) -> None:
    output = hello.parent / "new"
    expected = run("derive", hello, "-o", hello.parent / "s").stdout
    for target, command in ((output, ["-o", output]), (hello, [])):
        done = run("add", hello, *command)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(expected)
        proved, *notes = done.stdout.removeprefix(expected).splitlines()
        assert proved == f"  proved: the same rule at every address; written to {target}"
        assert all(note.startswith("  note: ") for note in notes)


def test_drop_tells_what_it_did(hello: Path) -> None:
    before = hello.stat().st_size
    command = writing("drop", hello)
    grafted = hello.stat().st_size
    done = run(*command)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        f"{hello}: the .sframe section is taken out: the file is what it was before `walkback add`\n"
        f"  {grafted} bytes to {before}; written to {hello}\n"
    )


def test_all_covered_is_100_percent(tmp_path: Path) -> None:
    text = run("derive", whole(tmp_path), "-o", tmp_path / "s").stdout
    assert "3 of 3 functions, 35 of 35 bytes of code (100 %)\n" in text
    assert "not covered" not in text


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    path = library(tmp_path, (0x1000, 16, b""), (0x1000, 16, b""), (0x1020, 0, b""), (0x40, 8, b""), (0x80, 8, b""))
    text = run("derive", path, "-o", tmp_path / "s").stdout
    assert "  covered: 1 of 1 function, 16 of 16 bytes" in text
    assert text.endswith(
        "  left out: 2 FDEs describe code that is not in the file\n"
        "  left out: 1 FDEs describe no code\n"
        "  left out: 1 FDEs describe code for which others hold\n"
    )
    found = json.loads(run("derive", path, "-o", tmp_path / "s", "--json").stdout)
    assert (found["dead"], found["empty"], found["shadowed"]) == (2, 1, 1)


def test_call_frame_information_of_nothing_is_a_section_of_nothing(tmp_path: Path) -> None:
    done = run("derive", library(tmp_path), "-o", tmp_path / "s")
    assert done.exit_code == 0
    assert "  covered: 0 of 0 functions, 0 of 0 bytes of code (no code)\n" in done.stdout
    assert (tmp_path / "s").stat().st_size == 28


@pytest.mark.parametrize("options", [[], ["--strict"]])
@pytest.mark.parametrize("verb", ["derive", "add"])
def test_call_frame_information_that_cannot_be_read_to_its_end_is_told(
    hello: Path, verb: str, options: list[str]
) -> None:
    with ElfFile(hello) as elf:
        start = int(elf.sections["offset"][elf.sections_named(".eh_frame")[0]])
    data = bytearray(hello.read_bytes())
    data[start + 1] = 0x10  # the length of the first entry: it would end behind the section
    hello.write_bytes(data)
    done = run(verb, hello, "-o", hello.parent / "out", *options)
    assert done.exit_code or done.stderr


@pytest.mark.parametrize(("limit", "listed", "more"), [(0, 0, 5), (2, 2, 3), (5, 5, 0), (None, 5, 0)])
def test_the_limit_bounds_what_is_listed_and_the_others_are_counted(
    tmp_path: Path, limit: int | None, listed: int, more: int
) -> None:
    unsaid = cfa(f"def_cfa_expression {expr('breg7 8; deref; lit3; plus')}")
    path = library(tmp_path, *((0x1000 + 16 * number, 16, unsaid) for number in range(5)))
    options = [] if limit is None else ["--limit", limit]
    text = run("derive", path, "-o", tmp_path / "s", *options).stdout
    assert text.count("  not covered: ") == listed
    assert ("and 0 more" not in text) if not more else (f"  and {more} more that are not covered\n" in text)
    assert len(json.loads(run("derive", path, "-o", tmp_path / "s", "--json", *options).stdout)["uncovered"]) == 5


def test_json_of_derive_has_the_documented_keys(hello: Path) -> None:
    found = told_object("derive", hello, "-o", hello.parent / "s")
    assert undocumented([found], "derive") == []
    place = found.pop("address"), found["uncovered"][0].pop("start")
    assert all(isinstance(one, int) for one in place)
    leap = {"section": None, "size": 9, "name": "leap", "source": ".eh_frame", "reason": LEAP.partition(": ")[2]}
    totals = {"functions": 4, "covered": 3, "code_bytes": 44, "covered_bytes": 35}
    assert found == {
        "type": "derived",
        "file": str(hello),
        "source": ".eh_frame",
        "source_bytes": 152,
        "sources": [{"name": ".eh_frame", "kind": "cfi", "bytes": 152, **totals}],
        "version": 3,
        "bytes": 117,
        **totals,
        "dead": 0,
        "empty": 0,
        "shadowed": 0,
        "uncovered": [leap],
        "unwanted": [],
        "repaired": [],
        "notes": [],
    }


def test_json_of_add_is_that_of_derive_with_notes(hello: Path) -> None:
    expected = told_object("derive", hello, "-o", hello.parent / "s")
    found = told_object("add", hello, "-o", hello.parent / "new")
    assert all(isinstance(note, str) for note in found["notes"])
    assert found == {**expected, "type": "added", "notes": found["notes"]}
    again = told_object("add", hello.parent / "new")
    assert "the existing .sframe section has been replaced" in again["notes"]


def test_json_of_an_object_has_the_text_section(tmp_path: Path) -> None:
    (one,) = told_object("derive", hello_object(tmp_path), "-o", tmp_path / "s")["uncovered"]
    assert (one["section"], one["start"], one["name"]) == (".text", 0x23, "leap")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_what_add_leaves_out_of_an_object_is_told(tmp_path: Path, options: list[str]) -> None:
    done = process("add", hello_object(tmp_path), *options)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"leap" in done.stdout
