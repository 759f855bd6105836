"""Go's table of functions in files: where it is found, what the code proves of it, and walks through a real program."""

from __future__ import annotations

import re
import struct
import subprocess
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from gopclntab.gotables import TABLE, TEXT, Function, encoded, go_program
from peers import root
from waiting import eventually
from walkback.base.arch import AARCH64, AMD64
from walkback.base.errors import GoError, MissingError
from walkback.elf import ElfFile
from walkback.gopclntab.layout import Layout
from walkback.proof.golang import GoFunctions
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict
from walkback.stacks.stacks import End, How

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from walkback.capture.stacks import ThreadStacks

FUNCTIONS = [Function("main.main", 64, [(0, 0), (4, 24), (60, 0)]), Function("main.init", 64)]


def names(data: bytes) -> tuple[str, list[str | None]]:
    [source] = walkback.gopclntab.read(data)
    functions = source.functions
    assert source.table.find(TEXT + 5).rule is not None
    return source.name, [functions.name(number) for number in range(len(functions))]


@pytest.mark.parametrize(("name", "found"), [(".gopclntab", ".gopclntab"), (".rodata", ".rodata")])
def test_the_table_is_found_by_its_section_or_its_first_bytes(name: str, found: str) -> None:
    assert names(go_program(encoded(FUNCTIONS), name)) == (found, ["main.main", "main.init"])


def test_what_only_begins_like_a_table_is_none() -> None:
    false = bytes.fromhex("f1ffffff0000010840000000000000000000000000000000")
    assert names(go_program(false + encoded(FUNCTIONS), ".rodata")) == (".rodata", ["main.main", "main.init"])


def test_the_table_is_found_without_section_headers() -> None:
    data = bytearray(go_program(bytes(24) + encoded(FUNCTIONS), ".rodata"))
    struct.pack_into("<Q", data, 0x28, 0)
    struct.pack_into("<HHH", data, 0x3A, 0, 0, 0)
    assert names(bytes(data)) == ("segment 1", ["main.main", "main.init"])


FALSE = {
    "heads": struct.pack("<IBBBB", Layout.GO_1_20, 0, 0, 1, 8),
    "heads that claim all that follows": struct.pack("<IBBBBQ", Layout.GO_1_2, 0, 0, 1, 8, 0x4008),
}


@pytest.mark.parametrize("name", FALSE)
def test_the_work_of_a_search_is_bounded(name: str) -> None:
    """Each of them would be read from end to end."""
    data = go_program(FALSE[name] * ((1 << 20) // len(FALSE[name])), ".rodata")
    begun = time.process_time()
    with pytest.raises(MissingError):
        list(walkback.gopclntab.read(data))
    assert time.process_time() - begun < 5


def test_few_of_those_whose_first_functions_are_right_are_read() -> None:
    many = encoded([Function("f", 16)] * 20)
    last = many.rindex(struct.pack("<I", 19 * 16))
    false = many[:last] + b"\xff" + many[last + 1 :]
    assert names(go_program(false * 5 + encoded(FUNCTIONS), ".rodata"))[1] == ["main.main", "main.init"]
    with pytest.raises(MissingError):
        list(walkback.gopclntab.read(go_program(false * 100 + encoded(FUNCTIONS), ".rodata")))


def test_the_module_is_looked_for_once() -> None:
    """Each word may be that of the table, and what is said to be code may be none."""
    table = encoded(FUNCTIONS, header_text=0)
    begun = time.process_time()
    [source] = walkback.gopclntab.read(go_program(table, ".gopclntab", struct.pack("<Q", TABLE) * (1 << 17)))
    with pytest.raises(GoError, match="does not say where the code begins"):
        _ = source.functions
    assert time.process_time() - begun < 2


def test_the_module_says_where_the_code_begins_if_the_table_does_not() -> None:
    table = encoded(FUNCTIONS, header_text=0)
    module = struct.pack("<24Q", 7, TABLE, *[0] * 21, TEXT)
    [source] = walkback.gopclntab.read(go_program(table, ".gopclntab", module))
    assert source.functions.start.tolist() == [TEXT, TEXT + 64]
    [source] = walkback.gopclntab.read(go_program(table, ".gopclntab"))
    with pytest.raises(GoError, match="does not say where the code begins"):
        _ = source.functions


def test_other_files_have_none(tmp_path: Path) -> None:
    subprocess.run(["gcc", "-x", "c", "-", "-o", tmp_path / "c"], input=b"int main(void) { return 0; }", check=True)
    with pytest.raises(MissingError):
        list(walkback.gopclntab.read(tmp_path / "c"))


@pytest.fixture
def age() -> Path:
    return root("samples-amd64") / "usr/bin/age"


def test_the_code_proves_the_table_of_a_stripped_program(age: Path) -> None:
    """One function is jumped to with a frame on the stack, which no table of Go says."""
    elf = ElfFile(age)
    [source] = walkback.gopclntab.read(age)
    proof = Prover(elf).prove(source.table)
    wrong = np.flatnonzero(proof.verdicts[:, Verdict.WRONG])
    found = [
        source.functions.name(int(np.searchsorted(source.functions.start, proof.ranges.start[one]))) for one in wrong
    ]
    assert set(found) <= {"runtime.badmcall"}
    assert proof.verdicts[:, Verdict.PROVED].sum() > 1_000_000
    assert proof.verdicts[:, Verdict.UNKNOWN].sum() < 0.005 * proof.verdicts[:, Verdict.PROVED].sum()


def test_what_is_known_of_a_function_holds_in_each_of_its_parts() -> None:
    """A table made from code may describe it in several ranges."""
    elf = ElfFile(go_program(encoded(FUNCTIONS), ".gopclntab", machine=183))
    starts = np.array([TEXT - 4, TEXT, TEXT + 60, TEXT + 64, TEXT + 124, TEXT + 128], np.uint64)
    assert GoFunctions(elf, AARCH64).kept_below(starts).tolist() == [0, 8, 8, 8, 8, 0]
    assert not GoFunctions(elf, AMD64).kept_below(starts).any()


def test_the_table_is_verified_and_compared_by_the_name_of_its_section(age: Path) -> None:
    [source] = walkback.gopclntab.read(age)
    [found] = walkback.verify(age, table=".gopclntab")
    assert (found.table, found.functions_wrong <= 1) == (source.name, True)
    [pair] = walkback.compare(age, age, section=".gopclntab", other_section=".gopclntab")
    assert (pair.one, pair.comparison.equal) == (source.name, True)


@pytest.fixture
def running(age: Path, tmp_path: Path) -> Iterator[int]:
    """The program, as it waits for its input."""
    subprocess.run([age.with_name("age-keygen"), "-o", tmp_path / "key"], check=True, capture_output=True)
    recipient = re.findall(r"age1\w+", (tmp_path / "key").read_text(encoding="utf-8"))[0]
    with subprocess.Popen([age, "-r", recipient, "-o", tmp_path / "output"], stdin=subprocess.PIPE) as process:
        yield process.pid
        process.kill()


def test_a_stripped_program_has_whole_stacks_with_names(running: int) -> None:
    found: list[ThreadStacks] = []

    def waits() -> bool:
        found[:] = [walkback.stack(running, inline=False)]
        return any("syscall.read" in found[0].labels(thread) for thread in range(len(found[0].stacks)))

    assert eventually(waits)
    stacks = found[0].stacks
    [main] = [thread for thread in range(len(stacks)) if "main.main" in found[0].labels(thread)]
    labels = found[0].labels(main)
    assert labels[labels.index("main.main") - 1 :] == [
        "main.encryptNotPass",
        "main.main",
        "runtime.main",
        "runtime.goexit",
    ]
    assert stacks.end[main] == End.COMPLETE
    first, end = stacks.first[main : main + 2].tolist()
    assert set(stacks.how[first + 1 : end].tolist()) == {How.GO}
