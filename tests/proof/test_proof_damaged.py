"""Each rule that differs from what the compiler wrote is found, and what it wrote is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import walkback
from damagecount import Configuration, configurations, count, counted, is_mistake
from damaged import SHAPES, assembled, assembly

if TYPE_CHECKING:
    from pathlib import Path

COMPILERS = ["gcc", "aarch64-gcc", "s390x-gcc", "clang-19", "aarch64-clang-19", "s390x-clang-19"]
QUICK_CASES = 8
"""Damages of each function in the quick test, evenly chosen."""
OPTIONS = [("-O0",), ("-O2",), ("-Os", "-fstack-protector-all"), ("-O2", "-fno-omit-frame-pointer"), ("-O2", "-fPIC")]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_a_compiler_writes_is_proved(compiler: str, options: tuple[str, ...], tmp_path: Path) -> None:
    lines = assembly(compiler, *options, folder=tmp_path)
    whole = assembled(compiler, lines, tmp_path / "whole.o")
    assert whole is not None
    [verified] = walkback.verify(whole)
    assert [one for one in verified.mismatches if not is_mistake(compiler, one)] == []
    assert (verified.assumed, verified.unknown) == (0, 0)
    assert verified.proved + verified.wrong == verified.reached


@pytest.mark.parametrize("ending", ["c", "cc"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_damaged_rules_are_found_where_they_are(compiler: str, ending: str, tmp_path: Path) -> None:
    """Of a few functions, each damage."""
    lines = assembly(compiler, "-O2", folder=tmp_path, source=SHAPES / f"shapes.{ending}")
    tally = count(compiler, lines, tmp_path, most=QUICK_CASES)
    assert (tally.cases["elsewhere"], tally.cases["false"]) == (0, 0), tally.notes
    assert tally.cases["missed"] <= 5, tally.notes
    assert tally.cases["found"] > 60
    assert tally.cases["told"] == tally.cases["instructions"]


@pytest.mark.long
@pytest.mark.peers
@pytest.mark.parametrize("configuration", [*configurations()], ids=lambda one: " ".join([*one[:2], *one[2]]))
def test_nearly_all_damages_are_found(configuration: Configuration, tmp_path: Path) -> None:
    """Each damage of each function, with all compilers and options."""
    tally = counted(configuration, tmp_path)
    cases = tally.cases
    assert (cases["alarms"], cases["false"]) == (0, 0), tally.notes
    assert cases["assumed"] <= 0.005 * cases["bytes"], tally.notes
    assert cases["found"] >= 0.99 * tally.wrong, tally.notes
    assert cases["told"] >= 0.99 * cases["instructions"], tally.notes
