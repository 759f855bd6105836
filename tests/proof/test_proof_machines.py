"""The proof on what compilers make of AArch64 and s390x alone, in small functions and from the compilers themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peers import peer
from proof.assembled import verified

if TYPE_CHECKING:
    from pathlib import Path

SAVES = (
    "stmg %r14,%r15,112(%r15); .cfi_offset 14,-48; .cfi_offset 15,-40; aghi %r15,-160; .cfi_def_cfa_offset 320;"
    "brasl %r14,g; lmg %r14,%r15,272(%r15); .cfi_restore 14; .cfi_restore 15; .cfi_def_cfa_offset 160; br %r14"
)


@pytest.mark.parametrize(("link", "is_proved"), [("%r0", True), ("%r14", False)])
def test_the_call_of_a_tracer_keeps_the_link_register_of_s390x(link: str, is_proved: bool, tmp_path: Path) -> None:
    found = verified(f"brasl {link},__fentry__; {SAVES}", tmp_path, assembler=peer("s390x-as-2.44"))
    assert (found.functions_proved, found.functions_wrong) == (is_proved, not is_proved)
    assert found.unknown == 0
