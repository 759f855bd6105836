"""`--verify` and `--repair`: tables that leave out or mend what the machine code contradicts."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

import walkback
from cli.commands import run
from damaged import assembled, assembly, damaged, damages, functions
from effort import rounds
from proof.assembled import END, HEAD

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kernel

WRONG = "push %rbx; xor %ebx,%ebx; call g; pop %rbx; ret"
LOST = "push %rbp; nop; sub %rdi,%rsp; xor %ebp,%ebp; call g; hlt"


def function(folder: Path, text: str) -> Path:
    path = folder / "f.o"
    lines = HEAD + text.replace(";", "\n") + END + "\n"
    subprocess.run(["as", "-o", path, "-"], input=lines.encode(), check=True)
    return path


def test_what_is_wrong_is_left_out(tmp_path: Path) -> None:
    path = function(tmp_path, WRONG)
    assert walkback.derive(path).covered == 1
    derived = walkback.derive(path, verify=True)
    assert (derived.covered, derived.repaired) == (0, [])
    [one] = derived.unwanted
    assert (one.name, one.size, one.reason) == ("f", 10, "the machine code contradicts its rules")


def test_what_is_wrong_is_mended(tmp_path: Path) -> None:
    path = function(tmp_path, WRONG)
    added = walkback.add(path, tmp_path / "new.o", repair=True)
    assert [one.name for one in added.derived.repaired] == ["f"]
    assert (added.derived.covered, added.derived.unwanted) == (1, [])
    [sframe] = walkback.verify(tmp_path / "new.o", table=".sframe")
    assert (sframe.wrong, sframe.proved) == (0, sframe.bytes)
    [section] = walkback.ElfFile(tmp_path / "new.o").sframe
    rows = [section.table.rule(row).cfa.offset for row in range(3)]
    assert (rows, section.table.row_offset.tolist()) == ([8, 16, 8], [0, 1, 9])


def test_what_no_rule_mends_is_left_out(tmp_path: Path) -> None:
    derived = walkback.derive(function(tmp_path, LOST), repair=True)
    assert ([one.name for one in derived.unwanted], derived.repaired) == (["f"], [])


def test_the_command_names_them(tmp_path: Path) -> None:
    path = function(tmp_path, WRONG)
    lines = run("derive", path, "-o", tmp_path / "out", "--verify").stdout.decode().splitlines()
    assert lines[-1] == "  left out: .text+0x0 f (10 bytes): the machine code contradicts its rules"
    done = run("add", path, "-o", tmp_path / "new.o", "--repair", "--json")
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["repaired"]] == ["f"]
    assert found["unwanted"] == []
    done = run("add", path, "-o", tmp_path / "new.o", "--repair")
    assert "  proved: the same rule at every address but those repaired; written to" in done.stdout.decode()


@pytest.mark.parametrize("verb", ["derive", "add"])
@pytest.mark.parametrize(("options", "status"), [([], 0), (["--verify"], 1), (["--repair"], 0)])
def test_strict_is_1_if_a_function_is_left_out_as_wrong(
    verb: str, options: list[str], status: int, tmp_path: Path
) -> None:
    path = function(tmp_path, WRONG)
    assert run(verb, path, "-o", tmp_path / "out", "--strict", *options).returncode == status
    assert run(verb, path, "-o", tmp_path / "out", *options).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc", "aarch64-gcc", "s390x-gcc"])
def test_damaged_rules_of_real_code_are_mended(compiler: str, tmp_path: Path) -> None:
    lines = assembly(compiler, "-O2", folder=tmp_path)
    every = [one for first, end in functions(lines) for one in damages(lines, first, end)]
    mended = 0
    for one in every[:: max(1, len(every) // rounds(24, quick=6))]:
        path = assembled(compiler, damaged(lines, one), tmp_path / "damaged.o")
        if path is None:
            continue
        added = walkback.add(path, tmp_path / "new.o", repair=True)
        mended += len(added.derived.repaired)
        assert all(found.wrong == 0 for found in walkback.verify(tmp_path / "new.o", table=".sframe"))
    assert mended
