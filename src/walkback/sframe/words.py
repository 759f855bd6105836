"""Rules to data words: the inverse of `rules`, and the reasons why a version cannot say a rule.

A rule is said in a default row where that is possible, in a flex row (version 3) where not. All rows of a function have
the same type, so both codings of a rule are worked out, and the function chooses.
"""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AARCH64, S390X, Machine
from walkback.base.arrays import I64, U8, Bools
from walkback.base.dataclass import dataclass
from walkback.base.findings import Fault
from walkback.sframe import layout
from walkback.table.rule import PartKind, RuleArray, of_kind


class Refusal(Fault):
    """Why a version cannot say something, the most useful first where several hold."""

    NONE = 0
    INEXPRESSIBLE = 1, "a rule that is none of the kinds of the table"
    OUTERMOST = 2, "an outermost frame, which version 1 cannot mark"
    CFA_BASE = 3, "a CFA based on a register other than SP and FP"
    CFA_KIND = 4, "a kind of CFA that the version cannot express"
    CFA_SCALE = 5, "a CFA offset that is not 160 and a multiple of 8"
    RA_PLACE = 6, "a return address that is not at its fixed place"
    RA_UNCHANGED = 7, "a return address in its register, where the format fixes it on the stack"
    RA_REGISTER = 8, "a return address in or relative to a register"
    FP_UNDEFINED = 9, "a frame pointer that cannot be found"
    FP_REGISTER = 10, "a frame pointer in or relative to a register"
    FP_WITHOUT_RA = 11, "a saved frame pointer while the return address is not saved"
    FROM_CFA = 12, "a value that is the CFA plus an offset"
    ODD_OFFSET = 13, "an odd offset, which would mean a register"
    ZERO_OFFSET = 14, "a return address saved at the CFA itself, which would mean that it is not saved"
    RANGE = 15, "an offset of more than 32 bits"
    CONTROL_RANGE = 16, "a register number of more than 29 bits"
    SIGNAL = 17, "a signal frame, which only version 3 can mark"
    BLOCK_SIZE = 18, "a repeating block of this size"
    FUNCTION_REACH = 19, "a function more than 2 GiB away"
    FUNCTION_SIZE = 20, "a function of 4 GiB or more"
    PAUTH_KEY = 21, "a pointer-authentication key, which only AArch64 has"
    BLOCK_ROWS = 22, "a repeating block of more than 65535 rows"
    RA_SIGNED = 23, "a signed return address, which only AArch64 has"


@dataclass(frozen=True, slots=True)
class Coding:
    """One way to say each of some rules: the words, how many, their size code, and why not."""

    words: I64
    """Words of rule r: the first `count[r]` of column r."""
    count: U8
    size_code: U8
    refusal: U8


class _WordWriter:
    """Appends words, rule by rule, in columns."""

    def __init__(self, rules: int) -> None:
        self.words = np.zeros((6, rules), np.int64)
        self.bits = np.zeros((6, rules), np.uint8)
        self.count = np.zeros(rules, np.uint8)
        self.refusal = np.zeros(rules, np.uint8)

    def append(self, where: Bools, value: I64, *, unsigned: bool = False) -> None:
        """Give the chosen rules one more word."""
        chosen = np.flatnonzero(where)
        values = value[chosen]
        self.words[self.count[chosen], chosen] = values
        low, high = (0, 2) if unsigned else (1, 1)
        code = np.full(len(chosen), 3, np.uint8)
        for size_code, size in reversed(list(enumerate(layout.FRE_WORD_SIZES))):
            bound = np.int64(1) << np.int64(8 * size - 1)
            code[(values >= -bound * low) & (values < bound * high)] = size_code
        self.bits[self.count[chosen], chosen] = code
        self.count[chosen] += 1

    def refuse(self, where: Bools, reason: Refusal) -> None:
        """Note why the chosen rules cannot be said, unless a reason is noted already."""
        self.refusal[where & (self.refusal == 0)] = reason

    def coding(self) -> Coding:
        """Words that need more than 32 bits refuse their rule."""
        size_code = self.bits.max(axis=0, initial=0)
        self.refuse(size_code == 3, Refusal.RANGE)
        return Coding(self.words, self.count, np.minimum(size_code, 2).astype(np.uint8), self.refusal)


def default_coding(rules: RuleArray, machine: Machine, *, register_words: bool = False) -> Coding:
    """How default rows say the rules; with `register_words` (version 2 of s390x) a word can name a register."""
    out = _WordWriter(len(rules))
    live = ~_outermost(out, rules, machine)
    cfa, ra, fp = rules["cfa"], rules["ra"], rules["fp"]
    out.refuse(live & ~of_kind(cfa, PartKind.REGISTER), Refusal.CFA_KIND)
    out.refuse(live & (cfa["register"] != machine.sp) & (cfa["register"] != machine.fp), Refusal.CFA_BASE)
    out.append(live, _cfa_word(out, live, cfa["offset"], machine))
    fp_saved = live & ~of_kind(fp, PartKind.UNCHANGED)
    if machine.ra_from_cfa:
        out.refuse(live & of_kind(ra, PartKind.UNCHANGED), Refusal.RA_UNCHANGED)
        at_place = of_kind(ra, PartKind.AT_CFA) & (ra["offset"] == machine.ra_from_cfa)
        out.refuse(live & ~at_place, Refusal.RA_PLACE)
    else:
        saved = live & ~of_kind(ra, PartKind.UNCHANGED)
        _default_word(out, saved, rules, "ra", register_words)
        if machine is S390X:
            out.refuse(saved & of_kind(ra, PartKind.AT_CFA) & (ra["offset"] == 0), Refusal.ZERO_OFFSET)
            out.append(fp_saved & ~saved, np.zeros(len(rules), np.int64))
        else:
            out.refuse(fp_saved & ~saved, Refusal.FP_WITHOUT_RA)
    _default_word(out, fp_saved, rules, "fp", register_words)
    return out.coding()


def _default_word(out: _WordWriter, where: Bools, rules: RuleArray, name: str, register_words: bool) -> None:
    """The word of a saved return address or frame pointer: an offset from the CFA, or (s390x V2) a register."""
    part = rules[name]
    at_cfa = of_kind(part, PartKind.AT_CFA)
    in_register = of_kind(part, PartKind.REGISTER) & (part["offset"] == 0) & register_words
    out.refuse(where & of_kind(part, PartKind.UNDEFINED), Refusal.FP_UNDEFINED)
    out.refuse(where & of_kind(part, PartKind.CFA), Refusal.FROM_CFA)
    out.refuse(where & ~at_cfa & ~in_register, Refusal.RA_REGISTER if name == "ra" else Refusal.FP_REGISTER)
    if register_words:
        out.refuse(where & at_cfa & (part["offset"] & 1 == 1), Refusal.ODD_OFFSET)
    register_word = (part["register"].astype(np.int64) << 1) | 1
    out.append(where, np.where(in_register, register_word, part["offset"]))


def flex_coding(rules: RuleArray, machine: Machine) -> Coding:
    """How flex rows say the rules (version 3)."""
    out = _WordWriter(len(rules))
    live = ~_outermost(out, rules, machine)
    cfa, ra, fp = rules["cfa"], rules["ra"], rules["fp"]
    out.refuse(live & ~of_kind(cfa, PartKind.REGISTER, PartKind.AT_REGISTER), Refusal.CFA_KIND)
    _pair(out, live, cfa, _cfa_word(out, live, cfa["offset"], machine))
    if machine.ra_from_cfa:
        out.refuse(live & of_kind(ra, PartKind.UNCHANGED), Refusal.RA_UNCHANGED)
        implied = of_kind(ra, PartKind.AT_CFA) & (ra["offset"] == machine.ra_from_cfa)
    else:
        implied = of_kind(ra, PartKind.UNCHANGED)
    fp_saved = live & ~of_kind(fp, PartKind.UNCHANGED)
    out.append(implied & fp_saved, np.zeros(len(rules), np.int64))
    for part, where in ((ra, live & ~implied), (fp, fp_saved)):
        out.refuse(where & of_kind(part, PartKind.UNDEFINED), Refusal.FP_UNDEFINED)
        out.refuse(where & of_kind(part, PartKind.CFA), Refusal.FROM_CFA)
        _pair(out, where, part, part["offset"])
    return out.coding()


def _pair(out: _WordWriter, where: Bools, part: RuleArray, offset: I64) -> None:
    """A control word and its offset."""
    kind = part["kind"]
    by_register = (kind == PartKind.REGISTER) | (kind == PartKind.AT_REGISTER)
    deref = (kind == PartKind.AT_REGISTER) | (kind == PartKind.AT_CFA)
    register = np.where(by_register, part["register"], 0).astype(np.int64) << layout.FLEX_REGISTER_SHIFT
    control = register | by_register * layout.FLEX_REG | deref * layout.FLEX_DEREF
    out.refuse(where & (control >= 1 << 32), Refusal.CONTROL_RANGE)
    out.append(where, control, unsigned=True)
    out.append(where, offset)


def _outermost(out: _WordWriter, rules: RuleArray, machine: Machine) -> Bools:
    """Rows without words; also refuses what has no words in any version."""
    for name in ("cfa", "ra", "fp"):
        out.refuse(of_kind(rules[name], PartKind.INEXPRESSIBLE), Refusal.INEXPRESSIBLE)
    out.refuse((rules["ra_signed"] > 0) & (machine is not AARCH64), Refusal.RA_SIGNED)
    return _is_outermost(rules)


def _is_outermost(rules: RuleArray) -> Bools:
    outermost: Bools = of_kind(rules["ra"], PartKind.UNDEFINED)
    return outermost


def refusing_outermost(coding: Coding, rules: RuleArray) -> Coding:
    """The coding of version 1, which cannot mark outermost frames."""
    lost = _is_outermost(rules) & (coding.refusal == 0)
    refusal = np.where(lost, np.uint8(Refusal.OUTERMOST), coding.refusal)
    return Coding(coding.words, coding.count, coding.size_code, refusal)


def _cfa_word(out: _WordWriter, live: Bools, offset: I64, machine: Machine) -> I64:
    if machine is not S390X:
        return offset
    scaled = offset - layout.S390X_CFA_OFFSET_ADJUSTMENT
    out.refuse(live & (scaled % layout.S390X_CFA_OFFSET_ALIGNMENT_FACTOR != 0), Refusal.CFA_SCALE)
    return scaled // layout.S390X_CFA_OFFSET_ALIGNMENT_FACTOR


def needs_sp_base(rules: RuleArray, machine: Machine) -> Bools:
    """For the info byte of default rows: whether the CFA is based on SP."""
    based: Bools = (rules["cfa"]["register"] == machine.sp) & of_kind(rules["cfa"], PartKind.REGISTER)
    return based
