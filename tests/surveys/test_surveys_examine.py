"""What a survey has of one file: against the verbs that tell the same, readelf, and files that compilers made."""

from __future__ import annotations

import platform
import random
import re
import subprocess
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from cli.hello import mixed
from corpus import corpus
from elfbuilder import ElfBuilder
from peers import run
from sframefiles import written
from walkback import WalkbackError, add, check, compare, derive, size, verify
from walkback.elf import ElfFile, is_archive, read_file
from walkback.surveys import layout
from walkback.surveys.columns import packed, plain_text, unpacked
from walkback.surveys.examine import LISTED, examine
from walkback.table.verdict import Verdict

MACHINE_FILES = [
    Path(name) for name in ("/bin/ls", "/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6")
]
PROGRAM = (
    "int fun (int *); int main (int argc, char **v) { int a[argc]; return fun (a); } int fun (int *a) { return *a; }"
)


def rows_of(path: Path | memoryview, **how: Any) -> dict[str, list[dict[str, Any]]]:
    data = read_file(path) if isinstance(path, Path) else path
    found = examine(data, "c0", debug_roots=(), **how)
    assert set(found) == set(layout.KEYED)
    named = {
        table: [dict(zip(layout.COLUMNS[table], row, strict=True)) for row in rows] for table, rows in found.items()
    }
    assert all(row["content"] == "c0" for rows in named.values() for row in rows)
    return named


def file_of(path: Path | memoryview, **how: Any) -> dict[str, Any]:
    (row,) = rows_of(path, **how)["files"]
    return row


def compiled(folder: Path, name: str, *options: str) -> Path:
    source = folder / "program.c"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", *options, "-o", folder / name, source], check=True)
    return folder / name


def plain_files() -> list[Path]:
    found = [one.path for one in corpus() if not is_archive(read_file(one.path))]
    return [*random.Random(1).sample(found, min(60, len(found))), *MACHINE_FILES]


def test_numbers_are_those_of_size() -> None:
    for path in plain_files():
        sizes, rows = size(path), rows_of(path)
        (file,) = rows["files"]
        for name in ("text_bytes", "eh_frame", "eh_frame_hdr", "debug_frame"):
            assert file[name] == getattr(sizes, name), (path, name)
        versions = {row["version"]: row for row in rows["versions"] if row["impossible"] is None}
        assert versions.keys() == sizes.versions.keys()
        for version, row in versions.items():
            one = sizes.versions[version]
            assert row["bytes"] == one.parts.total
            assert {name: row[name] for name in one.what_if} == one.what_if
            for name in ("functions", "covered", "entries", "rows"):
                assert row[name] == getattr(one, name)
            assert row["proved"] is True
        assert {row["version"] for row in rows["versions"] if row["impossible"]} == sizes.impossible.keys()
        if sizes.replacement is not None:
            replacement = asdict(sizes.replacement)
            assert {name: file[name] for name in replacement} == replacement
        assert len(rows["sframe"]) == (sizes.sframe is not None)
        for row in rows["sframe"]:
            assert (row["bytes"], row["functions"], row["rows"]) == (
                sizes.sframe.parts.total,
                sizes.sframe.functions,
                sizes.sframe.rows,
            )


@pytest.mark.parametrize(
    ("tables", "source", "described", "code"),
    [
        (None, ".eh_frame", {"cfi": 44}, 44),
        ("auto", ".eh_frame", {"cfi": 44, "code": 4099}, 4143),
        ("code", "code", {"code": 4134}, 4143),  # nothing shows that the other bytes are called
        ("go", None, {}, None),
    ],
)
def test_bytes_of_code_are_counted_by_what_describes_them(
    tmp_path: Path, tables: str | None, source: str | None, described: dict[str, int], code: int | None
) -> None:
    file = file_of(mixed(tmp_path), tables=tables)
    assert (file["source"], file["outcome"]) == (source, "measured" if described else "without")
    every = dict.fromkeys(layout.KINDS, 0 if described else None)
    assert {kind: file[f"from_{kind}"] for kind in layout.KINDS} == every | described
    assert file["code_bytes"] == code


def test_functions_without_cover_are_those_of_derive() -> None:
    for path in MACHINE_FILES:
        rows = rows_of(path)["functions"]
        for version in (1, 2, 3):
            told = [(row["address"], row["size"], row["message"]) for row in rows if row["version"] == version]
            derived = derive(ElfFile(path), version=version)
            assert told == [(one.start, one.size, one.reason) for one in derived.uncovered]
        assert all(re.fullmatch("[a-z-]+", row["code"]) for row in rows)


def test_what_is_found_in_sframe_is_what_check_and_compare_tell() -> None:
    seen: Counter[Any] = Counter()
    for path in plain_files():
        for row in rows_of(path)["sframe"]:
            reports = list(check(path, limit=LISTED))
            assert row["findings"] == sum(len(one.findings) + sum(one.unlisted.values()) for one in reports)
            assert row["error"] is None
            seen["findings"] += row["findings"] > 0
            for pair in compare(path) if row["equal_bytes"] is not None else ():
                seen["pairs"] += 1
                assert row["equal_bytes"] == pair.comparison.code_bytes(Verdict.EQUAL)
                assert row["different_bytes"] == pair.comparison.code_bytes(Verdict.DIFFERENT)
                assert row["only_frames_bytes"] == pair.comparison.code_bytes(Verdict.ONLY_ONE)
                assert row["only_sframe_bytes"] == pair.comparison.code_bytes(Verdict.ONLY_OTHER)
    assert min(seen["findings"], seen["pairs"]) > 10


@pytest.mark.peers
@pytest.mark.parametrize("path", MACHINE_FILES, ids=lambda path: path.name)
def test_frame_pointers_are_counted_as_readelf_shows_them(path: Path) -> None:
    text = run("readelf-new", "--debug-dump=frames-interp", "--wide", path).stdout.decode()
    based = saved = functions = 0
    for entry in re.split(r"\n(?=[0-9a-f]{8} )", text):
        head, _, rest = entry.partition("\n")
        if " FDE " not in head:
            continue
        functions += 1
        lines = [line.split() for line in rest.splitlines() if line.strip()]
        if not lines:  # all that holds is what its CIE says
            continue
        title, *lines = lines
        column = title.index("rbp") if "rbp" in title else None
        based += any(line[1].startswith("rbp+") for line in lines)
        saved += column is not None and any(line[column].startswith(("c-", "exp")) for line in lines)
    file = file_of(path)
    assert functions - file["dead"] - file["empty"] - file["shadowed"] == file["functions"]
    assert (file["fp_functions"], file["fp_saved"]) == (based, saved)
    assert based > 0


def test_kinds_are_told_apart(tmp_path: Path) -> None:
    made: dict[str, list[tuple[str, ...]]] = {
        "program": [(), ("-no-pie",), ("-static",), ("-static-pie",)],
        "library": [("-shared", "-fPIC")],
        "object": [("-c",)],
    }
    for kind, ways in made.items():
        for number, options in enumerate(ways):
            assert file_of(compiled(tmp_path, f"{kind}{number}", *options))["kind"] == kind, options
    assert file_of(MACHINE_FILES[1])["kind"] == "library"  # which can be started like a program
    module = ElfBuilder(kind=1)
    module.section(".modinfo", b"license=GPL\0")
    assert file_of(written(tmp_path, module, "module.ko"))["kind"] == "module"


def test_the_frame_pointer_of_one_function(tmp_path: Path) -> None:
    """`main` has an array whose size is not known, so its CFA must count from the frame pointer."""
    file = file_of(compiled(tmp_path, "kept.o", "-c", "-O0", "-fno-omit-frame-pointer"))
    assert (file["functions"], file["fp_functions"], file["fp_saved"]) == (2, 2, 2)
    assert 0 < file["fp_bytes"] < file["code_bytes"]
    file = file_of(compiled(tmp_path, "free.o", "-c", "-O0", "-fomit-frame-pointer"))
    assert (file["functions"], file["fp_functions"], file["fp_saved"]) == (2, 1, 1)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an assembler for AMD64")
def test_a_function_that_realigns_its_stack_counts_from_the_frame_pointer(tmp_path: Path) -> None:
    """As GCC has it where a variable needs more alignment: the CFA is stored below the frame pointer."""
    source = tmp_path / "realigned.c"
    text = "int g (void *, void *); int f (int n) { _Alignas (64) char a[64], b[n]; return g (a, b) + 1; }"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-c", "-o", tmp_path / "realigned.o", source], check=True)
    file = file_of(tmp_path / "realigned.o")
    assert (file["functions"], file["fp_functions"]) == (1, 1)


def test_debug_files_hold_nothing_of_their_own(tmp_path: Path) -> None:
    program = compiled(tmp_path, "program", "-g")
    debug = tmp_path / "program.debug"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    assert file_of(program)["outcome"] == "measured"
    file = file_of(debug)
    assert (file["outcome"], file["kind"], file["functions"]) == ("debug", "program", None)
    assert file["build_id"] == file_of(program)["build_id"]


def test_what_cannot_be_measured_says_why(tmp_path: Path) -> None:
    program = bytearray(compiled(tmp_path, "program").read_bytes())
    riscv = program.copy()
    riscv[18:20] = (243).to_bytes(2, "little")
    file = file_of(memoryview(riscv))
    assert (file["outcome"], file["machine"], file["functions"]) == ("machine", "EM_243", None)
    assert file["eh_frame"] > 0
    narrow = program.copy()
    narrow[4] = 1
    assert file_of(memoryview(narrow))["outcome"] == "32-bit"
    cut = file_of(memoryview(program[: len(program) // 2]))
    assert cut["outcome"] == "error"
    assert "reach beyond the end of the file" in cut["error"]
    assert file_of(memoryview(program[:30]))["outcome"] == "error"
    bare = tmp_path / "bare"
    subprocess.run(["objcopy", "-R", ".eh_frame", "-R", ".eh_frame_hdr", tmp_path / "program", bare], check=True)
    assert file_of(bare)["outcome"] == "without"


def test_a_broken_section_does_not_hide_what_else_there_is() -> None:
    path = next(one.path for one in corpus() if one.path.name == "program.so" and one.arch == "amd64")
    data = bytearray(path.read_bytes())
    elf = ElfFile(path)
    header = elf.sections[elf.sections_named(".sframe")[0]]
    data[int(header["offset"])] ^= 0xFF
    rows = rows_of(memoryview(data))
    assert rows["files"][0]["outcome"] == "measured"
    assert rows["sframe"][0]["error"].startswith(".sframe+0x0: the magic number")
    assert rows["sframe"][0]["severity"] == "broken"
    assert {row["version"] for row in rows["versions"]} == {1, 2, 3}
    assert "header-magic" in [row["code"] for row in rows["functions"] if row["about"] == "finding"]


def test_different_rules_have_rows() -> None:
    path = next(one.path for one in corpus() if one.path.name == "program.so" and one.arch == "amd64")
    data = bytearray(path.read_bytes())
    elf = ElfFile(path)
    header = elf.sections[elf.sections_named(".sframe")[0]]
    data[int(header["offset"]) + int(header["size"]) - 1] ^= 0x10  # the last data word
    rows = rows_of(memoryview(data))
    assert rows["sframe"][0]["different_bytes"] > 0
    different = [row for row in rows["functions"] if row["about"] == "different"]
    assert sum(row["size"] for row in different) == rows["sframe"][0]["different_bytes"]
    assert all(" | " in row["message"] for row in different)


def test_damaged_files_are_rows_and_never_errors(tmp_path: Path) -> None:
    chance = random.Random(7)
    seeds = [path.read_bytes() for path in (*chance.sample(plain_files()[:-3], 8), compiled(tmp_path, "program", "-g"))]
    outcomes: Counter[Any] = Counter()
    for _ in range(600):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 9)):
            where = chance.choice((64, len(data)))
            data[chance.randrange(where)] = chance.choice((0, 0xFF, chance.randrange(256)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        outcomes[file_of(memoryview(data))["outcome"]] += 1
    assert outcomes.keys() <= layout.OUTCOMES.keys()
    assert min(outcomes["error"], outcomes["measured"]) > 50


def test_names_that_are_no_text_can_be_written() -> None:
    path = next(one.path for one in corpus() if one.path.name == "program.so" and one.arch == "amd64")
    data = path.read_bytes().replace(b"GCC: (", b"G\xff\xfe: (")
    for columns in unpacked(packed(examine(memoryview(data), "c0", debug_roots=()))).values():
        for column in columns.values():
            str(column.tolist()).encode()
    assert plain_text("gr\u00fc\u00df \udcff \ud800") == "gr\u00fc\u00df \\xff \\ud800"


def test_measuring_fails_where_the_row_has_an_error(tmp_path: Path) -> None:
    program = compiled(tmp_path, "program").read_bytes()
    (tmp_path / "cut").write_bytes(program[: len(program) // 2])
    with pytest.raises(WalkbackError) as told:
        size(tmp_path / "cut")
    assert file_of(tmp_path / "cut")["error"] in str(told.value)


def test_tables_are_proved_where_that_is_wanted(tmp_path: Path) -> None:
    text = ".text; .globl f; f: .cfi_startproc; push %rbx; xor %ebx,%ebx; pop %rbx; ret; .cfi_endproc; .size f,.-f"
    path = tmp_path / "wrong.o"
    subprocess.run(["as", "-o", path, "-"], input=text.replace(";", "\n").encode(), check=True)
    assert rows_of(path)["proofs"] == []
    found = examine(read_file(path), "c0", debug_roots=(), verify=True)
    [proof] = [dict(zip(layout.COLUMNS["proofs"], row, strict=True)) for row in found["proofs"]]
    assert {name: proof[name] for name in ("source", "functions", "functions_wrong", "bytes", "proved", "wrong")} == {
        "source": ".eh_frame", "functions": 1, "functions_wrong": 1, "bytes": 5, "proved": 2, "wrong": 3,
    }  # fmt: skip
    rows = [dict(zip(layout.COLUMNS["functions"], row, strict=True)) for row in found["functions"]]
    [wrong] = [row for row in rows if row["about"] == "wrong"]
    assert (wrong["code"], wrong["message"]) == (
        "push-without-rule",
        "the table has the CFA at rsp+8, the code rsp+16",
    )
    assert (wrong["section"], wrong["address"], wrong["size"], wrong["name"]) == (".text", 1, 3, "f")
    add(path)
    found = examine(read_file(path), "c0", debug_roots=(), verify=True)
    assert len(found["proofs"]) == 2
    assert [row[1] for row in found["functions"]].count("wrong") == 1


@pytest.mark.whole
def test_the_patterns_of_all_wrong_functions_add_up(tmp_path: Path) -> None:
    lines = [".text"]
    for number in range(LISTED + 30):
        wrong = "pop %rbx" if number % 3 else ".cfi_def_cfa_offset 16; pop %rbx"
        body = f"push %rbx; nop; {wrong}; ret"
        lines.append(
            f"f{number}: .cfi_startproc; {body}; .cfi_endproc; .type f{number},@function; .size f{number},.-f{number}"
        )
    path = tmp_path / "wrong.o"
    subprocess.run(["as", "-o", path, "-"], input="\n".join(lines).replace(";", "\n").encode(), check=True)
    [verified] = verify(path)
    expected = Counter(one.pattern for one in verified.worst())
    assert len(expected) > 1
    for _ in range(2):
        found = examine(read_file(path), "c0", debug_roots=(), verify=True)
        rows = [dict(zip(layout.COLUMNS["functions"], row, strict=True)) for row in found["functions"]]
        counted = Counter[str]()
        for row in rows:
            if row["about"] == "wrong":
                counted[row["code"]] += row["count"]
        assert counted == expected
        assert len(rows) <= LISTED + len(expected)
        assert sum(row["count"] for row in rows if row["count"] > 1) == 30
        add(path)  # a second table, which is wrong about the same functions
