"""The decoder of AArch64: what it says of known words, and of real programs what objdump and capstone say."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import aarch64text
from effort import rounds
from peers import missing, root
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import NONE, Condition, Effect, Flow
from walkback.code.machines import AARCH64
from walkback.elf import layout
from walkback.elf.file import ElfFile, is_elf

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

AT = 0x10000
SP = 31
X30 = 1 << 30
D8 = 40
DEFAULTS = dict.fromkeys(COLUMNS[:-1], 0) | {"first": NONE, "second": NONE, "base": NONE, "index": NONE}
DEFAULTS |= {"length": 4, "count": 1, "scale": 1, "width": 8}
AT_SP = {"base": SP}
PUSHED = {"base": SP, "moved": -32, "before": 1}
LINKED = {"first": 29, "second": 30, "count": 2}
ADDED = {"effect": Effect.ADD_REGISTERS, "first": 0, "base": 1, "index": 2}
CASES: dict[int, dict[str, int]] = {
    0xA9BE7BFD: {"effect": Effect.STORE, **LINKED, **PUSHED},  # stp x29, x30, [sp, #-32]!
    0xA8C27BFD: {"effect": Effect.LOAD, **LINKED, **AT_SP, "moved": 32},  # ldp x29, x30, [sp], #32
    0xA9415013: {"effect": Effect.LOAD, "first": 19, "second": 20, "count": 2, "base": 0, "offset": 16},
    0xA9007FFF: {"effect": Effect.STORE, "count": 2, **AT_SP},  # stp xzr, xzr, [sp]
    0x6D0127E8: {"effect": Effect.STORE, "first": D8, "second": D8 + 1, "count": 2, **AT_SP, "offset": 16},
    0xAD0027E8: {"effect": Effect.STORE, "first": D8, "second": D8 + 1, "count": 2, "width": 16, **AT_SP},  # stp q8, q9
    0xAD4027E8: {"effect": Effect.LOAD, "first": D8, "second": D8 + 1, "count": 2, "width": 16, **AT_SP},  # ldp q8, q9
    0x29017BFD: {"effect": Effect.STORE, "width": 8, **AT_SP, "offset": 8},  # stp w29, w30, [sp, #8]
    0x69430440: {"effect": Effect.LOAD, "base": 2, "offset": 24, "clobbers": 3},  # ldpsw x0, x1, [x2, #24]
    0xF81F0FFE: {"effect": Effect.STORE, "first": 30, **AT_SP, "moved": -16, "before": 1},  # str x30, [sp, #-16]!
    0xF84107FE: {"effect": Effect.LOAD, "first": 30, **AT_SP, "moved": 16},  # ldr x30, [sp], #16
    0xF9000BF3: {"effect": Effect.STORE, "first": 19, **AT_SP, "offset": 16},  # str x19, [sp, #16]
    0xF85F8040: {"effect": Effect.LOAD, "first": 0, "base": 2, "offset": -8},  # ldur x0, [x2, #-8]
    0xB9000BE0: {"effect": Effect.STORE, **AT_SP, "offset": 8, "width": 4},  # str w0, [sp, #8]
    0xF8227820: {"effect": Effect.STORE, "first": 0, "base": 1, "index": 2, "scale": 8},  # str x0, [x1, x2, lsl #3]
    0xFD0007E8: {"effect": Effect.STORE, "first": D8, **AT_SP, "offset": 8},  # str d8, [sp, #8]
    0x9D400400: {"flow": Flow.BAD},
    0xF8627820: {"effect": Effect.LOAD_TABLE, "first": 0, "base": 1, "index": 2, "scale": 8},
    0xB8A25820: {"effect": Effect.LOAD_TABLE, "first": 0, "base": 1, "index": 2, "scale": 4, "width": 4, "signed": 1},
    0x38624820: {"effect": Effect.LOAD_TABLE, "first": 0, "base": 1, "index": 2, "width": 1},  # ldrb, uxtw
    0x78402420: {"effect": Effect.LOAD, "base": 1, "width": 2, "moved": 2, "clobbers": 1},  # ldrh w0, [x1], #2
    0x38C00020: {"effect": Effect.LOAD, "base": 1, "width": 1, "clobbers": 1},  # ldursb w0, [x1]
    0x58000041: {"effect": Effect.LOAD_TABLE, "first": 1, "offset": AT + 8},  # ldr x1, +8
    0xD10083FF: {"effect": Effect.ADD, "first": SP, "base": SP, "offset": -32},  # sub sp, sp, #32
    0x914007FF: {"effect": Effect.ADD, "first": SP, "base": SP, "offset": 4096},  # add sp, sp, #1, lsl #12
    0x910003FD: {"effect": Effect.COPY, "first": 29, "second": SP},  # mov x29, sp
    0xAA0103E0: {"effect": Effect.COPY, "first": 0, "second": 1},  # mov x0, x1
    0xAA1F03E0: {"effect": Effect.CONSTANT, "first": 0},  # mov x0, xzr
    0x2A0103E0: {"effect": Effect.EXTEND, "first": 0, "second": 1},  # mov w0, w1
    0x93407C20: {"effect": Effect.EXTEND, "first": 0, "second": 1, "signed": 1},  # sxtw x0, w1
    0xD37CEC20: {"effect": Effect.ADD_REGISTERS, "first": 0, "index": 1, "scale": 16},  # lsl x0, x1, #4
    0xD37BE820: {"clobbers": 1},  # lsl x0, x1, #5
    0x8B22C820: ADDED | {"scale": 4, "width": 4, "signed": 1},  # add x0, x1, w2, sxtw #2
    0x8B020C20: ADDED | {"scale": 8},  # add x0, x1, x2, lsl #3
    0xCB2C63FF: {"effect": Effect.SUBTRACT, "first": SP, "base": SP, "index": 12},  # sub sp, sp, x12
    0xCB0103E0: {"clobbers": 1},  # neg x0, x1
    0x927BE93F: {"effect": Effect.ALIGN, "first": SP, "base": 9, "offset": -32},  # and sp, x9, #-32
    0x92401C20: {"clobbers": 1},  # and x0, x1, #255
    0xD2800C00: {"effect": Effect.CONSTANT, "first": 0, "offset": 96},  # mov x0, #96
    0x92800000: {"effect": Effect.CONSTANT, "first": 0, "offset": -1},  # mov x0, #-1
    0x12800000: {"effect": Effect.CONSTANT, "first": 0, "offset": 0xFFFFFFFF},  # mov w0, #-1
    0xB27C33EC: {"effect": Effect.CONSTANT, "first": 12, "offset": 0x1FFF0},  # mov x12, #0x1fff0
    0xB200F3E0: {"effect": Effect.CONSTANT, "first": 0, "offset": 0x5555555555555555},
    0xF2A00020: {"clobbers": 1},  # movk
    0x10000060: {"effect": Effect.CONSTANT, "first": 0, "offset": AT + 12},  # adr x0, +12
    0xF0FFFFE0: {"effect": Effect.CONSTANT, "first": 0, "offset": AT - 4096},  # adrp x0, -4096
    0xF100041F: {"effect": Effect.COMPARE_CONSTANT, "first": 0, "offset": 1},  # cmp x0, #1
    0x7100281F: {"effect": Effect.COMPARE_CONSTANT, "first": 0, "offset": 10, "width": 4},  # cmp w0, #10
    0xEB01001F: {"effect": Effect.COMPARE, "first": 0, "second": 1},  # cmp x0, x1
    0xEB2063FF: {"effect": Effect.COMPARE, "first": SP, "second": 0},  # cmp sp, x0
    0xF1000400: {"effect": Effect.ADD, "first": 0, "base": 0, "offset": -1},  # subs x0, x0, #1
    0x54000048: {"flow": Flow.BRANCH, "target": AT + 8, "condition": Condition.ABOVE},  # b.hi
    0x5400004B: {"flow": Flow.BRANCH, "target": AT + 8},  # b.lt
    0xB4FFFFE0: {"flow": Flow.BRANCH, "target": AT - 4},  # cbz x0
    0x36000040: {"flow": Flow.BRANCH, "target": AT + 8},  # tbz w0, #0
    0x17FFFFFF: {"flow": Flow.JUMP, "target": AT - 4},  # b
    0x94000002: {"flow": Flow.CALL, "target": AT + 8, "clobbers": X30},  # bl
    0xD63F0020: {"flow": Flow.CALL_INDIRECT, "first": 1, "clobbers": X30},  # blr x1
    0xD73F0822: {"flow": Flow.CALL_INDIRECT, "first": 1, "clobbers": X30},  # blraa x1, x2
    0xD61F0220: {"flow": Flow.JUMP_INDIRECT, "first": 17},  # br x17
    0xD65F03C0: {"flow": Flow.RETURN, "first": 30},  # ret
    0xD65F0BFF: {"flow": Flow.RETURN, "effect": Effect.AUTHENTICATE, "first": 30, "base": SP},  # retaa
    0xD69F03E0: {"flow": Flow.RETURN},  # eret
    0xD4200000: {"flow": Flow.TRAP},  # brk
    0x00000000: {"flow": Flow.TRAP},  # udf #0
    0xD4000001: {"flow": Flow.SYSTEM, "clobbers": 1},  # svc
    0xD65F0FFF: {"flow": Flow.RETURN, "effect": Effect.AUTHENTICATE, "first": 30, "base": SP, "signed": 1},  # retab
    0xD503231F: {"effect": Effect.SIGN, "first": 30},  # paciaz
    0xD503233F: {"effect": Effect.SIGN, "first": 30, "base": SP},  # paciasp
    0xD503237F: {"effect": Effect.SIGN, "first": 30, "base": SP, "signed": 1},  # pacibsp
    0xD50323BF: {"effect": Effect.AUTHENTICATE, "first": 30, "base": SP},  # autiasp
    0xD50323FF: {"effect": Effect.AUTHENTICATE, "first": 30, "base": SP, "signed": 1},  # autibsp
    0xDAC103FE: {"effect": Effect.SIGN, "first": 30, "base": SP},  # pacia x30, sp
    0xDAC1053E: {"effect": Effect.SIGN, "first": 30, "base": 9, "signed": 1},  # pacib x30, x9
    0xDAC13BFE: {"clobbers": X30},  # autdza x30
    0xDAC10020: {"clobbers": 1},  # pacia x0, x1
    0xD50320FF: {"clobbers": X30},  # xpaclri
    0xD503245F: {},  # bti c
    0xD53BD040: {"clobbers": 1},  # mrs x0, tpidr_el0
    0xD503437F: {"clobbers": -1 << 32},  # smstart sm
    0xD503477F: {"clobbers": -1 << 32},  # smstart
    0xD503427F: {},  # smstop sm
    0xD50B7420: {"effect": Effect.STORE, "index": 0},  # dc zva, x0
    0x9E660100: {"clobbers": 1},  # fmov x0, d8
    0x1E604108: {"clobbers": 1 << D8},  # fmov d8, d8
    0x1E602100: {},  # fcmp d8, d0
    0x4E083D00: {"clobbers": 1},  # mov x0, v8.d[0]
    0x4CDF2000: {"effect": Effect.LOAD, "base": 0, "width": 64, "moved": 64, "clobbers": 15 << 32},
    0x0DC18108: {"effect": Effect.LOAD, "base": 8, "width": 4, "clobbers": 1 << 8 | 1 << D8},  # ld1 {v8.s}[0], [x8], x1
    0x4C00701F: {"effect": Effect.STORE, "base": 0, "width": 16},  # st1 {v31.16b}, [x0]
    0xF8200041: {"effect": Effect.STORE, "base": 2, "clobbers": 2},  # ldadd x0, x1, [x2]
    0xC8017C40: {"effect": Effect.STORE, "base": 2, "clobbers": 2},  # stxr w1, x0, [x2]
    0x48207C82: {"effect": Effect.STORE, "base": 4, "width": 16, "clobbers": 3},  # casp x0, x1, x2, x3, [x4]
    0x19010440: {"effect": Effect.STORE, "base": 0, "index": 2, "width": 1, "clobbers": 7},  # cpyfp [x0]!, [x1]!, x2!
    0xD9201420: {"effect": Effect.ADD, "first": 1, "base": 1, "offset": 16},  # stg x0, [x1], #16
    0x04BF5020: {"clobbers": 1},  # rdvl x0, #1
    0x043F57FF: {"clobbers": 1 << SP},  # addvl sp, sp, #-1
    0xE58043E8: {"effect": Effect.STORE, "first": D8, "base": SP, "width": 16},  # str z8, [sp]
    0x858043E8: {"effect": Effect.LOAD, "first": D8, "base": SP, "width": 16},  # ldr z8, [sp]
    0xE58047E8: {"effect": Effect.STORE, "first": D8, "base": SP, "index": SP},  # str z8, [sp, #1, mul vl]
    0x858047E8: {"effect": Effect.LOAD, "first": D8, "base": SP, "index": SP},  # ldr z8, [sp, #1, mul vl]
    0xE58003E0: {"effect": Effect.STORE, "base": SP, "width": 2},  # str p0, [sp]
    0xE5E0E3E0: {"effect": Effect.STORE, "base": SP, "width": 2},  # st1d {z0.d}, p0, [sp]
    0x4E181C09: {},  # mov v9.d[1], x0
    0x4E081C09: {"clobbers": 1 << 41},  # mov v9.d[0], x0
    0xA4E0E01E: {"clobbers": (3 << 32 | 3 << 62) - (1 << 64)},  # ld4h {z30.h - z1.h}
    0xFFFFFFFF: {"flow": Flow.BAD},
}


OF_ANY_SIZE = re.compile("ldiapp|stilp|setgo")
HINT = re.compile(r"mrs x\w+, s0_\d_c2_")
NO_RESULT = re.compile("cmp|cmn|tst|svc")
"""Capstone says that these write their first register, and svc the link register."""
UNFINISHED = re.compile(
    "adds|umov|addvl|(cnt|inc)[bhwd]|(ld(add|clr|eor|set)|swp|cas).*|(cpy|set).*|irg|gmi|ldg|ldra[ab]|hint"
)
"""Capstone leaves registers out that these write."""
FLOWS_OF_GROUPS = {1: range(1, 7), 2: (Flow.CALL, Flow.CALL_INDIRECT), 3: (Flow.RETURN,), 7: range(1, 5)}
"""The flows that there may be, by capstone's groups: jumps, calls, returns and relative branches."""


def decoded(words: npt.NDArray[np.uint32], address: int = AT) -> list[dict[str, int]]:
    rows = listing(AARCH64, words.astype("<u4").tobytes(), address)
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows.tolist()]


def written(row: dict[str, int]) -> set[int]:
    """The registers that change, by what the decoder says."""
    changed = {at for at in range(64) if row["changes"] >> at & 1}
    return changed | ({row["base"]} if row["moved"] else set())


@pytest.mark.kernel
@pytest.mark.parametrize("word", CASES, ids=hex)
def test_what_is_known_of_one_instruction(word: int) -> None:
    [row] = decoded(np.array([word], np.uint32))
    assert row == row | DEFAULTS | CASES[word]


@pytest.mark.kernel
def test_code_that_ends_within_an_instruction() -> None:
    for size in (1, 2, 3):
        (values,) = listing(AARCH64, bytes(size), AT).tolist()
        row = dict(zip(COLUMNS, values, strict=True))
        assert row == row | DEFAULTS | {"flow": Flow.BAD}


@pytest.mark.kernel
def test_any_bytes() -> None:
    data = random.Random(1).randbytes(4 * rounds(1 << 14, 1 << 10))
    rows = listing(AARCH64, data, (1 << 64) - 4)
    assert len(rows) * 4 == len(data)
    assert (rows[:, 0] == 4).all()
    assert (listing(AARCH64, data + b"\1", (1 << 64) - 4)[:-1] == rows).all()


@pytest.fixture(scope="module")
def program_words() -> npt.NDArray[np.uint32]:
    """Each word of the code of all programs of this machine, once."""
    found = []
    for folder in ("arm64", "samples-arm64"):
        for path in sorted(root(folder).rglob("*")):
            if path.is_file() and not path.is_symlink() and is_elf(path.read_bytes()[:4]):
                with ElfFile(path) as elf:
                    for at in np.flatnonzero(elf.sections["flags"] & layout.SHF_EXECINSTR):
                        if elf.sections["type"][at] == layout.SHT_PROGBITS:
                            data = elf.section_data(int(at))
                            found.append(np.unique(np.frombuffer(data[: len(data) // 4 * 4], np.uint32)))
    if not found:
        missing("programs of AArch64")
    return np.unique(np.concatenate(found))


def random_words() -> npt.NDArray[np.uint32]:
    """Words from everywhere, as many of each of the groups that the bits 28 to 25 make."""
    count = rounds(1 << 16, 1 << 12)
    words = np.random.default_rng(5).integers(0, 1 << 32, count, np.uint32)
    groups = (np.arange(count, dtype=np.uint32) % 16 << 25).astype(np.uint32)
    return (words & np.uint32(0xFFFFFFFF ^ 15 << 25) | groups).astype(np.uint32)


def is_exception(text: str, row: dict[str, int]) -> bool:
    """Whether objdump is wrong: these need certain sizes, and these hints, yet to be given out, read no register."""
    return (row["flow"] == Flow.BAD and OF_ANY_SIZE.match(text) is not None) or HINT.match(text) is not None


def disagreements(words: npt.NDArray[np.uint32], folder: Path) -> tuple[Counter[str], list[str]]:
    """How much was compared, and what differs."""
    compared: Counter[str] = Counter()
    differing = []
    rows = decoded(words)
    for at, (text, row) in enumerate(zip(aarch64text.texts(words, AT, folder), rows, strict=True)):
        said = aarch64text.said(text)
        if said is None or is_exception(text, row):
            compared["unknown"] += 1
            continue
        compared["written"] += 1
        compared["fields"] += said.fields is not None
        row["target"] &= (1 << 64) - 1
        fields = {key: row[key] for key in said.fields or {}}
        if (said.flow, said.written, said.fields or {}) != (row["flow"], written(row), fields):
            differing.append(f"{words[at]:08x} {said} {row}")
    return compared, differing


@pytest.mark.peers
def test_programs_as_objdump_has_them(program_words: npt.NDArray[np.uint32], tmp_path: Path) -> None:
    compared, differing = disagreements(program_words[::2], tmp_path)
    assert differing == []
    assert compared["written"] > 250_000
    assert compared["fields"] > 150_000
    assert compared["unknown"] < 100


@pytest.mark.peers
def test_random_words_as_objdump_has_them(tmp_path: Path) -> None:
    compared, differing = disagreements(random_words(), tmp_path)
    assert differing == []
    assert compared["written"] > compared["unknown"] / 2


@pytest.mark.peers
def test_programs_as_capstone_has_them(program_words: npt.NDArray[np.uint32]) -> None:
    capstone = pytest.importorskip("capstone")
    machine = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    machine.detail = True
    words = program_words[1::6]
    differing = []
    compared = 0
    for word, row in zip(words.tolist(), decoded(words), strict=True):
        one = next(machine.disasm(word.to_bytes(4, "little"), AT), None)
        if one is None or NO_RESULT.fullmatch(one.mnemonic):
            continue
        compared += 1
        said = {machine.reg_name(register) for register in one.regs_access()[1]}
        theirs = {number for name in said if (number := general(name)) is not None}
        ours = {number for number in written(row) if number <= SP}
        if theirs != ours and not (theirs < ours and UNFINISHED.fullmatch(one.mnemonic)):
            differing.append(f"{word:08x} {one.mnemonic} {one.op_str} {theirs} {ours}")
        kinds = {group for group in one.groups if group in FLOWS_OF_GROUPS}
        if any(row["flow"] not in FLOWS_OF_GROUPS[group] for group in kinds):
            differing.append(f"{word:08x} {one.mnemonic} {one.op_str} {kinds} {row['flow']}")
    assert differing == []
    assert compared > 90_000


def general(name: str) -> int | None:
    """The number of a general register, by the name that capstone has for it."""
    names = {"sp": SP, "wsp": SP, "fp": 29, "lr": 30}
    if name[0] in "xw" and name[1:].isdigit():
        return int(name[1:])
    return names.get(name)
