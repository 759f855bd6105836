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


def code_table(elf: ElfFile, machine: Machine, start: U64, size: U64, troubles: list[str]) -> UnwindTable | None:
    """The rules of the code that is not described by ranges with these starts and sizes."""
    try:
        prover = Prover(elf, ())
        if prover.machine is not machine:
            return None
        return table_of_code(prover, undescribed_code(prover, start, size), known_only=True)
    except WalkbackError as error:
        troubles.append(str(error))
        return None
