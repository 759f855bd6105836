"""Rules about the ELF file that a section stands in."""

from __future__ import annotations

import numpy as np

from walkback.base.arch import AMD64
from walkback.base.arrays import Bools, ends_of
from walkback.base.errors import UnreadableError
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout
from walkback.sframe import layout
from walkback.sframe.checking.findings import Findings
from walkback.sframe.files import SFrameSection, Source
from walkback.sframe.rules import shape_rules
from walkback.sframe.section import Section
from walkback.table.rule import PartKind


def check_container(source: Source, pieces: list[SFrameSection], found: Findings) -> None:
    """The ELF section and segment."""
    for piece in pieces[1:]:
        message = f"another SFrame section begins at {piece.position:#x}; readers see only the first"
        found.add("section-pieces", message, offset=piece.position)
    elf = source.elf
    if elf is None:
        return
    if source.index is not None:
        _section_header(source, elf, pieces, found)
    if not elf.is_relocatable and source.index is not None and len(source.data):
        _segment(source, elf, found)


def check_placed(source: Source, piece: SFrameSection, found: Findings) -> None:
    """What the file says of each function: code, relocations."""
    elf = source.elf
    if elf is None:
        return
    section = piece.section
    _machine(elf, section, found)
    _code(elf, section, found)
    if source.index is not None:
        if elf.is_relocatable:
            _unrelocated(section, found)
        else:
            _unsorted(section, found)
            _kept_relocations(source, elf, piece, found)
    _plt_got(elf, section, found)


def check_strays(source: Source, found: Findings) -> None:
    """Relocations that could not be applied; all pieces have been read."""
    for stray in source.strays:
        found.add("relocation-stray", f"a relocation is not applied: {stray.reason}", offset=stray.offset)


def _section_header(source: Source, elf: ElfFile, pieces: list[SFrameSection], found: Findings) -> None:
    header = elf.sections[source.index]
    kind, flags = int(header["type"]), int(header["flags"])
    modern = any(piece.section.version == 3 or piece.section.pcrel for piece in pieces)
    if kind != elf_layout.SHT_GNU_SFRAME and (modern or kind != elf_layout.SHT_PROGBITS):
        found.add("section-type", f"the section's type is {kind:#x}, not SHT_GNU_SFRAME (0x6ffffff4)")
    if not flags & elf_layout.SHF_ALLOC:
        found.add("section-flags", "the section is not loaded (SHF_ALLOC is missing)")
    if flags & (elf_layout.SHF_WRITE | elf_layout.SHF_EXECINSTR):
        found.add("section-flags", "the section is writable or executable")
    if flags & elf_layout.SHF_LINK_ORDER and not elf.is_relocatable:
        found.add("section-flags", "the section of a linked file has SHF_LINK_ORDER")


def _segment(source: Source, elf: ElfFile, found: Findings) -> None:
    """PT_GNU_SFRAME, by which consumers at run time find the section."""
    header = elf.sections[source.index]
    if not int(header["flags"]) & elf_layout.SHF_ALLOC:
        return
    try:
        segments = elf.segments[elf.segments["type"] == elf_layout.PT_GNU_SFRAME]
    except UnreadableError as error:
        found.add("segment-missing", f"the program headers cannot be read: {error.message}")
        return
    if not len(segments):
        found.add("segment-missing", "there is no PT_GNU_SFRAME")
        return
    address, size = int(header["addr"]), int(header["size"])
    for segment in segments:
        if int(segment["vaddr"]) != address:
            found.add("segment-place", f"PT_GNU_SFRAME is at {int(segment['vaddr']):#x}, the section at {address:#x}")
        elif int(segment["offset"]) != int(header["offset"]):
            place = f"{int(segment['offset']):#x}, the section's at {int(header['offset']):#x}"
            found.add("segment-place", f"the contents of PT_GNU_SFRAME are at file offset {place}")
        elif int(segment["filesz"]) != size or int(segment["memsz"]) != size:
            wrong = int(segment["filesz"] if segment["filesz"] != size else segment["memsz"])
            found.add("segment-size", f"PT_GNU_SFRAME has {wrong:#x} bytes, the section {size:#x}")


def _machine(elf: ElfFile, section: Section, found: Findings) -> None:
    machine = section.machine
    if machine is not None and machine.elf_machine != elf.machine:
        found.add("abi-machine", f"the section is for {machine.name}, the file for e_machine {elf.machine}", offset=4)
    elif section.byteorder != elf.byteorder:
        message = f"the section is stored {section.byteorder}-endian, the file is {elf.byteorder}-endian"
        found.add("abi-machine", message, offset=0)


def _code(elf: ElfFile, section: Section, found: Findings) -> None:
    """Every function lies in executable code."""
    size = section.functions.size.astype(np.uint64)
    start = section.code_address
    wraps, end = start > np.uint64(2**64 - 1) - size, ends_of(start, size)
    if section.code_section is not None:
        inside = _in_sections(elf, section, start, end)
    else:
        try:
            inside = _in_segments(elf, start, end)
        except UnreadableError:
            return
    wrong = wraps | ~inside if section.code_section is None else (wraps | ~inside) & (section.code_section > 0)
    found.add_functions(
        "function-outside-code",
        section,
        wrong,
        lambda number: f"[{start[number]:#x}, +{size[number]:#x}) is not inside executable code",
    )


def _in_sections(elf: ElfFile, section: Section, start: np.ndarray, end: np.ndarray) -> Bools:
    """Which functions of a relocatable file lie inside an executable section."""
    assert section.code_section is not None
    headers = elf.sections
    index = section.code_section.clip(0, len(headers) - 1)
    executable = (headers["flags"][index] & elf_layout.SHF_EXECINSTR) != 0
    inside: Bools = executable & (end <= headers["size"][index]) & (start <= end)
    return inside


def _in_segments(elf: ElfFile, start: np.ndarray, end: np.ndarray) -> Bools:
    """Which functions of a linked file lie inside an executable segment."""
    inside = np.zeros(len(start), np.bool_)
    for low, high in zip(*elf.executable_ranges(), strict=True):
        inside |= (start >= low) & (end <= high) & (end >= start)
    return inside


def _unsorted(section: Section, found: Findings) -> None:
    """Linkers that know SFrame sort, and make starts count from the section where no flag says otherwise."""
    if not section.sorted:
        more = "" if section.pcrel else ", and it has left the starts relative to their fields, against the flags"
        found.add("section-unsorted", f"not marked as sorted: the linker does not support SFrame{more}", offset=3)


def _unrelocated(section: Section, found: Findings) -> None:
    assert section.code_section is not None
    unplaced = section.code_section <= 0
    found.add_functions("relocation-missing", section, unplaced, lambda _: "no relocation places this function")


def _kept_relocations(source: Source, elf: ElfFile, piece: SFrameSection, found: Findings) -> None:
    """A linked file can keep its relocations; they should still say where the functions are."""
    section = piece.section
    try:
        table, targets = source.relocations, source.relocation_targets
    except UnreadableError as error:
        found.add("relocation-mismatch", f"the kept relocations cannot be read: {error.message}")
        return
    kinds = [kind for (em, kind) in elf_layout.PC_RELATIVE if em == elf.machine]
    chosen = np.isin(table["type"], kinds)
    table, targets = table[chosen], targets[chosen]
    away = table["offset"].astype(np.int64) - piece.position - section.fde_start
    function = away // section.fde_size
    on_field = (away >= 0) & (away % section.fde_size == 0) & (function < len(section.functions))
    for entry in table[~on_field & (away >= 0) & (away < section.length)][:1]:
        found.add("relocation-mismatch", "a kept relocation is on no start field", offset=int(entry["offset"]))
    says = (targets["value"] + table["addend"]).view(np.uint64)
    known = np.flatnonzero(on_field & (targets["section"] >= 0))
    wrong = known[says[known] != section.code_address[function[known]]]

    def note(number: int) -> None:
        which = int(function[number])
        message = f"the kept relocation gives {int(says[number]):#x}, the field {int(section.code_address[which]):#x}"
        found.add("relocation-mismatch", message, offset=section.field_offset(which), function=which)

    found.add_all("relocation-mismatch", wrong, note)


def _plt_got(elf: ElfFile, section: Section, found: Findings) -> None:
    """GNU ld describes `.plt.got` as if something had been pushed."""
    if section.machine is not AMD64 or elf.is_relocatable:
        return
    rules = shape_rules(section, AMD64)
    functions = section.functions
    for index in elf.sections_named(".plt.got"):
        low, size = elf.sections["addr"][index], elf.sections["size"][index]
        inside = (section.code_address >= low) & (section.code_address - low < size)
        for function in np.flatnonzero(inside & (functions.pc_type == layout.PC_TYPE_MASK)).tolist():
            if not functions.rows[function]:
                continue
            cfa = rules["cfa"][section.row_shape[functions.first_row[function]]]
            if cfa["kind"] == PartKind.REGISTER and cfa["register"] == AMD64.sp and cfa["offset"] == 16:
                message = "the CFA in .plt.got is rsp+8, but the row has rsp+16"
                offset = section.field_offset(function)
                found.add("plt-got-row", message, offset=offset, function=function, row=0)
