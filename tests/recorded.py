"""A recording and a core file of the small program that the documents speak of, made by hand.

They need neither perf nor a kernel that writes core files, and are the same every time.
"""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

from capture.corebuilder import CoreBuilder
from perfbuilder import CALLCHAIN, IP, PERIOD, REGS_USER, STACK_USER, TID, TIME, Attr, Builder
from walkback.elf import ElfFile

SOURCE = Path(__file__).with_name("hello.s")
SP = 0x7FFC_0000_1000
PID = 100
KINDS = IP | TID | TIME | PERIOD | CALLCHAIN | REGS_USER | STACK_USER
_RBP, _RSP, _RIP = 6, 7, 8
"""The bits of registers in a recording."""


def hello(folder: Path, *options: str) -> Path:
    """The program, linked."""
    path = folder / "hello"
    subprocess.run(["gcc", "-nostdlib", "-static", *options, "-o", path, SOURCE], check=True)
    return path


def symbols(program: Path) -> dict[str, int]:
    """The addresses of its functions."""
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return {line.split()[2]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}


def text(program: Path) -> tuple[int, int, int]:
    """Where its code is mapped, how many bytes, and the place in the file."""
    (code,) = [one for one in ElfFile(program).segments if one["type"] == 1 and one["flags"] & 1]
    return int(code["vaddr"]), int(code["memsz"]), int(code["offset"])


def in_compute(names: dict[str, int]) -> tuple[dict[str, int], bytes]:
    """Registers and stack where `compute` has its frame."""
    into_main, into_start = names["main"] + 6, names["_start"] + 5
    stack = bytes(64) + struct.pack("<4Q", 0, into_main, 0, into_start)
    return {"rip": names["compute"] + 4, "rsp": SP, "rbp": SP + 64}, stack


def at_main(names: dict[str, int]) -> tuple[dict[str, int], bytes]:
    """Registers and stack where `main` begins."""
    return {"rip": names["main"], "rsp": SP + 88, "rbp": 0}, struct.pack("<Q", names["_start"] + 5)


def recording(
    program: Path,
    *,
    pipe: bool = False,
    times: int = 1,
    build_id: bytes | None = None,
    path: str | None = None,
    pid: int = PID,
) -> bytes:
    """Of each round four samples in `compute`, one at the beginning of `main`, and one whose stack was cut off.

    The process with this number has mapped the program at another path, if one is given.
    """
    names = symbols(program)
    attr = Attr(KINDS, regs_user=1 << _RBP | 1 << _RSP | 1 << _RIP, stack_user=1024)
    made = Builder(attrs=[attr])
    start, size, offset = text(program)
    made.comm(pid, pid, "hello", time=1)
    made.mmap2(pid, start, size, offset, path or os.fspath(program), time=2, build_id=build_id)
    time = 1_000_000
    for _ in range(times):
        for number in range(6):
            registers, stack = at_main(names) if number == 4 else in_compute(names)
            kept = stack[:64] if number == 5 else stack
            values = {_RBP: registers["rbp"], _RSP: registers["rsp"], _RIP: registers["rip"]}
            made.sample(
                ip=registers["rip"], pid=pid, tid=pid, time=time, period=1000 * (number + 1),
                chain=[], registers=values, stack=kept, room=len(kept),
            )  # fmt: skip
            time += 1_000_000
    made.finished_round()
    return made.pipe() if pipe else made.file()


def core(program: Path, signal: int = 11) -> bytes:
    """A core file of the program, ended in `compute`."""
    registers, stack = in_compute(symbols(program))
    words = [0] * 27
    words[4], words[16], words[19] = registers["rbp"], registers["rip"], registers["rsp"]
    start, size, offset = text(program)
    page = 4096
    made = CoreBuilder().thread(PID, words, signal).process(PID, b"hello", b"./hello")
    made.auxiliary(entry=symbols(program)["_start"])
    end = start + -(-size // page) * page
    made.files((start, end, offset // page, os.fsencode(program)))
    made.load(start, b"", size=end - start, flags=5)
    return made.load(SP, stack, flags=6).build()
