"""Where Go's own functions have called something on another stack, and how the stack that they came from is found.

These are functions of the runtime in assembly. How they go back themselves says where they keep what they need, for
every version of Go: the code behind a call, or a register that has the stack pointer meanwhile. Where there is neither,
nobody knows the way back, and the code is left out. This is of AMD64.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from enum import IntEnum

import numpy as np

from walkback.base.arch import AMD64, MACHINES, Machine
from walkback.base.arrays import I64, Bools
from walkback.base.dataclass import dataclass
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import Effect, Flow
from walkback.gopclntab.decoding import FunctionTable
from walkback.gopclntab.rules import SIGNAL_RETURN, on_other_stacks, to_table
from walkback.table.rule import Part, PartKind, Rule
from walkback.table.table import UnwindTable


class Way(IntEnum):
    """Where the stack pointer of the stack is found that a function came from."""

    NONE = -1
    """It is on that stack still."""
    SIGNAL = -2
    """Only the kernel knows, which is at work there: a handler of a signal has returned."""

    REGISTER = 0
    """In a register: its number."""
    STORED = 1
    """At a place above the stack pointer."""
    DEPTH = 2
    """As the distance from the end of the goroutine's stack: where the goroutine is stored, the place of that end in
    it, and where the distance is stored."""
    GOROUTINE = 3
    """In the goroutine that the thread runs: where the thread has the one that runs now, and the places in that, in the
    thread's data, and in the goroutine."""
    SYSTEM = 4
    """In the goroutine that stands for the stack of the thread: the same places."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """A part of a function's code: a call, what else it does on another stack, or what it does on its own."""

    start: int
    end: int
    way: Way
    numbers: tuple[int, ...]
    cfa: int
    """The CFA, from the stack pointer that is found."""
    frame_pointer: Part


_CALL = rb"(?:\xff[\xd0-\xd7]|\xe8.{4})"
_THREAD = rb"(?:\x48\xc7\xc1(?P<tls%d>.{4}))?"
"""mov $place, %rcx: where the running goroutine is in the data of the thread; other programs have it in each load."""
_NOW = rb"(?:\x64\x48\x8b(?:\x04|\x1c|\x34)\x25(?P<here%d>.{4})|\x64\x48\x8b[\x01\x19\x31])"
"""mov %fs:place, %rax, %rbx or %rsi; or from where %rcx says."""
_SET = rb"(?:\x64\x48\x89(?:\x04|\x34)\x25.{4}|\x64\x48\x89[\x01\x31])"
"""The same, stored."""
_WAYS = {
    # mov place(%rsp), %rsp; or to %rsi and from there
    Way.STORED: rb"(?:\x48\x8b\x24\x24|\x48\x8b(?:\x34\x24|\x74\x24(?P<at>.))\x48\x89\xf4)",
    # mov goroutine(%rsp), %rdi; mov end(%rdi), %rsi; sub depth(%rsp), %rsi; store; mov %rsi, %rsp
    Way.DEPTH: _THREAD % 0
    + rb"\x48\x8b\x7c\x24(?P<goroutine>.)\x48\x8b\x77(?P<hi>.)\x48\x2b(?:\x34\x24|\x74\x24(?P<depth>.))"
    + rb"(?:\x64\x48\x89\x3c\x25.{4}|\x64\x48\x89\x39)\x48\x89\xf4",
    # mov now, %rax; mov m(%rax), %rbx; mov curg(%rbx), %rax; store; mov sp(%rax), %rsp
    Way.GOROUTINE: _THREAD % 0
    + _NOW % 0
    + rb"\x48\x8b\x58(?P<m>.)\x48\x8b(?:\x43(?P<near>.)|\x83(?P<far>.{4}))"
    + _SET
    + rb"\x48\x8b\x60(?P<sp>.)",
    # lea argument(%rsp), %rax; sub %rsp, %rax; mov now, %rsi; mov %rsp, %rdi; add %rax, %rdi; mov -8(%rdi), %rbx;
    # mov %rbx, pc(%rsi); mov %rdi, sp(%rsi); mov now, %rbx; mov m(%rbx), %rbx; mov g0(%rbx), %rsi; store;
    # mov sp(%rsi), %rsp; mov (%rsp), %rax; mov %rax, sp(%rsi)
    Way.SYSTEM: rb"\x48\x8d\x44\x24.\x48\x29\xe0"
    + _THREAD % 0
    + _NOW % 0
    + rb"\x48\x89\xe7\x48\x01\xc7\x48\x8b\x5f\xf8\x48\x89\x5e.\x48\x89\x7e(?P<sp>.)"
    + _THREAD % 1
    + _NOW % 1
    + rb"\x48\x8b\x5b(?P<m>.)\x48\x8b(?:\x33|\x73(?P<near>.))"
    + _SET
    + rb"\x48\x8b\x66(?P=sp)\x48\x8b\x04\x24\x48\x89\x46(?P=sp)",
}
_PATTERNS = {way: re.compile(rb"(?P<call>" + _CALL + rb")(?=" + code + rb")", re.DOTALL) for way, code in _WAYS.items()}
_NUMBERS = {
    Way.STORED: ("at",),
    Way.DEPTH: ("goroutine", "hi", "depth"),
    Way.GOROUTINE: ("tls", "m", "other", "sp"),
    Way.SYSTEM: ("tls", "m", "other", "sp"),
}
_LARGEST = 1 << 14
"""Bytes of a function that is looked at; those of the runtime have some hundred."""
_KEPT = {3, 6, 12, 13, 14, 15}
"""The registers that calls of C keep, by their numbers in tables."""
_LENGTH, _FLOW, _EFFECT, _FIRST, _SECOND, _BASE, _CHANGES = (
    COLUMNS.index(name) for name in ("length", "flow", "effect", "first", "second", "base", "changes")
)
_ONLY = {Way.GOROUTINE: "runtime.systemstack", Way.SYSTEM: "runtime.cgocallback"}
"""Of functions that call in this way the one that keeps there what is wanted."""


def crossings(functions: FunctionTable, machine: Machine, code: memoryview) -> list[Crossing]:
    """Where it is known how to go on, rising; `code` are the bytes from `functions.text` on."""
    if machine is not AMD64:
        return []
    is_here = on_other_stacks(functions, never_back=True) & (functions.size > 0) & (functions.rows > 0)
    is_here &= functions.size <= _LARGEST
    names = ("start", "end", "size", "name_place", "flag", "first_row", "rows", "fault", "entry_place")
    chosen = replace(functions, **{name: getattr(functions, name)[is_here] for name in names})
    plain = to_table(chosen, machine, code, plain=True)
    found = []
    for number in range(len(chosen)):
        start, size = int(chosen.start[number]), int(chosen.size[number])
        contents = bytes(code[start - functions.text : start - functions.text + size])
        name = (chosen.name(number) or "").removesuffix(".abi0")
        instructions = _Instructions.of(start, contents)
        if instructions.leaving:
            found += _on_stack(plain, start, instructions.start[instructions.leaving[0]])
        found += _calls(plain, start, contents, name) or _kept(plain, instructions)
    for number in functions.named(*SIGNAL_RETURN).tolist():
        place = int(functions.start[number]), int(functions.end[number])
        found.append(Crossing(*place, Way.SIGNAL, (), 0, Part(PartKind.UNCHANGED)))
    return sorted(found, key=lambda one: one.start)


@dataclass(frozen=True, slots=True)
class _Instructions:
    """A function's instructions, one behind the other."""

    start: list[int]
    """Where each begins, and where the last one ends."""
    rows: I64
    """What the decoder says of them."""
    leaving: list[int]
    """Those that may leave the stack: they set the stack pointer from something else, or enter the kernel."""

    @classmethod
    def of(cls, start: int, contents: bytes) -> _Instructions:
        rows = listing(MACHINES.index(AMD64), contents, start)
        is_moved = (rows[:, _EFFECT] == Effect.ADD) & (rows[:, _BASE] == AMD64.sp)
        leaves = (_changes(rows, AMD64.sp) & ~is_moved) | (rows[:, _FLOW] == Flow.SYSTEM)
        return cls([start, *(start + rows[:, _LENGTH].cumsum()).tolist()], rows, np.flatnonzero(leaves).tolist())

    def copies(self, first: int, second: int) -> list[int]:
        """Those that copy the second register to the first."""
        wanted = np.array([Effect.COPY, first, second])
        return np.flatnonzero((self.rows[:, [_EFFECT, _FIRST, _SECOND]] == wanted).all(1)).tolist()


def _changes(rows: I64, register: int) -> Bools:
    return (rows[:, _CHANGES] >> register & 1).astype(np.bool_)


def _on_stack(plain: UnwindTable, begin: int, end: int) -> list[Crossing]:
    """The code between two places of a function, where it is on the stack that it came from."""
    number = int(np.searchsorted(plain.range_start, begin, side="right")) - 1
    first, rows = int(plain.range_first_row[number]), int(plain.range_rows[number])
    start = [int(plain.range_start[number]) + offset for offset in plain.row_offset[first : first + rows].tolist()]
    found = []
    for here, after in zip(start, [*start[1:], end], strict=True):
        rule = _rule(plain, here)
        if max(here, begin) < min(after, end) and rule is not None:
            found.append(Crossing(max(here, begin), min(after, end), Way.NONE, (), rule.cfa.offset, rule.fp))
    return found


def _calls(plain: UnwindTable, start: int, contents: bytes, name: str) -> list[Crossing]:
    """The calls behind which a function takes its stack pointer from memory."""
    found = []
    for way, pattern in _PATTERNS.items():
        for match in pattern.finditer(contents) if _ONLY.get(way, name) == name else ():
            rule = _rule(plain, start + match.start())
            if rule is not None:
                place = start + match.start(), start + match.end()
                found.append(Crossing(*place, way, _numbers(way, match), rule.cfa.offset, rule.fp))
    return found


def _kept(plain: UnwindTable, instructions: _Instructions) -> list[Crossing]:
    """What a function does from where it leaves its stack, if a register keeps the stack pointer of that."""
    rows, start, leaving = instructions.rows, instructions.start, instructions.leaving
    kept = [register for register in _KEPT if instructions.copies(AMD64.sp, register)]
    if len(kept) != 1 or not leaving:
        return []
    [register] = kept
    back = instructions.copies(AMD64.sp, register)
    goes_back, leaves = set(back), set(leaving)
    changing = np.flatnonzero(_changes(rows, register)).tolist()
    saving = max((place for place in changing if place < back[0]), default=-1)
    rule = _rule(plain, start[saving]) if saving in instructions.copies(register, AMD64.sp) else None
    if rule is None:
        return []
    end = min((start[place + 1] for place in changing if place > back[0]), default=start[-1])
    first = max(leaving[0], saving + 1)
    turns = [(start[first], True)]
    for place in range(first, len(rows)):
        if place in goes_back:
            turns.append((start[place + 1], False))
        elif place in leaves or rows[place, _FLOW] in {Flow.RETURN, Flow.JUMP}:
            # What is behind a return is reached from where it is away.
            turns.append((start[place + 1], True))
    found = []
    for (begin, is_away), (after, _) in itertools.pairwise([*turns, (start[-1], True)]):
        if not is_away:
            found += _on_stack(plain, begin, after)
        elif begin < min(after, end):
            found.append(Crossing(begin, min(after, end), Way.REGISTER, (register,), rule.cfa.offset, rule.fp))
    return found


def _rule(plain: UnwindTable, place: int) -> Rule | None:
    """The rule at a place, if the CFA is counted from the stack pointer."""
    found = plain.find(place)
    rule = None if found is None else found.rule
    return rule if rule is not None and rule.cfa.kind == PartKind.REGISTER else None


def _numbers(way: Way, match: re.Match[bytes]) -> tuple[int, ...]:
    """The numbers in the instructions; those that are left out are 0."""
    parts = match.groupdict()
    parts["tls"] = parts.get("tls0") or parts.get("here0")
    parts["other"] = parts.get("near") or parts.get("far")
    return tuple(int.from_bytes(parts[name] or b"", "little", signed=True) for name in _NUMBERS[way])
