"""Random tables and random stacks: the compiled walk and a plain one find the same, frame by frame."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfibuilder import CfiBuilder, cfa
from effort import IS_WHOLE, examples
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.dwarf.files import frame_sources
from walkback.elf.file import ElfFile
from walkback.sframe.builder import SectionBuilder
from walkback.sframe.files import sources_of
from walkback.walking.moduletable import Only
from walkback.walking.samples import PC
from walkback.walking.walker import Walker
from walking.plainwalker import Described, PlainWalk, by_frames, by_table
from walking.stacksource import (
    BASE,
    IDS,
    ORDERS,
    STACK,
    WORD,
    Thread,
    ended,
    file_of,
    frames,
    place_of,
    same_stacks,
    samples_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

TABLES = 0x80000
SIZE = 0x400


def functions(rng: random.Random) -> list[tuple[int, int]]:
    """Where functions begin and how large they are; there are gaps between some."""
    edges = sorted(rng.sample(range(0, SIZE, 8), 24))
    return [(BASE + one, other - one - rng.choice([0, 0, 0, 4])) for one, other in pairwise(edges)]


def offsets(rng: random.Random, size: int) -> list[int]:
    return sorted({0, *(rng.randrange(0, size, 2) for _ in range(rng.randrange(3)))})


def random_rule(rng: random.Random, machine: Machine) -> str:
    name = machine.register_name
    sp, fp = name(machine.sp), name(machine.fp)
    size = rng.choice([8, 16, 16, 24, 32, 48]) + (160 if machine is S390X else 0)
    base = rng.choice([sp, sp, sp, sp, fp]) if rng.random() < 0.93 else name(rng.choice([3, 12, 2]))
    parts = [f"CFA = {base}+{size}"]
    if rng.random() < 0.04:
        return "outermost frame"
    if machine is not AMD64 and rng.random() < 0.85:
        parts.append(f"RA = *(CFA{-8 if machine is AARCH64 else -48:+d})")
        if machine is AARCH64 and rng.random() < 0.3:
            parts[-1] += " signed"
    if rng.random() < 0.3:
        parts.append(f"FP = *(CFA{-16 if machine is not S390X else -72})")
    return ", ".join(parts)


def sframe_file(rng: random.Random, machine: Machine, order: ByteOrder) -> ElfFile:
    builder = SectionBuilder(machine)
    for start, size in functions(rng):
        rows = [(offset, random_rule(rng, machine)) for offset in offsets(rng, size)]
        if machine is AMD64 and rng.random() < 0.05:
            rows = [(0, "CFA = rsp+8")]
        builder.function(start, size, rows, signal=rng.random() < 0.06)
    return file_of(machine, order, sframe=builder.encode(version=3, byteorder=order, address=TABLES), place=TABLES)


def random_program(rng: random.Random, machine: Machine, order: ByteOrder, size: int) -> bytes:
    out = b""
    saved = {AMD64: [3, 6, 12, 13], AARCH64: [19, 20, 29], S390X: [6, 11, 13, 24]}[machine]
    if machine is not AMD64 and rng.random() < 0.9:
        out += cfa(
            f"offset {machine.ra} {6 if machine is S390X else 1}; def_cfa_offset {320 if machine is S390X else 16}",
            order,
        )
    for here, offset in pairwise([0, *offsets(rng, size)]):
        if offset > here:
            out += cfa(f"advance_loc {offset - here}", order)
        extra = 160 if machine is S390X else 0
        what = rng.choice(["def_cfa_offset", "def_cfa_offset", "def_cfa_offset", "register", "other", "undefined"])
        if what == "def_cfa_offset":
            out += cfa(f"def_cfa_offset {rng.choice([8, 16, 16, 32, 48]) + extra}", order)
        elif what == "register":
            out += cfa(f"def_cfa {rng.choice([machine.sp, machine.fp, saved[0], 2])} {16 + extra}", order)
        elif what == "undefined" and rng.random() < 0.2:
            out += cfa(f"undefined {rng.choice([machine.ra, saved[0]])}", order)
        for _ in range(rng.randrange(3)):
            register = rng.choice([*saved, *([machine.ra] if machine is not AMD64 and rng.random() < 0.2 else [])])
            place = rng.choice([1, 2, 3]) if machine is not S390X else rng.choice([6, 7, 8])
            form = rng.choice(["offset", "offset", "offset", "same", "register", "val", "undefined"])
            text = {
                "offset": f"offset_extended {register} {place}",
                "same": f"same_value {register}",
                "register": f"register {register} {rng.choice([1, saved[1], 2])}",
                "val": f"val_offset {register} {place}",
                "undefined": f"undefined {saved[-1]}",
            }[form]
            if form == "register" and machine is S390X:
                text = f"register {register} {rng.choice([16, 17, 24])}"
            out += cfa(text, order)
        if machine is AARCH64 and rng.random() < 0.2:
            out += cfa("negate_ra_state", order)
    return out


def cfi_file(rng: random.Random, machine: Machine, order: ByteOrder) -> ElfFile:
    builder = CfiBuilder(order=order, address=TABLES)
    entry = {AMD64: "def_cfa 7 8; offset 16 1", AARCH64: "def_cfa 31 0", S390X: "def_cfa 15 160"}[machine]
    ra = {AMD64: 16, AARCH64: 30, S390X: 14}[machine]
    cies = [builder.cie(cfa(entry, order), ra=ra, augmentation=letters) for letters in (b"zR", b"zRS")]
    for start, size in functions(rng):
        builder.fde(cies[rng.random() < 0.06], start, size, random_program(rng, machine, order, size))
    return file_of(machine, order, cfi=builder.bytes(), place=TABLES)


def random_thread(rng: random.Random, machine: Machine, order: ByteOrder, code: list[int]) -> Thread:
    size = rng.choice([20, 60, 200]) * (4 if machine is S390X else 1)

    def word() -> int:
        return rng.choices(
            [
                rng.choice(code) + rng.randrange(SIZE),
                STACK + 8 * rng.randrange(size),
                0,
                rng.getrandbits(64),
                rng.choice(code) + SIZE // 2 | (rng.getrandbits(8) << 56 if machine is AARCH64 else 0),
            ],
            [20, 4, 0.3, 0.3, 2],
        )[0]

    known = [register for register in range(32) if rng.random() < 0.8]
    registers = {register: word() for register in known}
    registers |= {machine.sp: STACK + 8 * rng.randrange(3), PC: rng.choice(code) + rng.randrange(SIZE)}
    if machine is not AMD64:
        registers[machine.ra] = rng.choice(code) + rng.randrange(SIZE)
    if machine is AMD64:
        registers[16] = registers[PC]
    thread = Thread(registers)
    middle = rng.randrange(size)
    thread.words(STACK, [word() for _ in range(middle)], order)
    thread.words(STACK + 8 * (middle + rng.choice([0, 0, 0, 1])), [word() for _ in range(size - middle)], order)
    thread.cut = rng.choice([0, max(start + len(piece) for start, piece in thread.memory)])
    return thread


@pytest.mark.parametrize(("machine", "order"), ORDERS, ids=IDS)
@pytest.mark.parametrize("only", ["sframe", "cfi"])
def test_random_tables_and_stacks_are_walked_as_by_a_plain_walker(
    machine: Machine, order: ByteOrder, only: Only, interpreted: bool
) -> None:
    seen: dict[str, int] = {}
    longest = 0

    @settings(max_examples=examples(2 if interpreted else 8), deadline=None, derandomize=True)
    @given(st.integers(0, 2**32))
    def run(seed: int) -> None:
        nonlocal longest
        rng = random.Random(seed)
        make = sframe_file if only == "sframe" else cfi_file
        files = [make(rng, machine, order) for _ in range(2)]
        rules = [rules_of(elf, only) for elf in files]
        space = usual_space(2, SIZE)
        places = [place_of(0), place_of(1)]
        threads = [random_thread(rng, machine, order, places) for _ in range(60)]
        walker = Walker(machine, order, files.__getitem__, only=only, max_stack=20)
        stacks = walker.walk(samples_of(threads), [space])

        def table_of(address: int) -> tuple[Callable[[int], Described | None], int] | None:
            for rule, place in zip(rules, places, strict=True):
                if place <= address < place + SIZE:
                    return rule, place - BASE
            return None

        for number, thread in enumerate(threads):
            should, (name, about) = PlainWalk(machine, order, thread, table_of, 20).run()
            assert frames(stacks, number) == should
            assert ended(stacks, number)[0] == name
            if name != "INEXPRESSIBLE":
                assert ended(stacks, number)[1] == about, name
            seen[name] = seen.get(name, 0) + 1
            longest = max(longest, len(should))
        again = Walker(machine, order, files.__getitem__, only=only, max_stack=20, threads=3)
        assert same_stacks(stacks, again.walk(samples_of(threads), [space]))

    run()
    if not interpreted and IS_WHOLE:
        assert longest > 6, longest
        wanted = {"COMPLETE", "UNREADABLE", "NO_TABLE", "UNKNOWN_REGISTER", "NOT_CODE"}
        assert wanted <= set(seen), seen


def rules_of(elf: ElfFile, only: Only) -> Callable[[int], Described | None]:
    """What the two tables say, each by its own reader."""
    if only == "cfi":
        (source,) = frame_sources(elf)
        return by_frames(source.frames)
    (part,) = sources_of(elf)
    (piece,) = part.pieces()
    return by_table(piece.table)


def test_the_plain_walker_is_not_blind() -> None:
    """It finds a chain of calls through two functions."""
    builder = SectionBuilder("AMD64")
    builder.function(BASE, 16, ["CFA = rsp+16, FP = *(CFA-16)"])
    builder.function(BASE + 16, 16, ["outermost frame"])
    elf = file_of(AMD64, sframe=builder.encode(address=TABLES), place=TABLES)
    here = place_of(0)
    thread = Thread({7: STACK, PC: here}).words(STACK, [9, here + 8, 10, here + 24])
    walk = PlainWalk(AMD64, "little", thread, lambda _: (rules_of(elf, "sframe"), here - BASE), 9)
    assert [pc for pc, _, _ in walk.run()[0]] == [here, here + 8, here + 24]
    assert walk.registers[6] == 10
    assert WORD == 2**64 - 1
