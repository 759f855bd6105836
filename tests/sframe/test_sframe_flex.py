"""What flex rows mean, and what has no rules."""

from __future__ import annotations

from typing import Any

import pytest

from sframe.vectors import one_function, rule_of, texts
from sframebuilder import AARCH64, AMD64, S390X, SFrameBuilder, row
from walkback.base.errors import InexpressibleError
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table

pytestmark = pytest.mark.kernel


RSP, RSP_AT, RBP, RBP_AT, R10, RBX, RAX = 0x39, 0x3B, 0x31, 0x33, 0x51, 0x19, 0x01


def flex(abi: int, words: list[int], *, size: int = 1, mangled: bool = False, **options: Any) -> str:
    return rule_of(3, abi, words, base=0, word_size=size, mangled=mangled, flex=True, **options)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([RSP, 8], "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        ([RSP_AT, 8], "CFA = *(rsp+8), RA = *(CFA-8), FP unchanged"),
        ([RAX, 0], "CFA = rax, RA = *(CFA-8), FP unchanged"),
        ([RBX, 0, 0, RBP_AT, -1], "CFA = rbx, RA = *(CFA-8), FP = *(rbp-1)"),
        ([RBP_AT, -8, 0, RBP_AT, 0], "CFA = *(rbp-8), RA = *(CFA-8), FP = *(rbp)"),
        ([R10, 0, 2, -16], "CFA = r10, RA = *(CFA-16), FP unchanged"),
        ([R10, 0, 2, 0], "CFA = r10, RA = *(CFA), FP unchanged"),
        ([R10, 0, 2, -16, 2, -24], "CFA = r10, RA = *(CFA-16), FP = *(CFA-24)"),
        ([R10, 0, R10, 1, R10 | 2, 2], "CFA = r10, RA = r10+1, FP = *(r10+2)"),
        ([R10, 0, 0], "CFA = r10, RA = *(CFA-8), FP unchanged"),
        ([R10, 0, 0, 0], "CFA = r10, RA = *(CFA-8), FP unchanged"),
        # control words are unsigned: 0xf9 is register 31
        ([0xF9, 8], "CFA = r31+8, RA = *(CFA-8), FP unchanged"),
        ([0xFB, -8], "CFA = *(r31-8), RA = *(CFA-8), FP unchanged"),
    ],
)
def test_flex_control_words(words: list[int], text: str) -> None:
    assert flex(AMD64, words) == text


@pytest.mark.parametrize(
    ("size", "control", "register"),
    [(2, 0x101, 32), (2, 0xFFF9, 8191), (4, 0x101, 32), (4, 0xFFFFFFF9, 2**29 - 1)],
)
def test_flex_registers_in_wide_words(size: int, control: int, register: int) -> None:
    assert flex(AMD64, [control, -2], size=size) == f"CFA = r{register}-2, RA = *(CFA-8), FP unchanged"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([RSP], "the data words end inside a rule"),
        ([0], "the CFA has no base register"),
        ([0, 8], "the CFA has no base register"),
        ([2, 8], "the CFA has no base register"),
        ([4, 8], "the CFA has no base register"),
    ],
)
def test_flex_rows_without_a_cfa(words: list[int], reason: str) -> None:
    assert flex(AMD64, words).startswith(f"CFA inexpressible ({reason})")


def test_flex_rows_that_end_inside_a_pair() -> None:
    cut = "inexpressible (the data words end inside a rule)"
    assert flex(AMD64, [RSP, 8, 2]) == f"CFA = rsp+8, RA {cut}, FP unchanged"
    assert flex(AMD64, [RSP, 8, 0, 2]) == f"CFA = rsp+8, RA = *(CFA-8), FP {cut}"
    assert flex(AMD64, [RSP, 8, 2, -8, 2]) == f"CFA = rsp+8, RA = *(CFA-8), FP {cut}"


def test_flex_rows_with_more_words_than_there_are_parts() -> None:
    assert flex(AMD64, [RSP, 8, 2, -8, 2, -16, *range(9)]) == "CFA = rsp+8, RA = *(CFA-8), FP = *(CFA-16)"


def test_flex_padding_leaves_fixed_places_and_unfixed_ones_alone() -> None:
    assert flex(S390X, [0x79, 0, 0, 2, -72]) == "CFA = r15+160, RA unchanged, FP = *(CFA-72)"
    assert flex(AMD64, [RSP, 8, 0, 0], fixed_fp=-16) == "CFA = rsp+8, RA = *(CFA-8), FP = *(CFA-16)"
    assert flex(AMD64, [RSP, 8, 0, RAX, 1], fixed_fp=-16) == "CFA = rsp+8, RA = *(CFA-8), FP = rax+1"


def test_flex_cfa_of_s390x_is_scaled() -> None:
    assert flex(S390X, [0x79, 0]).startswith("CFA = r15+160,")
    assert flex(S390X, [0x79, 0x0400], size=2).startswith("CFA = r15+8352,")
    assert flex(S390X, [0x79 | 2, 1]).startswith("CFA = *(r15+168),")
    # RA and FP are not
    assert flex(S390X, [0x79, 0, 0x81, 8, 0x8B, 16]) == "CFA = r15+160, RA = f0+8, FP = *(f2+16)"


def test_flex_mangled_and_outermost() -> None:
    assert flex(AARCH64, [0xF9, 16, 2, -8], mangled=True) == "CFA = sp+16, RA = *(CFA-8) signed, FP unchanged"
    assert flex(AARCH64, [], mangled=True) == "outermost frame"


def test_equal_bytes_of_a_flex_and_a_default_row_are_two_rules() -> None:
    builder = SFrameBuilder(3)
    builder.function(0, 8, [row(0, 0, [RSP, 8])])
    builder.function(8, 8, [row(0, 0, [RSP, 8])], flex=True)
    assert texts(builder.bytes()) == [
        "CFA = rbp+57, RA = *(CFA-8), FP = *(CFA+8)",
        "CFA = rsp+8, RA = *(CFA-8), FP unchanged",
    ]


def test_info2_is_no_type_before_version_3() -> None:
    # flex is a matter of version 3, so the same words are offsets in version 2
    assert rule_of(2, AMD64, [RSP, 8], base=0) == "CFA = rbp+57, RA = *(CFA-8), FP = *(CFA+8)"


@pytest.mark.parametrize("fde_type", [2, 31])
def test_unknown_function_types_have_no_rules(fde_type: int) -> None:
    data = one_function(3, AMD64, [row(0, 1, [8]), row(1, 1)], info2=fde_type)
    text = "inexpressible (the function type is unknown)"
    assert texts(data) == [f"CFA {text}, RA {text}, FP {text}"] * 2


def test_unknown_abi_is_read_and_has_no_rules() -> None:
    data = SFrameBuilder(3, abi=9)
    data.function(0, 8, [row(0, 1, [8])])
    section = decode(data.bytes())
    assert section.machine is None
    assert encode(section) == data.bytes()
    with pytest.raises(InexpressibleError) as error:
        to_table(section)
    assert (error.value.rule, error.value.offset) == ("header-abi", 4)
