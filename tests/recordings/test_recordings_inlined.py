"""Lists of calls with those that are inlined, beside `perf script --inline`: of C++ and Rust, sample by sample."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from debuginfo.symbolizers import llvm_symbolizer
from peers import peer
from recordings.inlinedprograms import CONTAINERS, NUMBERS, RUST, TEXT
from recordings.perfscript import CUT, perf, record
from walkback.symbols.demangle import demangle, without_parameters

pytestmark = pytest.mark.peers


class Call(NamedTuple):
    """A line of the text."""

    address: int
    name: str | None
    start: int | None
    """How far before the address its function begins."""
    module: str
    is_inlined: bool


_HEADER = re.compile(r"\S.*?\s(\d+) +(\d+\.\d+):")
_CALL = re.compile(r"\s+([0-9a-f]+) (.*?)(?:\+0x([0-9a-f]+))? \((inlined|[/[].*)\)$")


def calls(text: str) -> list[tuple[tuple[str, str], list[Call]]]:
    """The thread and time of each sample, and its calls, innermost first."""
    found: list[tuple[tuple[str, str], list[Call]]] = []
    for line in filter(None, text.splitlines()):
        if header := _HEADER.match(line):
            found.append(((header[1], header[2]), []))
            continue
        call = _CALL.match(line)
        assert call, line
        address, name, start, module = call.groups()
        symbol, begin = None if name == "[unknown]" else name, None if start is None else int(start, 16)
        found[-1][1].append(Call(int(address, 16), symbol, begin, module, module == "inlined"))
    return found


def same_list(ours: list[Call], theirs: list[Call]) -> bool:
    """Whether two lists have the same calls.

    perf writes `(inlined)` behind functions whose symbol has another name, too, so only ours are told apart by it. A
    function is the same that begins at the same place: it can have several symbols. What it is called in a procedure
    linkage table is not compared, as perf 6.1 has no names there.
    """
    theirs = theirs[:-1] if theirs[-1:] and theirs[-1].address == CUT else theirs
    if len(ours) != len(theirs) or not ours:
        return len(ours) == len(theirs)
    function = ours[-1]
    for own, other in zip(reversed(ours), reversed(theirs), strict=True):
        if not own.is_inlined:
            function = own
            if own.start != other.start and other.name and not (own.name or "").endswith("@plt"):
                return False
        elif not is_called(own, other.name) and not is_taken_for(function, own, other):
            return False
    return True


def is_called(call: Call, name: str | None) -> bool:
    """Whether a call has a name, but for parameters, and for scopes that perf or LLVM leaves out."""
    own, other = plain(call.name or ""), plain(name or "")
    return own == other or own.endswith(f"::{other}") or other.endswith(f"::{own}")


@cache
def plain(name: str) -> str:
    return without_parameters(name.partition("@")[0].partition(" [clone")[0]).replace(" ", "")


def is_taken_for(function: Call, own: Call, other: Call) -> bool:
    """Whether perf has the name of the function around, and llvm-symbolizer confirms ours.

    perf asks addr2line, which gives a C++ function that has no symbol of its own that name where it is inlined.
    """
    return is_called(function, other.name) and any(is_called(own, name) for name in known(function.module, own.address))


@cache
def known(module: str, address: int) -> list[str]:
    """What llvm-symbolizer calls the functions at an address."""
    (lines,) = llvm_symbolizer(peer("llvm-symbolizer"), Path(module), np.array([address], np.uint64))
    return demangle([line.function or "" for line in lines])


def theirs(program: str, recording: Path) -> str:
    command = [program, "script", "--inline", "-i", str(recording), "-F", "comm,tid,time,ip,sym,symoff,dso"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ours(recording: Path) -> str:
    command = [sys.executable, "-m", "walkback", "unwind", str(recording), "--format", "perf-script"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("program", ["perf", "perf-new"])
@pytest.mark.parametrize("source", [CONTAINERS, TEXT, NUMBERS, RUST], ids=["containers", "text", "numbers", "rust"])
def test_the_same_calls_as_perf(tmp_path: Path, source: str, program: str) -> None:
    if source == RUST:
        (tmp_path / "a.rs").write_text(source)
        command = [peer("rustc"), "-O", "-g", "a.rs", "-o", "a"]
    else:
        (tmp_path / "a.cc").write_text(source)
        command = ["g++", "-O2", "-g", "-std=c++17", "-pthread", "a.cc", "-o", "a"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    recording = record(tmp_path / "perf.data", [tmp_path / "a"], dump=8192)
    own, other = calls(ours(recording)), calls(theirs(perf() if program == "perf" else peer(program), recording))
    assert [key for key, _ in own] == [key for key, _ in other]
    assert len(own) > 100
    assert sum(call.is_inlined for _, sample in own for call in sample) > len(own)
    pairs = [(a, b) for (_, a), (_, b) in zip(own, other, strict=True)]
    cut = [(a, b) for a, b in pairs if len(b) < len(a) and same_list(a[: len(b)], b)]
    assert len(cut) <= 0.02 * len(own), cut[:2]  # there perf's walk ends early
    different = [(a, b) for a, b in pairs if not same_list(a, b) and (a, b) not in cut]
    assert len(different) <= 0.005 * len(own), different[:2]
