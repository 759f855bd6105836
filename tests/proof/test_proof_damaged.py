"""Each rule that differs from what the compiler wrote is found, and what it wrote is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from damaged import assembled, assembly, damages, differences, place
from walkback.proof.values import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from damaged import Place

COMPILERS = ["gcc", "aarch64-gcc", "s390x-gcc"]
OPTIONS = [("-O0",), ("-O2",), ("-Os", "-fstack-protector-all"), ("-O2", "-fno-omit-frame-pointer"), ("-O2", "-fPIC")]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_a_compiler_writes_is_proved(compiler: str, options: tuple[str, ...], tmp_path: Path) -> None:
    lines = assembly(compiler, *options, folder=tmp_path)
    whole = assembled(compiler, lines, tmp_path / "whole.o")
    assert whole is not None
    [verified] = walkback.verify(whole)
    assert verified.mismatches == []
    assert (verified.proved, verified.assumed, verified.unknown) == (verified.reached, 0, 0)


@pytest.mark.parametrize("options", [("-O0",), ("-O2",)], ids=" ".join)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_damaged_rules_are_found_where_they_are(compiler: str, options: tuple[str, ...], tmp_path: Path) -> None:
    lines = assembly(compiler, *options, folder=tmp_path)
    whole = assembled(compiler, lines, tmp_path / "whole.o")
    assert whole is not None
    reached = instructions(whole)
    found = 0
    for what, changed in list(damages(lines))[::3]:
        other = assembled(compiler, changed, tmp_path / "other.o")
        if other is None:
            continue
        places = differences(whole, other) & reached
        if places:
            [verified] = walkback.verify(other)
            wrong = {(one.section, one.start, one.address - one.start) for one in verified.mismatches}
            assert wrong & places, what
            found += 1
    assert found > 5


def instructions(path: Path) -> set[Place]:
    """Where the instructions begin that are reached."""
    [verified] = walkback.verify(path)
    proof = verified.proof
    found = set()
    for unit in range(len(proof.units.first) - 1):
        for address, _, verdict, _ in proof.instructions(unit):
            assert verdict is Verdict.PROVED
            number = int(np.searchsorted(proof.ranges.start, address, "right")) - 1
            found.add(place(verified, number, address - int(proof.ranges.start[number])))
    return found
