"""`--source`: which tables a verb reads, and where it says that rules are from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.documented import undocumented
from cli.hello import hello_object, library, mixed
from cli.inprocess import run, told_object
from docfiles import of_go
from orc.orctables import module
from sframefiles import archive, written

FROM_FRAMES = {"name": ".eh_frame", "kind": "cfi", "bytes": 152, "functions": 4, "covered": 3}
FROM_CODE = {"name": "code", "kind": "code", "bytes": None, "functions": 1, "covered": 1}


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_what_comes_from_each_table_is_told(tmp_path: Path, verb: str) -> None:
    text = run(verb, mixed(tmp_path), "-o", tmp_path / "out").stdout
    assert (
        "  covered: 4 of 5 functions, 4134 of 4143 bytes of code (99.783 %)\n"
        "    from .eh_frame: 3 of 4 functions, 35 of 44 bytes of code (79.545 %)\n"
        "    from the code: 1 of 1 function, 4099 of 4099 bytes of code (100 %)\n"
    ) in text


def test_what_comes_from_one_table_is_told_once(hello: Path) -> None:
    assert "from .eh_frame" not in run("derive", hello, "-o", hello.parent / "out").stdout


def test_json_counts_what_comes_from_each_table(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    expected: list[dict[str, Any]] = [
        FROM_FRAMES | {"code_bytes": 44, "covered_bytes": 35},
        FROM_CODE | {"code_bytes": 4099, "covered_bytes": 4099},
    ]
    found = told_object("derive", path, "-o", tmp_path / "out")
    assert found["sources"] == expected
    for total in ("functions", "covered", "code_bytes", "covered_bytes"):
        assert found[total] == sum(one[total] for one in expected)
    assert told_object("derive", path, "-o", tmp_path / "out", "--source", "cfi")["sources"] == expected[:1]


def functions(*args: object) -> list[dict[str, Any]]:
    """The functions that `show --json` prints."""
    table, *found = map(json.loads, run("show", *args, "--json").stdout.splitlines())
    assert table["type"] == "table"
    return found


def of_machines(folder: Path) -> dict[str, Path]:
    """A file for each kind of table."""
    mixed_file = mixed(folder)
    files = {"cfi": mixed_file, "code": mixed_file, "go": folder / "hello-go", "orc": written(folder, module(), "m.ko")}
    files["go"].write_bytes(of_go())
    return files


@pytest.mark.parametrize(
    ("kind", "name", "rows"),
    [
        (
            "cfi",
            ".eh_frame",
            ["CFA = rsp+8   RA = *(CFA-8)  FP unchanged", "CFA = rsp+16  RA = *(CFA-8)  FP unchanged"],
        ),
        (
            "go",
            ".gopclntab",
            ["CFA = rsp+8   RA = *(CFA-8)  FP unchanged", "CFA = rsp+32  RA = *(CFA-8)  FP unchanged"],
        ),
        (
            "orc",
            ".orc_unwind",
            ["CFA = rsp+8   RA = *(CFA-8)  FP unchanged", "CFA = rsp+16  RA = *(CFA-8)  FP = *(CFA-16)"],
        ),
        (
            "code",
            "the code",
            ["CFA = rsp+8   RA = *(CFA-8)  FP unchanged", "CFA = rsp+16  RA = *(CFA-8)  FP unchanged"],
        ),
    ],
)
def test_show_prints_any_table(tmp_path: Path, kind: str, name: str, rows: list[str]) -> None:
    target = {"orc": "init_module", "go": "main.main"}.get(kind, "main")
    path = of_machines(tmp_path)[kind]
    done = run("show", path, "--source", kind, "--function", target)
    assert (done.exit_code, done.stderr) == (0, "")
    facts, function = done.stdout.split("\n\n")
    assert facts.startswith(f"{path}: AMD64, ")
    assert f"  from {name}: " in facts
    head, *lines = function.splitlines()
    assert head.startswith(f"{target}  ")
    assert head.endswith(f" bytes, from {name}")
    assert [line.strip().partition("  ")[2].strip() for line in lines[:2]] == rows


def test_show_prints_all_tables_together(tmp_path: Path) -> None:
    found = functions(mixed(tmp_path), "--source", "auto")
    assert {one["name"]: one["source"] for one in found} == {
        **dict.fromkeys(["_start", "main", "compute", "leap"], ".eh_frame"),
        "bare": "code",
    }
    bare = found[-1]
    assert [(row["offset"], row["cfa"]["offset"]) for row in bare["rows"]] == [(0, 8), (1, 16), (4098, 8)]


def test_json_of_tables_has_the_documented_keys(tmp_path: Path) -> None:
    printed = map(json.loads, run("show", mixed(tmp_path), "--source", "auto", "--json").stdout.splitlines())
    assert undocumented(printed, "show") == []


def test_show_tells_which_functions_cannot_be_read(tmp_path: Path) -> None:
    done = run("show", library(tmp_path, (0x1000, 16, b"\x3f"), (0x40, 8, b"")), "--source", "cfi")
    assert done.exit_code == 1
    assert "  ! an instruction that does not exist or is cut off\n" in done.stdout
    assert "  left out: 1 FDEs describe code that is not in the file\n" in done.stdout
    assert done.stderr.endswith("library.so: 1 function cannot be read whole\n")


def test_show_prints_the_tables_of_each_member(tmp_path: Path) -> None:
    path = archive(tmp_path, "all.a", hello_object(tmp_path))
    text = run("show", path, "--source", "cfi", "--function", ".text+0x23").stdout
    assert text.startswith(f"{path}(hello.o): AMD64, 4 functions, 10 rows\n")
    assert "\nleap  .text+0x23, 9 bytes, from .eh_frame\n" in text


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--source", "go"], 1, "there is no table of Go's functions"),
        (["--source", "cfi", "--function", "gone"], 1, "no function in these tables has the name"),
        (["--source", "cfi", "--format", "gnu"], 2, "--source and --format cannot be combined"),
        (
            ["--source", "go", "--section", ".eh_frame"],
            3,
            "is not read where only the table of Go's functions is wanted",
        ),
    ],
)
def test_show_refuses_tables_that_are_not_there(hello: Path, options: list[str], status: int, message: str) -> None:
    done = run("show", hello, *options)
    assert (done.exit_code, done.stdout) == (status, "")
    assert message in done.stderr


def test_compare_takes_any_two_tables(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    done = run("compare", path, "--source", "auto", "--other-source", "code", "--json")
    summary, *stretches = map(json.loads, done.stdout.splitlines())
    assert (summary["one"], summary["other"]) == (".eh_frame, code", "code")
    assert summary["equal"]["bytes"] > 4096
    assert {(one["one_source"], one["other_source"]) for one in stretches} == {(".eh_frame", "code")}
    same = run("compare", path, path, "--source", "code", "--other-source", "code")
    assert (same.exit_code, same.stderr) == (0, "")
    assert same.stdout.startswith(f"{path}: code and {path} code\n  the same rule: 4 functions, ")


def test_compare_says_that_a_table_is_not_there(hello: Path) -> None:
    done = run("compare", hello, "--source", "go", "--other-source", "cfi")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the file does not have two tables to compare" in done.stderr
    done = run("compare", hello, f"{hello}@0", "--other-source", "cfi")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--other-section and --other-source are for ELF files" in done.stderr


def test_size_measures_the_tables_of_the_file_or_those_that_are_chosen(tmp_path: Path) -> None:
    path = mixed(tmp_path)
    frames = {"functions": 4, "code_bytes": 44}
    code = {"functions": 1, "code_bytes": 4099}
    found = told_object("size", path)
    assert (found["described"], found["versions"]["3"]["functions"]) == ({"cfi": frames}, 4)
    assert "described by" not in run("size", path).stdout
    both = told_object("size", path, "--source", "auto")
    assert (both["described"], both["versions"]["3"]["functions"], both["compared"]) == (
        {"cfi": frames, "code": code},
        5,
        {},
    )
    assert "  described by the code: 1 function, 4099 bytes of code\n" in run("size", path, "--source", "auto").stdout
    assert told_object("size", path, "--source", "code")["described"]["code"]["functions"] == 5
    done = run("size", path, "--source", "go")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.endswith("there is no table of Go's functions\n")


def test_size_adds_up_what_kinds_of_tables_describe(tmp_path: Path) -> None:
    files = of_machines(tmp_path)
    *_, total = run("size", files["cfi"], files["go"], files["orc"], "--json").stdout.splitlines()
    assert json.loads(total)["described"] == {
        "cfi": {"functions": 4, "code_bytes": 44},
        "go": {"functions": 2, "code_bytes": 128},
        "orc": {"functions": 1, "code_bytes": 31},
    }
