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
    from walkback.additions import Added, Dropped, add, drop
    from walkback.arch import Machine
    from walkback.capture.accuracy import Comparing, accuracy
    from walkback.capture.corefile import CoreFile
    from walkback.capture.imagemaps import CapturedImages, images_of_core, images_of_process, images_of_recording
    from walkback.capture.located import Located, Locator, locate_frames
    from walkback.capture.modules import Module, Modules
    from walkback.capture.perfdata.recording import Recording
    from walkback.capture.process import Process
    from walkback.capture.snapshot import Snapshot
    from walkback.capture.stacks import Shot, Stopper, stacks_of_core, stacks_of_process
    from walkback.capture.unwinding import Collector, Unwinding, profile
    from walkback.cbf.backtraces import Backtrace, Backtraces
    from walkback.cbf.check import check_backtraces
    from walkback.cbf.decode import decode_backtrace, decode_backtraces, split_backtraces
    from walkback.cbf.encode import encode_backtrace, encode_backtraces
    from walkback.cbf.ends import Ends, kept_ends
    from walkback.cbf.instructions import explain_backtraces
    from walkback.checking import check, check_source
    from walkback.cif.decode import check_images, decode_images, explain_images
    from walkback.cif.encode import encode_images
    from walkback.cif.imagemap import Image, ImageMap
    from walkback.cif.objects import images_from_json, images_object
    from walkback.comparison import Comparison, Stretch, Verdict, compare
    from walkback.derivation import Derived, Uncovered, derive
    from walkback.dwarf.files import FrameSource, cfi_sources
    from walkback.elf import ElfFile
    from walkback.errors import (
        ArgumentError,
        BacktraceError,
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
    from walkback.export.accuracy import Accuracy
    from walkback.export.difference import Change, Difference, difference
    from walkback.export.flamegraph import write_difference
    from walkback.export.formats import FORMATS, Format
    from walkback.export.profile import Frames, Profile, SampleBatch
    from walkback.export.through import Neighbour, Through
    from walkback.export.top import Hot, hottest
    from walkback.linking.convert import Converted, convert
    from walkback.linking.fix import Fixed, fix
    from walkback.linking.link import Linked, link
    from walkback.linking.relink import link_object
    from walkback.linking.split import Split, split
    from walkback.report.binary import write_binary_page
    from walkback.report.survey import write_survey_page
    from walkback.sframe.build import Built, Refused, build, refusals
    from walkback.sframe.builder import SectionBuilder
    from walkback.sframe.check import CODES, Finding, Report, Severity
    from walkback.sframe.check.codes import Code
    from walkback.sframe.decode import decode, pieces
    from walkback.sframe.encode import encode, with_byteorder
    from walkback.sframe.files import Piece, Source, Stray, from_bytes, sources
    from walkback.sframe.lookup import Match, Place, lookup
    from walkback.sframe.rules import to_table
    from walkback.sframe.section import Functions, Section, Shapes
    from walkback.sframe.words import Refusal
    from walkback.sizes import ExistingSize, Parts, Replacement, Sizes, VersionSize, measure, total_size
    from walkback.store.naming import Naming
    from walkback.store.selection import Selection
    from walkback.store.store import Store
    from walkback.survey.executors import DaskWorkers, LocalWorkers
    from walkback.survey.reading import open_survey
    from walkback.survey.run import Progress, Surveyed, survey_files
    from walkback.table import Found, Kind, Part, Reason, Rule, UnwindTable
    from walkback.tables import Pair, pairs
    from walkback.unwind.samples import Memory, Samples, Space
    from walkback.unwind.stacks import End, FrameKind, How, Stacks
    from walkback.unwind.walker import Walker

_HOMES = {
    "walkback.additions": ("Added", "Dropped", "add", "drop"),
    "walkback.arch": ("Machine",),
    "walkback.capture.accuracy": (
        "Comparing",
        "accuracy",
    ),
    "walkback.capture.corefile": ("CoreFile",),
    "walkback.capture.imagemaps": (
        "CapturedImages",
        "images_of_core",
        "images_of_process",
        "images_of_recording",
    ),
    "walkback.capture.located": ("Located", "Locator", "locate_frames"),
    "walkback.cbf.backtraces": ("Backtrace", "Backtraces"),
    "walkback.cbf.check": ("check_backtraces",),
    "walkback.cbf.decode": ("decode_backtrace", "decode_backtraces", "split_backtraces"),
    "walkback.cbf.encode": ("encode_backtrace", "encode_backtraces"),
    "walkback.cbf.ends": ("Ends", "kept_ends"),
    "walkback.cbf.instructions": ("explain_backtraces",),
    "walkback.checking": ("check", "check_source"),
    "walkback.cif.decode": ("check_images", "decode_images", "explain_images"),
    "walkback.cif.encode": ("encode_images",),
    "walkback.cif.imagemap": ("Image", "ImageMap"),
    "walkback.cif.objects": ("images_from_json", "images_object"),
    "walkback.capture.modules": (
        "Module",
        "Modules",
    ),
    "walkback.capture.perfdata.recording": ("Recording",),
    "walkback.capture.process": ("Process",),
    "walkback.capture.snapshot": ("Snapshot",),
    "walkback.capture.stacks": (
        "Shot",
        "Stopper",
        "stacks_of_core",
        "stacks_of_process",
    ),
    "walkback.capture.unwinding": (
        "Collector",
        "Unwinding",
        "profile",
    ),
    "walkback.export.accuracy": ("Accuracy",),
    "walkback.export.difference": ("Change", "Difference", "difference"),
    "walkback.export.flamegraph": ("write_difference",),
    "walkback.export.formats": (
        "FORMATS",
        "Format",
    ),
    "walkback.export.profile": (
        "Frames",
        "Profile",
        "SampleBatch",
    ),
    "walkback.export.through": ("Neighbour", "Through"),
    "walkback.export.top": ("Hot", "hottest"),
    "walkback.report.binary": ("write_binary_page",),
    "walkback.report.survey": ("write_survey_page",),
    "walkback.store.naming": ("Naming",),
    "walkback.store.selection": ("Selection",),
    "walkback.store.store": ("Store",),
    "walkback.unwind.samples": (
        "Memory",
        "Samples",
        "Space",
    ),
    "walkback.unwind.stacks": (
        "End",
        "FrameKind",
        "How",
        "Stacks",
    ),
    "walkback.unwind.walker": ("Walker",),
    "walkback.comparison": ("Comparison", "Stretch", "Verdict", "compare"),
    "walkback.derivation": ("Derived", "Uncovered", "derive"),
    "walkback.dwarf.files": ("FrameSource", "cfi_sources"),
    "walkback.elf": ("ElfFile",),
    "walkback.errors": (
        "ArgumentError",
        "BacktraceError",
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
    "walkback.sframe.check": ("CODES", "Finding", "Report", "Severity"),
    "walkback.sframe.check.codes": ("Code",),
    "walkback.sframe.decode": ("decode", "pieces"),
    "walkback.sframe.encode": ("encode", "with_byteorder"),
    "walkback.sframe.files": ("Piece", "Source", "Stray", "from_bytes", "sources"),
    "walkback.sframe.lookup": ("Match", "Place", "lookup"),
    "walkback.sframe.rules": ("to_table",),
    "walkback.sframe.section": ("Functions", "Section", "Shapes"),
    "walkback.sframe.words": ("Refusal",),
    "walkback.survey.executors": ("DaskWorkers", "LocalWorkers"),
    "walkback.survey.reading": ("open_survey",),
    "walkback.survey.run": ("Progress", "Surveyed", "survey_files"),
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
    "FORMATS",
    "Accuracy",
    "Added",
    "ArgumentError",
    "Backtrace",
    "BacktraceError",
    "Backtraces",
    "Built",
    "CapturedImages",
    "Change",
    "Code",
    "Collector",
    "Comparing",
    "Comparison",
    "Converted",
    "CoreFile",
    "DaskWorkers",
    "Derived",
    "Difference",
    "Dropped",
    "DwarfError",
    "ElfError",
    "ElfFile",
    "End",
    "Ends",
    "ExistingSize",
    "Finding",
    "Fixed",
    "Format",
    "Found",
    "FrameKind",
    "FrameSource",
    "Frames",
    "Functions",
    "GraftError",
    "Hot",
    "How",
    "Image",
    "ImageMap",
    "IncompleteError",
    "InexpressibleError",
    "Kind",
    "LeftOut",
    "Linked",
    "LocalWorkers",
    "Located",
    "Locator",
    "Machine",
    "Match",
    "Memory",
    "MissingError",
    "Module",
    "Modules",
    "Naming",
    "Neighbour",
    "Pair",
    "Part",
    "Parts",
    "Piece",
    "Place",
    "Process",
    "Profile",
    "Progress",
    "Reason",
    "Recording",
    "Refusal",
    "Refused",
    "Replacement",
    "Report",
    "Rule",
    "SFrameError",
    "SampleBatch",
    "Samples",
    "Section",
    "SectionBuilder",
    "Selection",
    "Severity",
    "Shapes",
    "Shot",
    "Sizes",
    "Snapshot",
    "Source",
    "Space",
    "Split",
    "Stacks",
    "Stopper",
    "Store",
    "Stray",
    "Stretch",
    "Surveyed",
    "Through",
    "Uncovered",
    "UnreadableError",
    "UnwindTable",
    "Unwinding",
    "Verdict",
    "VersionSize",
    "WalkbackError",
    "Walker",
    "accuracy",
    "add",
    "build",
    "cfi_sources",
    "check",
    "check_backtraces",
    "check_images",
    "check_source",
    "compare",
    "convert",
    "decode",
    "decode_backtrace",
    "decode_backtraces",
    "decode_images",
    "derive",
    "difference",
    "drop",
    "encode",
    "encode_backtrace",
    "encode_backtraces",
    "encode_images",
    "explain_backtraces",
    "explain_images",
    "fix",
    "from_bytes",
    "hottest",
    "images_from_json",
    "images_object",
    "images_of_core",
    "images_of_process",
    "images_of_recording",
    "kept_ends",
    "link",
    "link_object",
    "locate_frames",
    "lookup",
    "measure",
    "open_survey",
    "pairs",
    "pieces",
    "profile",
    "refusals",
    "sources",
    "split",
    "split_backtraces",
    "stacks_of_core",
    "stacks_of_process",
    "survey_files",
    "to_table",
    "total_size",
    "with_byteorder",
    "write_binary_page",
    "write_difference",
    "write_survey_page",
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
