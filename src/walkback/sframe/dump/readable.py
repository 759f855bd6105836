"""Sections for people: the facts on top, then each function with its rules in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, U64, Numbers
from walkback.base.render import LineForm
from walkback.base.text import counted, printable
from walkback.sframe import layout
from walkback.sframe.dump.view import Entry, View
from walkback.table.rule import OUTERMOST, Part, PartKind, Rule

_FLAG_WORDS = {
    layout.F_FDE_SORTED: "sorted",
    layout.F_FRAME_POINTER: "all functions keep the frame pointer",
    layout.F_FDE_FUNC_START_PCREL: "function starts are relative to their own fields",
}
_NO_WORDS = (PartKind.UNCHANGED, PartKind.UNDEFINED, PartKind.INEXPRESSIBLE)


def dump(view: View, *, colour: bool = False) -> Iterator[bytes | memoryview]:
    """The facts of the section and every chosen function; `colour` is for terminals."""
    section = view.section
    yield (_facts(view) + "\n").encode("utf-8", "surrogateescape")
    addresses = view.row_addresses(section.code_address)
    masked = np.repeat(section.functions.pc_type == layout.PC_TYPE_MASK, section.functions.rows)

    def head(functions: I64) -> LineForm:
        heads = [_head(entry, colour).encode("utf-8", "surrogateescape") for entry in view.entries(functions)]
        return LineForm((heads, np.arange(len(heads))))

    def row(rows: slice, texts: list[bytes], which: Numbers) -> LineForm:
        return LineForm(
            ([b"   0x", b"  +0x"], masked[rows]),
            ("hex", addresses[rows]),
            padding(addresses[rows]),
            (texts, which),
            start=rows.start,
        )

    yield from view.render(head, row, lambda shapes: _shape_texts(view, shapes), LineForm())


def padding(addresses: U64) -> tuple[list[bytes], Numbers]:
    """Blanks after each address, so that what follows stands in a column."""
    digits = np.maximum(1, np.searchsorted(np.uint64(16) ** np.arange(16, dtype=np.uint64), addresses, "right"))
    widest = int(digits.max(initial=1))
    return [b" " * (2 + widest - digits) for digits in range(widest + 1)], digits


def _facts(view: View) -> str:
    section, source = view.section, view.source
    where = f"{source.name} section" if source.name else "SFrame section"
    if source.name == "PT_GNU_SFRAME":
        where = "SFrame data in PT_GNU_SFRAME"
    if view.piece.position:
        where += f", the piece at {view.piece.position:#x}"
    words = [text for bit, text in _FLAG_WORDS.items() if section.flags & bit]
    unknown = section.flags & ~sum(_FLAG_WORDS)
    words += [f"unknown flags {unknown:#x}"] if unknown else []
    abi = layout.ABI_NAMES.get(section.abi_arch, f"unknown ABI {section.abi_arch}")
    if section.machine is not None and layout.ABI_BYTE_ORDERS[section.abi_arch] != section.byteorder:
        abi += f", stored {section.byteorder}-endian"
    lines = [
        f"{printable(source.file)}: {printable(where)} at {section.address:#x}, {section.length} bytes",
        f"  SFrame version {section.version}, {abi}" + (f"; {', '.join(words)}" if words else ""),
    ]
    for name, offset in (("RA", section.cfa_fixed_ra_offset), ("FP", section.cfa_fixed_fp_offset)):
        if offset:
            lines.append(f"  {name} is always at *(CFA{offset:+d})")
    if section.auxiliary:
        lines.append(f"  auxiliary header: {section.auxiliary.hex(' ')}")
    lines.append(
        f"  {counted(len(section.functions), 'function')}, {counted(len(section.row_start), 'row')}; "
        f"header {section.header_end} bytes, index {len(section.functions) * section.fde_size}, rows {section.fre_len}"
    )
    return "\n".join(lines)


def function_title(name: str | None, number: int, colour: bool) -> str:
    """The name of a function, or its number."""
    title = printable(name or f"function {number}")
    return f"\x1b[1m{title}\x1b[0m" if colour else title


def _head(entry: Entry, colour: bool) -> str:
    """Name, extent and properties of a function."""
    title = function_title(entry.name, entry.number, colour)
    words = [counted(entry.size, "byte")]
    words += [f"repeating blocks of {entry.block_size}"] if entry.masked else []
    words += ["signal frame"] if entry.signal else []
    if entry.fde_type:
        words.append("flex" if entry.fde_type == layout.FDE_TYPE_FLEX else f"unknown type {entry.fde_type}")
    words += ["key B"] if entry.pauth_key else []
    text = f"\n{title}  {printable(entry.place)}, {', '.join(words)}\n"
    if entry.fault:
        text += f"  ! {entry.fault.words} (at {entry.fault_offset:#x})\n"
    elif not entry.rows:
        text += "  no rows\n"
    return text


def _shape_texts(view: View, shapes: list[int]) -> list[bytes]:
    """The rules of some shapes, their parts in columns."""
    machine = view.section.machine
    if machine is None:
        info = view.section.shapes.info
        return [f"info {int(info[shape]):#04x}, words {view.shape_words(shape)}\n".encode() for shape in shapes]
    return rule_lines([view.rule(shape) for shape in shapes], machine)


def rule_lines(rules: Sequence[Rule | None], machine: Machine) -> list[bytes]:
    """A line for each rule, their parts in columns."""
    columns = [_columns(rule, machine) for rule in rules]
    usual = [one for one, rule in zip(columns, rules, strict=True) if one[1] and not _is_long(rule)]
    wide = [max((len(one[column]) for one in usual), default=0) for column in (0, 1)]
    return [f"{cfa:<{wide[0]}}  {ra:<{wide[1]}}  {fp}".rstrip().encode() + b"\n" for cfa, ra, fp in columns]


def _is_long(rule: Rule | None) -> bool:
    """Whether its text gives a reason, for which the columns of others are not moved."""
    return rule is not None and PartKind.INEXPRESSIBLE in {rule.cfa.kind, rule.ra.kind}


def _columns(rule: Rule | None, machine: Machine) -> tuple[str, str, str]:
    """The texts of CFA, RA and FP."""
    if rule is None or rule == OUTERMOST:
        return "outermost frame", "", ""
    if rule.unsaid is not None:
        return f"no rule: {rule.unsaid}", "", ""

    def part(name: str, one: Part) -> str:
        return f"{name} {'' if one.kind in _NO_WORDS else '= '}{one.text(machine)}"

    signed = " signed" if rule.ra_signed else ""
    return part("CFA", rule.cfa), part("RA", rule.ra) + signed, part("FP", rule.fp)
