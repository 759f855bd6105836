"""However many threads walk through a file, what they find is the same."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from codetables import table_of
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.proof import _scan, _starts, walks
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover

_PARTS = ("verdicts", "reasons", "runs")


def _with(processors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library with some thousand functions, of which threads take few at once."""
    monkeypatch.setattr(walks, "_AT_ONCE", 64)
    monkeypatch.setattr(_scan, "AT_ONCE", 1 << 14)
    monkeypatch.setattr(_starts, "AT_ONCE", 1 << 14)
    [path] = Path("/usr/lib").glob("*-linux-gnu/libc.so.6")
    return path


def test_the_proof_does_not_depend_on_the_number_of_threads(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def proof() -> Proof:
        elf = ElfFile(path)
        [source] = [one for one in frame_sources(elf) if one.name == ".eh_frame"]
        return Prover(elf).prove(source.table, source)

    _with(1, monkeypatch)
    alone = proof()
    for processors in (2, 5):
        _with(processors, monkeypatch)
        together = proof()
        for part in _PARTS:
            assert np.array_equal(getattr(together, part), getattr(alone, part))
    assert len(alone.runs) > 50


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
