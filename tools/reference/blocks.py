"""Fills the blocks of pages that are made from the source: that of `{options} show` with the options of `show`."""

from __future__ import annotations

import re

from reference.columns import columns
from reference.commands import exits, man_pages, options, subcommands, usage, verbs
from reference.keys import keys
from reference.library import library
from reference.words import findings, words

MAKERS = {
    "columns": columns,
    "exits": exits,
    "findings": findings,
    "keys": keys,
    "library": library,
    "man-pages": man_pages,
    "options": options,
    "subcommands": subcommands,
    "usage": usage,
    "verbs": verbs,
    "words": words,
}
"""What makes a block, by its first word, from the others."""
BLOCK = re.compile(r"^```\{([\w-]+)\}(?: ([^\n]*))?\n```$", re.MULTILINE)


def filled(text: str) -> str:
    """A page with its blocks filled; those without a maker are Sphinx's."""
    return BLOCK.sub(lambda found: MAKERS[found[1]](found[2] or "") if found[1] in MAKERS else found[0], text)
