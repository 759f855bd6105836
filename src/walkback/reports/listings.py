"""The report of one ELF file as rows, for programs.

for listing in binary_figures("a.out"):
    print(listing.name, next(listing.rows))
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from walkback.base.arrays import I64
from walkback.base.dataclass import dataclass
from walkback.elf import DEBUG_ROOTS
from walkback.reports.figurecolumns import addresses, counts, shares, sizes, texts
from walkback.reports.figures import Column
from walkback.reports.functions import ListedFunctions, functions_of, rules_of
from walkback.reports.opening import one_elf_file
from walkback.sections.reading import Tables
from walkback.table.verdict import Verdict

FIGURE_NAMES = ("summary", "functions", "rows")
_NAME = 3
"""The column of the function's name."""


@dataclass(slots=True)
class Listing:
    """Rows about one file."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Iterator[tuple[Any, ...]]
    """Made as they are asked for."""


def binary_figures(
    path: str | os.PathLike[str], *, debug_roots: Sequence[str] = DEBUG_ROOTS, tables: Tables | None = None
) -> tuple[Listing, Listing, Listing]:
    """The numbers of an ELF file, or of a member of an archive, its functions, and their rows."""
    functions = functions_of(one_elf_file(path), debug_roots, tables)
    return _summary_listing(functions), _function_listing(functions), _row_listing(functions)


def _summary_listing(functions: ListedFunctions) -> Listing:
    """One row, with the numbers that the page begins with."""
    versions = sorted(functions.versions)
    columns = (
        *counts(functions="Functions", rows="Rows"),
        *sizes(text="Code", code="Described", frames="Call frames"),
        *sizes(**{f"v{version}_bytes": f"V{version}" for version in versions}),
        *shares(**{f"v{version}_covered": f"In V{version}" for version in versions}),
        *sizes(sframe="Existing SFrame"),
        *shares(equal="Agrees"),
    )
    return Listing("summary", "At a glance", columns, iter([_summary_row(functions, versions)]))


def _summary_row(functions: ListedFunctions, versions: Sequence[int]) -> tuple[Any, ...]:
    measured = functions.sizes
    made = [measured.versions[version] for version in versions]
    of_frames = functions.source == ".debug_frame"
    return (
        functions.count,
        len(functions.table.row_rule),
        measured.text_bytes,
        int(functions.inside.sum()),
        measured.debug_frame if of_frames else measured.eh_frame + measured.eh_frame_hdr,
        *(one.parts.total for one in made),
        *(one.covered / functions.count if functions.count else None for one in made),
        None if measured.sframe is None else measured.sframe.parts.total,
        _equal_share(functions),
    )


def _equal_share(functions: ListedFunctions) -> float | None:
    """Of the code that SFrame or call frame information describes, the share that both describe alike."""
    comparison = functions.comparison
    if comparison is None:
        return None
    found = {verdict: comparison.code_bytes(verdict) for verdict in Verdict if verdict is not Verdict.NEITHER}
    whole = sum(found.values())
    return found[Verdict.EQUAL] / whole if whole else None


def _function_listing(functions: ListedFunctions) -> Listing:
    versions = sorted(functions.versions)
    columns = (
        *texts(section="Section"),
        *addresses(address="Address"),
        *sizes(size="Code"),
        *texts(name="Name", symbol="Symbol", source="Table"),
        *counts(rows="Rows"),
        *sizes(fde_bytes="Call frame information", **{f"v{version}_bytes": f"V{version}" for version in versions}),
        *texts(**{f"v{version}_reason": f"Not in V{version}" for version in versions}, signal="Signal frame"),
        *sizes(different_bytes="Code where .sframe differs"),
    )
    return Listing("functions", "Functions", columns, _function_rows(functions, versions))


def _function_rows(functions: ListedFunctions, versions: Sequence[int]) -> Iterator[tuple[Any, ...]]:
    """The rows of all functions by address, those with names before the others."""
    table, made = functions.table, [functions.versions[version] for version in versions]
    nothing = [None] * len(table)
    different = _different_bytes(functions)
    rows = zip(
        functions.code_sections(),
        table.range_start.tolist(),
        table.range_size.tolist(),
        (name or None for name in functions.names),
        (symbol or None for symbol in functions.symbols),
        functions.table_names(),
        table.range_rows.tolist(),
        functions.fde_place[1].tolist() if functions.read else nothing,
        *(its.bytes.tolist() for its in made),
        *([its.reasons[reason][0] or None for reason in its.reason.tolist()] for its in made),
        table.range_signal.tolist(),
        nothing if different is None else different.tolist(),
        strict=True,
    )
    yield from sorted(rows, key=lambda row: row[_NAME] is None)


def _different_bytes(functions: ListedFunctions) -> I64 | None:
    """Of each function how much code the SFrame of the file says something else about, or nothing."""
    comparison = functions.comparison
    if comparison is None:
        return None
    chosen = (comparison.range_one >= 0) & np.isin(comparison.verdict, [Verdict.DIFFERENT, Verdict.ONLY_ONE])
    found: I64 = np.zeros(len(functions), np.int64)
    np.add.at(found, comparison.range_one[chosen], comparison.size[chosen].astype(np.int64))
    return found


def _row_listing(functions: ListedFunctions) -> Listing:
    columns = (
        *texts(section="Section"),
        *addresses(function="Function", address="From"),
        *sizes(size="Code"),
        *texts(cfa="CFA", ra="Return address", fp="Frame pointer", ra_signed="Return address signed"),
    )
    return Listing("rows", "Rows", columns, _row_rows(functions))


def _row_rows(functions: ListedFunctions) -> Iterator[tuple[Any, ...]]:
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
