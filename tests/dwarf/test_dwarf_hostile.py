"""Damaged and made-up call frame information: only errors of walkback come out, in bounded memory and time."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from cfibuilder import ABSPTR, ALIGNED, PCREL_SDATA4, UDATA4, CfiBuilder, cfa, expr
from effort import rounds
from elfbuilder import ElfBuilder
from walkback.base.arch import AARCH64, AMD64, MACHINES, S390X, ByteOrder, Machine
from walkback.base.errors import WalkbackError
from walkback.dwarf.decoding import decode
from walkback.dwarf.files import frame_sources
from walkback.dwarf.rules import to_table
from walkback.elf import ElfFile
from walkback.table.comparing import compare
from walkback.table.settle import settled
from walkback.table.table import UnwindTable
from walkback.table.verdict import Verdict

pytestmark = pytest.mark.kernel

VALUES = [0, 1, 2, 3, 8, 0x10, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 17, 2**32 - 1]
BASE, TIMES = 160 << 10, 300
"""Bytes of memory for a section, and for each of its bytes; measured, a remembered state takes most: 64 for each byte,
three times while the room for them grows."""

PLT = expr("breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus")
PROGRAMS = [
    "advance_loc 1; def_cfa_offset 16; offset 6 2; advance_loc 3; def_cfa_register 6; advance_loc1 200; def_cfa 7 8",
    "remember_state; advance_loc2 300; restore 6; advance_loc4 3000; undefined 6; same_value 6; restore_state",
    f"def_cfa_expression {expr('breg6 -8; deref')}; expression 6 {expr('breg6 0')}",
    f"advance_loc 1; expression 6 {expr('lit8; minus')}; val_expression 16 {expr('lit8; minus; deref')}",
    "offset_extended 6 2; offset_extended_sf 6 -2; val_offset 6 2; val_offset_sf 6 2; register 6 3; GNU_args_size 16",
    f"def_cfa 7 16; advance_loc 6; def_cfa_offset 24; advance_loc 10; def_cfa_expression {PLT}",
    "def_cfa_sf 7 -2; def_cfa_offset_sf -3; restore_extended 6; GNU_negative_offset_extended 6 2; MIPS_advance_loc8 9",
]


def builders() -> list[CfiBuilder]:
    """Sound sections of both kinds, byte orders and lengths, with all that may be in them."""
    out = []
    for eh in (True, False):
        orders: tuple[ByteOrder, ...] = ("little", "big")
        for order in orders:
            for wide in (False, True):
                one = CfiBuilder(eh=eh, order=order, wide=wide, address=0x1000, got=0x3000)
                start = cfa("def_cfa 7 8; offset 16 1")
                cies = [one.cie(start), one.cie(start, augmentation=b"zPLRS", lsda=UDATA4, personality=(ABSPTR, 5))]
                cies += [
                    one.cie(start, version=4),
                    one.cie(start, augmentation=b"eh"),
                    one.cie(start, encoding=ALIGNED, augmentation=b"zR"),
                ]
                cies += [one.cie(start, encoding=PCREL_SDATA4 | 0x80, augmentation=b"zRB")]
                for number, program in enumerate(PROGRAMS):
                    cie = cies[number % len(cies)]
                    one.fde(cie, 0x4000 + 0x100 * number, 0x100, cfa(program, order))
                one.zero()
                one.fde(cies[0], 0x4010, 0x1000, cfa(PROGRAMS[0], order))
                out.append(one)
    return out


def damage(chance: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One to four changes."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 3, 4))):
        if len(found) < 8:
            break
        at = chance.randrange(len(found))
        match chance.randrange(7):
            case 0:
                found[at] ^= 1 << chance.randrange(8)
            case 1 | 2:
                found[at] = chance.choice((chance.randrange(256), 0x0A, 0x0B, 0x0F, 0x10, 0x2D, 0xFF, 0x80))
            case 3:
                at = min(at & ~3, len(found) - 4)
                struct.pack_into(chance.choice(("<I", ">I")), found, at, chance.choice(VALUES))
            case 4:
                del found[at : at + chance.randrange(1, 20)]
            case 5:
                found[at:at] = chance.randbytes(chance.randrange(1, 12))
            case 6:
                other = chance.choice(others)
                start = chance.randrange(len(other))
                part = other[start : start + chance.randrange(1, 60)]
                found[at : at + len(part)] = part
    return bytes(found)


def ask(wanted: Callable[..., Any]) -> Any:
    """The answer, or nothing where there was an error of one line."""
    found, text = None, "fine"
    try:
        found = wanted()
    except WalkbackError as error:
        text = f"error: {error}"
    assert len(text.splitlines()) == 1
    return found


def use(table: UnwindTable) -> None:
    """All that is done with a table."""
    table.rule_texts()
    starts, sizes = table.range_start, table.range_size
    pcs = np.concatenate([starts, starts + sizes, starts - np.uint64(1), starts + np.uint64(20)])
    ranges, rows = table.find_many(pcs)
    plain = settled(table)
    there = np.flatnonzero(ranges >= 0)[:300]
    again = plain.find_many(pcs[there])
    assert np.array_equal(plain.range_origin[again[0]], table.range_origin[ranges[there]])
    one, other = rows[there], again[1]
    assert np.array_equal(one < 0, other < 0)
    assert np.array_equal(table.row_rule[one[one >= 0]], plain.row_rule[other[other >= 0]])
    report = ask(lambda: compare(table, table))
    if report is not None:
        assert report.equal
        for verdict in Verdict:
            assert report.code_bytes(verdict) >= 0
            for number, stretch in enumerate(report.stretches(verdict)):
                assert stretch.size > 0
                if number > 20:
                    break


def ask_everything(data: bytes, machine: Machine, **options: Any) -> None:
    sound = ask(lambda: decode(data, machine, **options))
    frames = decode(data, machine, faults=True, **options)
    assert (sound is not None) == (not frames.fdes.fault.any() and frames.stop is None)
    assert frames.fdes.rows.sum() == len(frames.row_offset) == len(frames.row_rule) <= len(data) + len(frames.fdes)
    assert len(frames.cies) + len(frames.fdes) <= len(data) // 8
    falling = frames.row_offset[1:] <= frames.row_offset[:-1]
    firsts = frames.fdes.first_row[frames.fdes.rows > 0]
    falling[firsts[firsts > 0] - 1] = False
    assert not falling.any()
    for as_written in (False, True):
        use(to_table(frames, as_written=as_written))


def options_of(builder: CfiBuilder) -> dict[str, Any]:
    known = {"address": builder.address, "text": builder.text, "got": builder.got}
    return {**known, "eh": builder.eh, "byteorder": builder.order, "pointer_at": lambda at: at if at % 2 else None}


def peak(wanted: Callable[..., object]) -> int:
    """Bytes allocated at most while it runs."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        wanted()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_sound_sections_are_sound() -> None:
    for builder in builders():
        frames = decode(builder.bytes(), AMD64, **options_of(builder) | {"pointer_at": lambda at: at})
        assert len(frames.fdes) == len(PROGRAMS) + 1
        ask_everything(builder.bytes(), AMD64, **options_of(builder))


def test_damaged_sections(interpreted: bool) -> None:
    bases = builders()
    whole = [one.bytes() for one in bases]
    for builder in bases:  # what Python and NumPy keep from the first time is not counted
        ask_everything(builder.bytes(), AMD64, **options_of(builder))
    for number in range(rounds(100 if interpreted else 800, quick=16 if interpreted else 300)):
        chance = random.Random(f"cfi {number}")
        which = chance.randrange(len(bases))
        data = damage(chance, whole[which], whole)
        machine = chance.choice(MACHINES)
        began = time.process_time()
        if number % 8:
            ask_everything(data, machine, **options_of(bases[which]))
        else:
            taken = peak(partial(ask_everything, data, machine, **options_of(bases[which])))
            assert taken < BASE + TIMES * len(data), f"{taken} bytes for {len(data)}: {number}"
        assert time.process_time() - began < 20, number


@pytest.mark.whole
def test_every_cut_of_a_section() -> None:
    for builder in builders()[::3]:
        data = builder.bytes()
        for length in range(0, len(data), 3):
            ask_everything(data[:length], AMD64, **options_of(builder))


CLAIMS = {
    "a length of all": b"\xff\xff\xff\xff" + b"\xff" * 8 + bytes(40),
    "a length of four gigabytes": struct.pack("<I", 0xFFFFFFEF) + bytes(40),
    "an augmentation of everything": None,
    "an expression of everything": None,
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_cost_nothing(name: str) -> None:
    data = CLAIMS[name]
    if data is None:
        builder = CfiBuilder()
        if "augmentation" in name:
            builder.cie(cfa("def_cfa 7 8"), data_length=2**64 - 1)
            builder.fde(0, 0, 1)
        else:
            builder.cie(cfa("def_cfa 7 8"))
            builder.fde(0, 0, 1, b"\x0f" + b"\xff" * 9 + b"\1" + b"\x10\6" + b"\xff" * 9 + b"\1")
        data = builder.bytes()
    for eh in (True, False):
        ask_everything(data, AMD64, eh=eh)
        assert peak(partial(ask_everything, data, AMD64, eh=eh)) < BASE + TIMES * len(data)


def one_function(program: bytes, *, size: int = 2**31, start: bytes = b"\x0c\7\x08\x90\1") -> bytes:
    builder = CfiBuilder()
    builder.fde(builder.cie(start), 0x1000, size, program)
    return builder.bytes()


def many_functions(
    count: int, of: Callable[[int], tuple[int, int]], program: bytes = b"\x41\x0e\x10\x42\x0e\x08"
) -> bytes:
    """Functions (start, size)."""
    builder = CfiBuilder(eh=False)
    builder.cie(b"\x0c\7\x08\x90\1")
    for number in range(count):
        start, size = of(number)
        builder.fde(0, start, size, program)
    return builder.bytes()


def faulty(count: int) -> bytes:
    """Every function has no CIE: what its program would take is not known."""
    return b"".join(struct.pack("<IIQ", 12, 4, n) for n in range(count))


LARGE: dict[str, Callable[[int], bytes]] = {
    "remembered states": lambda count: one_function(b"\x0a" * 8 * count),
    "remembered and restored": lambda count: one_function(b"\x0a" * 4 * count + b"\x41\x0b" * 4 * count),
    "advances": lambda count: one_function(b"\x41" * 8 * count),
    "different rules": lambda count: one_function(
        b"".join(b"\x41\x0e" + struct.pack("BB", n % 128 | 128, n // 128 % 128) for n in range(2 * count))
    ),
    "different expressions": lambda count: one_function(b"\x41\x0f\2\x77\x08" * count),
    "expressions of blocks": lambda count: one_function(
        cfa(f"advance_loc 16; def_cfa_expression {PLT}") * (count // 2)
    ),
    "blocks of functions": lambda count: many_functions(
        count // 4, lambda n: (64 * n, 64), cfa(f"def_cfa_expression {PLT}; advance_loc 48; def_cfa 7 8")
    ),
    "overlapping functions": lambda count: many_functions(count, lambda n: (4 * n, 4096)),
    "nested functions": lambda count: many_functions(count, lambda n: (n, 2 * (count - n))),
    "equal functions": lambda count: many_functions(count, lambda n: (64, 64)),
    "functions within one": lambda count: many_functions(count, lambda n: (8 * n, 2) if n else (0, 8 * count)),
    "functions without a CIE": faulty,
    "empty functions": lambda count: many_functions(count, lambda n: (n, 0)),
    "terminators": lambda count: bytes(64 * count),
    "cies": lambda count: bytes.fromhex("0b000000 00000000 01 00 01 78 10 00 00") * count,
    "padded numbers": lambda count: one_function((b"\x0e" + b"\x80" * 60 + b"\0") * (count // 4)),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", LARGE)
def test_large_sections_made_to_be_worst(name: str, interpreted: bool) -> None:
    data = LARGE[name](200 if interpreted else 12_000)
    eh = not data.startswith(struct.pack("<II", 16, 2**32 - 1)) and data[4:8] != b"\xff\xff\xff\xff"
    ask_everything(data[:4000], AMD64, eh=eh)
    began = time.process_time()
    ask_everything(data, AMD64, eh=eh)
    assert time.process_time() - began < 25
    assert peak(lambda: decode(data, AMD64, eh=eh, faults=True)) < (1 << 20) + TIMES * len(data)
    frames = decode(data, AMD64, eh=eh, faults=True)
    assert peak(lambda: to_table(frames)) < (1 << 20) + TIMES * len(data)


@pytest.mark.whole
def test_a_hundred_thousand_overlapping_functions(interpreted: bool) -> None:
    if interpreted:
        pytest.skip("takes minutes")
    began = time.process_time()
    ask_everything(many_functions(100_000, lambda n: (8 * n, 2**20)), AMD64, eh=False)
    assert time.process_time() - began < 60


# Files


def files() -> list[bytes]:
    """Linked and relocatable files with both sections."""
    out = []
    machines: list[tuple[Machine, ByteOrder]] = [(AMD64, "little"), (AARCH64, "little"), (S390X, "big")]
    for machine, order in machines:
        builder = CfiBuilder(order=order, address=0x2000)
        cie = builder.cie(cfa(f"def_cfa {machine.sp} 8"), ra=machine.ra)
        builder.fde(cie, 0x1000, 64, cfa(PROGRAMS[0], order))
        builder.fde(cie, 0x1040, 64, cfa(PROGRAMS[1], order))
        debug = CfiBuilder(order=order, eh=False)
        debug.fde(debug.cie(cfa(f"def_cfa {machine.sp} 8"), ra=machine.ra), 0x1000, 64, cfa(PROGRAMS[1], order))
        data, labels = builder.assemble()
        elf = ElfBuilder(order, machine.elf_machine, 3)
        elf.code(addr=0x1000)
        elf.section(".eh_frame", data, addr=0x2000, flags=2)
        elf.section(".debug_frame", debug.bytes())
        elf.segment(1, ".eh_frame", vaddr=0x2000)
        out.append(bytes(elf.build()))
        elf = ElfBuilder(order, machine.elf_machine, 1)
        text = elf.code()
        frame = elf.section(".eh_frame", data, flags=2)
        symtab = elf.symtab()
        symbol = elf.symbol(symtab, "", 0, section=text, kind=3, binding=0)
        kind = {62: 2, 183: 261, 22: 5}[machine.elf_machine]
        elf.relocations(
            frame, symtab, [(labels["fde0.start"], kind, symbol, 0), (labels["fde1.start"], kind, symbol, 64)]
        )
        out.append(bytes(elf.build()))
        elf = ElfBuilder(order, machine.elf_machine, 3)
        header = struct.pack((">" if order == "big" else "<") + "4Bi", 1, 0x1B, 0xFF, 0xFF, 0x2000 - 0x3004)
        elf.section(".eh_frame", data + bytes(4), addr=0x2000, flags=2)
        elf.section(".eh_frame_hdr", header, addr=0x3000, flags=2)
        elf.segment(1, ".eh_frame", vaddr=0x2000)
        elf.segment(0x6474E550, ".eh_frame_hdr", vaddr=0x3000)
        image = elf.build()
        for name in ("e_shoff", "e_shnum", "e_shstrndx"):
            image.header(name, 0)
        out.append(bytes(image))
    return out


def ask_file(data: bytes) -> int:
    count = 0
    for source in frame_sources(ElfFile(data, "hostile")):
        use(source.table)
        count += 1
    return count


def test_sound_files_are_sound() -> None:
    counts = [ask_file(data) for data in files()]
    assert counts == [2, 1, 1] * 3
    for data in files():
        for source in frame_sources(ElfFile(data, "sound")):
            assert not source.frames.fdes.fault.any()
            assert source.table.range_start.tolist()[:1] == [0 if source.elf.is_relocatable else 0x1000]


def test_damaged_files(interpreted: bool) -> None:
    bases = files()
    answers = 0
    count = rounds(100 if interpreted else 1000, quick=20 if interpreted else 300)
    for number in range(count):
        chance = random.Random(f"cfi file {number}")
        data = damage(chance, chance.choice(bases), bases)
        began = time.process_time()
        answers += ask(lambda data=data: ask_file(data)) is not None
        assert time.process_time() - began < 10, number
    assert count // 10 < answers < count
