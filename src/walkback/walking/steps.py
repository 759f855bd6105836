"""Steps as columns: what the rules of tables and of call frame information come to for a walk.

A step says how the CFA is found, and has a list of saves: the program counter, the frame pointer, and from call frame
information all other registers that the callee saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from walkback.base.arch import AMD64, Machine
from walkback.base.arrays import I64, U8, U32, U64, concatenated, ranked, runs
from walkback.base.dataclass import dataclass
from walkback.base.errors import DwarfError
from walkback.dwarf.frames import Frames
from walkback.dwarf.others import SideTable, expression_at, side_table
from walkback.dwarf.rulewords import FLAG_SIGNED, FLAG_SIGNED_WITH_PC, RA_COLUMN_SHIFT, RuleKind
from walkback.stacks.stacks import How
from walkback.table.rule import PartKind, RuleArray, of_kind
from walkback.walking.abi import ABIS, Flag, Op, Step
from walkback.walking.samples import PC

_OP_OF_KIND = np.array([Op.SAME, Op.UNKNOWN, Op.REGISTER, Op.AT_REGISTER, Op.CFA, Op.AT_CFA, Op.BAD], np.uint8)
"""By the `PartKind` of a rule of the table."""

_OP_OF_WORD = np.array(
    [Op.SAME, Op.UNKNOWN, Op.SAME, Op.REGISTER, Op.AT_CFA, Op.CFA, Op.AT_EXPRESSION, Op.EXPRESSION, *[Op.BAD] * 8],
    np.uint8,
)
"""By the `RuleKind` of a rule of call frame information."""

_USES_REGISTER = (Op.REGISTER, Op.AT_REGISTER)
_USES_EXPRESSION = (Op.EXPRESSION, Op.AT_EXPRESSION)

_MOST_PAIRS = 1 << 24


@dataclass(frozen=True, slots=True)
class Steps:
    """Many steps; the saves of step s are those from `first[s]` to `end[s]`."""

    cfa: U8
    """An `Op`."""
    register: U8
    operand: I64
    first: U32
    end: U32
    flags: U8
    """Bits of `Flag`."""
    how: U8
    """A `How`."""
    save_column: U8
    save_op: U8
    save_register: U8
    save_operand: I64
    expression_first: I64
    """The bytes of expression e are those from `expression_first[e]` to `expression_end[e]`."""
    expression_end: I64
    expression_bytes: U8

    def __len__(self) -> int:
        return len(self.cfa)

    def moved(self, saves: int, expressions: int, places: int) -> Steps:
        """The same steps, with this many saves, expressions and bytes of expressions before theirs."""
        return replace(
            self,
            first=self.first + np.uint32(saves),
            end=self.end + np.uint32(saves),
            operand=self.operand + np.isin(self.cfa, _USES_EXPRESSION) * expressions,
            save_operand=self.save_operand + np.isin(self.save_op, _USES_EXPRESSION) * expressions,
            expression_first=self.expression_first + places,
            expression_end=self.expression_end + places,
        )


_DTYPES = {"U8": np.uint8, "U32": np.uint32, "I64": np.int64}


def steps_of(steps: Sequence[tuple[Step, How]], expressions: Sequence[bytes] = ()) -> Steps:
    """Steps that are known one by one, with the expressions that they have by number."""
    saves = [save for step, _ in steps for save in step.saves]
    ends = np.cumsum([len(step.saves) for step, _ in steps], dtype=np.int64)
    return _made(
        cfa=[step.cfa[0] for step, _ in steps],
        register=[step.cfa[1] for step, _ in steps],
        operand=[step.cfa[2] for step, _ in steps],
        first=ends - [len(step.saves) for step, _ in steps],
        end=ends,
        flags=[step.flags for step, _ in steps],
        how=[how for _, how in steps],
        save_column=[save[0] for save in saves],
        save_op=[save[1] for save in saves],
        save_register=[save[2] for save in saves],
        save_operand=[save[3] for save in saves],
        **_expression_columns(expressions),
    )


def _made(**columns: object) -> Steps:
    """Columns of the right types; those that are not given are empty. The outermost steps get their flag."""
    steps = Steps(
        **{one.name: np.ascontiguousarray(columns.get(one.name, ()), _DTYPES[str(one.type)]) for one in fields(Steps)}
    )
    outermost = (steps.save_column == PC) & (steps.save_op == Op.UNKNOWN)
    step = np.searchsorted(steps.end, np.flatnonzero(outermost), "right")
    steps.flags[step] |= np.uint8(Flag.OUTERMOST)
    return steps


def joined_steps(parts: Sequence[Steps]) -> Steps:
    """Several steps after each other."""
    sizes = [(len(part.save_op), len(part.expression_first), len(part.expression_bytes)) for part in parts]
    before = np.cumsum([(0, 0, 0), *sizes], axis=0).tolist()
    return concatenated([part.moved(*place) for part, place in zip(parts, before, strict=False)])


def with_signals(steps: Steps) -> Steps:
    """The same steps twice; the second time they lead to what a signal interrupted."""
    return joined_steps((steps, replace(steps, flags=steps.flags | np.uint8(Flag.SIGNAL))))


def steps_of_rules(rules: RuleArray, machine: Machine, how: How) -> Steps:
    """Of the rules of a table: program counter and frame pointer."""
    count = len(rules)
    columns = np.full((count, 2), PC, np.uint8)
    columns[:, 1] = machine.fp
    ops, registers, operands = (np.zeros((count, 2), dtype) for dtype in (np.uint8, np.int64, np.int64))
    for place, name in enumerate(("ra", "fp")):
        ops[:, place] = _OP_OF_KIND[rules[name]["kind"]]
        registers[:, place], operands[:, place] = rules[name]["register"], rules[name]["offset"]
    # The return address is still where the call left it; AMD64 has no register for it.
    same = ops[:, 0] == Op.SAME
    ops[same, 0], registers[same, 0] = (Op.BAD, 0) if machine is AMD64 else (Op.REGISTER, machine.ra)
    operands[same, 0] = 0
    cfa = _OP_OF_KIND[rules["cfa"]["kind"]]
    cfa[(cfa == Op.SAME) | (cfa == Op.UNKNOWN)] = Op.BAD
    base = rules["cfa"]["register"].astype(np.int64)
    return _made(
        cfa=_without_high(cfa, base),
        register=np.minimum(base, PC),
        operand=rules["cfa"]["offset"],
        first=np.arange(count) * 2,
        end=np.arange(count) * 2 + 2,
        flags=(rules["ra_signed"] != 0) * np.uint8(Flag.SIGNED),
        how=np.full(count, how),
        save_column=columns.reshape(-1),
        save_op=_without_high(ops, registers).reshape(-1),
        save_register=np.minimum(registers, PC).reshape(-1),
        save_operand=operands.reshape(-1),
    )


def _without_high(ops: U8, registers: I64) -> U8:
    """Rules with registers that no sample has cannot be followed."""
    return np.where(np.isin(ops, _USES_REGISTER) & (registers >= PC), np.uint8(Op.BAD), ops)


def unusable(rules: RuleArray) -> np.ndarray:
    """Which rules of a table say nothing for a walk."""
    bad: np.ndarray = of_kind(rules["cfa"], PartKind.INEXPRESSIBLE) | of_kind(rules["ra"], PartKind.INEXPRESSIBLE)
    return bad


# Of call frame information


def steps_of_frames(frames: Frames) -> tuple[Steps, U32]:
    """Of all that a section says: the steps, and the step of each row."""
    others = _others(frames)
    row_set = np.zeros(len(frames.row_rule), np.uint32) if others is None else others.row_set
    rule, chosen, row_step = _pairs(frames.row_rule, row_set, 1 if others is None else len(others))
    words = frames.rule_words[rule]
    column = ((words[:, 4] >> np.uint64(RA_COLUMN_SHIFT)) & np.uint64(0xFFFF)).astype(np.int64)
    machine = frames.machine
    parts = [_of_words(words[:, place]) for place in range(4)]
    (cfa, cfa_register, cfa_operand), ra, fp, sp = parts
    cfa[words[:, 0] & np.uint64(15) == RuleKind.UNSPECIFIED] = Op.BAD
    elsewhere = (ra[0] == Op.SAME) & (words[:, 1] & np.uint64(15) == RuleKind.UNSPECIFIED)
    ra[0][elsewhere], ra[1][elsewhere] = Op.REGISTER, column[elsewhere]
    if machine is AMD64:
        ra[0][elsewhere & (column == machine.ra)] = Op.BAD
    same = ra[0] == Op.SAME
    ra[0][same], ra[1][same] = Op.REGISTER, machine.ra
    usual_sp = words[:, 3] & np.uint64(15) == RuleKind.UNSPECIFIED
    saves = [_column(PC, *ra), _column(machine.fp, *fp), _column(machine.sp, *sp, left_out=usual_sp)]
    first, end, entries = _laid(saves, others, chosen)
    save_column, save_op, save_register, save_operand = entries
    expressions = _Expressions(frames)
    flags = np.full(len(rule), np.uint8(Flag.KEEPS))
    flags[words[:, 4] & np.uint64(FLAG_SIGNED | FLAG_SIGNED_WITH_PC) != 0] |= np.uint8(Flag.SIGNED)
    steps = _made(
        cfa=_without_high(cfa, cfa_register),
        register=np.minimum(cfa_register, PC),
        operand=expressions.numbers(cfa, cfa_operand),
        first=first,
        end=end,
        flags=flags,
        how=np.full(len(rule), How.CFI),
        save_column=save_column,
        save_op=_without_high(save_op, save_register),
        save_register=np.minimum(save_register, PC),
        save_operand=expressions.numbers(save_op, save_operand),
        **expressions.columns(),
    )
    return steps, row_step


def _others(frames: Frames) -> SideTable | None:
    """The rules of the other registers; without them a walk knows fewer registers."""
    try:
        return side_table(frames)
    except DwarfError:
        return None


def _pairs(rule: U32, chosen: U32, sets: int) -> tuple[I64, I64, U32]:
    """The distinct pairs of a rule and a set: both, and the number of each row's pair."""
    rules = int(rule.max(initial=0)) + 1
    keys = rule.astype(np.int64) * sets + chosen
    if rules * sets <= _MOST_PAIRS:
        there = np.zeros(rules * sets, np.bool_)
        there[keys] = True
        distinct = np.flatnonzero(there)
        number = np.zeros(rules * sets, np.uint32)
        number[distinct] = np.arange(len(distinct), dtype=np.uint32)
        numbers = number[keys]
    else:
        distinct, inverse = ranked(keys)
        numbers = inverse.astype(np.uint32)
    return distinct // sets, distinct % sets, numbers


_Part = tuple[U8, I64, I64]
"""Op, register and operand of one column of every step."""


def _of_words(words: U64) -> _Part:
    words = np.ascontiguousarray(words)
    register = ((words >> np.uint64(4)) & np.uint64(0xFFFF)).astype(np.int64)
    return _OP_OF_WORD[words & np.uint64(15)], register, words.view(np.int64) >> np.int64(20)


_Saves = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Step, column, op, register and operand."""


def _column(column: int, op: U8, register: I64, operand: I64, *, left_out: np.ndarray | None = None) -> _Saves:
    """The saves of one column for all steps, but for those that are left out."""
    step = np.arange(len(op)) if left_out is None else np.flatnonzero(~left_out)
    return step, np.full(len(step), column, np.uint8), op[step], register[step], operand[step]


def _laid(
    saves: list[_Saves], others: SideTable | None, chosen: I64
) -> tuple[I64, I64, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """All saves by step: where those of each step begin and end, and their columns."""
    if others is not None:
        counts = np.diff(others.first)[chosen]
        step = np.repeat(np.arange(len(chosen)), counts)
        entry = runs(others.first[chosen], counts)
        kept = others.register[entry] < PC
        step, entry = step[kept], entry[kept]
        op = _OP_OF_WORD[others.kind[entry]]
        operand = others.operand[entry]
        register = np.where(np.isin(op, _USES_REGISTER), operand, 0)
        operand = np.where(np.isin(op, _USES_REGISTER), 0, operand)
        saves = [*saves, (step, others.register[entry].astype(np.uint8), op, register, operand)]
    step, *columns = (np.concatenate(parts) for parts in zip(*saves, strict=True))
    order = np.argsort(step, kind="stable")
    end = np.cumsum(np.bincount(step, minlength=len(chosen)))
    first = np.concatenate(([0], end[:-1])) if len(end) else end
    column, op, register, operand = (values[order] for values in columns)
    return first, end, (column, op, register, operand)


class _Expressions:
    """The expressions of a section that are used, each once."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._numbers: dict[bytes, int] = {}

    def numbers(self, op: U8, place: I64) -> I64:
        """The operands, where those that are places of expressions become their numbers."""
        operand = place.copy()
        uses = np.isin(op, _USES_EXPRESSION)
        places, inverse = ranked(place[uses])
        found = [self._number(one) for one in places.tolist()]
        operand[uses] = np.array(found, np.int64)[inverse]
        return operand

    def _number(self, place: int) -> int:
        return self._numbers.setdefault(bytes(expression_at(self._frames, place)), len(self._numbers))

    def columns(self) -> dict[str, object]:
        """What `Steps` has of them."""
        return _expression_columns(list(self._numbers))


def _expression_columns(expressions: Sequence[bytes]) -> dict[str, object]:
    sizes = [len(one) for one in expressions]
    end = np.cumsum(sizes, dtype=np.int64)
    contents = np.frombuffer(b"".join(expressions), np.uint8)
    return {"expression_first": end - sizes, "expression_end": end, "expression_bytes": contents}


def built_in(machine: Machine) -> Steps:
    """The steps that every pool of a machine begins with: those of `BuiltIn`."""
    abi = ABIS[machine]
    return steps_of(
        [
            (abi.entry, How.ENTRY),
            (abi.chain, How.FP_GUESS),
            (abi.chain, How.FP_DECLARED),
            *((one.context, How.SIGNAL) for one in abi.trampolines),
        ]
    )
