"""The command with little memory and few open files: what is not needed is not copied, and nothing stays open."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from cli.commands import NEWEST_VERB_TARGET, VERBS, WALKBACK, told
from sframefiles import SFRAME, placing, relocatable, small, written
from waiting import PATIENCE

pytestmark = pytest.mark.whole

if TYPE_CHECKING:
    from pathlib import Path

HUGE = 20 << 30
"""Bytes of a hole: they take no disk, and no memory unless somebody copies them."""
TOO_MUCH = "{size} bytes at {place:#x} are more than are read at once, which is 4294967296"
MEMORY = 300 << 10
OPEN_FILES = 64
MEMBERS = 100


def limited(*args: str | Path) -> subprocess.CompletedProcess[bytes]:
    """The command with 300 MB of memory of its own, which mapped files are not, and 64 open files."""
    command = f'ulimit -d {MEMORY} && ulimit -n {OPEN_FILES} && exec "$0" "$@"'
    return subprocess.run(["sh", "-c", command, WALKBACK, *args], capture_output=True, check=False, timeout=PATIENCE)


def on(verb: str, path: Path, *options: str | Path) -> subprocess.CompletedProcess[bytes]:
    return limited(verb, path, *options, *NEWEST_VERB_TARGET.get(verb, []))


def sparse(path: Path, size: int) -> Path:
    """The file, made longer by a hole."""
    with path.open("r+b") as file:
        file.truncate(size)
    return path


# Memory


@pytest.mark.parametrize("kilobytes", [50_000, 60_000])
def test_too_little_memory_for_libraries_is_one_line(kilobytes: int) -> None:
    command = f'ulimit -v {kilobytes} && exec "$0" check /bin/true'
    done = subprocess.run(["sh", "-c", command, WALKBACK], capture_output=True, check=False, timeout=PATIENCE)
    status, line = told(done)
    assert (status, line.partition(": ")[0], line.count("\n")) == (3, "cannot be run", 0)


@pytest.mark.parametrize("verb", VERBS)
def test_raw_bytes_that_are_a_hole_are_refused(verb: str, tmp_path: Path) -> None:
    path = sparse(written(tmp_path, small().bytes()), HUGE)
    done = limited(verb, path, "--address", hex(SFRAME), *(["0x1020"] if verb == "find" else []))
    assert told(done) == (3, f"{path}: {TOO_MUCH.format(size=HUGE, place=0)}")


def enlarged(folder: Path, name: str, size: int) -> Path:
    """An object one of whose sections goes on in a hole."""
    elf = relocatable(small(), placing(3))
    image = elf.build()
    (index,) = (number for number, section in enumerate(elf.sections) if section.name == name)
    image.section(index, "sh_offset", len(image.data)).section(index, "sh_size", size)
    whole = bytes(image) + elf.sections[index].data
    return sparse(written(folder, whole), len(image.data) + size)


@pytest.mark.parametrize("verb", VERBS)
def test_a_section_of_many_gigabytes_is_refused(verb: str, tmp_path: Path) -> None:
    path = enlarged(tmp_path, ".sframe", HUGE)
    place = path.stat().st_size - HUGE
    assert told(on(verb, path)) == (3, f"{path}: {TOO_MUCH.format(size=HUGE, place=place)}")


@pytest.mark.parametrize(("verb", "status"), [("show", 0), ("check", 0), ("find", 1)])
def test_names_of_many_gigabytes_are_done_without(verb: str, status: int, tmp_path: Path) -> None:
    assert on(verb, enlarged(tmp_path, ".strtab", HUGE)).returncode == status


@pytest.mark.parametrize("name", [".symtab", ".rela.sframe"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_table_that_is_needed_and_is_a_hole_is_one_line_and_3(verb: str, name: str, tmp_path: Path) -> None:
    path = enlarged(tmp_path, name, size := (2 << 30) // 24 * 24)
    place = path.stat().st_size - size
    assert told(on(verb, path)) == (3, f"{path}: {size} bytes at {place:#x} are mostly a hole in the file")


def header(name: str, size: int) -> bytes:
    """Of a member of an archive."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_long_names_of_many_gigabytes_are_refused(verb: str, thin: bool, tmp_path: Path) -> None:
    member = written(tmp_path, relocatable(small(), placing(3)), "the-name-of-the-member.o").read_bytes()
    size = 9 << 30
    start = (b"!<thin>\n" if thin else b"!<arch>\n") + header("//", size)
    path = sparse(written(tmp_path, start + b"the-name-of-the-member.o/\n", "all.a"), len(start) + size)
    with path.open("ab") as file:
        file.write(header("/0", len(member)) + (b"" if thin else member))
    done = on(verb, path)
    assert told(done) == (3, f"{path}: {TOO_MUCH.format(size=size, place=len(start))}")


# Open files


@pytest.fixture(scope="module", params=["rcS", "rcST"], ids=["ordinary", "thin"])
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with more members than files may be open; each has `f0` to `f7`, and the last also `last`."""
    folder = tmp_path_factory.mktemp("many")
    elf = relocatable(small(), placing(3))
    plain = bytes(elf.build())
    elf.symbol(next(iter(elf.symbol_tables)), "last", 0, section=1, size=32)
    members = [written(folder, plain, f"{number}.o").name for number in range(MEMBERS - 1)]
    members.append(written(folder, elf, "last.o").name)
    subprocess.run(["ar", request.param, "many.a", *members], cwd=folder, check=True)
    return folder / "many.a"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("verb", "answers"),
    [
        ("show", b": .sframe section at 0x0, 136 bytes\n"),
        ("check", b": .sframe: 3 functions, 12 rows: no findings\n"),
    ],
    ids=["show", "check"],
)
def test_of_many_members_all_are_read(verb: str, answers: bytes, many: Path) -> None:
    done = limited(verb, many)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(answers) == MEMBERS


def test_a_symbol_of_one_member_is_found_among_many(many: Path) -> None:
    done = limited("find", many, "last")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"(function 0: .text+0x0, 32 bytes)") == 1


def test_a_symbol_of_many_members_is_found_in_all(many: Path) -> None:
    done = limited("find", many, "f1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"(function 1: .text+0x20, 32 bytes)") == MEMBERS


def test_a_symbol_of_no_member_is_missed_among_many(many: Path) -> None:
    assert told(limited("find", many, "nobody")) == (1, f"{many}: there is no symbol or section nobody")
