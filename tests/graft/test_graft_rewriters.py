"""Programs that `walkback add` changed outlive the tools that rewrite finished files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from grafting import PROGRAMS, compiled, output_of
from rewriting import REWRITERS, outlived, printed
from walkback import add

MANY = {
    "pie-now": "-Wl,-z,now",
    "pie-norelro": "-Wl,-z,norelro",
    "pie-sysv": "-Wl,--hash-style=sysv",
    "pie-gnu": "-Wl,--hash-style=gnu",
    "pie-both": "-Wl,--hash-style=both",
    "pie-no-stack": "-Wl,-z,nognustack",
    "pie-debug-rpath": "-g -Wl,-rpath,/some/folder",
    "pie-big-pages": "-Wl,-z,max-page-size=0x200000",
    "pie-many": "-rdynamic",
    "exec-now": "-no-pie -Wl,-z,now",
    "exec-no-build-id": "-no-pie -Wl,--build-id=none",
    "exec-noseparate": "-no-pie -Wl,-z,noseparate-code",
    "exec-norelro": "-no-pie -Wl,-z,norelro",
    "exec-stripped": "-no-pie -s",
    "exec-many": "-no-pie -rdynamic",
}
KINDS = PROGRAMS | MANY
LINKERS = ("ld.lld", "mold", "gold-2.40", "gold-2.44", "ld-2.44", "ld-new")
EVERY = [(name, "") for name in KINDS] + [
    (name, linker)
    for name in ("pie", "exec", "no-build-id", "exec-no-build-id", "static", "static-pie")
    for linker in LINKERS
    if name != "static-pie" or not linker.startswith("gold")  # which makes none
]
SAMPLE = [("pie-debug-rpath", ""), ("exec", ""), ("exec-many", ""), ("exec-no-build-id", ""), ("no-build-id", "mold")]
IN_SAMPLE = [name for name in REWRITERS if "strip-debug" not in name and "set-soname" not in name]
REAL = {
    "/usr/bin/python3.11": ("-I", "-S", "-c", "import json, zlib; print(json.dumps(sorted(vars(zlib))))"),
    "/usr/bin/git": ("--exec-path",),
    "/usr/bin/perl": ("-e", "use POSIX; print floor(3.7), sqrt(2)"),
    "/bin/bash": ("-c", "for i in 1 2 3; do echo $((i * i)); done"),
    "/usr/bin/sort": ("/etc/passwd",),
    "cc1": ("--help=common",),
}

pytestmark = pytest.mark.peers
long = pytest.mark.long


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def program_of(name: str, linker: str, folder: Path) -> Path:
    options = KINDS[name]
    if "rdynamic" in options:  # tables of symbols that are longer than `.dynamic`
        source = folder / "many.c"
        source.write_text(
            "".join(f"int some_function_{number}(void) {{ return {number}; }}\n" for number in range(800))
        )
        options += f" {source}"
    return compiled(folder, name, options, linker)


@pytest.mark.parametrize(("name", "linker"), SAMPLE)
def test_a_program_outlives_the_tools(name: str, linker: str, folder: Path, tmp_path: Path) -> None:
    program = program_of(name, linker, folder)
    added = add(program, tmp_path / "grafted")
    assert outlived(program, tmp_path / "grafted", added.notes, printed, IN_SAMPLE) == []


@pytest.mark.parametrize(("name", "expected"), [("exec-many", True), ("exec-no-build-id", False), ("pie-many", False)])
def test_room_in_front_is_taken_in_programs_at_fixed_addresses(
    name: str, expected: bool, folder: Path, tmp_path: Path
) -> None:
    added = add(program_of(name, "", folder), tmp_path / "grafted")
    assert any("a section .pad takes" in note for note in added.notes) == expected


def test_a_tool_that_refuses_the_result_is_named(folder: Path, tmp_path: Path) -> None:
    added = add(program_of("pie-debug-rpath", "", folder), tmp_path / "grafted")
    assert "dwz refuses files with loaded sections behind debug information: run it before" in added.notes
    assert not any("dwz" in note for note in add(program_of("pie", "", folder), tmp_path / "grafted").notes)


class TestEveryKind:
    pytestmark = long

    @pytest.mark.parametrize(("name", "linker"), EVERY)
    def test_it_outlives_every_tool(self, name: str, linker: str, folder: Path, tmp_path: Path) -> None:
        program = program_of(name, linker, folder)
        added = add(program, tmp_path / "grafted")
        assert outlived(program, tmp_path / "grafted", added.notes, printed, list(REWRITERS)) == []


class TestRealPrograms:
    pytestmark = long

    @pytest.mark.parametrize("name", REAL)
    def test_they_outlive_every_tool(self, name: str, tmp_path: Path) -> None:
        found = shutil.which(name) or subprocess.check_output(["gcc", f"-print-prog-name={name}"], text=True).strip()
        if not Path(found).is_file():
            pytest.skip(f"needs {name}")
        added = add(found, tmp_path / "grafted")
        lost = outlived(
            Path(found), tmp_path / "grafted", added.notes, lambda path: output_of(path, *REAL[name]), list(REWRITERS)
        )
        assert lost == []
