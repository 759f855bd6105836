"""Sections as JSON: one object a line, first one for the section, then one for each function."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from walkback.arch import Machine
from walkback.render import Line, render
from walkback.sframe import layout
from walkback.sframe.decode import FAULT_WORDS
from walkback.sframe.dump.view import View
from walkback.sframe.files import Source
from walkback.sframe.section import Fault
from walkback.table import Kind, Part, Reason, Rule
from walkback.table.rule import REASON_WORDS


def dump(view: View) -> Iterator[bytes | memoryview]:
    """The section and every chosen function."""
    section = view.section
    yield _line(_facts(view)) + b"\n"
    functions, chosen = section.functions, view.chosen
    heads = [_line(_function(view, function))[:-1] + b', "rows": [' for function in chosen.tolist()]
    row = Line(b'{"offset": ', ("unsigned", section.row_start), (_shape_texts(view), section.row_shape))
    head = Line((heads, np.arange(len(heads))))
    yield from render(head, row, Line(b"]}\n"), functions.first_row[chosen], functions.rows[chosen], b", ")


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


def _function(view: View, function: int) -> dict[str, Any]:
    section = view.section
    functions = section.functions
    code_section = None
    if section.code_section is not None and view.source.elf is not None:
        index = int(section.code_section[function])
        code_section = view.source.elf.section_name(index) if index > 0 else None
    fault = Fault(int(functions.fault[function]))
    return {
        "type": "function",
        "index": function,
        "name": view.names[function],
        "code_section": code_section,
        "start": int(section.code_address[function]),
        "size": int(functions.size[function]),
        "pc_type": "mask" if functions.pc_type[function] == layout.PC_TYPE_MASK else "inc",
        "block_size": int(section.block_size[function]),
        "fde_type": {0: "default", 1: "flex"}.get(int(functions.fde_type[function]), int(functions.fde_type[function])),
        "signal": bool(section.signal[function]),
        "pauth_key": "AB"[int(functions.pauth_key[function])],
        "fre_type": int(functions.fre_type[function]),
        "fre_offset": int(functions.fre_offset[function]),
        "num_fres": int(functions.num_fres[function]),
        "fault": FAULT_WORDS[fault] if fault else None,
    }


def part_object(part: Part, machine: Machine) -> dict[str, Any]:
    """How one value is found."""
    if part.kind is Kind.INEXPRESSIBLE:
        return {"kind": "inexpressible", "reason": REASON_WORDS[Reason(part.offset)]}
    value: dict[str, Any] = {"kind": part.kind.name.lower()}
    if part.kind in {Kind.REGISTER, Kind.AT_REGISTER}:
        value |= {"register": machine.register_name(part.register), "number": part.register}
    if part.kind not in {Kind.UNCHANGED, Kind.UNDEFINED}:
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


def _shape_texts(view: View) -> list[bytes]:
    """What stands after the offset of a row: its info byte and words, and the rule if the ABI is known."""
    section = view.section
    texts = []
    for shape in range(len(section.shapes)):
        value: dict[str, Any] = {"info": int(section.shapes.info[shape]), "words": view.shape_words(shape)}
        if view.rules is not None and section.machine is not None:
            value |= rule_object(view.rules[shape], section.machine)
        texts.append(b", " + _line(value)[1:])
    return texts


def empty(source: Source) -> bytes:
    """The line for an empty section."""
    value = {"type": "section", "file": source.file, "section": source.name, "address": source.address, "length": 0}
    return _line(value) + b"\n"
