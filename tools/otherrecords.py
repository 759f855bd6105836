"""The records of ORC, Go's table of functions, CBF and CIF, from the layouts that walkback reads them by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from records import Field, Record, of_bits, of_dtype
from walkback.cbf import layout as cbf
from walkback.cif import layout as cif
from walkback.gopclntab import layout as go
from walkback.orc import layout as orc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from enum import IntEnum

_ORC_ENTRY = {
    "sp_offset": "What is added to the register that the CFA counts from.",
    "bp_offset": "The same for the place of the caller's `rbp`.",
    "bits": "Registers, the type and flags: see below.",
}


def orc_bits() -> Iterator[Record]:
    """The last two bytes of an entry, by kernel."""
    for kernel, shape in orc.SHAPES.items():
        masks = {
            "sp_reg": (orc.REGISTER_MASK, "What the CFA counts from."),
            "bp_reg": (orc.REGISTER_MASK << orc.BP_SHIFT, "What the place of the caller's `rbp` counts from."),
            "type": ((1 << shape.kind_bits) - 1 << orc.TYPE_SHIFT, "What the code is."),
        }
        if shape.signal:
            masks["signal"] = (shape.signal, "An interrupt enters the code, so the address of the caller is exact.")
        if shape.end:
            masks["end"] = (shape.end, "The outermost frame.")
        masks["unused"] = (0xFFFF & ~shape.used, "0.")
        release = kernel.name.removeprefix("LINUX_").replace("_", ".")
        yield of_bits(f"orc-bits-{release}", f"Bits of an ORC entry since Linux {release}", masks, size=16)


def _numbers(heading: str, names_of: Callable[[orc.EntryShape], Sequence[IntEnum]]) -> str:
    """A table of what numbers mean, a column for each kernel."""
    columns = {layout.name.removeprefix("LINUX_").replace("_", "."): names_of(it) for layout, it in orc.SHAPES.items()}
    lines = [f"| {heading} | {' | '.join(columns)} |", "| ---: |" + " --- |" * len(columns)]
    for number in range(max(map(len, columns.values()))):
        cells = [f"`{names[number].name.lower()}`" if number < len(names) else "" for names in columns.values()]
        lines.append(f"| {number} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES = {
    "orc-bases": _numbers("Register", lambda shape: shape.bases),
    "orc-kinds": _numbers("Type", lambda shape: shape.kinds),
}
_GO_HEAD = (
    Field("magic", 4, "The layout, in the byte order of the program."),
    Field("zero", 2, "0."),
    Field("min_size", 1, "The least length of an instruction."),
    Field("ptr_size", 1, "Bytes of a word: 8 on the machines that walkback reads."),
)
_GO_WORDS = {
    "functions": "How many functions there are.",
    "files": "How many files there are.",
    "text": "Where the code begins; 0 since Go 1.26.",
    "names": "Where the names of functions begin, from the start of the table, as all places below.",
    "units": "Where the lists of the files of each compilation unit begin.",
    "file_names": "Where the names of files begin.",
    "values": "Where the tables of values by program counter begin.",
    "entries": "Where the list of functions begins.",
}
_GO_ENTRY = {
    "entry": (4, "Where the function begins, from where the code begins."),
    "name": (4, "Its name, from where names begin."),
    "args": (4, "Bytes of its arguments."),
    "deferreturn": (4, "Where it goes on after a deferred call recovers, from its start."),
    "frame": (4, "Not used any more."),
    "pcsp": (4, "Its table of stack depths, from where these tables begin."),
    "pcfile": (4, "Its table of files."),
    "pcln": (4, "Its table of lines."),
    "npcdata": (4, "How many further tables follow the entry."),
    "cu_offset": (4, "Its compilation unit, in the lists of files."),
    "start_line": (4, "The line it begins at."),
    "func_id": (1, "A number for functions that the runtime has to know."),
    "flag": (1, "1: it has no caller; 2: it sets the stack pointer; 4: it is assembly."),
    "pad": (1, "0."),
    "nfuncdata": (1, "How many further pointers follow these tables."),
}


def go_words(layout: go.Layout) -> Record:
    """The header of a layout."""
    fields = [*_GO_HEAD, *(Field(name, 8, _GO_WORDS[name]) for name in go.HEADER_WORDS[layout])]
    return Record(f"go-header-{_go_release(layout)}", f"The header of Go {_go_release(layout)}", fields)


_GO_LISTED = (
    Record(
        "go-listed-1.2",
        "A function in the list of Go 1.2 and 1.16",
        [
            Field("function", 8, "Where it begins."),
            Field("place", 8, "Where its entry is: in Go 1.2 from the start of the table, in 1.16 from the list."),
        ],
    ),
    Record(
        "go-listed-1.18",
        "A function in the list since Go 1.18",
        [
            Field("function", 4, "Where it begins, from where the code begins."),
            Field("place", 4, "Where its entry is, from the list."),
        ],
    ),
)


def go_entry(layout: go.Layout) -> Record:
    """An entry, which has to have its known fields where walkback reads them."""
    is_old = layout is go.Layout.GO_1_16
    names = [name for name in _GO_ENTRY if name != "frame" and (name != "start_line" or layout is go.Layout.GO_1_20)]
    record = Record(
        f"go-entry-{_go_release(layout)}",
        f"An entry of Go {_go_release(layout)}",
        [Field(name, 8 if name == "entry" and is_old else _GO_ENTRY[name][0], _GO_ENTRY[name][1]) for name in names],
    )
    shape = go.ENTRY_SHAPES[layout]
    begin = record.fields[0].size
    places = {field.name: at - begin for at, field in record.places()}
    known = (places["name"], places["pcsp"], places["flag"], record.size - begin)
    assert known == (shape.name, shape.depths, shape.flag, shape.size), layout
    return record


def _go_release(layout: go.Layout) -> str:
    return layout.name.removeprefix("GO_").replace("_", ".")


_COUNT = "Bytes of the operand, less one."
_INFO = {
    "version": (0xFF & ~cbf.SIZE_MASK, "0."),
    "size": (cbf.SIZE_MASK, "The bits of a machine word: 0 means 16, 1 means 32, 2 means 64."),
}
_KIND = 0x3 << cbf.KIND_SHIFT
_CBF = (
    of_bits("cbf-info", "The information byte of a backtrace", _INFO),
    of_bits("cbf-end", "The end", {"truncated": (cbf.OP_TRUNC, "1: the stack continues, `trunc`; 0: `end`.")}),
    of_bits(
        "cbf-address",
        "An address",
        {
            "kind": (_KIND, "1 `pc`, 2 `ra`, 3 `async`; there is no 0."),
            "absolute": (cbf.ABSOLUTE, "1: the operand is the address; 0: it is added to the previous one."),
            "count": (cbf.ADDRESS_COUNT, _COUNT),
        },
    ),
    of_bits("cbf-omit", "A few frames omitted", {"frames": (cbf.OMIT_COUNT, "How many, less one.")}, value=cbf.OP_OMIT),
    of_bits(
        "cbf-omit-many",
        "Many frames omitted",
        {"count": (cbf.OMIT_COUNT, _COUNT)},
        value=cbf.OP_OMIT | cbf.OMIT_EXTERNAL,
    ),
    of_bits("cbf-rep", "A few repeats", {"repeats": (cbf.REP_COUNT, "How many, less one.")}, value=cbf.OP_REP),
    of_bits("cbf-rep-many", "Many repeats", {"count": (cbf.REP_COUNT, _COUNT)}, value=cbf.OP_REP | cbf.REP_EXTERNAL),
)
_CIF = (
    Record(
        "cif-map",
        "An image map",
        [
            Field("info", 1, "As in CBF."),
            Field("platform_size", 1, "Bytes of the platform."),
            Field("platform", 2, "UTF-8.", "0 to 255"),
            Field("image_count", 4, "A count: see below.", "1 to 3"),
            Field("images", 4, "In ascending order of their bases.", "rest"),
        ],
    ),
    Record(
        "cif-image",
        "An image",
        [
            Field("header", 1, "See below."),
            Field("base", 3, "Where the file begins in memory.", "1 to 8"),
            Field("end", 4, "Where its code ends, from the base.", "1 to 8"),
            Field("id_size", 1, "A count: bytes of the build ID; 0 without one.", "1 or 2"),
            Field("build_id", 3, "The bytes of it.", "0 to 1024"),
            Field("path", 4, "Instructions, up to `end` or a framework.", "1 and more"),
        ],
    ),
    of_bits(
        "cif-header",
        "The header of an image",
        {
            "relative": (cif.RELATIVE, "1: the base is added to that of the previous image."),
            "zero": (cif.RESERVED, "0."),
            "acount": (cif.COUNT_MASK << cif.ACOUNT_SHIFT, "Bytes of the base, less one."),
            "ecount": (cif.COUNT_MASK, "Bytes of the end, less one."),
        },
    ),
    of_bits(
        "cif-count",
        "A byte of a count",
        {
            "more": (cif.MORE, "1: another byte follows."),
            "bits": ((1 << cif.COUNT_BITS) - 1, "Seven bits of the number, the highest first."),
        },
    ),
    of_bits("cif-str", "Raw bytes of a path", {"size": (cif.OPERAND_MASK, "How many follow; 0 is `end`.")}),
    of_bits(
        "cif-framework",
        "A framework",
        {"size": (cif.OPERAND_MASK, "Bytes of a name, less one.")},
        value=cif.FRAMEWORK,
    ),
    of_bits("cif-expand", "A prefix", {"code": (cif.OPERAND_MASK, "Its code, below 64.")}, value=cif.EXPAND),
    of_bits(
        "cif-expand-more",
        "A prefix with a larger code",
        {"size": (cif.OPERAND_MASK, "Bytes of the operand, less one; the code is 64 plus the operand.")},
        value=cif.EXPAND | cif.EXTENDED,
    ),
)
RECORDS = (
    Record("orc-place", "A place", [Field("distance", orc.PLACE.itemsize, "From this field to the code; signed.")]),
    of_dtype("orc-entry", "An entry of ORC", orc.ENTRY, _ORC_ENTRY),
    *orc_bits(),
    *map(go_words, (go.Layout.GO_1_2, go.Layout.GO_1_16, go.Layout.GO_1_18)),
    *_GO_LISTED,
    *map(go_entry, (go.Layout.GO_1_16, go.Layout.GO_1_18, go.Layout.GO_1_20)),
    *_CBF,
    *_CIF,
)
