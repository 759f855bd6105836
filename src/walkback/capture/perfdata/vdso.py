"""The code that the kernel maps into every process, and that no file has."""

from __future__ import annotations

import contextlib
from functools import cache
from pathlib import Path

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile

NAME = "[vdso]"
_LARGEST = 1 << 20


@cache
def own_image() -> memoryview | None:
    """The vDSO of this process; None if it has none or it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.endswith(NAME):
                start, end = (int(one, 16) for one in line.split(" ", 1)[0].split("-"))
                with Path("/proc/self/mem").open("rb") as memory:
                    memory.seek(start)
                    return memoryview(memory.read(min(end - start, _LARGEST)))
    return None


def image(machine: Machine, build_id: bytes | None) -> memoryview | None:
    """The vDSO of a recording, if it is the one of this very kernel or that may be assumed."""
    found = own_image()
    if found is None or machine not in {AMD64, AARCH64, S390X}:
        return None
    try:
        elf = ElfFile(found, NAME)
        fits = elf.machine == machine.elf_machine and (build_id is None or elf.build_id == build_id)
    except WalkbackError:
        return None
    return found if fits else None
