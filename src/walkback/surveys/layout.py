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

from walkback.proof.values import Verdict, Why
from walkback.segments.protocol import Marker

VERSION: Final = 4
MARKER: Final = Marker("walkback-survey.json", "survey", VERSION)
LOCK: Final = "lock"
READERS: Final = "readers"
PART: Final = "part="
MAKING: Final = ".walkback-part="
TEMPORARY: Final = ".walkback-temporary"
MANIFEST: Final = "part.json"


def _texts(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "VARCHAR")


def _numbers(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "UBIGINT")


_PARTS: Final = _numbers("header", "index", "padding", "attributes", "starts", "info", "words", "other")
_OTHER_FORMATS: Final = _numbers(
    "compact_index", "slim_header", "section_per_text", "section_per_text_slim", "section_per_function"
) | _numbers("section_per_function_slim", "shared_rows", "palette", "stack_deltas")
WHAT_IFS: Final = tuple(_OTHER_FORMATS)
VERDICTS: Final = tuple(verdict.name.lower() for verdict in Verdict)
REASONS: Final = tuple(why.name.lower() for why in Why if why)
KINDS: Final = ("cfi", "go", "orc", "code")
"""Of tables."""

COLUMNS: Final = {
    "units": _texts("path") | _numbers("bytes") | {"modified": "BIGINT"},
    "places": _texts("content", "path", "member")
    | _texts("package", "package_version", "package_architecture", "package_format"),
    "files": _texts("content")
    | _numbers("bytes")
    | _texts("outcome", "error", "machine", "kind", "build_id", "producer", "producer_version", "producer_evidence")
    | {"producers": "VARCHAR[]"}
    | _texts("language", "linker", "source")
    | _numbers("text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame", "functions", "rows", "code_bytes")
    | _numbers(*(f"from_{kind}" for kind in KINDS))
    | _numbers("dead", "empty", "unreadable", "shadowed", "fp_functions", "fp_bytes", "fp_saved")
    | _numbers("personality_functions", "lsda_functions", "exception_bytes", "register_functions", "register_rows")
    | _numbers("added_rows", "added_row_bytes", "register_bytes", "sets", "numbered_bytes"),
    "versions": _texts("content")
    | {"version": "UTINYINT", "impossible": "VARCHAR", "proved": "BOOLEAN"}
    | _numbers("bytes", "functions", "covered", "covered_bytes", "entries", "rows")
    | _PARTS
    | _OTHER_FORMATS,
    "sframe": _texts("content")
    | {"versions": "UTINYINT[]", "error": "VARCHAR"}
    | _numbers("bytes", "functions", "rows")
    | _PARTS
    | {"findings": "UBIGINT", "severity": "VARCHAR"}
    | _numbers("equal_bytes", "different_bytes", "only_frames_bytes", "only_sframe_bytes"),
    "proofs": _texts("content", "source", "error")
    | _numbers("functions", "functions_proved", "functions_wrong", "bytes", *VERDICTS, *REASONS),
    "functions": _texts("content", "about")
    | {"version": "UTINYINT"}
    | _texts("code", "severity", "message", "section")
    | _numbers("address", "size")
    | _texts("name")
    | _numbers("offset", "count"),
    "troubles": _texts("path", "member", "what", "message"),
}
"""The tables of a part.

units      What was examined: a file on the disk, with its size and its time of change in nanoseconds.
places     Where each content was found: in `path`, or in the file `member` of the archive or package `path`.
           Members of members stand in brackets: `usr/lib/libc.a(printf.o)`.
files      Each distinct content once. `content` is its digest. `outcome`: one of OUTCOMES. `machine`: as walkback calls
           it, else `EM_` and the number. `kind`: of `identify.kinds`, or `core`. `producer`, `language`:
           `unknown` where nothing shows them. `producer_evidence`: what shows them. `source`: the section that SFrame
           is derived from. `from_cfi` to `from_code`: `code_bytes` by the kind of table that the code is described by,
           of what is made from the code only where it has a rule.
           `functions` to `shadowed`: as `Derived` has them for version 3; `rows`: of the table that is
           to be said. `fp_functions`: functions that have a row whose CFA counts from the frame pointer; `fp_bytes`:
           code where it does; `fp_saved`: functions that have a row where the caller's frame pointer is saved. Then
           what version 3 would carry besides to replace `.eh_frame`. Numbers are NULL where nothing was measured.
versions   What each version of SFrame would take: as `walkback size` has it. `impossible`: why it cannot be made.
           `proved`: that the bytes say what the source says.
sframe     What SFrame the file has: sizes, how many findings `check` has and the worst of their severities, and code by
           what `compare` finds between it and the call frame information.
proofs     What `walkback verify` finds in the table of the section `source`, if the survey was asked to verify:
           functions, and bytes of code by verdict and by reason. `error`: why it could not be verified.
functions  Functions to look at. `about`: `uncovered` (`version` cannot have it; `code` and `message` say
           why), `finding` (of `check`, at the byte `offset` of `section`), `different` (the SFrame does not say what
           the call frame information does) or `wrong` (the code contradicts the table; `code` is the pattern).
           `section` and `address` are the place of the code; the section is NULL in linked files. `count` is 1, or more
           where the findings of a rule are too many to be listed.
troubles   What could not be looked into, and the archives that broke off.
"""
TABLES: Final = tuple(COLUMNS)

ORDER: Final = {
    "units": "path",
    "places": "path, member NULLS FIRST, content",
    "files": "content",
    "versions": "content, version",
    "sframe": "content",
    "proofs": "content, source NULLS FIRST",
    "functions": (
        "content, about, version NULLS FIRST, section NULLS FIRST, address NULLS FIRST, "
        '"offset" NULLS FIRST, code, message, name NULLS FIRST'
    ),
    "troubles": "path, member NULLS FIRST, what, message",
}
"""How a finished survey is sorted."""
KEYED: Final = ("files", "versions", "sframe", "proofs", "functions")
"""Tables about contents: each time the same content is found it adds equal rows, and only one of each is kept."""

OUTCOMES: Final = {
    "measured": "its tables were measured",
    "without": "it has no unwind table of those that were measured",
    "debug": "it holds debug information of another file",
    "machine": "SFrame does not support its machine",
    "32-bit": "32-bit ELF files are not read",
    "core": "it is a core file",
    "error": "it cannot be read; `error` gives the reason",
}
