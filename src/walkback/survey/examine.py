"""One ELF file to rows of a survey's tables.

What the rows say depends on the bytes of the file alone, and on the separate debug file with its build ID: not on where
the file stands or when it is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from walkback.arch import MACHINES
from walkback.checking import check_source
from walkback.comparison import Comparison, Stretch, Verdict, compare
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import Contents, ElfFile
from walkback.elf import layout as elf_layout
from walkback.elf.debugfiles import debug_file_by_build_id
from walkback.errors import WalkbackError
from walkback.sframe.check import CODES, Report
from walkback.sframe.files import sources_of
from walkback.sizes import Measured, existing_size, measure_frames, section_sizes
from walkback.survey import layout
from walkback.survey.framepointers import frame_pointers
from walkback.survey.kinds import kind_of
from walkback.survey.producers import origin
from walkback.symbols import SymbolIndex
from walkback.tables import call_frame_table, sframe_table

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows by table, in the order of `layout.COLUMNS`."""

LISTED = 1000
"""Findings of one rule, and stretches that differ, which have rows of their own in one file."""

_HEAD = 64
"""Bytes of an ELF header."""
_MACHINE_NAMES = {machine.elf_machine: machine.name for machine in MACHINES}


def examine(data: Contents, content: str, *, debug_roots: Sequence[str]) -> Rows:
    """The rows of one file; what is wrong with it is in them. Raised is only a MemoryError, which is not its fault."""
    found = _Found(content)
    try:
        _examine(data, found, debug_roots)
    except WalkbackError as error:
        error.file = None
        found.file |= {"outcome": "error", "error": str(error)}
    found.add("files", **found.file)
    return found.rows


class _Found:
    """Rows in the making."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.rows: Rows = {table: [] for table in layout.KEYED}
        self.file: dict[str, Any] = {}

    def add(self, table: str, **values: Any) -> None:
        """A row by the names of its columns; what is not told is NULL."""
        values["content"] = self.content
        self.rows[table].append(tuple(values.pop(name, None) for name in layout.COLUMNS[table]))
        if values:
            message = f"the table {table} has no {', '.join(values)}"
            raise ValueError(message)


def _examine(data: Contents, found: _Found, debug_roots: Sequence[str]) -> None:
    file, head = found.file, bytes(data[:_HEAD])
    file["bytes"] = len(data)
    file["machine"] = _machine_name(head)
    if len(head) > elf_layout.EI_CLASS and head[elf_layout.EI_CLASS] == elf_layout.ELFCLASS32:
        file["outcome"] = "32-bit"
        return
    elf = ElfFile(data, "")
    if elf.type == elf_layout.ET_CORE:
        file |= {"outcome": "core", "kind": "core"}
        return
    with contextlib.suppress(WalkbackError):  # a damaged note says nothing, and the rest can be read
        file["build_id"] = elf.build_id.hex() if elf.build_id else None
    file["kind"] = kind_of(elf)
    known, debug = elf.machine in _MACHINE_NAMES, _is_debug(elf)
    sources = list(frame_sources(elf))
    _add_origin(found, elf, sources if known else (), debug_roots)
    measured = measure_frames(elf, sources) if known and not debug else Measured(section_sizes(elf, sources))
    sizes = measured.sizes
    file |= {name: getattr(sizes, name) for name in ("text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame")}
    if not known:
        file["outcome"] = "machine"
        return
    _add_frames(found, measured)
    some = _add_sframe(found, elf)
    file["outcome"] = "measured" if measured.told is not None or some else "debug" if debug else "without"


def _add_origin(found: _Found, elf: ElfFile, sources: Sequence[FrameSource], debug_roots: Sequence[str]) -> None:
    """Who made the file."""
    debug = None
    with contextlib.suppress(WalkbackError):
        debug = debug_file_by_build_id(elf, debug_roots)
    told = origin(elf, sources, debug)
    found.file |= {
        "producer": told.producer,
        "producer_version": told.version,
        "producer_evidence": told.evidence,
        "producers": list(told.producers),
        "language": told.language,
        "linker": told.linker,
    }


def _machine_name(data: bytes) -> str | None:
    """The machine in the ELF header, which stands at one place in files of either class."""
    if len(data) < elf_layout.E_MACHINE + 2 or data[elf_layout.EI_DATA] not in elf_layout.BYTE_ORDERS:
        return None
    order = elf_layout.BYTE_ORDERS[data[elf_layout.EI_DATA]]
    number = int.from_bytes(data[elf_layout.E_MACHINE : elf_layout.E_MACHINE + 2], order)
    name = _MACHINE_NAMES.get(number)
    wide = data[elf_layout.EI_CLASS] == elf_layout.ELFCLASS64
    return name if name and wide else f"EM_{number}"


def _is_debug(elf: ElfFile) -> bool:
    """Whether the code is elsewhere: there are headers of text sections, and none has its contents."""
    kinds = elf.sections["type"][(elf.sections["flags"] & elf_layout.SHF_EXECINSTR) != 0]
    return len(kinds) > 0 and bool((kinds == elf_layout.SHT_NOBITS).all())


def _add_frames(found: _Found, measured: Measured) -> None:
    """What the call frame information takes, and what versions of SFrame would."""
    told, sizes = measured.told, measured.sizes
    if told is None:
        return
    pointers = frame_pointers(told.table)
    found.file |= {
        "source": told.sources[0].name,
        "functions": told.functions,
        "rows": len(told.table.row_offset),
        "code_bytes": int(told.table.range_size.sum()),
        "dead": told.dead,
        "empty": told.empty,
        "unreadable": len(told.unplaced),
        "shadowed": told.shadowed,
        "fp_functions": pointers.functions,
        "fp_bytes": pointers.code_bytes,
        "fp_saved": pointers.saved,
    }
    if sizes.replacement is not None:
        found.file |= asdict(sizes.replacement)
    for version, made in measured.derived.items():
        size = sizes.versions[version]
        found.add(
            "versions",
            version=version,
            proved=made.proof().equal,
            bytes=size.parts.total,
            functions=size.functions,
            covered=size.covered,
            covered_bytes=made.covered_bytes,
            entries=size.entries,
            rows=size.rows,
            **asdict(size.parts),
            **size.what_if,
        )
        for one in made.uncovered:
            found.add(
                "functions",
                about="uncovered",
                version=version,
                code=one.code,
                message=one.reason,
                section=made.source.elf.section_name(one.section) if one.section >= 0 else None,
                address=one.start if one.size else None,
                size=one.size,
                name=one.name,
                count=1,
            )
    for version, why in sizes.impossible.items():
        found.add("versions", version=version, impossible=why)


def _add_sframe(found: _Found, elf: ElfFile) -> bool:
    """What SFrame the file has; returns whether it has some."""
    if not _has_sframe(elf):
        return False
    row: dict[str, Any] = {}
    errors: list[str] = []
    with _kept(errors):
        size = existing_size(elf)
        if size is not None:
            row |= {"versions": list(size.versions), "functions": size.functions, "rows": size.rows}
            row |= {"bytes": size.parts.total, **asdict(size.parts)}
    with _kept(errors):
        reports = [check_source(source, listed=LISTED) for source in sources_of(elf)]
        row |= _findings(found, reports)
    with _kept(errors):
        row |= _compared(found, elf)
    found.add("sframe", **row, error=errors[0] if errors else None)
    return True


def _has_sframe(elf: ElfFile) -> bool:
    if not len(elf.sections):
        return bool((elf.segments["type"] == elf_layout.PT_GNU_SFRAME).any())
    named = [*elf.sections_of_type(elf_layout.SHT_GNU_SFRAME), *elf.sections_named(".sframe")]
    return any(elf.sections["type"][index] != elf_layout.SHT_NOBITS for index in named)


@contextlib.contextmanager
def _kept(errors: list[str]) -> Iterator[None]:
    """What is wrong with one part does not hide the others."""
    try:
        yield
    except WalkbackError as error:
        error.file = None
        errors.append(str(error))


def _findings(found: _Found, reports: Sequence[Report]) -> dict[str, Any]:
    count, worst = 0, None
    for report in reports:
        name = report.source.name or None
        for one in report.findings:
            worst = one.severity if worst is None else min(worst, one.severity)
            count += 1
            _add_finding(found, one.code, name, message=one.message, offset=one.offset, name=one.symbol, count=1)
        for code, more in report.unlisted.items():
            count += more
            _add_finding(found, code, name, message=f"{more} more", count=more)
    return {"findings": count, "severity": None if worst is None else worst.name.lower()}


def _add_finding(found: _Found, code: str, section: str | None, **values: Any) -> None:
    severity = CODES[code].severity.name.lower()
    found.add("functions", about="finding", code=code, severity=severity, section=section, **values)


def _compared(found: _Found, elf: ElfFile) -> dict[str, Any]:
    """Whether the SFrame says what the call frame information does."""
    one, other = call_frame_table(elf), sframe_table(elf)
    if one is None or other is None:
        return {}
    comparison = compare(one.table, other.table)
    _add_differences(found, elf, comparison)
    return {
        "equal_bytes": comparison.code_bytes(Verdict.EQUAL),
        "different_bytes": comparison.code_bytes(Verdict.DIFFERENT),
        "only_frames_bytes": comparison.code_bytes(Verdict.ONLY_ONE),
        "only_sframe_bytes": comparison.code_bytes(Verdict.ONLY_OTHER),
    }


def _add_differences(found: _Found, elf: ElfFile, comparison: Comparison) -> None:
    stretches: list[Stretch] = []
    more = 0
    for one in comparison.stretches(Verdict.DIFFERENT):
        if len(stretches) < LISTED:
            stretches.append(one)
        else:
            more += 1
    places = np.array([one.start for one in stretches], np.uint64)
    names: list[str | None] = [None] * len(stretches)
    with contextlib.suppress(WalkbackError):
        names = SymbolIndex(elf).names_at(places, np.array([one.section for one in stretches], np.int64))
    for one, name in zip(stretches, names, strict=True):
        found.add(
            "functions",
            about="different",
            code="different",
            message=f"{one.one} | {one.other}",
            section=elf.section_name(one.section) if 0 < one.section < len(elf.sections) else None,
            address=one.start,
            size=one.size,
            name=name,
            count=1,
        )
    if more:
        found.add("functions", about="different", code="different", message=f"{more} more", count=more)
