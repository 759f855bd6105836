"""Sections for people: the facts on top, then each function with its rules in words."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.arrays import U64, Numbers
from walkback.render import Line, render
from walkback.sframe import layout
from walkback.sframe.decode import FAULT_WORDS
from walkback.sframe.dump.view import View
from walkback.sframe.section import Fault, Section
from walkback.table import OUTERMOST, Kind, Part, Rule

_FLAG_WORDS = {
    layout.F_FDE_SORTED: "sorted",
    layout.F_FRAME_POINTER: "all functions keep the frame pointer",
    layout.F_FDE_FUNC_START_PCREL: "starts count from their fields",
}
_NO_WORDS = (Kind.UNCHANGED, Kind.UNDEFINED, Kind.INEXPRESSIBLE)


def dump(view: View, *, colour: bool = False) -> Iterator[bytes | memoryview]:
    """The facts of the section and every chosen function; `colour` is for terminals."""
    section = view.section
    yield (_facts(view) + "\n").encode("utf-8", "surrogateescape")
    functions, chosen = section.functions, view.chosen
    heads = [_head(view, function, colour).encode("utf-8", "surrogateescape") for function in chosen.tolist()]
    masked = functions.pc_type == layout.PC_TYPE_MASK
    addresses = view.row_addresses(section.code_address)
    row = Line(
        ([b"   0x", b"  +0x"], np.repeat(masked, functions.rows)),
        ("hex", addresses),
        _padding(addresses),
        (_shape_texts(view), section.row_shape),
    )
    head = Line((heads, np.arange(len(heads))))
    yield from render(head, row, Line(), functions.first_row[chosen], functions.rows[chosen])


def _padding(addresses: U64) -> tuple[list[bytes], Numbers]:
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
        f"{source.file}: {where} at {section.address:#x}, {section.length} bytes",
        f"  SFrame version {section.version}, {abi}" + (f"; {', '.join(words)}" if words else ""),
    ]
    for name, offset in (("RA", section.cfa_fixed_ra_offset), ("FP", section.cfa_fixed_fp_offset)):
        if offset:
            lines.append(f"  {name} is always at *(CFA{offset:+d})")
    if section.auxiliary:
        lines.append(f"  auxiliary header: {section.auxiliary.hex(' ')}")
    lines.append(
        f"  {_count(len(section.functions), 'function')}, {_count(len(section.row_start), 'row')}; "
        f"header {section.header_end} bytes, index {len(section.functions) * section.fde_size}, rows {section.fre_len}"
    )
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _head(view: View, function: int, colour: bool) -> str:
    """Name, extent and properties of a function."""
    section = view.section
    functions = section.functions
    name = view.names[function]
    size = int(functions.size[function])
    words = [_count(size, "byte"), *_properties(section, function)]
    title = name or f"function {function}"
    if colour:
        title = f"\x1b[1m{title}\x1b[0m"
    text = f"\n{title}  {view.place(function)}, {', '.join(words)}\n"
    fault = Fault(int(functions.fault[function]))
    if fault:
        text += f"  ! {FAULT_WORDS[fault]} (at {int(functions.fault_offset[function]):#x})\n"
    elif not functions.rows[function]:
        text += "  no rows\n"
    return text


def _properties(section: Section, function: int) -> list[str]:
    """What is special about a function."""
    functions = section.functions
    words = []
    if functions.pc_type[function] == layout.PC_TYPE_MASK:
        words.append(f"repeating blocks of {int(section.block_size[function])}")
    if section.signal[function]:
        words.append("signal frame")
    fde_type = int(functions.fde_type[function])
    if fde_type == layout.FDE_TYPE_FLEX:
        words.append("flex")
    elif fde_type != layout.FDE_TYPE_DEFAULT:
        words.append(f"unknown type {fde_type}")
    if functions.pauth_key[function]:
        words.append("key B")
    return words


def _shape_texts(view: View) -> list[bytes]:
    """The rule of each shape, its parts in columns."""
    if view.rules is None or view.section.machine is None:
        section = view.section
        return [
            f"info {int(section.shapes.info[shape]):#04x}, words {view.shape_words(shape)}\n".encode()
            for shape in range(len(section.shapes))
        ]
    machine = view.section.machine

    def part(name: str, one: Part) -> str:
        return f"{name} {'' if one.kind in _NO_WORDS else '= '}{one.text(machine)}"

    def columns(rule: Rule) -> tuple[str, str, str]:
        signed = " signed" if rule.ra_signed else ""
        return part("CFA", rule.cfa), part("RA", rule.ra) + signed, part("FP", rule.fp)

    texts = [columns(rule) for rule in view.rules]
    wide = [max((len(text[column]) for text in texts), default=0) for column in (0, 1)]
    return [
        b"outermost frame\n" if rule == OUTERMOST else f"{cfa:<{wide[0]}}  {ra:<{wide[1]}}  {fp}\n".encode()
        for rule, (cfa, ra, fp) in zip(view.rules, texts, strict=True)
    ]
