"""Programs for other machines, run by an emulator under gdb, and recordings made from where gdb stopped them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import perfbuilder as pb
from emulation import LOADER, start_file
from peers import BIN, have, peer
from perfbuilder import Attr, Builder
from waiting import PATIENCE
from walkback.base.arch import ByteOrder

DUMP = 16384
KINDS = pb.IP | pb.TID | pb.TIME | pb.PERIOD | pb.REGS_USER | pb.STACK_USER
SCRIPT = r"""
set pagination off
set confirm off
set debuginfod enabled off
set backtrace past-main on
set breakpoint pending off
set sysroot ROOT
set architecture ARCHITECTURE
set endian ENDIAN
file PROGRAM
handle all nostop noprint pass
target remote :PORT
python
import json, random, re
NAMES, WHERE, STEPS, MOST, SKIPPED, UNSTEPPED, DUMP = PARAMETERS
inferior, rng = gdb.selected_inferior(), random.Random(7)
out = open("OUTPUT", "w")

def value(name):
    if name[0] == "f" and name[1:].isdigit():
        text = gdb.execute("info registers " + name, to_string=True)
        return int(re.search(r"raw (0x[0-9a-f]+)", text)[1], 16)
    return int(gdb.parse_and_eval("(unsigned long)$" + name))

def take():
    registers = {name: value(name) % 2**64 for name in NAMES}
    frame, pcs, names = gdb.newest_frame(), [], []
    while frame is not None and len(pcs) < 400:
        try:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                pcs.append(frame.pc())
                names.append(frame.name())
            frame = frame.older()
        except gdb.error:
            break
    sp, stack = registers[NAMES[-2]], b""
    try:
        while len(stack) < DUMP:
            stack += inferior.read_memory(sp + len(stack), 256).tobytes()
    except gdb.MemoryError:
        pass
    print(json.dumps([registers, stack.hex(), pcs, names]), file=out)

stops = [gdb.Breakpoint(place) for place in WHERE]
count = 0
try:
    while count < MOST:
        gdb.execute("continue", to_string=True)
        if not inferior.threads():
            break
        take()
        count += 1
        for one in stops:
            one.ignore_count = rng.randrange(SKIPPED)
        for steps in STEPS:
            # gdb looks for the caller at each step, and fails where the return address is in a floating point register.
            if gdb.newest_frame().name() in UNSTEPPED:
                break
            gdb.execute("stepi %d" % steps, to_string=True)
            take()
            count += 1
except gdb.error as error:
    print("stopped:", error)
out.close()
end
kill
quit
"""

REGISTERS = {
    "aarch64": [*(f"x{i}" for i in range(31)), "sp", "pc"],
    "s390x": [*(f"f{i}" for i in range(16)), *(f"r{i}" for i in range(15)), "pswm", "r15", "pswa"],
}
"""The names that gdb has for them; the stack pointer is the last but one, the program counter the last."""


def bit(arch: str, name: str) -> int:
    """Where a register is in a recording."""
    if arch == "aarch64":
        return {"sp": 31, "pc": 32}.get(name) or int(name[1:])
    return {"pswm": 32, "pswa": 33}.get(name) or int(name[1:]) + (16 if name[0] == "f" else 0)


UNSTEPPED = {"aarch64": (), "s390x": ("kept", "placed")}


@dataclass(frozen=True)
class Stop:
    """Where a program was stopped: its registers, its stack, and what gdb makes of them."""

    registers: dict[str, int]
    stack: bytes
    pcs: list[int]
    names: list[str]


@dataclass(frozen=True)
class Emulated:
    """A program that was run."""

    arch: str
    program: Path
    stops: list[Stop]
    maps: list[tuple[int, int, int, str]]
    """Code: start, size, place in the file, path."""
    big: bool

    def recording(self, **options: Any) -> bytes:
        """What perf would have written had it been there."""
        order: ByteOrder = "big" if self.big else "little"
        attr = Attr(KINDS, regs_user=pb.MASKS[self.arch], stack_user=DUMP, size=128)
        made = Builder(order, self.arch, attrs=[attr], **options)
        made.comm(77, 77, "emulated", time=1)
        for start, size, place, path in self.maps:
            made.mmap2(77, start, size, place, path, time=2)
        for number, stop in enumerate(self.stops):
            registers = {bit(self.arch, name): value for name, value in stop.registers.items()}
            pc = stop.registers[REGISTERS[self.arch][-1]]
            made.sample(ip=pc, pid=77, tid=77, time=10 + number, registers=registers, stack=stop.stack)
        made.finished_round()
        return made.file()


def root(arch: str) -> Path:
    return BIN.parent / "bookworm" / "usr" / f"{arch}-linux-gnu"


def emulator(arch: str, *, big: bool) -> list[str]:
    """The command that runs a program of a machine."""
    if not big or arch == "s390x":
        return [peer(f"qemu-{arch}")]
    tools = BIN.parent / "tools"
    if not have(f"qemu-{arch}") or not (tools / "usr/bin" / f"qemu-{arch}_be").exists():
        pytest.skip("needs an emulator for big-endian AArch64")
    wrapper = Path(peer(f"qemu-{arch}")).read_text()
    return ["/bin/sh", "-c", wrapper.replace(f"usr/bin/qemu-{arch}", f"usr/bin/qemu-{arch}_be"), peer(f"qemu-{arch}")]


def built(folder: Path, arch: str, text: str, *options: str, freestanding: bool = False, big: bool = False) -> Path:
    """A program, with the libraries of the peers or without any."""
    order = ("-mbig-endian",) if big else ()
    flags = ("-O2", "-w", "-fasynchronous-unwind-tables", "-fPIE", *order, *options)
    (folder / "program.c").write_text(text)
    subprocess.run([peer(f"{arch}-gcc"), *flags, "-S", "-o", folder / "program.s", folder / "program.c"], check=True)
    starter = "main" if freestanding else "__libc_start_main"
    (folder / "start.s").write_text(start_file(arch, starter))
    endian = ("-EB",) if big else ()
    for name in ("start", "program"):
        command = [peer(f"{arch}-as-2.40"), *endian, "-o", folder / f"{name}.o", folder / f"{name}.s"]
        subprocess.run(command, check=True)
    objects: list[str | Path] = [folder / "start.o", folder / "program.o"]
    linker: list[str | Path] = [peer(f"{arch}-ld-2.40"), "--build-id", "--eh-frame-hdr", "-o", folder / "program"]
    if freestanding:
        linker += ["-EB", "-m", "aarch64linuxb"] if big else []
    else:
        linker += ["-pie", "-dynamic-linker", f"/lib/{LOADER[arch]}"]
        objects += [root(arch) / "lib" / name for name in ("libc.so.6", LOADER[arch])]
    subprocess.run([*linker, *objects], check=True)
    return folder / "program"


def run(
    folder: Path, arch: str, text: str, where: list[str], *options: str,
    steps: tuple[int, ...] = (1, 1, 1, 7), most: int = 60, freestanding: bool = False, big: bool = False,
) -> Emulated:  # fmt: skip
    """Build a program, run it, and stop it at some functions and some instructions later."""
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        pytest.skip("needs gdb-multiarch")
    program = built(folder, arch, text, *options, freestanding=freestanding, big=big)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processor = ["-cpu", "max"] if arch == "aarch64" else []
    command: list[str | Path] = [*emulator(arch, big=big), *processor, "-g", str(port), "-L", root(arch), program]
    order: ByteOrder = "big" if big or arch == "s390x" else "little"
    with (folder / "printed").open("wb") as printed:
        emulated = subprocess.Popen(command, cwd=folder, stdout=printed, stderr=subprocess.STDOUT)
    try:
        script = SCRIPT
        for name, value in {
            "ROOT": root(arch), "ARCHITECTURE": {"aarch64": "aarch64", "s390x": "s390:64-bit"}[arch], "ENDIAN": order,
            "PROGRAM": program, "PORT": port, "OUTPUT": folder / "stops",
            "PARAMETERS": repr((REGISTERS[arch], where, steps, most, 3 if freestanding else 11, UNSTEPPED[arch], DUMP)),
        }.items():  # fmt: skip
            script = script.replace(name, str(value))
        (folder / "script.gdb").write_text(script)
        _wait(port)
        done = subprocess.run(
            [gdb, "-nx", "-batch", "-x", folder / "script.gdb"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        emulated.kill()
        emulated.wait()
    lines = (folder / "stops").read_text().splitlines() if (folder / "stops").exists() else []
    assert lines, done.stdout + done.stderr
    assert "stopped:" not in done.stdout, done.stdout[-3000:]
    stops = []
    for line in lines:
        registers, stack, pcs, names = json.loads(line)
        stops.append(Stop(registers, bytes.fromhex(stack), pcs, names))
    return Emulated(arch, program, stops, _maps(folder, arch, program, freestanding=freestanding), order == "big")


def _wait(port: int) -> None:
    """Until the emulator listens, as the kernel says: connecting would be taken for gdb."""
    wanted = f":{port:04X} 00000000:0000 0A"
    for _ in range(500):
        if wanted in Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text():
            return
        time.sleep(0.01)


def _maps(folder: Path, arch: str, program: Path, *, freestanding: bool) -> list[tuple[int, int, int, str]]:
    """Where code is mapped: as the program has printed, or if it has no libraries as its file says."""
    from walkback.elf import ElfFile

    if freestanding:
        loads = [one for one in ElfFile(program).segments if one["type"] == 1 and one["flags"] & 1]
        return [(int(one["vaddr"]), int(one["memsz"]), int(one["offset"]), os.fspath(program)) for one in loads]
    found = []
    for line in (folder / "printed").read_text(errors="replace").splitlines():
        part = line.split()
        if len(part) >= 6 and "x" in part[1] and part[5][0] in "/[":
            start, end = (int(one, 16) for one in part[0].split("-"))
            # The emulator calls its own code [heap] if that lies right behind the program's data.
            path = "[vdso]" if part[5] == "[heap]" else part[5]
            if path[0] == "/" and not Path(path).exists():
                path = str(root(arch) / path.lstrip("/"))
            found.append((start, end - start, int(part[2], 16), path))
    return found
