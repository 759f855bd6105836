"""At which places the walk of a consumer that loads the section ends, falls back to something else, or goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from walkback.base.arch import AARCH64, AMD64
from walkback.base.arrays import I64, U64, Bools
from walkback.base.errors import UnreadableError
from walkback.base.text import counted
from walkback.elf import ElfFile
from walkback.elf.calls import after_call
from walkback.sframe.checking.findings import Findings
from walkback.sframe.checking.witness import Witness
from walkback.sframe.consumers import Consumer
from walkback.sframe.files import SFrameSection, Source
from walkback.sframe.fitting import is_signal_code
from walkback.sframe.section import Section
from walkback.table.rule import PartKind, of_kind
from walkback.table.table import UnwindTable

_CLEARS_FP = {AMD64: bytes.fromhex("31ed"), AARCH64: bytes.fromhex("1d0080d2")}
"""xor %ebp, %ebp; mov x29, #0"""


def check_walk(
    consumer: Consumer, source: Source, piece: SFrameSection, witness: Witness | None, found: Findings
) -> None:
    """All places of a section; `witness` is the call frame information of its file."""
    walk = _Walk(consumer, source, piece, found)
    walk.outermost()
    walk.rowless()
    walk.registers()
    elf = source.elf
    if elf is None or elf.is_relocatable:
        return
    walk.signals(elf)
    if consumer.looks_up_returns:
        walk.call_ends(elf)
    if witness is not None:
        walk.uncovered(elf, witness.table)


class _Walk:
    """A section and the consumer that walks by it."""

    def __init__(self, consumer: Consumer, source: Source, piece: SFrameSection, found: Findings) -> None:
        self.consumer = consumer
        self.source = source
        self.section: Section = piece.section
        self.table: UnwindTable = piece.table
        self.found = found

    def report(self, code: str, functions: Bools | I64, message: Callable[[int], str]) -> None:
        """Note something of each of these functions."""
        self.found.add_functions(f"{self.consumer.name}-{code}", self.section, functions, message)

    def outermost(self) -> None:
        """Rows without words, where they are an error."""
        if not self.consumer.reads_outermost:
            table = self.table
            rows = table.rows_where(of_kind(table.rules["ra"], PartKind.UNDEFINED))
            self.report("outermost", rows > 0, lambda _: f"a row without words, where {self.consumer.without_rule}")

    def rowless(self) -> None:
        """Functions that have no row where they begin."""
        table = self.table
        first = np.full(len(table), 0xFFFFFFFF, np.uint32)
        some = table.range_rows > 0
        first[some] = table.row_offset[table.range_first_row[some]]
        then = "the whole section is dropped" if self.consumer.needs_row else self.consumer.without_rule

        def message(function: int) -> str:
            bytes_ = counted(min(int(first[function]), int(table.range_size[function])), "byte")
            return f"no row holds for its first {bytes_}: a walk comes there, and {then}"

        self.report("no-row", (first > 0) & (table.range_size > 0), message)

    def registers(self) -> None:
        """Rows that only the innermost frame can have, because only its registers are known."""
        table, rules = self.table, self.table.rules
        by_register = np.zeros(len(rules), np.bool_)
        for name in ("cfa", "ra", "fp"):
            part = rules[name]
            based = of_kind(part, PartKind.REGISTER, PartKind.AT_REGISTER)
            known = (part["register"] == table.machine.sp) | (part["register"] == table.machine.fp)
            by_register |= based & ~known if name == "cfa" else based
        if self.consumer.name == "linux":
            self.report(
                "innermost",
                table.rows_where(by_register) > 0,
                lambda _: "a rule by a register, which Linux follows in the innermost frame only: the walk ends here",
            )
        elif self.consumer.name == "linux-kernel":
            by_memory = of_kind(rules["cfa"], PartKind.AT_REGISTER)
            self.report(
                "register",
                table.rows_where(by_register | by_memory) > 0,
                lambda _: "a rule by another register than SP and FP, or by memory: the stack is unreliable",
            )
        elif table.machine is AARCH64:
            kept = of_kind(rules["ra"], PartKind.UNCHANGED) & ~of_kind(rules["cfa"], PartKind.UNDEFINED)
            for code, where, words in (
                ("glibc-register", kept, "have the return address in its register: a signal there ends the walk"),
                ("glibc-signed", rules["ra_signed"] > 0, "sign the return address, and the library leaves it signed"),
            ):
                if count := int((table.rows_where(where) > 0).sum()):
                    self.found.add(code, f"{counted(count, 'function')} {words}")

    def signals(self, elf: ElfFile) -> None:
        """Functions over the code that signal handlers return to, which is recognised where there is none."""
        if self.consumer.finds_signals:
            self.report(
                "signal-code",
                is_signal_code(elf, self.table),
                lambda _: "signal handlers return here, and the walk uses these rows instead of the interrupted frame",
            )

    def call_ends(self, elf: ElfFile) -> None:
        """Calls whose return address has not the rule of the call: it is looked up as it is, not minus one."""
        table = self.table
        owner, place, rule = self._borders()
        at = self._rule_at(place)
        chosen = np.flatnonzero(at != rule)
        chosen = chosen[after_call(elf, place[chosen], table.range_start)]

        code = f"{self.consumer.name}-call-end"

        def note(index: int) -> None:
            what = "but the row that begins there differs: the walk goes wrong"
            if at[index] < 0:
                what = "where there is no function: the walk falls back"
            message = f"the call before {place[index]:#x} returns there, {what}"
            function = int(owner[index])
            self.found.add(code, message, offset=self.section.field_offset(function), function=function)

        self.found.add_all(code, chosen, note)

    def _borders(self) -> tuple[I64, U64, I64]:
        """Where rows end: the function, the address behind, and the number of the rule in front."""
        table = self.table
        plain = (table.range_block == 0) & (table.range_rows > 0) & (table.range_size > 0)
        owner = np.repeat(np.flatnonzero(plain), table.range_rows[plain])
        count = table.range_rows[plain]
        last = np.cumsum(count) - 1
        row = np.repeat(table.range_first_row[plain] - (last + 1 - count), count) + np.arange(len(owner))
        following = np.minimum(row + 1, max(len(table.row_offset) - 1, 0))
        end = table.row_offset[following].astype(np.uint64)
        end[last] = table.range_size[plain]
        return owner, table.range_start[owner] + end, table.row_rule[row].astype(np.int64)

    def _rule_at(self, place: U64) -> I64:
        """The number of the rule at each address, -1 where there is none."""
        _, rows = self.table.find_many(place)
        return np.where(rows >= 0, self.table.row_rule[np.maximum(rows, 0)].astype(np.int64), -1)

    def uncovered(self, elf: ElfFile, wanted: UnwindTable) -> None:
        """Functions that the call frame information has and the section has not."""
        missing = (wanted.range_size > 0) & (self.table.find_many(wanted.range_start)[0] < 0)
        outermost = wanted.rows_where(of_kind(wanted.rules["ra"], PartKind.UNDEFINED)) > 0
        ends = np.zeros(len(wanted), np.bool_)
        chosen = np.flatnonzero(missing & outermost)
        if self.consumer.looks_up_returns:
            ends[chosen] = [_clears_frame_pointer(elf, wanted, index) for index in chosen.tolist()]
            missing &= ~ends
        if self.consumer.finds_signals:
            missing &= ~is_signal_code(elf, wanted)
        functions = np.flatnonzero(missing)
        names = self._names(wanted, functions)

        def note(number: int) -> None:
            index = int(functions[number])
            place = f"{int(wanted.range_start[index]):#x}{names[number]} ({int(wanted.range_size[index])} bytes)"
            what = f"is not in the section: {self.consumer.without_rule} here"
            if outermost[index] and self.consumer.looks_up_returns:
                what = "is outermost and not in the section: the walk ends here if the frame pointer is zero"
            self.found.add(f"{self.consumer.name}-uncovered", f"{place} {what}")

        self.found.add_all(f"{self.consumer.name}-uncovered", np.arange(len(functions)), note)

    def _names(self, wanted: UnwindTable, functions: I64) -> list[str]:
        names: list[str | None] = [None] * len(functions)
        if self.source.symbols is not None and len(functions):
            with suppress(UnreadableError):
                names = self.source.symbols.names_at(wanted.range_start[functions], wanted.range_section[functions])
        return ["" if name is None else f" {name}" for name in names]


def _clears_frame_pointer(elf: ElfFile, wanted: UnwindTable, index: int) -> bool:
    """Whether the code of a function makes the frame pointer zero, by which consumers know the end of a stack."""
    code = _CLEARS_FP.get(wanted.machine)
    try:
        data = elf.mapped_data(int(wanted.range_start[index]), int(wanted.range_size[index]))
    except UnreadableError:
        return False
    return code is not None and code in bytes(data)
