"""Signal frames of every machine, the entry of functions, and chains of frames without tables."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from cfibuilder import CfiBuilder, cfa
from sframebuilder import AARCH64 as ABI_AARCH64
from sframebuilder import AARCH64_BIG, SFrameBuilder, row
from sframebuilder import AMD64 as ABI_AMD64
from sframebuilder import S390X as ABI_S390X
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.stacks.stacks import How
from walkback.walking.abi import ABIS, Flag, Op, Step
from walkback.walking.moduletable import ModuleTable
from walkback.walking.samples import PC
from walkback.walking.walker import Walker
from walking.stacksource import (
    BASE,
    HERE,
    IDS,
    ORDERS,
    OUTERMOST,
    STACK,
    WORD,
    Thread,
    at_sp,
    ended,
    file_of,
    frames,
    made_walker,
    samples_of,
    space_of,
    table_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

PLACE = 0x80000
FRAME = STACK + 0x200
"""Where the kernel has put its frame."""
OTHER_STACK = STACK + 0x4000
CODE = {
    AMD64: [bytes.fromhex("48c7c00f0000000f05")],
    AARCH64: [bytes.fromhex("681180d2010000d4")],
    S390X: [bytes.fromhex("0aad"), bytes.fromhex("0a77")],
}
KINDS = [(machine, order, kind) for machine, order in ORDERS for kind in range(len(CODE[machine]))]
KIND_IDS = ["amd64", "aarch64", "aarch64-big", "s390x-rt", "s390x-old"]


def kernel_frame(machine: Machine, order: ByteOrder, registers: dict[int, int], kind: int = 0) -> tuple[int, bytes]:
    """What a kernel writes, from the headers' structures; and where the stack pointer is when the handler returns."""
    mark = "<" if order == "little" else ">"

    def word(register: int) -> bytes:
        return struct.pack(mark + "Q", registers.get(register, 0xDEAD0000 + register))

    if machine is AMD64:
        # The return address of the handler; uc_flags, uc_link, uc_stack (24); r8 to r15, di si bp bx dx ax cx sp ip
        order_of_context = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, PC]
        return 8, bytes(8) + bytes(40) + b"".join(word(one) for one in order_of_context)
    if machine is AARCH64:
        # siginfo; uc_flags, uc_link, uc_stack, sigset and its padding (128), aligned to 16; fault_address, regs, sp, pc
        return 0, bytes(128) + bytes(40 + 128 + 8) + bytes(8) + b"".join(word(one) for one in (*range(31), 31, PC))
    numbers = dict(zip((0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15), range(16, 32), strict=True))
    saved = bytes(8) + word(PC) + b"".join(word(one) for one in range(16)) + bytes(64) + bytes(8)
    saved += b"".join(word(numbers[one]) for one in range(16))
    # rt_sigframe: svc and padding (8), siginfo, uc_flags, uc_link, uc_stack; sigframe: oldmask, pointer to sregs
    return 0, bytes(160) + (bytes(8 + 128 + 40) if kind == 0 else bytes(16)) + saved


INTERRUPTED = HERE + 0x300
"""A leaf function: what follows needs the return register, or the top of the other stack."""
CALLER = HERE + 0x180


def signal_thread(machine: Machine, order: ByteOrder, restorer: int, kind: int = 0, space: int = 0) -> Thread:
    """In a handler, which returns to `restorer`; it had interrupted a leaf on another stack."""
    registers = {machine.sp: OTHER_STACK, PC: INTERRUPTED, machine.fp: 77}
    if machine is not AMD64:
        registers[machine.ra] = CALLER
    begin, contents = kernel_frame(machine, order, registers, kind)
    thread = Thread({machine.sp: FRAME - 8 if machine is AMD64 else FRAME, PC: HERE + 0x100}, space=space)
    if machine is AMD64:
        thread.registers[machine.sp] = FRAME
        contents = restorer.to_bytes(8, order) + contents[begin:]
    else:
        thread.registers[machine.ra] = restorer
    thread.memory.append((FRAME, contents))
    return thread.words(OTHER_STACK, [CALLER], order)


def usual_table(machine: Machine, *more: Any, trampolines: list[tuple[int, int]] | tuple[Any, ...] = ()) -> ModuleTable:
    """A leaf at 0x100, the outermost function at 0x160, a leaf at 0x300."""
    leaf = at_sp(machine, machine.entry_sp_to_cfa)
    points = [*more, (0x100, leaf), (0x160, OUTERMOST), (0x200, None), (0x300, leaf), (0x400, None)]
    return table_of(points, trampolines=trampolines)


def expected(machine: Machine, restorer: int, how: str) -> list[tuple[int, str, str]]:
    return [
        (HERE + 0x100, "EXACT", "REGISTERS"),
        (restorer, "RETURN", "CFI"),
        (INTERRUPTED, "EXACT", how),
        (CALLER, "RETURN", "CFI"),
    ]


@pytest.mark.parametrize(("machine", "order", "kind"), KINDS, ids=KIND_IDS)
def test_code_that_handlers_return_to_is_known_by_its_bytes(machine: Machine, order: ByteOrder, kind: int) -> None:
    table = usual_table(machine, trampolines=[(0x40, kind)])
    walker = made_walker(machine, order, [table], only="cfi")
    stacks = walker.walk(samples_of([signal_thread(machine, order, HERE + 0x40, kind)]), [usual_space()])
    assert frames(stacks) == expected(machine, HERE + 0x40, "SIGNAL")
    assert ended(stacks) == ("COMPLETE", CALLER)


@pytest.mark.parametrize(("machine", "order", "kind"), KINDS, ids=KIND_IDS)
def test_the_bytes_are_found_in_files(machine: Machine, order: ByteOrder, kind: int) -> None:
    code = bytearray(0x1000)
    builder = CfiBuilder(order=order, address=PLACE)
    program = {AMD64: "def_cfa 7 8; offset 16 1", AARCH64: "def_cfa 31 0", S390X: "def_cfa 15 160"}[machine]
    cie = builder.cie(cfa(program, order), ra=machine.ra)
    code[0x40 : 0x40 + len(CODE[machine][kind])] = CODE[machine][kind]
    for start, more in ((0x100, ""), (0x160, f"undefined {machine.ra}"), (0x300, "")):
        builder.fde(cie, BASE + start, 0x40, cfa(more, order))
    elf = file_of(machine, order, cfi=builder.bytes(), code=bytes(code), place=PLACE)
    walker = Walker(machine, order, lambda _: elf, only="cfi")
    stacks = walker.walk(samples_of([signal_thread(machine, order, HERE + 0x40, kind)]), [usual_space()])
    assert frames(stacks) == expected(machine, HERE + 0x40, "SIGNAL")


@pytest.mark.parametrize(("machine", "order", "kind"), KINDS, ids=KIND_IDS)
@pytest.mark.parametrize("mapped", [True, False])
def test_the_bytes_are_found_on_the_stack(machine: Machine, order: ByteOrder, kind: int, mapped: bool) -> None:
    """Old kernels put them there; whether the stack counts as mapped code depends on the source."""
    restorer = FRAME + 0x800
    thread = signal_thread(machine, order, restorer, kind)
    thread.memory.append((restorer, CODE[machine][kind]))
    space = usual_space()
    if mapped:
        space = space_of((HERE, 0x10000, 0, HERE - BASE), (STACK, 0x10000, -1, 0))
    stacks = made_walker(machine, order, [usual_table(machine)], only="cfi").walk(samples_of([thread]), [space])
    assert frames(stacks) == expected(machine, restorer, "SIGNAL")
    thread.memory[-1] = (restorer, bytes(len(CODE[machine][kind])))
    stacks = made_walker(machine, order, [usual_table(machine)], only="cfi").walk(samples_of([thread]), [space])
    assert len(frames(stacks)) == 2


@pytest.mark.parametrize(("machine", "order", "kind"), KINDS, ids=KIND_IDS)
def test_a_thread_can_be_stopped_in_that_code(machine: Machine, order: ByteOrder, kind: int) -> None:
    table = usual_table(machine, trampolines=[(0x40, kind)])
    inside = signal_thread(machine, order, HERE + 0x40, kind)
    inside.registers[machine.sp] = FRAME + (8 if machine is AMD64 else 0)
    size = len(CODE[machine][kind])
    for offset in sorted({0, size - 2 if machine is AMD64 else 0}):
        inside.registers[PC] = HERE + 0x40 + offset
        walker = made_walker(machine, order, [table], only="cfi")
        stacks = walker.walk(samples_of([inside]), [usual_space()])
        assert [pc for pc, _, _ in frames(stacks)] == [HERE + 0x40 + offset, INTERRUPTED, CALLER]
    # Behind the code the kernel is at work, and registers are half those of the handler and half the interrupted ones.
    inside.registers[PC] = HERE + 0x40 + size
    stacks = made_walker(machine, order, [table], only="cfi").walk(samples_of([inside]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE + 0x40 + size]


@pytest.mark.parametrize(("machine", "order"), ORDERS, ids=IDS)
def test_an_sframe_function_without_rows_has_the_kernels_frame(machine: Machine, order: ByteOrder) -> None:
    abi = {AMD64: ABI_AMD64, AARCH64: ABI_AARCH64 if order == "little" else AARCH64_BIG, S390X: ABI_S390X}[machine]
    builder = SFrameBuilder(3, order=order, abi=abi, address=PLACE)
    builder.function(BASE + 0x3F, 0x21, [], signal=True)
    entry = {AMD64: [8], AARCH64: [0], S390X: [160]}[machine]
    for start in (0x100, 0x300):
        # s390x counts CFA offsets from 160, in units of 8.
        builder.function(BASE + start, 0x40, [row(0, 1, [0] if machine is S390X else entry)])
    builder.function(BASE + 0x160, 0x40, [row(0, 1, [])])
    elf = file_of(machine, order, sframe=builder.bytes(), place=PLACE)
    walker = Walker(machine, order, lambda _: elf, only="sframe")
    stacks = walker.walk(samples_of([signal_thread(machine, order, HERE + 0x40)]), [usual_space()])
    assert [(pc, kind, how.replace("SFRAME", "CFI")) for pc, kind, how in frames(stacks)] == expected(
        machine, HERE + 0x40, "SIGNAL"
    )
    assert ended(stacks)[0] == "COMPLETE"


def test_old_signal_frames_of_s390x_are_told_apart_by_code_where_sframe_only_says_signal() -> None:
    builder = SFrameBuilder(3, order="big", abi=ABI_S390X, address=PLACE)
    builder.function(BASE + 0x3E, 4, [], signal=True)
    code = bytearray(0x1000)
    code[0x40:0x42] = CODE[S390X][1]
    for start in (0x100, 0x300):
        builder.function(BASE + start, 0x40, [row(0, 1, [0])])
    elf = file_of(S390X, "big", sframe=builder.bytes(), code=bytes(code), place=PLACE)
    walker = Walker(S390X, "big", lambda _: elf, only="sframe")
    stacks = walker.walk(samples_of([signal_thread(S390X, "big", HERE + 0x40, 1)]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [pc for pc, _, _ in expected(S390X, HERE + 0x40, "")]


def test_call_frame_information_marks_signal_frames() -> None:
    """The FDE of glibc begins one byte before the code, so that the return address finds it."""
    builder = CfiBuilder(address=PLACE)
    signal = builder.cie(cfa("def_cfa 7 0; offset 16 0"), augmentation=b"zRS", data_align=8)
    # CFA = *(rsp + 160), RA = *(rsp + 168), as the context has them.
    program = "def_cfa_expression 77a00106; expression 16 77a801; expression 6 77f800"
    builder.fde(signal, BASE + 0x3F, 0x10, cfa(program))
    usual = builder.cie(cfa("def_cfa 7 8; offset 16 1"))
    for start in (0x100, 0x300):
        builder.fde(usual, BASE + start, 0x40)
    elf = file_of(AMD64, cfi=builder.bytes(), place=PLACE)
    walker = Walker(AMD64, "little", lambda _: elf, only="cfi")
    stacks = walker.walk(samples_of([signal_thread(AMD64, "little", HERE + 0x40)]), [usual_space()])
    assert [(pc, kind) for pc, kind, _ in frames(stacks)] == [
        (pc, kind) for pc, kind, _ in expected(AMD64, HERE + 0x40, "")
    ]
    assert {how for _, _, how in frames(stacks)[1:]} == {"CFI"}


def test_an_interrupted_frame_is_looked_up_where_it_is() -> None:
    """At the first byte of a function, one before would be another."""
    signal = Step((Op.REGISTER, 7, 0), ((PC, Op.AT_REGISTER, 7, 0), (7, Op.CFA, 0, 64)), Flag.SIGNAL)
    table = table_of([(0, signal), (0x10, None), (0x20, OUTERMOST), (0x30, None)])
    thread = Thread({7: STACK, PC: HERE}).words(STACK, [HERE + 0x20])
    stacks = made_walker(AMD64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert frames(stacks)[1:] == [(HERE + 0x20, "EXACT", "CFI")]
    assert stacks.address[1] == BASE + 0x20
    assert ended(stacks)[0] == "COMPLETE"


# Entry and chains


@pytest.mark.parametrize(("machine", "order"), ORDERS, ids=IDS)
def test_a_jump_to_nowhere_is_as_at_the_entry_of_a_function(machine: Machine, order: ByteOrder) -> None:
    table = usual_table(machine)
    for pc in (0, 0x1234, WORD):
        thread = Thread({machine.sp: STACK, machine.fp: 0, PC: pc})
        thread.words(STACK, [HERE + 0x170], order)
        if machine is not AMD64:
            thread.registers[machine.ra] = HERE + 0x170
        stacks = made_walker(machine, order, [table]).walk(samples_of([thread]), [usual_space()])
        assert frames(stacks) == [(pc, "EXACT", "REGISTERS"), (HERE + 0x170, "RETURN", "ENTRY")]
        assert ended(stacks)[0] == "COMPLETE"
        only = made_walker(machine, order, [table], only="cfi").walk(samples_of([thread]), [usual_space()])
        assert ended(only) == ("NOT_CODE", pc)


def test_a_jump_to_nowhere_that_a_signal_interrupted_is_walked_too() -> None:
    """A program whose handler of SIGSEGV prints its stack has called a null pointer."""
    table = usual_table(AMD64, trampolines=[(0x40, 0)])
    thread = signal_thread(AMD64, "little", HERE + 0x40)
    start, contents = thread.memory[0]
    place = 8 + 40 + 8 * 16
    thread.memory[0] = (start, contents[:place] + bytes(8) + contents[place + 8 :])
    stacks = made_walker(AMD64, "little", [table]).walk(samples_of([thread]), [usual_space()])
    assert frames(stacks)[2:] == [(0, "EXACT", "SIGNAL"), (CALLER, "RETURN", "ENTRY")]


@pytest.mark.parametrize(("declared", "how"), [(False, "FP_GUESS"), (True, "FP_DECLARED")])
@pytest.mark.parametrize(("machine", "order"), ORDERS[:3], ids=IDS[:3])
def test_frame_pointers_are_followed_where_no_table_is(
    machine: Machine, order: ByteOrder, declared: bool, how: str
) -> None:
    table = table_of([(0, OUTERMOST), (0x10, None)], declared=declared)
    signed = 0x2A << 56 if machine is AARCH64 else 0
    words = [0, STACK + 0x20, HERE + 0x41 | signed, 0, STACK + 0x40, HERE + 0x51, 0, 0, 0, HERE + 0x61]
    thread = Thread({machine.fp: STACK + 8, machine.sp: STACK, PC: HERE + 0x30}).words(STACK, words, order)
    stacks = made_walker(machine, order, [table]).walk(samples_of([thread]), [usual_space()])
    assert frames(stacks)[1:] == [
        (HERE + 0x41, "RETURN", how),
        (HERE + 0x51, "RETURN", how),
        (HERE + 0x61, "RETURN", how),
    ]
    assert ended(stacks) == ("ZERO", machine.fp)
    only = made_walker(machine, order, [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert ended(only) == ("NO_TABLE", HERE + 0x30)


def test_a_frame_pointer_that_leads_to_no_code_is_not_believed() -> None:
    thread = Thread({6: STACK + 8, 7: STACK, PC: HERE + 0x30}).words(STACK, [0, 0, 0x1234])
    stacks = made_walker(AMD64, "little", [None]).walk(samples_of([thread]), [usual_space()])
    assert len(frames(stacks)) == 1
    assert ended(stacks) == ("NOT_CODE", 0x1234)
    del thread.registers[6]
    stacks = made_walker(AMD64, "little", [None]).walk(samples_of([thread]), [usual_space()])
    assert ended(stacks) == ("NO_TABLE", HERE + 0x30)


def test_the_back_chain_of_s390x_ends_with_zero() -> None:
    words = [STACK + 0x100, *[7] * 31, STACK + 0x200, *[7] * 13, HERE + 0x40, *[7] * 17, 0, *[7] * 13, HERE + 0x50]
    thread = Thread({15: STACK, 11: 5, PC: HERE + 0x30}).words(STACK, words, "big")
    for only in (None, "fp"):
        stacks = made_walker(S390X, "big", [None], only=only).walk(samples_of([thread]), [usual_space()])
        assert [pc - HERE for pc, _, _ in frames(stacks)] == [0x30, 0x40, 0x50]
        assert ended(stacks)[0] == "ZERO"


def test_only_frame_pointers() -> None:
    """Tables are not even loaded."""
    words = [STACK + 0x20, HERE + 0x41, 0, 0, 0, HERE + 0x161]
    thread = Thread({6: STACK, 7: STACK, PC: HERE + 0x100}).words(STACK, words)
    walker = made_walker(AMD64, "little", [usual_table(AMD64)], only="fp")
    nothing: Any = None
    walker._elf_of = nothing
    stacks = walker.walk(samples_of([thread]), [usual_space()])
    assert [how for _, _, how in frames(stacks)] == ["REGISTERS", "FP_GUESS", "FP_GUESS"]
    assert ended(stacks)[0] == "ZERO"


def test_linkage_tables_that_nothing_describes_are_entries() -> None:
    from elfbuilder import ElfBuilder
    from walkback.elf import ElfFile

    builder = ElfBuilder("little", AMD64.elf_machine, 3)
    builder.section(".plt", bytes(0x40), flags=6, addr=BASE)
    builder.section(".plt.sec", bytes(0x40), flags=6, addr=BASE + 0x40)
    builder.section(".init", bytes(0x40), flags=6, addr=BASE + 0x200)
    builder.section(".text", bytes(0x40), flags=6, addr=BASE + 0x100)
    builder.segment(1, ".text", flags=5, vaddr=BASE + 0x100)
    elf = ElfFile(bytes(builder.build()), "built")
    for pc, length in (
        (HERE + 0x200, 2),
        (HERE + 0x201, 1),
        (HERE + 0x10, 2),
        (HERE + 0x50, 2),
        (HERE + 0x7F, 2),
        (HERE + 0x80, 1),
        (HERE + 0x110, 1),
    ):
        thread = Thread({7: STACK, 6: 0, PC: pc}).words(STACK, [HERE + 0x111])
        stacks = Walker(AMD64, "little", lambda _: elf).walk(samples_of([thread]), [usual_space()])
        assert len(frames(stacks)) == length
        assert frames(stacks)[1:] == [(HERE + 0x111, "RETURN", "ENTRY")][: length - 1]


def test_what_the_abis_say_is_said_of_every_machine() -> None:
    for machine, abi in ABIS.items():
        assert [one.code for one in abi.trampolines] == CODE[machine]
        assert How.ENTRY
