"""Verbs, and groups of them: help that ends with examples, one line per verb, and a suggestion for a misspelt one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Verb(click.Command):
    """A command whose help ends with when its exit status is 1, and with examples."""

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), exit_1: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = examples
        self.exit_1 = exit_1

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.exit_1:
            formatter.write_paragraph()
            formatter.write_text(f"The exit status is 1 if {self.exit_1}")
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"  {example}\n")


class VerbGroup(Verb, click.Group):
    """Commands below one, whose help ends with examples."""


def verb(*examples: str, exit_1: str = "") -> Callable[[F], Verb]:
    """A decorator that makes a function a verb; the tests run its examples.

    `exit_1` says when its exit status is 1: it ends a sentence.
    """
    return click.command(cls=Verb, examples=examples, exit_1=exit_1)


class LazyVerbs(VerbGroup):
    """Imports a verb when it is asked for; each is the module of that name, and the command in it."""

    folder: ClassVar[str]
    """The package of the modules."""
    headings: ClassVar[dict[str, dict[str, str]]]
    """In the order of `--help`: headings, their verbs, and the first line of each verb's own help.

    They stand here so that help needs no module of a verb.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for verbs in self.headings.values() for name in verbs]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = getattr(import_module(f"{self.folder}.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; a name that is none raises a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0].lower(), self.list_commands(ctx), n=1)
            if not close or "Did you mean" in error.message:
                raise
            message = f"{error.message} Did you mean {close[0]!r}?"
            raise click.UsageError(message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.list_commands(ctx))) + 2
        for heading, verbs in self.headings.items():
            with formatter.section(heading):
                for name, line in verbs.items():
                    formatter.write(f"  {name:{width}}{line}\n")
