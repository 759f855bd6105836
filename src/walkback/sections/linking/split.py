"""One SFrame section for each text section of an object, so that linkers keep and drop both together.

It goes with its text section by SHF_LINK_ORDER, and where that is in a section group it is in it too. In a group the
first would not be needed, but GNU ld before 2.36 wants it of all sections of a name or of none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError, LeftOut, UnreadableError
from walkback.base.replace import Output, write_output
from walkback.elf import ElfFile, Input, contents_of, in_pieces, is_archive, is_elf, layout, opened_file
from walkback.elf.sframe import SECTION_NAME
from walkback.elf.write import Part
from walkback.graft import ObjectSection, set_sections
from walkback.packages.found import refuse_packed
from walkback.sections.linking.gather import gather
from walkback.sections.linking.make import Form, Made, make, refuse_incomplete, text_section
from walkback.sections.linking.merge import merge
from walkback.sections.linking.objects import cut_sections, filled, groups, rewrite_files
from walkback.sframe.files import no_section, sources_of


@dataclass(slots=True)
class Split:
    """What became of the objects of a file."""

    objects: int = 0
    """The number of objects with SFrame."""
    sections: int = 0
    """The number of SFrame sections in the result."""
    grouped: int = 0
    """The number of them that are in a section group."""
    functions: int = 0
    """The number of functions written."""
    left_out: list[LeftOut] = field(default_factory=list)
    """The functions left out."""
    notes: list[str] = field(default_factory=list)
    """How duplicates and overlaps were resolved, as sentences."""


def split(
    source: Input,
    output: Output | None = None,
    *,
    version: int | None = None,
    pcrel: bool | None = None,
    suffix: bool = False,
    leave_out: bool = False,
) -> Split:
    """Write a copy of an object, or of an archive of objects, with one SFrame section for each text section.

    It goes with its text section by SHF_LINK_ORDER, and is in the section group that the text section is in. The
    version is the highest that there is unless it is given. With `suffix` its name ends in that of its text section:
    GNU ld since 2.46 keeps all code that sections named `.sframe` describe, but for one in each object.

    >>> walkback.split("inline.o", "split.o").sections
    2
    """
    data, name = contents_of(source)
    refuse_packed(data, name)
    if not is_elf(data) and not is_archive(data):
        raise UnreadableError("not an object or archive", file=name)
    if is_elf(data):
        _refuse_linked(ElfFile(data, name))
    result = Split()
    form = Form(version, pcrel)
    parts = rewrite_files(data, name, lambda elf: _object(elf, form, result, suffix, leave_out))
    if not result.objects:
        raise no_section(data, name)
    write_output(output, parts, read=opened_file(data))
    return result


def _object(elf: ElfFile, form: Form, result: Split, suffix: bool, leave_out: bool) -> Sequence[Part]:
    found = list(sources_of(elf))
    if not found:
        return list(in_pieces(elf.data))
    _refuse_linked(elf)
    result.objects += 1
    gathered = gather(found, leave_out=leave_out)
    if gathered is None:
        result.notes.append(f"{elf.name}: the .sframe section is empty and stays so")
        return list(in_pieces(elf.data))
    merged = merge(gathered)
    made = make(gathered, merged.table, form, address=None, key=text_section)
    if not leave_out:
        refuse_incomplete(made.left_out, form.version_for(gathered))
    if suffix and made.kind != layout.SHT_GNU_SFRAME:
        message = "without a type of their own, sections of this version are known by the name .sframe only"
        raise GraftError(message, file=elf.name)
    sections = list(_sections(elf, made, suffix))
    result.sections += len(sections)
    result.grouped += sum(one.group is not None for one in sections)
    result.functions += made.functions
    result.left_out += made.left_out
    result.notes += [f"{elf.name}: {line}" for line in merged.account()]
    return set_sections(elf, sections)


def _refuse_linked(elf: ElfFile) -> None:
    if not elf.is_relocatable:
        raise GraftError("this is a linked file; its text sections are one", file=elf.name)


def _sections(elf: ElfFile, made: Made, suffix: bool) -> Iterator[ObjectSection]:
    """Each section with what it stays and goes with."""
    group_of, names = groups(elf), elf.section_names()
    for text, contents, relocations in cut_sections(elf, made):
        name = SECTION_NAME + (names[text] if suffix else "")
        yield ObjectSection(filled(contents), relocations, made.kind, group_of.get(text), text, name)
