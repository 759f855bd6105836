"""Stacks of running Go programs without symbols, against what the programs say themselves is called in their threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gopclntab.callers import Comparison, running, stopped
from gopclntab.gotools import VERSIONS, callers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers
THREADS = "80"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("go")


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_are_what_programs_say(version: str, folder: Path) -> None:
    """Deep stacks, panics, faults, reflection, and functions that wait on the stack of the thread."""
    found = compared(callers(folder, version))
    assert set(found.ways) == {"go"}


@pytest.mark.parametrize("version", VERSIONS)
def test_stacks_cross_to_c_and_back(version: str, folder: Path) -> None:
    """Calls of C that call Go, in threads that C made too, and handlers of signals of both."""
    flags = ("-buildmode=pie",) if version == "1.24" else ()
    found = compared(callers(folder, version, "callers_cgo", "-O2 -fomit-frame-pointer", *flags))
    assert set(found.ways) == {"go", "cfi"}


def compared(program: Path) -> Comparison:
    found = Comparison(program)
    with running(program, "1", THREADS) as (pid, held):
        found.compare(stopped(pid), held)
    assert not found.different
    assert set(found.ends) == {"complete"}
    assert found.stacks == int(THREADS)
    return found
