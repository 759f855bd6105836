"""What gdb makes of a sample of a recording: its registers, stack and code are given to it as a core file."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from capture.corebuilder import CoreBuilder
from waiting import PATIENCE
from walkback.capture.perfdata.recording import Recording
from walkback.naming.modules import Modules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from walkback.walking.samples import Space

# The order of `user_regs_struct`, by DWARF numbers; what no sample has is -1.
_ORDER = (15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, -1, 32, -1, -1, 7, *[-1] * 7)

SCRIPT = """
set pagination off
set confirm off
set debuginfod enabled off
set debug-file-directory /nowhere
set backtrace past-main on
set backtrace past-entry on
core-file CORE
FILES
python
frame, found = gdb.newest_frame(), []
while frame is not None:
    found.append(frame.pc())
    try:
        frame = frame.older()
    except gdb.error:
        break
print("STACK", *found)
end
"""


def gdb_stacks(
    recording: Path, wanted: set[tuple[int, int]], folder: Path
) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """The program counters that gdb finds for some samples, each named by its thread and time."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("needs gdb")
    modules = Modules()
    opened = Recording.open(recording, modules)
    for batch in opened.batches():
        for i in range(len(batch)):
            key = int(batch.tid[i]), int(batch.time[i])
            samples, memory = batch.samples, batch.samples.memory
            if key not in wanted or samples.space[i] < 0:
                continue
            registers = [int(one) for one in samples.registers.reshape(len(samples), -1)[i]]
            made = CoreBuilder().thread(key[0], [0 if one < 0 else registers[one] for one in _ORDER], 11)
            segment = int(samples.first_segment[i])
            place, size = int(memory.offset[segment]), int(memory.size[segment])
            space = opened.spaces[int(samples.space[i])]
            files = []
            for start, contents, name, bias in _code(space, modules):
                made.load(start, contents, flags=5)
                files.append(f"add-symbol-file {_without_debug_data(name, folder)} -o {bias}")
            made.load(int(memory.start[segment]), bytes(memory.buffer[place : place + size]), flags=6)
            (folder / "core").write_bytes(made.build())
            script = SCRIPT.replace("CORE", str(folder / "core")).replace("FILES", "\n".join(dict.fromkeys(files)))
            (folder / "script.gdb").write_text(script)
            command: list[str | Path] = [gdb, "-nx", "-batch", "-x", folder / "script.gdb"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("STACK")]
            assert lines, done.stderr
            yield key, [int(one) for one in lines[0]]


def _code(space: Space, modules: Modules) -> Iterator[tuple[int, bytes, str, int]]:
    """What is mapped of each file: where, its contents, the file, and how far it was moved."""
    for start, last, number, bias in zip(space.start, space.last, space.module, space.bias, strict=True):
        elf = modules[int(number)].elf if number >= 0 else None
        if elf is None or not elf.name.startswith("/"):
            continue
        address = (int(start) - int(bias)) % 2**64
        for index, segment in enumerate(elf.segments):
            begin = int(segment["vaddr"])
            if (
                segment["type"] == 1
                and segment["flags"] & 1
                and begin <= address + 4095
                and address < begin + segment["memsz"]
            ):
                contents = bytes(elf.segment_data(index))
                skipped = max(0, address - begin)
                there = int(start) + max(0, begin - address)
                room = int(last) + 1 - there
                yield there, contents[skipped : skipped + room], elf.name, int(bias)


def _without_debug_data(name: str, folder: Path) -> Path:
    """A copy that says nothing of inlined functions, on which gdb can fail before it has found any frame."""
    copy = folder / f"plain{name.replace('/', '-')}"
    if not copy.exists():
        subprocess.run(["strip", "--strip-debug", "-o", copy, name], check=True)
    return copy
