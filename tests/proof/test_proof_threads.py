"""However many threads walk through a file, what they find is the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from codetables import table_of
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.proof import _scan, _starts, _tally, walks
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict

_PARTS = ("verdicts", "reasons", "runs")


def _with(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))


def _proof(path: Path) -> Proof:
    elf = ElfFile(path)
    [source] = [one for one in frame_sources(elf) if one.name == ".eh_frame"]
    return Prover(elf).prove(source.table, source)


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with some thousand functions, of which threads take few at once."""
    monkeypatch.setattr(walks, "_AT_ONCE", 64)
    monkeypatch.setattr(_scan, "AT_ONCE", 1 << 14)
    monkeypatch.setattr(_starts, "AT_ONCE", 1 << 14)
    [path] = Path("/usr/lib").glob("*-linux-gnu/libc.so.6")
    return path


def test_the_proof_does_not_depend_on_the_number_of_threads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(1, monkeypatch)
    alone = _proof(path)
    for processors in (2, 5):
        _with(processors, monkeypatch)
        together = _proof(path)
        for part in _PARTS:
            assert np.array_equal(getattr(together, part), getattr(alone, part))
    assert len(alone.runs) > 50


# The first function ends 7 bytes in front of a multiple of 8, and jumps into data of the one behind it.
AT_THE_BORDER = """
    .balign 4096
f0: .cfi_startproc
    .skip 16377 - 6, 0x90
    .byte 0x0f, 0x84
    .long inner - (. + 4)
    .cfi_endproc
f1: .cfi_startproc
    ret
    .byte 0x48, 0xb8
inner:
    .byte 0xe9
    .long f2 + 1 - (. + 4)
    .byte 0, 0, 0
    ret
    .skip 40, 0xc3
    .cfi_endproc
    .balign 16
f2: .cfi_startproc
    ret
    xorl %eax, %eax
    ret
    .cfi_endproc
f3: .cfi_startproc
    .skip 200000, 0x90
    ret
    .cfi_endproc
"""


@pytest.mark.usefixtures("path")
def test_a_jump_out_of_a_piece_is_seen_by_the_next_however_many_threads_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "library.so"
    subprocess.run(["as", "-o", tmp_path / "library.o"], input=AT_THE_BORDER.encode(), check=True)
    subprocess.run(["ld", "-shared", "-o", path, tmp_path / "library.o"], check=True)
    found = []
    for processors in (1, 2, 2, 2, 5):
        _with(processors, monkeypatch)
        found.append(_proof(path))
    assert int(found[0].verdicts[1, Verdict.PROVED]) > 0
    for part in _PARTS:
        assert all(np.array_equal(getattr(one, part), getattr(found[0], part)) for one in found)


def test_which_runs_are_kept_does_not_depend_on_who_is_done_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tally, "kept", lambda rows, before=0: rows[: max(20 - before, 0)])
    runs = []
    for processors in (1, 2, 3, 5):
        _with(processors, monkeypatch)
        runs.append(_proof(path).runs)
    assert len(runs[0]) == 20
    assert all(np.array_equal(one, runs[0]) for one in runs)


def test_the_rules_of_code_do_not_depend_on_the_number_of_threads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(1, monkeypatch)
    alone = table_of(ElfFile(path))
    _with(3, monkeypatch)
    together = table_of(ElfFile(path))
    assert len(alone) > 1000
    assert alone.range_start.tolist() == together.range_start.tolist()
    assert alone.row_offset.tolist() == together.row_offset.tolist()
    assert [alone.rule(row) for row in range(len(alone.row_rule))] == [
        together.rule(row) for row in range(len(together.row_rule))
    ]
