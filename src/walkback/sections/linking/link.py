"""Sections of code that has addresses already, made one.

linked = link(["a.out", "plugin.sframe@0x7000"], "all.sframe", address=0x9000)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np

from walkback.base.arch import check_address
from walkback.base.errors import ArgumentError, GraftError, UnreadableError
from walkback.base.replace import Output, write_output
from walkback.elf import IN_MEMORY, ElfFile, Input, contents_of, is_archive, is_elf
from walkback.elf.inputs import split_address
from walkback.elf.write import align
from walkback.packages.found import refuse_packed
from walkback.sections.check import examine_for
from walkback.sections.linking.joining import Linked, linked
from walkback.sections.linking.make import Form, Made
from walkback.sections.linking.relink import link_object
from walkback.sframe.files import Source, read

_ALIGNMENT = 8


def link(
    files: Iterable[Input],
    output: Output,
    *,
    version: int | None = None,
    pcrel: bool | None = None,
    address: int | None = None,
    view: str = "execution",
    leave_out: bool = False,
    consumer: str | None = None,
    relocatable: bool = False,
) -> Linked:
    """Write one section, as raw bytes, with what all sections of one address space say.

    With `relocatable` the one file is a relocatable object, and the output is a copy of it whose sections are one.

    Files are linked ELF files, or raw section bytes with their address, as in `raw.sframe@0x4000`. The section is made
    for `address`, or else for the lowest address of those it is made of, or behind all code where that has no room. Its
    version is the highest of those, unless it is given. In the execution view it is one sorted index; in the linking
    view a complete section for each that there was. What the version cannot say raises `IncompleteError`, or is left
    out and reported with `leave_out`. A `consumer` ("linux" or "glibc") makes the version the one that it reads, and
    leaves out what it must not find.

    >>> linked = walkback.link(["concatenated"], "one.sframe")
    >>> linked.pieces, linked.functions
    (2, 3)
    """
    if relocatable:
        one = _one_object(files, address)
        return link_object(one, output, version=version, pcrel=pcrel, view=view, leave_out=leave_out, consumer=consumer)
    inputs = check_inputs(files, output)
    if address is not None:
        check_address(address)
    found = [source for file, address_of in inputs for source in _linked_sources(file, address_of)]
    form = Form.wanted(version, pcrel, consumer=consumer)
    lowest = min((source.address for source in found), default=0)
    made, account = linked(found, form, lowest if address is None else address, view, leave_out)
    if address is None and _code_under(made) is not None:
        made, account = linked(found, form, _behind_code(made), view, leave_out)
    over = _code_under(made)
    if over is not None:
        message = f"at {made.address:#x} the section would stand over the function at {over:#x}: choose another address"
        raise GraftError(message)
    if made.address + len(made.contents) > 2**64:
        raise GraftError(f"{len(made.contents)} bytes at {made.address:#x} run over the end of the address space")
    account.notes.extend(
        examine_for(
            [made.contents], os.fsdecode(output) if isinstance(output, str | os.PathLike) else IN_MEMORY, form.consumer
        )
    )
    write_output(output, [made.contents])
    return account


def _one_object(files: Iterable[Input], address: int | None) -> Input:
    objects = list(files)
    if len(objects) != 1:
        raise ArgumentError("one relocatable object is linked, such as `ld -r` makes of several")
    if address is not None:
        raise ArgumentError("the section of an object has no address; the linker places it")
    return objects[0]


def _behind_code(made: Made) -> int:
    """The first place behind all functions."""
    functions = zip(made.section.code_address.tolist(), made.section.functions.size.tolist(), strict=True)
    place = align(max(start + size for start, size in functions), _ALIGNMENT)
    if place >= 2**64:
        raise GraftError("there is no room at the lowest section, and none behind the code: choose an address")
    return place


def _code_under(made: Made) -> int | None:
    """Where the first function begins that the section would stand over."""
    start, end = np.uint64(made.address), min(made.address + len(made.contents), 2**64 - 1)
    code, size = made.section.code_address, made.section.functions.size.astype(np.uint64)
    last = code + np.maximum(size, np.uint64(1)) - np.uint64(1)  # an end can be one more than 64 bits hold
    over = code[(code < np.uint64(end)) & (last >= start) & (size > 0)]
    return int(over.min()) if len(over) else None


def check_inputs(files: Iterable[Input], output: Output) -> list[tuple[Input, int | None]]:
    """What `link` is given, each with its address; raises ArgumentError if they make no sense together."""
    if isinstance(files, str | bytes | bytearray | memoryview | os.PathLike | ElfFile) or hasattr(files, "read"):
        raise ArgumentError("link takes a list of files, not one file")
    inputs = [_split(file) for file in files]
    if not inputs:
        raise ArgumentError("there is no file to link")
    for source, address in inputs:
        data, name = contents_of(source)
        refuse_packed(data, name)
        if not is_elf(data) and not is_archive(data):
            if address is None and len(inputs) > 1:
                raise ArgumentError(f"of several files raw section bytes need their address: {name}@0x...")
        elif address is not None:
            raise ArgumentError(f"an address is for raw section bytes, and {name} has addresses of its own")
        elif isinstance(output, str | os.PathLike) and os.path.realpath(name) == os.path.realpath(output):
            raise ArgumentError(f"the section would take the place of the file {name}")
    return inputs


def _split(file: Input) -> tuple[Input, int | None]:
    return split_address(os.fsdecode(file)) if isinstance(file, str | os.PathLike) else (file, None)


def _linked_sources(file: Input, address: int | None) -> Iterator[Source]:
    data, name = contents_of(file)
    if is_archive(data):
        raise UnreadableError("this is an archive, whose members have no addresses", file=name)
    for source in read(file, address=address or 0):
        if source.relocatable:
            raise GraftError("this is a relocatable object; `walkback link -r` is for those", file=name)
        yield source
