"""The decoder of s390x: what it says of known words, and of real programs what objdump's text and qemu say."""

from __future__ import annotations

import random
import re
import struct
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import s390xtext
from effort import rounds
from peers import root, run
from s390xrunner import differences, runner
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import NONE, Condition, Effect, Flow
from walkback.code.machines import S390X

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
ADDED = {"effect": Effect.LOAD_TABLE, "first": 1, "second": 1, "base": 3, "index": 2, "width": 4, "signed": 1}

AT = 1 << 36
"""So far up that all distances lead to addresses above 0."""
DEFAULTS = dict.fromkeys(COLUMNS[:-1], 0) | {"first": NONE, "second": NONE, "base": NONE, "index": NONE}
DEFAULTS |= {"count": 1, "scale": 1, "width": 8}
R14 = 1 << 14
BELOW_40 = {"flow": Flow.BRANCH, "target": AT + 16, "effect": Effect.COMPARE_CONSTANT, "first": 1, "offset": 40}
CASES: dict[str, dict[str, int]] = {
    "ebcff0600024": {"effect": Effect.STORE, "first": 12, "count": 4, "base": 15, "offset": 96},  # stmg %r12,%r15
    "ebeff0700024": {"effect": Effect.STORE, "first": 14, "second": 15, "count": 2, "base": 15, "offset": 112},
    "eb6ff1500004": {"effect": Effect.LOAD, "first": 6, "count": 10, "base": 15, "offset": 336},  # lmg %r6,%r15
    "ebe1f0000004": {"effect": Effect.LOAD, "first": 14, "count": 4, "base": 15},  # from %r14 over %r15 to %r1
    "eb660000ff24": {"effect": Effect.STORE, "first": 6, "index": 0, "offset": -4096},  # stmg %r6,%r6,-4096
    "e3f0f0b0ff71": {"effect": Effect.ADD, "first": 15, "base": 15, "offset": -3920},  # lay
    "4110f0a0": {"effect": Effect.ADD, "first": 1, "base": 15, "offset": 160},  # la
    "4112f0a0": {"effect": Effect.ADD_REGISTERS, "first": 1, "base": 15, "index": 2, "offset": 160},
    "411200a0": {"effect": Effect.ADD, "first": 1, "base": 2, "offset": 160},  # la %r1,160(%r2,0)
    "41100fff": {"effect": Effect.CONSTANT, "first": 1, "offset": 0xFFF},
    "a7fbff60": {"effect": Effect.ADD, "first": 15, "base": 15, "offset": -160},  # aghi
    "c2f8fffe0000": {"effect": Effect.ADD, "first": 15, "base": 15, "offset": -0x20000},  # agfi
    "c2f480000000": {"effect": Effect.ADD, "first": 15, "base": 15, "offset": -0x80000000},  # slgfi
    "ec1fff6000d9": {"effect": Effect.ADD, "first": 1, "base": 15, "offset": -160},  # aghik
    "b9090012": {"effect": Effect.SUBTRACT, "first": 1, "base": 1, "index": 2},  # sgr
    "b9190012": {"effect": Effect.SUBTRACT, "first": 1, "base": 1},  # sgfr
    "b9e9f012": {"effect": Effect.SUBTRACT, "first": 1, "base": 2, "index": 15},  # sgrk %r1,%r2,%r15
    "a5f7fff8": {"effect": Effect.ALIGN, "first": 15, "base": 15, "offset": -8},  # nill
    "c0fbfffff000": {"effect": Effect.ALIGN, "first": 15, "base": 15, "offset": -4096},  # nilf
    "a517fff9": {"clobbers": 2},  # nill that is no alignment
    "ec1f00bb0055": {"effect": Effect.ALIGN, "first": 1, "base": 15, "offset": -16},  # risbg %r1,%r15,0,187,0
    "ec1220bf0055": {"effect": Effect.EXTEND, "first": 1, "second": 2},
    "ec1281bf0056": {},  # rosbg that only tests
    "eb120003000d": {"effect": Effect.ADD_REGISTERS, "first": 1, "index": 2, "scale": 8},  # sllg %r1,%r2,3
    "b3c100cb": {"effect": Effect.COPY, "first": 26, "second": 11},  # ldgr %f12,%r11
    "b3cd00b8": {"effect": Effect.COPY, "first": 11, "second": 24},  # lgdr %r11,%f8
    "e7b800003021": {"effect": Effect.COPY, "first": 11, "second": 24},  # vlgvg %r11,%v8,0
    "e7b800013021": {"effect": Effect.NOTHING, "clobbers": 1 << 11},  # vlgvg %r11,%v8,1
    "e7b800003421": {"effect": Effect.NOTHING, "clobbers": 1 << 11},  # vlgvg %r11,%v24,0
    "e78b00003022": {"effect": Effect.COPY, "first": 24, "second": 11},  # vlvgg %v8,%r11,0
    "e78b00013022": {"effect": Effect.NOTHING, "clobbers": 0},  # vlvgg %v8,%r11,1
    "6080f0a0": {"effect": Effect.STORE, "first": 24, "base": 15, "offset": 160},  # std %f8
    "68f0f0a8": {"effect": Effect.LOAD, "first": 31, "base": 15, "offset": 168},  # ld %f15
    "e3123000001c": {"clobbers": 2},  # msgf with an index
    "e31230000014": {"effect": Effect.LOAD_TABLE, "first": 1, "base": 3, "index": 2, "width": 4, "signed": 1},  # lgf
    "e31230000018": ADDED,  # agf
    "e31230080004": {"effect": Effect.LOAD_TABLE, "first": 1, "base": 3, "index": 2, "offset": 8},  # lg
    "c41800000010": {"effect": Effect.LOAD_TABLE, "first": 1, "offset": AT + 32},  # lgrl
    "c01000000010": {"effect": Effect.CONSTANT, "first": 1, "offset": AT + 32},  # larl
    "b9820011": {"effect": Effect.CONSTANT, "first": 1},  # xgr
    "d707f0a0f0a0": {"effect": Effect.STORE, "width": 8, "base": 15, "offset": 160},  # xc
    "b2b0f0a0": {"effect": Effect.STORE, "width": 1, "base": 15, "offset": 160, "clobbers": 1},  # stfle, 1 or more
    "e548f0a80007": {"effect": Effect.STORE, "width": 8, "base": 15, "offset": 168},  # mvghi
    "9023f0a0": {"effect": Effect.STORE, "width": 8, "base": 15, "offset": 160},  # stm
    "e78ff0a00c3e": {"effect": Effect.STORE, "width": 128, "base": 15, "offset": 160},  # vstm %v24,%v31
    "e78bf0a00036": {"clobbers": 1 << 24 | 1 << 25 | 1 << 28 | 1 << 29},  # vlm %v8,%v11
    "e78000000806": {},  # vl %v24
    "e78010001002": {},  # vleg %v8, of which the other half is %f8
    "eb12300000f8": {"effect": Effect.STORE, "width": 4, "base": 3, "clobbers": 2},  # laa
    "07fe": {"flow": Flow.RETURN, "first": 14},
    "07f1": {"flow": Flow.JUMP_INDIRECT, "first": 1},
    "078e": {"flow": Flow.BRANCH, "condition": Condition.EQUAL, "target": AT + 2},  # ber %r14
    "0707": {},  # nopr
    "07f0": {},
    "47f0e000": {"flow": Flow.RETURN, "first": 14},  # b 0(%r14)
    "0de1": {"flow": Flow.CALL_INDIRECT, "first": 1, "clobbers": R14},
    "0dd0": {"effect": Effect.CONSTANT, "first": 13, "offset": AT + 2},  # basr %r13,0
    "c0e500000010": {"flow": Flow.CALL, "target": AT + 32, "clobbers": R14},
    "a7f4fffe": {"flow": Flow.JUMP, "target": AT - 4},
    "a7f40001": {"flow": Flow.TRAP},
    "a7840001": {},  # a conditional trap
    "c084ffffffff": {"flow": Flow.BRANCH, "condition": Condition.EQUAL, "target": AT - 2},
    "a7170008": {"flow": Flow.BRANCH, "target": AT + 16, "clobbers": 2},  # brctg
    "ec140008287d": BELOW_40 | {"condition": Condition.BELOW},  # clgijl %r1,40
    "ec140008287c": BELOW_40 | {"signed": 1},  # cgijl, which compares signed numbers
    "ec1200088064": {  # cgrje %r1,%r2
        "flow": Flow.BRANCH,
        "target": AT + 16,
        "condition": Condition.EQUAL,
        "effect": Effect.COMPARE,
        "first": 1,
        "second": 2,
        "signed": 1,
    },
    "ec1e0008287d": {"flow": Flow.JUMP, "target": AT + 16},
    "b9020022": {"effect": Effect.COMPARE_CONSTANT, "first": 2, "signed": 1},  # ltgr
    "c22e00000007": {"effect": Effect.COMPARE_CONSTANT, "first": 2, "offset": 7},  # clgfi
    "c22fffffffff": {"effect": Effect.COMPARE_CONSTANT, "first": 2, "offset": 0xFFFFFFFF, "width": 4},  # clfi
    "0001": {"flow": Flow.TRAP},
    "0a0b": {"flow": Flow.SYSTEM, "clobbers": 4},  # svc
}


def rows(words: list[bytes], address: int = AT) -> list[dict[str, int]]:
    """What the decoder says of words that stand one behind the other."""
    found = listing(S390X, b"".join(words), address).tolist()
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


@pytest.mark.kernel
@pytest.mark.parametrize("word", CASES)
def test_known_words(word: str) -> None:
    expected = DEFAULTS | {"length": len(word) // 2} | CASES[word]
    [row] = rows([bytes.fromhex(word)])
    assert row == row | expected


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("executed", "effect"),
    [
        ("d700f0a0f0a0", {"effect": Effect.STORE, "base": 15, "offset": 160, "width": 256}),  # xc
        ("d50010002000", {}),  # clc
        ("dd0010002000", {"clobbers": 6}),  # trt
    ],
)
def test_exrl_does_what_it_executes(executed: str, effect: dict[str, int]) -> None:
    words = [bytes.fromhex(word) for word in ("c61000000003", executed)]
    row = rows(words)[0]
    assert row == row | DEFAULTS | {"length": 6, "target": AT + 6} | effect
    row = rows(words[:1])[0]
    assert row == row | DEFAULTS | {"length": 6, "target": AT + 6}


@pytest.mark.kernel
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
def test_what_is_cut_off_is_no_instruction(cut: int) -> None:
    found = rows([bytes.fromhex("ebcff0600024")[:cut]])[0]
    assert (found["flow"], found["length"]) == (Flow.BAD, 2)


@pytest.mark.kernel
def test_random_bytes_have_lengths_and_no_registers_that_there_are_not() -> None:
    rng = random.Random(390)
    for _ in range(rounds(200, 20)):
        found = rows([rng.randbytes(rng.randrange(600))], rng.choice([AT, 1 << 48]))
        assert all(row["length"] in {2, 4, 6} for row in found)
        assert all(NONE <= row[name] < 32 for row in found for name in ("first", "second", "base", "index"))
        assert all(0 <= row["clobbers"] < 1 << 32 for row in found)


def sections(path: Path) -> list[bytes]:
    """The executable sections of an ELF file of the machine, none of any other file."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x02" or data[18:20] != b"\0\x16":
        return []
    (start,), size, count = struct.unpack(">Q", data[40:48]), *struct.unpack(">HH", data[58:62])
    found = []
    for at in range(start, start + size * count, size):
        _, kind, flags, _, offset, length = struct.unpack(">IIQQQQ", data[at : at + 40])
        if kind == 1 and flags & 4:
            found.append(data[offset : offset + length])
    return found


def programs() -> list[Path]:
    folders = [root("s390x"), root("samples-s390x"), root("bookworm") / "usr" / "s390x-linux-gnu"]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


def words_of(code: bytes) -> npt.NDArray[np.uint64]:
    """The instructions of a section, each as 48 bits and once; of those that differ only in a distance, a few."""
    lengths = listing(S390X, code, AT)[:, 0]
    starts = np.cumsum(lengths) - lengths
    padded = np.frombuffer(code + bytes(6), np.uint8)
    words = np.zeros(len(starts), np.uint64)
    for at in range(6):
        words |= np.where(lengths > at, padded[starts + at], 0).astype(np.uint64) << np.uint64(40 - 8 * at)
    first, half = words >> np.uint64(40), (words >> np.uint64(32)) & np.uint64(15)
    far = (first == 0xC4) | (first == 0xC6) | ((first == 0xC0) & ((half == 0) | (half == 4) | (half == 5)))
    keys = np.where(far, words & np.uint64(0xFFFF00000007), words)
    return words[np.unique(keys, return_index=True)[1]]


class Line(NamedTuple):
    """An instruction of a real program."""

    word: bytes
    address: int
    text: s390xtext.Text
    row: dict[str, int]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Line]:
    """The instructions of all programs, each once, with objdump's text; they stand 8 bytes apart from `AT` on."""
    numbers = np.unique(np.concatenate([words_of(code) for path in programs() for code in sections(path)]))
    sizes = np.array([2, 4, 4, 6])[(numbers >> np.uint64(46)).astype(int)]
    slots = (numbers << np.uint64(16)).astype(">u8").view(np.uint8).reshape(-1, 8)
    slots[np.arange(8) >= sizes[:, None]] = 7  # nopr %r7
    path = tmp_path_factory.mktemp("s390x") / "words"
    path.write_bytes(slots.tobytes())
    texts = texts_of(path)
    found = listing(S390X, slots.tobytes(), AT)
    found = found[(np.cumsum(found[:, 0]) - found[:, 0]) % 8 == 0]
    assert len(found) == len(numbers)
    assert (found[:, 0] == sizes).all()
    every = []
    for number, row in enumerate(found.tolist()):
        code, _, text = texts.get(AT + 8 * number, "").partition("\t")
        if text and text[0] != ".":  # data between the code, and what objdump loses behind it
            assert len(code.split()) == row[0], text
            word = bytes(slots[number, : row[0]])
            every.append(Line(word, AT + 8 * number, s390xtext.parsed(text), dict(zip(COLUMNS, row, strict=True))))
    return every


def texts_of(path: Path) -> dict[int, str]:
    """What objdump says of the instruction at each multiple of 8: its bytes, a tab and the text."""
    options = ("-D", "-z", "-w", "-b", "binary", "-m", "s390:64-bit", f"--adjust-vma={AT}")
    found: dict[int, str] = {}
    for line in run("s390x-objdump-new", *options, path, check=True).stdout.decode().splitlines():
        where, _, rest = line.partition(":\t")
        if rest and where[-1] in "08":
            found[int(where, 16)] = rest
    return found


UNLIKE = {"exrl", "ex", "diag", "plo"}
"""What exrl executes does not stand where it points here; the others do what a register says."""


@pytest.mark.peers
def test_real_programs_are_decoded_as_objdump_says(lines: list[Line]) -> None:
    counts = Counter[str]()
    wrong: dict[str, str] = {}
    for line in lines:
        name = line.text.name
        if name in UNLIKE:
            continue
        written = sum(1 << one for one in s390xtext.writes(line.text))
        if line.row["changes"] != written:
            wrong[line.word.hex()] = f"{line.text}: writes {written:x}, not {line.row['changes']:x}"
        flow = s390xtext.flow(line.text, line.address)
        if flow is not None:
            counts["flows"] += flow[0] != "NEXT"
            row = line.row
            if flow != (Flow(row["flow"]).name, Condition(row["condition"]).name, row["target"]):
                wrong[line.word.hex()] = f"{line.text}: {flow}, not {row}"
        expected = s390xtext.effect(line.text)
        if expected is not None:
            counts["effects"] += 1
            named = line.row | {"effect": Effect(line.row["effect"]).name}
            if any(named[field] != value for field, value in (MEMORY | expected).items()):
                wrong[line.word.hex()] = f"{line.text}: {expected}, not {named}"
    assert not wrong, (len(wrong), dict(list(wrong.items())[:10]))
    assert len(lines) > 300_000
    assert counts["flows"] > 20_000
    assert counts["effects"] > 100_000


MEMORY = {"base": NONE, "index": NONE, "scale": 1, "offset": 0, "moved": 0}

NOT_RUN = re.compile(
    "[bj].*|c(g|l|lg)?[ri][jb].*|ex(rl)?|svc|t(begin|end|abort)|(s|l|st)ctl|lpsw|ssm|st[no]sm|sigp|mc|lra|spm"
)
"""Branches, and what a program must not do or qemu does in its own way."""
NEVER_CHANGES = re.compile(
    "lt[edx]br|l[pnc]?xbr|v.*|n[io][hl].|r[ox]sbg|clcl.*|clst|cu..|km.*|k[li]md|prno|fixbra?|loc.*|[asm][aes]?[de]b"
)
"""What may leave its register as it was for the numbers that the test has."""


@pytest.mark.peers
def test_qemu_changes_the_registers_that_the_decoder_says(lines: list[Line], tmp_path: Path) -> None:
    rng = random.Random(390)
    names: dict[str, list[Line]] = {}
    for line in lines:
        if not NOT_RUN.fullmatch(line.text.name):
            names.setdefault(line.text.name, []).append(line)
    chosen = [line for some in names.values() for line in rng.sample(some, min(len(some), 4))]
    words = [line.word if line.word[0] not in {0xC4, 0xC6} else line.word[:2] + NEAR for line in chosen]
    ran, wrong = differences(runner(tmp_path), words, [rows([word])[0] for word in words])
    assert len(ran) > 1000
    said = {word.hex(): line.text for word, line in zip(words, chosen, strict=True)}
    wrong = {
        word: what
        for word, what in wrong.items()
        if not (NEVER_CHANGES.fullmatch(said[word].name) and all(one.startswith("never") for one in what))
    }
    assert not wrong, {f"{word} {said[word]}": what for word, what in wrong.items()}


NEAR = (0x200).to_bytes(4, "big")
"""A distance that leads to memory that there is."""
