"""SFrame put into finished files and taken out again: derived, proved, and only then written.

added = add("a.out", "a.out.sframe")
print(added.derived.covered, "functions at", hex(added.address))
"""

from __future__ import annotations

from collections.abc import Sequence

from walkback import graft
from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError, MissingError, UnreadableError
from walkback.base.oneline import OneLine
from walkback.base.replace import Output, write_output
from walkback.elf import ElfFile, Input, contents_of, in_pieces, is_archive, opened_file
from walkback.elf.write import Part
from walkback.packages.found import one_to_rewrite
from walkback.sections.check import examine_for
from walkback.sections.derive import Derived, derive
from walkback.sections.linking.objects import rewrite_files
from walkback.sections.reading import Tables, missing_words
from walkback.sframe.consumers import consumer_named
from walkback.table.comparing import Comparison


@dataclass(frozen=True, slots=True, repr=False)
class Added(OneLine):
    """What was put into a file."""

    derived: Derived
    proof: Comparison
    address: int
    """Where the section is loaded; 0 in relocatable files."""
    notes: list[str]
    """What had to be done besides."""


def add(
    source: Input,
    output: Output | None = None,
    *,
    version: int | None = None,
    consumer: str | None = None,
    section: str | None = None,
    tables: Tables = "auto",
    verify: bool = False,
    repair: bool = False,
) -> Added:
    """Derive the section of a file, prove it, and write a copy of the file that has it.

    The copy takes the place of the file unless there is an `output`. `consumer` ("linux", "glibc", or for objects
    "gnu-ld") chooses the version that it reads, and leaves out what would end its walk; what it would reject raises
    `GraftError`, and so does a section that is not proved. Then nothing is written. `verify` leaves out functions whose
    rules the machine code contradicts, and `repair` gives them the rules that it proves.

    >>> added = walkback.add("hello", "hello.sframe")
    >>> hex(added.address), walkback.ElfFile("hello.sframe").sframe
    ('0x3ff190', [SFrameSection(version=3, functions=3, rows=8, position=0)])
    """
    # It stays open: names and sections are asked for when the result is printed.
    elf = one_to_rewrite(source)
    added, parts = _with_section(elf, version, consumer, section, tables, verify=verify, repair=repair)
    write_output(output, parts, read=elf.file)
    return added


def add_to_archive(
    source: Input,
    output: Output | None = None,
    *,
    version: int | None = None,
    consumer: str | None = None,
    section: str | None = None,
    tables: Tables = "auto",
    verify: bool = False,
    repair: bool = False,
) -> list[Added]:
    """Do the same for every object of an archive that has unwind tables; the other members stay as they are.

    >>> [added.derived.covered for added in walkback.add_to_archive("libhello.a", "with.a")]
    [3]
    """
    data, name = contents_of(source)
    if not is_archive(data):
        raise UnreadableError("this is not an archive", file=name)
    done: list[Added] = []

    def changed(elf: ElfFile) -> Sequence[Part]:
        try:
            added, parts = _with_section(elf, version, consumer, section, tables, verify=verify, repair=repair)
        except MissingError:
            return list(in_pieces(elf.data))
        done.append(added)
        return parts

    parts = rewrite_files(data, name, changed)
    if not done:
        raise MissingError(f"{missing_words(tables, section)} in any member", file=name)
    write_output(output, parts, read=opened_file(data))
    return done


def _with_section(
    elf: ElfFile,
    version: int | None,
    consumer: str | None,
    section: str | None,
    tables: Tables,
    *,
    verify: bool,
    repair: bool,
) -> tuple[Added, Sequence[Part]]:
    """What is to be put into a file, and the parts of the copy that has it."""
    derived = derive(
        elf, version=version, section=section, tables=tables, consumer=consumer, verify=verify, repair=repair
    )
    proof = derived.proof()
    if not proof.equal:
        message = "the derived section does not say what the tables of the file say; nothing is written"
        raise GraftError(message, file=elf.name)
    if elf.is_relocatable:
        grafted = graft.add_to_object(elf, derived.contents, derived.relocations())
    else:
        grafted = graft.add(elf, derived.contents_at, len(derived.contents))
    examined = None if consumer is None else consumer_named(consumer)
    notes = [*grafted.notes, *examine_for(grafted.parts, elf.name, examined)]
    return Added(derived, proof, grafted.address, notes), grafted.parts


@dataclass(frozen=True, slots=True)
class Dropped:
    """What `drop` did."""

    restored: bool
    """Whether the file is what it was before `add`; otherwise the bytes of the section became zeros."""
    former_bytes: int
    """Of the file."""
    bytes: int


def drop(source: Input, output: Output | None = None) -> Dropped:
    """Write a copy of a file without its SFrame section; it takes the place of the file unless there is an `output`.

    >>> added = walkback.add("hello", "hello.sframe")
    >>> walkback.drop("hello.sframe").restored
    True
    """
    elf = one_to_rewrite(source)
    parts = graft.drop(elf)
    done = Dropped(graft.is_recorded(elf), len(elf.data), sum(map(len, parts)))
    write_output(output, parts, read=elf.file)
    return done
