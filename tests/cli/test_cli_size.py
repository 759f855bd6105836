"""`walkback size`: the account of one file, the table of many, JSON and its documented keys, errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cli.documented import undocumented
from clirunner import runner
from elfbuilder import ElfBuilder
from sframefiles import archive, linked, small, written
from sized import a_program
from walkback.cli.main import cli
from walkback.sections.size import size as measure
from walkback.sections.size import total_size


def run(*args: object) -> Result:
    result = runner().invoke(cli, ["size", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return written(tmp_path, a_program(), "program")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    return written(tmp_path, linked(small().bytes()), "library.so")


def test_one_file_is_an_account(program: Path) -> None:
    done = run(program)
    assert done.exit_code == 0
    sizes, text = measure(program), done.stdout
    assert text.startswith(f"{program}: {sizes.file_bytes} bytes, 256 of them text\n")
    for version, functions in ((1, "3 of 4"), (2, "3 of 4"), (3, "4 of 4")):
        total = sizes.versions[version].parts.total
        assert re.search(rf"SFrame version {version} would take +{total}  .*\n +{functions} functions, ", text)
    for words, size in (
        (r"\.eh_frame", sizes.eh_frame),
        (r"\.eh_frame_hdr", 44),
        ("padding in the index", 6),
        ("attributes", 20),
        ("16-bit row counts, no padding", 94),
        ("rows shared between functions", 100),
        ("palette, without functions", 76),
        ("exceptions", 10),
        ("rows that are added", 3),
        ("registers in the rows", 8),
        ("or in numbered sets", 12),
        ("all together", 134 + 21),
    ):
        assert re.search(rf"^ +{words} +{size}(?: |$)", text, re.MULTILINE), words
    assert "belonging to nothing" not in text


def test_lines_of_an_account_stand_below_each_other(program: Path) -> None:
    lines = [line for line in run(program).stdout.splitlines() if re.match(r" {2,}[^ ].*  +\d+  ", line)]
    ends = {re.match(r" {2,}.*?\S  +\d+(?=  )", line).end() for line in lines}
    assert len(ends) == 1
    assert len(lines) > 30


def test_the_sframe_that_is_there_is_told_by_parts(library: Path) -> None:
    text = run(library).stdout
    total = measure(library).sframe.parts.total
    assert re.search(rf"^  \.sframe \(version 3\) +{total}  ", text, re.MULTILINE)
    assert "would take" not in text


def test_many_files_are_a_table_with_the_totals_last(program: Path, library: Path) -> None:
    done = run(program, library)
    assert done.exit_code == 0
    lines, _, account = done.stdout.partition("\n\n")
    title, first, second, last = lines.split("\n")
    assert title.split() == [
        "text",
        "eh_frame",
        "hdr",
        "sframe",
        "V1",
        "V2",
        "V3",
        "V2/eh",
        "V3/eh",
        "uncovered",
        "file",
    ]
    sizes = [measure(program), measure(library)]
    found = [str(one.parts.total) for one in sizes[0].versions.values()]
    shares = [f"{sizes[0].versions[version].parts.total / sizes[0].call_frames:.3f}" for version in (2, 3)]
    assert first.split() == ["256", str(sizes[0].eh_frame), "44", "-", *found, *shares, "0", str(program)]
    alone = sizes[1]
    assert second.split()[:4] == [str(alone.text_bytes), str(alone.eh_frame), "0", str(alone.sframe.parts.total)]
    assert second.split()[4:] == [*"------", str(library)]
    assert last.endswith("  total (2 files)")
    assert len({line.rindex("  ") for line in (first, second)}) == 1
    assert account.startswith("total: 2 files, ")


def test_what_fails_is_told_and_the_others_are_counted(program: Path, tmp_path: Path) -> None:
    bare = written(tmp_path, ElfBuilder(kind=1), "bare.o")
    done = run(program, bare, program)
    assert done.exit_code == 1
    assert "total (2 files)" in done.stdout
    assert done.stderr == f"walkback: {bare}: there is no .eh_frame, .debug_frame or .sframe section\n"
    missing = run(tmp_path / "nowhere", program)
    assert missing.exit_code == 3
    assert "total (1 files)" not in missing.stdout
    assert missing.stdout.count("\n") > 4
    text = tmp_path / "text"
    text.write_text("nothing")
    alone = run(text)
    assert (alone.exit_code, alone.stdout) == (3, "")


def test_an_archive_tells_its_members(tmp_path: Path, program: Path) -> None:
    two = written(tmp_path, a_program(), "two.o")
    bare = written(tmp_path, ElfBuilder(kind=1), "bare.o")
    path = archive(tmp_path, "all.a", program, two, bare) or tmp_path / "all.a"
    text = run(path).stdout
    assert ": 3 members, " in text
    assert "  1 member without unwind tables\n" in text
    text = run(path, "--source", "cfi").stdout
    assert "  1 member without call frame information\n" in text


def objects(*args: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("--json", *args).stdout.splitlines()]


def test_json_is_one_object_a_file_and_the_totals(program: Path, library: Path) -> None:
    (alone,) = objects(program)
    first, second, total = objects(program, library)
    assert first == alone
    assert [one["type"] for one in (first, second, total)] == ["file", "file", "total"]
    assert first["versions"]["3"]["bytes"] == 134
    assert first["versions"]["2"]["what_if"]["compact_index"] == 94
    assert first["replacement"]["register_bytes"] == 8
    assert second["versions"] == {}
    assert second["sframe"]["bytes"] == sum(second["sframe"]["parts"].values())
    together = total_size([measure(program), measure(library)])
    assert total["sframe"]["bytes"] == together.sframe.parts.total
    assert total["files"] == 2


def test_json_has_the_documented_keys(program: Path, library: Path) -> None:
    assert undocumented(objects(program, library), "size") == []


def test_help_fits_a_terminal() -> None:
    assert all(len(line) <= 80 for line in run("--help").stdout.splitlines())
