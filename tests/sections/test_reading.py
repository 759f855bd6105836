"""SFrame from several tables of one file: what each says, and which holds where two describe the same code."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import walkback
from cfibuilder import CfiBuilder, cfa
from gopclntab.gotables import TEXT, Function, encoded, go_program
from peers import root
from walkback.base.errors import ArgumentError, GoError, MissingError
from walkback.elf.golang import FUNCTIONS as FUNCTIONS_OF_GO
from walkback.proof.values import Verdict
from walkback.sections.derive import Derived

FUNCTIONS = [Function("main.main", 64, [(0, 0), (4, 24), (60, 0)]), Function("main.init", 64), Function("main.end", 64)]
FRAMES = 0x700000


def program(*fdes: tuple[int, int], name: str = ".eh_frame") -> bytes:
    """A Go program with functions of C too: their starts and sizes."""
    section = CfiBuilder(eh=name == ".eh_frame", address=FRAMES)
    cie = section.cie(cfa("def_cfa 7 8; offset 16 1"))
    for start, size in fdes:
        section.fde(cie, start, size, cfa("advance_loc 1; def_cfa_offset 48"))
    return go_program(encoded(FUNCTIONS), ".gopclntab", frames=(name, section.bytes(), FRAMES))


def rules(derived: Derived, address: int) -> str | None:
    found = derived.table.find(address)
    return None if found is None else found.rule.cfa.text("AMD64")


def test_a_program_of_go_gets_the_rules_of_its_own_table() -> None:
    derived = walkback.derive(go_program(encoded(FUNCTIONS), ".gopclntab"))
    assert (derived.covered, derived.functions, derived.proof().equal) == (3, 3, True)
    assert [rules(derived, TEXT + at) for at in (0, 5, 70)] == ["rsp+8", "rsp+32", "rsp+8"]


def test_a_frame_pointer_that_go_loses_is_said_to_be_unchanged() -> None:
    """On s390x; SFrame has no word for a lost one."""
    functions = [Function("main.main", 64, [(0, 0), (4, 24), (60, 0)]), Function("main.init", 64)]
    data = go_program(encoded(functions, order="big", quantum=2), ".gopclntab", order="big", machine=22)
    derived = walkback.derive(data)
    assert (derived.covered, derived.functions, derived.proof().equal) == (2, 2, True)
    assert derived.notes == [
        "2 functions of Go may lose the frame pointer; SFrame cannot say so, and Go does not need it"
    ]
    found = derived.table.find(TEXT + 5)
    assert found is not None
    assert found.rule.text("s390x") == "CFA = r15+184, RA = *(CFA-184), FP unchanged"
    [source] = walkback.gopclntab.read(data)
    assert source.table.rule_texts()[-1].endswith("FP undefined")
    assert walkback.derive(go_program(encoded(FUNCTIONS), ".gopclntab")).notes == []


def test_call_frame_information_holds_where_go_says_something_too() -> None:
    data = program((TEXT + 32, 64), (TEXT + 0xD0, 16))
    derived = walkback.derive(data)
    assert [source.name for source in derived.read.sources] == [".eh_frame", ".gopclntab"]
    assert (derived.covered, derived.functions, derived.shadowed) == (3, 3, 2)
    assert [rules(derived, TEXT + at) for at in (5, 40, 70, 100, 0x80, 0xD1)] == [
        *(None, "rsp+48", "rsp+48", None, "rsp+8", "rsp+48"),
    ]
    only = [walkback.derive(data, tables=tables) for tables in ("cfi", "go")]
    assert [(one.functions, one.shadowed) for one in only] == [(2, 0), (3, 0)]


def test_the_debug_frame_that_go_makes_of_its_table_is_not_read() -> None:
    data = program((TEXT, 64), name=".debug_frame")
    assert [source.name for source in walkback.derive(data).read.sources] == [".gopclntab"]
    assert walkback.derive(data, tables="cfi").source.name == ".debug_frame"
    assert walkback.derive(data, section=".debug_frame").source.name == ".debug_frame"


def test_a_damaged_table_of_go_is_passed_over_only_beside_call_frame_information() -> None:
    damaged = encoded(FUNCTIONS).replace(b"\xf1", b"\x12", 1)
    section = CfiBuilder(address=FRAMES)
    section.fde(section.cie(cfa("def_cfa 7 8; offset 16 1")), TEXT, 16)
    data = go_program(damaged, ".gopclntab", frames=(".eh_frame", section.bytes(), FRAMES))
    assert [source.name for source in walkback.derive(data).read.sources] == [".eh_frame"]
    assert [found.table for found in walkback.verify(data)] == [".eh_frame"]
    with pytest.raises(GoError, match="this is no table of Go's functions"):
        walkback.derive(data, tables="go")
    with pytest.raises(GoError, match="this is no table of Go's functions"):
        walkback.derive(go_program(damaged, ".gopclntab"))


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(MissingError, match=r"there is no \.eh_frame or \.debug_frame section"):
        walkback.derive(go_program(encoded(FUNCTIONS), ".gopclntab"), tables="cfi")
    with pytest.raises(MissingError, match="there is no table of Go's functions"):
        walkback.derive("/bin/true", tables="go")
    with pytest.raises(ArgumentError, match="is not read where only the table of Go's functions is wanted"):
        walkback.derive("/bin/true", tables="go", section=".eh_frame")
    with pytest.raises(ArgumentError, match=r"^/bin/true: \.gopclntab is no call frame information"):
        walkback.derive("/bin/true", tables="cfi", section=".gopclntab")
    with pytest.raises(MissingError, match=r"there is no \.orc_unwind section"):
        walkback.derive("/bin/true", section=".orc_unwind")


@pytest.mark.parametrize("section", FUNCTIONS_OF_GO)
def test_the_table_of_go_may_be_chosen_by_the_name_of_its_section(section: str) -> None:
    data = go_program(encoded(FUNCTIONS), ".gopclntab")
    assert walkback.derive(data, section=section).contents == walkback.derive(data, tables="go").contents
    assert walkback.derive(data, section=section, tables="go").source.name == ".gopclntab"


def test_a_word_that_is_none_is_refused_wherever_tables_are_chosen(tmp_path: Path) -> None:
    word: Any = "bogus"
    nothing: Any = ""
    data = program((TEXT, 64))
    calls: list[Callable[[], object]] = [
        lambda: walkback.derive(data, tables=word),
        lambda: walkback.add(data, io.BytesIO(), tables=word),
        lambda: walkback.size(data, tables=word),
        lambda: walkback.size(data, tables=nothing),
        lambda: list(walkback.compare(data, tables=word)),
        lambda: list(walkback.compare(data, data, other_tables=word)),
        lambda: walkback.report(data, io.BytesIO(), tables=word),
        lambda: walkback.survey(["/bin/true"], tmp_path / "survey", tables=word),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match=r"there are no tables '(bogus)?'; known: auto, cfi, go, orc, code"):
            call()
    assert not (tmp_path / "survey").exists()


@pytest.mark.peers
def test_a_real_program_of_go_is_covered_proved_and_runs(tmp_path: Path) -> None:
    age, with_sframe = root("samples-amd64") / "usr" / "bin" / "age", tmp_path / "age"
    added = walkback.add(age, with_sframe)
    derived = added.derived
    assert derived.covered_bytes > 0.998 * derived.code_bytes
    assert {one.source for one in derived.uncovered} == {derived.read.sources[1].name}
    assert {one.code for one in derived.uncovered} == {"other-stack"}
    assert "runtime.systemstack" in [one.name for one in derived.uncovered]
    version = [
        subprocess.run([path, "--version"], capture_output=True, check=True).stdout for path in (age, with_sframe)
    ]
    assert version[0] == version[1] != b""
    [verified] = walkback.verify(with_sframe, table=".sframe")
    assert verified.proved > 0.99 * verified.reached
    wrong = verified.proof.verdicts[:, Verdict.WRONG] > 0
    names = [verified.prover.symbols.name_at(start) for start in verified.proof.ranges.start[wrong].tolist()]
    assert names in ([], ["runtime.badmcall"], [None])  # which `runtime.mcall` jumps to with one word too many


def test_what_expressions_say_of_a_function_its_code_says_too(tmp_path: Path) -> None:
    """The CFA is computed, to the word at the stack pointer plus 8: the table has no such rule."""
    source, path = tmp_path / "f.s", tmp_path / "f.o"
    source.write_text(
        ".type f, @function\nf: .cfi_startproc\nsub $24, %rsp\n.cfi_escape 0x0f, 5, 0x77, 24, 6, 0x23, 8\ncall g\n"
        "add $24, %rsp\n.cfi_def_cfa 7, 8\nret\n.cfi_endproc\n.size f, .-f\n"
    )
    subprocess.run(["as", "-o", path, source], check=True)
    frames, auto = walkback.derive(path, tables="cfi"), walkback.derive(path)
    assert frames.covered_bytes < frames.code_bytes
    assert (auto.covered_bytes, auto.code_bytes) == (14, 14)
    assert [share.kind for share in auto.read.shares() if share.code_bytes] == ["code"]
    found = auto.table.find(4, section=auto.elf.sections_named(".text")[0])
    assert found is not None
    assert found.rule.cfa.text("AMD64") == "rsp+32"
