"""All that is wrong or worth knowing about some backtraces."""

from __future__ import annotations

from collections.abc import Iterator

from walkback.base.findings import ByteFinding
from walkback.cbf.instructions import explain


def check(data: bytes) -> Iterator[ByteFinding]:
    """What is wrong with backtraces that stand one after the other, in the order of the bytes, and notes about them.

    Strict reading refuses what is wrong, and takes what is only a note.

    >>> [str(finding) for finding in walkback.cbf.check(bytes.fromhex("021a4010"))]
    ['offset 0x1: wrong: the data ends inside of an instruction [cut]']
    """
    for instruction in explain(data):
        yield from instruction.findings
