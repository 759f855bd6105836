"""A section made for the place where it will stand in a linked file."""

from __future__ import annotations

from collections.abc import Sequence

from walkback.base.dataclass import dataclass
from walkback.base.errors import GraftError
from walkback.elf import ElfFile
from walkback.elf.write import Part
from walkback.graft import Rewriting
from walkback.sections.linking.gather import Gathered
from walkback.sections.linking.make import Form, Made, make
from walkback.table.table import UnwindTable

_MOST_PLACES = 8
"""What can be reached, and so the size, depends on the place, and the place on the size."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A section and the file that has it."""

    made: Made
    parts: Sequence[Part]
    notes: list[str]


def place(elf: ElfFile, gathered: Gathered, table: UnwindTable, form: Form) -> Placed:
    """Make the section of a linked file for its place, which can depend on its size, and put it there."""
    rewriting = Rewriting(elf)
    made = make(gathered, table, form, address=rewriting.address(0))
    for _ in range(_MOST_PLACES):
        address = rewriting.address(len(made.contents))
        if address == made.address:
            break
        made = make(gathered, table, form, address=address)
    else:
        raise GraftError("the section has another size in every place that it would fit", file=elf.name)
    grafted = rewriting.write(lambda _: bytes(made.contents), len(made.contents), made.kind)
    return Placed(made, grafted.parts, grafted.notes)
