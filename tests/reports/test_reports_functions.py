"""What a report tells of one file: against the readers that it is made of, and by hand for small files."""

from __future__ import annotations

import random
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfibuilder import CfiBuilder, cfa, expr
from corpus import corpus
from effort import rounds
from elfbuilder import ElfBuilder
from reports.listed import FRAMES, START, program
from sframefiles import TEXT, archive, linked, small, written
from walkback.base.errors import MissingError, UnreadableError, WalkbackError
from walkback.dwarf.others import side_table
from walkback.dwarf.rulewords import RuleKind
from walkback.elf import DEBUG_ROOTS
from walkback.reports.binary import write_binary_page
from walkback.reports.functions import ListedFunctions, functions_of
from walkback.reports.listings import binary_figures
from walkback.reports.opening import one_elf_file
from walkback.sections.pairs import compare
from walkback.sections.size import size as measure
from walkback.table.rule import Part, PartKind, Reason
from walkback.table.verdict import Verdict

LIBC = Path("/lib/x86_64-linux-gnu/libc.so.6")
RBX, RBP, R12, R13 = 3, 6, 12, 13
MEANINGS = {RuleKind.AT_CFA: PartKind.AT_CFA, RuleKind.CFA: PartKind.CFA, RuleKind.SAME_VALUE: PartKind.UNCHANGED}


def read(path: Path | str) -> ListedFunctions:
    return functions_of(one_elf_file(path), DEBUG_ROOTS)


def read_program(folder: Path, *fdes: tuple[int, int, str], **more: Any) -> ListedFunctions:
    return read(written(folder, program(*fdes, **more)))


def saved_at(functions: ListedFunctions, index: int, offset: int) -> dict[int, Part]:
    """The rules of other registers at an offset of a function, as the page finds them."""
    saved = functions.saved
    stretches = range(int(saved.first[index]), int(saved.first[index + 1]))
    number = max((its for its in stretches if saved.offset[its] <= offset), default=None)
    if number is None:
        return {}
    chosen = int(saved.set[number])
    entries = range(int(saved.set_first[chosen]), int(saved.set_first[chosen + 1]))
    parts = [saved.part[its].item() for its in entries]
    return {
        int(saved.register[its]): Part(PartKind(part[0]), *part[1:]) for its, part in zip(entries, parts, strict=True)
    }


def test_registers_are_saved_where_the_program_of_the_function_says_so(tmp_path: Path) -> None:
    saves = "advance_loc 2; offset 3 2; advance_loc 2; offset 12 3; advance_loc 4; restore 3; restore 12"
    functions = read_program(tmp_path, (TEXT, 32, saves), (TEXT + 32, 16, "offset 13 4"), (TEXT + 48, 16, ""))
    rbx, r12 = Part(PartKind.AT_CFA, 0, -16), Part(PartKind.AT_CFA, 0, -24)
    found = [saved_at(functions, 0, offset) for offset in (0, 1, 2, 3, 4, 7, 8, 31)]
    assert found == [{}, {}, {RBX: rbx}, {RBX: rbx}, {RBX: rbx, R12: r12}, {RBX: rbx, R12: r12}, {}, {}]
    assert saved_at(functions, 1, 0) == {R13: Part(PartKind.AT_CFA, 0, -32)}
    assert saved_at(functions, 2, 0) == {}


def test_the_stack_pointer_is_among_them_where_it_is_saved(tmp_path: Path) -> None:
    functions = read_program(
        tmp_path, (TEXT, 32, "offset 3 2; advance_loc1 4; offset 7 3; offset 12 4; advance_loc1 4; restore 7")
    )
    at_cfa = {register: Part(PartKind.AT_CFA, 0, -8 * place) for register, place in ((RBX, 2), (7, 3), (R12, 4))}
    assert saved_at(functions, 0, 0) == {RBX: at_cfa[RBX]}
    assert saved_at(functions, 0, 4) == at_cfa
    assert saved_at(functions, 0, 8) == {RBX: at_cfa[RBX], R12: at_cfa[R12]}


def test_expressions_that_say_a_place_become_one(tmp_path: Path) -> None:
    functions = read_program(
        tmp_path,
        (TEXT, 16, f"expression 3 {expr('breg6 -24')}; val_expression 12 {expr('breg6 8')}"),
        (TEXT + 16, 16, f"expression 3 {expr('lit0')}; register 12 13"),
    )
    assert saved_at(functions, 0, 5) == {
        RBX: Part(PartKind.AT_REGISTER, RBP, -24),
        R12: Part(PartKind.REGISTER, RBP, 8),
    }
    assert saved_at(functions, 1, 5) == {
        RBX: Part(PartKind.INEXPRESSIBLE, 0, Reason.EXPRESSION),
        R12: Part(PartKind.REGISTER, R13, 0),
    }


def test_a_function_within_another_has_registers_of_its_own(tmp_path: Path) -> None:
    outer, inner = (TEXT, 64, "offset 3 2"), (TEXT + 16, 16, "offset 12 3")
    functions = read_program(tmp_path, outer, inner)
    assert functions.table.range_start.tolist() == [TEXT, TEXT + 16, TEXT + 32]
    assert [list(saved_at(functions, index, 3)) for index in range(3)] == [[RBX], [R12], [RBX]]


def compare_saved(functions: ListedFunctions, chance: random.Random) -> int:
    """At addresses of functions the same registers as the side table has for the row of the FDE."""
    sides = [side_table(source.frames) for source in functions.read.frame_sources]
    bounds = np.cumsum([0, *(len(side.frames.fdes) for side in sides)])
    compared = 0
    for index in chance.sample(range(len(functions)), min(len(functions), 300)):
        origin = int(functions.table.range_origin[index])
        number = int(np.searchsorted(bounds, origin, "right")) - 1
        frames, fde = sides[number].frames, origin - int(bounds[number])
        first, count = int(frames.fdes.first_row[fde]), int(frames.fdes.rows[fde])
        away = int(functions.table.range_start[index]) - int(frames.fdes.start[fde])
        for offset in (0, chance.randrange(int(functions.table.range_size[index]))):
            row = first + int(np.searchsorted(frames.row_offset[first : first + count], away + offset, "right")) - 1
            expected = sides[number].rules(int(sides[number].row_set[row]))
            found = saved_at(functions, index, offset)
            stack = found.pop(frames.machine.sp, None)
            assert (stack is None) == (frames.rule_words[frames.row_rule[row], 3] == 0)
            assert found.keys() == expected.keys()
            for register, rule in expected.items():
                if rule.kind in MEANINGS:
                    operand = 0 if rule.kind is RuleKind.SAME_VALUE else rule.operand
                    assert found[register] == Part(MEANINGS[rule.kind], 0, operand)
                    compared += 1
    return compared


@pytest.mark.skipif(not LIBC.exists(), reason="needs a C library for AMD64")
def test_the_registers_of_a_large_library_are_those_of_its_side_table() -> None:
    assert compare_saved(read(LIBC), random.Random(1)) > 100


@pytest.mark.peers
def test_the_registers_and_costs_of_the_corpus_are_those_of_its_tables() -> None:
    chance, compared = random.Random(2), 0
    for sample in chance.sample([one for one in corpus() if one.kind in {"object", "shared", "executable"}], 60):
        try:
            functions = read(sample.path)
        except MissingError:
            continue
        if functions.read is not None:
            compared += compare_saved(functions, chance)
        compare_costs(functions)
        compare_line(functions)
    assert compared > 1000


def compare_costs(functions: ListedFunctions) -> None:
    for version, its in functions.versions.items():
        size, section = functions.sizes.versions[version], functions.derived[version].section
        assert int(its.bytes.sum()) + section.header_end == size.parts.total
        uncovered = functions.table.range_origin[its.reason > 0]
        assert len(np.unique(uncovered)) + len(functions.unplaced) == size.uncovered
        assert not its.bytes[its.reason > 0].any()


def compare_line(functions: ListedFunctions) -> None:
    """Every function lies in its stretch, and the stretches are the code that the headers tell."""
    line, table = functions.line, functions.table
    away = table.range_start - line.start[line.text_of]
    assert (away < line.size[line.text_of]).all()
    sections = functions.elf.sections
    known = np.flatnonzero((sections["flags"] & 6 == 6) & (sections["size"] > 0))
    assert sorted(line.section.tolist()) == sorted(known.tolist())
    assert int(line.size.sum()) == int(sections["size"][known].sum())


def test_what_functions_cost_is_what_the_sections_of_all_versions_take(tmp_path: Path) -> None:
    functions = read_program(
        tmp_path, (TEXT, 32, "advance_loc 1; def_cfa_offset 16"), (TEXT + 32, 16, "def_cfa 10 0"), (TEXT + 48, 8, "")
    )
    assert {version: its.bytes.tolist() for version, its in functions.versions.items()} == {
        1: [17 + 6, 0, 17 + 3],
        2: [20 + 6, 0, 20 + 3],
        3: [16 + 5 + 6, 16 + 5 + 4, 16 + 5 + 3],
    }
    assert [functions.versions[2].reasons[number][0] for number in functions.versions[2].reason] == [
        "",
        "cfa-base",
        "",
    ]
    compare_costs(functions)


@pytest.mark.skipif(not LIBC.exists(), reason="needs a C library for AMD64")
def test_a_large_library_has_the_numbers_of_the_other_verbs(tmp_path: Path) -> None:
    functions = read(LIBC)
    compare_costs(functions)
    compare_line(functions)
    sizes = measure(LIBC)
    summary, listing, rows = binary_figures(LIBC)
    told = dict(zip((column.name for column in summary.columns), next(summary.rows), strict=True))
    assert (told["functions"], told["text"], told["frames"]) == (
        functions.read.functions, sizes.text_bytes, sizes.eh_frame + sizes.eh_frame_hdr,
    )  # fmt: skip
    for version, one in sizes.versions.items():
        assert told[f"v{version}_bytes"] == one.parts.total
        assert told[f"v{version}_covered"] == one.covered / told["functions"]
    assert told["code"] == functions.derived[3].code_bytes
    assert (told["sframe"], told["equal"]) == (None, None)
    names = [column.name for column in listing.columns]
    found = [dict(zip(names, row, strict=True)) for row in listing.rows]
    assert sum(one["rows"] for one in found) == sum(1 for _ in rows.rows) == len(functions.table.row_rule)
    assert sum(one["size"] for one in found) == functions.derived[3].code_bytes
    missing = {(one["address"], one["v3_reason"]) for one in found if one["v3_reason"]}
    assert missing == {(one.start, one.code) for one in functions.derived[3].uncovered}
    assert len(missing) == sizes.versions[3].uncovered


def test_functions_are_named_by_the_symbol_that_holds_them(tmp_path: Path) -> None:
    names = [("_ZN1a1bEi", TEXT, 64), ("plain", TEXT + 64, 8), ("evil\n<b>", TEXT + 72, 8)]
    fdes = [(TEXT, 32, ""), (TEXT + 32, 32, ""), (TEXT + 64, 8, ""), (TEXT + 72, 8, ""), (TEXT + 128, 8, "")]
    functions = read_program(tmp_path, *fdes, names=names)
    assert functions.symbols == ["_ZN1a1bEi", "_ZN1a1bEi+0x20", "plain", "evil\n<b>", ""]
    assert functions.names == ["a::b", "a::b+0x20", "plain", "evil\n<b>", ""]


def test_a_symbol_without_a_size_names_the_function_that_begins_there_alone(tmp_path: Path) -> None:
    functions = read_program(tmp_path, (TEXT, 32, ""), (TEXT + 32, 32, ""), names=[("_start", TEXT, 0)])
    assert functions.symbols == ["_start", ""]


def test_all_code_stands_on_one_line_and_functions_outside_of_it_get_their_own(tmp_path: Path) -> None:
    elf = ElfBuilder(kind=3)
    frames = CfiBuilder(address=FRAMES)
    number = frames.cie(cfa(START))
    for start in (0x1000, 0x1010, 0x4000):
        frames.fde(number, start, 16)
    elf.code(".init", 0x10, 0x1000)
    elf.code(".text", 0x20, 0x1010)
    elf.code(".late", 0x100, 0x4000)
    elf.section(".eh_frame", frames.bytes(), flags=2, addr=FRAMES)
    functions = read(written(tmp_path, elf))
    line = functions.line
    assert [functions.section_name(section) for section in line.section.tolist()] == [".init", ".text", ".late"]
    assert (line.start.tolist(), line.size.tolist()) == ([0x1000, 0x1010, 0x4000], [0x10, 0x20, 0x100])
    assert line.text_of.tolist() == [0, 1, 2]


def test_a_file_with_sframe_alone_shows_the_rows_of_that(tmp_path: Path) -> None:
    functions = read(written(tmp_path, linked(small(3).bytes())))
    assert functions.source == ".sframe"
    assert (functions.read, functions.saved, functions.comparison, functions.versions) == (None, None, None, {})
    assert functions.names == ["f0", "f1", "f2"]
    assert functions.table.range_rows.tolist() == [4, 4, 4]
    summary, listing, rows = binary_figures(tmp_path / "file")
    assert [column.name for column in summary.columns if column.name.startswith("v")] == []
    ((functions_told, *_, frames, sframe, equal),) = summary.rows
    assert (functions_told, frames, sframe, equal) == (3, 0, len(small(3).bytes()), None)
    assert [column.name for column in listing.columns if column.name.startswith("v")] == []
    assert next(rows.rows) == (".text", TEXT, TEXT, 1, "rsp+8", "*(CFA-8)", "unchanged", False)


def test_what_sframe_says_otherwise_is_counted_as_compare_does(tmp_path: Path) -> None:
    same = (
        "advance_loc 1; def_cfa_offset 16; offset 6 2; advance_loc 3; def_cfa_register 6; advance_loc 27; def_cfa 7 8"
    )
    other = same.replace("def_cfa_offset 16", "def_cfa_offset 24")
    fdes = [(TEXT, 32, same), (TEXT + 32, 32, other), (TEXT + 96, 32, same)]
    path = written(tmp_path, program(*fdes, sframe=small(3).bytes()))
    functions = read(path)
    (pair,) = compare(path)
    assert functions.comparison.bytes_of.tolist() == pair.comparison.bytes_of.tolist()
    summary, listing, _ = binary_figures(path)
    whole = sum(pair.comparison.code_bytes(verdict) for verdict in Verdict if verdict is not Verdict.NEITHER)
    assert next(summary.rows)[-1] == pair.comparison.code_bytes(Verdict.EQUAL) / whole
    found = [row[-1] for row in listing.rows]
    assert found == [0, 30, 32]


def test_rows_of_a_procedure_linkage_table_are_given_for_one_turn(tmp_path: Path) -> None:
    plt = expr("breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus")
    path = written(tmp_path, program((TEXT, 0x40, f"def_cfa_expression {plt}")))
    _, _, rows = binary_figures(path)
    assert [(start, size, text) for _, _, start, size, text, *_ in rows.rows] == [
        (TEXT, 11, "rsp+8"),
        (TEXT + 11, 5, "rsp+16"),
    ]


def test_one_member_of_an_archive_is_named_in_brackets(tmp_path: Path) -> None:
    for name in ("a.o", "b.o"):
        written(tmp_path, linked(small(3).bytes()), name)
    written(tmp_path, b"nothing", "c.txt")
    path = archive(tmp_path, "lib.a", tmp_path / "a.o", tmp_path / "b.o", tmp_path / "c.txt")
    assert one_elf_file(f"{path}(b.o)").name == f"{path}(b.o)"
    assert len(read(f"{path}(a.o)")) == 3
    with pytest.raises(UnreadableError, match=r"an archive of 2 ELF files; name one of them, as in .*lib\.a\(a\.o\), "):
        one_elf_file(path)
    with pytest.raises(UnreadableError, match=r"lib\.a: there is no ELF file c\.txt in it"):
        one_elf_file(f"{path}(c.txt)")
    with pytest.raises(UnreadableError, match="not an archive, so it has no members"):
        one_elf_file(f"{tmp_path / 'a.o'}(b.o)")
    with pytest.raises(UnreadableError, match="No such file"):
        one_elf_file(f"{tmp_path / 'none.a'}(b.o)")
    single = archive(tmp_path, "single.a", tmp_path / "a.o")
    assert one_elf_file(single).name == f"{single}(a.o)"
    again = archive(tmp_path, "again.a", tmp_path / "a.o", tmp_path / "a.o")
    with pytest.raises(UnreadableError, match=r"the archive has 2 members of this name"):
        one_elf_file(f"{again}(a.o)")
    strange = written(tmp_path, linked(small(3).bytes()), "lib.a(b.o)")
    assert one_elf_file(strange).name == str(strange)


def test_files_that_have_nothing_to_show_say_so(tmp_path: Path) -> None:
    for content, message in (
        (b"text", "this is not an ELF file or archive"),
        (b"!<arch>\n", "no ELF file in this archive"),
    ):
        with pytest.raises(UnreadableError, match=message):
            write_binary_page(written(tmp_path, content), tmp_path / "page.html")
    bare = ElfBuilder(kind=3)
    bare.code(".text", 16, TEXT)
    with pytest.raises(MissingError, match=r"there is no \.eh_frame, \.debug_frame or \.sframe section"):
        write_binary_page(written(tmp_path, bare), tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.whole
def test_damaged_files_give_a_page_or_an_error(tmp_path: Path) -> None:
    chance = random.Random(3)
    same = "advance_loc 1; def_cfa_offset 16; offset 6 2; offset 3 4; advance_loc 3; def_cfa_register 6"
    fdes = [(TEXT + 32 * number, 32, same) for number in range(8)]
    names = [(f"_Z1{'abcdefgh'[number]}v", TEXT + 32 * number, 32) for number in range(8)]
    whole = bytes(program(*fdes, sframe=small(3).bytes(), names=names).build())
    pages = 0
    for _ in range(rounds(120, quick=40, share=200)):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        written(tmp_path, bytes(data))
        with suppress(WalkbackError):
            write_binary_page(tmp_path / "file", tmp_path / "page.html")
            for listing in binary_figures(tmp_path / "file"):
                assert sum(1 for _ in listing.rows) < 1000
            assert (tmp_path / "page.html").stat().st_size < 1 << 20
            pages += 1
    assert pages > rounds(30, quick=10, share=800)


def test_the_page_takes_the_place_of_a_former_one_only_when_it_is_whole(tmp_path: Path) -> None:
    page = written(tmp_path, b"former", "page.html")
    path = written(tmp_path, program((TEXT, 32, "")))
    (tmp_path / "file").write_bytes(path.read_bytes()[:200])
    with pytest.raises(WalkbackError):
        write_binary_page(tmp_path / "file", page)
    assert page.read_bytes() == b"former"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_function_without_rows_is_listed_without_rows(version: int, tmp_path: Path) -> None:
    builder = small(version)
    builder.function(TEXT + 0x60, 32)
    _, functions, rows = binary_figures(written(tmp_path, linked(builder.bytes())))
    assert [one[1] for one in functions.rows] == [TEXT, TEXT + 0x20, TEXT + 0x40, TEXT + 0x60]
    assert {one[1] for one in rows.rows} == {TEXT, TEXT + 0x20, TEXT + 0x40}


def test_functions_have_the_names_that_show_prints(tmp_path: Path) -> None:
    source = """
    int puts(const char *);
    int one(int a) __asm__("_Z3runi"), other(double a) __asm__("_Z3rund"), alone(int a) __asm__("_Z4soloi");
    int one(int a) { return puts("a") + a; }
    int other(double a) { return puts("b") + (int)a; }
    int alone(int a) { return puts("c") + a; }
    int main(int c, char **v) { return one(c) + other(c) + alone(c); }
    """
    file = tmp_path / "program"
    command = ["gcc", "-O1", "-fcf-protection=none", "-Wl,-z,lazy", "-x", "c", "-", "-o", str(file)]
    subprocess.run(command, input=source.encode(), check=True)
    names = set(read(file).names)
    assert {"run(int)", "run(double)", "solo", ".plt", "puts@plt"} <= names
    assert "" not in names
