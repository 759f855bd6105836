"""One relocatable object with one SFrame section, as kernel modules need.

linked = link_object("module.o", "module.ko")
"""

from __future__ import annotations

from dataclasses import replace

from walkback.base.errors import GraftError
from walkback.base.replace import Output, write_output
from walkback.elf import Input
from walkback.graft import set_sections
from walkback.packages.found import one_to_rewrite
from walkback.sections.linking.joining import Linked, linked
from walkback.sections.linking.make import Form
from walkback.sections.linking.missing import missing
from walkback.sections.linking.objects import object_section
from walkback.sframe.files import no_section, sources_of
from walkback.sframe.rules import to_table


def link_object(
    source: Input,
    output: Output | None = None,
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
    elf = one_to_rewrite(source)
    if not elf.is_relocatable:
        raise GraftError("this is not a relocatable object", file=elf.name)
    found = list(sources_of(elf))
    if not found:
        raise no_section(elf.data, elf.name)
    made, account = linked(found, Form.wanted(version, pcrel, consumer=consumer), None, view, leave_out)
    write_output(output, set_sections(elf, [object_section(elf, made)]), read=elf.file)
    return replace(account, notes=[*account.notes, *missing(elf, to_table(made.section))])
