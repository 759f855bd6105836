"""Each rule of `check`: one section that breaks it, with the exact place, and one that just does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from check.cases import consumers, files, functions, header, rows
from check.cases.making import Case, Content
from sframefiles import SFRAME, linked, placing, relocatable, small, written
from walkback.sections.check import check, check_source
from walkback.sframe.checking import CODES, Finding, Report, Severity
from walkback.sframe.files import from_bytes

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "findings.md"


def report(content: Content, folder: Path, *, code: str = "") -> Report:
    consumer = consumers.consumer_of(code)
    if isinstance(content, bytes):
        return check_source(from_bytes(content, address=SFRAME), consumer=consumer)
    (told,) = check(written(folder, content), consumer=consumer)
    return told


def findings(content: Content, folder: Path, code: str) -> list[Finding]:
    return [finding for finding in report(content, folder, code=code).findings if finding.code == code]


MAKERS = {
    code: makers for part in (header, functions, rows, files, consumers) for code, makers in part.case.made.items()
}
PARAMETERS = [
    pytest.param(code, make, id=f"{code}-{number}")
    for code, makers in MAKERS.items()
    for number, make in enumerate(makers)
]


@pytest.mark.whole
@pytest.mark.parametrize(("code", "make"), PARAMETERS)
def test_the_rule_is_found_broken_at_its_place_and_nowhere_else(
    code: str, make: Callable[[], Case], tmp_path: Path
) -> None:
    expected = make()
    found = findings(expected.content, tmp_path, code)
    if expected.near:
        assert found == []
        return
    (finding,) = found
    assert (finding.offset, finding.function, finding.row) == (expected.offset, expected.function, expected.row)
    assert finding.severity is CODES[code].severity
    assert finding.message
    assert "\n" not in finding.message


def test_every_rule_has_a_breach_and_a_near_miss() -> None:
    kinds = {code: {make().near for make in makers} for code, makers in MAKERS.items()}
    assert kinds == {code: {True, False} for code in CODES}


def test_every_rule_is_documented_with_its_severity() -> None:
    text = DOCS.read_text()
    for severity in Severity:
        part = text.partition(f"\n## {severity.name.capitalize()}")[2].partition("\n## ")[0]
        told = {line.removeprefix("### `").rstrip("`") for line in part.splitlines() if line.startswith("### `")}
        assert told == {code for code, rule in CODES.items() if rule.severity is severity}


def test_codes_are_words_joined_by_hyphens_and_reasons_are_sentences() -> None:
    for name, code in CODES.items():
        assert name == code.name
        assert name.replace("-", "").isalpha()
        assert name == name.lower()
        assert code.reason[0].isupper()
        assert code.reason.endswith(".")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_sound_sections_have_no_findings(version: int, tmp_path: Path) -> None:
    builder = small(version)
    assert report(builder.bytes(), tmp_path).findings == []
    assert report(linked(builder.bytes()), tmp_path).findings == []
    assert report(relocatable(builder, placing(version)), tmp_path).findings == []


def test_what_is_said_of_functions_names_them(tmp_path: Path) -> None:
    builder = small()
    builder.functions[1].rows[2].words = [16, 16]
    (finding,) = findings(linked(builder.bytes()), tmp_path, "saved-above-cfa")
    assert (finding.symbol, finding.function, finding.row) == ("f1", 1, 2)
