"""`walkback add` on several files, archives and folders, and `compare --each`: made by gcc and ar, linked and run."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

import walkback
from cli.commands import WALKBACK, run, told
from cli.inprocess import run as in_process
from cli.writing import without_privilege
from walkback.cli.trees import Binary, binaries, link_again
from walkback.cli.verbs import add as verb

pytestmark = pytest.mark.whole

_SOURCES = {
    "one": "int two(int); int one(int x) { return two(x) + 1; } int main(int c, char **v) { return one(c); }",
    "two": "int two(int x) { return x * 2; }",
}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder with two objects, an archive of both and of a text, and a program."""
    folder = tmp_path / "built"
    folder.mkdir()
    for name, text in _SOURCES.items():
        (folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-O2", "-c", f"{name}.c"], cwd=folder, check=True)
    (folder / "note").write_text("a text")
    subprocess.run(["ar", "rcs", "lib.a", "one.o", "two.o", "note"], cwd=folder, check=True)
    subprocess.run(["gcc", "-o", "program", "one.o", "two.o"], cwd=folder, check=True)
    return folder


def covered(path: Path) -> list[int]:
    """How many functions each SFrame section of a file has, after it was found right."""
    assert all(pair.comparison.equal for pair in walkback.compare(path))
    return [len(piece.section.functions) for source in walkback.sframe.read(path) for piece in source.pieces()]


def test_every_object_of_an_archive_gets_sframe(built: Path) -> None:
    done = run("add", built / "lib.a")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[-1] == "2 binaries: 3 of 3 functions covered, 140 bytes of SFrame"
    assert covered(built / "lib.a") == [2, 1]
    assert subprocess.check_output(["ar", "t", "lib.a"], cwd=built).split() == [b"one.o", b"two.o", b"note"]
    assert subprocess.check_output(["ar", "p", "lib.a", "note"], cwd=built) == b"a text"
    subprocess.run(["gcc", "-o", "again", "lib.a"], cwd=built, check=True, stderr=subprocess.DEVNULL)
    assert subprocess.run([built / "again"], check=False).returncode == 3


def test_an_archive_without_call_frame_information_stays(built: Path) -> None:
    subprocess.run(["ar", "rc", "texts.a", "note"], cwd=built, check=True)
    before = (built / "texts.a").read_bytes()
    missing = "there is no .eh_frame or .debug_frame section in any member"
    assert told(run("add", built / "texts.a")) == (1, f"{built / 'texts.a'}: {missing}")
    missing = "there is no table of Go's functions in any member"
    assert told(run("add", "--source", "go", built / "texts.a")) == (1, f"{built / 'texts.a'}: {missing}")
    assert (built / "texts.a").read_bytes() == before


def test_several_files_get_a_line_each_and_the_rest_goes_on(built: Path) -> None:
    done = run("add", built / "one.o", built / "note", built / "two.o")
    assert done.returncode == 3
    lines = done.stdout.decode().splitlines()
    assert [line.partition(": ")[0] for line in lines] == [str(built / "one.o"), str(built / "two.o"), "2 binaries"]
    assert done.stderr.decode() == f"walkback: {built / 'note'}: this is not an ELF file\n"
    assert covered(built / "one.o") == [2]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["one.o", "two.o", "-o", "new"], "--output is for one file, and cannot be combined with --in-place"),
        (["one.o", "--in-place", "-o", "new"], "--output is for one file, and cannot be combined with --in-place"),
        (["."], ". is a folder; --in-place adds SFrame to every binary in it"),
        ([".", "-o", "new"], "--output is for one file, and cannot be combined with --in-place"),
    ],
)
def test_wrong_usage_changes_nothing(built: Path, args: list[str], message: str) -> None:
    before = {path: path.read_bytes() for path in built.iterdir()}
    done = run("add", *args, cwd=built)
    assert (done.returncode, done.stderr.decode().splitlines()[-1]) == (2, f"Error: {message}")
    assert {path: path.read_bytes() for path in built.iterdir()} == before


def test_a_folder_gets_sframe_in_every_binary(built: Path) -> None:
    below = built / "below"
    below.mkdir()
    shutil.copy(built / "program", below / "without")
    subprocess.run(["objcopy", "--only-keep-debug", built / "program", below / "program.debug"], check=True)
    (below / "second").hardlink_to(built / "program")
    (below / "link").symlink_to("../program")
    texts = {path: path.read_bytes() for path in (built / "note", built / "one.c", below / "program.debug")}
    done = run("add", "--in-place", built)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[-1].endswith("; 1 without unwind tables")
    assert {path: path.read_bytes() for path in texts} == texts
    for name in ("one.o", "two.o", "lib.a", "program", "below/without"):
        assert covered(built / name)
    assert (below / "link").is_symlink()
    assert (built / "program").samefile(below / "second")
    assert subprocess.run([below / "second"], check=False).returncode == 3
    assert sorted(os.listdir(below)) == ["link", "program.debug", "second", "without"]


def test_what_is_broken_in_a_folder_is_reported_and_the_rest_gets_sframe(built: Path) -> None:
    (built / "cut").write_bytes((built / "program").read_bytes()[:3000])
    done = run("add", "--in-place", "--json", built)
    assert done.returncode == 3
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"walkback: {built / 'cut'}: ")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["type"] for one in objects} == {"added"}
    assert [os.path.basename(one["file"]) for one in objects if "(" not in one["file"]] == ["one.o", "program", "two.o"]


def test_objects_for_gnu_ld_are_as_it_takes_them(built: Path) -> None:
    assert run("add", "--for", "gnu-ld", built / "one.o", built / "lib.a").returncode == 0
    for name in ("one.o", "lib.a"):
        assert all(report.loads for report in walkback.check(built / name, consumer="gnu-ld"))
    code, message = told(run("add", "--for", "gnu-ld", built / "program"))
    assert (code, message) == (
        3,
        f"{built / 'program'}: GNU ld reads the SFrame of objects, and this is a linked file",
    )


def test_each_file_is_compared_with_itself(built: Path) -> None:
    files = [built / name for name in ("one.o", "two.o", "program")]
    run("add", *files)
    done = run("compare", "--each", *files)
    assert done.returncode == 0
    titles = [line for line in done.stdout.decode().splitlines() if not line.startswith(" ")]
    assert titles == [f"{path}: .eh_frame and .sframe" for path in files]
    done = run("compare", *files)
    assert (done.returncode, b"--each compares the two tables of any number" in done.stderr) == (2, True)


def test_a_name_that_stands_for_another_file_by_now_is_left_alone(built: Path) -> None:
    problems: list[OSError] = []
    (binary,) = binaries(str(linked_twice(built)), problems.append)
    walkback.add(binary.names[0])
    other = Path(binary.names[1])
    other.unlink()
    other.write_text("a new file")
    link_again(binary)
    assert other.read_text() == "a new file"
    assert len(os.listdir(other.parent)) == 2


def linked_twice(built: Path) -> Path:
    folder = built / "below"
    folder.mkdir()
    for name in ("first", "second"):
        (folder / name).hardlink_to(built / "program")
    return folder


def test_a_link_that_takes_the_place_of_a_listed_file_leads_nowhere(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = built.parent / "outside"
    shutil.copy(built / "program", outside)
    before = outside.read_bytes()

    def listed(folder: str, problem: Callable[[OSError], None]) -> Iterator[Binary]:
        found = list(binaries(folder, problem))
        (built / "program").unlink()
        (built / "program").symlink_to(outside)
        return iter(found)

    monkeypatch.setattr(verb, "binaries", listed)
    done = in_process("add", "--in-place", built)
    assert done.exit_code == 3
    assert "another file took its place after the folder was listed" in done.stderr
    assert outside.read_bytes() == before


def test_what_cannot_be_written_or_listed_does_not_end_the_rest(built: Path) -> None:
    for name in ("below", "closed"):
        (built / name).mkdir()
        shutil.copy(built / "program", built / name / "program")
    (built / "below").chmod(0o555)
    (built / "closed").chmod(0)
    command: list[str | Path] = [*without_privilege(), WALKBACK, "add", "--in-place", built]
    done = subprocess.run(command, capture_output=True, check=False)
    for name in ("below", "closed"):
        (built / name).chmod(0o755)
    assert done.returncode == 3
    assert done.stderr.decode().splitlines() == [
        f"walkback: {built / 'closed'}: Permission denied",
        f"walkback: cannot write {built / 'below' / 'program'}: Permission denied",
    ]
    assert covered(built / "program")
    assert covered(built / "two.o")
    assert done.stdout.decode().splitlines()[-1].startswith("5 binaries: ")


def test_a_hard_link_outside_of_the_folder_is_reported(built: Path) -> None:
    (built.parent / "outside").hardlink_to(built / "program")
    done = run("add", "--in-place", built)
    assert (
        done.stderr.decode() == f"walkback: {built / 'program'}: hard links outside of the folder keep the old file\n"
    )
    assert done.returncode == 0


def test_for_a_linker_linked_files_stay(built: Path) -> None:
    before = (built / "program").read_bytes()
    done = run("add", "--in-place", "--for", "gnu-ld", built)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (built / "program").read_bytes() == before


def test_a_section_that_no_binary_has_is_1(built: Path) -> None:
    done = run("add", "--in-place", "--section", ".nothing", built)
    assert done.returncode == 1


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_done(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a disk that is damaged there."""
    read: Callable[..., BinaryIO] = os.fdopen

    def raising(error: OSError) -> None:
        raise error

    def fdopen(descriptor: int, *mode: str) -> BinaryIO:
        if os.readlink(f"/proc/self/fd/{descriptor}") == str(built / "one.o"):
            os.close(descriptor)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(descriptor, *mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", fdopen)
        found = [binary.names[0] for binary in binaries(str(built), raising)]
    assert found == [str(built / name) for name in ("lib.a", "one.o", "program", "two.o")]


def test_standard_input_is_not_changed_in_place() -> None:
    done = run("add", "--in-place", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--in-place changes files, and standard input is none" in done.stderr
