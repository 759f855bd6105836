"""The unwind tables of a file, proved against its machine code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from walkback.base.arrays import U64, distinct
from walkback.base.errors import MissingError, WalkbackError
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile, Input, layout
from walkback.elf.golang import FUNCTIONS, is_go
from walkback.elf.inputs import raise_first
from walkback.elf.kernel import ENTRIES
from walkback.packages.found import found_elf_files, input_name
from walkback.proof.prove import Prover
from walkback.sections.explain import Explanation
from walkback.sections.pairs import OTHERS, other_table, sframe_table
from walkback.sections.verified import Mismatch, Verified
from walkback.table.table import UnwindTable

RESTS_ON = (
    "functions begin as the ABI says, callees keep the registers that the ABI says, and no store "
    "through a pointer writes to the places where registers are saved"
)
"""What a verdict of the proof rests on."""

_GO_HINT = f"; --table {FUNCTIONS[0]} verifies the table of Go's functions"
_Stretch = tuple[int, int]
"""Where code begins in the image, and ends."""


def verify(source: Input, *, table: str | None = None, function: str | None = None) -> Iterator[Verified]:
    """Prove each unwind table of a file, or of each ELF file in an archive or package, against its machine code.

    `table` chooses one by the name of its section, `function` the functions of that name.

    >>> [verified] = walkback.verify("hello")
    >>> verified.proved, verified.wrong, verified.reasons
    (38, 0, {'expression': 6})
    """
    some = has_go = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            for one in verified_tables(elf, table=table, function=function):
                some = True
                yield one
                del one  # the next one needs its memory
            has_go = has_go or (not some and _has_go(elf))
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        raise MissingError(_nothing(table, function, has_go=has_go), file=input_name(source))


def explained(source: Input, wanted: str, *, table: str | None = None) -> Iterator[tuple[Verified, Explanation]]:
    """The functions of a name, or the one that holds an address, given as `0x1234` or `.text+0x12`, from each table."""
    some = absent = is_given = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            prover = Prover(elf)
            given = [prover.image_address(*place) for place in _given(elf, wanted)]
            is_given |= bool(given)
            stretches = [(address, address + 1) for address in given] or _named(prover, wanted)
            for one, only in _verified_tables(prover, table, stretches):
                for address in distinct(only).tolist():
                    if one.proof.unit_of(address) is None:
                        absent = True
                        continue
                    some = True
                    yield one, one.explain(address)
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        message = f"the code of {wanted} is not in the file" if absent else _nothing(table, wanted, is_code=is_given)
        raise MissingError(message, file=input_name(source))


def _has_go(elf: ElfFile) -> bool:
    if not is_go(elf):
        return False
    from walkback.gopclntab.files import go_source

    return go_source(elf) is not None


def _nothing(table: str | None, function: str | None, *, is_code: bool = False, has_go: bool = False) -> str:
    """What was looked for in vain: a function by its name, code by its address, or any table."""
    if is_code:
        return f"no table describes code at {function}"
    if function is not None:
        where = f"in the table {table}" if table is not None else "with a table"
        return f"there is no function {function!r} {where}"
    if table is not None:
        return f"there is no table {table}"
    return "there is no .eh_frame, .debug_frame or .sframe section" + (_GO_HINT if has_go else "")


def verified_tables(
    elf: ElfFile, *, table: str | None = None, function: str | None = None, sources: Iterable[FrameSource] | None = None
) -> Iterator[Verified]:
    """What `verify` yields for one ELF file; nothing where it has no such table or function."""
    prover = Prover(elf, sources)
    stretches = None if function is None else _named(prover, function)
    for verified, _ in _verified_tables(prover, table, stretches):
        yield verified
        del verified  # the next one needs its memory


def _verified_tables(
    prover: Prover, table: str | None, stretches: Sequence[_Stretch] | None
) -> Iterator[tuple[Verified, U64]]:
    """Each table, or those that describe code in these stretches, with the functions there."""
    elf = prover.given
    if stretches is not None and not stretches:
        return
    sources: list[tuple[str, UnwindTable, FrameSource | None]] = []
    own = other_table(elf, ENTRIES if table is None else table) if table in {None, *OTHERS} else None
    sources += [] if own is None else [(own.name, own.table, None)]
    if table in OTHERS:
        pass
    elif table is None or "sframe" not in table:
        chosen = prover.sources if table is None else frame_sources(elf, section=table)
        sources += [(source.name, source.table, source) for source in chosen]
    if table is None or "sframe" in table:
        found = sframe_table(elf, section=table)
        sources += [] if found is None else [(found.name, found.table, None)]
    for name, unwind, source in sources:
        only = np.zeros(0, np.uint64) if stretches is None else _described(prover, unwind, stretches)
        if stretches is None or len(only):
            wanted = None if stretches is None else only
            yield Verified(elf, name, prover.prove(unwind, source, only=wanted), prover), only


def mismatches_at(elf: ElfFile, addresses: U64) -> Iterator[Mismatch]:
    """What is wrong in the call frame information of a linked file at one of these addresses."""
    prover = Prover(elf)
    for source in prover.sources:
        number, _ = source.table.find_many(addresses)
        only = source.table.range_start[number[number >= 0]]
        verified = Verified(elf, source.name, prover.prove(source.table, source, only=only), prover)
        for one in verified.mismatches:
            away = addresses - np.uint64(one.address)  # of those in front it is larger than all code
            if (away < np.uint64(one.bytes)).any():
                yield one


def _named(prover: Prover, function: str) -> list[_Stretch]:
    """The code of the functions of a name: FDEs may begin within it, or before it."""
    found = []
    for section, place in {*prover.symbols.lookup(function), *prover.symbols.lookup_shown(function)}:
        begin = prover.image_address(section, place)
        found.append((begin, begin + max(1, prover.symbols.size_at(place, section))))
    return found


def _described(prover: Prover, table: UnwindTable, stretches: Iterable[_Stretch]) -> U64:
    """Where the functions of a table begin that hold the beginnings of stretches, or begin within them."""
    start = prover.image.addresses(table.range_start, table.range_section)
    last = start + np.minimum(table.range_size.astype(np.uint64) - np.uint64(1), ~start)
    some = (table.range_size > 0) & (start <= last)
    chosen = np.zeros(len(start), np.bool_)
    for begin, end in stretches:
        if begin >= 2**64:
            continue
        behind = some & (last >= np.uint64(begin))
        holding = behind & (start <= np.uint64(begin))
        chosen |= holding if holding.any() else behind & (start < np.uint64(min(end, 2**64 - 1)))
    found: U64 = start[chosen]
    return found


def _given(elf: ElfFile, wanted: str) -> set[tuple[int, int]]:
    """The sections, -1 in a linked file, and the place of an address; in an object one without a section is in all."""
    name, plus, number = wanted.rpartition("+")
    try:
        place = int(number, 0)
    except ValueError:
        return set()
    if place < 0 or bool(name) != bool(plus) or (name and not elf.is_relocatable):
        return set()
    if not elf.is_relocatable:
        return {(-1, place)}
    executable = np.flatnonzero(elf.sections["flags"] & layout.SHF_EXECINSTR != 0).tolist()
    return {(one, place) for one in (elf.sections_named(name) if name else executable)}
