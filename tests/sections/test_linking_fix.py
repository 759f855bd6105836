"""Every kind of damage that `fix` mends, made by real tools or put into a real program.

It is told, the section is right afterwards, the program still runs, and there is nothing left for a second `fix`.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from typing import TYPE_CHECKING

import pytest

from corpus import corpus
from grafting import linker_folder
from peers import run
from sections.joining import assembled, dumped, executed, expected, named, placed_sframe, sframe_of, symbols
from walkback import GraftError, IncompleteError, MissingError, SFrameError, check, convert, fix, link, sframe, split
from walkback.sections.linking.fix import Fixed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sections.joining import Rows

pytestmark = pytest.mark.peers

MAIN = """
int a_leaf(void), a_frame(void), a_own(void), b_leaf(void), b_frame(void), b_own(void);
int main(void) { a_leaf(); a_frame(); a_own(); b_leaf(); b_frame(); b_own(); return 42; }
"""
CONCATENATED = "2 complete sections follow each other, and readers see the first"
UNSORTED = "the functions are not marked as sorted"
NO_SEGMENT = "there is no PT_GNU_SFRAME"
UNMARKED = "starts count from their own fields, and nothing says so: the linker did not know SFrame"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def program(folder: Path, linker: str, producers: tuple[str, str], *options: str, parted: bool = False) -> Path:
    """A program that calls the functions of two objects and exits with status 42."""
    path = folder / "-".join(["program", linker, *producers, *[word.strip("-") for word in options], str(parted)])
    if path.exists():
        return path
    main = folder / "main.o"
    if not main.exists():
        (folder / "main.c").write_text(MAIN)
        subprocess.run(["gcc", "-O1", "-c", "-o", main, folder / "main.c"], check=True)
    objects = [assembled(letter, producer) for letter, producer in zip("ab", producers, strict=True)]
    if parted:
        for letter, whole in zip("ab", objects, strict=True):
            split(whole, folder / f"{letter}.o")
        objects = [folder / "a.o", folder / "b.o"]
    command: list[str | Path] = [
        "gcc",
        f"-B{linker_folder(folder, linker)}",
        "-fno-use-linker-plugin",
        *options,
        "-o",
        path,
        main,
    ]
    subprocess.run([*command, *objects], check=True, capture_output=True)
    return path


def plain(functions: dict[str, Rows]) -> dict[str, list[tuple[int, str, str]]]:
    """readelf 2.40 prints the fixed return address in another way."""
    return {name: [row[:3] for row in rows] for name, rows in functions.items()}


def mended(path: Path, output: Path, names: Path | None = None, *, sections: bool = True) -> Fixed:
    """Fixes a copy and proves the result; `names` has the symbols if the file has none.

    readelf finds nothing in a file without section headers.
    """
    shutil.copy(path, output)
    fixed = fix(output)
    assert fixed.changed
    assert executed(output).returncode == 42
    if sections:
        found = dumped(output, "readelf-2.40" if fixed.version == 1 else "readelf-new")
        starts = [start for start, _ in found]
        assert starts == sorted(set(starts))
        names_of = {value: name for name, (_, value) in symbols(names or output).items() if name in expected("ab")}
        told = {names_of[start]: rows for start, rows in found if start in names_of}
        assert plain(told) == plain(expected("ab"))
    assert findings(output) <= {"plt-got-row"}
    before = output.read_bytes()
    again = fix(output)
    assert again.problems == []
    assert not again.changed
    assert output.read_bytes() == before
    again = fix(output, output.with_suffix(".copy"))
    assert not again.changed
    assert output.with_suffix(".copy").read_bytes() == before
    return fixed


NATURAL = [
    # linker, assemblers, options, what is told
    ("ld.lld", ("new", "new"), (), [CONCATENATED, UNSORTED, NO_SEGMENT]),
    ("ld.lld", ("llvm", "new"), (), [CONCATENATED, "there are versions 2 and 3", UNSORTED, NO_SEGMENT]),
    ("ld.lld", ("2.40", "2.44"), (), [CONCATENATED, "there are versions 1 and 2", UNMARKED, UNSORTED, NO_SEGMENT]),
    ("gold-2.40", ("2.40", "2.40"), (), [CONCATENATED, UNMARKED, UNSORTED, NO_SEGMENT]),
    ("gold-2.44", ("2.44", "2.44"), (), [CONCATENATED, UNMARKED, UNSORTED, NO_SEGMENT]),
    ("gold-2.44", ("new", "new"), ("-no-pie",), [CONCATENATED, UNSORTED, NO_SEGMENT]),
    ("gold-2.44", ("new", "2.44"), (), ["there are 2 .sframe sections, and readers know of one", UNMARKED, UNSORTED]),
    ("ld-2.44", ("2.44", "2.44"), (), ["PT_GNU_SFRAME has 0x"]),
    ("ld-2.40", ("2.40", "2.40"), (), ["PT_GNU_SFRAME has 0x"]),
    ("ld-new", ("new", "new"), (), ["PT_GNU_SFRAME has 0x"]),
    ("ld-new", ("new", "new"), ("-no-pie", "-static"), ["PT_GNU_SFRAME has 0x"]),
    ("ld.lld", ("new", "new"), ("-Wl,--emit-relocs",), [CONCATENATED]),
]


@pytest.mark.parametrize(("linker", "producers", "options", "told"), NATURAL)
def test_what_linkers_leave_is_told_and_mended(
    linker: str, producers: tuple[str, str], options: tuple[str, ...], told: list[str], folder: Path, tmp_path: Path
) -> None:
    path = program(folder, linker, producers, *options)
    assert executed(path).returncode == 42
    fixed = mended(path, tmp_path / "fixed")
    for words in told:
        assert any(problem.startswith(words) for problem in fixed.problems), fixed.problems


def test_the_flag_of_split_sections_goes(folder: Path, tmp_path: Path) -> None:
    path = program(folder, "ld.lld", ("new", "new"), parted=True)
    fixed = mended(path, tmp_path / "fixed")
    assert "the section still has SHF_LINK_ORDER" in fixed.problems
    [line] = [
        line for line in run("readelf-new", "-SW", tmp_path / "fixed").stdout.decode().splitlines() if ".sframe" in line
    ]
    assert " A " in line


@pytest.mark.parametrize("producer", ["2.44", "new"])
def test_relocations_that_say_something_else_go(producer: str, tmp_path: Path) -> None:
    """GNU ld sorts the functions, and leaves the relocations as they were."""
    beside = {one.path.name: one.path for one in corpus() if (one.producer, one.arch) == (producer, "amd64")}
    output = tmp_path / "fixed"
    fixed = fix(beside["program-emit-relocs.so"], output)
    assert "the relocations that the linker kept say something else than the fields" in fixed.problems
    assert "the relocations that the linker kept for .sframe no longer fit, and are gone" in fixed.notes
    assert named(output) == named(beside["program.so"])
    listing = run("readelf-new", "-SW", output, check=True).stdout.decode()
    assert ".rela.text" in listing
    assert ".rela.sframe" not in listing
    assert not fix(output).changed


def section_header(path: Path, data: bytes | bytearray) -> int:
    """Where the header of .sframe stands, by readelf."""
    listing = run("readelf-new", "-SW", path, check=True).stdout.decode()
    [number] = [line.split("]")[0].strip(" [") for line in listing.splitlines() if "] .sframe" in line]
    start: int = struct.unpack_from("<Q", data, 40)[0]
    return start + 64 * int(number)


def segment_header(data: bytes | bytearray) -> int:
    """Where the program header of type PT_GNU_SFRAME stands."""
    table, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    [found] = [at for at in range(table, table + 56 * count, 56) if struct.unpack_from("<I", data, at)[0] == 0x6474E554]
    return found


def wrong_type(path: Path, data: bytearray) -> None:
    struct.pack_into("<I", data, section_header(path, data) + 4, 1)


def unknown_type(path: Path, data: bytearray) -> None:
    struct.pack_into("<I", data, section_header(path, data) + 4, 0xB7)


def wrong_flags(path: Path, data: bytearray) -> None:
    struct.pack_into("<Q", data, section_header(path, data) + 8, 2 | 1 | 4)


def no_segment(path: Path, data: bytearray) -> None:
    struct.pack_into("<I", data, segment_header(data), 0)


def moved_segment(path: Path, data: bytearray) -> None:
    at = segment_header(data)
    struct.pack_into("<Q", data, at + 16, struct.unpack_from("<Q", data, at + 16)[0] + 8)


def not_marked_as_sorted(path: Path, data: bytearray) -> None:
    data[data.index(b"\xe2\xde\x03") + 3] &= ~1


def entries(path: Path, data: bytearray) -> tuple[int, list[list[int]]]:
    """Where the index of a version 3 section stands, and its entries with starts whatever their place."""
    _, contents = placed_sframe(path)
    position = bytes(data).index(contents)
    count, index = struct.unpack_from("<I", contents, 8)[0], 28 + struct.unpack_from("<I", contents, 20)[0]
    found = [list(struct.unpack_from("<qII", contents, index + 16 * number)) for number in range(count)]
    for number, entry in enumerate(found):
        entry[0] += 16 * number
    return position + index, found


def written(data: bytearray, index: int, found: list[list[int]]) -> None:
    for number, (start, size, rows) in enumerate(found):
        struct.pack_into("<qII", data, index + 16 * number, start - 16 * number, size, rows)


def reversed_index(path: Path, data: bytearray) -> None:
    index, found = entries(path, data)
    written(data, index, found[::-1])


def reversed_index_and_not_marked(path: Path, data: bytearray) -> None:
    reversed_index(path, data)
    not_marked_as_sorted(path, data)


def dead_function(path: Path, data: bytearray) -> None:
    """A start field without a value means itself. The function that loses its data is not one that is asked for."""
    index, found = entries(path, data)
    [number] = [number for number, entry in enumerate(found) if entry[1] == PLT0_SIZE][:1]
    struct.pack_into("<q", data, index + 16 * number, 0)


PLT0_SIZE = 16


def duplicate_function(path: Path, data: bytearray) -> None:
    index, found = entries(path, data)
    [number] = [number for number, entry in enumerate(found) if entry[1] == PLT0_SIZE][:1]
    other = next(number for number, entry in enumerate(found) if entry[1] != PLT0_SIZE)
    found[number] = list(found[other])
    written(data, index, found)


def size_beyond_the_code(path: Path, data: bytearray) -> None:
    index, found = entries(path, data)
    [number] = [number for number, entry in enumerate(found) if entry[1] == PLT0_SIZE][:1]
    struct.pack_into("<I", data, index + 16 * number + 8, 0x100000)


def wrong_count_of_rows(path: Path, data: bytearray) -> None:
    at = bytes(data).index(placed_sframe(path)[1]) + 12
    struct.pack_into("<I", data, at, struct.unpack_from("<I", data, at)[0] + 3)


PATCHED = [
    (wrong_type, "the section has type SHT_PROGBITS"),
    (unknown_type, "the section has type 0xb7"),
    (wrong_flags, "the section has flags 0x7 instead of SHF_ALLOC"),
    (no_segment, NO_SEGMENT),
    (moved_segment, "PT_GNU_SFRAME is at"),
    (not_marked_as_sorted, UNSORTED),
    (reversed_index, "the functions are marked as sorted and are not"),
    (reversed_index_and_not_marked, UNSORTED),
    (dead_function, "1 function"),
    (duplicate_function, "1 "),
    (size_beyond_the_code, "functions beginning inside another"),
    (wrong_count_of_rows, "the header counts"),
]


@pytest.mark.parametrize(("damage", "told"), PATCHED, ids=[damage.__name__ for damage, _ in PATCHED])
def test_damage_put_into_a_program_is_told_and_mended(
    damage: Callable[[Path, bytearray], None], told: str, folder: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    shutil.copy(program(folder, "ld-new", ("new", "new"), "-Wl,-z,lazy"), whole)
    fix(whole)
    data = bytearray(whole.read_bytes())
    damage(whole, data)
    assert data != whole.read_bytes()
    path = tmp_path / "damaged"
    path.write_bytes(data)
    path.chmod(0o755)
    assert executed(path).returncode == 42
    fixed = mended(path, tmp_path / "fixed")
    assert any(told in problem for problem in fixed.problems), fixed.problems
    if damage not in {dead_function, duplicate_function, size_beyond_the_code}:
        assert dumped(tmp_path / "fixed") == dumped(whole)


@pytest.mark.parametrize(
    ("strip", "told"),
    [(("strip-new", "--strip-section-headers"), 0), (("llvm-strip", "--strip-sections"), 1)],
    ids=["strip-new", "llvm-strip"],
)
def test_a_file_without_section_headers_is_mended(
    strip: tuple[str, str], told: int, folder: Path, tmp_path: Path
) -> None:
    """GNU strip mends the size of the segment by itself."""
    path, stripped, output = program(folder, "ld-new", ("new", "new")), tmp_path / "stripped", tmp_path / "fixed"
    run(strip[0], strip[1], "-o", stripped, path, check=True)
    if told:
        fixed = mended(stripped, output, sections=False)
        assert [problem[:20] for problem in fixed.problems] == ["PT_GNU_SFRAME has 0x"]
    else:
        assert not fix(stripped, output).changed
    assert functions(output) == functions(path)
    headers = run("readelf-new", "-lW", output, check=True).stdout.decode()
    [segment] = [line.split() for line in headers.splitlines() if line.split()[:1] == ["GNU_SFRAME"]]
    assert int(segment[4], 16) == int(segment[5], 16) == len(sframe_of(path))


def functions(path: Path) -> list[int]:
    """Where they start, by walkback, since readelf needs section headers."""
    [source] = sframe.read(path)
    [piece] = source.pieces()
    starts: list[int] = piece.table.range_start.tolist()
    return starts


def test_a_section_of_zeros_is_refused(folder: Path, tmp_path: Path) -> None:
    """As objcopy --remove-section, and linkers that threw its contents away, can leave it."""
    path, output = program(folder, "ld-new", ("new", "new")), tmp_path / "output"
    contents, data = sframe_of(path), path.read_bytes()
    zeros = tmp_path / "zeros"
    zeros.write_bytes(data.replace(contents, bytes(len(contents))))
    for work in (lambda: fix(zeros, output), lambda: link([zeros], output), lambda: convert(zeros, output, version=2)):
        with pytest.raises(SFrameError, match="the magic number is 00 00"):
            work()
        assert not output.exists()


def test_stripped_programs_are_mended(folder: Path, tmp_path: Path) -> None:
    path, stripped = program(folder, "ld.lld", ("new", "new")), tmp_path / "stripped"
    run("strip-new", "-o", stripped, path, check=True)
    mended(stripped, tmp_path / "fixed", names=path)


def test_a_file_with_nothing_wrong_is_left_alone(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "program"
    shutil.copy(program(folder, "mold", ("new", "new")), path)
    before, inode = path.read_bytes(), path.stat().st_ino
    fixed = fix(path)
    assert (fixed.problems, fixed.changed) == ([], False)
    assert path.read_bytes() == before
    assert path.stat().st_ino == inode


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_version_can_be_asked_for(version: int, folder: Path, tmp_path: Path) -> None:
    path, output = program(folder, "ld.lld", ("new", "new")), tmp_path / "fixed"
    fixed = fix(path, output, version=version)
    assert fixed.version == version
    assert executed(output).returncode == 42
    readelf = "readelf-2.40" if version == 1 else "readelf-new"
    assert plain(dict(named(output, readelf))) == plain(expected("ab"))


def test_objects_and_files_without_a_section_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GraftError, match=r"`walkback link -r` is for those"):
        fix(assembled("a", "new"), tmp_path / "fixed")
    source = tmp_path / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-o", tmp_path / "program", source], check=True)
    with pytest.raises(MissingError, match=r"there is no \.sframe section"):
        fix(tmp_path / "program", tmp_path / "fixed")
    assert not (tmp_path / "fixed").exists()


def test_every_third_linked_sample_of_the_corpus_is_right_after_fix(tmp_path: Path) -> None:
    linked = [one for one in corpus() if one.kind in {"shared", "executable", "lld"} and "-r.o" not in one.path.name]
    for one in linked[::3]:
        output = tmp_path / "fixed"
        try:
            fix(one.path, output)
        except MissingError:
            assert placed_sframe(one.path)[1] == b"", one.path
            continue
        except IncompleteError as error:
            [lost] = error.left_out
            assert (one.producer, lost.reason) == ("llvm", "the rows are not in order")
            continue
        before = output.read_bytes()
        again = fix(output)
        assert (again.problems, output.read_bytes() == before) == ([], True), one.path
        assert findings(output) <= findings(one.path), one.path


def findings(path: Path) -> set[str]:
    return {finding.code for report in check(path) for finding in report.findings}
