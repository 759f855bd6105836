"""What describes functions that the linker discarded goes: their starts have no value, or that of another copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from corpus import CASES, gas_object
from peers import run
from sections.joining import assembled, expected, named, told_by
from walkback import fix

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.peers

INNER = """
	.section .text._Z3inlv,"axG",@progbits,_Z3inlv,comdat
	.type inner,@function
inner:	.cfi_startproc
	sub $24,%rsp
	.cfi_def_cfa_offset 32
	ret
	.cfi_endproc
"""


@pytest.mark.parametrize("options", [("-e", "_start"), ("-shared",), ("-pie", "-e", "_start")])
@pytest.mark.parametrize("linker", ["ld-2.35", "ld.lld", "gold-2.40", "gold-2.44"])
@pytest.mark.parametrize("producer", ["2.40", "2.44", "new", "llvm"])
def test_what_describes_a_discarded_copy_goes(
    producer: str, linker: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """These linkers refuse such objects unless they must link; then the starts are near zero, or of the other copy."""
    texts = [(CASES / f"amd64-comdat-{letter}.s").read_text() + INNER for letter in "ab"]
    objects = [gas_object(text, version=producer) for text in texts]
    path, output = tmp_path / "program", tmp_path / "fixed"
    run(linker, "--noinhibit-exec", *options, "-o", path, *objects, check=True)
    fixed = fix(path, output)
    told = named(output, "readelf-2.40" if fixed.version == 1 else "readelf-new")
    assert [name for name, _ in told] == ["_Z3inlv", "_start", "fb", "inner", "un1", "un2"]
    assert fixed.functions == 6
    assert any("not there" in problem or "duplicate" in problem for problem in fixed.problems)


@pytest.mark.parametrize("linker", ["ld-2.40", "ld-2.44"])
def test_what_describes_discarded_text_goes(linker: str, tmp_path: Path) -> None:
    """Of a version that these linkers do not know, and so copy."""
    script, path = tmp_path / "script", tmp_path / "program"
    script.write_text(
        "SECTIONS { . = 0x400000 + SIZEOF_HEADERS; .text : { *(.text .text.a_own) } .sframe : { KEEP(*(.sframe)) }"
        " .eh_frame : { *(.eh_frame) } /DISCARD/ : { *(.text.b_own) *(.note*) } }"
    )
    run(linker, "-e", "a_leaf", "-T", script, "-o", path, assembled("a", "new"), assembled("b", "new"), check=True)
    fixed = fix(path)
    functions = expected("ab")
    del functions["b_own"]
    assert told_by(path) == functions
    assert any(problem.startswith("1 function") for problem in fixed.problems), fixed.problems
