"""Rules as text and as records, there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from walkback.base.arch import AARCH64, AMD64, MACHINES, S390X, Machine
from walkback.table.rule import OUTERMOST, RULE, Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import rule_array

OFFSETS = st.one_of(st.integers(-300, 300), st.sampled_from([-(2**63), 2**63 - 1, -(2**31), 2**31]))
REGISTERS = st.one_of(st.integers(0, 70), st.sampled_from([2**29 - 1, 2**32 - 1]))
PARTS = st.one_of(
    st.just(Part()),
    st.just(Part(PartKind.UNDEFINED)),
    st.builds(Part, st.sampled_from([PartKind.REGISTER, PartKind.AT_REGISTER]), REGISTERS, OFFSETS),
    st.builds(Part, st.sampled_from([PartKind.CFA, PartKind.AT_CFA]), st.just(0), OFFSETS),
)
RULES = st.builds(Rule, PARTS, PARTS, PARTS, st.booleans())


@given(RULES, st.sampled_from(MACHINES))
def test_text_there_and_back(rule: Rule, machine: Machine) -> None:
    assert Rule.parse(rule.text(machine), machine) == rule


@given(RULES)
def test_record_there_and_back(rule: Rule) -> None:
    array = rule_array([rule, OUTERMOST])
    assert array.dtype == RULE
    assert Rule.from_record(array[0]) == rule
    assert Rule.from_record(array[1]) == OUTERMOST


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
@pytest.mark.parametrize("number", [*range(40), 2**32 - 1])
def test_register_names(machine: Machine, number: int) -> None:
    part = Part(PartKind.AT_REGISTER, number, -8)
    assert Part.parse(part.text(machine), machine) == part
    assert Part.parse(f"*(r{number}-8)", machine).register == number or f"r{number}" in machine.register_names


@pytest.mark.parametrize(
    ("machine", "text", "register"),
    [
        (AMD64, "sp", 7),
        (AMD64, "fp", 6),
        (AMD64, "ra", 16),
        (AARCH64, "lr", 30),
        (AARCH64, "fp", 29),
        (S390X, "sp", 15),
    ],
)
def test_aliases(machine: Machine, text: str, register: int) -> None:
    assert Part.parse(text, machine) == Part(PartKind.REGISTER, register, 0)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("CFA = rsp+8", Rule(Part(PartKind.REGISTER, 7, 8), Part(PartKind.AT_CFA, 0, -8))),
        (
            "cfa=rsp + 8,fp = *( CFA - 16 )",
            Rule(Part(PartKind.REGISTER, 7, 8), Part(PartKind.AT_CFA, 0, -8), Part(PartKind.AT_CFA, 0, -16)),
        ),
        ("CFA rsp, RA unchanged", Rule(Part(PartKind.REGISTER, 7, 0))),
        ("CFA = *(RBP), RA = CFA+8", Rule(Part(PartKind.AT_REGISTER, 6, 0), Part(PartKind.CFA, 0, 8))),
        (" outermost frame ", OUTERMOST),
    ],
)
def test_notation(text: str, rule: Rule) -> None:
    assert Rule.parse(text, AMD64) == rule


def test_the_default_return_address_is_the_machines() -> None:
    assert Rule.parse("CFA = sp", AARCH64).ra == Part()
    assert Rule.parse("CFA = r15+160", S390X).ra == Part()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "RA = *(CFA-8)",
            "CFA",
            "CFA =",
            "CFA = ",
            "CFA = nothing+8",
            "CFA = rsp+",
            "CFA = rsp+8+8",
            "CFA = *(rsp+8",
        ),
        *(
            "CFA = rsp+0x8",
            "CFA = rsp+8; FP = rbp",
            "SP = rsp",
            "CFA = undefined+8",
            "CFA = *(unchanged)",
            "CFA = 8",
            "CFA = -8",
        ),
        *("CFA = inexpressible (cut)", "CFA = rsp+8,", "CFA = rsp+٨"),
    ],
)
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (rule|clause)|needs a CFA|has no register"):
        Rule.parse(text, AMD64)


def test_a_part_may_be_said_once() -> None:
    with pytest.raises(ValueError, match="FP"):
        Rule.parse("CFA = rsp+8, FP = rbp, FP = rbx", AMD64)


def test_outermost() -> None:
    assert OUTERMOST.outermost
    assert OUTERMOST.text(AMD64) == "outermost frame"
    assert Rule(Part(PartKind.REGISTER, 7, 8), Part(PartKind.UNDEFINED)).outermost
    assert not Rule(Part(PartKind.REGISTER, 7, 8)).outermost


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_words(reason: Reason) -> None:
    rule = inexpressible(reason)
    assert rule.text(AMD64).count("inexpressible (") == 3
    assert Rule.from_record(rule_array([rule])[0]) == rule


def test_no_rules() -> None:
    assert rule_array([]).dtype == RULE
    assert len(rule_array([])) == 0
    assert np.array_equal(rule_array([]), np.zeros(0, RULE))
