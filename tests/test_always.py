"""What `make test` never leaves out (`always.toml`) covers every verb, format and kernel by tests that exist."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

from kernels import kernels
from walkback.cli.main import HEADINGS
from walkback.export.formats import FORMATS

TESTS = Path(__file__).resolve().parent
ALWAYS = tomllib.loads((TESTS / "always.toml").read_text())


def test_every_verb_is_run_from_end_to_end() -> None:
    assert sorted(ALWAYS["verbs"]) == sorted(chain(*HEADINGS.values()))


def test_every_format_is_read_back() -> None:
    assert set(FORMATS) <= set(ALWAYS["formats"])


def test_every_kernel_is_run_both_ways() -> None:
    assert {f"walkback.{name}" for name in ALWAYS["kernels"]} == set(kernels())


@pytest.mark.parametrize("part", ALWAYS)
def test_the_tests_exist(part: str) -> None:
    for test in chain.from_iterable(ALWAYS[part].values()):
        file, _, name = test.partition("[")[0].partition("::")
        text = (TESTS / file).read_text()
        assert re.search(rf"^ *def {name or 'test_.*'}\(", text, re.MULTILINE), test
        if part == "kernels":
            assert "pytest.mark.kernel" in text, test
