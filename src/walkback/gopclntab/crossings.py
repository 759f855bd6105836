"""Where Go's own functions have called something on another stack, and how the stack that they came from is found.

These are functions of the runtime in assembly. What they do after the call is how they go back themselves, so the code
behind it says where they keep what they need, for every version of Go. A call that is not followed by such code is left
out: nobody knows the way back. This is of AMD64.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from walkback.base.arch import AMD64, Machine
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
    """One call, or the code in front of where a function leaves its stack."""

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
_HARMLESS = (
    rb"\x48\x8b(?:[\x04\x0c\x14\x1c\x34\x3c]\x24|[\x44\x4c\x54\x5c\x74\x7c]\x24.|\x05.{4})|\x48\x69\xc9.{4}|\xbf.{4}"
    rb"|\x48\x8d\x34\x24|\xff\xd0"
)
"""What takes results from the stack, and calls once more: no such instruction changes a register that calls keep."""
_LEAVES = re.compile(
    rb"[\x48\x49]\x8b[\x20-\x27\x60-\x67\xa0-\xa7]|[\x48\x4c]\x89[\xc4\xcc\xd4\xdc\xe4\xec\xf4\xfc]|[\x48\x4c]\x87"
    rb"|\x48[\x81\x83]\xe4|[\x48\x49]\x8d[\x20-\x27\x60-\x67\xa0-\xa7]|\x0f\x05"
)
"""What may set the stack pointer, or lets the kernel do that; where it is something else, no harm is done."""
_WAYS = {
    # mov %register, %rsp
    Way.REGISTER: rb"(?:" + _HARMLESS + rb")*(?P<register>\x48\x89[\xdc\xec]|\x4c\x89[\xe4\xec\xf4\xfc])",
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
    Way.REGISTER: (),
    Way.STORED: ("at",),
    Way.DEPTH: ("goroutine", "hi", "depth"),
    Way.GOROUTINE: ("tls", "m", "other", "sp"),
    Way.SYSTEM: ("tls", "m", "other", "sp"),
}
_FP = 5
"""The number of the frame pointer in instructions; those of the others that calls keep are as in tables."""
_ONLY = {Way.GOROUTINE: "runtime.systemstack", Way.SYSTEM: "runtime.cgocallback"}
"""Of functions that call in this way the one that keeps there what is wanted."""


def crossings(functions: FunctionTable, machine: Machine, code: memoryview) -> list[Crossing]:
    """Where it is known how to go on, rising; `code` are the bytes from `functions.text` on."""
    if machine is not AMD64:
        return []
    is_here = on_other_stacks(functions, never_back=True) & (functions.size > 0) & (functions.rows > 0)
    names = ("start", "end", "size", "name_place", "flag", "first_row", "rows", "fault", "entry_place")
    chosen = replace(functions, **{name: getattr(functions, name)[is_here] for name in names})
    plain = to_table(chosen, machine, code, plain=True)
    found = []
    for number in range(len(chosen)):
        start, size = int(chosen.start[number]), int(chosen.size[number])
        contents = bytes(code[start - functions.text : start - functions.text + size])
        found += _before(plain, start, contents)
        name = (chosen.name(number) or "").removesuffix(".abi0")
        for way, pattern in _PATTERNS.items():
            for match in pattern.finditer(contents) if _ONLY.get(way, name) == name else ():
                rule = _rule(plain, start + match.start())
                if rule is not None:
                    place = start + match.start(), start + match.end()
                    found.append(Crossing(*place, way, _numbers(way, match), rule.cfa.offset, rule.fp))
    for number in functions.named(*SIGNAL_RETURN).tolist():
        place = int(functions.start[number]), int(functions.end[number])
        found.append(Crossing(*place, Way.SIGNAL, (), 0, Part(PartKind.UNCHANGED)))
    return sorted(found, key=lambda one: one.start)


def _before(plain: UnwindTable, start: int, contents: bytes) -> list[Crossing]:
    """What a function does in front of the first instruction that may leave its stack."""
    leaves = _LEAVES.search(contents)
    number = int(np.searchsorted(plain.range_start, start))
    first, rows = int(plain.range_first_row[number]), int(plain.range_rows[number])
    offsets = plain.row_offset[first : first + rows].tolist()
    end = leaves.start() if leaves is not None else 0
    found = []
    for offset, after in zip(offsets, [*offsets[1:], len(contents)], strict=True):
        rule = _rule(plain, start + offset)
        if offset < end and rule is not None:
            found.append(Crossing(start + offset, start + min(after, end), Way.NONE, (), rule.cfa.offset, rule.fp))
    return found


def _rule(plain: UnwindTable, place: int) -> Rule | None:
    """The rule at a place, if the CFA is counted from the stack pointer."""
    found = plain.find(place)
    rule = None if found is None else found.rule
    return rule if rule is not None and rule.cfa.kind == PartKind.REGISTER else None


def _numbers(way: Way, match: re.Match[bytes]) -> tuple[int, ...]:
    """The numbers in the instructions; those that are left out are 0."""
    if way == Way.REGISTER:
        prefix, _, operands = match["register"]
        number = (operands >> 3 & 7) + (8 if prefix & 4 else 0)
        return (AMD64.fp if number == _FP else number,)
    parts = match.groupdict()
    parts["tls"] = parts.get("tls0") or parts.get("here0")
    parts["other"] = parts.get("near") or parts.get("far")
    return tuple(int.from_bytes(parts[name] or b"", "little", signed=True) for name in _NUMBERS[way])
