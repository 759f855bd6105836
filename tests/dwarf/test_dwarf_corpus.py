"""`.sframe` against `.eh_frame` of a file: equal for compiled code, and the defects of assembler and linker show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpus import PREFIXES, corpus, gas_object
from walkback.dwarf.files import read as cfi_sources
from walkback.sframe.files import read as sources
from walkback.table.comparing import Comparison, compare
from walkback.table.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers

FILES = ("plain.c", "shapes.cc", "large.c", "calls.c", "program", "compiler-output", "libcalls", "amalgamated")
"""What compilers made, and what was linked of it."""


def compared(path: Path) -> Comparison:
    """The first SFrame section against `.eh_frame`."""
    source = next(iter(sources(path)))
    (cfi,) = [one for one in cfi_sources(path) if one.name == ".eh_frame"]
    piece = next(iter(source.pieces()))
    return compare(piece.table, cfi.table)


def named(arch: str, name: str, producer: str = "new") -> Path:
    (sample,) = [one for one in corpus() if (one.arch, one.producer, one.path.name) == (arch, producer, name)]
    return sample.path


def stretches(found: Comparison, verdict: Verdict) -> list[tuple[int, int, str, str]]:
    """Start from the first address that either has, size, and both rules."""
    base = min(int(table.range_start.min()) for table in (found.one, found.other))
    return [(one.start - base, one.size, one.one, one.other) for one in found.stretches(verdict)]


def differences(arch: str, name: str, producer: str = "new") -> list[tuple[int, int, str, str]]:
    return stretches(compared(named(arch, name, producer)), Verdict.DIFFERENT)


@pytest.mark.parametrize("arch", PREFIXES)
def test_compiled_code_has_the_same_rules_at_every_address(arch: str) -> None:
    count = size = 0
    kinds = {"object", "shared", "executable", "relocatable"}
    for sample in corpus():
        wanted = (sample.arch, sample.producer) == (arch, "new") and sample.kind in kinds
        if not wanted or not sample.path.name.removeprefix(f"{arch}-").startswith(FILES):
            continue
        if "discard" in sample.path.name:
            continue
        found = compared(sample.path)
        assert found.equal, sample.path
        for verdict in (Verdict.ONLY_ONE, Verdict.NEITHER):
            assert found.code_bytes(verdict) == 0, sample.path
        # ld writes no SFrame for the linkage tables of AArch64.
        assert found.code_bytes(Verdict.ONLY_OTHER) == 0, sample.path
        count += 1
        size += found.code_bytes(Verdict.EQUAL)
    assert count >= 20
    assert size > 300_000


def test_what_older_assemblers_wrote_is_equal_and_leaves_out_realigned_stacks() -> None:
    count = 0
    for sample in corpus():
        compiled = sample.path.name.startswith(("plain.c", "shapes.cc", "large.c", "calls.c"))
        if sample.producer not in {"2.40", "2.44"} or sample.kind != "object" or not compiled:
            continue
        found = compared(sample.path)
        assert found.equal, sample.path
        assert found.code_bytes(Verdict.ONLY_ONE) == 0
        assert found.ranges(Verdict.ONLY_OTHER) <= 1
        for one in found.stretches(Verdict.ONLY_OTHER):
            assert one.one == "no rule"
        count += 1
    assert count >= 20


def test_g1_a_wide_offset_of_the_return_address_is_cut() -> None:
    one, other = "CFA = rsp+8, RA = *(CFA+56), FP", "CFA = rsp+8, RA = *(CFA-200), FP"
    assert differences("amd64", "amd64-flex-wide-offsets.o") == [
        (1, 1, f"{one} unchanged", f"{other} unchanged"),
        (2, 1, f"{one} = *(rbp-64)", f"{other} = *(rbp-64)"),
    ]


def test_g2_a_wide_offset_of_the_frame_pointer_is_cut() -> None:
    # In this input the expression has three bytes and says that it has two: as DWARF it cannot be read.
    ((start, size, one, other),) = stretches(compared(named("amd64", "amd64-flex-wide-offsets.o")), Verdict.ONLY_ONE)
    assert (start, size, one) == (3, 1, "CFA = rsp+8, RA = *(CFA+56), FP = *(rbp+56)")
    assert other.endswith("FP inexpressible (an expression that is no rule of the table)")


CUT = "FP = *(r536870911+16)"


def test_g3_an_expression_of_another_register_becomes_one_that_does_not_exist() -> None:
    start = "CFA = rsp+8, RA = *(CFA-8), "
    assert differences("amd64", "amd64-escape-expressions.o") == [
        (1, 1, start + CUT, start + "FP = *(rsp+16)"),
        (3, 1, start + CUT, start + "FP = *(r10+16)"),
    ]
    start = "CFA = sp, RA unchanged, "
    assert differences("aarch64", "aarch64-refused-directives.o") == [(48, 4, start + CUT, start + "FP = *(sp+16)")]
    start = "CFA = r15+160, RA unchanged, "
    last = differences("s390x", "s390x-refused-directives.o")[-1]
    assert last == (24, 2, start + CUT, start + "FP = *(r15+16)")


def test_g4_a_nested_state_is_restored_to_the_inner_one() -> None:
    first = differences("amd64", "amd64-nested-state-and-cold-part.o")[0]
    rest = "RA = *(CFA-8), FP unchanged"
    assert first == (5, 1, f"CFA = rsp+24, {rest}", f"CFA = rsp+16, {rest}")


def test_g5_a_frame_pointer_saved_from_the_first_row_on_is_never_restored() -> None:
    # The function has the CIE of the others, so that .eh_frame says what was meant.
    found = differences("amd64", "amd64-nested-state-and-cold-part.o")[1]
    start = "CFA = rsp+8, RA = *(CFA-8), FP"
    assert found == (8, 1, f"{start} = *(CFA-16)", f"{start} unchanged")


def test_g6_an_undefined_return_address_stays_so() -> None:
    found = differences("amd64", "amd64-nested-state-and-cold-part.o")[2:]
    rule = "CFA = rsp+8, RA = *(CFA-8), FP unchanged"
    assert found == [(11, 1, "outermost frame", rule), (14, 1, "outermost frame", rule)]


def test_g8_an_odd_offset_of_s390x_is_rounded() -> None:
    first = differences("s390x", "s390x-refused-directives.o")[0]
    rest = "RA unchanged, FP unchanged"
    assert first == (10, 2, f"CFA = r1+160, {rest}", f"CFA = r1+161, {rest}")


@pytest.mark.parametrize(
    ("producer", "name", "size"),
    [("2.44", "amd64-plt-got.so", 16), ("new", "amd64-plt-got.so", 16), ("new", "plt-got-ibt.so", 32)],
)
def test_l2_the_row_of_plt_got_says_that_something_was_pushed(producer: str, name: str, size: int) -> None:
    ((_, length, one, other),) = differences("amd64", name, producer)
    rest = "RA = *(CFA-8), FP unchanged"
    assert (length, one, other) == (size, f"CFA = rsp+16, {rest}", f"CFA = rsp+8, {rest}")


@pytest.mark.parametrize("name", ["amd64-plt-lazy.so", "plt-ibt.so", "plt-now.so", "plt-lazy-pie"])
def test_lazy_linkage_tables_are_equal_block_by_block(name: str) -> None:
    found = compared(named("amd64", name))
    assert found.equal
    assert found.code_bytes(Verdict.EQUAL) == sum(found.code_bytes(verdict) for verdict in Verdict) > 40
    (cfi,) = [one for one in cfi_sources(named("amd64", name)) if one.name == ".eh_frame"]
    assert 16 in cfi.table.range_block or "now" in name


def test_signal_frames_and_keys_belong_to_the_rule() -> None:
    text = """
        .text
    f:  .cfi_startproc
        .cfi_b_key_frame
        nop
        .cfi_negate_ra_state
        nop
        .cfi_endproc
    """
    path = gas_object(text, arch="aarch64")
    found = compared(path)
    assert found.equal
    assert found.code_bytes(Verdict.EQUAL) == 8
    # Another key is another rule, where the return address is signed.
    found.other.range_pauth_key[:] = 0
    (part,) = compare(found.one, found.other).stretches(Verdict.DIFFERENT)
    rule = "CFA = sp, RA unchanged signed, FP unchanged"
    assert (part.start, part.size, part.one, part.other) == (4, 4, f"{rule}, key B", rule)
