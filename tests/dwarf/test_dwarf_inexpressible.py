"""What instructions say and no row can: numbers beyond all use, no CFA, other registers."""

from __future__ import annotations

import pytest

from cfibuilder import (
    expr,
)
from dwarf.programs import amd64, last, rows
from walkback.base.arch import S390X

pytestmark = pytest.mark.kernel


INEXPRESSIBLE = "inexpressible (a register number or offset beyond all use)"


def test_numbers_beyond_all_use_are_inexpressible() -> None:
    assert last(f"def_cfa_offset {2**43}").startswith(f"CFA {INEXPRESSIBLE}, RA = ")
    assert last(f"def_cfa_offset {2**43 - 1}") == amd64(f"rsp+{2**43 - 1}")
    assert last("def_cfa_register 0x10000").startswith(f"CFA {INEXPRESSIBLE}")
    assert last("def_cfa_register 0xffff") == amd64("r65535+8")
    assert last("register 6 0x10000") == amd64("rsp+8", fp=f"FP {INEXPRESSIBLE}")
    assert last(f"offset 6 {2**40}") == amd64("rsp+8", fp=f"FP {INEXPRESSIBLE}")
    assert last(f"val_offset_sf 6 {-(2**40) + 1}") == amd64("rsp+8", fp=f"FP = CFA+{2**43 - 8}")


def test_numbers_beyond_all_use_are_remembered_as_they_are() -> None:
    assert last(f"def_cfa_offset {2**63}; remember_state; def_cfa_offset 8; restore_state; def_cfa_offset 16") == amd64(
        "rsp+16"
    )
    assert last("def_cfa_register 0x100006; remember_state; restore_state").startswith(f"CFA {INEXPRESSIBLE}")


def test_no_cfa_is_inexpressible() -> None:
    missing = "inexpressible (nothing says how the CFA is found)"
    assert last("offset 6 2", start="") == f"CFA {missing}, RA unchanged, FP = *(CFA-16)"
    assert last("def_cfa_offset 16", start="").startswith(f"CFA {missing}")


def test_a_return_address_in_another_column() -> None:
    assert last("", start="def_cfa 7 8", ra=3) == amd64("rsp+8", ra="RA = rbx")
    assert last("offset 3 1", start="def_cfa 7 8", ra=3) == amd64("rsp+8")
    assert last("offset 16 5", start="def_cfa 7 8; offset 3 1", ra=3) == amd64("rsp+8")
    found = rows("advance_loc 1; offset 14 2", machine=S390X, start="def_cfa 15 160", ra=14, order="big")
    assert found[0][1] == "CFA = r15+160, RA unchanged, FP unchanged"


def test_a_return_address_in_the_frame_pointer() -> None:
    found = last("offset 6 1", start="def_cfa 7 8", ra=6)
    assert found == amd64("rsp+8", fp="FP = *(CFA-8)")
    assert last("offset 6 1; restore 6", start="def_cfa 7 8; offset 6 3", ra=6) == amd64(
        "rsp+8", ra="RA = *(CFA-24)", fp="FP = *(CFA-24)"
    )


STACK = "inexpressible (the caller's SP is not the CFA)"
REFUSED = f"CFA {STACK}, RA {STACK}, FP {STACK}"


def test_the_callers_stack_pointer_is_the_cfa() -> None:
    assert last("val_offset 7 0") == amd64("rsp+8")
    assert last("val_offset 7 1") == REFUSED
    assert last("offset 7 2") == REFUSED
    assert last("same_value 7") == REFUSED
    assert last("register 7 6") == REFUSED
    assert last("def_cfa 6 0; register 7 6") == amd64("rbp")
    assert last("offset 7 2; restore 7") == amd64("rsp+8")
    assert last(f"def_cfa_expression {expr('breg7 160; deref')}; expression 7 {expr('breg7 160')}") == amd64(
        "*(rsp+160)"
    )


def test_s390x_saves_the_stack_pointer_like_any_other_register() -> None:
    s390x = {"machine": S390X, "start": "def_cfa 15 160", "ra": 14, "order": "big"}
    plain = "CFA = r15+160, RA unchanged, FP unchanged"
    for program in ("offset 15 5", "register 15 16", "val_offset 15 20"):
        assert last(program, **s390x) == plain
    # As Go has it: the CFA of the table is still 160 bytes above the stack pointer of the caller.
    assert last("val_offset 15 0", **s390x) == "CFA = r15+320, RA unchanged, FP unchanged"
    assert last("offset 14 20; val_offset 15 0", **s390x) == "CFA = r15+320, RA = *(CFA-320), FP unchanged"
    assert last("register 14 16; register 11 17", **s390x) == "CFA = r15+160, RA = f0, FP = f2"
