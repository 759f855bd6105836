"""The pages as text for programs that read Markdown: a file beside each page, `llms.txt` and `llms-full.txt`."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any

from reference.blocks import filled
from reference.markdown import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ABOUT = (
    "Reads, makes, proves and links stack-trace tables (SFrame, .eh_frame, ORC, Go's), and unwinds stacks with them."
)
TOCTREE = re.compile(r"^```\{toctree\}\n.*?^```\n*", re.MULTILINE | re.DOTALL)
RAW = re.compile(r"^```\{raw\} html\n:file: (\S+)\n```\n*", re.MULTILINE)
DIRECTIVE = re.compile(r"^:{3,}\{py:\w+\} (.+)$", re.MULTILINE)
OPTION = re.compile(r"^:(?:type|value): (.+)$", re.MULTILINE)
REST = re.compile(r"^:{3,}\n|^:[\w-]+:\n", re.MULTILINE)
"""Ends of directives, and what they say for pages alone."""
FENCED = re.compile(r"^(```+|:::+).*?^\1$", re.MULTILINE | re.DOTALL)


def write_texts(environment: Any, pages: Path, folder: Path) -> None:
    """Write them in the order of the site."""
    lines, texts = [f"# walkback\n\n> {ABOUT}\n"], []
    found = dict.fromkeys(_in_order(environment, environment.config.root_doc))
    for name in [*found, *sorted(environment.found_docs - set(found))]:
        source = pages / f"{name}.md"
        text = _plain(filled(source.read_text()), source.parent)
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        lines.append(f"- [{environment.titles[name].astext()}]({name}.md): {_first_sentence(text)}")
        texts.append(f"<!-- {name}.md -->\n\n{text}")
    (folder / "llms.txt").write_text("\n".join(lines) + "\n")
    (folder / "llms-full.txt").write_text("\n".join(texts))


def _plain(text: str, folder: Path) -> str:
    """A page without what only Sphinx reads: lists of pages, raw HTML but for its tables, and directives."""
    text = TOCTREE.sub("", text)
    text = RAW.sub(lambda found: _tables((folder / found[1]).read_text()), text)
    text = re.sub(r"~(?:builtins|walkback(?:\.[a-z]\w*)*)\.", "", text)
    return REST.sub("", OPTION.sub(r"`\1`", DIRECTIVE.sub(r"### `\1`", text)))


def _tables(html: str) -> str:
    """The tables of HTML, as Markdown."""
    found = []
    for one in re.findall(r"<table.*?</table>", html, re.DOTALL):
        rows = [re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row, re.DOTALL) for row in re.findall(r"<tr>(.*?)</tr>", one)]
        head, *rest = ([_cell(cell) for cell in row] for row in rows)
        found.append(table(*head, rows=rest))
    return "\n\n".join([*found, ""]) + "\n" if found else ""


def _cell(html: str) -> str:
    text = re.sub(r"</?code>", "`", html)
    return unescape(re.sub(r"<[^>]*>", "", text)).replace("|", r"\|")


def _in_order(environment: Any, name: str) -> Iterator[str]:
    yield name
    for other in environment.toctree_includes.get(name, ()):
        yield from _in_order(environment, other)


def _first_sentence(text: str) -> str:
    """What a page begins with, as plain words."""
    for part in FENCED.sub("", text).split("\n\n"):
        words = " ".join(part.split())
        if words and not words.startswith(("#", "|", "<", "!", "- ", "* ")):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
            return re.split(r"(?<=\.) ", plain, maxsplit=1)[0]
    return ""
