"""The text of `readelf --sframe`, so that scripts made for it keep working.

Versions 2 and 3 as the newest GNU binutils prints them, version 1 as 2.40 did. The oddities are theirs: counts are
printed as signed numbers, a dereference of a CFA-based flex rule is not shown, columns run together when full, and a
version 2 object without PCREL counts addresses from the section instead of the function.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from walkback.base.arch import AARCH64, S390X
from walkback.base.arrays import I64, U64, Numbers
from walkback.base.render import LineForm
from walkback.sframe import layout
from walkback.sframe.dump.view import View
from walkback.sframe.section import Section

_FIRST_WITH_ATTRIBUTES = 3


def dump(view: View) -> Iterator[bytes | memoryview]:
    """The section header and every chosen function."""
    section = view.section
    yield _header(view).encode("utf-8", "surrogateescape")
    start = _shown_starts(view)
    addresses = view.row_addresses(start)
    choice = _head_choice(section)

    def head(functions: I64) -> LineForm:
        size = section.functions.size[functions].astype(np.int32)
        return LineForm(
            b"\n    func idx [",
            ("decimal", functions),
            b"]: pc = 0x",
            ("hex", start[functions]),
            b", size = ",
            ("decimal", size),
            b" bytes",
            (_HEADS, choice[functions]),
        )

    def row(rows: slice, texts: list[bytes], which: Numbers) -> LineForm:
        return LineForm(b"    ", ("hex16", addresses[rows]), b"  ", (texts, which), start=rows.start)

    yield from view.render(head, row, lambda shapes: [_shape_text(view, shape) for shape in shapes], LineForm())


def _header(view: View) -> str:
    section = view.section
    names = [name for bit, name in layout.FLAG_NAMES.items() if section.flags & bit]
    if section.version == 1:
        names = [name for name in names if name == layout.FLAG_NAMES[layout.F_FDE_SORTED]]
    lines = [
        f"Contents of the SFrame section {view.source.name}:",
        "  Header :",
        "",
        f"    Version: SFRAME_VERSION_{section.version}",
        "    Flags: " + (",\n           ".join(names) or "NONE"),
    ]
    if section.version > 1:
        for name, offset in (("FP", section.cfa_fixed_fp_offset), ("RA", section.cfa_fixed_ra_offset)):
            if offset:
                lines.append(f"    CFA fixed {name} offset: {offset}")
    lines += [
        f"    Num FDEs: {_signed(section.num_fdes)}",
        f"    Num FREs: {_signed(section.num_fres)}",
        "",
        "  Function Index :",
        "",
    ]
    return "\n".join(lines)


def _signed(number: int) -> int:
    """As `printf("%d")` shows an unsigned number."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _shown_starts(view: View) -> U64:
    """The addresses printed: of version 1 objects unrelocated, of version 2 objects without PCREL off by the field."""
    section = view.section
    starts = section.code_address
    if not view.source.relocatable or section.pcrel:
        return starts
    if section.version == 1:
        return section.functions.start.view(np.uint64)
    count = np.arange(len(starts), dtype=np.uint64)
    field = np.uint64(view.piece.position + section.fde_start) + count * np.uint64(section.fde_size)
    relocated = True if section.code_section is None else section.code_section > 0
    return np.where(relocated, starts - field, starts)


def _heads() -> list[bytes]:
    """The ends of a function's first line, and the headings under it, by the number that `_head_choice` makes."""
    texts = []
    for choice in range(16):
        mask, signal, flex, key = (choice >> bit & 1 for bit in range(4))
        attributes = "S" * signal + "F" * flex
        text = f', attr = "{attributes}"' if attributes else ""
        text += ", pauth = B key" * key
        text += f"\n    STARTPC{'[m]' if mask else '   '}      CFA       FP        RA           \n"
        texts.append(text.encode())
    return texts


_HEADS = _heads()


def _head_choice(section: Section) -> np.ndarray:
    functions = section.functions
    choice = functions.pc_type.astype(np.int64)
    if section.version >= _FIRST_WITH_ATTRIBUTES:
        choice |= section.signal.astype(np.int64) << 1
        choice |= (functions.fde_type == layout.FDE_TYPE_FLEX).astype(np.int64) << 2
    if section.machine is AARCH64:
        choice |= functions.pauth_key.astype(np.int64) << 3
    return choice


def _shape_text(view: View, shape: int) -> bytes:
    """What stands after the address in the rows of a shape."""
    section, shapes = view.section, view.section.shapes
    words = view.shape_words(shape)
    if not words and section.version > 1:
        return b"RA undefined\n"
    info = int(shapes.info[shape])
    if int(shapes.fde_type[shape]) == layout.FDE_TYPE_FLEX:
        cfa, fp, ra = _flex_columns(section, words, layout.FRE_WORD_SIZES[info >> 5 & 3])
    else:
        cfa, fp, ra = _default_columns(section, info, words)
    if info & layout.FRE_RA_MANGLED:
        ra += "[s]"
    return f"{cfa:<10}{fp:<10}{ra:<13}\n".encode()


def _cfa_offset(section: Section, word: int) -> int:
    if section.machine is S390X:
        return word * layout.S390X_CFA_OFFSET_ALIGNMENT_FACTOR + layout.S390X_CFA_OFFSET_ADJUSTMENT
    return word


def _default_columns(section: Section, info: int, words: list[int]) -> tuple[str, str, str]:
    base = "sp" if info & 1 == layout.FRE_BASE_REG_SP else "fp"
    cfa = f"{base}+{_cfa_offset(section, words[0]) if words else 0}"
    fixed_ra = section.cfa_fixed_ra_offset != 0
    rest = words[1:]
    ra = "u"
    if fixed_ra:
        ra = "f" if section.version > 1 else "u"
    elif rest:
        word = rest.pop(0)
        ra = "U" if section.machine is S390X and word == 0 else _saved(section, word)
    fp = "u"
    if section.cfa_fixed_fp_offset:
        fp = f"c{section.cfa_fixed_fp_offset:+d}"
    elif rest:
        fp = _saved(section, rest[0])
    return cfa, fp, ra


def _saved(section: Section, word: int) -> str:
    if section.machine is S390X and section.version == 2 and word & 1:
        return f"r{word >> 1}"
    return f"c{word:+d}"


def _flex_columns(section: Section, words: list[int], word_size: int) -> tuple[str, str, str]:
    mask = (1 << 8 * word_size) - 1
    rest = list(words)
    columns = {}
    for name in ("cfa", "ra", "fp"):
        control = rest.pop(0) & mask if rest else None
        if control is None:
            columns[name] = "f" if name == "ra" and section.cfa_fixed_ra_offset else "u"
        elif control == 0:
            columns[name] = "U" if name == "ra" else "u"
        else:
            offset = rest.pop(0) if rest else 0
            columns[name] = _flex_text(section, name, control, offset)
    return columns["cfa"], columns["fp"], columns["ra"]


def _flex_text(section: Section, name: str, control: int, offset: int) -> str:
    if name == "cfa":
        offset = _cfa_offset(section, offset)
    if not control & layout.FLEX_REG:
        return f"c{offset:+d}"
    number = control >> layout.FLEX_REGISTER_SHIFT
    machine = section.machine
    base = f"r{number}"
    if machine is not None:
        base = {machine.sp: "sp", machine.fp: "fp"}.get(number, base)
    text = f"{base}{offset:+d}"
    return f"({text})" if control & layout.FLEX_DEREF else text
