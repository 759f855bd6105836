"""What the proof knows of a register or of a place on the stack, and what it says of an instruction."""

from __future__ import annotations

from enum import IntEnum

REGISTERS = 48
"""What kernels number as registers, at most."""
SLOTS = 64
"""Places on the stack that are followed, at most."""
CFA_TARGET = 255
"""In a claim, for the register that is said to be somewhere: the CFA."""
CFA_BASE = -2
"""For the register that a claim counts from: the CFA."""
UNCHANGED = -3
"""The register itself."""
UNDEFINED = -4
"""Nothing is claimed."""
INEXPRESSIBLE = -5
"""There is a claim, and it is none of these."""
UNCALLED = 2
"""Of an entry: its first row is not the ABI's, and nothing is seen to call it."""
AWAY = 1
"""A range sets the stack pointer to another stack."""
LEFT = 2
"""Control leaves it while the stack pointer may be on another stack."""
WALKED = 255
"""In the place of a `Trust`: of a way that was put off, and taken in the end."""
MOST_RUNS = 1 << 20
"""Runs of a file that are kept; the last half of them only of what is wrong."""
BEGINS = 1
"""An instruction begins at a place."""
LABEL = 2
"""And something jumps there, or the instruction in front does not go on, or may not."""
KEY_B = 1
"""Of a return address with a signature, in the place of the offset: it is by key B."""
OTHER_MODIFIER = 2
"""And its modifier is not the CFA."""
NO_BOUND = -1
"""Of an index."""
KIND_MASK = 0xF
"""The bits of a `packed` value that hold its `Known`."""
ID_SHIFT = 4
"""The lowest bit of its register, or of the number of its table."""
ID_MASK = 0xFFF
"""The bits of that number, shifted down."""
OFFSET_SHIFT = 16
"""The lowest bit of its offset."""
PLAIN_MASK = 0xFFFF
"""All its bits but the offset."""


AT_CFA = 1
"""In a rule that the code shows: a value is saved in the frame."""
KEPT = 2
"""It is still in its register."""
IN_REGISTER = 3
"""It is in another one."""
AT_POINTER = 4
"""It is saved where the frame pointer leads to."""
PART_SHIFT = 28
"""The lowest bit of these."""
PART_BIAS = 1 << 24
"""What is added to an offset from the CFA, so that it is not negative."""
WITH_SIGNATURE = 1 << 27
"""The value has a signature."""
BY_B = 1 << 26
"""And that is by key B."""
CFA_SHIFT = 48
"""Of the CFA: the lowest bit of its register, above an offset with `PART_BIAS`."""
CFA_SAVED = 1 << 26
"""And it is saved there."""


class Known(IntEnum):
    """What a value is."""

    ANY = 0
    """It may be anything."""
    OTHER = 1
    """It was computed or loaded here: no value that a register had at the entry."""
    CONFLICT = 2
    """It differs with the way that led here. With an id, it is CFA + offset or whole steps away from that: a loop moves
    the stack pointer by two to the power of id - 1 bytes."""
    CFA = 3
    """CFA + offset"""
    ALIGNED = 4
    """A place on the stack that was aligned down, + offset; the id says by which instruction."""
    ENTRY = 5
    """What the register of this id had when the function was entered, + offset."""
    SIGNED = 6
    """That with a signature; the offset is made of `KEY_B` and `OTHER_MODIFIER`."""
    CONSTANT = 7
    """The offset."""
    ENTRY_OF_TABLE = 8
    """An entry of the jump table of this id."""
    PLACE_OF_TABLE = 9
    """Where an entry of that table leads to."""
    STACK = 10
    """Some place on the stack."""


class Signature(IntEnum):
    """Whether a value that is claimed has a signature, by key A if not said otherwise."""

    NO = 0
    YES = 1
    EITHER = 2
    YES_BY_B = 3


class Chain(IntEnum):
    """What the frame pointer is at an instruction, in the place of a verdict."""

    UNREACHED = 0
    LINKED = 1
    """It leads to the frame pointer of the caller, beside which is the return address."""
    BROKEN = 2
    """It is something else."""
    INTACT = 3
    """It is still the caller's, or again: a walk leaves out the caller, and goes on behind it."""
    UNDECIDED = 4
    """The proof does not know what it is."""
    SKIPPED = 5
    """It is the caller's at a call, so that all frames that the call leads to leave out the caller."""


class Verdict(IntEnum):
    """What the proof says of an instruction."""

    NOT_REACHED = 0
    PROVED = 1
    WRONG = 2
    ASSUMED = 3
    """Right if the table is right where this part begins, or if control never goes a doubtful way."""
    UNKNOWN = 4
    """The proof cannot decide; `Why` says why."""


class Why(IntEnum):
    """Why the proof does not know, or assumes; `PADDING` and `DATA` say what is not reached."""

    @property
    def word(self) -> str:
        """As it is printed: `cfa-value`."""
        return self.name.lower().replace("_", "-")

    @property
    def verdict(self) -> Verdict:
        """The verdict that has this reason."""
        if self in {Why.NO_PATH, Why.DOUBTFUL_PATH}:
            return Verdict.ASSUMED
        return Verdict.NOT_REACHED if self in {Why.PADDING, Why.DATA} else Verdict.UNKNOWN

    NONE = 0
    CFA_VALUE = 1
    """The register that the CFA is based on has an unknown value, for example a stack pointer loaded from memory."""
    REGISTER_VALUE = 2
    """A register has an unknown value."""
    SLOT_VALUE = 3
    """The place where a register was saved has an unknown value."""
    EXPRESSION = 4
    """The rule is a DWARF expression that `verify` does not follow."""
    NO_RULE = 5
    """The table has no rule at this instruction."""
    SIGNAL_FRAME = 6
    """The kernel made this frame."""
    BAD_CODE = 7
    """These bytes are no instruction that `verify` knows, or nothing known leads to this code and it follows such
    bytes in its function."""
    TOO_COMPLEX = 8
    """The function is larger than 4 MB, or has too many paths or rules."""
    NO_CODE = 9
    """The file does not have the code of the function."""
    PADDING = 10
    """Of `not_reached`: padding between pieces of code."""
    DATA = 11
    """Of `not_reached`: data."""
    ASSUMPTION = 12
    """In code that nothing known leads to, the table contradicts its own first rule."""
    CONTEXT_SWITCH = 13
    """The table is wrong about this frame, in a function that goes on with another stack, as `longjmp` and
    `swapcontext` do. Or the code is not all that happens to the frame: others write over what it saved, as in
    `_Unwind_RaiseException`, or it is entered by no call."""
    INDIRECT_JUMP = 14
    """Nothing known leads to this code, and a jump of its function leads to an address that `verify` did not find, for
    example through a table."""
    NO_PATH = 15
    """Of `assumed`: nothing leads to this code, nor can a jump that `verify` did not follow. It agrees with the table
    if the table is right where the code begins."""
    DOUBTFUL_PATH = 16
    """Of `assumed`: only a path that control may never take leads here, or the rule is wrong on such a path and right
    on all others. Such a path comes from a call that may not return, from a call that may not throw to its landing pad,
    past the bounds of a jump table, from a copy of a size that does not occur, or from another function."""
    OVERLAP = 17
    """Another function of the table begins within this one. From there on, unwinders find no rule of this one."""


class Way(IntEnum):
    """How control leaves a range."""

    JUMP = 0
    LAST_CALL = 1
    """A call is the last instruction, so it does not come back."""
    FALL = 2
    """Behind the last instruction."""


class Seen(IntEnum):
    """How control leaves a range, as bits."""

    RETURNS = 1
    """It returns, with the stack and the return address as they were at its entry."""
    ASTRAY = 2
    """It returns, or jumps elsewhere, with something else."""
    SWITCHES = 4
    """It goes on with another stack."""
    FORKS = 8
    """It may ask the kernel for a thread, which goes on with another stack."""
    COMPLEX = 16
    """There are too many ways through it."""
    SAVES = 32
    """It saves a callee-saved register, and gives it another value, before it jumps or calls."""
    CATCHES = 64
    """It comes to code for exceptions with another stack than its first call has: it may be entered in another way."""
    JUMPS = 128
    """It jumps to a place that is not known, with the stack and the return address as they were at its entry."""
    RESTORES = 256
    """It puts a register back that calls keep."""
    FOLLOWS = 512
    """It follows what a callee-saved register had at its entry: nothing is passed in these by the ABI."""
    MOVES = 1024
    """It returns with another stack pointer than its caller expects."""
    LOSES = 2048
    """It jumps to a place that is not known with other values in callee-saved registers."""
    GOES_THROUGH = 4096
    """It goes where a register says that gets no value in it, and is no argument."""
    SPARES = 8192
    """It saves a register that has no value for a function, as handlers of interrupts do, before it jumps or calls."""
    LEADS = 16384
    """It jumps to a place that is not known with more on the stack than a call leaves."""


class Back(IntEnum):
    """Whether a function comes back."""

    ALWAYS = 0
    NEVER = 1
    SELDOM = 2
    AGAIN = 3
    """Though its code does not show it, and with the return address that it was passed: Go's, for a larger stack."""
    BEYOND = 4
    """And it goes on behind the return behind its call: GCC's, for more stack."""


class Trust(IntEnum):
    """How sure it is that control comes to a place, as far as it went straight on from there."""

    FULL = 0
    """Control comes there if it comes to the instruction in front."""
    SOME = 1
    """Only if a call or the kernel came back, or an index was out of the bounds of its table."""
    SUPPOSED = 2
    """Only if a function that nothing leads to is entered as the ABI says."""
    LEAST = 3
    """Only if a call came back that mostly does not, or by a call within the range, or out of what is assumed."""
