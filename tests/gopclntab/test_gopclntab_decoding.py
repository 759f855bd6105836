"""Go's table of functions: every layout, both byte orders and sizes of pointers, and damage."""

from __future__ import annotations

import random
import struct
import time
from typing import TYPE_CHECKING

import pytest

import walkback
from effort import rounds
from gopclntab.gotables import TEXT, Function, encoded
from walkback.base.arch import AARCH64, AMD64, S390X
from walkback.base.errors import GoError
from walkback.gopclntab.crossings import Crossing, Way, crossings
from walkback.gopclntab.layout import Flag, Layout
from walkback.gopclntab.rules import to_table
from walkback.table.rule import PartKind

if TYPE_CHECKING:
    from walkback.base.arch import ByteOrder, Machine

FUNCTIONS = [
    Function("runtime.text", 16),
    Function("main.main", 48, [(0, 0), (4, 24), (40, 0)], 44),
    Function("main.(*T).huge", 160, [(0, 0), (8, 1_200_000_000), (152, 0)]),
    Function("runtime.goexit.abi0", 16, flag=Flag.TOP_FRAME | Flag.ASSEMBLY),
    Function("runtime.gogo", 32, [(0, 0), (8, 16)], flag=Flag.SP_WRITE | Flag.ASSEMBLY),
]


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("pointer", [4, 8])
@pytest.mark.parametrize("quantum", [1, 4])
def test_every_layout_says_the_same(layout: Layout, order: ByteOrder, pointer: int, quantum: int) -> None:
    table = walkback.gopclntab.decode(encoded(FUNCTIONS, layout, order=order, pointer=pointer, quantum=quantum))
    assert (table.layout, table.byteorder, table.pointer_size) == (layout, order, pointer)
    assert table.start.tolist() == [TEXT, TEXT + 16, TEXT + 64, TEXT + 224, TEXT + 240]
    assert table.size.tolist() == [16, 44, 160, 16, 32]
    assert [table.name(number) for number in range(len(table))] == [one.name for one in FUNCTIONS]
    rows = [slice(int(first), int(first + count)) for first, count in zip(table.first_row, table.rows, strict=True)]
    found = [list(zip(table.row_offset[one].tolist(), table.row_depth[one].tolist(), strict=True)) for one in rows]
    assert found == [one.depths for one in FUNCTIONS]
    assert table.flag.tolist() == [0 if layout is Layout.GO_1_2 else one.flag for one in FUNCTIONS]
    assert not table.fault.any()


RULES: dict[str, tuple[Machine, list[str]]] = {
    "AMD64": (AMD64, ["CFA = rsp+8, RA = *(CFA-8), FP unchanged", "CFA = rsp+32, RA = *(CFA-8), FP unchanged"]),
    "AArch64": (AARCH64, ["CFA = sp, RA unchanged, FP unchanged", "CFA = sp+24, RA = *(CFA-24), FP unchanged"]),
    "s390x": (S390X, ["CFA = r15+160, RA unchanged, FP undefined", "CFA = r15+184, RA = *(CFA-184), FP undefined"]),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("layout", Layout)
def test_depths_are_rules(name: str, layout: Layout) -> None:
    machine, (without, with_frame) = RULES[name]
    table = to_table(walkback.gopclntab.decode(encoded(FUNCTIONS, layout)), machine)
    texts = table.rule_texts()

    def rule(address: int) -> str | None:
        found = table.find(address)
        return None if found is None or found.row is None else texts[int(table.row_rule[found.row])]

    assert [rule(TEXT + 16 + offset) for offset in (0, 3, 4, 39, 40, 43)] == [*[without] * 2, *[with_frame] * 2] + [
        without
    ] * 2
    assert rule(TEXT + 16 + 44) is None
    assert rule(TEXT + 224) == "outermost frame"
    assert "another stack" in (rule(TEXT + 250) or "")


def test_a_stack_pointer_above_that_of_the_entry_leaves_the_return_address_in_its_register() -> None:
    """As where a goroutine goes on that was preempted."""
    table = to_table(walkback.gopclntab.decode(encoded([Function("f", 16, [(0, 0), (8, -16)])])), AARCH64)
    assert "CFA = sp-16, RA unchanged, FP unchanged" in table.rule_texts()


GROWING = [(0, 0), (4, 16), (8, 32), (12, 16), (16, 8), (20, 0)]
"""A function lowers the stack pointer once more in its frame, and takes the frame off in two steps."""
GROWN: dict[str, tuple[Machine, list[str]]] = {
    "AArch64": (
        AARCH64,
        [
            *("CFA = sp, RA unchanged, FP unchanged", "CFA = sp+16, RA = *(CFA-16), FP unchanged"),
            *("CFA = sp+32, RA = *(CFA-16), FP unchanged", "CFA = sp+16, RA = *(CFA-16), FP unchanged"),
            *("CFA = sp+8, RA unchanged, FP unchanged", "CFA = sp, RA unchanged, FP unchanged"),
        ],
    ),
    "s390x": (
        S390X,
        [
            *("CFA = r15+160, RA unchanged, FP undefined", "CFA = r15+176, RA = *(CFA-176), FP undefined"),
            *("CFA = r15+192, RA = *(CFA-176), FP undefined", "CFA = r15+176, RA = *(CFA-176), FP undefined"),
            *("CFA = r15+168, RA unchanged, FP undefined", "CFA = r15+160, RA unchanged, FP undefined"),
        ],
    ),
    "AMD64": (AMD64, [f"CFA = rsp+{8 + depth}, RA = *(CFA-8), FP unchanged" for _, depth in GROWING]),
}


@pytest.mark.parametrize("name", GROWN)
def test_the_return_address_stays_where_the_frame_began(name: str) -> None:
    machine, expected = GROWN[name]
    table = to_table(walkback.gopclntab.decode(encoded([Function("f", 24, GROWING)])), machine)
    texts = table.rule_texts()
    assert [texts[number] for number in table.row_rule.tolist()] == expected


def words(*instructions: int) -> memoryview:
    """Code of AArch64."""
    return memoryview(b"".join(one.to_bytes(4, "little") for one in instructions))


NOP, ADD_16, ADD_65536, RET = 0xD503201F, 0x910043FF, 0x914043FF, 0xD65F03C0


@pytest.mark.parametrize(
    ("code", "depths", "expected"),
    [
        ((NOP, ADD_16, ADD_65536, RET), [(0, 65552), (12, 0)], [65552, 65552, 65536, 0]),
        ((NOP, ADD_16, NOP, RET), [(0, 65552), (12, 0)], [65552, 65552, 65552, 0]),
        ((NOP, ADD_16, ADD_65536, RET), [(0, 65552), (8, 65536), (12, 0)], [65552, 65552, 65536, 0]),
        ((NOP, ADD_16, ADD_65536, RET), [(0, 65568), (12, 0)], [65568, 65568, 65568, 0]),
        ((NOP, ADD_16, ADD_65536, RET), [(0, 65552)], [65552] * 4),
    ],
    ids=["as Go writes it", "one instruction", "a row for both", "another depth", "no row behind"],
)
def test_a_large_frame_is_taken_off_by_two_instructions(
    code: tuple[int, ...], depths: list[tuple[int, int]], expected: list[int]
) -> None:
    functions = walkback.gopclntab.decode(encoded([Function("f", 16, depths), Function("g", 16)]))
    table = to_table(functions, AARCH64, words(*code, *[NOP] * 4))
    rules = table.rules[table.row_rule]
    found = [table.find(TEXT + offset).row or 0 for offset in range(0, 16, 4)]
    assert rules["cfa"]["offset"][found].tolist() == expected
    assert [str(kind) for kind in rules["ra"]["kind"][found].tolist()] == [
        str(int(PartKind.AT_CFA if depth == depths[0][1] else PartKind.UNCHANGED)) for depth in expected
    ]


CALLS: dict[str, tuple[Machine, str, list[tuple[int, int]], int | None]] = {
    "bl": (AARCH64, "1f2003d5 00000094 1f2003d5 01000094", [(0, 0)], 4),
    "blr": (AARCH64, "1f2003d5 1f2003d5 00003fd6", [(0, 0)], 8),
    "no call": (AARCH64, "1f2003d5 00000014 00001fd6", [(0, 0)], None),
    "a call in a frame": (AARCH64, "1f2003d5 00000094", [(0, 0), (4, 16)], None),
    "brasl": (S390X, "0707 c0e500000000", [(0, 0)], 2),
    "bras": (S390X, "0707 a7e50000", [(0, 0)], 2),
    "basr": (S390X, "b9040024 0de1", [(0, 0)], 4),
    "another link register": (S390X, "0707 c00500000000 0d01", [(0, 0)], None),
    "what looks like a call": (S390X, "c0190de00000 0707", [(0, 0)], None),
    "what looks like a call in front of one": (S390X, "c0190de00000 0de1", [(0, 0)], 6),
    "AMD64": (AMD64, "90 e800000000", [(0, 0)], None),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_first_call_of_a_function_without_a_frame_takes_the_return_address(name: str) -> None:
    machine, code, depths, lost = CALLS[name]
    functions = walkback.gopclntab.decode(encoded([Function("f", 32, depths), Function("g", 16)]))
    table = to_table(functions, machine, memoryview(bytes.fromhex(code).ljust(48, b"\7")))
    texts = table.rule_texts()
    found = ["which register" in texts[int(table.row_rule[table.find(TEXT + at).row or 0])] for at in range(48)]
    assert found == [lost is not None and lost <= at < 32 for at in range(48)]


NEVER_BACK = {"runtime.mcall", "runtime.morestack"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("runtime.goexit.abi0", "outermost frame"),
        ("runtime.sigtramp.abi0", "CFA = rsp+8, RA = *(CFA-8), FP unchanged"),
        ("runtime.mcall", "outermost frame"),
        ("runtime.morestack", "outermost frame"),
    ],
)
def test_a_walk_goes_on_where_the_kernel_called_a_handler(name: str, expected: str) -> None:
    """Go marks the handler as it marks what has no caller; it does not mark what never comes back."""
    functions = [Function(name, 16, flag=0 if name in NEVER_BACK else Flag.TOP_FRAME), Function("g", 16, flag=4)]
    table = to_table(walkback.gopclntab.decode(encoded(functions)), AMD64)
    assert table.rule_texts()[int(table.row_rule[0])] == expected


NOW = "64488b0425f8ffffff"  # mov %fs:-8, %rax
SYSTEM_STACK = f"ffd7 {NOW} 488b5830 488b83c0000000 6448890425f8ffffff 488b6038"
CROSSINGS = {
    "systemstack": ("runtime.systemstack", SYSTEM_STACK, Way.GOROUTINE, (-8, 0x30, 0xC0, 0x38)),
    "systemstack, at another place": (
        *(
            "runtime.systemstack",
            SYSTEM_STACK.replace(NOW, "48c7c1f8ffffff 64488b01").replace("6448890425f8ffffff", "64488901"),
        ),
        *(Way.GOROUTINE, (-8, 0x30, 0xC0, 0x38)),
    ),
    "another function": ("runtime.other", SYSTEM_STACK, None, ()),
    "other code": ("runtime.systemstack", SYSTEM_STACK.replace("488b6038", "488b6838"), None, ()),
    "asmcgocall": (
        *("runtime.asmcgocall", "e800000000 488b7c2408 488b7708 482b3424 6448893c25f8ffffff 4889f4"),
        *(Way.DEPTH, (8, 8, 0)),
    ),
    "no goroutine": ("runtime.asmcgocall", "ffd0 488b742428 4889f4", Way.STORED, (0x28,)),
}


@pytest.mark.parametrize("name", CROSSINGS)
def test_the_code_behind_a_call_says_how_it_goes_back(name: str) -> None:
    function, code, way, numbers = CROSSINGS[name]
    contents = memoryview((b"\x55\x90\x48\x8b\x62\x38" + bytes.fromhex(code)).ljust(64, b"\x90"))
    given = Function(function, 64, [(0, 0), (1, 8)], flag=Flag.SP_WRITE | Flag.ASSEMBLY)
    functions = walkback.gopclntab.decode(encoded([given]))
    pushed, before, *found = crossings(functions, AMD64, contents)
    assert [(one.start - TEXT, one.end - TEXT, one.way, one.cfa) for one in (pushed, before)] == [
        (0, 1, Way.NONE, 8),
        (1, 2, Way.NONE, 16),
    ]
    assert [(one.start - TEXT, one.way, one.numbers, one.cfa) for one in found] == (
        [] if way is None else [(6, way, numbers, 16)]
    )
    assert not crossings(functions, AARCH64, contents)


KEPT = {
    "a register": ("4989e4", "4c89e4", (12,), True),
    "the frame pointer, until it is popped": ("4889e5", "4889ec", (6,), False),
    "a register that is not kept": ("4889e1", "4889cc", (), False),
    "a register that has something else": ("4989fc", "4c89e4", (), False),
    "two registers": ("4989e4 4889e3", "4c89e4 4889dc", (), False),
}
"""How the stack pointer comes to a register and back, which register that is, and whether it has it at the end, too."""


@pytest.mark.parametrize("name", KEPT)
def test_a_register_keeps_the_stack_pointer_meanwhile(name: str) -> None:
    """From where the stack is left to where it is again, and behind the return."""
    saved, restored, numbers, is_at_end = KEPT[name]
    away, behind = bytes.fromhex("488b6238 4883e4f0 ffd0 488b0424"), bytes.fromhex("0f05 ebf0")
    begin = b"\x55" + bytes.fromhex(saved)
    code = begin + away + bytes.fromhex(restored) + b"\x5d\xc3" + behind
    end = len(code)
    returns = end - len(behind) - 1
    rows = [(0, 0), (1, 8), (returns, 0), (returns + 1, 8)]
    given = Function("runtime.nanotime1", end, rows, flag=Flag.SP_WRITE | Flag.ASSEMBLY)
    found = crossings(walkback.gopclntab.decode(encoded([given])), AMD64, memoryview(code))
    expected = [(0, 1, Way.NONE, 8), (1, len(begin), Way.NONE, 16)]
    if numbers:
        expected += [(len(begin), returns - 1, Way.REGISTER, 16), (returns - 1, returns, Way.NONE, 16)]
        expected.append((returns, returns + 1, Way.NONE, 8))
    if is_at_end:
        expected.append((returns + 1, end, Way.REGISTER, 16))
    assert joined(found) == expected
    assert {one.numbers for one in found} == {(), numbers}


def test_functions_too_large_for_the_runtime_are_not_looked_at() -> None:
    size = 1 << 20
    given = Function("runtime.nanotime1", size, [(0, 0), (1, 8)], flag=Flag.SP_WRITE | Flag.ASSEMBLY)
    functions = walkback.gopclntab.decode(encoded([given]))
    assert not crossings(functions, AMD64, memoryview(b"\x55" + bytes.fromhex("4989e4 4c89e4") + bytes(size)))


def joined(found: list[Crossing]) -> list[tuple[int, int, Way, int]]:
    """Neighbours that say the same are one."""
    parts: list[tuple[int, int, Way, int]] = []
    for one in found:
        start = one.start - TEXT
        if parts and parts[-1][1:] == (start, one.way, one.cfa):
            start = parts.pop()[0]
        parts.append((start, one.end - TEXT, one.way, one.cfa))
    return parts


SAVES: dict[str, tuple[Machine, list[tuple[int, int]], str, int, str]] = {
    "pushed": (AMD64, [(0, 0), (1, 8), (5, 40)], "55 4889e5", 1, "*(CFA-16)"),
    "moved": (AMD64, [(0, 0), (4, 40)], "4883ec28 48896c2420", 9, "*(CFA-16)"),
    "moved far": (AMD64, [(0, 0), (7, 400)], "4881ec90010000 4889ac2488010000", 15, "*(CFA-16)"),
    "moved to the stack pointer": (AMD64, [(0, 0), (4, 8)], "4883ec08 48892c24", 8, "*(CFA-16)"),
    "stored below the stack pointer": (AARCH64, [(0, 0), (4, 48)], "fe0f1df8 fd831ff8", 8, "*(CFA-56)"),
    "stored with the return address": (AARCH64, [(0, 0), (12, 544)], "f4830ed1 9dfa3fa9 9f020091", 12, "*(CFA-552)"),
    "not saved": (AMD64, [(0, 0), (4, 40)], "4883ec28 90", -1, ""),
}


@pytest.mark.parametrize("name", SAVES)
def test_the_code_shows_where_the_frame_pointer_is_saved(name: str) -> None:
    machine, depths, code, saved, where = SAVES[name]
    functions = walkback.gopclntab.decode(encoded([Function("f", 64, depths)]))
    table = to_table(functions, machine, memoryview(bytes.fromhex(code).ljust(64, b"\x90")))
    texts = table.rule_texts()
    found = [texts[int(table.row_rule[table.find(TEXT + offset).row or 0])] for offset in range(64)]
    expected = [f"FP = {where}" if 0 <= saved <= offset else "FP unchanged" for offset in range(64)]
    assert [text.rpartition(", ")[2] for text in found] == expected


def test_a_text_that_the_header_does_not_say_is_given() -> None:
    data = encoded(FUNCTIONS, header_text=0)
    assert walkback.gopclntab.decode(data, text=TEXT).start[0] == TEXT
    assert walkback.gopclntab.decode(data).start[0] == 0


HOSTILE = {
    "nothing": (b"", "go-magic"),
    "another number": (b"\xf2\xff\xff\xff" + bytes(60), "go-magic"),
    "padding that is not 0": (b"\xf1\xff\xff\xff\1\0\1\x08" + bytes(60), "go-head"),
    "a quantum of 3": (b"\xf1\xff\xff\xff\0\0\3\x08" + bytes(60), "go-head"),
    "no room for the header": (b"\xf1\xff\xff\xff\0\0\1\x08" + bytes(9), "go-header"),
    "a place beyond the end": (b"\xf1\xff\xff\xff\0\0\1\x08" + bytes(57) + b"\xff" * 7, "go-header"),
    "too many functions": (b"\xf1\xff\xff\xff\0\0\1\x08\x40" + bytes(63), "go-functions"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_contradicts_itself_is_refused(name: str) -> None:
    data, rule = HOSTILE[name]
    with pytest.raises(GoError) as caught:
        walkback.gopclntab.decode(data)
    assert caught.value.rule == rule


@pytest.mark.kernel
def test_damaged_tables_raise_nothing_else() -> None:
    rng = random.Random(20)
    for _ in range(rounds(5_000, 200)):
        data = bytearray(encoded(FUNCTIONS, rng.choice(list(Layout)), pointer=rng.choice([4, 8])))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 0xFF, rng.randrange(256)])
        try:
            table = walkback.gopclntab.decode(data)
        except GoError:
            continue
        to_table(table, AMD64, memoryview(bytes(64)))
        assert len(table.row_offset) <= len(data) // 8 + 4096
        for number in range(len(table)):
            table.name(number)


def test_functions_that_share_a_large_table_do_not_balloon() -> None:
    """A row for each eight bytes may be there, and some; a program of Go has a quarter of that."""
    depths = [(0, 0), *((offset, offset % 7 * 8) for offset in range(1, 4000))]
    functions = [Function("f", 4000, depths)] * 200
    assert len(walkback.gopclntab.decode(encoded(functions[:1])).row_offset) == 4000
    with pytest.raises(GoError, match=r"more than \d+ rows of depths, too many for a table of \d+ bytes") as caught:
        walkback.gopclntab.decode(encoded(functions))
    assert caught.value.rule == "go-depths"


def test_a_number_without_end_is_read_to_its_tenth_byte() -> None:
    """Functions may share it too."""
    data = bytearray(encoded([Function("f", 16)] * 4000))
    table, endless = walkback.gopclntab.decode(data), len(data)
    for place in table.entry_place.tolist():
        struct.pack_into("<I", data, place + 12, endless - table.header.words["values"])
    begun = time.process_time()
    assert walkback.gopclntab.decode(data + b"\x80" * (1 << 20)).fault.all()
    assert time.process_time() - begun < 1


def test_bytes_that_look_like_calls_within_instructions_are_read_once() -> None:
    """On s390x, in a function without a frame; each of them would be looked for from its beginning."""
    code = memoryview(b"\xc0\x00\xc0\xe5\x00\x00" * 100_000 + b"\xc0\xe5\x00\x00\x00\x00" * 2)
    data = encoded([Function("f", len(code), [(0, 0)])], order="big", quantum=2)
    begun = time.process_time()
    table = to_table(walkback.gopclntab.decode(data), S390X, code)
    assert time.process_time() - begun < 20
    assert table.row_offset.tolist() == [0, len(code) - 12]
