"""The rules of `check`, as Markdown."""

from __future__ import annotations

from reference.markdown import cell, table
from walkback.sframe.checking.codes import CODES


def findings(_: str) -> str:
    """A table of all rules, each with a link to what the page says of it."""
    rows = [(f"[`{code}`](#{code})", one.severity.name.lower(), cell(one.reason)) for code, one in CODES.items()]
    return table("Code", "Severity", "Rule", rows=rows)
