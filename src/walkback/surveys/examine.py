"""One ELF file to rows of a survey's tables.

What the rows say depends on the bytes of the file alone, and on the separate debug file with its build ID: not on where
the file stands or when it is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np

from walkback.base.arch import MACHINES
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import Contents, ElfFile
from walkback.elf import layout as elf_layout
from walkback.elf.sframe import has_sframe
from walkback.identify.framepointers import frame_pointers
from walkback.identify.kinds import kind_of
from walkback.identify.names import build_id_text
from walkback.identify.producers import origin_with_debug_file
from walkback.sections.check import check_source
from walkback.sections.pairs import call_frame_table, sframe_table
from walkback.sections.reading import Tables
from walkback.sections.size import Measured, existing_size, measure_frames, section_sizes
from walkback.sections.verified import Verified
from walkback.sections.verify import verified_tables
from walkback.sframe.checking import CODES, Report
from walkback.sframe.files import sources_of
from walkback.surveys import layout
from walkback.symbols import SymbolIndex
from walkback.table.comparing import Comparison, compare
from walkback.table.verdict import Verdict

Rows = dict[str, list[tuple[Any, ...]]]
"""Rows by table, in the order of `layout.COLUMNS`."""

LISTED = 1000
"""Findings of one rule, and stretches that differ, which have rows of their own in one file."""

_HEAD = 64
"""Bytes of an ELF header."""
_MACHINE_NAMES = {machine.elf_machine: machine.name for machine in MACHINES}


def examine(
    data: Contents, content: str, *, debug_roots: Sequence[str], verify: bool = False, tables: Tables | None = None
) -> Rows:
    """The rows of one file, and of the proofs of its tables if it is to be verified; what is wrong with it is in them.

    `tables` is for `measure_frames`. Raised is only a MemoryError, which is not its fault.
    """
    found = _Examined(content)
    try:
        _examine(data, found, debug_roots, verify=verify, tables=tables)
    except WalkbackError as error:
        error.file = None
        found.file |= {"outcome": "error", "error": str(error)}
    found.add("files", **found.file)
    return found.rows


class _Examined:
    """Rows in the making."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.rows: Rows = {table: [] for table in layout.KEYED}
        self.file: dict[str, Any] = {}

    def add(self, table: str, **values: Any) -> None:
        """A row by the names of its columns; what is not given is NULL."""
        values["content"] = self.content
        self.rows[table].append(tuple(values.pop(name, None) for name in layout.COLUMNS[table]))
        if values:
            raise ValueError(f"the table {table} has no {', '.join(values)}")


def _examine(
    data: Contents, found: _Examined, debug_roots: Sequence[str], *, verify: bool, tables: Tables | None
) -> None:
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
    file["build_id"] = build_id_text(elf)
    file["kind"] = kind_of(elf)
    known, debug = elf.machine in _MACHINE_NAMES, _is_debug(elf)
    sources = list(frame_sources(elf))
    _add_origin(found, elf, sources if known else (), debug_roots)
    if known and not debug:
        measured = measure_frames(elf, sources, tables=tables)
    else:
        measured = Measured(section_sizes(elf, sources))
    sizes = measured.sizes
    file |= {name: getattr(sizes, name) for name in ("text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame")}
    if not known:
        file["outcome"] = "machine"
        return
    _add_frames(found, measured)
    some = _add_sframe(found, elf)
    if verify and not debug:
        _add_proofs(found, elf, sources)
    file["outcome"] = "measured" if measured.read is not None or some else "debug" if debug else "without"


def _add_origin(found: _Examined, elf: ElfFile, sources: Sequence[FrameSource], debug_roots: Sequence[str]) -> None:
    """Who made the file."""
    origin = asdict(origin_with_debug_file(elf, sources, debug_roots))
    found.file |= {f"producer_{name}": origin.pop(name) for name in ("version", "evidence")}
    found.file |= origin | {"producers": list(origin["producers"])}


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


def _add_frames(found: _Examined, measured: Measured) -> None:
    """What the call frame information takes, and what versions of SFrame would."""
    read, sizes = measured.read, measured.sizes
    if read is None:
        return
    pointers = frame_pointers(read.table)
    found.file |= {
        "source": read.source_name,
        "rows": len(read.table.row_offset),
        "code_bytes": int(read.table.range_size.sum()),
        **dict.fromkeys((f"from_{kind}" for kind in layout.KINDS), 0),
        **{f"from_{kind}": its.code_bytes for kind, its in sizes.described.items()},
        "unreadable": len(read.unplaced),
        **{name: getattr(read, name) for name in ("functions", "dead", "empty", "shadowed")},
        "fp_functions": pointers.functions,
        "fp_bytes": pointers.code_bytes,
        "fp_saved": pointers.saved,
    }
    if sizes.replacement is not None:
        found.file |= asdict(sizes.replacement)
    for version in list(measured.derived):
        made, size = measured.derived.pop(version), sizes.versions[version]
        found.add(
            "versions",
            version=version,
            proved=made.proof().equal,
            bytes=size.parts.total,
            covered_bytes=made.covered_bytes,
            **{name: getattr(size, name) for name in ("functions", "covered", "entries", "rows")},
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
                section=made.elf.section_name(one.section) if one.section >= 0 else None,
                address=one.start if one.size else None,
                size=one.size,
                name=one.name,
                count=1,
            )
    for version, why in sizes.impossible.items():
        found.add("versions", version=version, impossible=why)


def _add_sframe(found: _Examined, elf: ElfFile) -> bool:
    """What SFrame the file has; returns whether it has some."""
    if not has_sframe(elf):
        return False
    row: dict[str, Any] = {}
    errors: list[str] = []
    with _kept(errors):
        size = existing_size(elf)
        if size is not None:
            row |= {"versions": list(size.versions), "functions": size.functions, "rows": size.rows}
            row |= {"bytes": size.parts.total, **asdict(size.parts)}
    with _kept(errors):
        reports = [check_source(source, limit=LISTED) for source in sources_of(elf)]
        row |= _findings(found, reports)
    with _kept(errors):
        row |= _compared(found, elf)
    found.add("sframe", **row, error=errors[0] if errors else None)
    return True


@contextlib.contextmanager
def _kept(errors: list[str]) -> Iterator[None]:
    """What is wrong with one part does not hide the others."""
    try:
        yield
    except WalkbackError as error:
        error.file = None
        errors.append(str(error))


def _findings(found: _Examined, reports: Sequence[Report]) -> dict[str, Any]:
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


def _add_finding(found: _Examined, code: str, section: str | None, **values: Any) -> None:
    severity = CODES[code].severity.name.lower()
    found.add("functions", about="finding", code=code, severity=severity, section=section, **values)


def _compared(found: _Examined, elf: ElfFile) -> dict[str, Any]:
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


def _add_proofs(found: _Examined, elf: ElfFile, sources: Sequence[FrameSource]) -> None:
    """Whether the machine code agrees with the tables; a function that is wrong in several is listed once."""
    errors: list[str] = []
    counted: set[int] = set()
    with _kept(errors):
        for one in verified_tables(elf, sources=sources):
            totals = ("functions", "functions_proved", "functions_wrong", "bytes", *layout.VERDICTS)
            reasons = {name.replace("-", "_"): size for name, size in one.reasons.items()}
            reasons = dict.fromkeys(layout.REASONS, 0) | reasons
            found.add("proofs", source=one.table, **{name: getattr(one, name) for name in totals}, **reasons)
            _add_wrong(found, one, counted)
    for error in errors:
        found.add("proofs", error=error)


def _add_wrong(found: _Examined, verified: Verified, counted: set[int]) -> None:
    """Wrong functions, the first with rows of their own and others by pattern; those counted already are left out."""
    functions = verified.wrong_functions
    for wrong, start in zip(verified.worst(LISTED), functions, strict=False):
        if start not in counted:
            found.add(
                "functions",
                about="wrong",
                code=wrong.pattern,
                message=wrong.message,
                section=wrong.section,
                address=wrong.address,
                size=wrong.bytes,
                name=wrong.function,
                count=1,
            )
    for pattern, more in verified.patterns(counted.union(functions[:LISTED])).items():
        found.add("functions", about="wrong", code=pattern, message=f"{more} more", count=more)
    counted.update(functions)


def _add_differences(found: _Examined, elf: ElfFile, comparison: Comparison) -> None:
    different = comparison.stretches(Verdict.DIFFERENT)
    stretches = list(islice(different, LISTED))
    more = sum(1 for _ in different)
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
