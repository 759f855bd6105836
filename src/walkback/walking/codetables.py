"""The rules that the machine code of a file shows, where its tables describe little of it."""

from __future__ import annotations

from walkback.base.arch import Machine
from walkback.base.arrays import U64
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.proof.fromcode import table_of_code
from walkback.proof.functions import undescribed_code
from walkback.proof.prove import Prover
from walkback.table.table import UnwindTable

MOST_CODE = 1 << 20
"""Bytes whose rules are made while a walk waits for them, mostly in less than a second."""


def code_table(
    elf: ElfFile, machine: Machine, start: U64, size: U64, troubles: list[str], *, most: int
) -> UnwindTable | None:
    """The rules of the code that is not described by ranges with these starts and sizes, unless it is too much."""
    try:
        prover = Prover(elf, ())
        if prover.machine is not machine:
            return None
        left = undescribed_code(prover, start, size)
        return table_of_code(prover, left, known_only=True) if left.size <= most else None
    except WalkbackError as error:
        troubles.append(str(error))
        return None
