"""Sections of code that has addresses already, made one.

linked = link(["a.out", "plugin.sframe@0x7000"], "all.sframe", address=0x9000)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from walkback.checking import examine_for
from walkback.elf import OpenFile, is_archive, is_elf
from walkback.elf.inputs import split_address
from walkback.elf.write import align
from walkback.errors import ArgumentError, GraftError, LeftOut, MissingError, UnreadableError
from walkback.linking.gather import gather
from walkback.linking.make import Form, Made, make, refuse_incomplete, text_section
from walkback.linking.merge import merge
from walkback.replace import replace_file
from walkback.sframe.build import check_address
from walkback.sframe.files import Source, sources

_ALIGNMENT = 8
VIEWS = ("execution", "linking")


@dataclass(frozen=True, slots=True)
class Linked:
    """A section made of others."""

    version: int
    versions: tuple[int, ...]
    """Which there were."""
    pieces: int
    """How many complete sections there were."""
    functions: int
    """Those that are written."""
    rows: int
    address: int
    """What it was made for; 0 in objects."""
    bytes: int
    left_out: list[LeftOut]
    notes: list[str]
    """What was said twice or for nothing."""


def link(
    files: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    version: int | None = None,
    pcrel: bool | None = None,
    address: int | None = None,
    view: str = "execution",
    leave_out: bool = False,
    consumer: str | None = None,
) -> Linked:
    """Write one section, as raw bytes, with what all sections of one address space say.

    Files are linked ELF files, or raw section bytes with their address, as in `raw.sframe@0x4000`. The section is made
    for `address`, or else for the lowest address of those it is made of, or behind all code where that has no room. Its
    version is the highest of those, unless it is given. In the execution view it is one sorted index; in the linking
    view a complete section for each that there was. What the version cannot say raises `IncompleteError`, or is left
    out and told with `leave_out`. A `consumer` ("linux" or "glibc") makes the version the one that it reads, and leaves
    out what it must not find.
    """
    inputs = check_inputs(files, output)
    if address is not None:
        check_address(address)
    found = [source for name, address_of in inputs for source in _linked_sources(name, address_of)]
    form = Form.wanted(version, pcrel, consumer=consumer)
    made, account = linked(found, form, _lowest(found) if address is None else address, view, leave_out)
    if address is None and _code_under(made) is not None:
        made, account = linked(found, form, _behind_code(made), view, leave_out)
    over = _code_under(made)
    if over is not None:
        message = f"at {made.address:#x} the section would stand over the function at {over:#x}: choose another address"
        raise GraftError(message)
    if made.address + len(made.contents) > 2**64:
        message = f"{len(made.contents)} bytes at {made.address:#x} run over the end of the address space"
        raise GraftError(message)
    account.notes.extend(examine_for([made.contents], output, form.consumer))
    replace_file(output, [made.contents])
    return account


def _lowest(found: Sequence[Source]) -> int:
    return min((source.address for source in found), default=0)


def _behind_code(made: Made) -> int:
    """The first place behind all functions."""
    functions = zip(made.section.code_address.tolist(), made.section.functions.size.tolist(), strict=True)
    place = align(max(start + size for start, size in functions), _ALIGNMENT)
    if place >= 2**64:
        message = "there is no room at the lowest section, and none behind the code: choose an address"
        raise GraftError(message)
    return place


def _code_under(made: Made) -> int | None:
    """Where the first function begins that the section would stand over."""
    start, end = np.uint64(made.address), min(made.address + len(made.contents), 2**64 - 1)
    code, size = made.section.code_address, made.section.functions.size.astype(np.uint64)
    last = code + np.maximum(size, np.uint64(1)) - np.uint64(1)  # an end can be one more than 64 bits hold
    over = code[(code < np.uint64(end)) & (last >= start) & (size > 0)]
    return int(over.min()) if len(over) else None


def check_inputs(
    files: Iterable[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> list[tuple[str, int | None]]:
    """The paths and addresses that `link` is given; raises ArgumentError if they make no sense together."""
    inputs = [split_address(os.fsdecode(file)) for file in files]
    if not inputs:
        message = "there is no file to link"
        raise ArgumentError(message)
    for name, address in inputs:
        data = OpenFile(name)
        if not is_elf(data) and not is_archive(data):
            if address is None and len(inputs) > 1:
                message = f"of several files raw section bytes need their address: {name}@0x..."
                raise ArgumentError(message)
        elif address is not None:
            message = f"an address is for raw section bytes, and {name} has addresses of its own"
            raise ArgumentError(message)
        elif os.path.realpath(name) == os.path.realpath(output):
            message = f"the section would take the place of the file {name}"
            raise ArgumentError(message)
    return inputs


def _linked_sources(name: str, address: int | None) -> Iterator[Source]:
    if is_archive(OpenFile(name)):
        message = "this is an archive, whose members have no addresses"
        raise UnreadableError(message, file=name)
    for source in sources(name, address=address or 0):
        if source.relocatable:
            message = "this is a relocatable object; `walkback link -r` is for those"
            raise GraftError(message, file=name)
        yield source


def linked(found: Sequence[Source], form: Form, address: int | None, view: str, leave_out: bool) -> tuple[Made, Linked]:
    """What is made of these sections, which are of one address space, or without an `address` of one object."""
    if view not in VIEWS:
        message = f"the view is execution or linking, not {view!r}"
        raise ArgumentError(message)
    if view == "linking" and address is not None and form.consumer is not None:
        message = f"{form.consumer.title} sees only the first of several sections"
        raise ArgumentError(message)
    gathered = gather(found, leave_out=leave_out)
    if gathered is None:
        message = "the .sframe section is empty: there is nothing to link"
        raise MissingError(message)
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
