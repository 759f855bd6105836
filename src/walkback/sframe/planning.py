"""How the rows of each range of a table are coded in a section of some version, and what the version cannot say.

A range gets default rows if they can say all its rules, else (version 3) flex rows, else it is refused with the reason.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from walkback.base.arch import AARCH64, S390X, Machine
from walkback.base.arrays import Bools, first_of_each, runs
from walkback.base.dataclass import dataclass
from walkback.base.errors import InexpressibleError
from walkback.sframe import layout
from walkback.sframe.words import Coding, Refusal, default_coding, flex_coding, refusing_outermost
from walkback.table.rule import REASON_WORDS, PartKind, Reason
from walkback.table.table import UnwindTable


@dataclass(frozen=True, slots=True)
class Refused:
    """A range of a table that a version cannot say."""

    range: int
    row: int | None
    """The first row that cannot be said; None when it is something about the whole range."""
    reason: Refusal

    def text(self, table: UnwindTable) -> str:
        """The reason in one line."""
        if self.row is None:
            return self.reason.words
        reason = self.inexpressible(table)
        return REASON_WORDS[reason] if reason else f"{self.reason.words}: {table.rule(self.row).text(table.machine)}"

    def inexpressible(self, table: UnwindTable) -> Reason | None:
        """Why the table has no rule for the row, if it has none."""
        if self.row is None:
            return None
        record = table.rules[table.row_rule[self.row]]
        for part in ("cfa", "ra", "fp"):
            if int(record[part]["kind"]) == PartKind.INEXPRESSIBLE:
                return Reason(int(record[part]["offset"]))
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """A table on its way to a section of some version, and how its rows are coded."""

    table: UnwindTable
    machine: Machine
    version: int
    default: Coding
    flex: Coding | None
    """None before version 3, and where default rows can say every range."""
    is_flex: Bools
    """For each range."""
    is_unsaid: Bools
    """Which ranges have a row that neither coding can say."""


class Codings:
    """How the rules of a table are coded, worked out once for sections of several versions."""

    def __init__(self, table: UnwindTable) -> None:
        self.table = table
        self._default: dict[bool, Coding] = {}

    def default(self, version: int) -> Coding:
        """As default rows."""
        rules, machine = self.table.rules, self.table.machine
        register_words = machine is S390X and version == 2
        if register_words not in self._default:
            self._default[register_words] = default_coding(rules, machine, register_words=register_words)
        coding = self._default[register_words]
        return refusing_outermost(coding, rules) if version == 1 else coding

    @cached_property
    def flex(self) -> Coding:
        """As flex rows."""
        return flex_coding(self.table.rules, self.table.machine)


def refusals(table: UnwindTable, version: int) -> list[Refused]:
    """What a version cannot say of a table, whatever the addresses.

    >>> builder = walkback.sframe.SectionBuilder("AMD64")
    >>> builder.function(0x1000, 32, ["CFA = r10"])
    >>> [refused] = walkback.sframe.refusals(builder.table(), version=2)
    >>> refused.reason
    <Refusal.CFA_BASE: 3>
    """
    return refusals_of(plan_of(table, version))


def plan_of(table: UnwindTable, version: int, codings: Codings | None = None) -> Plan:
    """Choose how each range is coded. `codings` are used if they are those of this table."""
    if version not in layout.VERSIONS:
        raise InexpressibleError(f"version {version} is not known; versions 1, 2 and 3 are", rule="header-version")
    if version == 1 and table.machine is S390X:
        raise InexpressibleError("version 1 does not know s390x", rule="header-abi")
    if codings is None or codings.table is not table:
        codings = Codings(table)
    default = codings.default(version)
    needs_more = table.rows_where(default.refusal != 0) > 0
    flex = codings.flex if version == 3 and needs_more.any() else None
    is_flex = np.zeros(len(table), np.bool_)
    if flex is not None:
        is_flex = needs_more & (table.rows_where(flex.refusal != 0) == 0)
    return Plan(table, table.machine, version, default, flex, is_flex, needs_more & ~is_flex)


def refusals_of(plan: Plan) -> list[Refused]:
    """Ranges that cannot be said, each with its first reason."""
    table = plan.table
    found: dict[int, Refused] = {}
    for reason, where in _range_refusals(plan):
        for index in np.flatnonzero(where).tolist():
            found.setdefault(index, Refused(index, None, reason))
    # A range that flex rows cannot say either is refused in the words of the richer coding.
    coding = plan.flex or plan.default
    unsaid = np.flatnonzero(plan.is_unsaid)
    owner = np.repeat(unsaid, table.range_rows[unsaid])
    rows = runs(table.range_first_row[unsaid], table.range_rows[unsaid])
    reasons = coding.refusal[table.row_rule[rows]]
    wrong = np.flatnonzero(reasons)
    for index, first in zip(*first_of_each(owner[wrong]), strict=True):
        row = int(wrong[first])
        found.setdefault(int(index), Refused(int(index), int(rows[row]), Refusal(int(reasons[row]))))
    return [found[index] for index in sorted(found)]


def _range_refusals(plan: Plan) -> list[tuple[Refusal, Bools]]:
    """What can be wrong with a range as a whole."""
    table, version = plan.table, plan.version
    block = table.range_block
    largest_block = layout.V1_REP_SIZE if version == 1 else 0xFF
    wrong_block = block > largest_block
    if version == 1:
        wrong_block |= (block > 0) & (block != layout.V1_REP_SIZE)
    return [
        (Refusal.SIGNAL, table.range_signal & (version < 3)),
        (Refusal.BLOCK_SIZE, wrong_block),
        (Refusal.BLOCK_ROWS, (block > 0) & (table.range_rows > layout.V3_MAX_FRES) & (version == 3)),
        (Refusal.FUNCTION_SIZE, table.range_size > 0xFFFFFFFF),
        (Refusal.PAUTH_KEY, (table.range_pauth_key > 0) & (table.machine is not AARCH64)),
    ]


def refusal_error(table: UnwindTable, refused: list[Refused], version: int) -> InexpressibleError:
    """What says that a version cannot say these ranges."""
    first = refused[0]
    others = len(refused) - 1
    more = f"; and {others} function{'s' if others > 1 else ''} more" if others else ""
    return InexpressibleError(
        f"version {version} cannot say {first.text(table)}{more}",
        function=f"function {first.range} at {int(table.range_start[first.range]):#x}",
        rule=first.reason.name.lower().replace("_", "-"),
    )
