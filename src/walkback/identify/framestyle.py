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
from collections.abc import Sequence
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

_LLVM_AMD64 = re.compile(r"(?:Ao){2,}OO|.*ACAC")
_GCC_AMD64 = re.compile(r"(?:AoO){2}|.*M")
_GCC_S390X = re.compile(r".*[rM]")

# What an instruction counts as, and its operands: u is a LEB128 number, r that of a register, b a block of bytes, a
# digit that number of bytes.
_INSTRUCTIONS = {
    0x00: ("", ""),
    0x01: ("A", "8"),
    0x02: ("A", "1"),
    0x03: ("A", "2"),
    0x04: ("A", "4"),
    0x05: ("O", "ru"),
    0x06: ("r", "u"),
    0x0A: ("M", ""),
    0x0B: ("R", ""),
    0x0C: ("C", "uu"),
    0x0D: ("c", "u"),
    0x0E: ("o", "u"),
    0x0F: ("x", "b"),
    0x10: ("x", "ub"),
    0x16: ("x", "ub"),
    0x2D: ("x", ""),
    **dict.fromkeys((0x07, 0x08, 0x13, 0x2E), ("x", "u")),
    **dict.fromkeys((0x09, 0x11, 0x12, 0x14, 0x15, 0x2F), ("x", "uu")),
}


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
        style = vote(*_letters(bytes(frames.data[start : min(end, start + _LONGEST)])))
        gcc += style == "GCC"
        llvm += style == "LLVM"
    return gcc, llvm


def _vote_amd64(letters: str, _: list[int]) -> Style | None:
    if _GCC_AMD64.match(letters):
        return "GCC"
    return "LLVM" if _LLVM_AMD64.match(letters) else None


def _vote_s390x(letters: str, registers: list[int]) -> Style | None:
    if _GCC_S390X.match(letters):
        return "GCC"
    first = registers[: len(letters[1:]) - len(letters[1:].lstrip("O"))]
    gaps = any(after != before + 1 for before, after in pairwise(first))
    return "LLVM" if letters.startswith("AO") and gaps else None


def _letters(program: bytes) -> tuple[str, list[int]]:
    """The instructions, one letter each, up to one that is not known; and the registers that are saved, in order."""
    letters: list[str] = []
    registers: list[int] = []
    place = 0
    with contextlib.suppress(IndexError, KeyError):  # cut off, or unknown
        while place < len(program):
            byte = program[place]
            place += 1
            if byte >> 6 == 1:
                letters.append("A")
            elif byte >> 6 == 2:
                letters.append("O")
                registers.append(byte & 0x3F)
                place = _skip(program, place, "u")
            elif byte >> 6 == 3:
                letters.append("r")
            else:
                letter, operands = _INSTRUCTIONS[byte]
                letters.append(letter)
                if operands[:1] == "r":
                    registers.append(program[place])
                place = _skip(program, place, operands)
    return "".join(letters), registers


def _skip(program: bytes, place: int, operands: str) -> int:
    """Where the operands end."""
    for operand in operands:
        if operand.isdigit():
            place += int(operand)
            continue
        value = shift = 0
        while program[place] & 0x80:
            value |= (program[place] & 0x7F) << shift
            shift += 7
            place += 1
        value |= program[place] << shift
        place += 1 + (value if operand == "b" else 0)
    return place
