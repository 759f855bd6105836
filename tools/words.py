"""Finds phrases that plain English does without, in the prose of the project; `make lint` runs it.

python tools/words.py [PATH...]

Prose is the documents outside code, strings and comments of Python, and pages with their scripts and styles.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
FILES = (
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md"),
    *(f"src/walkback/**/*.{kind}" for kind in ("py", "js", "html", "css")),
)
PHRASES = (
    *("tell", "tells", "told", "that is there", "that are there", "what is there", "has words for", "have words for"),
    *("so many", "of which", "of whom", "turn and turn about", "gone on with"),
)
GAP = r"""[\s#/*"']+"""
"""Between two words: also the end of a line with what begins the next, in comments and in joined strings."""
PATTERN = re.compile(rf"\b(?:{'|'.join(phrase.replace(' ', GAP) for phrase in PHRASES)})\b", re.IGNORECASE)
FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?(?:^ *\1|\Z)", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
FILLED = re.compile(r"\{[^{}]*\}")


def hide(pattern: re.Pattern[str], text: str) -> str:
    """The text with all that matches covered; lines stay where they are."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", "\0", found[0]), text)


def python_prose(source: str) -> str:
    """Strings and comments where they stand, and the rest covered."""
    starts = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
    text = hide(re.compile(r"\S+"), source)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if tokenize.tok_name[token.type] in {"COMMENT", "STRING", "FSTRING_MIDDLE"}:
            begin, end = (starts[line - 1] + column for line, column in (token.start, token.end))
            words = source[begin:end]
            formatted = token.type == tokenize.STRING and "f" in words.partition(words[-1])[0].lower()
            text = text[:begin] + (hide(FILLED, words) if formatted else words) + text[end:]
    return hide(QUOTED, text)


def prose(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return python_prose(text)
    return hide(QUOTED, hide(FENCED, text)) if path.suffix == ".md" else text


def findings(path: Path) -> Iterator[str]:
    text = prose(path)
    for found in PATTERN.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        phrase = re.sub(GAP, " ", found[0])
        yield f'{path}:{line}: rewrite "{phrase}"'


def main(arguments: list[str]) -> int:
    paths = [Path(argument) for argument in arguments] or [path for glob in FILES for path in sorted(ROOT.glob(glob))]
    lines = [line for path in paths for line in findings(path)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
