"""One relocatable object with one SFrame section, as kernel modules need.

linked = link_object("module.o", "module.ko")
"""

from __future__ import annotations

import os
from dataclasses import replace

from walkback.elf import ElfFile
from walkback.errors import GraftError, MissingError
from walkback.graft import set_sections
from walkback.linking.link import Linked, linked
from walkback.linking.make import Form
from walkback.linking.missing import missing
from walkback.linking.objects import object_section
from walkback.replace import replace_file
from walkback.sframe.files import NO_SECTION, sources_of
from walkback.sframe.rules import to_table


def link_object(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str] | None = None,
    *,
    version: int | None = None,
    pcrel: bool | None = None,
    view: str = "execution",
    leave_out: bool = False,
    consumer: str | None = None,
) -> Linked:
    """Write a copy of a relocatable object that has one SFrame section, with right relocations.

    It takes the place of the object unless there is an `output`. In the linking view there is a complete section for
    each text section. The rest is as for `link`.
    """
    elf = ElfFile.open(path)
    if not elf.is_relocatable:
        message = "this is not a relocatable object"
        raise GraftError(message, file=elf.name)
    found = list(sources_of(elf))
    if not found:
        raise MissingError(NO_SECTION, file=elf.name)
    made, account = linked(found, Form.wanted(version, pcrel, consumer=consumer), None, view, leave_out)
    replace_file(output, set_sections(elf, [object_section(elf, made)]), read=elf.file)
    return replace(account, notes=[*account.notes, *missing(elf, to_table(made.section))])
