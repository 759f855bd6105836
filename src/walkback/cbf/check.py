"""All that is wrong or worth knowing about some backtraces."""

from __future__ import annotations

from collections.abc import Iterator

from walkback.cbf.instructions import explain_backtraces
from walkback.findings import Finding


def check_backtraces(data: bytes) -> Iterator[Finding]:
    """What is wrong with backtraces that stand one after the other, in the order of the bytes, and notes about them.

    Strict reading refuses what is wrong, and takes what is only a note.
    """
    for instruction in explain_backtraces(data):
        yield from instruction.findings
