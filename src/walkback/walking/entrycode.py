"""The code at which the kernel begins a process, where no table describes it, as in most dynamic linkers."""

from __future__ import annotations

from walkback.base.arch import MACHINES, Machine
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import NONE, Effect, Flow
from walkback.elf import ElfFile, layout

_MOST = 256
"""Bytes."""
_ENDS = {Flow.JUMP, Flow.JUMP_INDIRECT, Flow.RETURN, Flow.TRAP, Flow.BAD}
_LEAVES = {Flow.JUMP_INDIRECT, Flow.TRAP}
_CALLS = {Flow.CALL, Flow.CALL_INDIRECT}


def entry_code(elf: ElfFile, machine: Machine) -> tuple[int, int] | None:
    """Where it begins and ends; None unless it calls others and then goes for ever: to the program, or into a trap.

    Of libraries the linker may have named as their entry what stands first in their code, and the files that perf makes
    of code from memory have what stands there: a function that ends with a jump does the same, but keeps its caller's
    frame pointer, or is in a file that nothing can be linked to or start.
    """
    if elf.type == layout.ET_DYN and not (elf.segments["type"] == layout.PT_DYNAMIC).any():
        return None
    code = elf.mapped_data(elf.entry)[:_MOST]
    at, calls = elf.entry, False
    for row in listing(MACHINES.index(machine), code, elf.entry).tolist():
        one = dict(zip(COLUMNS, row, strict=True))
        at += one["length"]
        calls = calls or one["flow"] in _CALLS
        if calls and one["flow"] in _LEAVES:
            return elf.entry, at
        if one["flow"] in _ENDS or _keeps_frame_pointer(one, machine):
            break
    return None


def _keeps_frame_pointer(one: dict[str, int], machine: Machine) -> bool:
    first, second = one["first"], one["second"]
    stored = range(first, first + one["count"]) if second == NONE else (first, second)
    return one["effect"] == Effect.STORE and machine.fp in stored
