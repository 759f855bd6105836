"""The command with little memory and few open files: what is not needed is not copied, and nothing stays open."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from test_cli_process import NEWEST_VERB_TARGET, VERBS, WALKBACK, told

from test_files import SFRAME, placing, relocatable, small, written
from waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

HUGE = 20 << 30
"""Bytes of a hole: they take no disk, and no memory unless somebody copies them."""
MEMORY = 300 << 10
OPEN_FILES = 64
MEMBERS = 100


def limited(*args) -> subprocess.CompletedProcess[bytes]:
    """The command with 300 MB of memory of its own, which mapped files are not, and 64 open files."""
    command = f'ulimit -d {MEMORY} && ulimit -n {OPEN_FILES} && exec "$0" "$@"'
    return subprocess.run(["sh", "-c", command, WALKBACK, *args], capture_output=True, check=False, timeout=PATIENCE)


def on(verb: str, path: Path, *options) -> subprocess.CompletedProcess[bytes]:
    return limited(verb, path, *options, *NEWEST_VERB_TARGET.get(verb, []))


def sparse(path: Path, size: int) -> Path:
    """The file, made longer by a hole."""
    with path.open("r+b") as file:
        file.truncate(size)
    return path


# Memory


@pytest.mark.parametrize("verb", VERBS)
def test_what_follows_a_section_is_not_copied(verb: str, tmp_path: Path) -> None:
    data = small().bytes()
    path = sparse(written(tmp_path, data), HUGE)
    done = limited(verb, path, "--address", hex(SFRAME), *(["0x1020"] if verb == "find" else []))
    assert done.stderr == b""
    expected = {
        "show": (0, f"SFrame section at 0x2000, {HUGE} bytes"),
        "check": (1, f"{HUGE - len(data)} bytes follow the FRE sub-section [section-tail]"),
        "find": (0, "0x1020: function 1+0x0 (function 1: 0x1020, 32 bytes)"),
    }
    status, text = expected[verb]
    assert (done.returncode, text in done.stdout.decode()) == (status, True)


def enlarged(folder: Path, name: str, size: int) -> Path:
    """An object one of whose sections goes on in a hole."""
    elf = relocatable(small(), placing(3))
    image = elf.build()
    (index,) = (number for number, section in enumerate(elf.sections) if section.name == name)
    image.section(index, "sh_offset", len(image.data)).section(index, "sh_size", size)
    whole = bytes(image) + elf.sections[index].data
    return sparse(written(folder, whole), len(image.data) + size)


@pytest.mark.parametrize("name", [".strtab", ".sframe"])
@pytest.mark.parametrize("verb", VERBS)
def test_sections_of_many_gigabytes_are_not_copied(verb: str, name: str, tmp_path: Path) -> None:
    done = on(verb, enlarged(tmp_path, name, HUGE))
    assert done.stderr == b""
    if verb == "check":
        assert (done.returncode, b"section-tail" in done.stdout) == ((1, True) if name == ".sframe" else (0, False))
    else:
        assert (done.returncode, b"f1" in done.stdout) == (0, True)


@pytest.mark.parametrize("name", [".symtab", ".rela.sframe"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_table_that_is_needed_and_does_not_fit_is_one_line_and_3(verb: str, name: str, tmp_path: Path) -> None:
    path = enlarged(tmp_path, name, (2 << 30) // 24 * 24)
    assert told(on(verb, path)) == (3, f"{path}: there is not enough memory for this file")


def header(name: str, size: int) -> bytes:
    """Of a member of an archive."""
    return f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{size:<10}`\n".encode()


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_long_names_of_many_gigabytes_are_not_copied(verb: str, thin: bool, tmp_path: Path) -> None:
    member = written(tmp_path, relocatable(small(), placing(3)), "the-name-of-the-member.o").read_bytes()
    size = 9 << 30
    start = (b"!<thin>\n" if thin else b"!<arch>\n") + header("//", size)
    path = sparse(written(tmp_path, start + b"the-name-of-the-member.o/\n", "all.a"), len(start) + size)
    with path.open("ab") as file:
        file.write(header("/0", len(member)) + (b"" if thin else member))
    done = on(verb, path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"the-name-of-the-member.o" in done.stdout


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
