"""What a version cannot say is refused by its name: never rounded, never left out in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.base.errors import InexpressibleError, WalkbackError
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.building import build
from walkback.sframe.decoding import decode
from walkback.sframe.encoding import encode
from walkback.sframe.planning import refusals
from walkback.sframe.rules import to_table
from walkback.sframe.words import Refusal
from walkback.table.rule import Part, PartKind, Reason, Rule, inexpressible
from walkback.table.table import UnwindTable

CFA = Part(PartKind.REGISTER, 7, 8)
RA = Part(PartKind.AT_CFA, 0, -8)
UNDEFINED = Part(PartKind.UNDEFINED)

RULES = [
    # what default rows cannot say, in version 2
    (AMD64, 1, "outermost frame", Refusal.OUTERMOST),
    (AMD64, 1, "CFA = rsp+8, RA undefined", Refusal.OUTERMOST),
    (AMD64, 2, "CFA = r10", Refusal.CFA_BASE),
    (AARCH64, 2, "CFA = x9+8", Refusal.CFA_BASE),
    (AMD64, 2, "CFA = *(rsp+8)", Refusal.CFA_KIND),
    (AMD64, 2, "CFA = undefined, RA = *(CFA-8)", Refusal.CFA_KIND),
    (AMD64, 2, "CFA = unchanged", Refusal.CFA_KIND),
    (S390X, 2, "CFA = r15+161", Refusal.CFA_SCALE),
    (S390X, 2, "CFA = r15+164", Refusal.CFA_SCALE),
    (S390X, 2, "CFA = r15", None),
    (S390X, 2, "CFA = r15-1", Refusal.CFA_SCALE),
    (AMD64, 2, "CFA = rsp+8, RA = *(CFA-16)", Refusal.RA_PLACE),
    (AMD64, 2, "CFA = rsp+8, RA = *(CFA)", Refusal.RA_PLACE),
    (AMD64, 2, "CFA = rsp+8, RA = rax", Refusal.RA_PLACE),
    (AMD64, 2, "CFA = rsp+8, RA unchanged", Refusal.RA_UNCHANGED),
    (AARCH64, 2, "CFA = sp, RA = x9", Refusal.RA_REGISTER),
    (AARCH64, 2, "CFA = sp, RA = *(x9+8)", Refusal.RA_REGISTER),
    (S390X, 2, "CFA = r15+160, RA = r5+8", Refusal.RA_REGISTER),
    (S390X, 2, "CFA = r15+160, RA = *(r5)", Refusal.RA_REGISTER),
    (S390X, 2, "CFA = r15+160, RA = r5", None),
    (AMD64, 2, "CFA = rsp+8, FP undefined", Refusal.FP_UNDEFINED),
    (AMD64, 2, "CFA = rsp+8, FP = rbx", Refusal.FP_REGISTER),
    (AMD64, 2, "CFA = rsp+8, FP = *(rbp+8)", Refusal.FP_REGISTER),
    (S390X, 2, "CFA = r15+160, FP = f0+8", Refusal.FP_REGISTER),
    (AARCH64, 2, "CFA = sp+16, FP = *(CFA-16)", Refusal.FP_WITHOUT_RA),
    (S390X, 2, "CFA = r15+160, FP = *(CFA-16)", None),
    (AMD64, 2, "CFA = rsp+8, FP = CFA+8", Refusal.FROM_CFA),
    (AARCH64, 2, "CFA = sp+8, RA = CFA+8", Refusal.FROM_CFA),
    (S390X, 2, "CFA = r15+160, RA = *(CFA-47)", Refusal.ODD_OFFSET),
    (S390X, 2, "CFA = r15+160, FP = *(CFA+1)", Refusal.ODD_OFFSET),
    (S390X, 3, "CFA = r15+160, RA = *(CFA-47)", None),
    (S390X, 2, "CFA = r15+160, RA = *(CFA)", Refusal.ZERO_OFFSET),
    (S390X, 2, "CFA = r15+160, RA = *(CFA-8), FP = *(CFA)", None),
    # flex rows have a control word for it
    (S390X, 3, "CFA = r15+160, RA = *(CFA)", None),
    (AMD64, 2, f"CFA = rsp+{2**31 - 1}", None),
    (AMD64, 2, f"CFA = rsp+{2**31}", Refusal.RANGE),
    (AMD64, 2, f"CFA = rsp-{2**31}", None),
    (AMD64, 2, f"CFA = rsp-{2**31 + 1}", Refusal.RANGE),
    (AMD64, 2, f"CFA = rsp+8, FP = *(CFA+{2**63 - 1})", Refusal.RANGE),
    (AMD64, 2, f"CFA = rsp+8, FP = *(CFA-{2**63})", Refusal.RANGE),
    (S390X, 2, f"CFA = r15+{8 * (2**31 - 1) + 160}", None),
    (S390X, 2, f"CFA = r15+{8 * 2**31 + 160}", Refusal.RANGE),
    (S390X, 2, f"CFA = r15-{2**63}", Refusal.RANGE),
    (S390X, 2, "CFA = r15+160, RA = r1073741823", None),
    (S390X, 2, "CFA = r15+160, RA = r1073741824", Refusal.RANGE),
    (AMD64, 2, "CFA = rsp+8, RA = *(CFA-8) signed", Refusal.RA_SIGNED),
    (S390X, 3, "CFA = r15+160, RA unchanged signed", Refusal.RA_SIGNED),
    (AARCH64, 1, "CFA = sp+0, RA unchanged signed", None),
    # what flex rows cannot say either
    (AMD64, 3, "CFA = r10", None),
    (AMD64, 3, "CFA = *(rsp+8), RA = *(rax), FP = rbx+8", None),
    (AMD64, 3, "CFA = CFA+8", Refusal.CFA_KIND),
    (AMD64, 3, "CFA = *(CFA+8)", Refusal.CFA_KIND),
    (AMD64, 3, "CFA = unchanged", Refusal.CFA_KIND),
    (AMD64, 3, "CFA = undefined, RA = *(CFA-8)", Refusal.CFA_KIND),
    (AMD64, 3, "CFA = rsp+8, RA unchanged", Refusal.RA_UNCHANGED),
    (AMD64, 3, "CFA = rsp+8, RA = CFA-8", Refusal.FROM_CFA),
    (AARCH64, 3, "CFA = sp+8, FP = CFA-8", Refusal.FROM_CFA),
    (AMD64, 3, "CFA = rsp+8, FP undefined", Refusal.FP_UNDEFINED),
    (AMD64, 3, "CFA = r536870911", None),
    (AMD64, 3, "CFA = r536870912", Refusal.CONTROL_RANGE),
    (AMD64, 3, "CFA = rsp+8, FP = *(r4294967295)", Refusal.CONTROL_RANGE),
    (AMD64, 3, f"CFA = r10+{2**31}", Refusal.RANGE),
    (AMD64, 3, f"CFA = r10-{2**31}", None),
    (S390X, 3, "CFA = r5+161", Refusal.CFA_SCALE),
    (S390X, 3, "CFA = *(r5+164)", Refusal.CFA_SCALE),
]


@pytest.mark.parametrize(("machine", "version", "text", "reason"), RULES)
def test_rules(machine: Machine, version: int, text: str, reason: Refusal | None) -> None:
    rule = Rule.parse(text, machine)
    builder = SectionBuilder(machine)
    fine = "CFA = r15+160" if machine is S390X else "CFA = sp+16"
    builder.function(0x100, 16, [fine])
    builder.function(0x200, 16, [fine, (8, rule)])
    table = builder.table()
    if reason is None:
        assert refusals(table, version) == []
        found = to_table(decode(encode(build(table, version=version).section))).find(0x208)
        assert found.rule == rule
        return
    (one,) = refusals(table, version)
    assert (one.range, one.row, one.reason) == (1, 2, reason)
    assert one.text(table) == f"{reason.words}: {rule.text(machine)}"
    with pytest.raises(InexpressibleError) as error:
        build(table, version=version)
    assert error.value.rule == reason.name.lower().replace("_", "-")
    assert error.value.function == "function 1 at 0x200"
    assert f"version {version} cannot say {reason.words}" in str(error.value)
    built = build(table, version=version, leave_out=True)
    assert built.refused == (one,)
    kept = to_table(decode(encode(built.section)))
    assert kept.range_start.tolist() == [0x100]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("reason", Reason)
def test_inexpressible_rules(version: int, reason: Reason) -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, [inexpressible(reason)])
    assert [one.reason for one in refusals(builder.table(), version)] == [Refusal.INEXPRESSIBLE]
    parts = [Rule(CFA, RA, inexpressible(reason).cfa), Rule(CFA, inexpressible(reason).cfa)]
    for rule in parts:
        builder = SectionBuilder(AMD64)
        builder.function(0, 16, [rule])
        assert [one.reason for one in refusals(builder.table(), version)] == [Refusal.INEXPRESSIBLE]


RANGES = [
    (AMD64, 1, {"signal": True}, Refusal.SIGNAL),
    (AMD64, 2, {"signal": True}, Refusal.SIGNAL),
    (AMD64, 3, {"signal": True}, None),
    (AMD64, 1, {"block": 16}, None),
    (AMD64, 1, {"block": 8}, Refusal.BLOCK_SIZE),
    (AMD64, 1, {"block": 32}, Refusal.BLOCK_SIZE),
    (AMD64, 2, {"block": 255}, None),
    (AMD64, 2, {"block": 256}, Refusal.BLOCK_SIZE),
    (AMD64, 3, {"block": 1}, None),
    (AMD64, 3, {"block": 256}, Refusal.BLOCK_SIZE),
    (AMD64, 3, {"size": 2**32 - 1}, None),
    (AMD64, 3, {"size": 2**32}, Refusal.FUNCTION_SIZE),
    (AMD64, 1, {"size": 2**33}, Refusal.FUNCTION_SIZE),
    (AMD64, 3, {"pauth_key": "B"}, Refusal.PAUTH_KEY),
    (S390X, 2, {"pauth_key": "B"}, Refusal.PAUTH_KEY),
    (AARCH64, 1, {"pauth_key": "B"}, None),
    (AMD64, 1, {"start": 2**31}, Refusal.FUNCTION_REACH),
    (AMD64, 2, {"start": 2**63}, Refusal.FUNCTION_REACH),
    (AMD64, 3, {"start": 2**63}, None),
]


@pytest.mark.parametrize(("machine", "version", "what", "reason"), RANGES)
def test_ranges(machine: Machine, version: int, what: dict[str, Any], reason: Refusal | None) -> None:
    what = dict(what)
    start, size = what.pop("start", 0x100), what.pop("size", 300)
    builder = SectionBuilder(machine)
    builder.function(start, size, ["CFA = sp+160"], **what)
    table = builder.table()
    if reason is None:
        found = to_table(decode(encode(build(table, version=version).section))).find(start + size - 1)
        assert (found.start, found.size, found.signal) == (start, size, what.get("signal", False))
        return
    with pytest.raises(InexpressibleError) as error:
        build(table, version=version)
    assert error.value.rule == reason.name.lower().replace("_", "-")
    built = build(table, version=version, leave_out=True)
    assert [(one.range, one.row, one.reason) for one in built.refused] == [(0, None, reason)]
    assert built.refused[0].text(table) == reason.words
    assert len(built.section.functions) == 0


def test_every_refusal_has_words_and_a_test() -> None:
    tested = {reason for *_, reason in RULES + RANGES} | {Refusal.INEXPRESSIBLE, Refusal.BLOCK_ROWS, Refusal.NONE}
    assert tested - {None} == set(Refusal)
    assert [reason for reason in Refusal if not reason.words] == [Refusal.NONE]


def test_what_is_refused_is_counted() -> None:
    builder = SectionBuilder(AMD64)
    for n in range(5):
        builder.function(n * 16, 16, ["CFA = r10" if n % 2 else "CFA = rsp+8"])
    with pytest.raises(InexpressibleError, match=r"and 1 functions? more"):
        builder.build(version=2)
    built = builder.build(version=2, leave_out=True)
    assert [one.range for one in built.refused] == [1, 3]
    assert len(built.section.functions) == 3


def test_the_first_reason_counts() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8", (1, "CFA = rsp+8, FP = rbx"), (2, "CFA = r10")], signal=True)
    assert [(one.row, one.reason) for one in refusals(builder.table(), 2)] == [(None, Refusal.SIGNAL)]
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8", (1, "CFA = rsp+8, FP = rbx"), (2, "CFA = r10")])
    assert [(one.row, one.reason) for one in refusals(builder.table(), 2)] == [(1, Refusal.FP_REGISTER)]


def test_far_functions_are_left_out_and_near_ones_kept() -> None:
    builder = SectionBuilder(AMD64)
    for start in (2**31 + 100, 0x1000, 2**40, 2**64 - 4096):
        builder.function(start, 16, ["CFA = rsp+8"])
    built = builder.build(version=2, leave_out=True)
    assert [one.range for one in built.refused] == [0, 2]
    assert decode(encode(built.section)).code_address.tolist() == [0x1000, 2**64 - 4096]


def many_rows_in_a_block() -> UnwindTable:
    builder = SectionBuilder(AMD64)
    builder.function(0x1000, 510, ["CFA = rsp+8"], block=255)
    table = builder.table()
    count = 65536
    table.range_rows[0] = count
    table.row_offset = np.minimum(np.arange(count), 254).astype(np.uint32)
    table.row_rule = np.zeros(count, np.uint32)
    return table


def test_a_block_of_very_many_rows() -> None:
    assert [one.reason for one in refusals(many_rows_in_a_block(), 3)] == [Refusal.BLOCK_ROWS]


def test_version_1_does_not_know_s390x() -> None:
    builder = SectionBuilder(S390X)
    builder.function(0, 16, ["CFA = r15+160"])
    with pytest.raises(InexpressibleError):
        builder.build(version=1)


def test_signed_return_addresses_are_aarch64s() -> None:
    builder = SectionBuilder(AMD64)
    builder.function(0, 16, ["CFA = rsp+8, RA = *(CFA-8) signed"])
    with pytest.raises(InexpressibleError):
        builder.build(version=3)


@pytest.mark.parametrize(
    ("start", "size", "row"),
    [
        (0, 2**33, (2**32, "CFA = rsp+8")),
        (2**64, 16, "CFA = rsp+8"),
        (-1, 16, "CFA = rsp+8"),
        (0, -1, "CFA = rsp+8"),
        (0, 16, "CFA = r4294967296"),
        (0, 16, f"CFA = rsp+{2**63}"),
    ],
)
def test_numbers_that_are_too_large(start: int, size: int, row: str | tuple[int, str]) -> None:
    def make() -> None:
        builder = SectionBuilder(AMD64)
        builder.function(start, size, [row])
        builder.build()

    with pytest.raises((ValueError, WalkbackError)):
        make()
