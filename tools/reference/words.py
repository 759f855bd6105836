"""Words that walkback prints, and what they mean, as Markdown."""

from __future__ import annotations

from typing import Any

from reference.keys import named
from reference.library import fields_of
from reference.markdown import cell, table
from walkback.sframe.checking.codes import CODES


def findings(_: str) -> str:
    """A table of all rules, each with a link to what the page says of it."""
    rows = [(f"[`{code}`](#{code})", one.severity.name.lower(), cell(one.reason)) for code, one in CODES.items()]
    return table("Code", "Severity", "Rule", rows=rows)


def words(arguments: str) -> str:
    """A table of the members of an enumeration that say what they mean, below this heading."""
    heading, name = arguments.split()
    found = named(name)
    texts = {member: text for member, (_, text) in fields_of(found).items() if text and member.isupper()}
    rows = ((f"`{_word(found[member])}`", " ".join(text.split())) for member, text in texts.items())
    return table(heading, "Meaning", rows=rows)


def _word(member: Any) -> str:
    """As it is printed."""
    return str(getattr(member, "word", member.value))
