"""The commands of documents that no test runs, as they need root, a network or another machine: each can be parsed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from walkback.cli.main import cli

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNIT = re.compile(r"^Exec\w+=(.*)", re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """The words behind each `walkback` of some lines of a shell."""
    without_comments = re.sub(r"(^|\s)#.*", "", text.replace("\\\n", " ").replace("%", ""))
    words = shlex.shlex(without_comments, posix=True, punctuation_chars="();<>|&\n")
    words.whitespace, words.commenters = " \t\r", ""
    found: list[str] | None = None
    for word in words:
        if set(word) <= set("();<>|&\n"):
            if found is not None:
                yield found
            found = None
        elif found is not None:
            found.append(word)
        elif word.rpartition("/")[2] == "walkback":
            found = []
    if found is not None:
        yield found


def documented() -> Iterator[tuple[str, list[str]]]:
    for path in sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/systemd/*")]):
        text = path.read_text()
        for block in BLOCK.findall(text) if path.suffix == ".md" else [f"{line}\n" for line in UNIT.findall(text)]:
            for words in commands(block):
                yield path.name, words


def parse(command: click.Command, context: click.Context, words: list[str]) -> None:
    """Parse as the command does, without a look at what its values name."""
    _, rest, _ = command.make_parser(context).parse_args(list(words))
    if isinstance(command, click.Group) and rest:
        below = command.get_command(context, rest[0])
        assert below is not None, rest
        parse(below, click.Context(below, context, rest[0]), rest[1:])


@pytest.mark.parametrize(("page", "words"), [(page, tuple(words)) for page, words in documented()])
def test_commands_have_known_verbs_and_options(page: str, words: tuple[str, ...]) -> None:
    parse(cli, click.Context(cli, info_name="walkback"), list(words))


def test_a_wrong_option_is_found() -> None:
    (words,) = commands("sudo walkback record --nothing -p 1 | head\n")
    with pytest.raises(click.NoSuchOption):
        parse(cli, click.Context(cli, info_name="walkback"), words)
