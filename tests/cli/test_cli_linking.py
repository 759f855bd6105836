"""`walkback convert`, `link`, `fix` and `split`: what they tell and write, as text and as JSON."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from cli.commands import on_a_terminal, told
from cli.commands import run as process
from cli.documented import undocumented
from cli.hello import snapshot
from cli.inprocess import run
from cli.linkable import SIGNAL, VERBS, given, incomplete, on, sections
from docfiles import concatenated, joined, with_a_group
from sframebuilder import PCREL, SFrameBuilder, row
from sframefiles import SFRAME, SIZE, TEXT, archive, linked, placing, relocatable, small, starts, written
from walkback import sframe

NOTHING = "nothing is written; --leave-out writes the rest"

if TYPE_CHECKING:
    from pathlib import Path

# What they tell


def test_convert_tells_versions_functions_and_sizes(tmp_path: Path) -> None:
    path, output = written(tmp_path, linked(small(2).bytes())), tmp_path / "output"
    done = run("convert", path, "-o", output, "--version", "3")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{path}: version 2 to 3: 3 functions, 12 rows, 133 bytes to 136\n"
    assert (sections(path), sections(output)) == ([(2, 3)], [(3, 3)])
    assert starts(output) == starts(path)
    again = run("convert", output, "--version", "3").stdout
    assert again == f"{output}: version 3: 3 functions, 12 rows, 136 bytes to 136\n"


def test_one_of_a_kind_is_not_plural(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small(functions=1).bytes()))
    text = run("convert", path, "--version", "2").stdout
    assert text.startswith(f"{path}: version 3 to 2: 1 function, 4 rows, ")


def test_link_tells_how_many_became_what_and_for_where(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()))
    raw = written(tmp_path, small(2, address=0x8000).bytes(), "raw")
    done = run("link", path, f"{raw}@0x8000", "-o", tmp_path / "s")
    assert (done.exit_code, done.stderr) == (0, "")
    first, note = done.stdout.splitlines()
    assert first == f"{tmp_path}/s: 2 sections, version 2 and 3 to 3: 3 functions, 12 rows, 136 bytes for 0x2000"
    assert note.startswith("  note: 3 ")
    done = run("link", path, "-o", tmp_path / "s", "--address", "0x70000", "--version", "2", "--pcrel", "no")
    assert done.stdout == f"{tmp_path}/s: 1 section, version 3 to 2: 3 functions, 12 rows, 133 bytes for 0x70000\n"
    assert run("check", tmp_path / "s").exit_code == 0
    assert "0x1020" in run("find", tmp_path / "s", "0x1025", "--address", "0x70000").stdout


def test_link_of_an_object_tells_no_address(tmp_path: Path) -> None:
    path, output = written(tmp_path, joined(), "joined.o"), tmp_path / "m.o"
    done = run("link", "-r", path, "-o", output)
    assert (done.exit_code, done.stdout) == (0, f"{output}: 2 sections, version 2: 3 functions, 12 rows, 133 bytes\n")
    assert (sections(path), sections(output)) == ([(2, 2), (2, 1)], [(2, 3)])
    assert starts(output) == [0, SIZE, 2 * SIZE]


def test_views_are_told_apart_by_their_pieces(tmp_path: Path) -> None:
    path = written(tmp_path, concatenated())
    for view, expected in (("execution", [(3, 3)]), ("linking", [(3, 2), (3, 1)])):
        assert run("link", path, "-o", tmp_path / view, "--view", view).exit_code == 0
        found = [piece for source in sframe.read(tmp_path / view, address=SFRAME) for piece in source.pieces()]
        assert [(one.section.version, len(one.section.functions)) for one in found] == expected
        assert [int(a) for one in found for a in one.section.code_address] == [TEXT, TEXT + SIZE, TEXT + 2 * SIZE]
    # The index can be made of the linking view.
    done = run("link", f"{tmp_path}/linking@{SFRAME:#x}", "-o", tmp_path / "again")
    assert done.exit_code == 0
    assert (tmp_path / "again").read_bytes() == (tmp_path / "execution").read_bytes()


def test_fix_tells_what_was_wrong_and_then_that_nothing_is(tmp_path: Path) -> None:
    path = written(tmp_path, concatenated())
    done = run("fix", path)
    assert (done.exit_code, done.stderr) == (0, "")
    *mended, last = [line for line in done.stdout.splitlines() if not line.startswith("  note: ")]
    assert mended == [
        f"{path}: fixed: 2 complete sections follow each other, and readers see the first",
        f"{path}: fixed: the functions are not marked as sorted",
        f"{path}: fixed: there is no PT_GNU_SFRAME",
    ]
    assert last == f"{path}: version 3: 3 functions, 12 rows, 136 bytes at {SFRAME:#x}"
    assert run("check", path).exit_code == 0
    fixed = path.read_bytes()
    done = run("fix", path)
    assert (done.exit_code, done.stdout) == (0, f"{path}: nothing to fix\n")
    assert path.read_bytes() == fixed


def test_a_file_without_section_headers_is_fixed(tmp_path: Path) -> None:
    for number, builder in enumerate((small(), small(flags=PCREL))):
        image = linked(builder.bytes()).build().header("e_shoff", 0).header("e_shnum", 0).header("e_shstrndx", 0)
        path = written(tmp_path, image, f"file{number}")
        text = run("fix", path).stdout
        assert text.startswith(f"{path}: {'fixed: the functions are not marked' if number else 'nothing to fix'}")
        assert run("check", path).exit_code == 0
        assert sections(path) == [(3, 3)]


def test_fix_copies_what_is_right(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()))
    done = run("fix", path, "-o", tmp_path / "copy")
    assert (done.exit_code, done.stdout) == (0, f"{path}: nothing to fix\n")
    assert (tmp_path / "copy").read_bytes() == path.read_bytes()


def test_fix_writes_another_version_of_what_is_right(tmp_path: Path) -> None:
    path = written(tmp_path, linked(small().bytes()))
    done = run("fix", path, "--version", "2")
    assert done.stdout == f"{path}: version 3 to 2: 3 functions, 12 rows, 133 bytes at 0x2000\n"
    assert sections(path) == [(2, 3)]


def test_split_tells_objects_sections_and_groups(tmp_path: Path) -> None:
    path, output = written(tmp_path, with_a_group(), "one.o"), tmp_path / "output"
    done = run("split", path, "-o", output)
    assert (done.exit_code, done.stdout) == (0, f"{path}: 1 object: 2 sections, 1 in groups, 2 functions\n")
    assert sections(output) == [(3, 1), (3, 1)]
    two = archive(tmp_path, "all.a", path, written(tmp_path, relocatable(small(2), placing(2)), "two.o"))
    assert run("split", two).stdout == f"{two}: 2 objects: 3 sections, 1 in groups, 5 functions\n"
    assert sections(two) == [(3, 1), (3, 1), (2, 3)]


def test_an_archive_is_converted_whole(tmp_path: Path) -> None:
    members = [written(tmp_path, relocatable(small(version), placing(version)), f"{version}.o") for version in (1, 2)]
    path = archive(tmp_path, "all.a", *members)
    assert run("convert", path, "--version", "3").stdout.startswith(f"{path}: version 1 and 2 to 3: 6 functions, ")
    assert sections(path) == [(3, 3), (3, 3)]


def test_raw_bytes_are_converted_in_either_byte_order(tmp_path: Path) -> None:
    path = written(tmp_path, small().bytes())
    assert run("convert", path, "--version", "2", "--byteorder", "big").exit_code == 0
    assert "stored big-endian" in run("show", path).stdout
    assert run("convert", path, "--version", "3", "--byteorder", "little").exit_code == 0
    assert run("convert", path, "--version", "3", "--pcrel", "yes").exit_code == 0
    (source,) = sframe.read(path, address=SFRAME)
    assert next(source.pieces()).section.code_address.tolist() == [TEXT, TEXT + SIZE, TEXT + 2 * SIZE]


@pytest.mark.whole
@pytest.mark.parametrize("verb", VERBS)
def test_a_terminal_and_a_pipe_have_the_same_text(tmp_path: Path, verb: str) -> None:
    path = given(verb, tmp_path)
    command = on(verb, path, output=tmp_path / "output")
    piped = process(*command).stdout
    assert on_a_terminal(*command).replace(b"\r\n", b"\n") == piped
    assert piped.endswith(b"\n")


# What a version cannot say


@pytest.mark.parametrize("verb", VERBS)
def test_what_cannot_be_said_is_listed_and_1_and_nothing_is_written(tmp_path: Path, verb: str) -> None:
    path = incomplete(verb, tmp_path)
    before = snapshot(tmp_path)
    for output in (None, tmp_path / "output"):
        done = run(*on(verb, path, "--version", "2", output=output))
        assert (done.exit_code, done.stdout) == (1, "")
        first, *places = done.stderr.splitlines()
        assert first == f"walkback: {path}: 1 function cannot be written in version 2; {NOTHING}"
        assert len(places) == 1
        assert re.fullmatch(rf"  cannot be said: .*0x\w+ f\d \(32 bytes\): {SIGNAL}", places[0])
        assert snapshot(tmp_path) == before


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_left_out_is_listed_and_with_strict_1(tmp_path: Path, verb: str) -> None:
    path, output = incomplete(verb, tmp_path), tmp_path / "output"
    for options, status in (([], 0), (["--strict"], 1)):
        output.unlink(missing_ok=True)
        done = run(*on(verb, path, "--version", "2", "--leave-out", *options, output=output))
        assert (done.exit_code, done.stderr) == (status, "")
        (line,) = [line for line in done.stdout.splitlines() if "left out" in line]
        assert line.startswith("  left out: ")
        assert line.endswith(f"(32 bytes): {SIGNAL}")
        assert output.exists()


def test_strict_is_0_if_nothing_is_left_out(tmp_path: Path) -> None:
    for verb in VERBS:
        path = given(verb, tmp_path, verb)
        assert run(*on(verb, path, "--strict", "--leave-out", output=tmp_path / "output")).exit_code == 0


def many_signals(folder: Path) -> Path:
    builder = SFrameBuilder(3, address=SFRAME)
    for number in range(25):
        builder.function(TEXT + 8 * number, 8, [row(0, 1, [8])], signal=True)
    return written(folder, linked(builder.bytes(), symbols=False))


def test_so_many_are_listed_as_the_limit_says(tmp_path: Path) -> None:
    path = many_signals(tmp_path)
    for options, listed in (([], 20), (["--limit", "3"], 3), (["--limit", "0"], 0), (["--limit", "25"], 25)):
        for leave_out in ([], ["--leave-out"]):
            done = run("convert", path, "-o", tmp_path / "s", "--version", "2", *options, *leave_out)
            text = done.stdout if leave_out else done.stderr
            assert text.count(SIGNAL) == listed
            rest = f"{25 - listed} {'more ' if listed else ''}functions"
            assert text.endswith(f": {rest}\n") == (listed < 25)


def test_in_an_archive_a_place_names_its_member(tmp_path: Path) -> None:
    member = incomplete("split", tmp_path, "one.o")
    path = archive(tmp_path, "all.a", member)
    for verb in ("convert", "split"):
        text = run(verb, path, "--version", "2").stderr
        assert f"  cannot be said: {path}(one.o): .text+0x0 f0 (32 bytes): {SIGNAL}\n" in text


def test_of_several_files_a_place_names_its_file(tmp_path: Path) -> None:
    path = incomplete("link", tmp_path)
    whole = written(tmp_path, linked(small().bytes()), "whole")
    text = run("link", whole, path, "-o", tmp_path / "s", "--version", "2").stderr
    assert f"  cannot be said: {path}: 0x1060 f3 (32 bytes): {SIGNAL}\n" in text
    assert f"walkback: {whole}: " not in text


def test_what_is_too_far_is_told_and_that_version_3_reaches_it(tmp_path: Path) -> None:
    path = written(tmp_path, small(address=0x10000000).bytes())
    done = run("link", f"{path}@0x10000000", "-o", tmp_path / "s", "--address", "0x200000000", "--version", "2")
    assert done.exit_code == 1
    assert f"3 functions cannot be written in version 2; version 3 reaches any distance; {NOTHING}\n" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("verb", ["convert", "link", "fix"])
def test_rows_that_cannot_be_read_are_3_or_left_out(tmp_path: Path, verb: str) -> None:
    builder = small()
    builder.functions[1].rows[2].info |= 0x60
    path = written(tmp_path, linked(builder.bytes()))
    before = snapshot(tmp_path)
    status, line = told(process(*on(verb, path, output=tmp_path / "output")))
    assert (status, "[row-word-size]" in line) == (3, True)
    assert snapshot(tmp_path) == before
    done = run(*on(verb, path, "--leave-out", output=tmp_path / "output"))
    assert (done.exit_code, "  left out: 0x1020 f1 (32 bytes): a row has word size" in done.stdout) == (0, True)


def test_fix_leaves_out_what_cannot_be_read_even_if_nothing_else_is_wrong(tmp_path: Path) -> None:
    builder = small(num_fres=10)
    builder.functions[1].rows[2].info |= 0x60
    path = written(tmp_path, linked(builder.bytes()))
    text = run("fix", path, "--leave-out").stdout
    assert "nothing to fix" not in text
    assert "  left out: 0x1020 f1 (32 bytes): " in text
    assert sections(path) == [(3, 2)]


def test_a_function_left_out_of_another_s_code(tmp_path: Path) -> None:
    """What is left out does not let the function below it show through."""
    builder = small()
    builder.functions[2].size = 4 * SIZE
    builder.function(TEXT + 3 * SIZE, SIZE, [row(0, 1, [8])], signal=True)
    path = written(tmp_path, linked(builder.bytes()))
    done = run("convert", path, "-o", tmp_path / "output", "--version", "2")
    assert (done.exit_code, SIGNAL in done.stderr) == (1, True)
    done = run("convert", path, "-o", tmp_path / "output", "--version", "2", "--leave-out")
    assert (done.exit_code, SIGNAL in done.stdout) == (0, True)
    assert f"no function covers {TEXT + 3 * SIZE:#x}" in run("find", tmp_path / "output", hex(TEXT + 3 * SIZE)).stderr


# JSON


@pytest.mark.parametrize("verb", VERBS)
def test_json_is_one_object_and_its_keys_are_documented(tmp_path: Path, verb: str) -> None:
    path = incomplete(verb, tmp_path)
    done = run(*on(verb, path, "--version", "2", "--leave-out", "--json", output=tmp_path / "output"))
    (line,) = done.stdout.splitlines()
    found = json.loads(line)
    assert undocumented([found], verb) == []
    names = {"convert": "converted", "link": "linked", "fix": "fixed", "split": "split"}
    subject = ("files", [str(path)]) if verb == "link" else ("file", str(path))
    assert (found["type"], found[subject[0]]) == (names[verb], subject[1])
    (left_out,) = found["left_out"]
    assert (left_out["file"], left_out["size"], left_out["reason"]) == (str(path), 32, SIGNAL)
    assert (left_out["section"], left_out["name"]) == ((".text", "f0") if verb == "split" else (None, "f3"))


@pytest.mark.parametrize("verb", VERBS)
def test_json_of_a_refusal_has_the_functions(tmp_path: Path, verb: str) -> None:
    path = incomplete(verb, tmp_path)
    done = run(*on(verb, path, "--version", "2", "--json", output=tmp_path / "output"))
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["type"], [one["reason"] for one in found["left_out"]]) == ("refused", [SIGNAL])
    assert set(found) == {"type", "files" if verb == "link" else "file", "left_out"}


def test_json_of_a_fix_has_problems_and_whether_anything_changed(tmp_path: Path) -> None:
    path = written(tmp_path, concatenated())
    first, second = (json.loads(run("fix", path, "--json").stdout) for _ in range(2))
    assert (first["changed"], len(first["problems"]), first["versions"]) == (True, 3, [3])
    assert (second["changed"], second["problems"], second["notes"]) == (False, [], [])
    assert [second[key] for key in ("functions", "rows", "address", "bytes")] == [3, 12, SFRAME, 136]
