"""Writes the man pages of the command into a folder, from the same texts as its help (`make man`)."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from walkback.cli.command import LazyVerbs, Verb
from walkback.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUS = "Exit status: "
RANGE = re.compile(r" ?\[\d*(?:<=)?x(?:[<>]=?\d+)?\]|; \d*(?:<=)?x(?:[<>]=?\d+)?(?=\])")
"""What click says of the range of a number."""


class Page(NamedTuple):
    """A command, and the words by which it is called."""

    words: tuple[str, ...]
    context: click.Context

    @property
    def name(self) -> str:
        """Of the page, as `man` takes it."""
        return "-".join(self.words)


def pages(page: Page) -> Iterator[Page]:
    """The page of a command, and those of the commands below it."""
    yield page
    group = page.context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(page.context):
            command = group.get_command(page.context, name)
            if command is not None:
                context = click.Context(command, page.context, name, **command.context_settings)
                yield from pages(Page((*page.words, name), context))


def roff(text: str) -> str:
    """Text with what troff would take for its own spelled out."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


def options_of(context: click.Context) -> Iterator[str]:
    """The paragraph of each option."""
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            names, text = record
            text = RANGE.sub("", " ".join(text.split())).replace("this message and exit", "the help")
            yield f".TP\n.B {roff(names)}\n{roff(text)}"


def statuses(command: click.Command) -> Iterator[tuple[int, str]]:
    """Its exit statuses, and what they mean."""
    text = " ".join(str(cli.help).split()).partition(STATUS)[2].rstrip(".")
    own = command.exit_1 if isinstance(command, Verb) else ""
    for status, _, meaning in (part.partition(" ") for part in text.split("; ")):
        said = own if status == "1" and own else f"{meaning}."
        yield int(status), f"{said[0].upper()}{said[1:]}"


def text_of(page: Page, others: list[Page]) -> str:
    """The whole page."""
    context, command = page.context, page.context.command
    paragraphs = [" ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n")]
    paragraphs = [part for part in paragraphs if not part.startswith(STATUS)]
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [
        f'.TH {page.name.upper()} 1 "" "walkback {version("walkback")}" "User Commands"',
        f".SH NAME\n{roff(page.name)} \\- {roff(paragraphs[0].rstrip('.'))}",
        f".SH SYNOPSIS\n.B {roff(context.command_path)}\n{roff(usage)}",
        ".SH DESCRIPTION\n" + "\n.PP\n".join(map(roff, paragraphs)),
    ]
    if isinstance(command, LazyVerbs):
        parts.append(".SH VERBS")
        for heading, verbs in command.headings.items():
            parts.append(f".SS {roff(heading)}")
            parts += [f".TP\n.B {name}\n{roff(line)}" for name, line in verbs.items()]
    parts.append(".SH OPTIONS\n" + "\n".join(options_of(context)))
    parts.append(".SH EXIT STATUS\n" + "\n".join(f".TP\n.B {n}\n{roff(text)}" for n, text in statuses(command)))
    examples = getattr(command, "examples", ())
    if examples:
        parts.append(".SH EXAMPLES\n.nf\n" + "\n".join(map(roff, examples)) + "\n.fi")
    near = [other for other in others if page.words[:-1] == other.words or other.words[:-1] == page.words]
    parts.append(".SH SEE ALSO\n" + ",\n".join(f".BR {roff(other.name)} (1)" for other in near))
    return "\n".join(parts) + "\n"


def every_page() -> list[Page]:
    """The pages of all commands, from that of `walkback` on."""
    return list(pages(Page(("walkback",), click.Context(cli, info_name="walkback", **cli.context_settings))))


def write(folder: Path) -> int:
    """Write all pages into a folder; returns how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    every = every_page()
    for page in every:
        (folder / f"{page.name}.1").write_text(text_of(page, every))
    return len(every)


def main() -> int:
    folder = Path(sys.argv[1])
    print(f"{write(folder)} man pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
