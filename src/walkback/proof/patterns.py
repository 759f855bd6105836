"""The patterns of wrong rules: by what the table has, what the code has, and how control comes to the place."""

from __future__ import annotations

from enum import StrEnum

from walkback.base.dataclass import dataclass
from walkback.proof.sets import NO_PLACE, SIGNED
from walkback.proof.words import CONFLICT, LOST, NOT_KNOWN, UNCHANGED


class Pattern(StrEnum):
    """What kind of mistake a wrong rule is."""

    EPILOGUE_HOISTED = "epilogue-hoisted"
    """The stack pointer went up, and the rule follows only after a branch: LLVM moves code of epilogues ahead without
    its rules."""
    RULE_NOT_RESTORED = "rule-not-restored"
    """Only jumps lead here, and the rule of the code in front goes on."""
    PUSH_WITHOUT_RULE = "push-without-rule"
    """The stack pointer went down, and no rule follows."""
    POP_WITHOUT_RULE = "pop-without-rule"
    """The stack pointer went up, and no rule follows."""
    RULE_EARLY = "rule-early"
    """The rule comes before its instruction."""
    RULE_LATE = "rule-late"
    """The rule comes one instruction after its own."""
    WRONG_CFA = "wrong-cfa"
    """The CFA is elsewhere for another reason."""
    FRAME_LOST = "frame-lost"
    """The code has no way back to the CFA that the proof could follow."""
    PATHS_DISAGREE = "paths-disagree"
    """Paths meet that need different rules."""
    SAVE_WITHOUT_RULE = "save-without-rule"
    """A register was saved or copied, and the table has it unchanged."""
    RESTORE_WITHOUT_RULE = "restore-without-rule"
    """A register has its value again, and the table has it on the stack."""
    REGISTER_CLOBBERED = "register-clobbered"
    """A callee-saved register is overwritten, and the table has it unchanged."""
    SLOT_OVERWRITTEN = "slot-overwritten"
    """The place where the table has a register holds something else."""
    WRONG_SLOT = "wrong-slot"
    """The register is saved somewhere else."""
    CALL_OVERWRITES = "call-overwrites"
    """The call overwrites the register where the table has the value while what was called runs."""
    NO_CALLER = "no-caller"
    """The table says that the stack ends here, and the code returns to a caller."""
    WRONG_SIGNATURE = "wrong-signature"
    """AArch64: the return address is there, but has another signature than the table says, or none."""


@dataclass(frozen=True, slots=True)
class WrongPlace:
    """The first instruction of a stretch where a rule is wrong about one value."""

    claimed: str
    computed: str
    begins: bool
    """Whether the row begins here."""
    follows: bool
    """Whether the instruction in front of it leads here."""
    before: bool
    """Whether the row before would be right, and this one is where the stretch ends."""
    after: bool
    """Whether the next row would be."""
    single: bool
    """Whether the rule is wrong at one instruction only."""
    elsewhere: bool
    """Whether the code has saved the value at another place, or in another register."""
    moved: int
    """How far the instruction in front of it moved the stack pointer."""


def cfa_pattern(place: WrongPlace) -> Pattern:
    """The pattern of a wrong CFA."""
    if place.computed == CONFLICT:
        return Pattern.PATHS_DISAGREE
    if place.computed == NOT_KNOWN:
        return Pattern.FRAME_LOST
    if not place.follows:
        return Pattern.RULE_NOT_RESTORED
    if place.before and place.begins:  # else the row before is far away, as that of a prologue is
        return Pattern.RULE_EARLY
    if place.after and place.single:
        return Pattern.RULE_LATE
    if place.after and place.moved > 0:
        return Pattern.EPILOGUE_HOISTED
    if place.moved:
        return Pattern.PUSH_WITHOUT_RULE if place.moved < 0 else Pattern.POP_WITHOUT_RULE
    return Pattern.WRONG_CFA


def register_pattern(place: WrongPlace) -> Pattern:
    """The pattern of a register that is not where the table has it."""
    if place.computed == CONFLICT:
        return Pattern.PATHS_DISAGREE
    if place.claimed == NO_PLACE:
        return Pattern.NO_CALLER
    if place.claimed == place.computed:
        return Pattern.CALL_OVERWRITES
    if place.claimed.partition(SIGNED)[0] == place.computed.partition(SIGNED)[0]:
        return Pattern.RULE_LATE if place.after else Pattern.WRONG_SIGNATURE
    if place.claimed == UNCHANGED:
        if place.computed in {LOST, NOT_KNOWN}:
            return Pattern.REGISTER_CLOBBERED
        return Pattern.RULE_LATE if place.after else Pattern.SAVE_WITHOUT_RULE
    if place.begins and place.before:
        return Pattern.RULE_EARLY
    if place.begins:
        return Pattern.WRONG_SLOT if place.elsewhere else Pattern.SLOT_OVERWRITTEN
    return Pattern.RESTORE_WITHOUT_RULE if place.computed == UNCHANGED else Pattern.SLOT_OVERWRITTEN
