"""The report of one ELF file as a page to look into.

write_binary_page("a.out", "page.html")
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, BinaryIO

import numpy as np

from walkback.base.arrays import Bools, distinct
from walkback.base.replace import replacing
from walkback.base.text import printable
from walkback.elf import DEBUG_ROOTS, Input, one_elf
from walkback.identify.kinds import kind_of
from walkback.identify.names import build_id_text, shown
from walkback.identify.producers import origin_with_debug_file
from walkback.pages.page import plain_data, write_page
from walkback.reports.columns import PageColumns
from walkback.reports.functions import ListedFunctions, functions_of, rules_of
from walkback.reports.opening import one_elf_file
from walkback.reports.verdicts import add_verdicts
from walkback.sections.reading import Tables
from walkback.sframe.layout import VERSIONS
from walkback.table.comparing import Comparison
from walkback.table.verdict import Verdict

_STYLES = ("reports/common.css", "reports/binary.css")
_SCRIPT = "reports/binary.js"
_UNPLACED = 100
"""FDEs that cannot be placed which a page names; it says how many there are."""


def write_binary_page(
    source: Input,
    out: str | os.PathLike[str] | BinaryIO,
    *,
    debug_roots: Sequence[str] = DEBUG_ROOTS,
    tables: Tables | None = None,
) -> None:
    """Write the page about an ELF file, or about a member of an archive, named as `archive(member)`.

    It goes to a file of a name, or to one that is open for bytes. `tables` is for `functions_of`.
    """
    elf = one_elf_file(source) if isinstance(source, str | os.PathLike) else one_elf(source)
    functions = functions_of(elf, debug_roots, tables)
    columns = _columns(functions)
    proof = add_verdicts(functions, columns)
    meta = _meta(functions, tables) | {"proof": proof, "columns": columns.described}
    title = f"{shown(os.path.basename(functions.elf.name))}: stack-trace tables"
    data = {"META": plain_data(meta), "DATA": columns.packed()}
    with replacing(out) if isinstance(out, str | os.PathLike) else nullcontext(out) as file:
        write_page(file, __package__, "binary.html", title=title, styles=_STYLES, script=_SCRIPT, data=data)


# What the page knows


def _meta(functions: ListedFunctions, tables: Tables | None) -> dict[str, Any]:
    """All but the columns."""
    elf, table, sizes, call_frames = functions.elf, functions.table, functions.sizes, functions.read
    machine, line = table.machine, functions.line
    return {
        "file": shown(elf.name),
        "kind": kind_of(elf),
        "buildId": build_id_text(elf),
        "origin": _origin(functions),
        "fileBytes": sizes.file_bytes,
        "textBytes": sizes.text_bytes,
        "relocatable": elf.is_relocatable,
        "machine": {
            "name": machine.name,
            "registers": machine.register_names,
            "sp": machine.sp,
            "fp": machine.fp,
            "ra": machine.ra,
            "spFromCfa": machine.sp_from_cfa,
        },
        "source": functions.tables_in_words(),
        "sources": _sources(functions),
        "chosen": tables,
        "frames": {".debug_frame": sizes.debug_frame}
        if functions.source == ".debug_frame"
        else {".eh_frame": sizes.eh_frame, ".eh_frame_hdr": sizes.eh_frame_hdr},
        "counts": {
            "functions": functions.count,
            "rows": len(table.row_rule),
            "codeBytes": int(functions.inside.sum()),
            "beyond": int(np.count_nonzero(functions.inside < table.range_size)),
            **{name: getattr(call_frames, name, 0) for name in ("dead", "empty", "shadowed")},
            "unplaced": len(functions.unplaced),
        },
        "unplaced": functions.unplaced[:_UNPLACED],
        "versions": [_version(functions, version) for version in VERSIONS] if call_frames else [],
        "sframe": _sframe(functions),
        "unreadable": functions.unreadable,
        "line": [
            [functions.section_name(section), f"{start:#x}", size]
            for section, start, size in zip(line.section.tolist(), line.start.tolist(), line.size.tolist(), strict=True)
        ],
        "rules": rules_of(table),
        "saved": functions.saved is not None,
    }


def _sources(functions: ListedFunctions) -> list[dict[str, Any]]:
    """The kinds of tables that functions are from."""
    by_kind = {} if functions.read is None else functions.read.by_kind()
    return [
        {
            "kind": kind,
            "name": ", ".join(dict.fromkeys(printable(its.source.name) for its in shares)),
            "functions": sum(its.functions for its in shares),
            "codeBytes": sum(its.code_bytes for its in shares),
        }
        for kind, shares in by_kind.items()
    ]


def _origin(functions: ListedFunctions) -> dict[str, Any]:
    """Who made the file, and what shows it."""
    sources = functions.read.frame_sources if functions.read else ()
    origin = asdict(origin_with_debug_file(functions.elf, sources, functions.roots))
    producers = [printable(name) for name in origin.pop("producers")]
    return {name: value and printable(value) for name, value in origin.items()} | {"producers": producers}


def _version(functions: ListedFunctions, version: int) -> dict[str, Any]:
    impossible = functions.sizes.impossible.get(version)
    if impossible is not None:
        return {"version": version, "impossible": impossible}
    size, made = functions.sizes.versions[version], functions.versions[version]
    return {
        "version": version,
        "bytes": size.parts.total,
        "parts": asdict(size.parts),
        "covered": size.covered,
        "lostBytes": int(functions.inside[made.reason != 0].sum()),
        "entries": size.entries,
        "reasons": made.reasons,
    }


def _sframe(functions: ListedFunctions) -> dict[str, Any] | None:
    found, size = functions.sframe, functions.sizes.sframe
    if found is None or size is None:
        return None
    comparison = functions.comparison
    return {
        "name": found.name,
        **{name: getattr(size, name) for name in ("versions", "functions", "rows")},
        "bytes": size.parts.total,
        "parts": asdict(size.parts),
        "compared": None if comparison is None else [comparison.code_bytes(verdict) for verdict in Verdict],
        "rules": [] if comparison is None else rules_of(found.table),
        "sections": {} if comparison is None else _section_names(functions, comparison),
    }


def _section_names(functions: ListedFunctions, comparison: Comparison) -> dict[int, str]:
    return {section: functions.section_name(section) for section in distinct(comparison.section).tolist()}


# Columns


def _columns(functions: ListedFunctions) -> PageColumns:
    table, columns = functions.table, PageColumns()
    signal = table.range_signal.astype(np.int64)
    columns.rising("start", table.range_start)
    columns.numbers("size", table.range_size)
    columns.numbers("text", functions.line.text_of)
    columns.numbers(
        "flags", signal | table.range_pauth_key.astype(np.int64) << 1 | functions.lsda.astype(np.int64) << 2
    )
    columns.numbers("source", functions.kind_of)
    columns.numbers("block", table.range_block)
    columns.numbers("fde", table.range_origin)
    position, length = functions.fde_place
    columns.rising("fdePosition", position)
    columns.numbers("fdeBytes", length)
    columns.texts("symbols", functions.symbols)
    pairs = zip(functions.names, functions.symbols, strict=True)
    columns.texts("names", ("" if name == symbol else name for name, symbol in pairs))
    for version, its in functions.versions.items():
        columns.numbers(f"bytes{version}", its.bytes)
        columns.numbers(f"reason{version}", its.reason)
    columns.stepping("row", table.range_rows, table.row_offset, table.row_rule)
    saved = functions.saved
    if saved is not None:
        columns.stepping("set", np.diff(saved.first), saved.offset, saved.set)
        columns.numbers("setEntries", np.diff(saved.set_first))
        columns.numbers("setRegister", saved.register)
        columns.numbers("setKind", saved.part["kind"])
        columns.numbers("setBase", saved.part["register"])
        columns.rising("setOffset", saved.part["offset"])
    if functions.comparison is not None:
        _add_stretches(columns, functions.comparison)
    return columns


def _add_stretches(columns: PageColumns, comparison: Comparison) -> None:
    """Code for which the two tables differ; neighbours with the same two rules are one stretch."""
    found = comparison
    told_apart_by = (found.verdict, found.rule_one, found.rule_other, found.range_one, found.range_other, found.section)
    new: Bools = np.ones(len(found.start), np.bool_)
    new[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in told_apart_by])
    new[1:] |= found.start[1:] != found.start[:-1] + found.size[:-1]
    first = np.flatnonzero(new)
    other = found.range_other[first]
    marks = found.other.range_signal.astype(np.int64) | found.other.range_pauth_key.astype(np.int64) << 1
    columns.rising("stretchStart", found.start[first])
    columns.numbers("stretchSize", np.add.reduceat(found.size, first) if len(first) else found.size)
    columns.numbers("stretchVerdict", found.verdict[first])
    columns.numbers("stretchFunction", found.range_one[first] + 1)
    columns.numbers("stretchOne", found.rule_one[first] + 1)
    columns.numbers("stretchOther", found.rule_other[first] + 1)
    columns.numbers("stretchMarks", np.where(other >= 0, np.append(marks, 0)[other], 0))
    columns.numbers("stretchSection", found.section[first].astype(np.int64) + 1)
