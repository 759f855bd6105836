"""Rules about the rows: where they start, how many words they have, and whether what they say can be right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from walkback.base.arch import AARCH64, Machine
from walkback.base.arrays import I64, Bools
from walkback.sframe import layout
from walkback.sframe.checking.findings import Findings
from walkback.sframe.checking.witness import Witness
from walkback.sframe.rules import flex_pairs, shape_rules, to_table
from walkback.sframe.section import Section
from walkback.table.rule import PartKind, Reason, RuleArray, of_kind

_LARGEST_REGISTER = 127
"""The numbers that the ABIs give to registers, vector and system ones included, are below 128."""


class _Rows:
    """Rows with their functions, positions worked out only if something is wrong."""

    def __init__(self, section: Section, found: Findings, notes: Findings, witness: Witness | None) -> None:
        self.section = section
        self.found = found
        self.notes = notes
        self.witness = witness
        self.owner: I64 = np.repeat(np.arange(len(section.functions)), section.functions.rows)
        self._offsets: I64 | None = None

    def offset(self, row: int) -> int:
        """Position of a row in the section."""
        if self._offsets is None:
            self._offsets = self.section.row_offsets()
        return int(self._offsets[row])

    def report(self, code: str, breaches: Bools, message: Callable[[int], str], found: Findings | None = None) -> None:
        """Note a breach for each chosen row."""
        into = found or self.found

        def note(row: int) -> None:
            function = int(self.owner[row])
            number = row - int(self.section.functions.first_row[function])
            into.add(code, message(row), offset=self.offset(row), function=function, row=number)

        into.add_all(code, np.flatnonzero(breaches), note)

    def report_shapes(self, code: str, breaches: Bools, message: Callable[[int], str]) -> None:
        """Note a breach for each row that has a chosen shape."""
        if breaches.any():
            shape = self.section.row_shape
            self.report(code, breaches[shape], lambda row: message(int(shape[row])))

    def report_meaning(self, code: str, breaches: Bools, message: Callable[[int], str]) -> None:
        """The same about what rows mean; where the witness agrees it is no fault of the section."""
        witness = self.witness
        if witness is None or not breaches.any():
            self.report_shapes(code, breaches, message)
            return
        shape = self.section.row_shape
        chosen = breaches[shape]
        agreed = np.zeros(len(chosen), np.bool_)
        rows = np.flatnonzero(chosen)
        agreed[rows] = witness.agrees(self.section, rows)
        self.report(code, chosen & ~agreed, lambda row: message(int(shape[row])))
        self.report(code, agreed, lambda row: f"{message(int(shape[row]))}; {witness.name} says the same", self.notes)


def check_rows(section: Section, found: Findings, notes: Findings, witness: Witness | None) -> None:
    """All rules of this module."""
    if not len(section.row_start):
        return
    rows = _Rows(section, found, notes, witness)
    _starts(rows)
    machine = section.machine
    if machine is None:
        return
    rules = shape_rules(section, machine)
    _words(rows, machine, rules)
    _bits(rows, machine)
    _values(rows, machine, rules)
    _frame_pointer(rows)


def _starts(rows: _Rows) -> None:
    """Rising, and inside the function or the repeating block."""
    section = rows.section
    functions, start = section.functions, section.row_start
    falling = np.zeros(len(start), np.bool_)
    falling[1:] = (start[1:] <= start[:-1]) & (rows.owner[1:] == rows.owner[:-1])
    rows.report(
        "row-order", falling, lambda row: f"it starts at {start[row]:#x}, the one before it at {start[row - 1]:#x}"
    )
    masked = functions.pc_type == layout.PC_TYPE_MASK
    limit = np.where(masked, section.block_size, functions.size).astype(np.int64)
    limit = limit[rows.owner]
    in_block = masked[rows.owner]

    def place(row: int) -> str:
        return f"it starts at {start[row]:#x} of {int(limit[row]):#x} bytes"

    rows.report("row-range", np.where(in_block, (start >= limit) & (limit > 0), start > limit), place)
    # An empty function has its row at 0.
    rows.report("row-at-end", (start == limit) & ~in_block & (start > 0), place)
    unit = 1 if section.machine is None else section.machine.code_alignment
    rows.report("row-align", start % np.uint32(unit) != 0, lambda row: f"it starts at {start[row]:#x}")


def _words(rows: _Rows, machine: Machine, rules: RuleArray) -> None:
    """The number of words, and what flex rows make of them."""
    section = rows.section
    shapes = section.shapes
    count = shapes.word_count.astype(np.int64)
    default = shapes.fde_type == layout.FDE_TYPE_DEFAULT
    flex = shapes.fde_type == layout.FDE_TYPE_FLEX
    most = 3 - (section.cfa_fixed_ra_offset != 0) - (section.cfa_fixed_fp_offset != 0)
    rows.report_shapes(
        "row-extra-words",
        default & (count > most),
        lambda shape: f"{count[shape]} data words; {machine.name} defines {most}",
    )
    if section.version == 1:
        rows.report_shapes("row-no-words", count == 0, lambda _: "no data words")
    if flex.any():
        _flex_words(rows, rules, flex)


def _flex_words(rows: _Rows, rules: RuleArray, flex: Bools) -> None:
    """The control words and offsets of flex rows."""
    shapes = rows.section.shapes
    count = shapes.word_count
    pairs, used = flex_pairs(shapes)
    rows.report_shapes(
        "row-extra-words",
        flex & (count > used),
        lambda shape: f"{count[shape]} data words, but the rules use {used[shape]}",
    )
    odd = np.zeros(len(shapes), np.bool_)
    for pair in pairs:
        register_without_use = (pair.control & layout.FLEX_REG == 0) & (pair.control >> layout.FLEX_REGISTER_SHIFT != 0)
        odd |= (pair.control & layout.FLEX_UNUSED != 0) | register_without_use
    rows.report_shapes("row-bits", flex & odd, lambda _: "a control word has unused bits set")
    cut = np.zeros(len(shapes), np.bool_)
    for name in ("cfa", "ra", "fp"):
        part = rules[name]
        cut |= of_kind(part, PartKind.INEXPRESSIBLE) & (part["offset"] == Reason.CUT_OFF)
    no_register = of_kind(rules["cfa"], PartKind.INEXPRESSIBLE)
    no_register &= rules["cfa"]["offset"] == Reason.FLEX_CFA_WITHOUT_REGISTER
    rows.report_shapes("flex-words", flex & cut, lambda _: "the words end between a control word and its offset")
    rows.report_shapes("flex-cfa", flex & no_register & ~cut, lambda _: "the CFA is based on no register")


def _bits(rows: _Rows, machine: Machine) -> None:
    """Bits that mean nothing where they stand."""
    section = rows.section
    shapes = section.shapes
    flex = shapes.fde_type == layout.FDE_TYPE_FLEX
    mangled = (shapes.info & layout.FRE_RA_MANGLED) != 0
    if machine is not AARCH64:
        rows.report_shapes("row-mangled", mangled, lambda _: f"a signed return address on {machine.name}")
    empty = shapes.word_count == 0
    without_mangled = shapes.info & np.uint8(~layout.FRE_RA_MANGLED & 0xFF)
    unused = (flex & (shapes.info & 1 != 0)) | (empty & (without_mangled != 0))
    if machine is AARCH64:
        unused |= empty & mangled
    rows.report_shapes(
        "row-bits", unused, lambda shape: f"info byte {int(shapes.info[shape]):#04x} has unused bits set"
    )


def _values(rows: _Rows, machine: Machine, rules: RuleArray) -> None:
    """What a rule says."""
    for name, label in (("cfa", "CFA"), ("ra", "return address"), ("fp", "frame pointer")):
        part = rules[name]
        based = of_kind(part, PartKind.REGISTER, PartKind.AT_REGISTER)

        def register(shape: int, part: RuleArray = part, label: str = label) -> str:
            return (
                f"the {label} is based on register {int(part['register'][shape])}, which {machine.name} does not have"
            )

        rows.report_meaning("row-register", based & (part["register"] > _LARGEST_REGISTER), register)
    cfa = rules["cfa"]
    from_sp = of_kind(cfa, PartKind.REGISTER) & (cfa["register"] == machine.sp)
    below = from_sp & (cfa["offset"] < machine.entry_sp_to_cfa)
    rows.report_meaning(
        "cfa-below-sp",
        below,
        lambda shape: (
            f"the CFA is SP{int(cfa['offset'][shape]):+d}, a call alone makes it SP{machine.entry_sp_to_cfa:+d}"
        ),
    )
    for name, label in (("ra", "return address"), ("fp", "frame pointer")):
        part = rules[name]
        above = of_kind(part, PartKind.AT_CFA) & (part["offset"] >= 0)

        def saved(shape: int, part: RuleArray = part, label: str = label) -> str:
            return f"the {label} would be saved at CFA{int(part['offset'][shape]):+d}, in the caller's frame"

        rows.report_meaning("saved-above-cfa", above, saved)

        def unaligned(shape: int, part: RuleArray = part, label: str = label) -> str:
            return f"the {label} would be saved at CFA{int(part['offset'][shape]):+d}, no multiple of 8"

        rows.report_meaning("saved-align", of_kind(part, PartKind.AT_CFA) & (part["offset"] % 8 != 0), unaligned)
    ra, fp = rules["ra"], rules["fp"]
    together = of_kind(ra, PartKind.AT_CFA) & of_kind(fp, PartKind.AT_CFA) & (ra["offset"] == fp["offset"])
    rows.report_meaning(
        "saved-together", together, lambda shape: f"both would be saved at CFA{int(ra['offset'][shape]):+d}"
    )
    from_fp = of_kind(cfa, PartKind.REGISTER) & (cfa["register"] == machine.fp)
    rows.report_meaning(
        "fp-lost",
        from_fp & of_kind(fp, PartKind.UNCHANGED),
        lambda _: "the CFA is based on the frame pointer, but the row leaves the caller's frame pointer unchanged",
    )


def _frame_pointer(rows: _Rows) -> None:
    """With the flag FRAME_POINTER, every function that makes a frame bases its CFA on the frame pointer."""
    section = rows.section
    if not section.flags & layout.F_FRAME_POINTER or section.version == 3:
        return
    message = "it makes a frame without keeping the frame pointer, against the flag FRAME_POINTER"
    rows.found.add_functions("frame-pointer-flag", section, to_table(section).frameless(), lambda _: message)
