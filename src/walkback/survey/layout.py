"""How a survey lies on the disk: its folders, its tables and their columns.

DIR/walkback-survey.json            this folder is a survey; what was asked for
DIR/lock                            held while a survey is at work here
DIR/readers                         held by readers together, and alone to take away what is replaced
DIR/.walkback-*                     what is not finished, or is being taken away
DIR/part=<id>/part.json             which parts this one replaces
DIR/part=<id>/<table>.parquet       what was found, written as the work proceeds

A finished survey has one part, whose tables are sorted, so that the same files give the same rows in the same order.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1
MARKER: Final = "walkback-survey.json"
LOCK: Final = "lock"
READERS: Final = "readers"
PART: Final = "part="
MAKING: Final = ".walkback-part="
TEMPORARY: Final = ".walkback-temporary"
MANIFEST: Final = "part.json"

_PARTS: Final = {
    "header": "UBIGINT",
    "index": "UBIGINT",
    "padding": "UBIGINT",
    "attributes": "UBIGINT",
    "starts": "UBIGINT",
    "info": "UBIGINT",
    "words": "UBIGINT",
    "other": "UBIGINT",
}
WHAT_IFS: Final = (
    "compact_index",
    "slim_header",
    "section_per_text",
    "section_per_text_slim",
    "section_per_function",
    "section_per_function_slim",
    "shared_rows",
    "palette",
    "stack_deltas",
)
REPLACEMENT: Final = (
    "personality_functions",
    "lsda_functions",
    "exception_bytes",
    "register_functions",
    "register_rows",
    "added_rows",
    "added_row_bytes",
    "register_bytes",
    "sets",
    "numbered_bytes",
)

COLUMNS: Final = {
    "units": {"path": "VARCHAR", "bytes": "UBIGINT", "modified": "BIGINT"},
    "places": {
        "content": "VARCHAR",
        "path": "VARCHAR",
        "member": "VARCHAR",
        "package": "VARCHAR",
        "package_version": "VARCHAR",
        "package_architecture": "VARCHAR",
        "package_format": "VARCHAR",
    },
    "files": {
        "content": "VARCHAR",
        "bytes": "UBIGINT",
        "outcome": "VARCHAR",
        "error": "VARCHAR",
        "machine": "VARCHAR",
        "kind": "VARCHAR",
        "build_id": "VARCHAR",
        "producer": "VARCHAR",
        "producer_version": "VARCHAR",
        "producer_evidence": "VARCHAR",
        "producers": "VARCHAR[]",
        "language": "VARCHAR",
        "linker": "VARCHAR",
        "source": "VARCHAR",
        "text_bytes": "UBIGINT",
        "eh_frame": "UBIGINT",
        "eh_frame_hdr": "UBIGINT",
        "debug_frame": "UBIGINT",
        "functions": "UBIGINT",
        "rows": "UBIGINT",
        "code_bytes": "UBIGINT",
        "dead": "UBIGINT",
        "empty": "UBIGINT",
        "unreadable": "UBIGINT",
        "shadowed": "UBIGINT",
        "fp_functions": "UBIGINT",
        "fp_bytes": "UBIGINT",
        "fp_saved": "UBIGINT",
        **dict.fromkeys(REPLACEMENT, "UBIGINT"),
    },
    "versions": {
        "content": "VARCHAR",
        "version": "UTINYINT",
        "impossible": "VARCHAR",
        "proved": "BOOLEAN",
        "bytes": "UBIGINT",
        "functions": "UBIGINT",
        "covered": "UBIGINT",
        "covered_bytes": "UBIGINT",
        "entries": "UBIGINT",
        "rows": "UBIGINT",
        **_PARTS,
        **dict.fromkeys(WHAT_IFS, "UBIGINT"),
    },
    "sframe": {
        "content": "VARCHAR",
        "versions": "UTINYINT[]",
        "error": "VARCHAR",
        "bytes": "UBIGINT",
        "functions": "UBIGINT",
        "rows": "UBIGINT",
        **_PARTS,
        "findings": "UBIGINT",
        "severity": "VARCHAR",
        "equal_bytes": "UBIGINT",
        "different_bytes": "UBIGINT",
        "only_frames_bytes": "UBIGINT",
        "only_sframe_bytes": "UBIGINT",
    },
    "functions": {
        "content": "VARCHAR",
        "about": "VARCHAR",
        "version": "UTINYINT",
        "code": "VARCHAR",
        "severity": "VARCHAR",
        "message": "VARCHAR",
        "section": "VARCHAR",
        "address": "UBIGINT",
        "size": "UBIGINT",
        "name": "VARCHAR",
        "offset": "UBIGINT",
        "count": "UBIGINT",
    },
    "troubles": {"path": "VARCHAR", "member": "VARCHAR", "what": "VARCHAR", "message": "VARCHAR"},
}
"""The tables of a part.

units      What was looked through: a file on the disk, with its size and its time of change in nanoseconds.
places     Where each content was found: in `path`, or in the file `member` of the archive or package `path`.
           Members of members stand in brackets: `usr/lib/libc.a(printf.o)`.
files      Each distinct content once. `content` is its digest. `outcome`: one of OUTCOMES. `machine`: as walkback calls
           it, else `EM_` and the number. `kind`: one of KINDS. `producer`, `language`: `unknown` where nothing tells.
           `producer_evidence`: what told. `source`: the section that SFrame is derived from. `functions` to `shadowed`:
           as `Derived` has them for version 3; `rows`: of the table that is to be said. `fp_functions`: functions that
           have a row whose CFA counts from the frame pointer; `fp_bytes`: code where it does; `fp_saved`: functions
           that have a row where the caller's frame pointer is saved. Then what version 3 would carry besides to
           replace `.eh_frame`. Numbers are NULL where nothing was measured.
versions   What each version of SFrame would take: as `walkback size` has it. `impossible`: why it cannot be made.
           `proved`: that the bytes say what the source says.
sframe     What SFrame the file has: sizes, how many findings `check` has and the worst of their severities, and code by
           what `compare` finds between it and the call frame information.
functions  Functions with something to tell. `about`: `uncovered` (`version` cannot have it; `code` and `message` say
           why), `finding` (of `check`, at the byte `offset` of `section`) or `different` (the SFrame does not say what
           the call frame information does). `section` and `address` are the place of the code; the section is NULL in
           linked files. `count` is 1, or more where the findings of a rule are too many to be listed.
troubles   What could not be looked into, and the archives that broke off.
"""
TABLES: Final = tuple(COLUMNS)

ORDER: Final = {
    "units": "path",
    "places": "path, member NULLS FIRST, content",
    "files": "content",
    "versions": "content, version",
    "sframe": "content",
    "functions": (
        "content, about, version NULLS FIRST, section NULLS FIRST, address NULLS FIRST, "
        '"offset" NULLS FIRST, code, message, name NULLS FIRST'
    ),
    "troubles": "path, member NULLS FIRST, what, message",
}
"""How a finished survey is sorted."""
KEYED: Final = ("files", "versions", "sframe", "functions")
"""Tables about contents: equal rows for each time that a content was found, of which one stays."""

OUTCOMES: Final = {
    "measured": "its tables were measured",
    "without": "it has neither call frame information nor SFrame",
    "debug": "it holds debug information of another file",
    "machine": "SFrame does not know its machine",
    "32-bit": "32-bit ELF files are not read",
    "core": "it is a core file",
    "error": "it cannot be read; `error` says why",
}
KINDS: Final = ("program", "library", "object", "module", "core", "other")
"""`program`: ET_EXEC, or ET_DYN with an interpreter or DF_1_PIE; `module`: a relocatable file for the kernel."""
