"""What is made of several sections that become one, and the account of it."""

from __future__ import annotations

from collections.abc import Sequence

from walkback.base.dataclass import dataclass
from walkback.base.errors import ArgumentError, LeftOut, MissingError
from walkback.sections.linking.gather import gather
from walkback.sections.linking.make import Form, Made, make, refuse_incomplete, text_section
from walkback.sections.linking.merge import merge
from walkback.sframe.files import Source

VIEWS = ("execution", "linking")


@dataclass(frozen=True, slots=True)
class Linked:
    """A section made of others."""

    version: int
    """The version written."""
    versions: tuple[int, ...]
    """The versions in the input."""
    pieces: int
    """The number of complete sections in the input."""
    functions: int
    """The number of functions written."""
    rows: int
    """The number of rows written."""
    address: int
    """The address that the section is for; 0 in objects."""
    bytes: int
    """The size of the section."""
    left_out: list[LeftOut]
    """The functions left out."""
    notes: list[str]
    """How duplicates and overlaps were resolved, as sentences."""


def linked(found: Sequence[Source], form: Form, address: int | None, view: str, leave_out: bool) -> tuple[Made, Linked]:
    """What is made of these sections, which are of one address space, or without an `address` of one object."""
    if view not in VIEWS:
        raise ArgumentError(f"the view is execution or linking, not {view!r}")
    if view == "linking" and address is not None and form.consumer is not None:
        raise ArgumentError(f"{form.consumer.title} sees only the first of several sections")
    gathered = gather(found, leave_out=leave_out)
    if gathered is None:
        raise MissingError("the .sframe section is empty: there is nothing to link")
    merged = merge(gathered)
    key = None
    if view == "linking":
        key = text_section if address is None else gathered.piece_of
    made = make(gathered, merged.table, form, address=address, key=key)
    version = form.version_for(gathered)
    if not leave_out:
        refuse_incomplete(made.left_out, version)
    account = Linked(
        version=version,
        versions=gathered.versions,
        pieces=gathered.pieces,
        functions=made.functions,
        rows=made.rows,
        address=made.address,
        bytes=len(made.contents),
        left_out=made.left_out,
        notes=[*merged.account(), *made.fitting],
    )
    return made, account
