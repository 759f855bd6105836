"""A recording of perf as `perf script` shows it, and as walkback does, sample by sample."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from waiting import PATIENCE
from walkback.base.errors import WalkbackError
from walkback.capture.unwinding import Unwinding
from walkback.elf import ElfFile
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CUT = 2**64 - 1
"""The address that perf shows where it finds no return address, or 0."""


@dataclass(frozen=True)
class Frame:
    """One frame; `place` is the place in the file, or the address where there is no file."""

    place: int
    symbol: str
    module: str
    kernel: bool = False
    how: How | None = None
    address: int = 0
    """As the file counts."""
    exact: bool = False
    """It is where the thread was, or was when a signal came; else a call has left it."""
    pc: int = 0


@dataclass
class Sample:
    """One stack."""

    tid: int
    time: int
    comm: str
    frames: list[Frame] = field(default_factory=list)
    end: End | None = None


def perf() -> str:
    """The program, if it can record here."""
    found = shutil.which("perf")
    if found is None:
        pytest.skip("needs perf")
    return found


def record(output: Path, command: Sequence[str | Path], *options: str, dump: int = 16384, rate: int = 997) -> Path:
    """Record a command to its end."""
    start = [
        perf(),
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        str(rate),
        "--call-graph",
        f"dwarf,{dump}",
        "--no-bpf-event",
    ]
    done = subprocess.run(
        [*start, *options, "-o", output, "--", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False, cwd=output.parent,
    )  # fmt: skip
    if not output.exists() or not output.stat().st_size:
        pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return output


_HEADER = re.compile(r"\s*(.*?)\s+(-?\d+)\s+(\d+)\.(\d{9}):")
_FRAME = re.compile(r"\s+([0-9a-f]+) (.*) \((.*)\)$")


def theirs(recording: Path) -> list[Sample]:
    """What `perf script` shows."""
    command: list[str | Path] = [perf(), "script", "-i", recording, "--max-stack", "1024", "--no-inline", "--ns"]
    done = subprocess.run(
        [*command, "-F", "comm,tid,time,ip,sym,dso"], capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[Sample] = []
    for line in done.stdout.splitlines():
        if not line.strip():
            continue
        if (frame := _FRAME.match(line)) and line[0] in "\t " and not _HEADER.match(line):
            place, symbol, module = frame.groups()
            found[-1].frames.append(Frame(int(place, 16), symbol, module))
        else:
            header = _HEADER.match(line)
            assert header, line
            comm, tid, seconds, rest = header.groups()
            found.append(Sample(int(tid), int(seconds) * 10**9 + int(rest), comm))
    return found


def ours(recording: Path, **options: Any) -> list[Sample]:
    """What walkback shows."""
    found = []
    unwinding = Unwinding(recording, demangle=False, cache=False, inline=False, **options)
    for batch in unwinding:
        frames = batch.frames
        for i in range(len(batch)):
            sample = Sample(
                int(batch.tid[i]), int(batch.time[i]), batch.comms[batch.comm[i]], end=End(int(batch.end[i]))
            )
            for k in range(int(batch.first[i]), int(batch.first[i + 1])):
                number, how = int(batch.frame[k]), How(int(batch.how[k]))
                address, module = int(frames.address[number]), frames.module[number]
                kernel = bool(frames.kernel[number])
                place = address if kernel else in_file(module, address)
                exact = int(batch.pc[k]) == int(batch.lookup[k])
                sample.frames.append(
                    Frame(place, frames.symbol[number] or "", module, kernel, how, address, exact, int(batch.pc[k]))
                )
            found.append(sample)
    return found


@cache
def elf_of(module: str) -> ElfFile | None:
    try:
        return ElfFile(module.removesuffix(" (deleted)"))
    except WalkbackError:
        return None


def in_file(module: str, address: int) -> int:
    """The place in a file that an address is for."""
    elf = elf_of(module) if module.startswith("/") else None
    for segment in [] if elf is None else elf.segments[elf.segments["type"] == 1]:
        if 0 <= address - int(segment["vaddr"]) < int(segment["memsz"]):
            return address - int(segment["vaddr"]) + int(segment["offset"])
    return address


def is_code(module: str, place: int) -> bool:
    """Whether a place in a file is mapped as code, or that is not known."""
    elf = elf_of(module)
    if elf is None:
        return True
    text = elf.segments[(elf.segments["type"] == 1) & (elf.segments["flags"] & 1 != 0)]
    return any(0 <= place - int(one["offset"]) < int(one["filesz"]) for one in text)


def is_after_call(frame: Frame) -> bool:
    """Whether a lookup address is the last byte of a call, so that the frame's is one that a call has left."""
    elf = elf_of(frame.module)
    if elf is None:
        return False
    text = np.flatnonzero((elf.segments["type"] == 1) & (elf.segments["flags"] & 1 != 0)).tolist()
    for number in text:
        start, contents = int(elf.segments["vaddr"][number]), elf.segment_data(number)
        end = frame.address + 1 - start
        if 8 <= end <= len(contents):
            return _ends_with_call(bytes(contents[end - 8 : end]))
    return False


def _ends_with_call(code: bytes) -> bool:
    """Whether these bytes end with a call: relative, or by a register or memory with any displacement."""
    if code[-5] == 0xE8:
        return True
    for size in range(2, 8):
        opcode, modrm = code[-size], code[1 - size]
        if opcode != 0xFF or (modrm >> 3) & 7 != 2:
            continue
        mode, base = modrm >> 6, modrm & 7
        length = 2 + (mode != 3 and base == 4) + (0, 1, 4, 0)[mode] + (4 if mode == 0 and base == 5 else 0)
        if mode == 0 and base == 4 and code[2 - size] & 7 == 5:
            length += 4
        if length == size:
            return True
    return False
