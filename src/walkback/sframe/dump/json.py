"""Sections as JSON: one object a line, first one for the section, then one for each function."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Literal, NotRequired, TypedDict

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, Numbers
from walkback.base.render import LineForm
from walkback.sframe import layout
from walkback.sframe.dump.view import Entry, View
from walkback.sframe.files import Source
from walkback.table.rule import REASON_WORDS, Part, PartKind, Reason, Rule


class PartObject(TypedDict):
    """How one value is found, as JSON."""

    kind: str
    """`unchanged`, `undefined`, `register` (register + offset), `at_register` (what is stored there), `cfa` (CFA +
    offset), `at_cfa` (what is stored there) or `inexpressible`."""
    register: NotRequired[str]
    """Of `register` and `at_register`: its name in assembly language."""
    number: NotRequired[int]
    """Of `register` and `at_register`: its DWARF number."""
    offset: NotRequired[int]
    """The offset in bytes."""
    reason: NotRequired[str]
    """Of `inexpressible`: the reason."""


class RuleObject(TypedDict):
    """A rule, as JSON."""

    cfa: PartObject
    """The CFA: a part (below)."""
    ra: PartObject
    """The return address: a part."""
    fp: PartObject
    """The caller's frame pointer: a part."""
    ra_signed: bool
    """Whether the return address is signed."""


class RowObject(TypedDict):
    """A row without its rule, as JSON."""

    offset: int
    """The offset from the start of the function, or of its repeating block."""


class EncodedRowObject(RowObject):
    """A row of a section without its rule, as JSON."""

    info: int
    """The info byte."""
    words: list[int]
    """The data words."""


class SectionObject(TypedDict):
    """A section, as JSON."""

    type: Literal["section"]
    """The type of the object."""
    file: str
    """The file. A member of an archive is `archive(member)`."""
    section: str | None
    """The section; null for raw bytes."""
    piece: NotRequired[int]
    """The offset in the ELF section: 0, or more if a linker put several sections into one."""
    address: int
    """The address at which the first byte is loaded."""
    length: int
    """The size in bytes. An empty section has no optional keys."""
    version: NotRequired[int]
    """From the header."""
    flags: NotRequired[int]
    """From the header."""
    abi_arch: NotRequired[int]
    """From the header."""
    byteorder: NotRequired[str]
    """`little` or `big`."""
    cfa_fixed_fp_offset: NotRequired[int]
    """From the header; 0 means not fixed."""
    cfa_fixed_ra_offset: NotRequired[int]
    """From the header; 0 means not fixed."""
    auxiliary: NotRequired[str]
    """The auxiliary header, in hexadecimal."""
    num_fdes: NotRequired[int]
    """From the header, unverified."""
    num_fres: NotRequired[int]
    """From the header, unverified."""
    fre_len: NotRequired[int]
    """From the header, unverified."""
    fdeoff: NotRequired[int]
    """From the header, unverified."""
    freoff: NotRequired[int]
    """From the header, unverified."""


class DescribedObject(TypedDict):
    """What any table has of a function, as JSON."""

    type: Literal["function"]
    """The type of the object."""
    index: int
    """Its index."""
    name: str | None
    """Its symbol."""
    code_section: str | None
    """In relocatable files, its text section."""
    start: int
    """Its address; in relocatable files, its offset in the text section."""
    size: int
    """Its size in bytes."""
    block_size: int
    """The bytes of a block, for code that repeats in blocks; otherwise 0."""
    signal: bool
    """Whether it is a signal frame."""
    pauth_key: str
    """On AArch64, the key that signs return addresses: `A` or `B`."""
    fault: str | None
    """The reason why not all of its rows can be read."""


class HeadObject(DescribedObject):
    """A function of a section without its rows, as JSON."""

    pc_type: str
    """`inc`, or `mask` for code that repeats in blocks."""
    fde_type: str | int
    """`default`, `flex`, or the number of an unknown type."""
    fre_type: int
    """From its index entry."""
    fre_offset: int
    """From its index entry."""
    num_fres: int
    """From its index entry."""


class FunctionObject(HeadObject):
    """A function of a section, as JSON."""

    rows: list[EncodedRowObject]
    """Its rows."""


def dump(view: View) -> Iterator[bytes | memoryview]:
    """The section and every chosen function."""
    section = view.section
    yield _line(_facts(view)) + b"\n"

    def head(functions: I64) -> LineForm:
        heads = [_line(_function(entry))[:-1] + b', "rows": [' for entry in view.entries(functions)]
        return LineForm((heads, np.arange(len(heads))))

    def row(rows: slice, texts: list[bytes], which: Numbers) -> LineForm:
        return LineForm(b'{"offset": ', ("unsigned", section.row_start[rows]), (texts, which), start=rows.start)

    def texts(shapes: list[int]) -> list[bytes]:
        return [_shape_text(view, shape) for shape in shapes]

    yield from view.render(head, row, texts, LineForm(b"]}\n"), b", ")


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value).encode()


def _facts(view: View) -> SectionObject:
    section, source = view.section, view.source
    return {
        "type": "section",
        "file": source.file,
        "section": source.name,
        "piece": view.piece.position,
        "address": section.address,
        "length": section.length,
        "version": section.version,
        "flags": section.flags,
        "abi_arch": section.abi_arch,
        "byteorder": section.byteorder,
        "cfa_fixed_fp_offset": section.cfa_fixed_fp_offset,
        "cfa_fixed_ra_offset": section.cfa_fixed_ra_offset,
        "auxiliary": section.auxiliary.hex(),
        "num_fdes": section.num_fdes,
        "num_fres": section.num_fres,
        "fre_len": section.fre_len,
        "fdeoff": section.fdeoff,
        "freoff": section.freoff,
    }


def _function(entry: Entry) -> HeadObject:
    return {
        "type": "function",
        "index": entry.number,
        "name": entry.name,
        "code_section": entry.code_section,
        "start": entry.start,
        "size": entry.size,
        "pc_type": "mask" if entry.masked else "inc",
        "block_size": entry.block_size,
        "fde_type": {layout.FDE_TYPE_DEFAULT: "default", layout.FDE_TYPE_FLEX: "flex"}.get(
            entry.fde_type, entry.fde_type
        ),
        "signal": entry.signal,
        "pauth_key": "AB"[entry.pauth_key],
        "fre_type": entry.fre_type,
        "fre_offset": entry.fre_offset,
        "num_fres": entry.num_fres,
        "fault": entry.fault.words or None,
    }


def part_object(part: Part, machine: Machine) -> PartObject:
    """How one value is found."""
    if part.kind is PartKind.INEXPRESSIBLE:
        return {"kind": "inexpressible", "reason": REASON_WORDS[Reason(part.offset)]}
    value: PartObject = {"kind": part.kind.name.lower()}
    if part.kind in {PartKind.REGISTER, PartKind.AT_REGISTER}:
        value |= {"register": machine.register_name(part.register), "number": part.register}
    if part.kind not in {PartKind.UNCHANGED, PartKind.UNDEFINED}:
        value["offset"] = part.offset
    return value


def rule_object(rule: Rule, machine: Machine) -> RuleObject:
    """A rule's parts."""
    return {
        "cfa": part_object(rule.cfa, machine),
        "ra": part_object(rule.ra, machine),
        "fp": part_object(rule.fp, machine),
        "ra_signed": rule.ra_signed,
    }


def _shape_text(view: View, shape: int) -> bytes:
    """What stands after the offset of a row: its info byte and words, and the rule if the ABI is known."""
    section = view.section
    value: dict[str, object] = {"info": int(section.shapes.info[shape]), "words": view.shape_words(shape)}
    rule = view.rule(shape)
    if rule is None or section.machine is None:
        return b", " + _line(value)[1:]
    return b", " + _line({**value, **rule_object(rule, section.machine)})[1:]


def empty(source: Source) -> bytes:
    """The line for an empty section."""
    value: SectionObject = {
        "type": "section",
        "file": source.file,
        "section": source.name,
        "address": source.address,
        "length": 0,
    }
    return _line(value) + b"\n"
