"""The files to be surveyed are found, each once, whatever else stands among them."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from packed import ELF, tar_of, write
from walkback.base.text import printable
from walkback.identify.names import shown
from walkback.surveys.finding import SurveyUnit, Trouble, find_units

TREE = {
    "a/program": ELF + b"program",
    "a/b/lib.so": ELF,
    "a/text": b"#!/bin/sh\n",
    "a/empty": b"",
    "core": ELF + b"core",
    "module.ko.gz": gzip.compress(ELF),
    "manual.1.gz": gzip.compress(b".TH walkback 1\n" * 1000),
    "source.tar.gz": gzip.compress(tar_of({"x": b"text"})),
    "lib.a": b"!<arch>\n",
    "thin.a": b"!<thin>\n",
    "x.zip": b"PK\3\4",
    "x.whl": b"PK\3\4",
}
WANTED = ["a/b/lib.so", "a/program", "core", "lib.a", "module.ko.gz", "source.tar.gz", "x.whl"]


def units(*paths: Path | str) -> list[str]:
    found = list(find_units([str(path) for path in paths]))
    assert all(isinstance(one, SurveyUnit) for one in found), found
    return [one.path for one in found]


def troubles(*paths: Path | str) -> list[tuple[str, str]]:
    return [(one.path, one.what) for one in find_units([str(path) for path in paths]) if isinstance(one, Trouble)]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path / "tree", TREE)


def test_elf_files_and_what_may_hold_some_are_found_in_order(tree: Path) -> None:
    assert units(tree) == [f"{tree}/{name}" for name in WANTED]


def test_size_and_time_are_those_of_the_file(tree: Path) -> None:
    os.utime(tree / "core", ns=(1, 1_234_567_890_123_456_789))
    assert list(find_units([str(tree / "core")])) == [SurveyUnit(f"{tree}/core", 11, 1_234_567_890_123_456_789)]


def test_links_in_folders_are_not_followed(tree: Path) -> None:
    (tree / "a/loop").symlink_to("..")
    (tree / "a/self").symlink_to("self")
    (tree / "a/link").symlink_to("program")
    (tree / "a/gone").symlink_to("nowhere")
    assert units(tree) == [f"{tree}/{name}" for name in WANTED]


def test_a_link_that_is_asked_for_is_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to(tree / "a")
    (tmp_path / "file").symlink_to(tree / "core")
    assert units(tmp_path / "folder", tmp_path / "file") == [
        f"{tmp_path}/folder/b/lib.so",
        f"{tmp_path}/folder/program",
        f"{tmp_path}/file",
    ]


@pytest.mark.parametrize("reverse", [True, False])
def test_paths_that_lie_over_each_other_give_each_file_once(tree: Path, tmp_path: Path, reverse: bool) -> None:
    (tmp_path / "link").symlink_to(tree / "a")
    (tmp_path / "program").symlink_to(tree / "a/program")
    paths: list[str | Path] = [
        tree,
        tree / "a",
        tree / "a/program",
        tmp_path / "link",
        tmp_path / "program",
        f"{tree}/a/../core",
        tree,
    ]
    found = units(*(reversed(paths) if reverse else paths))
    assert sorted(map(os.path.realpath, found)) == sorted(f"{tree}/{name}" for name in WANTED)
    assert found == units(*paths)


def test_a_file_named_twice_is_found_once(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree / "core")
    assert len(units(tree / "core", f"{tree}/./core", tmp_path / "link")) == 1


def test_two_names_of_one_file_are_two_places(tree: Path) -> None:
    os.link(tree / "core", tree / "a/hard")
    assert len(units(tree)) == len(WANTED) + 1


def test_what_is_no_file_is_passed_over_in_folders_and_told_by_name(tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tree / "socket"))
        assert units(tree) == [f"{tree}/{name}" for name in WANTED]
        names = [tree / "fifo", tree / "socket", Path("/dev/null")]
        assert troubles(*names) == [(str(name), "not a file") for name in sorted(names)]


def test_paths_that_lead_nowhere_are_told(tree: Path) -> None:
    (tree / "loop").symlink_to("loop")
    (tree / "gone").symlink_to("nowhere")
    names = {
        "missing": "missing",
        "core/x": "missing",
        "gone": "missing",
        "loop": "unreadable",
        "x" * 300: "unreadable",
    }
    assert troubles(*(tree / name for name in names)) == sorted(
        (f"{tree}/{name}", what) for name, what in names.items()
    )
    assert troubles("a\0b") == [(r"a\x00b", "missing")]
    assert troubles("") == [("", "missing")]


def test_damage_that_hides_what_a_file_is_is_told(tree: Path) -> None:
    write(tree, {"a/broken.gz": b"\x1f\x8b\x08 no stream", "a/short.xz": b"\xfd7zXZ\0"})
    assert troubles(tree) == [(f"{tree}/a/broken.gz", "damaged"), (f"{tree}/a/short.xz", "damaged")]
    assert sum(isinstance(one, SurveyUnit) for one in find_units([str(tree)])) == len(WANTED)


def test_names_that_are_no_text_are_found_and_can_be_opened(tmp_path: Path) -> None:
    path = os.fsdecode(bytes(tmp_path) + b"/\xff\n\xc3\xbc")
    Path(path).write_bytes(ELF)
    (unit,) = find_units([str(tmp_path)])
    assert unit.path == path
    assert Path(unit.path).read_bytes() == ELF
    assert shown(unit.path) == f"{tmp_path}/" + r"\xff\x0a" + "\u00fc"


def test_paths_that_differ_are_shown_differently() -> None:
    paths = [
        b"\n",
        rb"\x0a",
        rb"\\x0a",
        b"\x85",
        "\u0085".encode(),
        rb"\u0085",
        rb"\x85",
        "\u2028".encode(),
        rb"\u2028",
        "\u00ad".encode(),
        b"\xad",
        b"x",
        "x\ufeff".encode(),
        "x\u200b".encode(),
        "x\u2060".encode(),
        "x\u3164".encode(),
        "x\U000e0041".encode(),
    ]
    texts = [shown(os.fsdecode(path)) for path in paths]
    assert len(set(texts)) == len(paths)
    assert all(text.isprintable() for text in texts)
    assert texts[:2] == [r"\x0a", r"\\x0a"]
    # Members of archives have the same.
    assert [printable(character) for character in "\n\u0085\u2028\u00ad"] == [texts[at] for at in (0, 4, 7, 9)]


@pytest.mark.parametrize("path", ["/proc", "/proc/self", "/proc/self/status", "/sys"])
def test_pseudo_file_systems_are_not_entered(path: str) -> None:
    assert troubles(path) == [(path, "not a file")]


def test_a_program_that_is_named_through_one_is_found() -> None:
    assert len(units("/proc/self/exe")) == 1


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="needs to mount")
def test_mounted_folders_are_entered_once_and_pseudo_ones_not(tree: Path, tmp_path: Path) -> None:
    program = """
import subprocess, sys
from walkback.surveys.finding import find_units
tree = sys.argv[1]
for command in (["--bind", "a", "again"], ["-t", "tmpfs", "tmpfs", "other"], ["-t", "proc", "proc", "process"]):
    subprocess.run(["mount", *command], cwd=tree, check=True)
open(f"{tree}/other/x", "wb").write(b"\\x7fELF")
print(*(one.path for one in find_units([tree])), sep="\\n")
"""
    for name in ("again", "other", "process"):
        (tree / name).mkdir()
    command: list[str | Path] = ["unshare", "--mount", sys.executable, "-c", program, tree]
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    if out.returncode and "unshare" in out.stderr:
        pytest.skip("needs namespaces")
    assert out.stdout.split() == [f"{tree}/{name}" for name in sorted([*WANTED, "other/x"])], out.stderr


def test_what_may_not_be_read_is_told(tree: Path) -> None:
    (tree / "a/program").chmod(0)
    (tree / "a/b").chmod(0)
    # Root may read everything. Another user may not get here, but is here already.
    program = """
import os
from walkback.surveys.finding import find_units
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
print(*find_units(["."]), sep="\\n")
"""
    tree.chmod(0o755)
    out = subprocess.run([sys.executable, "-c", program], cwd=tree, capture_output=True, text=True, check=True).stdout
    (tree / "a/b").chmod(0o755)
    denied = "Trouble(path='./a/{}', member=None, what='unreadable', message='Permission denied')"
    lines = out.splitlines()
    assert lines[:2] == [denied.format("b"), denied.format("program")]
    assert len(lines) == len(WANTED)


def test_a_path_that_is_too_long_to_be_opened_is_told(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=folder)
        inner = os.open("n" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    ((path, what),) = troubles(tmp_path)
    assert what == "unreadable"
    assert len(path) > 4000
    subprocess.run(["rm", "-rf", tmp_path / ("n" * 250)], check=True)


def test_files_that_come_and_go_meanwhile_do_no_harm(tmp_path: Path) -> None:
    files = {f"{index % 50}/{index}": ELF for index in range(2000)}
    write(tmp_path, files)
    found = find_units([str(tmp_path)])
    seen = [next(found)]
    chance = random.Random(1)
    for name in chance.sample(sorted(files), 1000):
        (tmp_path / name).unlink()
    shutil.rmtree(tmp_path / "7")
    (tmp_path / "8/new").symlink_to("new")
    seen += found
    assert all(isinstance(one, SurveyUnit) for one in seen)
    assert len(seen) < 1200
