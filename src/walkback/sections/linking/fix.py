"""A linked file whose SFrame no reader can use, or not whole, made right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError, LeftOut, MissingError
from walkback.base.oneline import OneLine
from walkback.base.replace import Output, write_output
from walkback.base.text import counted
from walkback.elf import ElfFile, Input, in_pieces
from walkback.packages.found import one_to_rewrite
from walkback.sections.check import examine_for
from walkback.sections.linking.gather import Gathered, gather
from walkback.sections.linking.make import Form, refuse_incomplete
from walkback.sections.linking.merge import merge
from walkback.sections.linking.missing import missing
from walkback.sections.linking.place import place
from walkback.sections.linking.problems import find_problems
from walkback.sframe.files import Source, no_section, sources_of
from walkback.sframe.fitting import fit
from walkback.table.table import UnwindTable


@dataclass(frozen=True, slots=True, repr=False)
class Fixed(OneLine):
    """What was wrong, and what became of it."""

    problems: list[str]
    """What was wrong, as sentences."""
    changed: bool
    """Whether the section was rewritten: a file without problems stays as it is."""
    version: int
    """The version of the result."""
    versions: tuple[int, ...]
    """The versions in the input."""
    functions: int
    """The number of functions in the result."""
    rows: int
    """The number of rows in the result."""
    address: int
    """The address of the result."""
    bytes: int
    """The size of the result."""
    left_out: list[LeftOut]
    """The functions left out."""
    notes: list[str]
    """Other changes, and what the file has no SFrame of, as sentences."""


def fix(
    source: Input,
    output: Output | None = None,
    *,
    version: int | None = None,
    pcrel: bool | None = None,
    leave_out: bool = False,
    consumer: str | None = None,
) -> Fixed:
    """Write a copy of a linked file whose SFrame is one sorted section, which its headers describe.

    It takes the place of the file unless there is an `output`; where nothing is wrong the file is left alone. Functions
    are settled as `link` does. The version is the highest that there is unless it is given. A `consumer` ("linux" or
    "glibc") makes it the one that it reads, and leaves out what it must not find.

    >>> walkback.fix("concatenated", "fixed").problems
    ['2 complete sections follow each other, and readers see the first', 'the functions are not marked ...
    """
    elf = one_to_rewrite(source)
    found = _found_in(elf)
    gathered = gather(found, leave_out=leave_out)
    if gathered is None:
        raise MissingError("the .sframe section is empty: there is nothing to fix", file=elf.name)
    form = Form.wanted(version, pcrel, consumer=consumer)
    merged = merge(gathered)
    problems = [*find_problems(elf, gathered, merged), *_unfit(elf, merged.table, form)]
    if not problems and _has_form(gathered, form):
        if output is not None:
            write_output(output, in_pieces(elf.data), read=elf.file)
        return _unchanged(elf, found, gathered, merged.table)
    placed = place(elf, gathered, merged.table, form)
    made = placed.made
    if not leave_out:
        refuse_incomplete(made.left_out, form.version_for(gathered))
    examined = examine_for(placed.parts, elf.name, form.consumer)
    write_output(output, placed.parts, read=elf.file)
    return Fixed(
        problems=problems,
        changed=True,
        version=form.version_for(gathered),
        versions=gathered.versions,
        functions=made.functions,
        rows=made.rows,
        address=made.address,
        bytes=len(made.contents),
        left_out=made.left_out,
        notes=[*made.fitting, *placed.notes, *missing(elf, merged.table), *examined],
    )


def _found_in(elf: ElfFile) -> list[Source]:
    """The sections of a linked file; raises GraftError of an object, and MissingError if there are none."""
    if elf.is_relocatable:
        raise GraftError("this is a relocatable object; `walkback link -r` is for those", file=elf.name)
    found = list(sources_of(elf))
    if not found:
        raise no_section(elf.data, elf.name)
    return found


def _has_form(gathered: Gathered, form: Form) -> bool:
    """Whether what there is has the version and the kind of starts that are wanted."""
    return gathered.versions == (form.version_for(gathered),) and gathered.pcrel == form.pcrel_for(gathered)


def _unchanged(elf: ElfFile, found: list[Source], gathered: Gathered, table: UnwindTable) -> Fixed:
    """What there is to say of a file in which nothing is wrong."""
    return Fixed(
        problems=[],
        changed=False,
        version=gathered.version,
        versions=gathered.versions,
        functions=len(gathered.table),
        rows=len(gathered.table.row_offset),
        address=found[0].address,
        bytes=sum(len(source.data) for source in found),
        left_out=[],
        notes=missing(elf, table),
    )


def _unfit(elf: ElfFile, table: UnwindTable, form: Form) -> Iterator[str]:
    """What the consumer must not find, or does not find."""
    fitted = fit(table, form.consumer, [elf])
    for reason, count in Counter(fitted.unwanted.values()).items():
        yield f"{counted(count, 'function')}: {reason}"
    if fitted.extended:
        yield f"{counted(fitted.extended, 'function')} not covering where the call at the end returns"
