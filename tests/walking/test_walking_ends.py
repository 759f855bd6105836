"""Every end of a walk, and what makes sure that there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.elf.file import ElfFile
from walkback.stacks.stacks import How, Stacks
from walkback.walking.abi import Flag, Op, Step
from walkback.walking.moduletable import ModuleTable, Only
from walkback.walking.samples import PC
from walking.stacksource import (
    BASE,
    CALL,
    HERE,
    IDS,
    ORDERS,
    OUTERMOST,
    STACK,
    WORD,
    Thread,
    at_sp,
    ended,
    frames,
    made_walker,
    place_of,
    same_stacks,
    samples_of,
    space_of,
    table_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

TABLE = table_of([(0, at_sp(AMD64, 8)), (0x10, CALL), (0x20, OUTERMOST), (0x30, None), (0x40, CALL), (0x1000, None)])


def amd64(
    words: list[int],
    *,
    pc: int = HERE + 0x10,
    fp: int = 0,
    table: ModuleTable | None = TABLE,
    order: ByteOrder = "little",
    only: Only | None = "cfi",
    cut: int = 0,
    sp: int = STACK,
    **options: Any,
) -> Stacks:
    thread = Thread({7: sp, 6: fp, 16: pc, PC: pc}, cut=cut).words(STACK, words, order)
    return made_walker(AMD64, order, [table], only=only, **options).walk(samples_of([thread]), [usual_space()])


def test_the_outermost_frame_is_complete() -> None:
    stacks = amd64([1, HERE + 0x15, 2, HERE + 0x20 + 1])
    assert frames(stacks) == [
        (HERE + 0x10, "EXACT", "REGISTERS"),
        (HERE + 0x15, "RETURN", "CFI"),
        (HERE + 0x21, "RETURN", "CFI"),
    ]
    assert ended(stacks) == ("COMPLETE", HERE + 0x21)
    assert stacks.lookup.tolist() == [HERE + 0x10, HERE + 0x14, HERE + 0x20]
    assert stacks.address.tolist() == [BASE + 0x10, BASE + 0x14, BASE + 0x20]
    assert stacks.module.tolist() == [0, 0, 0]


def test_after_a_guess_no_stack_is_complete() -> None:
    """What leads to the outermost frame may be the frame pointer of somebody else, as in coroutines."""
    words = [0, STACK + 0x20, HERE + 0x15, 0, 0, HERE + 0x21]
    for declared, expected in ((False, ("FP_GUESS", "GUESSED")), (True, ("FP_DECLARED", "COMPLETE"))):
        table = table_of([(0x10, at_sp(AMD64, 24)), (0x20, OUTERMOST), (0x30, None)], declared=declared)
        stacks = amd64(words, pc=HERE + 0x30, fp=STACK + 8, only=None, table=table)
        assert [how for _, _, how in frames(stacks)] == ["REGISTERS", expected[0], "CFI"]
        assert ended(stacks)[0] == expected[1]


def test_a_guess_is_of_one_stack_alone() -> None:
    table = table_of([(0x20, OUTERMOST), (0x30, None)])
    guessed = Thread({6: STACK + 8, 7: STACK, PC: HERE + 0x30}).words(STACK, [0, STACK + 0x20, HERE + 0x21])
    samples = samples_of([guessed, Thread({7: STACK, PC: HERE + 0x20})])
    stacks = made_walker(AMD64, "little", [table]).walk(samples, [usual_space()])
    assert [ended(stacks, number)[0] for number in range(2)] == ["GUESSED", "COMPLETE"]


def test_a_call_at_the_end_of_a_function_belongs_to_it() -> None:
    """The return address is already in the next one."""
    stacks = amd64([1, HERE + 0x30, 0])
    assert frames(stacks)[-1][0] == HERE + 0x30
    assert ended(stacks) == ("COMPLETE", HERE + 0x30)


def test_code_without_rules_ends_a_walk() -> None:
    assert ended(amd64([1, HERE + 0x35])) == ("NO_TABLE", HERE + 0x35)
    assert ended(amd64([1, HERE + 0x31])) == ("NO_TABLE", HERE + 0x31)
    assert ended(amd64([1, HERE + 0x10], table=None)) == ("NO_TABLE", HERE + 0x10)


def test_a_return_address_outside_of_all_code_ends_a_walk() -> None:
    assert ended(amd64([1, 0x1234])) == ("NOT_CODE", 0x1234)
    assert ended(amd64([1, HERE])) == ("NOT_CODE", HERE)


def test_memory_that_is_not_there_ends_a_walk() -> None:
    assert ended(amd64([1])) == ("UNREADABLE", STACK + 8)
    assert ended(amd64([1], sp=WORD - 7)) == ("UNREADABLE", 0)


def test_the_end_of_a_copied_stack_ends_a_walk() -> None:
    assert ended(amd64([1], cut=STACK + 8)) == ("STACK_CUT", STACK + 8)
    assert ended(amd64([1], cut=STACK + 12)) == ("STACK_CUT", STACK + 8)
    assert ended(amd64([1], cut=STACK + 16)) == ("UNREADABLE", STACK + 8)
    assert ended(amd64([1], sp=STACK + (1 << 31), cut=STACK + 8))[0] == "UNREADABLE"
    assert ended(amd64([1], sp=8, cut=STACK + 8)) == ("UNREADABLE", 16)


def test_the_return_address_0_ends_a_walk() -> None:
    assert ended(amd64([1, 0])) == ("ZERO", 0)


def test_the_limit_ends_a_walk_but_not_one_that_is_complete() -> None:
    words = [1, HERE + 0x15, 1, HERE + 0x15, 2, HERE + 0x21]
    assert len(amd64(words, max_stack=3).pc) == 3
    assert ended(amd64(words, max_stack=3)) == ("LIMIT", HERE + 0x15)
    assert ended(amd64(words, max_stack=4)) == ("COMPLETE", HERE + 0x21)
    assert ended(amd64(words, max_stack=1)) == ("LIMIT", HERE + 0x10)
    with pytest.raises(ValueError, match="at least one"):
        amd64(words, max_stack=0)


def test_a_register_that_is_not_known_ends_a_walk() -> None:
    by_rdx = Step((Op.REGISTER, 1, 16), ((PC, Op.AT_CFA, 0, -8),), Flag.KEEPS)
    table = table_of([(0x10, CALL), (0x40, by_rdx), (0x100, None)])
    assert ended(amd64([1, HERE + 0x50], table=table)) == ("UNKNOWN_REGISTER", 1)


def test_a_rule_that_nobody_can_follow_ends_a_walk() -> None:
    for step in (
        Step((Op.BAD, 0, 0), ((PC, Op.AT_CFA, 0, -8),)),
        Step((Op.REGISTER, 7, 16), ((PC, Op.BAD, 0, 0),)),
        Step((Op.EXPRESSION, 0, 5), ((PC, Op.AT_CFA, 0, -8),)),
        Step((Op.SAME, 7, 8), ((PC, Op.AT_CFA, 0, -8),)),
    ):
        assert ended(amd64([1, HERE + 1], table=table_of([(0, step), (64, None)])))[0] == "INEXPRESSIBLE"


def test_without_registers_there_is_no_frame() -> None:
    walker = made_walker(AMD64, "little", [TABLE])
    stacks = walker.walk(samples_of([Thread({7: STACK}), Thread({})]), [usual_space()])
    assert stacks.first.tolist() == [0, 0, 0]
    assert [ended(stacks, n)[0] for n in (0, 1)] == ["NO_REGISTERS"] * 2
    assert len(walker.walk(samples_of([]), [])) == 0


def test_without_a_space_there_is_one_frame() -> None:
    for space in (-1, 7):
        thread = Thread({7: STACK, PC: HERE}, space=space).words(STACK, [HERE + 1])
        stacks = made_walker(AMD64, "little", [TABLE]).walk(samples_of([thread]), [usual_space()])
        assert frames(stacks) == [(HERE, "EXACT", "REGISTERS")]
        assert ended(stacks)[0] == "NOT_CODE"


# Progress


def test_a_stack_that_goes_inwards_ends() -> None:
    fp = at_sp(AMD64, 16, (6, Op.AT_CFA, 0, -16))
    by_fp = Step((Op.REGISTER, 6, 16), fp.saves, Flag.KEEPS)
    table = table_of([(0, by_fp), (0x1000, None)])
    words = [STACK + 0x20, HERE + 1, 0, 0, STACK, HERE + 2]
    stacks = amd64(words, fp=STACK, table=table)
    assert [pc for pc, _, _ in frames(stacks)] == [HERE + 0x10, HERE + 1, HERE + 2]
    assert ended(stacks) == ("NO_PROGRESS", HERE + 1)
    assert ended(amd64([STACK, HERE + 1], fp=STACK, table=table)) == ("LOOP", HERE + 1)


def test_functions_without_a_frame_cannot_follow_each_other_for_ever() -> None:
    """Two may: a leaf, and one that has its return address in another register."""
    by_x19 = at_sp(AARCH64, 0, (PC, Op.REGISTER, 19, 0))
    by_x20 = at_sp(AARCH64, 0, (PC, Op.REGISTER, 20, 0))
    table = table_of([(0, at_sp(AARCH64, 0)), (0x10, by_x19), (0x20, by_x20), (0x30, None)])
    thread = Thread({31: STACK, 30: HERE + 0x14, 19: HERE + 0x24, 20: HERE + 0x28, PC: HERE})
    stacks = made_walker(AARCH64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE, HERE + 0x14, HERE + 0x24]
    assert ended(stacks) == ("NO_PROGRESS", HERE + 0x28)


def test_a_frame_that_leads_to_itself_is_a_loop() -> None:
    by_x19 = at_sp(AARCH64, 0, (PC, Op.REGISTER, 19, 0))
    table = table_of([(0, at_sp(AARCH64, 0)), (0x10, by_x19), (0x30, None)])
    thread = Thread({31: STACK, 30: HERE + 0x14, 19: HERE + 0x14, PC: HERE})
    stacks = made_walker(AARCH64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE, HERE + 0x14]
    assert ended(stacks) == ("LOOP", HERE + 0x14)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_signal_frames_in_a_circle_are_a_loop(size: int) -> None:
    """Each leads to the next by what stands at the stack pointer: registers as a kernel would have saved them."""
    signal = Step((Op.REGISTER, 7, 0), ((PC, Op.AT_REGISTER, 7, 0), (7, Op.AT_REGISTER, 7, 8)), Flag.SIGNAL)
    table = table_of([(0, signal), (0x100, None)], How.SIGNAL)
    words = []
    for number in range(size):
        words += [HERE + 16 * ((number + 1) % size), STACK + 16 * ((number + 1) % size)]
    stacks = amd64(words, pc=HERE, table=table, max_stack=1000)
    assert ended(stacks)[0] == "LOOP"
    assert len(stacks.pc) < 40


def test_what_grows_for_ever_ends_at_the_limit() -> None:
    """A frame pointer's function whose frames go on through the whole address space needs memory for it."""
    jump = Step((Op.REGISTER, 7, 1 << 40), ((PC, Op.REGISTER, 3, 0),), Flag.KEEPS)
    thread = Thread({7: 0, 3: HERE + 8, PC: HERE})
    table = table_of([(0, jump), (0x1000, None)])
    walker = made_walker(AMD64, "little", [table], only="cfi", max_stack=20000)
    stacks = walker.walk(samples_of([thread] * 3), [usual_space()])
    assert [ended(stacks, n) for n in range(3)] == [("LIMIT", HERE + 8)] * 3
    assert len(stacks.pc) == 60000


# Memory


@pytest.mark.parametrize(("machine", "order"), ORDERS, ids=IDS)
def test_memory_comes_in_pieces_and_byte_orders(machine: Machine, order: ByteOrder) -> None:
    step = at_sp(machine, 16 - machine.sp_from_cfa, (PC, Op.AT_CFA, 0, machine.sp_from_cfa - 8))
    table = table_of([(0, step), (0x100, OUTERMOST), (0x200, None)])
    thread = Thread({machine.sp: STACK, PC: HERE})
    for number in range(7):
        target = HERE + 2 * number + 2 if number < 6 else HERE + 0x102
        thread.words(STACK + 16 * number + 8, [target], order)
    thread.memory.reverse()
    stacks = made_walker(machine, order, [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc - HERE for pc, _, _ in frames(stacks)] == [0, 2, 4, 6, 8, 10, 12, 0x102]
    assert ended(stacks)[0] == "COMPLETE"


def test_segments_that_lie_about_their_contents_are_not_read() -> None:
    samples = samples_of([Thread({7: STACK, PC: HERE}).words(STACK, [1, 2])])
    for offset, size in ((8, 16), (-8, 16), (2**62, 16), (0, 2**63), (-(2**63), 2**64 - 1), (2**63 - 1, 2**64 - 1)):
        samples.memory.offset[:] = offset
        samples.memory.size[:] = size
        stacks = made_walker(AMD64, "little", [TABLE], only="cfi").walk(samples, [usual_space()])
        assert ended(stacks)[0] in {"UNREADABLE", "NOT_CODE"}


def test_memory_that_is_missing_is_asked_for() -> None:
    """A piece at a time, for each sample by its number; what is brought may overlap what was there."""
    words = [HERE + 0x11] * 40 + [HERE + 0x21] * 3
    contents = b"".join(word.to_bytes(8, "little") for word in words)
    asked: list[tuple[int, int]] = []

    def read(number: int, address: int) -> tuple[int, bytes] | None:
        asked.append((number, address))
        if number == 1 or not STACK <= address < STACK + len(contents):
            return None
        start = max(0, address - STACK - 16)
        return STACK + start, contents[start : start + 48]

    threads = [Thread({7: STACK, 6: 0, PC: HERE + 0x10}).words(STACK, words[:n]) for n in (4, 1, 0)]
    walker = made_walker(AMD64, "little", [TABLE], only="cfi")
    stacks = walker.walk(samples_of(threads), [usual_space()], read)
    assert ended(stacks, 0)[0] == ended(stacks, 2)[0] == "COMPLETE"
    assert ended(stacks, 1) == ("UNREADABLE", STACK + 8)
    whole = [Thread({7: STACK, 6: 0, PC: HERE + 0x10}).words(STACK, words)]
    assert frames(stacks, 0) == frames(stacks, 2) == frames(walker.walk(samples_of(whole), [usual_space()]))
    assert [address for number, address in asked if number == 1] == [STACK + 8]


def test_a_reader_that_brings_the_wrong_memory_is_not_asked_for_ever() -> None:
    asked = []

    def read(number: int, address: int) -> tuple[int, bytes]:
        asked.append(address)
        return address + 8, b"12345678"

    thread = Thread({7: STACK, PC: HERE + 0x10})
    stacks = made_walker(AMD64, "little", [TABLE], only="cfi").walk(samples_of([thread]), [usual_space()], read)
    assert ended(stacks) == ("UNREADABLE", STACK + 8)
    assert len(asked) < 100


# Many


def test_many_threads_find_what_one_finds(interpreted: bool) -> None:
    rng = np.random.default_rng(1)
    count = 600 if interpreted else 5000
    threads = []
    for _ in range(count):
        words = [int(word) + HERE for word in rng.integers(0, 0x60, 30)]
        threads.append(Thread({7: STACK + 8 * int(rng.integers(0, 4)), 6: 0, PC: words[3]}).words(STACK, words))
    samples = samples_of(threads)
    one = made_walker(AMD64, "little", [TABLE]).walk(samples, [usual_space()])
    many = made_walker(AMD64, "little", [TABLE], threads=4).walk(samples, [usual_space()])
    assert same_stacks(one, many)
    assert len({ended(one, n)[0] for n in range(count)}) > 3


def test_thousands_of_spaces_each_with_a_place_of_its_own(interpreted: bool) -> None:
    """The same file is mapped elsewhere in each; the same address is other code in each."""
    count = 200 if interpreted else 3000
    spaces = [space_of((HERE - 16 * (n % 4), 0x1000, 0, HERE - 16 * (n % 4) - BASE)) for n in range(count)]
    threads = [Thread({7: STACK, 6: 0, PC: HERE + 1}, space=n).words(STACK, [HERE + 0x18] * 12) for n in range(count)]
    walker = made_walker(AMD64, "little", [TABLE], only="cfi")
    stacks = walker.walk(samples_of(threads), spaces)
    for number in range(count):
        alone = walker.walk(samples_of([threads[number]]), spaces) if number < 8 else None
        if alone is not None:
            assert frames(alone) == frames(stacks, number)
        else:
            assert frames(stacks, number) == frames(stacks, number - 4)
    assert len({ended(stacks, n) for n in range(4)}) > 1
    assert len({len(frames(stacks, n)) for n in range(4)}) > 1


def test_tables_are_loaded_when_their_code_is_met() -> None:
    asked = []
    walker = made_walker(AMD64, "little", [TABLE] * 5, only="cfi")
    given = walker._elf_of

    def elf_of(number: int) -> ElfFile | None:
        asked.append(number)
        return given(number) if number != 3 else None

    walker._elf_of = elf_of
    words = [0, place_of(4) + 0x15, 0, place_of(1) + 0x15, 0, place_of(0) + 0x21]
    thread = Thread({7: STACK, 6: 0, PC: place_of(2) + 0x10}).words(STACK, words)
    other = Thread({7: STACK, 6: 0, PC: place_of(3) + 0x10}).words(STACK, words)
    for _ in range(2):
        stacks = walker.walk(samples_of([thread, other, thread]), [usual_space(5)])
        assert stacks.module.tolist() == [2, 4, 1, 0, 3, 2, 4, 1, 0]
        assert [ended(stacks, n)[0] for n in range(3)] == ["COMPLETE", "NO_TABLE", "COMPLETE"]
        assert sorted(asked) == [0, 1, 2, 3, 4]


def test_a_file_of_another_machine_has_no_table() -> None:
    walker = made_walker(S390X, "big", [TABLE], only="cfi")
    walker._elf_of = made_walker(AMD64, "little", [TABLE])._elf_of
    thread = Thread({15: STACK, 14: HERE, PC: HERE + 0x10})
    assert ended(walker.walk(samples_of([thread]), [usual_space()]))[0] == "NO_TABLE"
