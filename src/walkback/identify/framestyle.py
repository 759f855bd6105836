"""Which compiler wrote call frame information, by its style: what is left where all names were stripped.

These are habits of GCC (with GNU as) and of LLVM, and no rules of a specification. They were found in, and hold for,
compilers' own output and the packages of distributions:

AArch64   LLVM counts code in bytes and data in units of -4, GNU as in 4 and -8. It stands in every CIE.
AMD64     Where code follows on an epilogue, GCC remembers and restores the state, and LLVM says the CFA anew. GCC says
          where a register is saved right behind its push, LLVM behind the last push.
s390x     GCC restores registers in epilogues; LLVM says nothing of epilogues. Where a store of many registers saves
          some that the function does not change, GCC names all, LLVM only the others.

Code written by hand has other habits, so only a clear majority counts.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from walkback.base.arch import AARCH64, AMD64, S390X
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import FrameSource
from walkback.dwarf.frames import Frames

Style = Literal["GCC", "LLVM"]

_SAMPLE = 64
_FEWEST = 2
"""Functions with a style; one alone may be written by hand."""
_CLEAR = 0.8
_STARTUP = 8
"""Functions of start-up code that may be there besides those of LLVM's; on the other machines they have no style."""
_LONGEST = 1024
"""The bytes of a program that are read."""

_LLVM_AMD64 = re.compile(rb"(?:Ao){2,}OO|.*ACAC")
_GCC_AMD64 = re.compile(rb"(?:AoO){2}|.*M")
_GCC_S390X = re.compile(rb".*[rM]")

_LARGEST = 16
"""Bytes of a block; those of compilers are smaller."""
_NOP = b"\0"
_NUMBER = rb"[\x80-\xff]*[\0-\x7f]"
_BLOCK = b"(?:%s)" % b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(_LARGEST + 1))
# The letter that an instruction counts as, its first bytes, and its operands; frequent ones come first.
_INSTRUCTIONS = (
    (b"A", bytes(range(0x40, 0x80)), b""),
    (b"o", b"\x0e", _NUMBER),
    (b"O", bytes(range(0x80, 0xC0)), _NUMBER),
    (b"M", b"\x0a", b""),
    (b"R", b"\x0b", b""),
    (b"r", bytes(range(0xC0, 0x100)), b""),
    (b"C", b"\x0c", _NUMBER * 2),
    (b"c", b"\x0d", _NUMBER),
    (b"", _NOP, b""),
    (b"A", b"\x01", b".{8}"),
    (b"A", b"\x02", b"."),
    (b"A", b"\x03", b".{2}"),
    (b"A", b"\x04", b".{4}"),
    (b"O", b"\x05", _NUMBER * 2),
    (b"r", b"\x06", _NUMBER),
    (b"x", b"\x2d", b""),
    (b"x", b"\x07\x08\x13\x2e", _NUMBER),
    (b"x", b"\x09\x11\x12\x14\x15\x2f", _NUMBER * 2),
    (b"x", b"\x0f", _BLOCK),
    (b"x", b"\x10\x16", _NUMBER + _BLOCK),
)
_ONE = b"|".join(b"[%s]%s" % (re.escape(first), operands) for _, first, operands in _INSTRUCTIONS)
_INSTRUCTION, _INSTRUCTION_OR_REST = re.compile(_ONE, re.DOTALL), re.compile(_ONE + b"|.+", re.DOTALL)
_LETTERS = {byte: letter for letter, first, _ in _INSTRUCTIONS for byte in first}


def frame_style(sources: Sequence[FrameSource]) -> Style | None:
    """Whose style most of the functions have; None where that is not clear, or neither."""
    for source in sources:
        with contextlib.suppress(WalkbackError):
            frames = source.frames
            if len(frames.fdes):
                gcc, llvm = _votes(frames)
                return _clear(gcc, llvm)
    return None


def _clear(gcc: int, llvm: int) -> Style | None:
    if gcc + llvm < _FEWEST or max(gcc, llvm) < _CLEAR * (gcc + llvm):
        return None
    return "GCC" if gcc > llvm else "LLVM"


def _votes(frames: Frames) -> tuple[int, int]:
    """How many functions have the style of GCC, and how many that of LLVM."""
    sound = np.flatnonzero(frames.fdes.fault == 0)
    if frames.machine is AARCH64:
        cies = frames.cies
        factors = cies.code_align.astype(np.int64) * 100 + cies.data_align
        mine = factors[frames.fdes.cie[sound]]
        gcc, llvm = int((mine == 4 * 100 - 8).sum()), int((mine == 1 * 100 - 4).sum())
        return max(0, gcc - _STARTUP) if llvm else gcc, llvm
    vote = {AMD64: _vote_amd64, S390X: _vote_s390x}.get(frames.machine)
    if vote is None:
        return 0, 0
    gcc = llvm = 0
    for number in sound[:: len(sound) // _SAMPLE + 1].tolist():
        start, end = int(frames.fdes.program[number]), int(frames.fdes.end[number])
        style = vote(_instructions(bytes(frames.data[start : min(end, start + _LONGEST)])))
        gcc += style == "GCC"
        llvm += style == "LLVM"
    return gcc, llvm


def _vote_amd64(instructions: Sequence[bytes]) -> Style | None:
    letters = _letters(instructions)
    if _GCC_AMD64.match(letters):
        return "GCC"
    return "LLVM" if _LLVM_AMD64.match(letters) else None


def _vote_s390x(instructions: Sequence[bytes]) -> Style | None:
    letters = _letters(instructions)
    if _GCC_S390X.match(letters):
        return "GCC"
    first = letters[1:].lstrip(b"O")
    saves = instructions[1 : len(letters) - len(first)]
    registers = [one[0] & 0x3F if one[0] & 0x80 else one[1] for one in saves]
    gaps = any(after != before + 1 for before, after in pairwise(registers))
    return "LLVM" if letters.startswith(b"AO") and gaps else None


def _letters(instructions: Iterable[bytes]) -> bytes:
    return b"".join([_LETTERS[one[0]] for one in instructions])


def _instructions(program: bytes) -> list[bytes]:
    """Those of a program but for `nop`, up to one that is not known or cut off."""
    found = _INSTRUCTION_OR_REST.findall(program)
    if found and not _INSTRUCTION.fullmatch(found[-1]):
        found.pop()
    return [one for one in found if one != _NOP]
