"""Writes the man pages of the command into a folder, from the same texts as its help (`make man`)."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from walkback.cli.command import LazyVerbs
from walkback.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUSES = {
    0: "Success.",
    1: "Findings, differences, no match, or an incomplete result.",
    2: "Wrong usage.",
    3: "Unreadable input, or failed output.",
}


class Page(NamedTuple):
    """A command, and the words by which it is called."""

    words: tuple[str, ...]
    command: click.Command

    @property
    def name(self) -> str:
        """Of the page, as `man` takes it."""
        return "-".join(self.words)


def pages(page: Page) -> Iterator[Page]:
    """The page of a command, and those of the commands below it."""
    yield page
    if isinstance(page.command, click.Group):
        context = click.Context(page.command, info_name=page.words[-1])
        for name in page.command.list_commands(context):
            command = page.command.get_command(context, name)
            if command is not None:
                yield from pages(Page((*page.words, name), command))


def roff(text: str) -> str:
    """Text with what troff would take for its own spelled out."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


def options_of(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield f".TP\n.B {roff(record[0])}\n{roff(' '.join(record[1].split()))}"


def text_of(page: Page, others: list[Page]) -> str:
    """The whole page."""
    command = page.command
    context = click.Context(command, info_name=" ".join(page.words))
    paragraphs = [" ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n")]
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH {page.name.upper()} 1 "" "walkback {version("walkback")}" "User Commands"',
        f".SH NAME\n{roff(page.name)} \\- {roff(paragraphs[0].rstrip('.'))}",
        f".SH SYNOPSIS\n.B {' '.join(page.words)}\n{roff(usage)}",
        ".SH DESCRIPTION\n" + "\n.PP\n".join(map(roff, paragraphs)),
    ]
    if isinstance(command, LazyVerbs):
        parts.append(".SH VERBS")
        for heading, verbs in command.headings.items():
            parts.append(f".SS {roff(heading)}")
            parts += [f".TP\n.B {name}\n{roff(line)}" for name, line in verbs.items()]
    parts.append(".SH OPTIONS\n" + "\n".join(options_of(command, context)))
    if page.command is cli:
        statuses = "\n".join(f".TP\n.B {number}\n{roff(text)}" for number, text in STATUSES.items())
        parts.append(f".SH EXIT STATUS\n{statuses}")
    examples = getattr(command, "examples", ())
    if examples:
        parts.append(".SH EXAMPLES\n.nf\n" + "\n".join(map(roff, examples)) + "\n.fi")
    near = [other for other in others if page.words[:-1] == other.words or other.words[:-1] == page.words]
    parts.append(".SH SEE ALSO\n" + ",\n".join(f".BR {roff(other.name)} (1)" for other in near))
    return "\n".join(parts) + "\n"


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    every = list(pages(Page(("walkback",), cli)))
    for page in every:
        (folder / f"{page.name}.1").write_text(text_of(page, every))
    print(f"{len(every)} man pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
