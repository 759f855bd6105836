"""What a walk finds: stacks as arrays.

Frames of all stacks stand one after the other, innermost first; `first` says where each stack begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from walkback.base.arrays import I32, I64, U8, U64, runs
from walkback.base.dataclass import dataclass
from walkback.base.oneline import OneLine


class FrameKind(IntEnum):
    """What the `pc` of a frame is.

    >>> stacks = walkback.stack("core.hello").stacks
    >>> [walkback.stacks.FrameKind(kind).name for kind in stacks.kind.tolist()]
    ['EXACT', 'RETURN', 'RETURN']
    """

    EXACT = 0
    """The next instruction: of the topmost frame, and of one that a signal interrupted."""
    RETURN = 1
    """A return address: the call is before it, and may belong to another function than it."""
    KERNEL = 2
    """An address in the kernel, as the recording has it."""


class How(IntEnum):
    """How a frame was found.

    >>> stacks = walkback.stack("core.hello").stacks
    >>> [walkback.stacks.How(how).name for how in stacks.how.tolist()]
    ['REGISTERS', 'CFI', 'CFI']
    """

    REGISTERS = 0
    """It is where the thread was."""
    SFRAME = 1
    """By `.sframe` of the file that its callee's code is from."""
    DERIVED = 2
    """By SFrame that was derived from the call frame information of that file."""
    CFI = 3
    """By `.eh_frame` or `.debug_frame`."""
    FP_DECLARED = 4
    """By the frame pointer, which all functions of that file keep, as its `.sframe` says."""
    FP_GUESS = 5
    """By the frame pointer, because nothing says more."""
    SIGNAL = 6
    """By the registers that the kernel saved when it delivered a signal."""
    ENTRY = 7
    """By where a call leaves the return address: the callee is a linkage stub, or no code at all."""
    RECORDED = 8
    """The recording has it."""
    GO = 9
    """By the table of functions of a Go program."""
    CODE = 10
    """By rules that were made from the code of that file, which its tables do not describe; or of what was copied."""
    INLINED = 11
    """It is a call that the compiler has inlined in the next frame, as the file's lines say."""
    PYTHON = 12
    """The interpreter of Python has it: a function that the evaluator runs whose frame would be here."""
    LUA = 13
    """The same of Lua."""


HOW_WORDS = {one: one.name.lower().replace("_", "-") for one in How}


class End(IntEnum):
    """Why a walk ended.

    >>> stacks = walkback.stack("core.hello").stacks
    >>> [walkback.stacks.End(end).name for end in stacks.end.tolist()]
    ['COMPLETE']
    """

    COMPLETE = 0
    """The outermost frame was found."""
    NO_TABLE = 1
    """Nothing describes the code at the last address."""
    UNREADABLE = 2
    """Memory that is needed cannot be read."""
    STACK_CUT = 3
    """The copy of the stack ends before the stack does."""
    NO_PROGRESS = 4
    """The next frame would not be further out on the stack."""
    LOOP = 5
    """The next frame is one that was there before."""
    LIMIT = 6
    """There are more frames than were wanted."""
    UNKNOWN_REGISTER = 7
    """A rule needs a register whose value is not known there."""
    NOT_CODE = 8
    """What should be a return address is in no mapped code."""
    ZERO = 9
    """The return address, or the frame pointer of a chain of frame pointers, is 0."""
    INEXPRESSIBLE = 10
    """There is a rule, and it cannot be followed."""
    NO_REGISTERS = 11
    """There are no registers to start from."""
    GUESSED = 12
    """The outermost frame was found, and a frame on the way was only guessed."""
    TORN = 13
    """The outermost frame was found, but the functions of an interpreter could not all be followed."""


END_WORDS = {one: one.name.lower().replace("_", "-") for one in End}
END_REASONS = {End.ZERO: "the return address or the frame pointer is 0", End.GUESSED: "a frame before it is a guess"}
"""What people read beside the word, where that says little."""


@dataclass(frozen=True, slots=True, repr=False)
class Stacks(OneLine):
    """Many stacks.

    >>> stacks = walkback.stack("core.hello").stacks
    >>> len(stacks), stacks.first.tolist()
    (1, [0, 3])
    """

    first: I64
    """Where each stack begins among the frames; one more than there are stacks."""
    pc: U64
    kind: U8
    """A `FrameKind` for each frame."""
    how: U8
    """A `How` for each frame."""
    module: I32
    """Of each frame the module whose code it is in; -1 for none."""
    address: U64
    """The lookup address of each frame, as the module's file counts; where there is no module as it is."""
    sp: U64
    """Where each frame begins on the stack, at its stack pointer; 0 where that is not known."""
    end: U8
    """An `End` for each stack."""
    at: U64
    """Of each stack the address that its end is about: of the memory that cannot be read, of the code without table. Of
    an unknown register it is the register's number; of other ends it means nothing."""

    def __len__(self) -> int:
        return len(self.end)

    @property
    def lookup(self) -> U64:
        """Of each frame the address to look up: the call before a return address, else the `pc` itself."""
        found: U64 = self.pc - (self.kind == FrameKind.RETURN).astype(np.uint64)
        return found


_FRAMES = ("pc", "kind", "how", "module", "address", "sp")


def chosen(stacks: Stacks, numbers: I64) -> Stacks:
    """Some of the stacks."""
    counts = np.diff(stacks.first)[numbers]
    first = np.concatenate(([0], np.cumsum(counts)))
    frame = runs(stacks.first[numbers], counts)
    columns = {name: getattr(stacks, name)[frame] for name in _FRAMES}
    return Stacks(first, **columns, end=stacks.end[numbers], at=stacks.at[numbers])


def joined(parts: Sequence[Stacks]) -> Stacks:
    """Stacks after each other."""
    if len(parts) == 1:
        return parts[0]
    columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in (*_FRAMES, "end", "at")}
    starts = np.cumsum([0, *(int(one.first[-1]) for one in parts)]).tolist()
    first = np.concatenate(
        [np.zeros(1, np.int64), *(one.first[1:] + start for one, start in zip(parts, starts, strict=False))]
    )
    return Stacks(first, **columns)


def in_order(parts: Sequence[tuple[I64, Stacks]]) -> Stacks:
    """Parts whose stacks have these numbers as one."""
    numbers = np.concatenate([number for number, _ in parts])
    return chosen(joined([stacks for _, stacks in parts]), np.argsort(numbers, kind="stable"))


def replaced(stacks: Stacks, numbers: I64 | Sequence[int], others: Sequence[Stacks]) -> Stacks:
    """The stacks, but in the place of those with these numbers the others."""
    if not len(numbers):
        return stacks
    is_kept = np.ones(len(stacks), np.bool_)
    is_kept[numbers] = False
    kept = np.flatnonzero(is_kept)
    return in_order([(kept, chosen(stacks, kept)), (np.asarray(numbers), joined(others))])
