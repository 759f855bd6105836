"""`walkback stack`: core files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from cli.commands import told
from cli.walked import functions, paragraphs, stack
from recorded import core, hello

pytestmark = pytest.mark.usefixtures("own_cache")


def test_a_core_file_as_text(made_core: Path) -> None:
    head, lines = paragraphs(stack(made_core))
    assert head == ["process 100 ./hello, ended by SIGSEGV"]
    assert lines[0] == "thread 100 hello (got the signal)"
    assert functions(lines[1:]) == ["compute", "main", "_start"]


def test_a_signal_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(core(hello(tmp_path), signal=40))
    assert paragraphs(stack(path))[0] == ["process 100 ./hello, ended by signal 40"]


def test_files_are_found_in_the_sysroot(made_core: Path, tmp_path: Path) -> None:
    program = tmp_path / "hello"
    elsewhere = tmp_path / "root" / program.relative_to("/")
    elsewhere.parent.mkdir(parents=True)
    program.rename(elsewhere)
    done = stack(made_core)
    assert done.returncode == 1
    assert "hello" in done.stderr.decode()
    assert b"\n#0   0x000000000040101d [hello] (" in done.stdout
    assert functions(paragraphs(stack("--sysroot", tmp_path / "root", made_core))[1]) == ["compute", "main", "_start"]
    assert functions(paragraphs(stack("--exe", elsewhere, made_core))[1])[:1] == ["compute"]


def test_a_core_file_whose_name_is_a_number(made_core: Path) -> None:
    made_core.rename(made_core.with_name("99999999"))
    assert told(stack("99999999", cwd=made_core.parent)) == (3, "process 99999999: there is no such process")
    assert paragraphs(stack("./99999999", cwd=made_core.parent))[0] == ["process 100 ./hello, ended by SIGSEGV"]


@pytest.mark.peers
def test_a_core_file_of_gdb(target: int, tmp_path: Path) -> None:
    gcore = shutil.which("gcore")
    if gcore is None:
        pytest.skip("needs gdb's gcore")
    subprocess.run([gcore, "-o", tmp_path / "core", str(target)], capture_output=True, check=True)
    live, dead = stack(target), stack(tmp_path / f"core.{target}")
    names = [
        sorted(tuple(functions(part.splitlines())) for part in done.stdout.decode().split("\n\n")[1:])
        for done in (live, dead)
    ]
    assert names[0] == names[1]
    assert dead.returncode == 0


def test_a_core_file_that_is_cut_short_is_shown_as_far_as_it_goes(made_core: Path) -> None:
    made_core.write_bytes(made_core.read_bytes()[:-16])
    done = stack(made_core)
    assert done.returncode == 1
    assert b"compute+0x4" in done.stdout
    assert b"the core file is cut short: 16 bytes of memory are missing" in done.stderr
