"""`FunctionTable` to `UnwindTable`: stack depths as rules.

The depth says where the CFA is. A call of AMD64 puts the return address there; functions of the other machines put it
at the bottom of their frames. The frame pointer is not in the table, but compiled code saves it in the same few ways.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from walkback.base.arch import AARCH64, AMD64, Machine
from walkback.base.arrays import I32, I64, U8, U32, Bools
from walkback.base.intern import intern_records
from walkback.gopclntab.decoding import FunctionTable
from walkback.gopclntab.layout import Flag
from walkback.table.rule import OUTERMOST, UNCHANGED, UNDEFINED, Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import UnwindTable, rule_array

_OUTERMOST = ("runtime.goexit", "runtime.rt0_go", "runtime.mstart")
"""Functions that have no caller; before Go 1.17 nothing else says so."""
_NEVER_BACK = ("runtime.mcall", "runtime.morestack", "runtime.switchToCrashStack0")
"""They go on with another stack, and what they call there does not come back."""
_HANDLER = "runtime.sigtramp"
"""What the kernel calls for a signal: Go looks no further there, but the kernel saved the registers of what ran."""
_INTERRUPTING = (
    *("runtime.sigpanic", "runtime.sigpanic0", "runtime.asyncPreempt"),
    *("runtime.debugCallV1", "runtime.debugCallV2"),
)
"""What Go's handler of signals makes the interrupted code call: its return address is where that goes on."""
_OTHER_STACK = (
    *("runtime.gogo", "runtime.systemstack", "runtime.morestack", "runtime.asmcgocall"),
    *("runtime.cgocallback", "runtime.cgocallback_gofunc"),
)
"""Functions that set the stack pointer to another stack; the same."""
SIGNAL_RETURN = ("runtime.sigreturn", "runtime.sigreturn__sigaction")
"""What handlers of signals return to: nobody calls it, and no rule of a depth is true of it."""
_SPECIAL = 2
"""Rules in front of those with depths: no caller, and another stack."""
_BEYOND = 8
"""Bytes of the longest instruction that saves the frame pointer."""


@dataclass(frozen=True, slots=True)
class _Saves:
    """An instruction that saves the frame pointer, by its first bytes as a number."""

    at: int
    """Where it begins, from where the depth changed."""
    size: int
    value: int
    end: int
    """Behind which the frame pointer is saved, from where the depth changed."""


_SAVES = {
    AMD64: (
        _Saves(-1, 1, 0x55, 0),  # push %rbp
        _Saves(0, 4, 0x242C8948, 4),  # mov %rbp, (%rsp)
        _Saves(0, 4, 0x246C8948, 5),  # mov %rbp, disp8(%rsp)
        _Saves(0, 4, 0x24AC8948, 8),  # mov %rbp, disp32(%rsp)
    ),
    AARCH64: (
        _Saves(0, 4, 0xF81F83FD, 4),  # stur x29, [sp, #-8]
        _Saves(-8, 4, 0xA93FFA9D, 0),  # stp x29, x30, [x20, #-8]; mov sp, x20
    ),
}


def to_table(
    functions: FunctionTable, machine: Machine, code: memoryview | None = None, *, plain: bool = False
) -> UnwindTable:
    """The neutral table; `code` are the bytes from `functions.text` on, which show where frame pointers are saved.

    With `plain` all functions have the rules of their depths, as if none had another stack or no caller.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> table = walkback.gopclntab.to_table(source.functions, source.machine)
    >>> table.rule_texts()[2]
    'CFA = rsp+8, RA = *(CFA-8), FP unchanged'
    """
    has_rules = (functions.size > 0) & (functions.rows > 0)
    has_rules[functions.named(*SIGNAL_RETURN)] = False
    kept = np.flatnonzero(has_rules)
    first, rows = functions.first_row[kept], functions.rows[kept]
    depth, offset = functions.row_depth, functions.row_offset
    is_saved = np.zeros(len(depth), np.bool_)
    if code is not None and machine in _SAVES:
        first, rows, depth, offset, is_saved = _with_saves(functions, kept, machine, code)
    keys = depth.astype(np.int64) * 2 + is_saved
    firsts, numbers = intern_records(keys)
    rules = [OUTERMOST, inexpressible(Reason.OTHER_STACK)]
    rules += [_rule(key >> 1, bool(key & 1), machine) for key in keys[firsts].tolist()]
    row_rule = (numbers + _SPECIAL).astype(np.uint32)
    specials = () if plain else (_without_caller(functions), on_other_stacks(functions))
    for number, special in enumerate(specials):
        for function in np.flatnonzero(special[kept]).tolist():
            row_rule[first[function] : first[function] + rows[function]] = number
    count = len(kept)
    interrupting = np.zeros(len(functions), np.bool_)
    interrupting[functions.named(*_INTERRUPTING)] = True
    return UnwindTable(
        machine=machine,
        range_section=np.full(count, -1, np.int32),
        range_start=functions.start[kept],
        range_size=functions.size[kept],
        range_first_row=first,
        range_rows=rows,
        range_signal=interrupting[kept],
        range_pauth_key=np.zeros(count, np.uint8),
        range_block=np.zeros(count, np.uint32),
        range_origin=kept,
        row_offset=offset,
        row_rule=row_rule,
        rules=rule_array(rules),
    )


def _rule(depth: int, is_saved: bool, machine: Machine) -> Rule:
    """The rule of a depth; `is_saved` is the frame pointer, below the return address."""
    cfa = Part(PartKind.REGISTER, machine.sp, depth + machine.entry_sp_to_cfa)
    bottom = -depth - machine.entry_sp_to_cfa
    if machine is AMD64:
        ra, fp = Part(PartKind.AT_CFA, 0, machine.ra_from_cfa), 2 * machine.ra_from_cfa
    else:
        ra, fp = Part(PartKind.AT_CFA, 0, bottom) if depth > 0 else UNCHANGED, bottom - 8
    if machine not in _SAVES:
        return Rule(cfa, ra, UNDEFINED)
    return Rule(cfa, ra, Part(PartKind.AT_CFA, 0, fp) if is_saved and depth > 0 else UNCHANGED)


def _without_caller(functions: FunctionTable) -> Bools:
    found = _flagged(functions, Flag.TOP_FRAME, _OUTERMOST)
    found[functions.named(*_NEVER_BACK)] = True
    found[functions.named(_HANDLER)] = False
    return found


def on_other_stacks(functions: FunctionTable, *, never_back: bool = False) -> Bools:
    """The functions that set the stack pointer to another stack; with `never_back` those that stay there too."""
    found = _flagged(functions, Flag.SP_WRITE, _OTHER_STACK) & ~_without_caller(functions)
    if never_back:
        found[functions.named(*_NEVER_BACK)] = True
    return found


def _flagged(functions: FunctionTable, flag: Flag, names: tuple[str, ...]) -> Bools:
    """The functions with a flag, or where no function has any those of these names."""
    if functions.flag.any():
        return np.asarray((functions.flag & flag) != 0, np.bool_)
    found = np.zeros(len(functions), np.bool_)
    found[functions.named(*names)] = True
    return found


def _with_saves(
    functions: FunctionTable, kept: I64, machine: Machine, code: memoryview
) -> tuple[I64, I64, I32, U32, Bools]:
    """The rows of functions, one more where an instruction saves the frame pointer, and which have it saved."""
    first, rows = functions.first_row[kept], functions.rows[kept]
    function = np.repeat(np.arange(len(kept)), rows)
    row = np.repeat(first - np.cumsum(rows) + rows, rows) + np.arange(len(function))
    depth, offset = functions.row_depth[row], functions.row_offset[row]
    deep = np.flatnonzero(depth > 0)
    begins = deep[np.diff(function[deep], prepend=-1) != 0]
    """The row of each function in which its frame begins."""
    of = function[begins]
    place = (functions.start[kept][of] - np.uint64(functions.text)).astype(np.int64) + offset[begins]
    saved = np.full(len(kept), -1, np.int64)
    contents = np.concatenate((np.zeros(_BEYOND, np.uint8), np.frombuffer(code, np.uint8), np.zeros(_BEYOND, np.uint8)))
    for one in _SAVES[machine]:
        match = _matches(contents, place + _BEYOND, one)
        saved[of[match]] = offset[begins[match]] + one.end
    end = np.where(np.append(function[1:], -1) == function, np.append(offset[1:], 0), functions.size[kept][function])
    splits = begins[(saved[of] > offset[begins]) & (saved[of] < end[begins])]
    depth = np.insert(depth, splits + 1, depth[splits])
    offset = np.insert(offset.astype(np.int64), splits + 1, saved[function[splits]])
    function = np.insert(function, splits + 1, function[splits])
    rows = np.bincount(function, minlength=len(kept))
    first = np.cumsum(rows) - rows
    is_saved = (saved[function] >= 0) & (offset >= saved[function])
    return first, rows, depth, offset.astype(np.uint32), is_saved


def _matches(contents: U8, place: I64, one: _Saves) -> Bools:
    """At which places an instruction of this kind saves the frame pointer."""
    at = place + one.at
    inside = (at >= 0) & (at <= len(contents) - one.size)
    cells = contents[np.where(inside, at, 0)[:, None] + np.arange(one.size)]
    value = (cells.astype(np.uint64) << (np.arange(one.size, dtype=np.uint64) * np.uint64(8))).sum(axis=1)
    return np.asarray(inside & (value == one.value), np.bool_)
