"""Stacks of programs without call frame information: by the rules that their code shows."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

import walkback
from sectionless import without_section_headers
from waiting import eventually
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int waits(const void *one, const void *other)
{
  volatile char room[64];
  memset((char *)room, 1, 64);
  pause();
  return one == other;
}

__attribute__((noinline)) int deep(int left)
{
  volatile char room[100];
  memset((char *)room, left, 100);
  if (left)
    return deep(left - 1) + room[left % 100];
  int values[] = {4, 3, 2, 1};
  qsort(values, 4, sizeof *values, waits);
  return values[0];
}

int main(void) { return deep(5); }
"""


NO_HEADERS = ("-O1", "-s", "-rdynamic")
"""Of a program whose section headers are taken away: its names are those of the loader."""


@pytest.mark.parametrize("flags", [("-O0", "-fomit-frame-pointer"), ("-O2",), ("-Os", "-s", "-no-pie"), NO_HEADERS])
def test_a_program_without_call_frames_has_whole_stacks(flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "waits.c").write_text(PROGRAM)
    bare = ("-fno-asynchronous-unwind-tables", "-fno-unwind-tables")
    subprocess.run(["gcc", *bare, *flags, "-o", "waits", "waits.c"], cwd=tmp_path, check=True)
    if flags == NO_HEADERS:
        without_section_headers(tmp_path / "waits", tmp_path / "waits")
    with subprocess.Popen([tmp_path / "waits"]) as process:
        try:
            assert eventually(lambda: any("pause" in one for one in walkback.stack(process.pid).labels(0)))
            shot = walkback.stack(process.pid)
        finally:
            process.kill()
    labels, how = shot.labels(0), [How(one) for one in shot.stacks.how.tolist()]
    if flags == NO_HEADERS:
        assert labels.count("deep") == 6
        assert "main" in labels
    if "-s" not in flags:
        assert [label for label in labels if label in {"waits", "deep"}] == ["waits", *["deep"] * 6]
        assert "_start" in labels[-1]
    assert shot.stacks.end[0] == End.COMPLETE
    assert len(how) >= 13  # `pause`, `waits`, two of `qsort` or more, six of `deep`, `main`, two of the start, `_start`
    assert how.count(How.CODE) >= 6
    assert How.FP_GUESS not in how
