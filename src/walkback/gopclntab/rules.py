"""`FunctionTable` to `UnwindTable`: stack depths as rules.

The depth says where the CFA is. A call of AMD64 puts the return address there. Functions of the other machines put it
at the bottom of their frames when these begin, and leave it there if the stack grows further.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64, Machine
from walkback.base.arrays import Bools
from walkback.base.intern import intern_records
from walkback.gopclntab.decoding import FunctionTable
from walkback.gopclntab.layout import Flag
from walkback.gopclntab.rows import SAVES_POINTER, Rows, rows_of
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
_KEY = np.dtype([("depth", "i8"), ("frame", "i8"), ("saved", "?")])
"""What the rule of a row is made of."""


def to_table(
    functions: FunctionTable, machine: Machine, code: memoryview | None = None, *, plain: bool = False
) -> UnwindTable:
    """The neutral table; `code` are the bytes from `functions.text` on, which show what the depths do not say.

    With `plain` all functions have the rules of their depths, as if none had another stack or no caller.

    >>> [source] = walkback.gopclntab.read("hello-go")
    >>> table = walkback.gopclntab.to_table(source.functions, source.machine)
    >>> table.rule_texts()[2]
    'CFA = rsp+8, RA = *(CFA-8), FP unchanged'
    """
    has_rules = (functions.size > 0) & (functions.rows > 0)
    has_rules[functions.named(*SIGNAL_RETURN)] = False
    kept = np.flatnonzero(has_rules)
    found = rows_of(functions, kept, machine, code)
    first, rows = found.counted(len(kept))
    keys = _keys(found, machine)
    firsts, numbers = intern_records(keys)
    rules = [OUTERMOST, inexpressible(Reason.OTHER_STACK)]
    rules += [_rule(depth, frame, is_saved, machine) for depth, frame, is_saved in keys[firsts].tolist()]
    row_rule = (numbers + _SPECIAL).astype(np.uint32)
    if found.is_lost.any():
        row_rule[found.is_lost] = len(rules)
        rules.append(inexpressible(Reason.LINK_LOST))
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
        row_offset=found.offset.astype(np.uint32),
        row_rule=row_rule,
        rules=rule_array(rules),
    )


def _keys(rows: Rows, machine: Machine) -> np.ndarray:
    """What the rules are made of: where the return address does not depend on the frame, that is none."""
    keys = np.zeros(len(rows), _KEY)
    keys["depth"], keys["saved"] = rows.depth, rows.is_saved
    keys["frame"] = 0 if machine is AMD64 else np.where(rows.depth > 0, rows.frame, 0)
    return keys


def _rule(depth: int, frame: int, is_saved: bool, machine: Machine) -> Rule:
    """The rule of a depth, in a frame that began with another one.

    `is_saved` is the frame pointer, below the return address. Where the stack is less deep than that, a function has
    put back what it saved.
    """
    cfa = Part(PartKind.REGISTER, machine.sp, depth + machine.entry_sp_to_cfa)
    is_there = depth > 0 and depth >= frame
    bottom = -frame - machine.entry_sp_to_cfa
    if machine is AMD64:
        ra, fp = Part(PartKind.AT_CFA, 0, machine.ra_from_cfa), 2 * machine.ra_from_cfa
    else:
        ra, fp = Part(PartKind.AT_CFA, 0, bottom) if is_there else UNCHANGED, bottom - 8
    if machine not in SAVES_POINTER:
        return Rule(cfa, ra, UNDEFINED)
    return Rule(cfa, ra, Part(PartKind.AT_CFA, 0, fp) if is_saved and is_there else UNCHANGED)


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
