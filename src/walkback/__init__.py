"""walkback: the toolkit for stack-trace tables.

Everything public is here; a name is imported when it is first used, so that `import walkback` costs nothing.

    import walkback

    for source in walkback.sources("a.out"):
        for piece in source.pieces():
            print(piece.section.version, len(piece.section.functions))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walkback.additions import Added, add, drop
    from walkback.arch import Machine
    from walkback.comparison import Comparison, Stretch, Verdict, compare
    from walkback.derivation import Derived, Uncovered, derive
    from walkback.dwarf.files import FrameSource, cfi_sources
    from walkback.elf import ElfFile
    from walkback.errors import (
        DwarfError,
        ElfError,
        GraftError,
        IncompleteError,
        InexpressibleError,
        LeftOut,
        MissingError,
        SFrameError,
        UnreadableError,
        WalkbackError,
    )
    from walkback.linking.convert import Converted, convert
    from walkback.linking.fix import Fixed, fix
    from walkback.linking.link import Linked, link
    from walkback.linking.relink import link_object
    from walkback.linking.split import Split, split
    from walkback.sframe.build import Built, Refused, build, refusals
    from walkback.sframe.builder import SectionBuilder
    from walkback.sframe.check import CODES, Finding, Report, Severity, check, check_source
    from walkback.sframe.check.codes import Code
    from walkback.sframe.decode import decode, pieces
    from walkback.sframe.encode import encode, with_byteorder
    from walkback.sframe.files import Piece, Source, Stray, from_bytes, sources
    from walkback.sframe.lookup import Match, Place, lookup
    from walkback.sframe.rules import to_table
    from walkback.sframe.section import Functions, Section, Shapes
    from walkback.sframe.words import Refusal
    from walkback.sizes import ExistingSize, Parts, Replacement, Sizes, VersionSize, measure, total_size
    from walkback.table import Found, Kind, Part, Reason, Rule, UnwindTable
    from walkback.tables import Pair, pairs

_HOMES = {
    "walkback.additions": ("Added", "add", "drop"),
    "walkback.arch": ("Machine",),
    "walkback.comparison": ("Comparison", "Stretch", "Verdict", "compare"),
    "walkback.derivation": ("Derived", "Uncovered", "derive"),
    "walkback.dwarf.files": ("FrameSource", "cfi_sources"),
    "walkback.elf": ("ElfFile",),
    "walkback.errors": (
        "DwarfError",
        "GraftError",
        "ElfError",
        "IncompleteError",
        "InexpressibleError",
        "LeftOut",
        "MissingError",
        "SFrameError",
        "UnreadableError",
        "WalkbackError",
    ),
    "walkback.linking.convert": ("Converted", "convert"),
    "walkback.linking.fix": ("Fixed", "fix"),
    "walkback.linking.link": ("Linked", "link"),
    "walkback.linking.relink": ("link_object",),
    "walkback.linking.split": ("Split", "split"),
    "walkback.sframe.build": ("Built", "Refused", "build", "refusals"),
    "walkback.sframe.builder": ("SectionBuilder",),
    "walkback.sframe.check": ("CODES", "Finding", "Report", "Severity", "check", "check_source"),
    "walkback.sframe.check.codes": ("Code",),
    "walkback.sframe.decode": ("decode", "pieces"),
    "walkback.sframe.encode": ("encode", "with_byteorder"),
    "walkback.sframe.files": ("Piece", "Source", "Stray", "from_bytes", "sources"),
    "walkback.sframe.lookup": ("Match", "Place", "lookup"),
    "walkback.sframe.rules": ("to_table",),
    "walkback.sframe.section": ("Functions", "Section", "Shapes"),
    "walkback.sframe.words": ("Refusal",),
    "walkback.tables": ("Pair", "pairs"),
    "walkback.sizes": (
        "ExistingSize",
        "Parts",
        "Replacement",
        "Sizes",
        "VersionSize",
        "measure",
        "total_size",
    ),
    "walkback.table": ("Found", "Kind", "Part", "Reason", "Rule", "UnwindTable"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CODES",
    "Added",
    "Built",
    "Code",
    "Comparison",
    "Converted",
    "Derived",
    "DwarfError",
    "ElfError",
    "ElfFile",
    "ExistingSize",
    "Finding",
    "Fixed",
    "Found",
    "FrameSource",
    "Functions",
    "GraftError",
    "IncompleteError",
    "InexpressibleError",
    "Kind",
    "LeftOut",
    "Linked",
    "Machine",
    "Match",
    "MissingError",
    "Pair",
    "Part",
    "Parts",
    "Piece",
    "Place",
    "Reason",
    "Refusal",
    "Refused",
    "Replacement",
    "Report",
    "Rule",
    "SFrameError",
    "Section",
    "SectionBuilder",
    "Severity",
    "Shapes",
    "Sizes",
    "Source",
    "Split",
    "Stray",
    "Stretch",
    "Uncovered",
    "UnreadableError",
    "UnwindTable",
    "Verdict",
    "VersionSize",
    "WalkbackError",
    "add",
    "build",
    "cfi_sources",
    "check",
    "check_source",
    "compare",
    "convert",
    "decode",
    "derive",
    "drop",
    "encode",
    "fix",
    "from_bytes",
    "link",
    "link_object",
    "lookup",
    "measure",
    "pairs",
    "pieces",
    "refusals",
    "sources",
    "split",
    "to_table",
    "total_size",
    "with_byteorder",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        message = f"module 'walkback' has no attribute {name!r}"
        raise AttributeError(message)
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
