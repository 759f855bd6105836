"""The report of one ELF file as rows, for programs.

for listing in binary_figures("a.out"):
    print(listing.name, next(listing.rows))
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from walkback.arrays import I64
from walkback.comparison import Verdict
from walkback.elf import DEBUG_ROOTS
from walkback.report.figures import Column, Unit
from walkback.report.functions import Functions, functions_of, rules_of
from walkback.report.opening import one_elf_file


@dataclass(slots=True)
class Listing:
    """Rows about one file."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Iterator[tuple[Any, ...]]
    """Made as they are asked for."""


def binary_figures(
    path: str | os.PathLike[str], *, debug_roots: Sequence[str] = DEBUG_ROOTS
) -> tuple[Listing, Listing]:
    """The functions of an ELF file, or of a member of an archive, and their rows."""
    functions = functions_of(one_elf_file(path), debug_roots)
    return _function_listing(functions), _row_listing(functions)


def _function_listing(functions: Functions) -> Listing:
    versions = sorted(functions.versions)
    columns = (
        Column("section", "Section"),
        Column("address", "Address", Unit.ADDRESS),
        Column("size", "Code", Unit.BYTES),
        Column("name", "Name"),
        Column("symbol", "Symbol"),
        Column("rows", "Rows", Unit.COUNT),
        Column("fde_bytes", "Call frame information", Unit.BYTES),
        *(Column(f"v{version}_bytes", f"V{version}", Unit.BYTES) for version in versions),
        *(Column(f"v{version}_reason", f"Not in V{version}") for version in versions),
        Column("signal", "Signal frame"),
        Column("different_bytes", "Code of which .sframe says something else", Unit.BYTES),
    )
    return Listing("functions", "Functions", columns, _function_rows(functions, versions))


def _function_rows(functions: Functions, versions: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    table, made = functions.table, functions.versions
    different = _different_bytes(functions)
    names, symbols = functions.names, functions.symbols
    length, sections = functions.fde_place[1], functions.code_sections()
    for number in range(len(table)):
        yield (
            sections[number],
            int(table.range_start[number]),
            int(table.range_size[number]),
            names[number] or None,
            symbols[number] or None,
            int(table.range_rows[number]),
            int(length[number]) if functions.told else None,
            *(int(made[version].bytes[number]) for version in versions),
            *(made[version].reasons[int(made[version].reason[number])][0] or None for version in versions),
            bool(table.range_signal[number]),
            None if different is None else int(different[number]),
        )


def _different_bytes(functions: Functions) -> I64 | None:
    """Of each function how much code the SFrame of the file says something else about, or nothing."""
    comparison = functions.comparison
    if comparison is None:
        return None
    chosen = (comparison.range_one >= 0) & np.isin(comparison.verdict, [Verdict.DIFFERENT, Verdict.ONLY_ONE])
    found: I64 = np.zeros(len(functions), np.int64)
    np.add.at(found, comparison.range_one[chosen], comparison.size[chosen].astype(np.int64))
    return found


def _row_listing(functions: Functions) -> Listing:
    columns = (
        Column("section", "Section"),
        Column("function", "Function", Unit.ADDRESS),
        Column("address", "From", Unit.ADDRESS),
        Column("size", "Code", Unit.BYTES),
        Column("cfa", "CFA"),
        Column("ra", "Return address"),
        Column("fp", "Frame pointer"),
        Column("ra_signed", "Return address signed"),
    )
    return Listing("rows", "Rows", columns, _row_rows(functions))


def _row_rows(functions: Functions) -> Iterator[tuple[Any, ...]]:
    table = functions.table
    sections = functions.code_sections()
    rules = [(cfa, ra, fp, bool(signed)) for cfa, ra, fp, *_, signed in rules_of(table)]
    for number in range(len(table)):
        start, size = int(table.range_start[number]), int(table.range_size[number])
        rows = slice(int(table.range_first_row[number]), int(table.range_first_row[number] + table.range_rows[number]))
        offsets, chosen = table.row_offset[rows].tolist(), table.row_rule[rows].tolist()
        end = int(table.range_block[number]) or size
        for offset, following, rule in zip(offsets, [*offsets, end][1:], chosen, strict=True):
            yield (sections[number], start, start + offset, following - offset, *rules[rule])
