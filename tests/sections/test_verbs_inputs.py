"""Every verb on files takes a path, the bytes of a file, or an open ELF file, and writes to a path or a stream."""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import walkback
from docfiles import concatenated, with_a_group
from packages.test_packages_kernel import image
from recorded import hello
from sframefiles import written
from walkback.base.errors import UnreadableError

READING: dict[str, Callable[[Any], object]] = {
    "check": lambda source: [(report.rows, report.findings) for report in walkback.check(source)],
    "find": lambda source: [match.found for match in walkback.find(source, "main")],
    "derive": lambda source: walkback.derive(source).contents,
    "compare": lambda source: [pair.comparison.equal for pair in walkback.compare(source, source)],
    "size": lambda source: walkback.size(source).versions,
    "sframe.read": lambda source: [
        piece.table.rules.tolist() for it in walkback.sframe.read(source) for piece in it.pieces()
    ],
    "dwarf.read": lambda source: [len(it.table) for it in walkback.dwarf.read(source)],
}
WRITING: dict[str, Callable[[Any, Any], object]] = {
    "add": lambda source, output: walkback.add(source, output).address,
    "drop": walkback.drop,
    "convert": lambda source, output: walkback.convert(source, output, version=2),
    "fix": walkback.fix,
    "link": lambda source, output: walkback.link([source], output),
    "split": walkback.split,
}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    program = hello(tmp_path)
    walkback.add(program, tmp_path / "grafted")
    return {
        "fix": written(tmp_path, concatenated(), "concatenated"),
        "split": written(tmp_path, with_a_group(), "inline.o"),
        "add": program,
        "": tmp_path / "grafted",
    }


@pytest.mark.parametrize("verb", READING)
def test_a_verb_that_reads_takes_each(verb: str, files: dict[str, Path]) -> None:
    path = files[""]
    first, *others = (READING[verb](given) for given in (path, str(path), path.read_bytes(), walkback.ElfFile(path)))
    assert first
    assert all(one == first for one in others)


@pytest.mark.parametrize("verb", [verb for verb in READING if verb != "dwarf.read"])
def test_a_verb_that_reads_takes_what_is_compressed(verb: str, files: dict[str, Path], tmp_path: Path) -> None:
    data = files[""].read_bytes()
    for name, packed in (("packed.xz", lzma.compress(data)), ("packed.gz", gzip.compress(data))):
        assert READING[verb](written(tmp_path, packed, name)) == READING[verb](data)


@pytest.mark.parametrize("verb", WRITING)
def test_a_verb_that_writes_says_what_has_to_be_unpacked(verb: str, files: dict[str, Path], tmp_path: Path) -> None:
    data = files.get(verb, files[""]).read_bytes()
    cases = {
        "compressed with xz": lzma.compress(data),
        "a boot image of the kernel": image(lzma.compress(data)),
        "an RPM package": b"\xed\xab\xee\xdb" + bytes(92),
    }
    for words, packed in cases.items():
        with pytest.raises(UnreadableError, match=f"this is {words}; unpack it first"):
            WRITING[verb](written(tmp_path, packed, "packed"), tmp_path / "output")
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("verb", WRITING)
def test_a_verb_that_writes_takes_each(verb: str, files: dict[str, Path], tmp_path: Path) -> None:
    path = files.get(verb, files[""])
    before = path.read_bytes()
    results = []
    for number, given in enumerate((path, before, bytearray(before), walkback.ElfFile(path))):
        stream, output = io.BytesIO(), tmp_path / f"output{number}"
        assert WRITING[verb](given, stream) == WRITING[verb](given, output)
        assert stream.getvalue() == output.read_bytes()
        results.append(stream.getvalue())
    assert len(set(results)) == 1
    assert path.read_bytes() == before
    with (tmp_path / "raw").open("wb", buffering=0) as raw:
        WRITING[verb](path, raw)
    assert (tmp_path / "raw").read_bytes() == results[0]


@pytest.mark.parametrize("verb", sorted(set(WRITING) - {"link"}))
def test_bytes_have_no_place_of_their_own(verb: str, files: dict[str, Path]) -> None:
    with pytest.raises(walkback.ArgumentError, match="what is in memory has no place to be written to"):
        WRITING[verb](files.get(verb, files[""]).read_bytes(), None)


def test_an_output_that_takes_nothing_ends_it(files: dict[str, Path]) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> Any:
            return None

    with pytest.raises(BlockingIOError):
        walkback.convert(files[""], Full(), version=2)


def test_a_report_does_not_take_the_place_of_what_it_reads(files: dict[str, Path], tmp_path: Path) -> None:
    program = files[""]
    link = tmp_path / "link"
    link.symlink_to(program)
    before = program.read_bytes()
    for output in (program, str(program), link):
        with pytest.raises(walkback.ArgumentError, match="is what is read, and would be lost"):
            walkback.report(program, output)
    assert program.read_bytes() == before
    walkback.survey([program], tmp_path / "survey", jobs=1)
    inside = next((tmp_path / "survey").rglob("*.parquet"))
    before = inside.read_bytes()
    with pytest.raises(walkback.ArgumentError, match="would be lost"):
        walkback.report(tmp_path / "survey", inside)
    assert inside.read_bytes() == before


@pytest.mark.parametrize(
    "query",
    ["", ";", "-- nothing", "SELEC 1", "FROM nothing", "CREATE TABLE x(y INT)", "SELECT 1; SELECT 2", "PRAGMA x"],
)
def test_a_survey_and_a_store_refuse_the_same_queries(query: str, files: dict[str, Path], tmp_path: Path) -> None:
    walkback.survey([files[""]], tmp_path / "survey", jobs=1)
    for asked in (walkback.Survey(tmp_path / "survey"), walkback.Store(tmp_path / "store", create=True)):
        with pytest.raises(walkback.ArgumentError):
            asked.sql(query)
        assert asked.sql("SELECT 'a\udcff' AS text").rows == 1


def test_a_report_takes_each(files: dict[str, Path]) -> None:
    pages = []
    for given in (files[""], str(files[""]), files[""].read_bytes(), walkback.ElfFile(files[""])):
        out = io.BytesIO()
        walkback.report(given, out)
        pages.append(len(out.getvalue()))
    assert min(pages) > 10_000


def test_one_file_is_no_list_of_files(files: dict[str, Path], tmp_path: Path) -> None:
    path: Any
    for path in (files[""], str(files[""]), files[""].read_bytes()):
        with pytest.raises(walkback.ArgumentError, match="takes a list of"):
            walkback.link(path, tmp_path / "linked")
        with pytest.raises(walkback.ArgumentError, match="takes a list of paths"):
            walkback.survey(path, tmp_path / "survey")
    with pytest.raises(walkback.ArgumentError, match="no bytes"):
        walkback.survey([path], tmp_path / "survey")
