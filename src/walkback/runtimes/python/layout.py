"""Where CPython keeps what a chain of frames is made of.

From 3.13 on each build says so itself: its runtime begins with a table, `_Py_DebugOffsets`, whose own layout differs
from version to version. For 3.11 and 3.12 the offsets are here; they are the same on all 64-bit machines.
"""

from __future__ import annotations

from dataclasses import fields

from walkback.base.dataclass import dataclass

FIRST, LAST = (3, 11), (3, 15)
"""The versions whose layout is known."""
COOKIE = b"xdebugpy"
VERSION_AT, FREE_THREADED_AT = 8, 16
"""In `_Py_DebugOffsets`, of all versions."""

THREAD_NUMBER_SIZE = 8
OWNED_BY_INTERPRETER = 3
"""A frame with this owner, or a higher one, stands on the stack of an evaluator and is no function's (from 3.12 on)."""
NO_COPY = -1
CODE_UNIT = 2
"""Bytes of an instruction."""

# The bits of `state` of a string, from the lowest of 32 on.
KIND_BITS = 3
KIND_AT, COMPACT_AT, ASCII_AT = 2, 5, 6
FREE_THREADED_SHIFT = 6
"""How much further up these are from 3.14 on without a GIL."""
STRING_HEAD = 16
"""Where the length and the hash of a string are."""
UTF8_SIZE = 16
"""What a string that is not ASCII has more of before its text, from 3.12 on."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in the structures of one build; names are those of what they are for."""

    interpreters: int
    """In the runtime: the first interpreter."""
    interpreter_next: int
    interpreter_threads: int
    """The first thread state."""
    thread_next: int
    thread_interpreter: int
    thread_frame: int
    """The newest frame; in 3.11 and 3.12 what is at `EvaluatorRecord`."""
    thread_number: int
    """The number that the kernel gives it."""
    frame_previous: int
    frame_code: int
    frame_instruction: int
    frame_owner: int
    code_file: int
    code_name: int
    code_lines: int
    code_first_line: int
    code_instructions: int
    object_type: int
    bytes_size: int
    bytes_contents: int
    string_state: int
    string_length: int
    string_ascii: int
    """Where the text of an ASCII string begins."""
    frame_copy: int = 0
    """The number of the copy of the instructions that the thread has, where threads have some."""
    code_copies: int = 0


@dataclass(frozen=True, slots=True)
class EvaluatorRecord:
    """What each evaluator of 3.11 and 3.12 has on its stack: its newest frame, and the record of the one before."""

    newest: int
    previous: int
    last: int
    """In the thread state: the record that no evaluator has."""


_CODE = {"code_file": 112, "code_name": 128, "code_lines": 136}
_OBJECTS = {"object_type": 8, "bytes_size": 16, "bytes_contents": 32, "string_state": 32, "string_length": 16}

TABLES = {
    (3, 11): Layout(
        interpreters=40,
        interpreter_next=0,
        interpreter_threads=16,
        thread_next=8,
        thread_interpreter=16,
        thread_frame=56,
        thread_number=160,
        frame_previous=48,
        frame_code=32,
        frame_instruction=56,
        frame_owner=68,  # rather whether it is the first one of its evaluator
        code_first_line=72,
        code_instructions=184,
        string_ascii=48,
        **_CODE,
        **_OBJECTS,
    ),
    (3, 12): Layout(
        interpreters=40,
        interpreter_next=0,
        interpreter_threads=72,
        thread_next=8,
        thread_interpreter=16,
        thread_frame=56,
        thread_number=144,
        frame_previous=8,
        frame_code=0,
        frame_instruction=56,
        frame_owner=70,
        code_first_line=68,
        code_instructions=192,
        string_ascii=40,
        **_CODE,
        **_OBJECTS,
    ),
}
RECORDS = {(3, 11): EvaluatorRecord(8, 16, 336), (3, 12): EvaluatorRecord(0, 8, 272)}
OLD_STRING_SIZE = 24
"""`UTF8_SIZE` of 3.11."""
INTERPRETER_RUNTIME = {(3, 11): 40, (3, 12): 96}
"""Where an interpreter refers to the runtime, by which a table proves to be the right one."""

_FIELDS = tuple(field.name for field in fields(Layout))
_NEW = ("frame_copy", "code_copies")


def _places(*numbers: int) -> dict[str, int]:
    return dict(zip(_FIELDS, numbers, strict=False))


DEBUG_OFFSETS = {
    # In the order of `Layout`.
    (3, 13): _places(
        *(40, 64, 72, 168, 176, 184, 200, 232, 240, 248, 264),
        *(280, 296, 304, 312, 344, 360, 520, 528, 544, 552, 560),
    ),
    (3, 14): _places(
        *(40, 64, 72, 192, 200, 208, 224, 256, 264, 272, 288),
        *(320, 336, 344, 352, 384, 408, 600, 608, 624, 632, 640, 304, 392),
    ),
    (3, 15): _places(
        *(40, 64, 72, 192, 200, 208, 248, 320, 328, 336, 352),
        *(384, 400, 408, 416, 448, 472, 696, 704, 720, 728, 736, 368, 456),
    ),
}
"""Where `_Py_DebugOffsets` of a version has each offset."""
DEBUG_OFFSETS_SIZE = 888
LARGEST_OFFSET = 1 << 24
"""More than any build has; interpreters are large."""
LARGEST_SMALL_OFFSET = 1 << 12
"""The same in all other structures."""
