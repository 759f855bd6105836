"""`walkback store DIR names`: which code has names, and looking up those that are missing."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, TypedDict

import click

from walkback.base.text import counted, printable
from walkback.cli.command import verb
from walkback.cli.output import EXIT_FINDINGS, EXIT_FINE, JSON, guarded
from walkback.cli.searching import Searching, file_options
from walkback.cli.walking import complain_of

if TYPE_CHECKING:
    from walkback.store.known import NamedFile


@verb("walkback store stacks names", "walkback store stacks names --update", exit_1="not all frames have names.")
@click.option("--update", is_flag=True, help="Look for names in files again, and keep those that are new.")
@file_options
@JSON
@click.pass_context
def names(ctx: click.Context, /, update: bool, searching: Searching, as_json: bool) -> None:
    """Show how much code has names, and look for more.

    The store keeps the names of code when stacks are added. Files that were missing then can be found later: under
    another path, in a cache, or by debuginfod.
    """

    def work(folder: str) -> int:
        from walkback.store.naming import Naming
        from walkback.store.store import Store

        store = Store(folder)
        if update:
            naming = Naming(searching.search, lines=True)
            done = store.update_names(naming)
            if as_json:
                head: UpdateObject = {"type": "update", "store": folder}
                click.echo(json.dumps({**head, **asdict(done)}))
            else:
                click.echo(f"{printable(folder)}: {counted(done.rows, 'new name')}")
            complain_of(folder, [f"{name}: {why}" for name, why in naming.troubles.items()])
        found = store.names()
        kind: FileObject = {"type": "file"}
        for one in found:
            click.echo(json.dumps({**kind, **asdict(one)}) if as_json else _line(one))
        return EXIT_FINE if all(one.named == one.frames for one in found) else EXIT_FINDINGS

    ctx.exit(guarded(work, ctx.obj, ctx.obj))


class UpdateObject(TypedDict):
    """An update, without what it found, as JSON."""

    type: Literal["update"]
    """The type of the object."""
    store: str
    """The folder."""


class FileObject(TypedDict):
    """The type of a file with names, as JSON."""

    type: Literal["file"]
    """The type of the object."""


def _line(one: NamedFile) -> str:
    share = 100 * one.named / one.frames if one.frames else 100
    return printable(
        f"{one.named:>8} of {one.frames:>8} frames {share:6.2f} %  {one.path or '[unknown]'}  {one.build_id}"
    )
