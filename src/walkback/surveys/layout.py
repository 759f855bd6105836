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
"""The tables of a part: each column and its type; `meanings` describes them."""
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
