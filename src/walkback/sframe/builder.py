"""For those who make sections themselves: functions and rules in, bytes out.

builder = SectionBuilder("AMD64")
builder.function(0x1000, 32, ["CFA = rsp+8", (1, "CFA = rsp+16, FP = *(CFA-16)")])
data = builder.encode(address=0x4000)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from walkback.base.arch import Machine, machine_of
from walkback.base.errors import ArgumentError
from walkback.sframe.building import Built, build
from walkback.sframe.encoding import encode
from walkback.table.rule import Rule
from walkback.table.table import UnwindTable, rule_array

Row = str | Rule | tuple[int, str | Rule]
"""A rule that holds from an offset on; without one, from the start of the function."""


class SectionBuilder:
    """Collects functions and makes a section of them.

    >>> builder = walkback.sframe.SectionBuilder("AMD64")
    >>> builder.function(0x1000, 32, ["CFA = rsp+8", (1, "CFA = rsp+16, FP = *(CFA-16)")])
    >>> len(builder.encode(address=0x4000))
    56
    """

    def __init__(self, machine: str | Machine) -> None:
        self.machine = machine_of(machine)
        self._functions: list[tuple[int, int, int, int, bool, int, int]] = []
        self._row_offsets: list[int] = []
        self._row_rules: list[int] = []
        self._rules: dict[Rule, int] = {}

    def __repr__(self) -> str:
        return f"SectionBuilder({self.machine.name!r}, functions={len(self._functions)})"

    def function(
        self,
        start: int,
        size: int,
        rows: Iterable[Row],
        *,
        section: int = -1,
        signal: bool = False,
        pauth_key: str = "A",
        block: int = 0,
    ) -> None:
        """Add a function with its rows in order.

        `section` is the text section's index where `start` is an offset in it, for relocatable files. `block` is the
        size of a block that repeats through the function, as in a PLT.
        """
        if pauth_key not in {"A", "B"}:
            raise ArgumentError(f"the key is A or B, not {pauth_key!r}")
        if not (0 <= start < 2**64 and 0 <= size <= 2**64 - start and size < 2**64):
            raise ArgumentError(f"a function of {size} bytes at {start:#x} does not lie inside 64 bits of addresses")
        if not (-1 <= section < 2**31 and 0 <= block < 2**32):
            raise ArgumentError(f"section {section} or block size {block} is out of range")
        offsets: list[int] = []
        rules: list[Rule] = []
        for row in rows:
            offset, rule = row if isinstance(row, tuple) else (0, row)
            if isinstance(rule, str):
                rule = Rule.parse(rule, self.machine)
            _check_range(rule)
            limit = min(block or size, 2**32)
            if not 0 <= offset < max(limit, 1) or (offsets and offset <= offsets[-1]):
                raise ArgumentError(f"a row at {offset} of a function of {limit} bytes: rows rise and lie inside")
            offsets.append(offset)
            rules.append(rule)
        # Nothing is kept of a function that is refused.
        self._row_offsets += offsets
        self._row_rules += [self._rules.setdefault(rule, len(self._rules)) for rule in rules]
        self._functions.append((section, start, size, len(offsets), signal, "AB".index(pauth_key), block))

    def table(self) -> UnwindTable:
        """The functions as a neutral table."""
        columns = np.array(self._functions, object).reshape(-1, 7).T
        section, start, size, rows, signal, key, block = columns
        count = rows.astype(np.int64)
        return UnwindTable(
            machine=self.machine,
            range_section=section.astype(np.int32),
            range_start=start.astype(np.uint64),
            range_size=size.astype(np.uint64),
            range_first_row=np.cumsum(count) - count,
            range_rows=count,
            range_signal=signal.astype(np.bool_),
            range_pauth_key=key.astype(np.uint8),
            range_block=block.astype(np.uint32),
            range_origin=np.arange(len(count)),
            row_offset=np.array(self._row_offsets, np.uint32),
            row_rule=np.array(self._row_rules, np.uint32),
            rules=rule_array(list(self._rules)),
        )

    def build(self, **options: Any) -> Built:
        """The section; the options are those of `walkback.sframe.building.build`."""
        return build(self.table(), **options)

    def encode(self, **options: Any) -> bytes:
        """The bytes of the section; the options are those of `walkback.sframe.building.build`."""
        return encode(self.build(**options).section)


def _check_range(rule: Rule) -> None:
    """A table has 32 bits for a register and 64 for an offset."""
    for part in (rule.cfa, rule.ra, rule.fp):
        if not (0 <= part.register < 2**32 and -(2**63) <= part.offset < 2**63):
            raise ArgumentError(f"register {part.register} or offset {part.offset} is out of range")
