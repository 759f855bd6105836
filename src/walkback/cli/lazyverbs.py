"""A group whose verbs are modules of one folder, imported when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

import click


class LazyVerbs(click.Group):
    """Imports a verb when it is asked for; each is the module of that name, and the command in it."""

    folder: ClassVar[str]
    """The package of the modules."""
    verbs: ClassVar[tuple[str, ...]]
    """In the order of `--help`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        command: click.Command = getattr(import_module(f"{self.folder}.{cmd_name}"), cmd_name)
        return command
