"""The verdicts on stretches of code, which need not begin or end where instructions do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proof.assembled import verified
from walkback.proof.values import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from walkback.sections.verified import Verified

CALL = (
    "sub $8,%rsp; .cfi_def_cfa_offset 16;"
    ".byte 0xff; .cfi_def_cfa_offset {within}; .byte 0x15; .cfi_def_cfa_offset {last}; .long 0;"
    "add $8,%rsp; .cfi_def_cfa_offset 8; ret; .cfi_def_cfa_offset 32; nop"
)
"""Rows begin at the second and at the third byte of a call of six."""


def verdicts(found: Verified, *stretches: tuple[int, int]) -> list[Verdict | None]:
    begin, size = np.array(stretches, np.uint64).T
    return found.proof.verdicts_of(found.prover.image.base[1] + begin, size)


def test_a_row_that_holds_at_no_instruction_is_not_reached(tmp_path: Path) -> None:
    found = verified(CALL.format(within=24, last=16), tmp_path)
    assert verdicts(found, (0, 4), (4, 1), (5, 1), (6, 4)) == [
        Verdict.PROVED,
        Verdict.PROVED,
        Verdict.NOT_REACHED,
        Verdict.PROVED,
    ]
    assert verdicts(found, (10, 5), (15, 1), (16, 1)) == [Verdict.PROVED, Verdict.NOT_REACHED, None]


def test_the_row_of_the_last_byte_of_a_call_is_judged(tmp_path: Path) -> None:
    found = verified(CALL.format(within=32, last=24), tmp_path)
    assert verdicts(found, (5, 1), (6, 4), (14, 1)) == [Verdict.NOT_REACHED, Verdict.WRONG, Verdict.PROVED]


def test_a_stretch_has_its_worst_verdict(tmp_path: Path) -> None:
    found = verified("nop; .cfi_def_cfa_offset 24; nop; .cfi_def_cfa_offset 8; ret", tmp_path)
    stretches = (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (0, 3)
    wrong = [Verdict.WRONG] * 3
    assert verdicts(found, *stretches) == [Verdict.PROVED, Verdict.WRONG, Verdict.PROVED, *wrong]
