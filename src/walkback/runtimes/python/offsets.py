"""The layout of one build of CPython: by the table that its runtime begins with, or by its version.

What a process says of itself is used only if it can be true; a build that cannot be read is refused in one line.
"""

from __future__ import annotations

import struct
from typing import Literal

from walkback.base.errors import UnreadableError
from walkback.runtimes.memory import TargetMemory
from walkback.runtimes.python.layout import (
    COOKIE,
    DEBUG_OFFSETS,
    DEBUG_OFFSETS_SIZE,
    FIRST,
    FREE_THREADED_AT,
    INTERPRETER_RUNTIME,
    LARGEST_OFFSET,
    LARGEST_SMALL_OFFSET,
    LAST,
    TABLES,
    VERSION_AT,
    Layout,
)

_DAMAGED = "what this Python says of its own layout is damaged"
_LARGE = ("interpreters", "interpreter_next", "interpreter_threads")


class Build:
    """One build of CPython, as a process runs it."""

    def __init__(self, version: tuple[int, int], layout: Layout, *, free_threaded: bool) -> None:
        self.version = version
        self.layout = layout
        self.free_threaded = free_threaded


def build_at(runtime: int, number: int | None, memory: TargetMemory, byteorder: Literal["little", "big"]) -> Build:
    """The build whose runtime is at an address; `number` is `PY_VERSION_HEX`, where its file has a symbol for it."""
    order = "<" if byteorder == "little" else ">"
    head = memory.read(runtime, DEBUG_OFFSETS_SIZE)
    if head[: len(COOKIE)] == COOKIE and len(head) >= FREE_THREADED_AT + 8:
        number, free_threaded = struct.unpack_from(f"{order}QQ", head, VERSION_AT)
        version = _version(number)
        if version in DEBUG_OFFSETS:
            return Build(version, _read_layout(head, version, order), free_threaded=bool(free_threaded))
    else:
        version = _version(number or 0)
        if version in TABLES:
            return Build(version, TABLES[version], free_threaded=False)
    shown = ".".join(map(str, version)) if any(version) else "of an unknown version"
    known = " to ".join(".".join(map(str, one)) for one in (FIRST, LAST))
    raise UnreadableError(f"the functions of Python {shown} cannot be shown; those of {known} can")


def is_confirmed(build: Build, runtime: int, interpreter: int, memory: TargetMemory, order: str) -> bool:
    """Whether an interpreter belongs to the runtime, where a table of offsets may be that of another build."""
    place = INTERPRETER_RUNTIME.get(build.version)
    if place is None:
        return True
    word = memory.read(interpreter + place, 8)
    return len(word) == 8 and struct.unpack(f"{order}Q", word)[0] == runtime


def _version(number: int) -> tuple[int, int]:
    """`PY_VERSION_HEX`."""
    return number >> 24 & 0xFF, number >> 16 & 0xFF


def _read_layout(head: bytes, version: tuple[int, int], order: str) -> Layout:
    values = {}
    for field, place in DEBUG_OFFSETS[version].items():
        value = struct.unpack_from(f"{order}Q", head, place)[0] if place + 8 <= len(head) else LARGEST_OFFSET
        if value >= (LARGEST_OFFSET if field in _LARGE else LARGEST_SMALL_OFFSET):
            raise UnreadableError(_DAMAGED)
        values[field] = value
    if values["code_first_line"] >= values["code_lines"]:
        # What is between them is compared, to know a code object again.
        raise UnreadableError(_DAMAGED)
    return Layout(**values)
