"""Processes by number or name, as verbs take them."""

from __future__ import annotations

import click

from walkback.base.errors import UnreadableError
from walkback.base.text import printable

_WIDEST_COMMAND = 200


def process_named(target: str, *, or_file: bool = False) -> int:
    """The number of the process that is meant; of several with the name, the user has to choose.

    `or_file` says that the name could have been that of a file, which is not there.
    """
    if target.isascii() and target.isdigit():
        return int(target)
    from walkback.capture.live.processes import processes_named

    commands = processes_named(target)
    if len(commands) == 1:
        return next(iter(commands))
    if commands:
        lines = (f"  {pid}  {printable(command)[:_WIDEST_COMMAND]}" for pid, command in sorted(commands.items()))
        message = f"{printable(target)} is the name of {len(commands)} processes; choose one:\n" + "\n".join(lines)
        raise click.UsageError(message)
    lacking = "there is no such file, and no running process of this name" if or_file else "no such process is running"
    raise UnreadableError(lacking, file=target or "''")


def one_process(_ctx: click.Context, _param: click.Parameter, given: tuple[str, ...]) -> str | None:
    """The process, if one is given."""
    if len(given) > 1:
        message = "one process is recorded with -p; -a records all"
        raise click.UsageError(message)
    return given[0] if given else None
