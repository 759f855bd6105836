"""Instructions of AMD64 against iced-x86, which decodes them from tables of its own."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import iced_x86 as iced
import numpy as np
import pytest

import walkback
from effort import rounds
from walkback.base.arch import AMD64
from walkback.code._listing import COLUMNS, listing
from walkback.code.amd64.registers import BEHIND
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.machines import AMD64 as NUMBER
from walkback.elf import layout

Row = dict[str, int]
SP, FP = AMD64.sp, AMD64.fp
AX, CX, R11 = 0, 2, 11
REGISTERS = {getattr(iced.Register, name.upper()): number for number, name in enumerate(AMD64.register_names[:16])}
FACTORY = iced.InstructionInfoFactory()
WRITING = {
    iced.OpAccess.WRITE,
    iced.OpAccess.READ_WRITE,
    iced.OpAccess.COND_WRITE,
    iced.OpAccess.READ_COND_WRITE,
}
FLOWS = {
    iced.FlowControl.NEXT: Flow.NEXT,
    iced.FlowControl.UNCONDITIONAL_BRANCH: Flow.JUMP,
    iced.FlowControl.CONDITIONAL_BRANCH: Flow.BRANCH,
    iced.FlowControl.CALL: Flow.CALL,
    iced.FlowControl.INDIRECT_CALL: Flow.CALL_INDIRECT,
    iced.FlowControl.INDIRECT_BRANCH: Flow.JUMP_INDIRECT,
    iced.FlowControl.RETURN: Flow.RETURN,
    iced.FlowControl.EXCEPTION: Flow.TRAP,
}
ALSO_WRITTEN = {
    iced.Mnemonic.SYSCALL: 1 << AX,  # by the kernel
    iced.Mnemonic.INT: 1 << AX,
    iced.Mnemonic.XABORT: 1 << AX,
}
"""What the instruction of the machine does not write by itself."""
PADLOCK = {
    iced.Mnemonic.XSTORE, iced.Mnemonic.XCRYPTECB, iced.Mnemonic.XCRYPTCBC, iced.Mnemonic.XCRYPTCFB,
    iced.Mnemonic.XCRYPTOFB, iced.Mnemonic.XCRYPTCTR, iced.Mnemonic.XSHA1, iced.Mnemonic.XSHA256,
    iced.Mnemonic.XSHA512, iced.Mnemonic.MONTMUL,
}  # fmt: skip
"""Of one maker, each with registers of its own; all that one of them writes are taken to be written."""
PUSHED = {"effect": Effect.STORE, "base": SP, "moved": -8, "before": 1, "width": 8}
POPPED = {"effect": Effect.LOAD, "base": SP, "moved": 8, "width": 8}

CASES: dict[str, dict[str, int]] = {
    "55": PUSHED | {"first": FP},  # push %rbp
    "4157": PUSHED | {"first": 15},
    "6a01": PUSHED,
    "62f27d488a4424fe": {"effect": Effect.STORE, "base": SP, "offset": -8, "width": 64},  # vcompressps %zmm0, -8(%rsp)
    "62f27d28634c2420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 32},  # vpcompressb %ymm1, 32(%rsp)
    "62f2fd088b4c2402": {"effect": Effect.STORE, "base": SP, "offset": 16, "width": 16},  # vpcompressq %xmm1, 16(%rsp)
    "62f57e0811442408": {"effect": Effect.STORE, "base": SP, "offset": 16, "width": 2},  # vmovsh %xmm0, 16(%rsp)
    "c4e27949442420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 64},  # sttilecfg 32(%rsp)
    "0fc77c2420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 8},  # vmptrst 32(%rsp)
    "0f78442420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 8},  # vmread %rax, 32(%rsp)
    "660f38f8642420": {"effect": Effect.STORE, "base": SP, "offset": 0, "width": 64},  # movdir64b 32(%rsp), %rsp
    "480304d8": {"effect": Effect.LOAD_TABLE, "first": 0, "second": 0, "base": 0, "index": 3, "scale": 8, "width": 8},
    "8c5c2420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 2},  # mov %ds, 32(%rsp)
    "488c5c2420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 2},
    "8cdb": {"clobbers": 1 << 3},  # mov %ds, %ebx
    "c4e27a4b442420": {"effect": Effect.STORE, "base": SP, "offset": 32, "width": 64},  # tilestored %tmm0, 32(%rsp)
    "c4e77bf8c301000000": {"length": 9, "clobbers": 1 << 3},  # urdmsr $1, %rbx
    "c4e77af6c301000000": {"length": 9, "clobbers": 0},  # wrmsrns %rbx, $1
    "62ff7f08f6c301000000": {"length": 10, "clobbers": 1 << 20},  # rdmsr $1, %r19
    "480f388b1f": {"clobbers": 1 << 3},  # movrs (%rdi), %rbx
    "0f388a1f": {"clobbers": 1 << 3},
    "f20f38f8c3": {"clobbers": 1 << 3},  # urdmsr %rax, %rbx
    "8fe9f812cb": {"clobbers": 1 << 3},  # slwpcb %rbx
    "8fe9f812c3": {},  # llwpcb %rbx
    "ff35 00000000": PUSHED,  # push of memory
    "5d": POPPED | {"first": FP},
    "c9": {"effect": Effect.LEAVE, "first": SP, "base": FP},
    "4889e5": {"effect": Effect.COPY, "first": FP, "second": SP},
    "4883ec28": {"effect": Effect.ADD, "first": SP, "base": SP, "offset": -40},
    "4881c400100000": {"effect": Effect.ADD, "first": SP, "base": SP, "offset": 4096},
    "4883e4e0": {"effect": Effect.ALIGN, "first": SP, "base": SP, "offset": -32},
    "488d6424f8": {"effect": Effect.ADD, "first": SP, "base": SP, "offset": -8},  # lea -8(%rsp),%rsp
    "4c8d542408": {"effect": Effect.ADD, "first": 10, "base": SP, "offset": 8},
    "48895c2408": {"effect": Effect.STORE, "first": 3, "base": SP, "offset": 8, "width": 8},  # mov %rbx,8(%rsp)
    "488b5c2408": {"effect": Effect.LOAD, "first": 3, "base": SP, "offset": 8, "width": 8},
    "f20f11442408": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 8, "width": 8},  # movsd
    "0f29442410": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 16, "width": 16},  # movaps
    "c5fc11442420": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 32, "width": 32},  # vmovups
    "4829c4": {"effect": Effect.SUBTRACT, "first": SP, "base": SP, "index": AX},  # sub %rax,%rsp
    "4809cc": {"effect": Effect.NOTHING, "clobbers": 1 << SP},  # or %rcx,%rsp
    "4c39dc": {"effect": Effect.COMPARE, "first": SP, "second": R11},
    "4863148f": {"effect": Effect.LOAD_TABLE, "first": 1, "base": 5, "index": CX, "scale": 4, "width": 4, "signed": 1},
}


def rows(code: bytes, address: int = 0x1000) -> list[Row]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in listing(NUMBER, code, address).tolist()]


def covered(row: Row) -> int:
    """The registers that the decoder says change, as bits."""
    return row["changes"] | (1 << row["base"] if row["moved"] else 0)


@pytest.mark.kernel
@pytest.mark.parametrize("code", CASES)
def test_what_stacks_depend_on(code: str) -> None:
    [row] = rows(bytes.fromhex(code))
    assert {name: row[name] for name in CASES[code]} == CASES[code]


@pytest.mark.kernel
@pytest.mark.parametrize(
    "code",
    ["c4e778f6c3", "c4e77ff6c3", "c4e773f6c3", "c4e77bf6cb", "c4e7fbf6c3", "c4e77bf703", "c4e77bf603", "62f77f28f8c3"],
)
def test_of_map_7_there_is_nothing_else(code: str) -> None:
    row, *_ = rows(bytes.fromhex(code) + bytes(4))
    assert (row["length"], row["flow"]) == (1, Flow.BAD)


def said(code: bytes, address: int) -> tuple[int, Flow | None, int, int]:
    """The length, flow, target, and written registers that iced gives; no flow where it has none to compare."""
    one = iced.Decoder(64, code, ip=address).decode()
    if one.code == iced.Code.INVALID:
        return 0, None, 0, 0
    written = ALSO_WRITTEN.get(one.mnemonic, 0)
    for used in FACTORY.info(one).used_registers():
        whole = iced.RegisterExt.full_register(used.register)
        if used.access in WRITING and whole in REGISTERS:
            written |= 1 << REGISTERS[whole]
    flow = Flow.SYSTEM if one.mnemonic == iced.Mnemonic.SYSCALL else FLOWS.get(one.flow_control)
    if flow in {Flow.CALL, Flow.CALL_INDIRECT, Flow.RETURN}:
        written &= ~(1 << SP)  # what calls and returns do to it is known from the flow
    if one.mnemonic == iced.Mnemonic.HLT:
        flow = Flow.TRAP  # programs may not
    if one.mnemonic in PADLOCK:
        written = sum(1 << number for number in (AX, CX, AMD64.register_names.index("rsi"), 5))
    target = one.near_branch_target if flow in {Flow.JUMP, Flow.BRANCH, Flow.CALL} else 0
    return one.len, flow, target, written


NO_STACK = {iced.Mnemonic.CLRSSBSY, iced.Mnemonic.RSTORSSP}
"""What stores to shadow stacks."""


def with_operand() -> Iterator[bytes]:
    """Each opcode of each map with the operand 32(%rsp), or as near as EVEX counts, with each prefix that tells."""
    operands = [bytes([0x44 | register << 3, 0x24, 0x20, *[1] * 8]) for register in range(8)]
    leads = [
        prefix + rex + map_
        for prefix in (b"", b"\x66", b"\xf3", b"\xf2")
        for rex in (b"", b"\x48")
        for map_ in (b"", b"\x0f", b"\x0f\x38", b"\x0f\x3a")
    ]
    fields = [(wide, length, prefix) for wide in (0, 0x80) for length in range(3) for prefix in range(4)]
    for wide, length, prefix in fields:
        leads += [bytes([0xC4, 0xE0 | map_, wide | 0x78 | (length & 1) << 2 | prefix]) for map_ in (1, 2, 3)]
        leads += [bytes([0x62, 0xF0 | map_, wide | 0x7C | prefix, length << 5 | 8]) for map_ in (1, 2, 3, 5, 6)]
    leads += [bytes([0x8F, 0xE0 | map_, 0x78]) for map_ in (8, 9, 10)]
    for lead in leads:
        for opcode in range(256):
            for operand in operands if lead[:1] != b"\x62" else operands[:2]:
                yield lead + bytes([opcode]) + operand


def stores_in_operand(one: iced.Instruction) -> bool:
    """Whether iced knows that memory is written where the operand is, on the stack."""
    if one.code == iced.Code.INVALID or one.memory_base != iced.Register.RSP or one.mnemonic in NO_STACK:
        return False
    used = [used for used in FACTORY.info(one).used_memory() if used.access in WRITING]
    return any(one.memory_displacement == here.displacement and here.base == iced.Register.RSP for here in used)


@pytest.mark.whole
def test_each_store_on_the_stack_is_seen() -> None:
    unseen, compared = set(), 0
    for code in with_operand():
        one = iced.Decoder(64, code, ip=0x1000).decode()
        if not stores_in_operand(one):
            continue
        [row] = rows(code[: one.len])
        if row["flow"] == Flow.BAD or row["moved"]:
            continue
        compared += 1
        found = row["effect"] == Effect.STORE and row["base"] == SP
        found = found and row["width"] >= iced.MemorySizeExt.size(one.memory_size)
        if not found or (row["index"] == NONE and row["offset"] != one.memory_displacement):
            unseen.add(code[: one.len].hex())
    assert not unseen
    assert compared > 2000


def code_of(path: Path) -> list[tuple[int, bytes]]:
    """The executable sections of a program."""
    elf = walkback.ElfFile(path)
    chosen = (elf.sections["flags"] & layout.SHF_EXECINSTR != 0) & (elf.sections["type"] == layout.SHT_PROGBITS)
    numbers = np.flatnonzero(chosen).tolist()
    return [(int(elf.sections["addr"][number]), bytes(elf.section_data(number))) for number in numbers]


def test_programs_are_decoded_as_iced_decodes_them() -> None:
    wrong: list[str] = []
    compared = 0
    seen: set[bytes] = set()
    for path in some_programs():
        for address, code in code_of(path):
            at = 0
            found = listing(NUMBER, code, address)
            for number, size in enumerate(found[:, COLUMNS.index("length")].tolist()):
                part = code[at : at + 15]
                if part[:size] not in seen:
                    row = dict(zip(COLUMNS, found[number].tolist(), strict=True))
                    length, flow, target, written = said(part, address + at)
                    if row["flow"] != Flow.BAD:
                        seen.add(part[:size])
                        compared += 1
                        got = (size, row["flow"], row["target"], covered(row))
                        if length and got != (length, row["flow"] if flow is None else flow, target, written):
                            wrong.append(f"{path}: {part[:size].hex()}: {got}, not {(length, flow, target, written)}")
                    elif length:
                        wrong.append(f"{path}: {part.hex()} is an instruction")
                at += size
    assert wrong == []
    assert compared > rounds(100_000, 10_000)


def some_programs() -> list[Path]:
    """Programs of this machine, the first by the names."""
    found = []
    room = rounds(20_000_000, 2_000_000)
    for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/bin"):
        for path in sorted(Path(folder).glob("*")):
            if path.is_file() and 50_000 < path.stat().st_size < room:
                with path.open("rb") as file:
                    if file.read(20)[:5] == b"\x7fELF\x02" and path.resolve() not in found:
                        found.append(path.resolve())
                        room -= path.stat().st_size
    return found


@pytest.mark.kernel
def test_random_bytes_have_lengths_and_no_registers_that_there_are_not() -> None:
    rng = random.Random(64)
    for _ in range(rounds(200, 20)):
        code = rng.randbytes(rng.randrange(600))
        found = rows(code, rng.choice([0, 0x1000, 2**64 - 64]))
        assert sum(row["length"] for row in found) == len(code)
        assert all(1 <= row["length"] <= 15 and row["clobbers"] >> (BEHIND + 16) == 0 for row in found)


@pytest.mark.kernel
def test_random_bytes_have_the_lengths_of_iced() -> None:
    rng = random.Random(65)
    for _ in range(rounds(20_000, 1_000)):
        code = rng.randbytes(15)
        one = iced.Decoder(64, code, ip=0).decode()
        row = rows(code)[0]
        if one.code != iced.Code.INVALID and row["flow"] != Flow.BAD:
            assert row["length"] == one.len, (code.hex(), str(one))


ELSEWHERE = {
    *("movdir64b", "enqcmd", "enqcmds"),  # to where a register leads
    *("vmptrst", "vmread", "clrssbsy", "rstorssp"),  # of hypervisors and of shadow stacks
}


def at_a_place(rng: random.Random) -> bytes:
    """A vector instruction, or one of the maps behind 0F, on memory at the stack pointer."""
    lead = rng.choice(
        [
            bytes([0xC4, 0xE0 | rng.randrange(1, 4), rng.randrange(256)]),
            bytes([0xC5, rng.randrange(256)]),
            bytes([0x62, 0xF0 | rng.choice([1, 2, 3, 5, 6]), rng.randrange(256) | 4, rng.randrange(256)]),
            rng.choice([b"", b"\x66", b"\xf3", b"\xf2", b"\x48"]) + rng.choice([b"\x0f", b"\x0f\x38", b"\x0f\x3a"]),
        ]
    )
    modrm = rng.choice([0x44, 0x84]) | rng.randrange(8) << 3
    return lead + bytes([rng.randrange(256), modrm, 0x24]) + rng.randbytes(6)


@pytest.mark.kernel
def test_what_is_stored_at_a_place_takes_at_least_the_bytes_of_iced() -> None:
    rng = random.Random(66)
    compared = 0
    for _ in range(rounds(100_000, 5_000)):
        code = at_a_place(rng)
        one = iced.Decoder(64, code, ip=0x1000).decode()
        row = rows(code)[0]
        if one.code == iced.Code.INVALID or row["length"] != one.len or str(one).split()[0] in ELSEWHERE:
            continue
        written = [use for use in FACTORY.info(one).used_memory() if use.access in WRITING and not use.index]
        for use in written:
            size = iced.MemorySizeExt.size(use.memory_size)
            assert (row["effect"], row["width"] >= size) == (Effect.STORE, True), (code.hex(), str(one))
            if row["index"] < 0 and not row["moved"]:
                assert row["offset"] % 2**64 == use.displacement, (code.hex(), str(one))
        compared += len(written)
    assert compared > rounds(1_000, 30)
