"""Sections as JSON: one object a line, first one for the section, then one for each function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import I64, Numbers
from walkback.base.render import LineForm
from walkback.sframe import layout
from walkback.sframe.dump.view import Entry, View
from walkback.sframe.files import Source
from walkback.table.rule import REASON_WORDS, Part, PartKind, Reason, Rule


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


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _facts(view: View) -> dict[str, Any]:
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


def _function(entry: Entry) -> dict[str, Any]:
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


def part_object(part: Part, machine: Machine) -> dict[str, Any]:
    """How one value is found."""
    if part.kind is PartKind.INEXPRESSIBLE:
        return {"kind": "inexpressible", "reason": REASON_WORDS[Reason(part.offset)]}
    value: dict[str, Any] = {"kind": part.kind.name.lower()}
    if part.kind in {PartKind.REGISTER, PartKind.AT_REGISTER}:
        value |= {"register": machine.register_name(part.register), "number": part.register}
    if part.kind not in {PartKind.UNCHANGED, PartKind.UNDEFINED}:
        value["offset"] = part.offset
    return value


def rule_object(rule: Rule, machine: Machine) -> dict[str, Any]:
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
    value: dict[str, Any] = {"info": int(section.shapes.info[shape]), "words": view.shape_words(shape)}
    rule = view.rule(shape)
    if rule is not None and section.machine is not None:
        value |= rule_object(rule, section.machine)
    return b", " + _line(value)[1:]


def empty(source: Source) -> bytes:
    """The line for an empty section."""
    value = {"type": "section", "file": source.file, "section": source.name, "address": source.address, "length": 0}
    return _line(value) + b"\n"
