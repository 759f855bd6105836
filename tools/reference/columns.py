"""The columns of Parquet files, as Markdown: their types as they are written, and what is in them."""

from __future__ import annotations

import re

from reference.markdown import table
from walkback.store import layout as store
from walkback.store.meanings import MEANINGS as OF_STORE
from walkback.surveys import layout as survey
from walkback.surveys.meanings import MEANINGS as OF_SURVEY

ENTRY = re.compile(r"^(\w+)(?:\.([\w\s]+))?:(.*(?:\n    .*)*)$", re.MULTILINE)
KNOWN = {
    "survey": (survey.COLUMNS, OF_SURVEY),
    "store": (store.EVERY_COLUMN | {"names": store.COLUMNS_OF_NAMES}, OF_STORE),
}


def columns(folder: str) -> str:
    """A table of all columns of a survey or of a store; one that is not described, or twice, is an error."""
    written, meanings = KNOWN[folder]
    rows, described, before = [], [], ""
    for name, listed, text in ENTRY.findall(meanings):
        own = listed.split()
        described += [(name, column) for column in own]
        types = dict.fromkeys(written[name][column] for column in own)
        first = f"`{name}`" if name != before else ""
        rows.append((first, ", ".join(f"`{column}`" for column in own), ", ".join(types), " ".join(text.split())))
        before = name
    every = [(name, column) for name, its in written.items() for column in its]
    if sorted(described) != sorted(every):
        raise ValueError(f"columns and their meanings differ: {set(described) ^ set(every)}")
    return table("Table", "Column", "Type", "Meaning", rows=rows)
