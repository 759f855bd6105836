"""What is written for a consumer: its version, without what it must not find, and with what its walk comes to."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sframebuilder import SFrameBuilder, row
from sframefiles import SFRAME, SIZE, TEXT, linked, small, written
from walkback.base.errors import GraftError, LeftOut
from walkback.elf import ElfFile
from walkback.sections.check import check
from walkback.sections.derive import derive
from walkback.sections.install import add
from walkback.sections.linking.convert import convert
from walkback.sections.linking.fix import fix
from walkback.sections.linking.link import link
from walkback.sframe.files import read

OUTERMOST = "an outermost frame, where the GNU C Library wants no function"
VERBS: dict[str, Callable[..., Any]] = {"add": add, "convert": convert, "fix": fix}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a `_start` that is outermost."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "main.c").write_text("int main (void) { return 0; }\n")
    subprocess.run(["gcc", "-O2", folder / "main.c", "-o", folder / "main"], check=True)
    return folder / "main"


@pytest.fixture(params=["derive", "add", "convert", "fix", "link"])
def told(request: pytest.FixtureRequest, program: Path, tmp_path: Path) -> tuple[Path, list[str]]:
    """What each verb wrote for the C library of the program, and what it said that it left out."""
    path = tmp_path / "file"
    if request.param in {"derive", "add"}:
        derived = derive(ElfFile(program), consumer="glibc")
        if request.param == "add":
            derived = add(program, path, consumer="glibc").derived
        else:
            path.write_bytes(derived.contents)
        assert derived.covered == derived.functions - 1
        return path, [f"left out: {one.name}: {one.reason}" for one in derived.unwanted]
    add(program, path, version={"convert": 3, "fix": 2, "link": 3}[request.param])
    if request.param == "link":
        done = link([path], tmp_path / "section", consumer="glibc")
        return tmp_path / "section", done.notes
    notes = VERBS[request.param](path, consumer="glibc").notes
    return path, notes


def test_the_c_library_gets_its_version_without_the_outermost_function(told: tuple[Path, list[str]]) -> None:
    path, notes = told
    assert any("_start" in note and OUTERMOST in note for note in notes)
    (report,) = check(path, consumer="glibc")
    assert report.loads or report.source.elf is None
    assert not {finding.code for finding in report.findings} & {"glibc-version", "glibc-outermost", "glibc-uncovered"}


def test_what_is_right_for_the_c_library_stays_as_it_is(program: Path, tmp_path: Path) -> None:
    add(program, tmp_path / "file", consumer="glibc")
    before = (tmp_path / "file").read_bytes()
    assert not fix(tmp_path / "file", consumer="glibc").changed
    assert (tmp_path / "file").read_bytes() == before


def test_a_function_without_rows_is_not_written_for_linux(tmp_path: Path) -> None:
    builder = small()
    builder.function(TEXT + 3 * SIZE, SIZE, [], signal=True)
    path = written(tmp_path, linked(builder.bytes()))
    codes = [finding.code for report in check(path, consumer="linux") for finding in report.findings]
    assert "linux-no-row" in codes
    fixed = fix(path, consumer="linux")
    assert fixed.functions == 3
    assert any("drops the whole section" in note for note in fixed.notes)
    assert not [finding for report in check(path, consumer="linux") for finding in report.findings]


@pytest.mark.parametrize(
    ("behind", "size"),
    [(b"\0", SIZE + 1), (b"\x90", SIZE + 1), (b"\x66\x2e\x0f\x1f", SIZE + 1), (b"\xc3", SIZE), (b"\x55", SIZE)],
)
@pytest.mark.parametrize(("consumer", "version"), [("glibc", 2), ("linux", 3)])
def test_a_function_that_ends_in_a_call_covers_the_padding_behind(
    consumer: str, version: int, behind: bytes, size: int, tmp_path: Path
) -> None:
    elf = linked(small(version).bytes())
    end = 3 * SIZE
    code = bytes(end - 5) + b"\xe8" + (-end % 2**32).to_bytes(4, "little") + behind
    elf.sections[1].data = code + bytes(0x100 - len(code))
    path = written(tmp_path, elf)
    fixed = fix(path, consumer=consumer)
    assert fixed.changed is (size > SIZE)
    (source,) = read(path)
    (piece,) = source.pieces()
    assert piece.section.functions.size.tolist() == [SIZE, SIZE, size]
    assert not fix(path, consumer=consumer).changed


def test_code_that_signal_handlers_return_to_is_left_out_by_its_bytes(tmp_path: Path) -> None:
    elf = linked(small(2).bytes())
    code = bytes.fromhex("9048c7c00f0000000f05")
    elf.sections[1].data = bytes(SIZE) + code + bytes(0x100 - SIZE - len(code))
    path = written(tmp_path, elf)
    assert fix(path, consumer="glibc").functions == 2
    assert fix(written(tmp_path, elf), consumer="linux").functions == 3


def test_what_the_version_cannot_say_is_still_refused_unless_it_is_left_out(tmp_path: Path) -> None:
    builder = SFrameBuilder(3, address=SFRAME)
    builder.function(TEXT, SIZE, [row(0, 1, [8])])
    builder.function(TEXT + SIZE, SIZE, [row(0, 0, [10 << 3 | 1, 8])], flex=True)
    path = written(tmp_path, linked(builder.bytes()))
    with pytest.raises(Exception, match="1 function cannot be written in version 2"):
        convert(path, consumer="glibc")
    done = convert(path, consumer="glibc", leave_out=True)
    assert [type(one) for one in done.left_out] == [LeftOut]


def test_a_consumer_decides_the_form(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(3).bytes()))
    for wrong in ({"version": 3, "consumer": "glibc"}, {"pcrel": False, "consumer": "linux"}, {"consumer": "bsd"}, {}):
        with pytest.raises(ValueError, match=r"the GNU C Library reads|Linux wants|no consumer|not given"):
            convert(path, **wrong)


def test_what_the_consumer_would_not_load_is_not_written(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(3, abi=4, order="big").bytes(), machine=22, order="big"))
    before = path.read_bytes()
    with pytest.raises(GraftError, match="the GNU C Library would not load the section: ABI 4"):
        convert(path, consumer="glibc", leave_out=True)
    assert path.read_bytes() == before


def test_a_call_that_ends_the_last_code_section_but_one_returns_into_its_function(tmp_path: Path) -> None:
    """The gap in front of `.fini` belongs to no section."""
    source = """
        #include <stdlib.h>
        __attribute__((noinline, noreturn)) void stop(void);
        int main(int count, char **words) { if (count) stop(); return 0; }
        void stop(void) { abort(); }
        """
    (tmp_path / "main.c").write_text(source)
    path = tmp_path / "main"
    command = ["gcc", "-O1", "-fno-toplevel-reorder", "-fcf-protection=none", "-Wl,-z,norelro"]
    subprocess.run([*command, tmp_path / "main.c", "-o", path], check=True)
    with ElfFile(path) as elf:
        (text,), (fini,) = (elf.sections[elf.sections_named(name)] for name in (".text", ".fini"))
        end = int(text["addr"]) + int(text["size"])
        assert end < fini["addr"]
    last = [one for one in functions_of(path, None) if sum(one) == end]
    assert last
    longer = functions_of(path, "glibc")
    assert [(start, size + 1) for start, size in last] == [one for one in longer if sum(one) == end + 1]


def functions_of(path: Path, consumer: str | None) -> list[tuple[int, int]]:
    """Start and size of each function that is derived."""
    said = derive(ElfFile(path), consumer=consumer).said
    return list(zip(said.range_start.tolist(), said.range_size.tolist(), strict=True))


@pytest.mark.parametrize("verb", ["add", "convert", "fix"])
def test_the_places_at_which_the_walk_stops_all_the_same_are_counted(verb: str, tmp_path: Path) -> None:
    """A call that ends a function, and the next one begins at once."""
    (tmp_path / "main.s").write_text(
        """
        .globl main, stop
        .type main, @function
        .type stop, @function
        stop: .cfi_startproc
            push %rax
            .cfi_adjust_cfa_offset 8
            call abort@plt
            .cfi_endproc
        main: .cfi_startproc
            xor %eax, %eax
            ret
            .cfi_endproc
        .section .note.GNU-stack,"",@progbits
        """
    )
    path = tmp_path / "main"
    subprocess.run(["gcc", tmp_path / "main.s", "-o", path], check=True)
    if verb != "add":
        add(path, version=3)
    notes = VERBS[verb](path, consumer="glibc").notes
    assert notes[-1] == "the GNU C Library stops or goes wrong at 1 place: `walkback check --for glibc` lists them"
    (report,) = check(path, consumer="glibc")
    assert report.stops == 1
