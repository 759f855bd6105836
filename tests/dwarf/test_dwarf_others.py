"""The rules of all registers: against a reader that nobody here wrote, and one test for each way to keep state."""

from __future__ import annotations

import random
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cfibuilder import ABSPTR, DATAREL, PCREL, SDATA4, TEXTREL, UDATA4, CfiBuilder, cfa, expr
from corpus import corpus
from effort import rounds
from walkback.base.arch import AARCH64, AMD64, ByteOrder, Machine
from walkback.base.arrays import I64, U64
from walkback.base.errors import DwarfError
from walkback.dwarf.decoding import decode
from walkback.dwarf.files import read
from walkback.dwarf.frames import Frames
from walkback.dwarf.others import REGISTERS, OtherRule, side_table
from walkback.dwarf.rulewords import RuleKind

pytestmark = pytest.mark.kernel

START = "def_cfa 7 8; offset 16 1; offset 3 4"
"""What the CIE says: rbx is saved at CFA-32."""
RBX, R12, R13 = 3, 12, 13
RBX_SAVED = {RBX: OtherRule(RuleKind.AT_CFA, -32)}
LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")


def frames_of(
    *programs: str,
    start: str = START,
    faults: bool = False,
    machine: Machine = AMD64,
    order: ByteOrder = "little",
    **cie: Any,
) -> Frames:
    builder = CfiBuilder(order=order, address=0x400, text=0x40, got=0x80)
    number = builder.cie(cfa(start, order), **cie)
    for index, program in enumerate(programs):
        builder.fde(number, 0x1000 + 0x100 * index, 0x100, cfa(program, order))
    return decode(builder.bytes(), machine, address=0x400, byteorder=order, text=0x40, got=0x80, faults=faults)


def sets(*programs: str, **options: Any) -> list[dict[int, OtherRule]]:
    """The rules of other registers of every row."""
    frames = frames_of(*programs, **options)
    others = side_table(frames)
    assert len(others.row_set) == len(frames.row_offset)
    assert len({tuple(sorted(others.rules(one).items())) for one in range(len(others))}) == len(others)
    return [others.rules(one) for one in others.row_set.tolist()]


def saved(**offsets: Any) -> dict[int, OtherRule]:
    names = {"rbx": RBX, "r12": R12, "r13": R13}
    return {names[name]: OtherRule(RuleKind.AT_CFA, offset) for name, offset in offsets.items()}


@pytest.mark.parametrize(
    ("instruction", "rule"),
    [
        ("offset 12 3", OtherRule(RuleKind.AT_CFA, -24)),
        ("offset_extended 12 3", OtherRule(RuleKind.AT_CFA, -24)),
        ("offset_extended_sf 12 -3", OtherRule(RuleKind.AT_CFA, 24)),
        ("GNU_negative_offset_extended 12 3", OtherRule(RuleKind.AT_CFA, 24)),
        ("val_offset 12 3", OtherRule(RuleKind.CFA, -24)),
        ("val_offset_sf 12 -3", OtherRule(RuleKind.CFA, 24)),
        ("register 12 200", OtherRule(RuleKind.REGISTER, 200)),
        ("undefined 12", OtherRule(RuleKind.UNDEFINED, 0)),
        ("same_value 12", OtherRule(RuleKind.SAME_VALUE, 0)),
    ],
)
def test_each_instruction_gives_its_rule(instruction: str, rule: OtherRule) -> None:
    assert sets(instruction) == [RBX_SAVED | {R12: rule}]


def test_registers_of_the_table_are_not_among_the_others() -> None:
    assert sets("offset 6 2; offset 16 1; undefined 7; same_value 6") == [RBX_SAVED]


def test_the_column_of_the_return_address_is_that_of_the_cie() -> None:
    assert sets("offset 12 2; offset 16 5", ra=12) == [{**RBX_SAVED, 16: OtherRule(RuleKind.AT_CFA, -40)}]


def test_a_row_that_changes_nothing_has_the_same_number() -> None:
    others = side_table(frames_of("advance_loc 1; def_cfa_offset 16; advance_loc 1; same_value 3; advance_loc 1"))
    first, second, third, fourth = others.row_set.tolist()
    assert first == second
    assert third == fourth != second


def test_restore_gives_back_what_the_cie_says_or_nothing() -> None:
    program = "same_value 3; offset 12 2; advance_loc 1; restore 3; restore 12; advance_loc 1; restore_extended 3"
    assert sets(program)[1:] == [RBX_SAVED, RBX_SAVED]
    assert sets("undefined 3; advance_loc 1; restore_extended 3")[1] == RBX_SAVED


def test_states_are_remembered_and_restored_one_in_the_other() -> None:
    program = (
        "remember_state; offset 12 2; advance_loc 1; remember_state; offset 12 3; offset 13 4; same_value 3;"
        "advance_loc 1; restore_state; advance_loc 1; offset 13 5; advance_loc 1; restore_state; advance_loc 1"
    )
    assert sets(program) == [
        saved(rbx=-32, r12=-16),
        saved(r12=-24, r13=-32) | {RBX: OtherRule(RuleKind.SAME_VALUE, 0)},
        saved(rbx=-32, r12=-16),
        saved(rbx=-32, r12=-16, r13=-40),
        RBX_SAVED,
        RBX_SAVED,
    ]


def test_nothing_of_one_function_is_left_in_the_next() -> None:
    assert sets("offset 12 2; remember_state; same_value 3", "advance_loc 1") == [
        saved(r12=-16) | {RBX: OtherRule(RuleKind.SAME_VALUE, 0)},
        RBX_SAVED,
        RBX_SAVED,
    ]


def test_functions_of_several_cies_begin_with_what_theirs_says() -> None:
    builder = CfiBuilder()
    cies = [builder.cie(cfa(f"def_cfa 7 8; offset 16 1{more}")) for more in ("", "; offset 3 2", "; offset 12 3")]
    for index, cie in enumerate([0, 1, 2, 1, 0, 2]):
        builder.fde(cies[cie], 0x1000 * index, 16, cfa("restore 3; restore 12; offset 13 4"))
    others = side_table(decode(builder.bytes(), AMD64))
    own = [saved(r13=-32), saved(rbx=-16, r13=-32), saved(r12=-24, r13=-32)]
    assert [others.rules(one) for one in others.row_set.tolist()] == [own[cie] for cie in (0, 1, 2, 1, 0, 2)]


def test_an_advance_in_a_cie_makes_no_row() -> None:
    assert sets("", start=f"{START}; advance_loc 1; offset 12 2; advance_loc 1; offset 13 3") == [
        saved(rbx=-32, r12=-16, r13=-24)
    ]


def test_an_advance_of_nothing_makes_no_row() -> None:
    assert sets("advance_loc 0; offset 12 2; advance_loc1 0; advance_loc 1") == [saved(rbx=-32, r12=-16)] * 2


@pytest.mark.parametrize("encoding", [ABSPTR, PCREL | SDATA4, TEXTREL | UDATA4, DATAREL | SDATA4])
def test_set_loc_counts_from_what_the_start_counts_from(encoding: int) -> None:
    builder = CfiBuilder(address=0x400, text=0x40, got=0x80)
    cie = builder.cie(cfa(START), augmentation=b"zR", encoding=encoding)
    builder.fde(cie, 0x1000, 0x100, cfa("offset 12 2; nop"))
    place = builder.assemble()[1]["fde0.program"]
    program = cfa("offset 12 2") + b"\x01" + builder.encoded(0x1000, encoding, 0x400 + place + 3)
    program += cfa("offset 12 3") + b"\x01"
    program += builder.encoded(0x1020, encoding, 0x400 + place + len(program)) + cfa("offset 12 4")
    builder.entries[-1].program = program
    frames = decode(builder.bytes(), AMD64, address=0x400, text=0x40, got=0x80)
    assert frames.row_offset.tolist() == [0, 0x20]
    others = side_table(frames)
    assert [others.rules(one)[R12].operand for one in others.row_set.tolist()] == [-24, -32]


def test_expressions_keep_their_bytes() -> None:
    block = expr("breg7 8; deref")
    frames = frames_of(f"expression 12 {block}; val_expression 13 {block}; def_cfa_expression {block}")
    others = side_table(frames)
    found = others.rules(int(others.row_set[0]))
    assert [found[R12].kind, found[R13].kind] == [RuleKind.AT_EXPRESSION, RuleKind.EXPRESSION]
    assert others.is_expression().sum() == 2
    assert {bytes(others.expression(found[one].operand)) for one in (R12, R13)} == {bytes.fromhex(block)}


def test_registers_beyond_are_counted() -> None:
    frames = frames_of(f"offset_extended {REGISTERS} 2; offset_extended {REGISTERS - 1} 2; restore_extended 99999")
    others = side_table(frames)
    assert others.unknown == 2
    assert set(others.rules(int(others.row_set[0]))) == {RBX, REGISTERS - 1}


def test_rows_before_a_fault_have_their_sets() -> None:
    frames = frames_of(f"offset 12 2; advance_loc 1; offset 12 3; advance_loc 1; restore_state; {START}", faults=True)
    assert frames.fdes.fault.tolist() != [0]
    others = side_table(frames)
    assert [others.rules(one)[R12].operand for one in others.row_set.tolist()] == [-16, -24]


def test_instructions_of_the_return_addresss_state_change_nothing() -> None:
    program = "negate_ra_state; advance_loc 1; negate_ra_state_with_pc; offset 19 2; advance_loc 1"
    found = sets(program, start="def_cfa 31 0", machine=AARCH64, ra=30)
    assert found == [{}, {19: OtherRule(RuleKind.AT_CFA, -16)}, {19: OtherRule(RuleKind.AT_CFA, -16)}]


def test_sections_without_entries_have_the_empty_set() -> None:
    others = side_table(decode(b"", AMD64))
    assert (len(others), len(others.row_set), others.rules(0)) == (1, 0, {})


def test_more_sets_than_any_compiler_makes_are_refused(interpreted: bool) -> None:
    # 100 registers that all change from row to row.
    rows = 60 if interpreted else 3000
    program = b"".join(cfa(f"offset_extended {40 + row % 100} {row}; advance_loc 1") for row in range(100 + rows))
    builder = CfiBuilder()
    builder.fde(builder.cie(cfa(START)), 0x1000, 0x10000, program)
    frames = decode(builder.bytes(), AMD64)
    if interpreted:
        side_table(frames)
        return
    with pytest.raises(DwarfError, match=r"FDE 0.*more than \d+ different rules of other registers"):
        side_table(frames)


def test_long_trails_of_states_take_no_time() -> None:
    # 20000 states remembered, each with a change, and all restored.
    program = cfa("remember_state; offset 12 2; remember_state; offset 12 3; ") * 10000 + cfa("restore_state; ") * 20000
    builder = CfiBuilder()
    builder.fde(builder.cie(cfa(START)), 0x1000, 0x10000, program)
    others = side_table(decode(builder.bytes(), AMD64))
    assert others.rules(int(others.row_set[0])) == RBX_SAVED


def test_damaged_sections_are_read_or_refused(interpreted: bool) -> None:
    random.seed(7)
    program = "offset 12 2; advance_loc 1; remember_state; offset 13 3; advance_loc 1; restore_state; restore 3"
    frames = frames_of(*[program] * 5)
    sound = bytes(frames.data)
    for _ in range(rounds(200 if interpreted else 20000, quick=50 if interpreted else 2000, share=5)):
        data = bytearray(sound)
        for _ in range(random.randint(1, 4)):
            data[random.randrange(len(data))] = random.randrange(256)
        mutated = decode(data, AMD64, address=0x400, faults=True)
        others = side_table(mutated)
        assert len(others.row_set) == len(mutated.row_offset)
        for place in others.operand[others.is_expression()].tolist():
            others.expression(place)


# Against pyelftools

KINDS = {
    "UNDEFINED": RuleKind.UNDEFINED,
    "SAME_VALUE": RuleKind.SAME_VALUE,
    "OFFSET": RuleKind.AT_CFA,
    "VAL_OFFSET": RuleKind.CFA,
    "REGISTER": RuleKind.REGISTER,
    "EXPRESSION": RuleKind.AT_EXPRESSION,
    "VAL_EXPRESSION": RuleKind.EXPRESSION,
}


def peers_rows(path: Path) -> Iterator[tuple[int, int, list[tuple[int, dict[int, Any]]]]]:
    """Of every FDE that pyelftools can run: start, and for each row its address and the rules of all registers."""
    from elftools.dwarf.callframe import FDE
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as file:
        entries = ELFFile(file).get_dwarf_info().EH_CFI_entries()
        for entry in entries:
            if not isinstance(entry, FDE):
                continue
            try:
                table = entry.get_decoded().table
            except ValueError:  # it stumbles over DW_CFA_GNU_args_size, and over its own message about that
                continue
            rows = [(row["pc"], {r: rule for r, rule in row.items() if isinstance(r, int)}) for row in table]
            assert entry.cie is not None
            yield entry.header["initial_location"], entry.cie["return_address_register"], rows


def assert_equal_to_pyelftools(path: Path) -> int:
    """Every rule of every register in every row; returns how many were compared."""
    (source,) = [one for one in read(path) if one.name == ".eh_frame"]
    frames, machine = source.frames, source.machine
    others = side_table(frames)
    known = [others.rules(number) for number in range(len(others))]
    own = {}
    for start, first, count in zip(*(column.tolist() for column in _ranges(frames)), strict=True):
        offsets = frames.row_offset[first : first + count].tolist()
        numbers = others.row_set[first : first + count].tolist()
        own[start] = {start + offset: known[number] for offset, number in zip(offsets, numbers, strict=True)}
    compared = 0
    for start, ra, rows in peers_rows(path):
        for pc, rules in rows:
            expected = {}
            for register, rule in rules.items():
                if register in {ra, machine.fp, machine.sp}:
                    continue
                kind, operand = KINDS[rule.type], rule.arg
                expected[register] = (kind, bytes(operand) if isinstance(operand, list) else operand or 0)
            found = {
                register: (rule.kind, bytes(others.expression(rule.operand)) if rule.kind >= 6 else rule.operand)
                for register, rule in own[start][pc].items()
            }
            assert found == expected, f"{path.name} {pc:#x}"
            compared += len(found)
    return compared


def _ranges(frames: Frames) -> tuple[U64, I64, I64]:
    fdes = frames.fdes
    return fdes.start, fdes.first_row, fdes.rows


@pytest.mark.skipif(not LIBC.exists(), reason=f"no {LIBC}")
def test_libc_says_what_pyelftools_says(interpreted: bool) -> None:
    if interpreted:
        pytest.skip("too slow interpreted")
    assert assert_equal_to_pyelftools(LIBC) > 10000


@pytest.mark.whole
def test_a_python_says_what_pyelftools_says(interpreted: bool) -> None:
    if interpreted:
        pytest.skip("too slow interpreted")
    library = Path(sysconfig.get_config_var("LIBDIR") or "", sysconfig.get_config_var("INSTSONAME") or "none")
    assert assert_equal_to_pyelftools(library if library.is_file() else Path(sys.executable).resolve()) > 10000


@pytest.mark.peers
@pytest.mark.parametrize("arch", ["amd64", "aarch64", "s390x"])
def test_the_corpus_says_what_pyelftools_says(arch: str, interpreted: bool) -> None:
    names = {"program.so"} if interpreted else {"program.so", "program-dynamic", "large-and-plain.so"}
    paths = [one.path for one in corpus() if one.arch == arch and one.producer == "new" and one.path.name in names]
    assert paths
    assert sum(assert_equal_to_pyelftools(path) for path in paths) > 0
