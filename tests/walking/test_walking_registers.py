"""Registers: what a step needs, what it leaves known, and steps of several kinds in one stack."""

from __future__ import annotations

import pytest

from cfibuilder import CfiBuilder, cfa
from elfbuilder import ElfBuilder
from walkback.base.arch import AARCH64, AMD64, S390X
from walkback.elf import ElfFile
from walkback.sframe.builder import SectionBuilder
from walkback.walking.abi import Flag, Op, Step
from walkback.walking.moduletable import Only
from walkback.walking.samples import PC
from walkback.walking.walker import Walker
from walking.stacksource import (
    BASE,
    HERE,
    OUTERMOST,
    STACK,
    Thread,
    at_sp,
    ended,
    file_of,
    frames,
    made_walker,
    place_of,
    samples_of,
    table_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

PLACE = 0x80000


def test_signed_return_addresses_lose_their_signature() -> None:
    signed = at_sp(AARCH64, 16, (PC, Op.AT_CFA, 0, -8), flags=Flag.KEEPS | Flag.SIGNED)
    table = table_of([(0, signed), (0x100, OUTERMOST), (0x200, None)])
    signature = 0xFFD5 << 48
    thread = Thread({31: STACK, PC: HERE}).words(STACK, [0, HERE + 0x20 | signature, 0, HERE + 0x110 | signature])
    stacks = made_walker(AARCH64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE, HERE + 0x20, HERE + 0x110]
    mask = 2**39 - 1
    stacks = made_walker(AARCH64, "little", [table], only="cfi", address_mask=mask).walk(
        samples_of([thread]), [usual_space()]
    )
    assert frames(stacks)[1][0] == (HERE + 0x20) & mask


def test_s390x_saves_in_floating_point_registers_of_the_topmost_frame() -> None:
    """r14 in f0, which calls do not keep, and r11 in f8, which they do."""
    step = at_sp(S390X, 160, (PC, Op.REGISTER, 16, 0), (11, Op.REGISTER, 24, 0))
    by_fp = Step((Op.REGISTER, 11, 160), ((PC, Op.AT_CFA, 0, -48),), Flag.KEEPS)
    table = table_of([(0, step), (0x40, by_fp), (0x80, OUTERMOST), (0x100, None)])
    thread = Thread({15: STACK, 16: HERE + 0x50, 24: STACK + 0x40, PC: HERE})
    thread.words(STACK + 0x40 + 112, [HERE + 0x90], "big")
    stacks = made_walker(S390X, "big", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc - HERE for pc, _, _ in frames(stacks)] == [0, 0x50, 0x90]
    del thread.registers[16]
    stacks = made_walker(S390X, "big", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert ended(stacks) == ("UNKNOWN_REGISTER", 16)


def flex_file(*, cfi: bool) -> tuple[ElfFile, ElfFile]:
    """A function of SFrame whose CFA is r10-8 loaded, as after stack realignment, and one of CFI that keeps r10."""
    builder = SectionBuilder("AMD64")
    builder.function(BASE, 0x40, ["CFA = *(r10-8), FP = *(CFA-16)"])
    sframe = builder.encode(address=PLACE + 0x1000)
    frames = CfiBuilder(address=PLACE)
    cie = frames.cie(cfa("def_cfa 7 8; offset 16 1"))
    frames.fde(cie, BASE + 0x40, 0x40, cfa("def_cfa_offset 16; offset 10 2; offset 12 2"))
    frames.fde(cie, BASE + 0x80, 0x40, cfa("def_cfa_offset 16"))
    frames.fde(cie, BASE + 0xC0, 0x40, cfa("undefined 16"))
    made = file_of(AMD64, cfi=frames.bytes() if cfi else None, place=PLACE)
    return made, file_of(AMD64, sframe=sframe, place=PLACE + 0x1000)


def test_flex_rows_want_registers_that_are_known() -> None:
    """In the topmost frame every register is; further out those that call frame information has followed."""
    cfi, sframe = flex_file(cfi=True)
    elves = [cfi, sframe]
    space = usual_space(2)
    far = place_of(1)
    words = [HERE + 0x90, STACK + 0x20, 5, far + 8, 9, HERE + 0xD0]
    top = Thread({10: STACK + 0x30, 7: STACK, 6: 0, PC: far}).words(STACK, [0, 0, 0, HERE + 0xD0, 0, STACK + 0x20])
    walker = Walker(AMD64, "little", elves.__getitem__)
    stacks = walker.walk(samples_of([top]), [space])
    assert frames(stacks)[1:] == [(HERE + 0xD0, "RETURN", "SFRAME")]
    assert ended(stacks)[0] == "COMPLETE"
    # Further out: a CFI function that saved r10 first, then SFrame by r10, mixed in one stack.
    words = [STACK + 0x28, far + 8, 0, 0, STACK + 0x40, 0, 0, HERE + 0xD0]
    below = Thread({7: STACK, 6: 0, PC: HERE + 0x44}).words(STACK, words)
    stacks = walker.walk(samples_of([below]), [space])
    assert [how for _, _, how in frames(stacks)] == ["REGISTERS", "CFI", "SFRAME"]
    assert ended(stacks)[0] == "COMPLETE"
    # A CFI function that did not save r10 has lost it for its caller: calls do not keep it.
    words = [0, far + 8, 0, 0, STACK + 0x40, 0, 0, HERE + 0xD0]
    lost = Thread({7: STACK, 10: STACK + 0x28, PC: HERE + 0x84}).words(STACK, words)
    stacks = Walker(AMD64, "little", elves.__getitem__, only=None).walk(samples_of([lost]), [space])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE + 0x84, far + 8]
    assert ended(stacks)[0] == "NO_TABLE"


def test_sframe_steps_lose_what_they_do_not_follow() -> None:
    """Other registers that calls keep may have been saved and changed: SFrame does not say."""
    builder = SectionBuilder("AMD64")
    builder.function(BASE, 0x40, ["CFA = rsp+16"])
    builder.function(BASE + 0x40, 0x40, ["CFA = rbx+16"])
    elf = file_of(AMD64, sframe=builder.encode(address=PLACE), place=PLACE)
    thread = Thread({7: STACK, 3: STACK, 6: 1, PC: HERE}).words(STACK, [0, HERE + 0x48, 0, 0])
    stacks = Walker(AMD64, "little", lambda _: elf, only="sframe").walk(samples_of([thread]), [usual_space()])
    assert ended(stacks) == ("UNKNOWN_REGISTER", 3)


def test_a_register_that_sframe_lost_is_found_by_call_frame_information() -> None:
    """The linker's resolver keeps its frame in rbx: SFrame of its callee says nothing of rbx, and the FDE does."""
    builder = SectionBuilder("AMD64")
    builder.function(BASE, 0x40, ["CFA = rsp+16"])
    builder.function(BASE + 0x40, 0x40, ["CFA = rbx+16"])
    builder.function(BASE + 0x80, 0x40, ["outermost frame"])
    frames_of = CfiBuilder(address=PLACE)
    cie = frames_of.cie(cfa("def_cfa 7 8; offset 16 1"))
    frames_of.fde(cie, BASE, 0x40, cfa("def_cfa_offset 16; offset 3 2"))
    frames_of.fde(cie, BASE + 0x40, 0x40, cfa("def_cfa 3 16"))
    frames_of.fde(cie, BASE + 0x80, 0x40, cfa("undefined 16"))
    cfi = frames_of.bytes()
    sframe = builder.encode(address=PLACE + len(cfi))
    both = ElfBuilder("little", AMD64.elf_machine, 3)
    both.section(".text", bytes(0x10000), flags=6, addr=BASE)
    both.segment(1, ".text", flags=5, vaddr=BASE)
    both.section(".eh_frame", cfi, flags=2, addr=PLACE)
    both.section(".sframe", sframe, flags=2, addr=PLACE + len(cfi))
    elf = ElfFile(bytes(both.build()), "built")
    # rbx was saved by the innermost frame, and is the next one's base.
    words = [STACK + 0x30, HERE + 0x48, 0, 0, 0, 0, 0, HERE + 0x88]
    thread = Thread({7: STACK, 3: 1, 6: 1, PC: HERE + 8}).words(STACK, words)
    cases: tuple[tuple[Only | None, list[int], str], ...] = (
        (None, [8, 0x48, 0x88], "COMPLETE"),
        ("cfi", [8, 0x48, 0x88], "COMPLETE"),
        ("sframe", [8, 0x48], "UNKNOWN_REGISTER"),
    )
    for only, pcs, end in cases:
        stacks = Walker(AMD64, "little", lambda _: elf, only=only).walk(samples_of([thread]), [usual_space()])
        assert [pc - HERE for pc, _, _ in frames(stacks)] == pcs
        assert ended(stacks)[0] == end
    # Files that are met later are none that the second try has room for yet.
    walker = Walker(AMD64, "little", lambda _: elf)
    walker.walk(samples_of([thread]), [usual_space()])
    later = Thread({7: STACK, 6: 1, PC: place_of(9) + 0x80})
    assert ended(walker.walk(samples_of([later]), [usual_space(10)]))[0] == "COMPLETE"
    assert ended(walker.walk(samples_of([thread]), [usual_space(10)]))[0] == "COMPLETE"


def test_registers_below_the_stack_pointer_are_restored_already() -> None:
    """GCC does not say so in epilogues, and recordings have nothing below the stack pointer."""
    restored = at_sp(AMD64, 8, (6, Op.AT_CFA, 0, -16), (3, Op.AT_CFA, 0, -24))
    by_fp = Step((Op.REGISTER, 6, 16), ((PC, Op.AT_CFA, 0, -8), (6, Op.AT_CFA, 0, -16)), Flag.KEEPS)
    table = table_of([(0, restored), (0x40, by_fp), (0x80, OUTERMOST), (0x100, None)])
    thread = Thread({7: STACK, 6: STACK + 8, 3: 1, PC: HERE}).words(STACK, [HERE + 0x44, 0, HERE + 0x88])
    stacks = made_walker(AMD64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc - HERE for pc, _, _ in frames(stacks)] == [0, 0x44, 0x88]
    # Where the memory can be read, the rule holds.
    thread.words(STACK - 16, [1, STACK + 8])
    thread.registers[6] = 0x99
    stacks = made_walker(AMD64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc - HERE for pc, _, _ in frames(stacks)] == [0, 0x44, 0x88]
