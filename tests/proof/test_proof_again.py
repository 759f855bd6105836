"""What is proved or read once more is only what has changed, and the proof is as if all of it were."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from walkback.base.arrays import Bools
from walkback.dwarf.files import FrameSource, frame_sources
from walkback.elf import ElfFile
from walkback.proof import _scan, prove
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.ranges import walked_again

_PARTS = ("verdicts", "reasons", "runs", "mismatches")


OTHER = "f{0}: .cfi_startproc; push %rbx; .cfi_def_cfa_offset 16; .cfi_offset 3,-16; pop %rbx; ret; .cfi_endproc;"
PARTED = (  # a function with a part that is called too, and a handler that goes on there by a table of unknown length
    ".type f,@function; f: .cfi_startproc; push %rax; .cfi_def_cfa_offset 16; call f.cold; cmp $1,%rdi; ja 1f;"
    "jmp *t(,%rdi,8); 1: pop %rax; .cfi_def_cfa_offset 8; ret; .cfi_endproc; .type f.cold,@function;"
    "f.cold: .cfi_startproc; .cfi_def_cfa_offset 16; nop; ud2; .cfi_endproc; .size f.cold,.-f.cold; .balign 16;"
    "handler: .cfi_startproc; .cfi_def_cfa_offset 16; nop; jmp *u(,%rdi,8); .cfi_endproc; .section .rodata;"
    "t: .quad 1b, f.cold; u: .quad f.cold, f.cold; .text;"
)


def _assembled(folder: Path) -> Path:
    path, text = folder / "f.o", PARTED + "".join(OTHER.format(number) for number in range(40))
    subprocess.run(["as", "-o", path, "-"], input=text.replace(";", "\n").encode(), check=True)
    return path


@pytest.fixture(params=["object", "library"])
def prover(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Prover, FrameSource]:
    """A file of which some ranges are found to be parts of functions when all are walked."""
    library = next(Path("/usr/lib").glob("*-linux-gnu/libc.so.6"))
    elf = ElfFile(_assembled(tmp_path) if request.param == "object" else library)
    [source] = [one for one in frame_sources(elf) if one.name == ".eh_frame"]
    return Prover(elf), source


def _same(one: Proof, other: Proof) -> bool:
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in _PARTS)


def _noted(again: list[Bools], chosen: Callable[[Bools], Bools], monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(*args: object) -> Bools:
        again.append(chosen(walked_again(*args)))  # type: ignore[arg-type]
        return again[-1]

    monkeypatch.setattr(prove, "walked_again", noted)


def test_few_units_are_walked_again(prover: tuple[Prover, FrameSource], monkeypatch: pytest.MonkeyPatch) -> None:
    few: list[Bools] = []
    _noted(few, lambda found: found, monkeypatch)
    one, source = prover
    found = one.prove(source.table, source)
    everything: list[Bools] = []
    _noted(everything, np.ones_like, monkeypatch)
    assert _same(one.prove(source.table, source), found)
    assert len(few) == len(everything)
    assert all(again.sum() < len(again) / 4 for again in few)
    if one.elf.is_relocatable:  # whether a library has such parts depends on its version
        assert [int(again.sum()) for again in few] == [3]


def test_some_functions_are_proved_with_parts_as_with_all(prover: tuple[Prover, FrameSource]) -> None:
    one, source = prover
    whole = one.prove(source.table, source)
    wanted = whole.ranges.start[::7]
    some = one.prove(source.table, source, only=wanted)
    assert np.array_equal(some.verdicts[::7], whole.verdicts[::7])
    assert np.array_equal(some.runs, whole.runs[whole.runs[:, 0] % 7 == 0])
    assert not np.delete(some.verdicts, np.s_[::7], axis=0).any()


def test_code_that_was_seen_is_not_read_again(
    prover: tuple[Prover, FrameSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, source = prover
    found = one.prove(source.table, source)
    read: list[int] = []
    monkeypatch.setattr(_scan, "_scan", lambda _code, wanted, *_: read.append(len(wanted)))
    assert _same(one.prove(source.table, source), found)
    assert read == [0]


OTHERWISE = {
    "only the edges of a function": ("call g; nop; nop", [(0, 1), (7, 8), (16, 22)]),
    "a function that is cut within an instruction": ("nop; nop; mov 0x909090(%rdi),%eax", [(0, 4), (4, 9), (16, 22)]),
    "a function more": ("call g; nop; nop", [(0, 8), (16, 22), (32, 34)]),
}
"""Code of a function, and the ranges of a second table, whose rules are wrong."""


@pytest.mark.parametrize("name", OTHERWISE)
def test_a_table_is_proved_as_if_there_were_no_other(name: str, tmp_path: Path) -> None:
    code, ranges = OTHERWISE[name]
    text = (
        ".type f,@function; f: .cfi_startproc; {0}; ret; .cfi_endproc; .balign 16; g: .cfi_startproc;"
        ".cfi_def_cfa_offset 16; nop; nop; pop %rax; push %rax; pop %rax; ret; .cfi_endproc; .balign 16; h: jmp f+5;"
        ".section .debug_frame; c: .long 1f-0f; 0: .long -1; .byte 1,0; .uleb128 1; .sleb128 -8; .byte 16,12,7,8;"
        ".balign 8; 1:; {1} .text;"
    )
    entry = ".long 3f-2f; 2: .long c; .quad f+{0},{1}; .byte 14,16; .balign 8; 3:;"
    entries = "".join(entry.format(begin, end - begin) for begin, end in ranges)
    path = tmp_path / "f.o"
    lines = text.format(code, entries).replace(";", "\n").encode()
    subprocess.run(["as", "-o", path, "-"], input=lines, check=True)
    one = Prover(ElfFile(path))
    proofs = [one.prove(source.table, source) for source in one.sources]
    assert len(proofs) == 2
    for source, found in zip(one.sources, proofs, strict=True):
        alone = Prover(one.elf).prove(source.table, source)
        assert _same(found, alone)
        for place in [row[0] for unit in range(len(alone.units.count)) for row in alone.instructions(unit)]:
            unit = alone.unit_of(int(place))
            assert unit is not None
            assert found.states_at(unit, [place]) == alone.states_at(unit, [place])
