"""Programs that print the frames of their own stack, and what they said."""

from __future__ import annotations

import subprocess
from pathlib import Path

from walkback.elf import ElfFile, layout

HERE = Path(__file__).parent
CASES = (
    "calls",
    "qsort",
    "bsearch",
    "raise",
    "qsort-raise",
    "fault",
    "alternate",
    "dlopen",
    "atexit",
    "once",
    "ending",
)
IN_THREAD = ("calls", "qsort", "raise", "qsort-raise", "dlopen", "ending")
ALL = [(name,) for name in CASES] + [(name, "thread") for name in IN_THREAD]
COMPILE = ("gcc", "-O2", "-D_GNU_SOURCE")


def plugin(folder: Path) -> Path:
    """The library that is loaded later."""
    subprocess.run([*COMPILE, "-shared", "-fPIC", HERE / "plugin.c", "-o", folder / "plugin.so"], check=True)
    return folder / "plugin.so"


def walks(command: list[str | Path], folder: Path) -> dict[str, list[str]]:
    """The frames by who told them; a command that fails fails the test."""
    env = {"PLUGIN": str(folder / "plugin.so")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    lines = (line.split(" ") for line in done.stdout.splitlines())
    return {who: frames for who, *frames in lines}


def without(path: Path, kinds: tuple[int, ...], sections: tuple[str, ...] = ()) -> bytearray:
    """The bytes of a file with its program headers of these types void, and its sections of these names zeros."""
    data = bytearray(path.read_bytes())
    elf = ElfFile(bytes(data), str(path))
    for number, kind in enumerate(elf.segments["type"].tolist()):
        if kind in kinds:
            place = _program_headers(data) + 56 * number
            data[place : place + 4] = bytes(4)
    for index in [index for name in sections for index in elf.sections_named(name)]:
        start, size = int(elf.sections["offset"][index]), int(elf.sections["size"][index])
        data[start : start + size] = bytes(size)
    return data


def by_sframe(path: Path) -> bytearray:
    """The file without call frame information."""
    return without(path, (PT_GNU_EH_FRAME,), (".eh_frame", ".eh_frame_hdr"))


def by_call_frames(path: Path) -> bytearray:
    """The file without SFrame."""
    return without(path, (layout.PT_GNU_SFRAME,))


PT_GNU_EH_FRAME = 0x6474E550


def _program_headers(data: bytearray) -> int:
    return int.from_bytes(data[32:40], "little")
