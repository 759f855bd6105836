"""Instructions of AMD64 with APX: 16 more registers, results in registers of their own; against objdump."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from effort import rounds
from peers import run
from walkback.base.arch import AMD64
from walkback.code._listing import COLUMNS, listing
from walkback.code.amd64.registers import BEHIND
from walkback.code.effects import NONE, Effect, Flow
from walkback.code.flags import keeps_flags
from walkback.code.machines import AMD64 as NUMBER

Row = dict[str, int]
AX, DX, CX, BX, FP, SP = 0, 1, 2, 3, AMD64.fp, AMD64.sp
R8, R9, R14, R15, R16, R17, R18, R31 = 8, 9, 14, 15, BEHIND, BEHIND + 1, BEHIND + 2, BEHIND + 15
PUSHED = {"effect": Effect.STORE, "base": SP, "before": 1, "width": 8}
POPPED = {"effect": Effect.LOAD, "base": SP, "before": 0, "width": 8}
NOTHING = {"effect": Effect.NOTHING, "clobbers": 0, "flow": Flow.NEXT}

CASES: dict[str, Row] = {
    "d51050": PUSHED | {"first": R16, "moved": -8},
    "d50855": PUSHED | {"first": FP, "moved": -8},  # pushp %rbp
    "d5085d": POPPED | {"first": FP, "moved": 8},  # popp %rbp
    "d5108fc0": POPPED | {"first": R16, "moved": 8},  # pop %r16, as of an operand
    "62d48418fff6": PUSHED | {"first": R14, "second": R15, "count": 2, "moved": -16},  # push2p %r14, %r15
    "62d48c188fc7": POPPED | {"first": R14, "second": R15, "count": 2, "moved": 16},  # pop2p %r15, %r14
    "62fc7c10fff1": PUSHED | {"first": R17, "second": R16, "count": 2, "moved": -16},  # push2 %r17, %r16
    "d51889e0": {"effect": Effect.COPY, "first": R16, "second": SP},  # mov %rsp, %r16
    "d548 8b442408": {"effect": Effect.LOAD, "first": R16, "base": SP, "offset": 8, "width": 8},
    "d5488944 2408": {"effect": Effect.STORE, "first": R16, "base": SP, "offset": 8, "width": 8},
    "d5488d05 00010000": {"effect": Effect.CONSTANT, "first": R16, "offset": 0x1108},  # lea 0x100(%rip), %r16
    "d50883c408": {"effect": Effect.ADD, "first": SP, "base": SP, "offset": 8},  # {rex2} add $8, %rsp
    "62f47c1883c408": {"effect": Effect.NOTHING, "clobbers": 1 << AX},  # add $8, %esp, %eax
    "62f4fc1883c408": {"effect": Effect.ADD, "first": AX, "base": SP, "offset": 8},  # add $8, %rsp, %rax
    "62f4fc1883e4e0": {"effect": Effect.ALIGN, "first": AX, "base": SP, "offset": -32},
    "62f4fc1c83ec10": {"effect": Effect.ADD, "first": AX, "base": SP, "offset": -16},  # {nf} sub $16, %rsp, %rax
    "62f4dc1801c4": {"effect": Effect.ADD_REGISTERS, "first": SP, "base": SP, "index": AX},  # add %rax, %rsp, %rsp
    "62f4dc1829c4": {"effect": Effect.SUBTRACT, "first": SP, "base": SP, "index": AX},
    "62f4dc182be0": {"effect": Effect.SUBTRACT, "first": SP, "base": SP, "index": AX},
    "62f4fc0c83c408": {"effect": Effect.ADD, "first": SP, "base": SP, "offset": 8},  # {nf} add $8, %rsp
    "62f4fc18ffc4": {"effect": Effect.ADD, "first": AX, "base": SP, "offset": 1},  # inc %rsp, %rax
    "62f47c1831c9": {"effect": Effect.CONSTANT, "first": AX, "offset": 0},  # xor %ecx, %ecx, %eax
    "62f4840239c3": NOTHING,  # ccmpb {dfv=} %rax, %rbx
    "62f4840a85c3": NOTHING,  # ctest
    "62f4fc18 44c3": {"clobbers": 1 << AX},  # cmove %rbx, %rax, %rax
    "62f4fc0c445c2408": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 8, "width": 8},  # cfcmove
    "62f4fc0844c3": {"clobbers": 1 << AX},  # cfcmove %rbx, %rax
    "62f47f1844c3": {"clobbers": 1 << BX},  # setzue %bl
    "62f47f0844442408": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 8, "width": 1},
    "62f4fc08f7e3": {"clobbers": 1 << AX | 1 << DX},  # mul %rbx, in EVEX
    "62f4fd0866c3": {"clobbers": 1 << AX},  # adcx %rbx, %rax
    "62f4fc08 665c2408": {"effect": Effect.STORE, "first": NONE, "base": SP, "offset": 8, "width": 8},  # wrssq
    "62f4fc18a444c3": {"length": 1, "flow": Flow.BAD},  # a4 is not in this map
    "62dafc08f3c8": {"clobbers": 1 << AX},  # blsr %r24, %rax
    "d500a1 0807060504030201": {"flow": Flow.JUMP, "target": 0x0102030405060708},  # jmpabs
    "d51041ffe3": {"length": 1, "flow": Flow.BAD},  # inc in a byte is none here
    "48d51050": {"length": 1, "flow": Flow.BAD},  # REX before REX2
}


@pytest.mark.kernel
@pytest.mark.parametrize("code", CASES)
def test_what_stacks_depend_on(code: str) -> None:
    assert {name: row_of(bytes.fromhex(code))[name] for name in CASES[code]} == CASES[code]


@pytest.mark.parametrize(
    ("code", "keeps"),
    [
        ("62f4fc1844c3", True),  # cmove %rbx, %rax, %rax
        ("62f47f1844c3", True),  # setzue %bl
        ("62f4fc1c83ec10", True),  # {nf} sub $16, %rsp, %rax
        ("62f4fc1883c408", False),  # add $8, %rsp, %rax
        ("62f4840239c3", False),  # ccmpb {dfv=} %rax, %rbx
        ("d5488b442408", True),  # mov 8(%rsp), %r16
    ],
)
def test_which_instructions_keep_flags(code: str, keeps: bool) -> None:
    assert bool(keeps_flags(NUMBER, bytes.fromhex(code) + bytes(8), 0)) == keeps


def row_of(code: bytes) -> Row:
    """What the decoder says of the first instruction."""
    return dict(zip(COLUMNS, listing(NUMBER, code, 0x1000)[0].tolist(), strict=True))


WITH_NEW = [8 * operation + place for operation in range(8) for place in range(4)]
WITH_NEW += [0x24, 0x2C, *range(0x40, 0x50), 0x66, 0x69, 0x6B, 0x80, 0x81, 0x83, 0x84, 0x85, 0xA5, 0xAD, 0xAF]
WITH_NEW += [0xC0, 0xC1, *range(0xD0, 0xD4), 0xF6, 0xF7, 0xFE, 0xFF]
"""Opcodes of map 4 that may have their result in a register of its own."""
COMPARING = {0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85}
WITHOUT = [0x60, 0x61, 0x88, 0x8A, 0x8B, 0xF0, 0xF1, 0xF4, 0xF5, 0xF8, 0xF9, 0xFC]
NO_REX2 = {*range(0x40, 0x50), *range(0x70, 0x80), *range(0xA0, 0xB0), *range(0xE0, 0xF0)}
NO_REX2_OF_SECOND = {*range(0x30, 0x40), *range(0x80, 0x90)}


def with_rex2(rng: random.Random) -> bytes:
    """An opcode of the first two maps behind REX2."""
    bits = rng.randrange(256)
    opcode = rng.choice([*{*range(256)} - (NO_REX2_OF_SECOND if bits & 0x80 else NO_REX2)])
    return rng.choice([b"", b"", b"\x66"]) + bytes([0xD5, bits, opcode]) + rng.randbytes(12)


def of_fourth_map(rng: random.Random) -> bytes:
    """An opcode of map 4, with a result in a register of its own or not; half of them have 8(%rsp) as operand."""
    is_new = rng.randrange(4) > 0
    opcode = rng.choice(WITH_NEW) if is_new else rng.choice(WITHOUT)
    prefix = rng.choice([0, 1, 3]) if opcode & 0xF0 == 0x40 else rng.choice([0, 1])
    if opcode in COMPARING and opcode % 2 == 0:
        prefix = 0  # of bytes
    form = rng.choice([24, 28, 16, 8] if is_new else [8])
    other = rng.randrange(32)
    is_wide = opcode in {0x69, 0x6B} or prefix == 3  # the bit of a new register says that zeros go above the result
    if (form < 16 or is_wide) and opcode not in COMPARING:
        other, form = 15, form | 8  # vvvv names no register
    first = rng.randrange(32) << 3 | 4
    second = rng.randrange(2) << 7 | other << 3 | rng.choice([4, 4, 0]) | prefix
    rest = rng.randbytes(10)
    if opcode in {0xF6, 0xF7} and form >= 16:  # not and neg
        rest = bytes([rest[0] & ~0x38 | rng.choice([0x10, 0x18])]) + rest[1:]
    if rng.randrange(2):
        first, second, rest = first & ~8 | 0x60, second | 4, bytes([rest[0] & 0x38 | 0x44, 0x24, 8]) + rest[3:]
    return bytes([0x62, first, second, form, opcode]) + rest


def of_vectors(rng: random.Random) -> bytes:
    """An instruction of VEX on general registers or masks, which EVEX repeats."""
    map_, opcodes = rng.choice([(1, (0x90, 0x91, 0x92, 0x93)), (2, (0xF2, 0xF3, 0xF5, 0xF6, 0xF7, 0xE3)), (3, (0xF0,))])
    first, second = rng.randrange(32) << 3 | map_, rng.randrange(256)
    return bytes([0x62, first, second, rng.choice([0, 8]), rng.choice(opcodes)]) + rng.randbytes(10)


def objdump_of(codes: list[bytes], folder: Path) -> list[tuple[int, str]]:
    """The length and text that objdump gives to each instruction."""
    (folder / "code").write_bytes(b"".join(code[:15].ljust(32, b"\x90") for code in codes))
    options = ("-D", "-b", "binary", "-mi386:x86-64", "-w")
    found: dict[int, tuple[int, str]] = {}
    for line in run("objdump-new", *options, folder / "code", check=True).stdout.decode().splitlines():
        if parts := re.fullmatch(r" *([0-9a-f]+):\t([0-9a-f ]+)\t(.*)", line):
            found[int(parts[1], 16)] = len(parts[2].split()), parts[3].strip()
    return [found.get(32 * number, (0, "(bad)")) for number in range(len(codes))]


NAMES = {"ax": AX, "dx": DX, "cx": CX, "bx": BX, "si": 4, "di": 5, "bp": FP, "sp": SP}
REGISTER = re.compile(r"%(?:r(\d+)[bwd]?|[re]?(ax|bx|cx|dx|si|di|bp|sp)|([abcd])[lh]|(si|di|bp|sp)l)")
REFUSED = re.compile(r"\(bad\)|^\.byte|\{%k|^(?:data16 )*rex2$|^data16$|udb|p(ush|op)2p? .*\(|\{rex2[ \dxa-f]*\} v")
"""What is no instruction, whatever objdump makes of it: prefixes alone, vectors behind REX2, moves with a mask."""
WRITES_LAST = re.compile(
    r"(?:\{nf\} |\{evex\} |\{rex2[ \dxa-f]*\} |data16 )*(?:add|adc|sub|sbb|and|or|xor|imul|cf?cmov|cmov|shld|shrd"
    r"|sh[lr]x?|sarx?|ro[lr]x?|rc[lr]|neg|not|popcnt|[tl]zcnt|movbe|movrs|lea|movz|movs[bwl]|adcx|adox|andn|bls|bzhi|pdep|pext"
    r"|bextr|crc32|set)[a-z]*"
)


def register_of(operand: str) -> int | None:
    """The number of a register; none of memory."""
    if not (parts := REGISTER.fullmatch(operand)):
        return None
    if parts[1]:
        number = int(parts[1])
        return number if number < 16 else number - 16 + BEHIND
    return NAMES[parts[2] or parts[4] or parts[3] + "x"]


def width_of(mnemonic: str, text: str) -> int:
    """Bytes of an operand, by the register beside it, else by the last letter of the mnemonic."""
    if mnemonic.rsplit(maxsplit=1)[-1].startswith("set"):
        return 1
    if re.search(r"\b(s[ah][lr]|r[oc][lr]|sh[lr]d)", mnemonic):
        text = text.replace("%cl,", "")
    for name in re.findall(r"%(\w+)", text.replace("(%rsp)", "")):
        if re.fullmatch(r"[abcd][lh]|(si|di|bp|sp)l|r\d+b", name):
            return 1
        return 2 if re.fullmatch(r"[abcd]x|si|di|bp|sp|r\d+w", name) else 4 if re.fullmatch(r"e..|r\d+d", name) else 8
    assert mnemonic[-1] in "bwlq", text
    return {"b": 1, "w": 2, "l": 4, "q": 8}[mnemonic[-1]]


def last_operand(text: str) -> tuple[str, str]:
    """The mnemonic with what stands before it, and the operand that AT&T's syntax has last."""
    parts = re.fullmatch(r"((?:\{[\w ]+\} |[a-z\d]+ )*?\w+) *(?:\{dfv=[^}]*\} *)?(.*)", text.partition("#")[0].strip())
    assert parts, text
    return parts[1], re.split(r",(?![^(]*\))", parts[2])[-1]


@pytest.mark.parametrize("make", [with_rex2, of_fourth_map, of_vectors])
def test_lengths_and_written_registers_are_those_of_objdump(
    make: Callable[[random.Random], bytes], tmp_path: Path
) -> None:
    rng = random.Random(87)
    codes = [make(rng) for _ in range(rounds(20_000, 2_000))]
    wrong, lengths, written, stored = [], 0, 0, 0
    for code, (length, text) in zip(codes, objdump_of(codes, tmp_path), strict=True):
        if REFUSED.search(text):
            continue
        row = row_of(code)
        lengths += 1
        if row["length"] != length or row["flow"] == Flow.BAD:
            wrong.append((code[:length].hex(), text, row))
        mnemonic, last = last_operand(text)
        if "imul" in mnemonic and "," not in text:
            continue  # of rax and rdx
        if not WRITES_LAST.fullmatch(mnemonic):
            continue
        if (register := register_of(last)) is not None:
            written += 1
            if row["changes"] != 1 << register:
                wrong.append((code[:length].hex(), text, row))
        elif last == "0x8(%rsp)":
            stored += 1
            place = [row[name] for name in ("effect", "base", "index", "offset", "width")]
            if place != [Effect.STORE, SP, NONE, 8, width_of(mnemonic, text)] and "$0x0," not in text:
                wrong.append((code[:length].hex(), text, row))
    assert wrong == []
    assert lengths > rounds(2_000, 200)
    assert written > rounds(300, 30)
    assert stored > rounds(300, 30) or make is not of_fourth_map


def test_what_objdump_refuses_is_refused(tmp_path: Path) -> None:
    rng = random.Random(88)
    codes = [bytes([0x62, first << 3 | 4, *rng.randbytes(13)]) for first in range(32) for _ in range(rounds(500, 50))]
    found = objdump_of(codes, tmp_path)
    accepted = {
        code.hex(): text
        for code, (_, text) in zip(codes, found, strict=True)
        if "(bad)" in text and "{bad-nf}" not in text and row_of(code)["flow"] != Flow.BAD
    }
    assert accepted == {}
