"""What default rows mean on each machine."""

from __future__ import annotations

import pytest

from sframe.vectors import BIG_ABIS, one_function, rule_of, texts
from sframebuilder import AARCH64, AARCH64_BIG, AMD64, S390X, SFrameBuilder, row
from walkback.base.arch import AARCH64 as MACHINE_AARCH64
from walkback.base.arch import AMD64 as MACHINE_AMD64
from walkback.base.arch import S390X as MACHINE_S390X
from walkback.base.arch import ByteOrder
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.rules import to_table
from walkback.table.rule import OUTERMOST, Rule

pytestmark = pytest.mark.kernel
MACHINES = {AMD64: MACHINE_AMD64, AARCH64: MACHINE_AARCH64, AARCH64_BIG: MACHINE_AARCH64, S390X: MACHINE_S390X}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(
    ("words", "base", "text"),
    [
        ([8], 1, "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        ([16], 0, "CFA = rbp+16, RA = *(CFA-8), FP unchanged"),
        ([16, -16], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)"),
        ([16, 0], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA)"),
        ([16, -16, 99], 1, "CFA = rsp+16, RA = *(CFA-8), FP = *(CFA-16)"),
        ([-8], 1, "CFA = rsp-8, RA = *(CFA-8), FP unchanged"),
    ],
)
def test_amd64(version: int, words: list[int], base: int, text: str) -> None:
    assert rule_of(version, AMD64, words, base=base) == text


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BIG])
@pytest.mark.parametrize(
    ("words", "base", "text"),
    [
        ([0], 1, "CFA = sp, RA unchanged, FP unchanged"),
        ([32, -24], 1, "CFA = sp+32, RA = *(CFA-24), FP unchanged"),
        ([32, -24, -32], 0, "CFA = x29+32, RA = *(CFA-24), FP = *(CFA-32)"),
        ([32, 0, 0], 0, "CFA = x29+32, RA = *(CFA), FP = *(CFA)"),
        ([32, -23, -31], 1, "CFA = sp+32, RA = *(CFA-23), FP = *(CFA-31)"),
    ],
)
def test_aarch64(version: int, abi: int, words: list[int], base: int, text: str) -> None:
    assert rule_of(version, abi, words, base=base) == text


@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BIG])
def test_mangled_return_address(abi: int) -> None:
    text = "CFA = sp+32, RA = *(CFA-24) signed, FP = *(CFA-32)"
    assert rule_of(2, abi, [32, -24, -32], mangled=True) == text


@pytest.mark.parametrize(("fixed_ra", "fixed_fp"), [(-8, -16), (0, -16), (-8, 0), (0, 0), (127, -128)])
def test_fixed_places_take_no_words(fixed_ra: int, fixed_fp: int) -> None:
    words, expected = [48], ["CFA = sp+48"]
    for name, fixed, word in (("RA", fixed_ra, -40), ("FP", fixed_fp, -48)):
        if not fixed:
            words.append(word)
        expected.append(f"{name} = *(CFA{fixed or word:+d})")
    assert rule_of(2, AARCH64, words, fixed_ra=fixed_ra, fixed_fp=fixed_fp) == ", ".join(expected)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([0], "CFA = r15+160, RA unchanged, FP unchanged"),
        ([4], "CFA = r15+192, RA unchanged, FP unchanged"),
        ([-20], "CFA = r15, RA unchanged, FP unchanged"),
        ([-128], "CFA = r15-864, RA unchanged, FP unchanged"),
        ([0, -48], "CFA = r15+160, RA = *(CFA-48), FP unchanged"),
        ([0, 0, -72], "CFA = r15+160, RA unchanged, FP = *(CFA-72)"),
        ([0, -48, -72], "CFA = r15+160, RA = *(CFA-48), FP = *(CFA-72)"),
        ([0, 0], "CFA = r15+160, RA unchanged, FP unchanged"),
    ],
)
def test_s390x(version: int, words: list[int], text: str) -> None:
    assert rule_of(version, S390X, words) == text


def test_s390x_scaling_of_wide_words() -> None:
    assert rule_of(2, S390X, [0x0400], word_size=2).startswith("CFA = r15+8352,")
    assert rule_of(2, S390X, [2**31 - 1], word_size=4).startswith(f"CFA = r15+{8 * (2**31 - 1) + 160},")


def test_s390x_registers_in_odd_words_of_version_2() -> None:
    # the encoding of DWARF register n is n << 1 | 1
    text = "CFA = r15+160, RA = f0, FP = f2"
    assert rule_of(2, S390X, [0, 16 << 1 | 1, 17 << 1 | 1]) == text
    assert rule_of(2, S390X, [0, 0 << 1 | 1]) == "CFA = r15+160, RA = r0, FP unchanged"


def test_odd_words_are_offsets_in_version_3() -> None:
    assert rule_of(3, S390X, [0, -47, 33]) == "CFA = r15+160, RA = *(CFA-47), FP = *(CFA+33)"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("abi", [AMD64, AARCH64, AARCH64_BIG, S390X])
@pytest.mark.parametrize("info", [0x00, 0x01, 0x80, 0x20, 0x41])
def test_rows_without_words_are_outermost(version: int, abi: int, info: int) -> None:
    data = one_function(version, abi, [row(0, 0, info=info)])
    assert texts(data) == ["outermost frame"]
    assert to_table(decode(data)).rule(0) == OUTERMOST


@pytest.mark.parametrize("version", [1, 2, 3])
def test_functions_without_rows(version: int) -> None:
    builder = SFrameBuilder(version)
    builder.function(0x100, 8)
    builder.function(0x108, 8, [row(0, 1, [8])])
    builder.function(0x110, 8)
    section = decode(builder.bytes())
    assert encode(section) == builder.bytes()
    assert section.functions.first_row.tolist() == [0, 0, 1]
    found = to_table(section)
    assert [found.find(at).row for at in (0x100, 0x108, 0x110)] == [None, 0, None]


def test_rules_are_what_the_machine_says() -> None:
    for abi, machine in MACHINES.items():
        order: ByteOrder = "big" if abi in BIG_ABIS else "little"
        builder = SFrameBuilder(2, abi=abi, order=order)
        builder.function(0, 8, [row(0, 1, [0]), row(1, 0, [0])])
        found = to_table(decode(builder.bytes()))
        assert found.machine is machine
        assert [found.rule(n).cfa.register for n in (0, 1)] == [machine.sp, machine.fp]
        assert isinstance(found.rule(0), Rule)
