"""Sections converted to another version say the same to everybody: linkers, readelf, libsframe, running programs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from corpus import PREFIXES, Sample, corpus, gas_object
from peers import run
from sections.joining import (
    assembled,
    executed,
    expected,
    header_of,
    link_with,
    named,
    sframe_of,
    symbols,
    told_by,
)
from walkback import IncompleteError, InexpressibleError, WalkbackError, check, convert, sframe

pytestmark = pytest.mark.peers

KNOWS = {"2.40": "ld-2.40", "2.44": "ld-2.44", "llvm": "ld.lld", "new": "ld-new"}
OBJECTS = ("plain.c-O2.o", "shapes.cc-O2.o", "calls.c-O2.o", "large.c-O0.o")
PCREL = 4


def sample(name: str, producer: str, arch: str = "amd64") -> Sample:
    [found] = [one for one in corpus() if (one.path.name, one.producer, one.arch) == (name, producer, arch)]
    return found


def linked_by(arch: str, linker: str, output: Path, *inputs: Path) -> str:
    return link_with(linker if linker == "ld.lld" else PREFIXES[arch] + linker, output, "-shared", *inputs)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    ("arch", "producer"),
    [("amd64", "2.40"), ("amd64", "2.44"), ("amd64", "llvm"), ("aarch64", "2.40"), ("aarch64", "2.44")],
)
def test_the_newest_ld_keeps_all_functions_of_a_converted_object(
    arch: str, producer: str, name: str, tmp_path: Path
) -> None:
    source = sample(name, producer, arch).path
    former, converted = tmp_path / "former.so", tmp_path / "converted.o"
    linked_by(arch, KNOWS[producer], former, source)
    told = named(former, "readelf-2.40" if producer == "2.40" else "readelf-new")
    result = convert(source, converted, version=3)
    assert result.left_out == []
    assert result.functions == len(told)
    assert header_of(converted) == (3, PCREL)
    assert "sframe" not in linked_by(arch, "ld-new", tmp_path / "converted.so", converted)
    new = named(tmp_path / "converted.so")
    assert [one for one, _ in new] == [one for one, _ in told]
    if producer == "2.40" and arch == "amd64":  # this readelf prints the fixed return address in another way
        assert [[row[:3] for row in rows] for _, rows in new] == [[row[:3] for row in rows] for _, rows in told]
    else:
        assert new == told


@pytest.mark.parametrize("producer", ["2.40", "2.44", "llvm"])
def test_an_archive_of_converted_objects_links(producer: str, tmp_path: Path) -> None:
    archive, output = tmp_path / "lib.a", tmp_path / "converted.a"
    run("ar-new", "rcs", archive, *[assembled(letter, producer) for letter in "abc"], check=True)
    convert(archive, output, version=3)
    assert run("ar-new", "t", output, check=True).stdout == run("ar-new", "t", archive, check=True).stdout
    names = [word for letter in "abc" for word in ("-u", f"{letter}_leaf")]
    assert link_with("ld-new", tmp_path / "linked.so", "-shared", *names, output) == ""
    assert told_by(tmp_path / "linked.so") == expected("abc")


def test_the_byte_order_of_a_file_is_not_changed(tmp_path: Path) -> None:
    with pytest.raises(InexpressibleError, match="the byte order of an ELF file is that of its machine"):
        convert(assembled("a", "new"), tmp_path / "a.o", version=3, byteorder="big")
    assert not (tmp_path / "a.o").exists()


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dynamic program with a section, of the newest linker."""
    from grafting import linker_folder

    folder = tmp_path_factory.mktemp("program")
    path, source = folder / "program", folder / "main.c"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\n__attribute__((noinline)) int frame(int n) { char a[600]; "
        'memset(a, n, 600); asm("" :: "r"(a) : "memory"); return a[n]; }\n'
        'int main(void) { puts("runs"); return frame(42); }\n'
    )
    text = subprocess.run(
        ["gcc", "-O1", "-fPIE", "-S", "-o", "-", source], capture_output=True, check=True, text=True
    ).stdout
    command: list[str | Path] = ["gcc", f"-B{linker_folder(folder, 'ld-new')}", "-o", path, gas_object(text)]
    subprocess.run(command, check=True)
    return path


def sframe_headers(path: Path) -> tuple[str, int, int, int, int]:
    """Type, address and size of the section, address and size of its segment, by readelf, which has no complaint."""
    done = run("readelf-new", "-lSW", path, check=True)
    assert done.stderr == b"", done.stderr
    [section] = [line.split("]")[1].split() for line in done.stdout.decode().splitlines() if "] .sframe" in line]
    [segment] = [line.split() for line in done.stdout.decode().splitlines() if line.split()[:1] == ["GNU_SFRAME"]]
    return section[1], int(section[2], 16), int(section[4], 16), int(segment[2], 16), int(segment[5], 16)


def test_a_program_converted_in_place_runs_and_has_right_headers(program: Path, tmp_path: Path) -> None:
    path = tmp_path / "converted"
    path.write_bytes(program.read_bytes())
    path.chmod(0o755)
    told = named(path)
    for version, kind in ((2, "GNU_SFRAME"), (1, "PROGBITS"), (2, "GNU_SFRAME"), (3, "GNU_SFRAME"), (1, "PROGBITS")):
        # Version 1 cannot say the blocks of .plt.got.
        assert len(convert(path, version=version, leave_out=True).left_out) <= (version == 1)
        done = executed(path)
        assert (done.returncode, done.stdout) == (42, b"runs\n")
        assert header_of(path)[0] == version
        found, address, size, segment, segment_size = sframe_headers(path)
        assert found == kind
        assert (address, size) == (segment, segment_size)
        assert size == len(sframe_of(path))
        new = named(path, "readelf-2.40" if version == 1 else "readelf-new")
        assert [(name, [row[:3] for row in rows]) for name, rows in new] == [
            (name, [row[:3] for row in rows]) for name, rows in told
        ]
    convert(path, version=3)
    assert named(path) == told
    assert executed(path).returncode == 42


def test_version_2_without_errata_1_has_the_type_from_before(program: Path, tmp_path: Path) -> None:
    convert(program, tmp_path / "program", version=2, pcrel=False)
    assert sframe_headers(tmp_path / "program")[0] == "PROGBITS"
    assert named(tmp_path / "program") == named(program)
    assert executed(tmp_path / "program").returncode == 42


@pytest.mark.parametrize("version", [1, 2])
def test_a_library_converted_in_place_is_loaded(version: int, tmp_path: Path) -> None:
    from ctypes import CDLL

    path = tmp_path / "libcalls.so"
    path.write_bytes(sample("libcalls.so", "new").path.read_bytes())
    convert(path, version=version)
    assert CDLL(str(path)).bar(3) == 4 * 5


MANY = 70000
MANY_ROWS = f"""
	.text
	.globl many
	.type many,@function
many:	.cfi_startproc
	.set depth, 8
	.rept {MANY}
	.set depth, depth + 8
	nop
	.cfi_def_cfa_offset depth
	.endr
	ret
	.cfi_endproc
	.size many,.-many
	.globl behind
	.type behind,@function
behind:	.cfi_startproc
	ret
	.cfi_endproc
	.size behind,.-behind
"""


def test_a_function_of_more_rows_than_version_3_counts_is_split(tmp_path: Path) -> None:
    """Read by walkback alone: readelf takes a minute, because it walks through all rows to find one."""
    source = gas_object(MANY_ROWS, version="2.44")
    rows = [(0, "sp+8"), *((number, f"sp+{8 * number + 8}") for number in range(1, MANY + 1))]
    result = convert(source, tmp_path / "many.o", version=3)
    assert (result.functions, result.split) == (2, 1)
    link_with("ld.lld", tmp_path / "many.so", "-shared", tmp_path / "many.o")
    start, behind = (symbols(tmp_path / "many.so")[name][1] for name in ("many", "behind"))
    for path, version, parts in (("many.so", 3, 3), ("back.so", 2, 3)):
        if version == 2:
            convert(tmp_path / "many.so", tmp_path / path, version=2)
        [one] = sframe.read(tmp_path / path)
        [piece] = one.pieces()
        table = piece.table
        assert piece.section.version == version
        assert table.range_start.tolist()[:: parts - 1] == [start, behind]
        assert int(table.range_size.sum()) == MANY + 1 + 1
        cfa = table.rules["cfa"]["offset"][table.row_rule].tolist()
        owner = table.range_start.repeat(table.range_rows) - start
        places = (owner + table.row_offset).tolist()
        assert [(place, f"sp+{offset}") for place, offset in zip(places, cfa, strict=True)][:-1] == rows


@pytest.mark.parametrize("version", [1, 2])
def test_text_beyond_2_gib_is_refused_by_name_and_version_3_is_offered(version: int, tmp_path: Path) -> None:
    path, output = sample("far-text", "new").path, tmp_path / "converted"
    with pytest.raises(IncompleteError, match="version 3 reaches any distance") as caught:
        convert(path, output, version=version)
    assert [one.name for one in caught.value.left_out] == ["f1", "f2"]
    assert not output.exists()
    result = convert(path, output, version=version, leave_out=True)
    assert [one.name for one in result.left_out] == ["f1", "f2"]
    assert result.functions == 0
    assert header_of(output)[0] == version


SOME_FAR = """
	.text
	.globl near
near:	.cfi_startproc
	push %rax
	.cfi_def_cfa_offset 16
	ret
	.cfi_endproc
	.section .far,"ax",@progbits
	.globl far
far:	.cfi_startproc
	ret
	.cfi_endproc
"""
SOME_FAR_SCRIPT = """
SECTIONS { . = 0x400000; .sframe : { *(.sframe) } .text : { *(.text*) } . = 0x90000000; .far : { *(.far) }
/DISCARD/ : { *(.eh_frame) *(.note*) } }
"""


@pytest.mark.parametrize("version", [1, 2])
def test_only_functions_out_of_reach_are_left_out(version: int, tmp_path: Path) -> None:
    (tmp_path / "script").write_text(SOME_FAR_SCRIPT)
    path, output = tmp_path / "program", tmp_path / "converted"
    link_with("ld-new", path, "-e", "near", "-T", tmp_path / "script", gas_object(SOME_FAR))
    assert set(told_by(path)) == {"near", "far"}
    with pytest.raises(IncompleteError) as caught:
        convert(path, output, version=version)
    assert [one.name for one in caught.value.left_out] == ["far"]
    convert(path, output, version=version, leave_out=True)
    [(name, rows)] = named(output, "readelf-2.40" if version == 1 else "readelf-new")
    assert name == "near"
    assert [row[:3] for row in rows] == [(0, "sp+8", "u"), (1, "sp+16", "u")]


@pytest.mark.parametrize(("version", "lost"), [(1, {"sig", "sig2"}), (2, {"sig", "sig2"})])
def test_signal_frames_are_refused_by_name(version: int, lost: set[str], tmp_path: Path) -> None:
    path, output = sample("amd64-signal-frame.o", "new").path, tmp_path / "converted.o"
    with pytest.raises(IncompleteError) as caught:
        convert(path, output, version=version)
    assert {one.name for one in caught.value.left_out} == lost
    assert all("signal" in one.reason or "flex" in one.reason for one in caught.value.left_out)
    assert not output.exists()
    result = convert(path, output, version=version, leave_out=True)
    assert {one.name for one in result.left_out} == lost


def test_outermost_frames_are_refused_by_version_1_and_said_by_version_2(tmp_path: Path) -> None:
    path, output = sample("amd64-outermost.o", "new").path, tmp_path / "converted.o"
    with pytest.raises(IncompleteError) as caught:
        convert(path, output, version=1)
    assert {one.name for one in caught.value.left_out} == {"_start", "g"}
    assert not output.exists()
    convert(path, output, version=2)
    link_with("ld.lld", tmp_path / "converted.so", "-shared", output)
    told = run("readelf-new", "--sframe", tmp_path / "converted.so", check=True)
    assert told.stderr == b""
    assert told.stdout.count(b"RA undefined") == 2
    assert told.stdout.count(b"sp+") == 2


def test_flex_functions_are_refused_by_name_and_others_kept(tmp_path: Path) -> None:
    path, output = sample("amd64-flex-registers.o", "new").path, tmp_path / "converted.o"
    [source] = sframe.read(path)
    [piece] = source.pieces()
    names = source.function_names(piece.section)
    flex = {name for name, kind in zip(names, piece.section.functions.fde_type, strict=True) if kind}
    with pytest.raises(IncompleteError) as caught:
        convert(path, output, version=2)
    assert {one.name for one in caught.value.left_out} == flex
    convert(path, output, version=2, leave_out=True)
    [source] = sframe.read(output)
    [piece] = source.pieces()
    assert set(source.function_names(piece.section)) == set(names) - flex


def findings(path: Path) -> set[str]:
    return {finding.code for report in check(path) for finding in report.findings}


def test_every_tenth_sample_of_the_corpus_converts_or_says_why_not(tmp_path: Path) -> None:
    refused = []
    tried = 0
    for one in corpus()[::10]:
        for version in (1, 2, 3):
            output = tmp_path / "converted"
            try:
                convert(one.path, output, version=version)
            except WalkbackError as error:
                refused.append((one, version, error))
            else:
                tried += 1
                assert findings(output) <= findings(one.path), one.path
    assert tried > 40
    for one, version, reason in refused:
        known = (
            (isinstance(reason, IncompleteError) and reason.left_out)
            or (one.arch == "s390x" and version == 1)
            or (one.path.name == "thin.a" and "which holds no objects" in str(reason))
        )
        assert known, (one, version, reason)
