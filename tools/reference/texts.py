"""The pages as text for programs that read Markdown: a file beside each page, `llms.txt` and `llms-full.txt`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from reference.blocks import filled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ABOUT = (
    "Reads, makes, proves and links stack-trace tables (SFrame, .eh_frame, ORC, Go's), and unwinds stacks with them."
)
TOCTREE = re.compile(r"^```\{toctree\}\n.*?^```\n*", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(```+|:::+).*?^\1$", re.MULTILINE | re.DOTALL)


def write_texts(environment: Any, pages: Path, folder: Path) -> None:
    """Write them in the order of the site."""
    lines, texts = [f"# walkback\n\n> {ABOUT}\n"], []
    found = dict.fromkeys(_in_order(environment, environment.config.root_doc))
    for name in [*found, *sorted(environment.found_docs - set(found))]:
        text = TOCTREE.sub("", filled((pages / f"{name}.md").read_text()))
        text = re.sub(r"~(?:builtins|walkback(?:\.[a-z]\w*)*)\.", "", text)
        path = folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        lines.append(f"- [{environment.titles[name].astext()}]({name}.md): {_first_sentence(text)}")
        texts.append(f"<!-- {name}.md -->\n\n{text}")
    (folder / "llms.txt").write_text("\n".join(lines) + "\n")
    (folder / "llms-full.txt").write_text("\n".join(texts))


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
