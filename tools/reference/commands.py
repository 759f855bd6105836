"""What the command says of itself, as Markdown: usage, options, verbs."""

from __future__ import annotations

import re
from functools import cache

import click

from man import RANGE, Page, every_page, statuses
from reference.markdown import cell, table
from walkback.cli.command import Verb
from walkback.cli.main import HEADINGS

CODE = re.compile(r"(?<![\w`/.-])(?:--[a-z][\w-]*|~?/?\.[a-z]\w+(?:\.[\w+]+)*|[A-Z]+_[A-Z_]+)(?![\w`])")
"""What help has in plain text and a page as code: options, sections, environment variables."""
SPAN = re.compile(r"(`[^`]*`)")
"""Code in a text that is Markdown already."""
LONGEST = 40
"""Choices that stand beside the name of an option; longer ones stand in the text."""
DEFAULT = re.compile(r" *\[default: (.*?)\]")


@cache
def commands() -> dict[str, Page]:
    """Every command by the words that call it."""
    return {" ".join(page.words[1:]): page for page in every_page()}


def below(words: str) -> list[str]:
    """The commands below one."""
    return [name for name in commands() if name.rpartition(" ")[0] == words and name]


def usage(words: str) -> str:
    """The lines that call a command, or those below it, and its examples."""
    lines = [
        " ".join([page.context.command_path, *page.context.command.collect_usage_pieces(page.context)])
        for page in [commands()[words], *(commands()[name] for name in below(words))]
    ]
    examples = getattr(commands()[words].context.command, "examples", ())
    shown = "Examples:\n\n```sh\n" + "\n".join(examples) + "\n```" if examples else ""
    return "```text\n" + "\n".join(lines) + f"\n```\n\n{shown}"


def options(words: str) -> str:
    """A table of the options of a command, without `--help`."""
    context = commands()[words].context
    found = [one for one in context.command.params if isinstance(one, click.Option) and not one.hidden]
    rows = [(_names(one), _meaning(one, context)) for one in found]
    return table("Option", "Meaning", rows=rows) if rows else ""


def exits(words: str) -> str:
    """A table of the exit statuses of a command; without words, of all."""
    rows = ((str(status), _prose(meaning)) for status, meaning in statuses(commands()[words].context.command))
    return table("Status", "Meaning", rows=rows)


def subcommands(words: str) -> str:
    """A section for each command below one."""
    return "\n\n".join(_section(name) for name in below(words))


def verbs(_: str) -> str:
    """A table of all verbs."""
    rows = (
        (f"[`{verb}`](verbs/{verb}.md)", _prose(what)) for group in HEADINGS.values() for verb, what in group.items()
    )
    return table("Verb", "What it does", rows=rows)


def man_pages(_: str) -> str:
    """Links to the man pages, which are beside the site."""
    return ",\n".join(f'<a href="../man/{page.name}.1">{page.name}(1)</a>' for page in every_page())


def _section(words: str) -> str:
    name, context = words.rpartition(" ")[2], commands()[words].context
    paragraphs = [" ".join(part.split()) for part in str(context.command.help).replace("\b", "").split("\n\n")]
    command = context.command
    paragraphs += [f"The exit status is 1 if {command.exit_1}"] if isinstance(command, Verb) and command.exit_1 else []
    return "\n\n".join([f"## `{name}`", *map(_prose, paragraphs), usage(words), options(words)])


def _names(option: click.Option) -> str:
    """An option's names and the value that it takes."""
    *first, last = sorted(option.opts, key=len)
    if not option.is_flag:
        choices = "|".join(_choices(option))
        own = last.lstrip("-").upper() if choices else option.type.name.upper()
        last += f" {option.metavar or (choices if 0 < len(choices) <= LONGEST else own)}"
    return ", ".join(cell(f"`{name}`") for name in [*first, last, *option.secondary_opts])


def _choices(option: click.Option) -> list[str]:
    return list(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else []


def _meaning(option: click.Option, context: click.Context) -> str:
    """Its help, with the default in a sentence, and the choices where they are too many for the first column."""
    record = option.get_help_record(context)
    text = RANGE.sub("", " ".join((record[1] if record else "").split()))
    text = text.replace("; required]", "]").replace("[required]", "").rstrip()
    choices = _choices(option)
    if len("|".join(choices)) > LONGEST:
        text = text.replace("[default:", f"One of {', '.join(map(_value, choices))}. [default:")
    text = DEFAULT.sub(lambda found: f" The default is {_value(found[1])}.", text)
    if option.secondary_opts:
        text += f" The default is {(option.opts if option.default else option.secondary_opts)[0]}."
    return _prose(text + (" Required." if option.required else ""))


def _value(default: str) -> str:
    return f"`{default}`" if re.fullmatch(r"[\w.~/-]+", default) else default


def _prose(text: str) -> str:
    """Help as Markdown; what it has as code stays."""
    return cell("".join(one if one.startswith("`") else CODE.sub(r"`\g<0>`", one) for one in SPAN.split(text)))
