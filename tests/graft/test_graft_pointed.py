"""What a program can look at by a symbol or a pointer stays where it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from grafting import graft

NOTE = """
#include <stdio.h>
__attribute__((section(".note.mine"), aligned(4), used))
static const struct { int name, size, type; char words[12]; } mine = {4, 12, 1, "payload"};
const char *volatile where = mine.words;
int main(void) { puts(where); puts(mine.words); return 0; }
"""
BUILD_ID = """
#include <stdio.h>
extern const int build_id_start[];
int main(void) { printf("type %d size %d\\n", build_id_start[2], build_id_start[1]); return 0; }
"""
SCRIPT = "SECTIONS { .note.gnu.build-id : { build_id_start = .; *(.note.gnu.build-id) } } INSERT AFTER .interp;"


def said(path: Path) -> bytes:
    return subprocess.run([path], capture_output=True, check=True).stdout


@pytest.mark.parametrize("options", ["", "-s", "-no-pie", "-static"])
def test_a_note_of_the_programs_own(tmp_path: Path, options: str) -> None:
    (tmp_path / "note.c").write_text(NOTE)
    program = tmp_path / "note"
    subprocess.run(["gcc", *options.split(), "-o", program, tmp_path / "note.c"], check=True)
    graft(program, tmp_path / "grafted")
    assert said(tmp_path / "grafted") == said(program) == b"payload\npayload\n"


def test_a_build_id_that_has_a_symbol(tmp_path: Path) -> None:
    (tmp_path / "id.c").write_text(BUILD_ID)
    (tmp_path / "id.ld").write_text(SCRIPT)
    program = tmp_path / "id"
    script = tmp_path / "id.ld"
    subprocess.run(["gcc", "-Wl,--build-id", f"-Wl,-T,{script}", "-o", program, tmp_path / "id.c"], check=True)
    graft(program, tmp_path / "grafted")
    assert said(tmp_path / "grafted") == said(program) == b"type 3 size 20\n"
