"""The claims of a table: rules, and for call frame information those of all other registers, as sets for the kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from walkback.base.arch import S390X, Machine
from walkback.base.arrays import I16, I64, U8, U32, U64, Bools, Numbers, distinct, is_one_of
from walkback.base.dataclass import dataclass
from walkback.dwarf.expressions import block_at, chain, part_of, value
from walkback.dwarf.files import FrameSource
from walkback.dwarf.others import SideTable, side_table
from walkback.dwarf.rulewords import KIND_MASK, OFFSET_SHIFT, RuleKind
from walkback.proof.numbering import KEPT, NOBODY, followed, in_dwarf
from walkback.proof.values import (
    CFA_BASE,
    CFA_TARGET,
    ID_SHIFT,
    INEXPRESSIBLE,
    REGISTERS,
    UNCHANGED,
    UNDEFINED,
    Known,
    Signature,
    Why,
)
from walkback.proof.values import OFFSET_SHIFT as VALUE_SHIFT
from walkback.table.rule import Part, PartKind, of_kind
from walkback.table.table import UnwindTable

_FAR = 1 << 38
"""Offsets of the values that kernels keep are smaller."""
IN_REGISTER, IN_SLOT, NOTHING = 1, 2, 3
"""The usual forms of a claim: that a register has a value, or a place in the frame, or that nothing is claimed."""
_FEW = 1 << 16
_MOST_SETS = 1 << 17
"""Distinct sets of claims, and of rules of other registers; compilers come to some thousands."""
_WORD = 8
"""Bytes from where the frame pointer of the caller is to where the return address is."""
_LOADS = 3
"""Offsets of a claim: two loads at most."""
_KINDS = {
    RuleKind.UNDEFINED: PartKind.UNDEFINED,
    RuleKind.SAME_VALUE: PartKind.UNCHANGED,
    RuleKind.REGISTER: PartKind.REGISTER,
    RuleKind.AT_CFA: PartKind.AT_CFA,
    RuleKind.CFA: PartKind.CFA,
}

SIGNED, SIGNED_BY_B = " signed", " signed by key B"
NO_PLACE = "undefined"
_WORDS = {UNCHANGED: "unchanged", UNDEFINED: NO_PLACE, INEXPRESSIBLE: "an expression"}

_Part = tuple[int, int, int]
"""A kind, a register and an offset."""

Entry = tuple[int, int, int, int, int, int, int]
"""The register that is claimed, what is counted from, loads, three offsets, and whether there is a signature."""


@dataclass(slots=True)
class ClaimSets:
    """What the rows of a table claim, each distinct set once."""

    first: I64
    target: I16
    base: I16
    depth: U8
    offset: I64
    """Before the first load, and behind each of two."""
    signed: U8
    row_set: U32
    """The number of each row's set."""

    def __len__(self) -> int:
        return len(self.first) - 1

    def usual(self, machine: Machine) -> I64:
        """For each claim a row: its form, if that is a usual one, in which register or slot, and what has to be there.

        The last column is for the kernel.
        """
        offset, target = self.offset[:, 0], self.target.astype(np.int64)
        near = (offset >= -_FAR) & (offset < _FAR)
        is_signed = is_one_of(self.signed, Signature.YES, Signature.YES_BY_B)
        plain = near & ~is_signed & (target != machine.sp) & (self.offset[:, 1:] == 0).all(axis=1)
        is_cfa = plain & (target == CFA_TARGET) & (self.base >= 0) & (self.base < REGISTERS) & (self.depth == 0)
        plain &= (target >= 0) & (target < REGISTERS)
        is_kept = plain & (self.base == UNCHANGED) & (self.depth == 0) & (offset == 0)
        is_saved = plain & (self.base == CFA_BASE) & (self.depth == 1)
        entry = (target << ID_SHIFT) + int(Known.ENTRY)
        form = np.where(is_saved, IN_SLOT, np.where(is_cfa | is_kept, IN_REGISTER, 0))
        form[self.base == UNDEFINED] = NOTHING
        wanted = np.where(is_cfa, -offset * (1 << VALUE_SHIFT) + int(Known.CFA), entry)
        place = np.where(is_saved, offset * (1 << VALUE_SHIFT) + int(Known.CFA), np.where(is_cfa, self.base, target))
        return np.stack((form, place, wanted, np.zeros(len(form), np.int64)), axis=1)

    def needed(self, machine: Machine) -> U64:
        """For each set the registers that it needs, and those that it needs only for the return address, as bits."""
        register = np.where(self.base == UNCHANGED, self.target, self.base).astype(np.int64)
        only = ((self.target == machine.ra) & (register != machine.ra)).astype(np.int64)
        found = np.zeros((len(self), 2), np.uint64)
        number = np.repeat(np.arange(len(self)), np.diff(self.first))
        real = (register >= 0) & (register < REGISTERS)
        bits = np.uint64(1) << register[real].astype(np.uint64)
        np.bitwise_or.at(found, (number[real], only[real]), bits)
        return found

    def saved(self) -> int:
        """A bit for each register that a claim has on the stack."""
        return _bits(self.target[(self.base == CFA_BASE) & (self.depth == 1)].tolist())

    def watched(self, machine: Machine) -> int:
        """A bit for each register that a claim is about or counts from."""
        return _bits([*self.target.tolist(), *self.base.tolist(), machine.sp])

    def text(self, entry: int, machine: Machine) -> str:
        """One claim in the notation of rules, with the signature that the value has."""
        signature = {Signature.YES: SIGNED, Signature.YES_BY_B: SIGNED_BY_B}.get(Signature(self.signed[entry]), "")
        return self._place(entry, machine) + signature

    def _place(self, entry: int, machine: Machine) -> str:
        base, offset = int(self.base[entry]), int(self.offset[entry, 0])
        if base in _WORDS:
            return _WORDS[base]
        loaded = self.depth[entry] > 0
        if self.depth[entry] > 1 or self.offset[entry, 1]:
            return "an expression"
        if base == CFA_BASE:
            return Part(PartKind.AT_CFA if loaded else PartKind.CFA, 0, offset).text(machine)
        kind = PartKind.AT_REGISTER if loaded else PartKind.REGISTER
        return Part(kind, in_dwarf(base, machine), offset).text(machine)


def _bits(registers: Iterable[int]) -> int:
    """A bit for each register; other numbers stand for none."""
    return sum(1 << register for register in set(registers) if 0 <= register < 64)


def claim_sets(table: UnwindTable, source: FrameSource | None = None, careless: Bools | None = None) -> ClaimSets:
    """The claims of a table; of the call frame information that it was made from also those of other registers.

    Of ranges that are `careless` nobody expects that they keep registers: where nothing is said of one, that is no
    claim.
    """
    side = None if source is None else side_table(source.frames)
    if side is not None and len(side) > _MOST_SETS:
        side = None
    others: list[list[Entry]] = [[]] if side is None else [_others(side, number) for number in range(len(side))]
    words, row_word = _expressions(table, source)
    stacks, row_stack = _saved_stacks(table, source)
    columns = (
        (len(words), row_word),
        (len(stacks), row_stack),
        (len(others), None if side is None else side.row_set),
        (2, _rows_of(table, table.range_pauth_key != 0)),
        (2, None if careless is None else _rows_of(table, careless)),
        (2, _rows_of(table, table.range_signal)),
    )
    keys, numbered = _numbered(_together(table.row_rule, columns))
    rules = table.rules.tolist()
    blocks: list[Sequence[Entry]] = [[_bare(CFA_TARGET, INEXPRESSIBLE, int(Why.SIGNAL_FRAME))], [], *stacks]
    signal, nothing, first_stack = range(3)
    block_of: dict[tuple[int, int, int, int], int] = {}
    chosen: list[tuple[int, int, int]] = []
    for key in keys[:_MOST_SETS].tolist():
        rest, is_by_b = divmod(key // 4, 2)
        rest, other = divmod(rest, len(others))
        rest, stack = divmod(rest, len(stacks))
        rule, word = divmod(rest, len(words))
        is_free = key & 2
        if key % 2:
            chosen.append((signal, nothing, nothing))
            continue
        own = (rule, word, is_free, is_by_b)
        of_others = (-1 - other, rules[rule][1][0] == PartKind.UNDEFINED, is_free, 0)
        if own not in block_of:
            block_of[own] = len(blocks)
            blocks.append(_of_rule(rules[rule], words[word], is_by_b, table.machine))
            if is_free:
                blocks[-1] = _without_kept(blocks[-1], table.machine)
        if of_others not in block_of:
            block_of[of_others] = len(blocks)
            _, is_outermost, *_ = of_others
            kept = _kept(others[other], table.machine, UNDEFINED if is_outermost else UNCHANGED)
            blocks.append([] if side is None else _without_kept(kept, table.machine) if is_free else kept)
        chosen.append((block_of[own], block_of[of_others], first_stack + stack))
    if len(keys) > _MOST_SETS:
        blocks.append([_bare(CFA_TARGET, INEXPRESSIBLE, int(Why.TOO_COMPLEX))])
        chosen.append((len(blocks) - 1, nothing, nothing))
    return _as_arrays(blocks, chosen, np.minimum(numbered, np.uint32(_MOST_SETS)))


def _rows_of(table: UnwindTable, ranges: Bools) -> Bools | None:
    """Which rows are of these ranges; None if there are none."""
    numbers = np.flatnonzero(ranges).tolist()
    if not numbers:
        return None
    found = np.zeros(len(table.row_rule), np.bool_)
    for number in numbers:
        first = int(table.range_first_row[number])
        found[first : first + int(table.range_rows[number])] = True
    return found


def no_claims(rows: int) -> ClaimSets:
    """One set for all rows, which claims nothing."""
    return _as_arrays([], [()], np.zeros(rows, np.uint32))


def with_chain(sets: ClaimSets, machine: Machine) -> ClaimSets:
    """The sets, and two more: a frame that is linked, and one whose frame pointer is still the caller's."""
    linked: list[Entry] = [
        (machine.fp, machine.fp, 1, 0, 0, 0, 0),
        (machine.ra, machine.fp, 1, _WORD, 0, 0, int(Signature.EITHER)),
    ]
    found = _as_arrays([linked, [_bare(machine.fp, UNCHANGED)]], [(0,), (1,)], sets.row_set)
    return ClaimSets(
        first=np.concatenate((sets.first, sets.first[-1] + found.first[1:])),
        **{
            name: np.concatenate((getattr(sets, name), getattr(found, name)))
            for name in ("target", "base", "depth", "offset", "signed")
        },
        row_set=sets.row_set,
    )


def _together(row_rule: U32, columns: Iterable[tuple[int, Numbers | None]]) -> I64:
    """One number of each row for its rule and a number below a count from each column; None is all 0."""
    keys = row_rule.astype(np.int64)
    for count, numbers in columns:
        if count > 1:
            keys *= count
        if numbers is not None:
            keys[: len(numbers)] += numbers  # the rows of stubs come behind those of the section
    return keys


def _numbered(keys: I64) -> tuple[I64, U32]:
    """The distinct keys, and the number of each; they are small, so that a place for each is quicker than sorting."""
    if not len(keys) or int(keys.max()) > max(_FEW, 8 * len(keys)):
        every = distinct(keys)
        return every, np.searchsorted(every, keys).astype(np.uint32)
    present = np.zeros(int(keys.max()) + 1, np.bool_)
    present[keys] = True
    return np.flatnonzero(present), (np.cumsum(present, dtype=np.uint32) - np.uint32(1))[keys]


def _expressions(table: UnwindTable, source: FrameSource | None) -> tuple[list[Entry | None], I64 | None]:
    """Claims on the CFA by expressions that the table has no place for, and which of them each row has; 0 is none."""
    found: list[Entry | None] = [None]
    is_lost = of_kind(table.rules["cfa"], PartKind.INEXPRESSIBLE)
    if source is None or not is_lost.any():
        return found, None
    frames = source.frames
    row_word = np.zeros(len(frames.row_rule), np.int64)
    words = frames.rule_words[frames.row_rule, 0]
    lost = is_lost[table.row_rule[: len(words)]]
    lost &= is_one_of(words & np.uint64(KIND_MASK), RuleKind.EXPRESSION)
    for word in distinct(words[lost]).tolist():
        result = chain(block_at(frames.data, word >> OFFSET_SHIFT), frames.byteorder)
        if result is not None and 1 < len(result[1]) <= _LOADS:
            register, offsets = result
            row_word[np.flatnonzero(lost & (words == word))] = len(found)
            first, second, third = (*offsets, 0, 0)[:_LOADS]
            found.append((CFA_TARGET, followed(register, table.machine), len(offsets) - 1, first, second, third, 0))
    return found, row_word


def _saved_stacks(table: UnwindTable, source: FrameSource | None) -> tuple[list[list[Entry]], I64 | None]:
    """Claims on where the stack pointer is saved, as functions of s390x do, and which of them each row has.

    A row that says nothing of it claims that the caller's is unchanged, if there is a caller.
    """
    found: list[list[Entry]] = [[]]
    if source is None or table.machine is not S390X:
        return found, None
    frames = source.frames
    row_stack = np.zeros(len(frames.row_rule), np.int64)
    returns, words = frames.rule_words[frames.row_rule][:, [1, 3]].T
    unchanged = is_one_of(words & np.uint64(KIND_MASK), RuleKind.UNSPECIFIED, RuleKind.SAME_VALUE)
    unchanged &= returns & np.uint64(KIND_MASK) != RuleKind.UNDEFINED
    if unchanged.any():
        row_stack[unchanged] = len(found)
        found.append([_bare(table.machine.sp, UNCHANGED)])
    saved = is_one_of(words & np.uint64(KIND_MASK), RuleKind.AT_CFA)
    for word in distinct(words[saved]).view(np.int64).tolist():
        row_stack[np.flatnonzero(saved & (words.view(np.int64) == word))] = len(found)
        found.append([(table.machine.sp, CFA_BASE, 1, word >> OFFSET_SHIFT, 0, 0, 0)])
    return found, row_stack


def _as_arrays(blocks: Sequence[Sequence[Entry]], chosen: Sequence[tuple[int, ...]], row_set: U32) -> ClaimSets:
    """Sets that consist of the blocks chosen for each."""
    every = np.array([entry for block in blocks for entry in block], np.int64).reshape(-1, 7)
    size = np.array([len(block) for block in blocks], np.int64)
    begin = np.cumsum(size) - size
    numbers = np.array(chosen, np.int64).reshape(len(chosen), len(chosen[0]) if chosen else 1)
    sizes = size[numbers]
    before = np.cumsum(sizes) - sizes.ravel()
    entries = every[np.repeat(begin[numbers.ravel()] - before, sizes.ravel()) + np.arange(sizes.sum())]
    return ClaimSets(
        first=np.concatenate(([0], np.cumsum(sizes.sum(axis=1)))).astype(np.int64),
        target=entries[:, 0].astype(np.int16),
        base=entries[:, 1].astype(np.int16),
        depth=entries[:, 2].astype(np.uint8),
        offset=np.ascontiguousarray(entries[:, 3:6]),
        signed=entries[:, 6].astype(np.uint8),
        row_set=row_set,
    )


@lru_cache(1 << 12)
def _of_rule(
    rule: tuple[_Part, _Part, _Part, int], other_cfa: Entry | None, is_by_b: int, machine: Machine
) -> tuple[Entry, ...]:
    """The claims on the CFA, which may be another than the rule has, the return address and the frame pointer."""
    cfa, ra, fp, signed = rule
    if ra[0] == PartKind.UNDEFINED:  # nobody walks on from here
        bare = [_bare(target, UNDEFINED) for target in (CFA_TARGET, machine.ra, machine.fp)]
        return tuple(bare) if other_cfa is None else (other_cfa, *bare[1:])
    return (
        _entry(machine, CFA_TARGET, *cfa) if other_cfa is None else other_cfa,
        (*_entry(machine, machine.ra, *ra)[:6], int(Signature.YES_BY_B) if signed and is_by_b else signed),
        _entry(machine, machine.fp, *fp),
    )


def _kept(others: list[Entry], machine: Machine, otherwise: int) -> list[Entry]:
    """A claim on every callee-saved register, `otherwise` where nothing is said of one; and what else is saved."""
    found = {entry[0]: entry for entry in others}
    kept = [found.get(one, _bare(one, otherwise)) for one in KEPT[machine] if one != machine.fp]
    saved = [entry for entry in others if entry[0] not in {*KEPT[machine], machine.sp, machine.ra, machine.fp}]
    return kept + saved


def _without_kept(entries: Sequence[Entry], machine: Machine) -> list[Entry]:
    """A set without the claims that a register is unchanged."""
    return [entry for entry in entries if entry[0] in {CFA_TARGET, machine.ra} or entry[1] != UNCHANGED]


def _bare(target: int, base: int, why: int = 0) -> Entry:
    return (target, base, 0, why, 0, 0, 0)


@lru_cache(1 << 12)
def _entry(machine: Machine, target: int, kind: int, register: int, offset: int) -> Entry:
    """One claim."""
    if kind == PartKind.UNCHANGED:
        return _bare(target, UNCHANGED)
    if kind == PartKind.UNDEFINED:
        return _bare(target, UNDEFINED)
    if kind == PartKind.INEXPRESSIBLE:
        return _bare(target, INEXPRESSIBLE, int(Why.EXPRESSION))
    base = CFA_BASE if kind in {PartKind.CFA, PartKind.AT_CFA} else followed(register, machine)
    return (target, base, int(kind in {PartKind.AT_REGISTER, PartKind.AT_CFA}), offset, 0, 0, 0)


def _others(side: SideTable, number: int) -> list[Entry]:
    """The claims on registers that the table has no place for."""
    machine = side.frames.machine
    found: list[Entry] = []
    for register, rule in side.rules(number).items():
        target = followed(register, machine)
        if target >= NOBODY:
            continue  # on AArch64 the length of vectors, predicates and the like
        is_known = 0 <= target < len(machine.register_names)
        if target not in KEPT[machine] and not (rule.kind == RuleKind.AT_CFA and is_known):
            continue
        if rule.kind in _KINDS:
            kind, is_register = _KINDS[rule.kind], rule.kind == RuleKind.REGISTER
            part = (int(kind), rule.operand, 0) if is_register else (int(kind), 0, rule.operand)
        else:
            location = rule.kind == RuleKind.AT_EXPRESSION
            result = value(block_at(side.frames.data, rule.operand), side.frames.byteorder, cfa=True)
            part = (part_of(result, location=location) or Part(PartKind.INEXPRESSIBLE)).record()
        found.append(_entry(machine, target, *part))
    return found
