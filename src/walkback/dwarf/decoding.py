"""Bytes of `.eh_frame` and `.debug_frame` to `Frames`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from walkback.base.arch import AARCH64, ByteOrder, Machine, check_address, check_byteorder, machine_of
from walkback.base.errors import DwarfError
from walkback.dwarf import _entries, _program
from walkback.dwarf._instruction import ProgramReader
from walkback.dwarf.frames import Cies, Fdes, Frames
from walkback.dwarf.layout import DW_EH_PE_INDIRECT, DW_EH_PE_OMIT, EntryFault

Buffer = bytes | bytearray | memoryview


def decode(
    data: Buffer,
    machine: str | Machine,
    *,
    address: int = 0,
    eh: bool = True,
    byteorder: ByteOrder = "little",
    text: int = 0,
    got: int = 0,
    pointer_at: Callable[[int], int | None] = lambda _: None,
    faults: bool = False,
    programs: bool = True,
) -> Frames:
    """Read a section that is loaded at `address`, and run its programs.

    `text` and `got` are what starts with those encodings count from; `pointer_at` gives the pointer that stands at an
    address, for indirect starts. The first FDE that cannot be read raises `DwarfError`; with `faults` it keeps its
    place, its fault and the rows before the fault. Without `programs` none is run, and there are no rows.

    >>> [source] = walkback.dwarf.read("hello")
    >>> frames = walkback.dwarf.decode(source.data, source.machine, address=source.address)
    >>> len(frames.fdes), len(walkback.dwarf.to_table(frames))
    (4, 4)
    """
    machine = machine_of(machine)
    check_byteorder(byteorder)
    check_address(address)
    view = memoryview(data).cast("B")
    big = byteorder == "big"
    position, end, fields, names, stop = _entries.scan(view, eh, big)
    is_cie = names < 0
    cies = Cies.zeros(int(is_cie.sum()), position=position[is_cie], end=end[is_cie], fields=fields[is_cie])
    cie_reader = _entries.CieReader(view, big, address, cies)
    cie_reader.read_all()
    is_fde = ~is_cie
    fdes = Fdes.zeros(int(is_fde.sum()), position=position[is_fde], end=end[is_fde], fields=fields[is_fde])
    _name_cies(fdes, cies, names[is_fde])
    _entries.read_fdes(cie_reader, text, got, fdes)
    _follow_indirect(fdes, cies, pointer_at)
    row_offset, row_rule = np.zeros((2, 0), np.uint32)
    row_touched, words = np.zeros(0, np.uint8), np.zeros(0, np.uint64)
    if programs:
        reader = ProgramReader(view, big, address, text, got, machine is AARCH64, cies, fdes)
        fdes.rows, row_offset, row_rule, row_touched, words = _program.interpret(
            reader, cies, fdes, machine.sp, machine.fp
        )
        fdes.first_row = np.cumsum(fdes.rows) - fdes.rows
    frames = Frames(
        machine=machine,
        data=view,
        address=address,
        text=text,
        got=got,
        byteorder=byteorder,
        eh=eh,
        cies=cies,
        fdes=fdes,
        row_offset=row_offset,
        row_rule=row_rule,
        row_touched=row_touched,
        rule_words=words,
        stop=None if stop < 0 else stop,
        code_section=np.full(len(fdes), -1, np.int32),
    )
    if not faults:
        _raise_fault(frames)
    return frames


def _name_cies(fdes: Fdes, cies: Cies, pointers: np.ndarray) -> None:
    """Turn the pointers of FDEs into numbers of CIEs."""
    if not len(cies):
        fdes.fault[:] = EntryFault.CIE_POINTER
        return
    number = np.minimum(cies.position.searchsorted(pointers), len(cies) - 1)
    fdes.fault[cies.position[number] != pointers] = EntryFault.CIE_POINTER
    fdes.cie = number


def _follow_indirect(fdes: Fdes, cies: Cies, pointer_at: Callable[[int], int | None]) -> None:
    """Starts that say where a pointer stands."""
    if not len(cies):
        return
    encoding = cies.fde_encoding[fdes.cie]
    chosen = (encoding & DW_EH_PE_INDIRECT != 0) & (encoding != DW_EH_PE_OMIT) & (fdes.fault == 0)
    for index in np.flatnonzero(chosen).tolist():
        value = pointer_at(int(fdes.start[index]))
        if value is None:
            fdes.fault[index] = EntryFault.INDIRECT
        else:
            fdes.start[index] = value


def check_length(frames: Frames) -> None:
    """Raise an error if an entry reaches beyond the end of the section."""
    if frames.stop is not None:
        raise DwarfError("an entry reaches beyond the end of the section", offset=frames.stop, rule="cfi-length")


def _raise_fault(frames: Frames) -> None:
    check_length(frames)
    wrong = np.flatnonzero(frames.fdes.fault)
    if len(wrong):
        first = int(wrong[0])
        fault = EntryFault(int(frames.fdes.fault[first]))
        rule = "cfi-" + fault.name.lower().replace("_", "-")
        raise DwarfError(fault.words, offset=int(frames.fdes.position[first]), function=f"FDE {first}", rule=rule)
