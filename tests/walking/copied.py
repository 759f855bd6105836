"""The code of CPython's trampolines, as its releases and their builds have it, and files that have it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import AARCH64, AMD64
from walkback.elf.made import BEGIN, made_file

if TYPE_CHECKING:
    from walkback.base.arch import Machine


@dataclass(frozen=True)
class Form:
    """One of them, with its rules, each from some place on."""

    machine: Machine
    code: bytes
    rules: dict[int, str]


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


_ENDBR64 = bytes.fromhex("f30f1efa")
_SUB = bytes.fromhex("4883ec08 ffd1 4883c408 c3")
"""sub $8, %rsp; call *%rcx; add $8, %rsp; ret"""
_PUSH = bytes.fromhex("55 4889e5 ffd1 5d c3")
"""push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret"""
_BODY = (0xA9BF7BFD, 0x910003FD, 0xD63F0060, 0xA8C17BFD)
"""stp x29, x30, [sp, #-16]!; mov x29, sp; blr x3; ldp x29, x30, [sp], #16"""
_RET = 0xD65F03C0
_PACIASP, _AUTIASP, _PACIBSP, _AUTIBSP, _BTI_C = 0xD503233F, 0xD50323BF, 0xD503237F, 0xD50323FF, 0xD503245F

_AT_CALL, _ABOVE = (f"CFA = rsp+{depth}, RA = *(CFA-8), FP unchanged" for depth in (8, 16))
_SAVED = "RA = *(CFA-8), FP = *(CFA-16)"
_PUSHED, _FRAMED = f"CFA = rsp+16, {_SAVED}", f"CFA = rbp+16, {_SAVED}"

AMD64_FORMS = {
    "sub": Form(AMD64, _SUB, {0: _AT_CALL, 4: _ABOVE, 10: _AT_CALL}),
    "endbr64-sub": Form(AMD64, _ENDBR64 + _SUB, {0: _AT_CALL, 8: _ABOVE, 14: _AT_CALL}),
    "push": Form(AMD64, _PUSH, {0: _AT_CALL, 1: _PUSHED, 4: _FRAMED, 7: _AT_CALL}),
    "endbr64-push": Form(AMD64, _ENDBR64 + _PUSH, {0: _AT_CALL, 5: _PUSHED, 8: _FRAMED, 11: _AT_CALL}),
}


def _of_aarch64(before: tuple[int, ...], after: tuple[int, ...]) -> Form:
    """With what is before and after the usual instructions; what is after them checks a signature."""
    at, bare = 4 * len(before), "CFA = sp, RA unchanged, FP unchanged"
    rules = {0: bare, at: bare, at + 4: f"CFA = sp+16, {_SAVED}", at + 8: f"CFA = x29+16, {_SAVED}", at + 16: bare}
    if after:
        signed = {place: text.replace(", FP", " signed, FP") for place, text in rules.items() if place}
        return Form(AARCH64, _words(*before, *_BODY, *after, _RET), {0: bare} | signed | {at + 20: bare})
    return Form(AARCH64, _words(*before, *_BODY, _RET), {place: rules[place] for place in rules if not 0 < place <= at})


AARCH64_FORMS = {
    "plain": _of_aarch64((), ()),
    "bti": _of_aarch64((_BTI_C,), ()),
    "pac": _of_aarch64((_PACIASP,), (_AUTIASP,)),
    "pac-b": _of_aarch64((_PACIBSP,), (_AUTIBSP,)),
}


def python_file(machine: Machine, code: bytes, *, size: int | None = None) -> bytes:
    """A file with this code between two symbols, or with symbols at this distance."""
    names = b"\0_Py_trampoline_func_start\0_Py_trampoline_func_end\0"
    symbols = np.zeros(
        3, [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")]
    )
    symbols[1:] = [(1, 16, 0, 1, BEGIN, 0), (names.index(b"_Py_trampoline_func_end"), 16, 0, 1, 0, 0)]
    symbols["value"][2] = BEGIN + (len(code) if size is None else size)
    return made_file(machine.elf_machine, "little", code, symbols, names)
