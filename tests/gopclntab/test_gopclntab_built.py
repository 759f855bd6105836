"""Go's table against what Go's compiler says besides, for three machines, with debug information and stripped."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import walkback
from debuginfo.symbolizers import llvm_symbolizer
from gopclntab.gotools import HERE, MACHINES, VERSIONS, build, rules_compared
from peers import peer
from walkback.base.errors import WalkbackError
from walkback.gopclntab.decoding import decode
from walkback.gopclntab.lines import GoLines
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.symbols.sourceline import SourceLine
from walkback.table.rule import PartKind, Reason

if TYPE_CHECKING:
    from walkback.base.arrays import U64
    from walkback.gopclntab.files import GoSource

_SPIN = [("spin", machine, version) for machine in MACHINES for version in VERSIONS]
_WIDE = [("wide", "amd64", version) for version in VERSIONS] + [("wide", "arm64", "new"), ("wide", "s390x", "1.24")]
PROGRAMS = [*_SPIN, *_WIDE, ("callers_cgo", "amd64", "1.19"), ("callers_cgo", "amd64", "new")]
"""Twenty of them."""

_CALLS_OF_C = {"runtime.callCgoMmap", "runtime.callCgoMunmap", "runtime.callCgoSigaction"}
"""AArch64: they lower the stack pointer once more for the call. Go's debug frames say that the return address, which
they saved before, goes down with it."""
_LARGE_FRAMES = (
    {"debugCall65536"},
    {"debugCall65536", *(f"runtime.call{1 << bits}" for bits in range(16, 24))},
)
"""AArch64: two instructions take their frames off, with Go 1.27 only in the first set. Go's debug frames have no row
for the second instruction."""
_WITHOUT_RETURN_ADDRESS = {"gosave_systemstack_switch", "runtime.clone"}
"""They have no frame and call others, so that nothing says where their return addresses are; so do those below."""
_MORE_WITHOUT = {
    **{("arm64", version): {"runtime.cgoSigtramp", "_rt0_arm64_linux", "main"} for version in VERSIONS},
    ("arm64", "new"): {"runtime.cgoSigtramp"},
    **{("s390x", version): {"setg_gcc"} for version in VERSIONS},
}

_LATE = {"runtime.netpollblockcommit", "runtime.runqdrain", "runtime.usleep"}
"""Go 1.19 puts their frame pointer back one instruction late."""
_OVERWRITES = "internal/chacha8rand.block"
"""It stores four bytes over its return address, which is still in its register, but in no table."""

pytestmark = pytest.mark.peers


def _wrong(machine: str, version: str) -> set[tuple[str, str]]:
    """What is wrong in Go's own table."""
    if machine != "arm64":
        return set()
    return {(name, "fp") for name in _LATE} if version == "1.19" else {(_OVERWRITES, "ra")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("go")


def built(folder: Path, version: str, machine: str, *flags: str, program: str = "spin") -> Path:
    """A program for a machine."""
    output = folder / "-".join((program, version, machine, *(flag.strip("-").replace("=", "") for flag in flags)))
    settings = {"CGO_ENABLED": "1"} if program == "callers_cgo" else {}
    return build(HERE / f"{program}.go", output, version, machine, *flags, **settings)


def go_source(path: Path) -> GoSource:
    [source] = walkback.gopclntab.read(path)
    return source


def some_addresses(source: GoSource, count: int) -> U64:
    """Within functions."""
    functions, chance = source.functions, np.random.default_rng(1)
    number = chance.choice(np.flatnonzero(functions.size > 0), count)
    within = (chance.random(count) * functions.size[number]).astype(np.uint64)
    return np.unique(functions.start[number] + within // np.uint64(4) * np.uint64(4))


@pytest.mark.parametrize(("program", "machine", "version"), PROGRAMS)
def test_rules_are_those_of_the_debug_frame(program: str, machine: str, version: str, folder: Path) -> None:
    found = rules_compared(built(folder, version, machine, program=program))
    assert found.both > 0.97 * found.addresses > 7_000
    expected = set()
    if machine == "arm64":
        expected = _CALLS_OF_C | _LARGE_FRAMES[version != "new"]
    assert found.different == dict.fromkeys(expected, 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_the_code_proves_the_rules(machine: str, version: str, folder: Path) -> None:
    [found] = walkback.verify(built(folder, version, machine), table=".gopclntab")
    wrong = {((one.function or "").removesuffix(".abi0").partition("+")[0], one.what) for one in found.mismatches}
    assert wrong == _wrong(machine, version)
    assert all(one.bytes == 4 or one.what == "ra" for one in found.mismatches)
    assert found.proved > 0.98 * found.reached
    assert found.functions_proved > 0.9 * found.functions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("machine", ["arm64", "s390x"])
def test_functions_that_lose_their_return_address_have_no_rule(machine: str, version: str, folder: Path) -> None:
    source = go_source(built(folder, version, machine))
    table = source.table
    lost = np.flatnonzero(table.rules["cfa"]["kind"] == PartKind.INEXPRESSIBLE)
    lost = lost[table.rules["cfa"]["offset"][lost] == Reason.LINK_LOST]
    ranges = np.flatnonzero(table.rows_where(np.isin(np.arange(len(table.rules)), lost)))
    names = [source.functions.name(number) or "" for number in table.range_origin[ranges].tolist()]
    assert {name.removesuffix(".abi0") for name in names} == _WITHOUT_RETURN_ADDRESS | _MORE_WITHOUT[machine, version]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_derived_sframe_keeps_what_the_code_proves(machine: str, version: str, folder: Path) -> None:
    made = walkback.derive(built(folder, version, machine), tables="go", verify=True)
    left_out = [one for one in made.unwanted if one.code == "unwanted"]
    assert len(left_out) == len(_wrong(machine, version))
    assert made.covered > 0.99 * made.functions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("program", ["spin", "wide"])
def test_a_stripped_program_has_the_rules_of_the_other(program: str, version: str, folder: Path) -> None:
    whole = go_source(built(folder, version, "amd64", program=program))
    stripped = go_source(built(folder, version, "amd64", "-ldflags=-s", program=program))
    assert not stripped.elf.sections_named(".debug_frame")
    one, other = whole.table, stripped.table
    moved = np.uint64(stripped.functions.text) - np.uint64(whole.functions.text)
    assert (one.range_start + moved == other.range_start).all()
    for name in ("range_size", "range_rows", "range_signal", "row_offset"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert (one.rules[one.row_rule] == other.rules[other.row_rule]).all()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_lines_are_those_of_the_debug_information(machine: str, version: str, folder: Path) -> None:
    symbolizer = peer("llvm-symbolizer")
    source = go_source(built(folder, version, machine))
    addresses = some_addresses(source, 3000)
    found = source.lines.find(addresses, inlined=True)
    theirs = llvm_symbolizer(symbolizer, Path(source.elf.name), addresses)
    assert all(found)
    assert sum(len(lines) > 1 for lines in found) > 200
    for mine, other in zip(found, theirs, strict=True):
        if mine[-1].file == "<autogenerated>":
            continue  # which LLVM knows nothing of, or calls otherwise
        assert list(map(plain, mine)) == list(map(plain, other))
    outermost = source.lines.find(addresses)
    assert [(line.file, line.line, line.function) for (line,) in outermost] == [
        (lines[0].file, lines[0].line, None) for lines in found
    ]


def plain(line: SourceLine) -> tuple[str, int, str]:
    """Symbols say which ABI a function has, and have the lengths of arrays."""
    function = (line.function or "").removesuffix(".abi0")
    return (line.file or "").removeprefix("./"), line.line, function if "[" not in function else ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("flags", [("-ldflags=-s",), ("-ldflags=-s", "-buildmode=pie")])
def test_a_stripped_program_has_the_lines_of_the_other(flags: tuple[str, ...], version: str, folder: Path) -> None:
    whole, stripped = (
        go_source(built(folder, version, "amd64", *flags[1:])),
        go_source(built(folder, version, "amd64", *flags)),
    )
    assert not stripped.elf.sections_named(".symtab")
    addresses = some_addresses(whole, 500)
    assert len(whole.functions) == len(stripped.functions)
    moved = stripped.functions.text - whole.functions.text
    there = (addresses.astype(np.int64) + moved).astype(np.uint64)
    assert whole.lines.find(addresses, inlined=True) == stripped.lines.find(there, inlined=True)


def test_the_stack_of_a_stripped_program_has_lines(folder: Path) -> None:
    path = built(folder, "new", "amd64", "-ldflags=-s")
    with subprocess.Popen([path], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            command = [sys.executable, "-m", "walkback", "stack", str(process.pid), "--lines"]
            for _ in range(20):  # the goroutine may be between two threads
                found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
                if "main.outer" in found:
                    break
        finally:
            process.kill()
    assert re.search(r"main\.outer\+\S+ at \./spin\.go:16 ", found)
    assert re.search(r"main\.main\+\S+ at \./spin\.go:21 ", found)


@pytest.mark.parametrize("flags", [(), ("-ldflags=-s",)], ids=["with debug information", "stripped"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_function_has_its_own_line_and_not_that_of_what_is_inlined(
    version: str, flags: tuple[str, ...], folder: Path
) -> None:
    path = built(folder, version, "amd64", *flags)
    source = go_source(path)
    addresses = some_addresses(source, 500)
    modules = Modules()
    module = np.full(len(addresses), modules.file(str(path), None), np.int64)
    found = Names(modules, lines=True).find(module, addresses)
    assert found.lines is not None
    several = 0
    for file, line, inlined, whole, symbol in zip(
        found.file, found.line, found.inlined, found.lines, found.symbol, strict=True
    ):
        assert (file, line) == ((whole[-1].file, whole[-1].line) if whole else (None, 0))
        assert (*inlined, *whole[-1:]) == whole
        if inlined:
            several += 1
            assert whole[-1].function == symbol
    assert several > 30


def test_damaged_tables_have_no_lines_or_wrong_ones(folder: Path) -> None:
    """Whatever stands in the table, nothing is read beyond it, and every list ends."""
    source = go_source(built(folder, "new", "amd64"))
    data, calls, chance = bytearray(source.data), bytes(source.lines._calls or b""), np.random.default_rng(2)
    words = source.functions.header.words
    places = [*range(8, 80), *chance.integers(words["values"], len(data), 2000).tolist()]
    for _ in range(150):
        damaged = bytearray(data)
        for place in chance.choice(places, 40).tolist():
            damaged[place] = int(chance.integers(256))
        try:
            functions = decode(bytes(damaged), text=source.functions.text)
        except WalkbackError:
            continue
        lines = GoLines(functions, memoryview(calls[: int(chance.integers(len(calls)))]))
        lines.find(some_addresses(source, 200), inlined=True)
