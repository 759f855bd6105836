"""The image map of a process: live, of a core file, or of a recording of perf.

All three say the same: where code is mapped, and of what module (`Space`). An image begins where the beginning of its
file is, or would be, and ends with its last code. Code without a file has no image, nor has the kernel.
"""

from __future__ import annotations

import os

import numpy as np

from walkback.base.arch import Machine
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.base.text import counted
from walkback.cif.imagemap import Image, ImageMap
from walkback.elf import FileSearch, OpenFile, is_elf
from walkback.elf import layout as elf_layout
from walkback.naming.modules import Module, Modules, build_id_of
from walkback.walking.samples import Space

_MOST_SHOWN = 20
"""Processes of a recording, where one has to be chosen."""


@dataclass(frozen=True, slots=True, repr=False)
class CapturedImages(OneLine):
    """An image map, and what is to be said of it."""

    images: ImageMap
    troubles: list[str]
    """What could not be had."""
    notes: list[str]
    """What is as it should be, and good to know."""


def images(
    source: int | str | os.PathLike[str],
    *,
    pid: int | None = None,
    exe: str | os.PathLike[str] | None = None,
    search: FileSearch | None = None,
) -> CapturedImages:
    """The images of a live process, which goes on running, of a core file's process or of one in a recording.

    `source` is the number of a process or a path, and `exe` is a core file's program. Of a recording with samples of
    several processes `pid` chooses one; its images are
    those at its last sample. Raises `MissingError` if there is no such process, or if there are several.

    >>> walkback.capture.images("core.hello").images.images[0].end > 0
    True
    """
    if isinstance(source, int):
        return _of_process(source)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"the number of a process or a path is needed, not {type(source).__name__}")
    if not os.path.isdir(source) and is_elf(OpenFile(source)):
        return _of_core(source, exe, search)
    return _of_recording(source, pid, search)


def _of_process(pid: int) -> CapturedImages:
    from walkback.capture.live.mapped import MappedCode
    from walkback.capture.live.process import Process

    modules = Modules()
    process = Process(pid, modules)
    code = MappedCode(pid, modules, process.read, process.machine)
    space = code.space(process.maps())
    return _captured(space, modules, _platform(process.machine, os.uname().release), code.troubles)


def _of_core(
    path: str | os.PathLike[str],
    exe: str | os.PathLike[str] | None,
    search: FileSearch | None,
) -> CapturedImages:
    from walkback.capture.core.file import CoreFile

    modules = Modules(search)
    core = CoreFile.open(path, modules, exe=exe)
    return _captured(core.space, modules, _platform(core.machine, None), core.troubles)


def _of_recording(
    path: str | os.PathLike[str],
    pid: int | None,
    search: FileSearch | None,
) -> CapturedImages:
    from walkback.capture.perfdata.recording import Recording

    modules = Modules(search)
    recording = Recording.open(path, modules)
    last: dict[int, int] = {}
    for batch in recording.batches():
        known = batch.samples.space >= 0
        last.update(zip(batch.pid[known].tolist(), batch.samples.space[known].tolist(), strict=True))
    if pid is None and len(last) == 1:
        pid = next(iter(last))
    if pid is None or pid not in last:
        raise MissingError(_which(pid, sorted(last)), file=recording.name)
    space = recording.spaces[last[pid]]
    return _captured(space, modules, _platform(recording.machine, recording.os_release), recording.troubles)


def _which(pid: int | None, there: list[int]) -> str:
    if not there:
        return "no sample is of a process whose code is known"
    names = ", ".join(map(str, there[:_MOST_SHOWN])) + (", ..." if len(there) > _MOST_SHOWN else "")
    asked = f"no sample is of process {pid}" if pid is not None else "which process is meant has to be said"
    return f"{asked}; there {'is' if len(there) == 1 else 'are'} {names}"


def _platform(machine: Machine, release: str | None) -> str:
    return f"Linux {release} ({machine.name})" if release else f"Linux ({machine.name})"


def _captured(space: Space, modules: Modules, platform: str, troubles: list[str]) -> CapturedImages:
    found, notes = list(troubles), list[str]()
    images = [
        _image(modules[number], bias, space, rows, found, notes)
        for (number, bias), rows in _rows_of_modules(space).items()
        if number >= 0 and not modules[number].is_made
    ]
    jit = sum(number < 0 or modules[number].is_made for number in space.module.tolist())
    if jit:
        notes.append(f"{counted(jit, 'mapping')} with code that is in no file")
    found += modules.doubts
    return CapturedImages(ImageMap(64, platform, tuple(sorted(images, key=lambda one: one.base))), found, notes)


def _rows_of_modules(space: Space) -> dict[tuple[int, int], list[int]]:
    """The mappings of each module; one that is loaded twice has two places."""
    rows: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(zip(space.module.tolist(), space.bias.tolist(), strict=True)):
        rows.setdefault(key, []).append(row)
    return rows


def _image(module: Module, bias: int, space: Space, rows: list[int], troubles: list[str], notes: list[str]) -> Image:
    start, last = int(space.start[rows[0]]), int(space.last[rows[-1]])
    base = (bias + _beginning(module)) % 2**64
    # What is no ELF file may be mapped in no order.
    base = min(base, start)
    path: str = module.name
    shown = os.fsencode(path).decode(errors="replace")
    if shown != path:
        troubles.append(f"{path}: its name is not UTF-8, and is changed in the map")
    build_id = module.build_id or (build_id_of(module.elf) if module.elf is not None else None)
    if build_id is not None and module.build_id is None and module.opened is None and module.image is None:
        notes.append(f"{path}: its build ID was not recorded; that of the current file is used")
    return Image(shown, build_id, base, min(last, 2**64 - 2) + 1)


def _beginning(module: Module) -> int:
    """The file's own address of its beginning; as far as is known, its addresses are places in it."""
    if module.elf is None:
        return 0
    try:
        loads = module.elf.segments[module.elf.segments["type"] == elf_layout.PT_LOAD]
    except WalkbackError:
        return 0
    first = loads[np.argmin(loads["vaddr"])] if len(loads) else None
    return int(first["vaddr"]) - int(first["offset"]) if first is not None else 0
