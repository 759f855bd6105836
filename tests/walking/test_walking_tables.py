"""Points and steps of files: at every address the step that the file's tables say, found another way."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from cfibuilder import CfiBuilder, cfa, expr
from corpus import PREFIXES, corpus
from gopclntab.gotables import TEXT, Function, encoded
from sframebuilder import SFrameBuilder, row
from walkback.base.arch import AMD64, MACHINES, Machine
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import frame_sources
from walkback.elf import ElfFile
from walkback.sections.derive import derive
from walkback.sframe.decoding import decode
from walkback.sframe.files import sources_of
from walkback.sframe.rules import to_table as sframe_table
from walkback.stacks.stacks import How
from walkback.table.table import UnwindTable
from walkback.walking.abi import Flag, Op
from walkback.walking.moduletable import Only, module_table
from walking.saidsteps import ByFrames, Said, by_rules, said, step_of
from walking.stacksource import BASE, file_of

PLACE = 0x80000


def edges(*tables: UnwindTable, seed: int = 1, most: int = 400) -> list[int]:
    """Addresses where something may change, with their neighbours, and some between: of large files a sample."""
    places: set[int] = set()
    for table in tables:
        rows = np.repeat(table.range_start, table.range_rows)
        if len(rows) == len(table.row_offset):
            places |= set((rows + table.row_offset).tolist())
        places |= set(table.range_start.tolist()) | set((table.range_start + table.range_size).tolist())
    rng = random.Random(seed)
    chosen = sorted(places)
    if len(chosen) > most:
        first = rng.randrange(len(chosen) - most // 2)
        chosen = sorted({*rng.sample(chosen, most // 2), *chosen[first : first + most // 2]})
    between = [rng.randrange(one, other) for one, other in pairwise(chosen) if other > one]
    return sorted({max(0, place + way) % 2**64 for place in (*chosen, *between) for way in (-1, 0, 1)})


def machine_of(elf: ElfFile) -> Machine:
    return next(one for one in MACHINES if one.elf_machine == elf.machine)


def check_file(elf: ElfFile, most: int = 400) -> int:
    """Compare all modes with the routes that know nothing of points; returns how many addresses had a step."""
    machine = machine_of(elf)
    frames = [ByFrames(elf, source) for source in frame_sources(elf)]
    tables = []
    try:
        tables = [sframe_table(batch.section) for one in sources_of(elf) for batch in one.batches(faults=True)]
    except WalkbackError:
        tables = []
    addresses = edges(*tables, *(one.table for one in frames), most=most)
    code = elf.is_code(np.array(addresses, np.uint64))
    derived = []
    try:
        made = derive(elf)
        derived = [sframe_table(decode(made.contents, address=made.section.address))]
    except WalkbackError:
        derived = []
    modes = {only: module_table(elf, machine, only) for only in (None, "sframe", "cfi")}
    count = 0
    for address, is_code in zip(addresses, code.tolist(), strict=True):
        if not is_code:
            continue
        cfi = next(filter(None, (one.at(address) for one in frames)), None)
        own = next(filter(None, (by_rules(one, address, How.SFRAME) for one in tables)), None)
        made_up = next(filter(None, (by_rules(one, address, How.DERIVED) for one in derived)), None)
        assert said(modes["cfi"], address) == cfi, hex(address)
        should = own if any(len(one) for one in tables) else made_up
        assert said(modes["sframe"], address) == should, hex(address)
        found = said(modes[None], address)
        if own or cfi or (found is not None and found.how is not How.ENTRY):
            assert found == (own or cfi), hex(address)
        count += found is not None
    return count


@pytest.mark.peers
@pytest.mark.parametrize("arch", PREFIXES)
def test_the_corpus_has_the_steps_that_its_tables_say(arch: str) -> None:
    count = 0
    kinds = {"shared", "executable"}
    samples = [one for one in corpus() if one.arch == arch and one.producer == "new" and one.kind in kinds]
    for sample in samples:
        count += check_file(ElfFile(sample.path), 24)
    assert count > 500


SYSTEM = ("libc.so.6", "libstdc++.so.6", "ld-linux-x86-64.so.2")


@pytest.mark.whole
@pytest.mark.skipif(sys.platform != "linux", reason="needs the libraries of a Linux")
@pytest.mark.parametrize("name", SYSTEM)
def test_libraries_of_this_machine_have_the_steps_that_their_tables_say(name: str) -> None:
    found = [path for folder in ("/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64") for path in Path(folder).glob(name)]
    if not found:
        pytest.skip(f"there is no {name}")
    assert check_file(ElfFile(found[0])) > 300


# Sections made by hand


def steps_at(elf: ElfFile, *offsets: int, only: Only | None = None, machine: Machine = AMD64) -> list[Said | None]:
    table = module_table(elf, machine, only)
    return [said(table, BASE + offset) for offset in offsets]


USUAL = "def_cfa 7 8; offset 16 1"


def cfi_of(*fdes: tuple[int, int, str], eh: bool = True) -> bytes:
    builder = CfiBuilder(eh=eh, address=PLACE if eh else 0)
    cie = builder.cie(cfa(USUAL))
    for offset, size, program in fdes:
        builder.fde(cie, BASE + offset, size, cfa(program))
    return builder.bytes()


def cfas(found: list[Said | None]) -> list[int | None]:
    return [one.cfa[2] if one else None for one in found]


def test_sframe_goes_before_call_frame_information_and_that_before_debug_frame() -> None:
    from walkback.sframe.builder import SectionBuilder

    builder = SectionBuilder("AMD64")
    builder.function(BASE, 16, ["CFA = rsp+24"])
    from elfbuilder import ElfBuilder

    made = ElfBuilder("little", 62, 3)
    made.section(".text", bytes(0x100), flags=6, addr=BASE)
    made.segment(1, ".text", flags=5, vaddr=BASE)
    made.section(".sframe", builder.encode(address=PLACE + 0x1000), flags=2, addr=PLACE + 0x1000)
    made.section(".eh_frame", cfi_of((0, 32, "def_cfa_offset 32")), flags=2, addr=PLACE)
    made.section(".debug_frame", cfi_of((0, 48, "def_cfa_offset 40"), eh=False))
    elf = ElfFile(bytes(made.build()), "built")
    assert cfas(steps_at(elf, 0, 15, 16, 31, 32, 47, 48)) == [24, 24, 32, 32, 40, 40, None]
    assert cfas(steps_at(elf, 0, 15, 16, 31, 32, 47, only="cfi")) == [32, 32, 32, 32, 40, 40]
    assert cfas(steps_at(elf, 0, 15, 16, 32, only="sframe")) == [24, 24, None, None]
    assert cfas(steps_at(elf, 0, 16, 32, only="fp")) == [None, None, None]


def test_debug_frame_of_a_separate_file_fills_gaps(tmp_path: Path) -> None:
    import zlib

    from elfbuilder import ElfBuilder

    def made(*, stripped: bool, link: bytes = b"") -> bytes:
        builder = ElfBuilder("little", 62, 3)
        builder.section(".text", bytes(0x100), flags=6, addr=BASE, **({} if stripped else {"kind": 8}))
        builder.segment(1, ".text", flags=5, vaddr=BASE)
        if stripped:
            builder.section(".eh_frame", cfi_of((0, 16, "")), flags=2, addr=PLACE)
            builder.section(".gnu_debuglink", link)
        else:
            builder.section(".debug_frame", cfi_of((0, 64, "def_cfa_offset 64"), eh=False))
        return bytes(builder.build())

    debug = made(stripped=False)
    (tmp_path / "a.debug").write_bytes(debug)
    (tmp_path / "a").write_bytes(made(stripped=True, link=b"a.debug\0" + zlib.crc32(debug).to_bytes(4, "little")))
    assert cfas(steps_at(ElfFile(tmp_path / "a"), 0, 15, 16, 63, 64)) == [8, 8, 64, 64, None]


def test_faulty_and_overlapping_entries() -> None:
    """A faulty FDE says nothing; where two overlap the one that begins last holds, and then the first again."""
    data = cfi_of((0, 16, ""), (16, 16, "advance_loc 4; restore_state"), (32, 32, ""), (40, 8, "def_cfa_offset 16"))
    elf = file_of(AMD64, cfi=data)
    assert cfas(steps_at(elf, 0, 16, 20, 31, 32, 39, 40, 47, 48, 63, 64)) == (
        [8, None, None, None, 8, 8, 16, 16, 8, 8, None]
    )


def test_entries_for_code_that_is_not_there_are_passed_over() -> None:
    elf = file_of(AMD64, cfi=cfi_of((-BASE, 16, ""), (0, 16, "")))
    table = module_table(elf, AMD64)
    assert said(table, 0) is None
    assert said(table, BASE) is not None


def test_what_cannot_be_read_is_told_and_the_rest_is_used() -> None:
    elf = file_of(AMD64, sframe=b"\xe2\xde\x09" + bytes(40), place=PLACE)
    table = module_table(elf, AMD64)
    assert len(table.points) == 0
    assert table.troubles
    assert "built" in table.troubles[0]


def test_signal_variants_of_the_same_rule() -> None:
    builder = SFrameBuilder(3, address=PLACE)
    builder.function(BASE, 16, [row(0, 1, [8])])
    builder.function(BASE + 16, 16, [row(0, 1, [8])], signal=True)
    builder.function(BASE + 32, 16, [], signal=True)
    builder.function(BASE + 48, 16, [])
    elf = file_of(AMD64, sframe=builder.bytes(), place=PLACE)
    one, two, three, four = steps_at(elf, 0, 16, 32, 48)
    assert (one.signal, two.signal, three.signal, four) == (False, True, True, None)
    assert one.cfa == two.cfa
    assert (one.how, three.how) == (How.SFRAME, How.SIGNAL)


def test_repeating_blocks() -> None:
    builder = SFrameBuilder(3, address=PLACE)
    builder.function(BASE, 64, [row(0, 1, [8]), row(11, 1, [16])], mask=True, rep_size=16)
    builder.function(BASE + 64, 16, [row(0, 1, [24])])
    elf = file_of(AMD64, sframe=builder.bytes(), place=PLACE)
    assert cfas(steps_at(elf, 0, 10, 11, 15, 16, 27, 63, 64)) == [8, 8, 16, 16, 8, 16, 16, 24]


def test_expressions_are_kept_once() -> None:
    same = expr("breg7 8; deref")
    program = f"def_cfa_expression {same}; expression 3 {same}; val_expression 12 {expr('breg6 1')}"
    table = module_table(file_of(AMD64, cfi=cfi_of((0, 16, program), (16, 16, program))), AMD64)
    assert len(table.steps.expression_first) == 2
    found = said(table, BASE)
    assert found.cfa == (Op.EXPRESSION, bytes.fromhex(same))
    assert found.saves[3] == (Op.AT_EXPRESSION, bytes.fromhex(same))
    assert found.saves[12] == (Op.EXPRESSION, bytes.fromhex(expr("breg6 1")))


GO = """
    .globl runtime.goexit.abi0, runtime.goexit1.abi0
    .type runtime.goexit.abi0, @function
runtime.goexit.abi0:
    .cfi_startproc
    nop
    call runtime.goexit1.abi0
    .cfi_endproc
    .size runtime.goexit.abi0, . - runtime.goexit.abi0
    .type runtime.goexit1.abi0, @function
runtime.goexit1.abi0:
    .cfi_startproc
    ret
    .cfi_endproc
    .size runtime.goexit1.abi0, . - runtime.goexit1.abi0
"""


def test_nobody_calls_what_goroutines_return_to(tmp_path: Path) -> None:
    """Call frame information of Go does not say so, its table of functions does."""
    functions = [Function("runtime.goexit.abi0", 6, flag=1), Function("runtime.goexit1.abi0", 1)]
    go = ", ".join(map(str, encoded(functions, text=TEXT)))
    for mark in ("", f'.section .gopclntab, "a"\n.byte {go}\n'):
        (tmp_path / "go.s").write_text(GO + mark)
        program = tmp_path / f"go{bool(mark)}"
        options = ["-nostdlib", "-static", f"-Wl,-e,runtime.goexit.abi0,-Ttext={TEXT:#x}"]
        subprocess.run(["gcc", *options, "-o", program, tmp_path / "go.s"], check=True)
        elf = ElfFile(program)
        table = module_table(elf, AMD64, None)
        outermost = [bool(table.steps.flags[step_of(table, elf.entry + place)] & Flag.OUTERMOST) for place in (0, 5, 6)]
        assert outermost == [bool(mark), bool(mark), False]
