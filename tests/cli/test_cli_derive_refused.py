"""`walkback derive`, `add` and `drop`: exit statuses, and that a refusal or an error writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.hello import (
    hello_object,
    narrow,
    patched,
    program,
    snapshot,
    whole,
)
from cli.inprocess import run
from elfbuilder import ElfBuilder
from sframefiles import archive, written


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_strict_is_1_if_a_function_is_not_covered_and_the_file_is_written_all_the_same(
    tmp_path: Path, verb: str
) -> None:
    for path, status in ((program(tmp_path), 1), (whole(tmp_path), 0)):
        output = tmp_path / f"{path.name}.out"
        done = run(verb, path, "-o", output, "--strict")
        assert (done.exit_code, done.stderr) == (status, "")
        lenient = tmp_path / "lenient"
        assert run(verb, path, "-o", lenient).exit_code == 0
        assert output.read_bytes() == lenient.read_bytes()


def refused(path: Path) -> dict[str, tuple[str, int, Path]]:
    """What none of the verbs takes: message, exit status, file."""
    folder = path.parent
    return {
        "missing": ("No such file or directory", 3, folder / "missing"),
        "folder": ("this is a directory", 3, folder),
        "empty": ("the file is empty", 3, written(folder, b"", "empty")),
        "text": ("this is not an ELF file", 3, written(folder, b"some text\n", "text")),
        "32-bit": ("32-bit ELF files are not supported", 3, narrow(path)),
        "archive": ("expected one ELF file, got an archive", 3, archive(folder, "all.a", hello_object(folder))),
        "nothing": ("there is no ", 1, written(folder, ElfBuilder(kind=3), "nothing")),
    }


@pytest.mark.parametrize("in_place", [False, True], ids=["output", "in place"])
@pytest.mark.parametrize("verb", ["derive", "add", "drop"])
def test_what_cannot_be_taken_is_one_line_that_names_the_file_and_nothing_is_written(
    hello: Path, verb: str, in_place: bool
) -> None:
    for name, (message, status, path) in refused(hello).items():
        if verb == "add" and name in {"folder", "archive"}:
            continue  # which it takes
        before = snapshot(hello.parent)
        done = run(verb, path, *([] if in_place and verb != "derive" else ["-o", hello.parent / "output"]))
        assert (done.exit_code, done.stdout) == (status, "")
        assert done.stderr.startswith(f"walkback: {path}: {message}")
        assert done.stderr.count("\n") == 1
        assert snapshot(hello.parent) == before


@pytest.mark.parametrize("verb", ["derive", "add"])
def test_a_machine_that_sframe_does_not_know_is_one_line_and_3(hello: Path, verb: str) -> None:
    path = patched(hello, "e_machine", 99)
    before = snapshot(hello.parent)
    done = run(verb, path, "-o", hello.parent / "output")
    assert done.exit_code == 3
    assert re.fullmatch(rf"walkback: {path}: .*\b99\b.*\n", done.stderr)
    assert snapshot(hello.parent) == before


def test_what_cannot_be_grafted_is_derived_and_not_added(hello: Path) -> None:
    path = patched(hello, "e_type", 4)
    assert run("derive", path, "-o", hello.parent / "s").exit_code == 0
    before = snapshot(hello.parent)
    done = run("add", path)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "", f"walkback: {path}: this is a core file\n")
    assert snapshot(hello.parent) == before


def test_nothing_to_take_out_is_one_line_and_1(hello: Path) -> None:
    done = run("drop", hello)
    assert (done.exit_code, done.stderr) == (1, f"walkback: {hello}: there is no .sframe section to take out\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["derive", "hello", "-o", "s", "--relocs", "r"], "--relocs is for objects"),
        (["derive", "hello.o", "-o", "s", "--address", "0x1000"], "--address is for linked files"),
        (["derive", "hello", "-o", "s", "--address", "here"], "'here' is not an address"),
        (["derive", "hello", "-o", "s", "--address", "0x10000000000000000"], "is not an address"),
        (["derive", "hello", "-o", "s", "--version", "0"], "--version"),
        (["derive", "hello", "-o", "s", "--version", "4"], "--version"),
        (["derive", "hello", "-o", "s", "--rows", "all"], "--rows"),
        (["derive", "hello", "-o", "s", "--limit", "-1"], "--limit"),
        (["derive", "hello"], "--output"),
        (["derive", "hello", "hello", "-o", "s"], "s/hello.sframe would be the section of several files"),
        (["derive", "hello", "hello.o", "-o", "hello"], "hello is no folder, as several sections need"),
        (["derive", "hello", "hello.o", "-o", "s", "--relocs", "r"], "--relocs is for one file"),
        (["derive", "hello", "hello.o", "-o", "s", "--address", "4096"], "--address is for one file"),
        (["derive", "hello", "-o", "hello/"], "hello/ is no folder"),
        (["add", "hello", "-o", "s", "--version", "3", "--for", "linux"], "--version and --for exclude each other"),
        (["add", "hello", "-o", "s", "--version", "4"], "--version"),
        (["add", "hello", "-o", "s", "--version", "three"], "--version"),
        (["add", "hello", "-o", "s", "--for", "gnu-as"], "--for"),
        (["add"], "Missing argument"),
        (["drop"], "Missing argument"),
        (["drop", "hello", "-o", "s", "--json"], "--json"),
    ],
)
def test_wrong_usage_is_2_and_nothing_is_written(
    hello: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], words: str
) -> None:
    hello_object(hello.parent)
    monkeypatch.chdir(hello.parent)
    before = snapshot(hello.parent)
    done = run(*args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert snapshot(hello.parent) == before
