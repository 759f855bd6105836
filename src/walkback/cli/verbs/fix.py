"""`walkback fix`: a linked file whose SFrame readers cannot use, made right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import counted
from walkback.cli.command import verb
from walkback.cli.consumer import FOR
from walkback.cli.paths import INPUT_FILE, output_for
from walkback.cli.written import (
    EXIT_1,
    IN_PLACE,
    VERSION,
    Writing,
    options,
    print_done,
    run,
    versions_text,
    wanted_pcrel,
)

if TYPE_CHECKING:
    from walkback.cli.written import Written


class FixedObject(TypedDict):
    """The type of the object, as JSON."""

    type: Literal["fixed"]
    """The type of the object."""


@verb(
    "walkback fix concatenated",
    "walkback fix concatenated -o fixed",
    exit_1=EXIT_1,
)
@click.argument("file", type=INPUT_FILE)
@IN_PLACE
@VERSION
@FOR
@options
@click.pass_context
def fix(
    ctx: click.Context,
    file: str,
    output: str | None,
    version: int | None,
    consumer: str | None,
    pcrel: str | None,
    leave_out: bool,
    strict: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Merge and sort a linked file's SFrame; add its program header.

    The verb reports what was wrong: sections that a linker put one after the other, unsorted, duplicate or dead
    functions, a wrong section type, a missing or wrong program header. It leaves a correct file alone.
    """
    from walkback.sections.linking.fix import fix as fix_file

    output = output_for(file, output)
    own_fields, how = wanted_pcrel(pcrel, version, consumer), Writing(strict, limit, as_json, output)

    def work() -> Written:
        done = fix_file(file, output, version=version, pcrel=own_fields, leave_out=leave_out, consumer=consumer)
        lines = [f"{file}: fixed: {problem}" for problem in done.problems]
        if done.changed:
            what = f"{counted(done.functions, 'function')}, {counted(done.rows, 'row')}, {done.bytes} bytes"
            lines.append(f"{file}: {versions_text(done.versions, done.version)}: {what} at {done.address:#x}")
        else:
            lines.append(f"{file}: nothing to fix")
        kind: FixedObject = {"type": "fixed"}
        print_done(kind, file, done, lines, how)
        return done

    ctx.exit(run(file, work, how))
