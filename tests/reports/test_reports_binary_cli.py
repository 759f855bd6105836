"""`walkback report FILE`: the page, and the same as text, CSV and JSON."""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from reports.listed import program
from sframefiles import TEXT, archive, linked, small, written


@pytest.fixture
def file(tmp_path: Path) -> Path:
    fdes = [(TEXT, 32, "advance_loc 1; def_cfa_offset 16; offset 6 2"), (TEXT + 32, 16, "def_cfa 10 0")]
    return written(tmp_path, program(*fdes, names=[("_ZN1a1bEv", TEXT, 32), ("evil\x1b[31m\n,\"'", TEXT + 32, 16)]))


def report(*args: Path | str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "walkback", "report", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_page_is_written_for_a_file_and_for_a_member_of_an_archive(file: Path, tmp_path: Path) -> None:
    assert report(file, "-o", tmp_path / "page.html").returncode == 0
    assert (tmp_path / "page.html").read_bytes().startswith(b"<!DOCTYPE html>")
    written(tmp_path, linked(small(3).bytes()), "a.o")
    path = archive(tmp_path, "lib.a", tmp_path / "a.o", tmp_path / "file")
    done = report(f"{path}(a.o)", "-o", tmp_path / "member.html")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "lib.a(a.o)" in (tmp_path / "member.html").read_text()
    done = report(path, "-o", tmp_path / "none.html")
    assert done.returncode == 3
    assert "this is an archive of 2 ELF files; name one of them" in done.stderr
    assert not (tmp_path / "none.html").exists()


@pytest.mark.whole
def test_a_dash_is_standard_output_for_pages_too(file: Path, tmp_path: Path) -> None:
    assert report(file, "-o", tmp_path / "page.html").returncode == 0
    command = [sys.executable, "-m", "walkback", "report", str(file), "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, (tmp_path / "page.html").read_bytes(), b"")
    assert not (tmp_path / "-").exists()
    rows = report(file, "--csv", "--figure", "rows")
    assert report(file, "--csv", "--figure", "rows", "-o", "-").stdout == rows.stdout


@pytest.mark.whole
def test_packages_and_archives_are_for_surveys(file: Path, tmp_path: Path) -> None:
    deb = b"!<arch>\ndebian-binary   0           0     0     100644  4         `\n2.0\n"
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(file, "file")
    cases = [
        ("a.deb", deb, "a Debian package"),
        ("a.rpm", b"\xed\xab\xee\xdb" + bytes(92), "an RPM package"),
        ("a.whl", b"PK\3\4" + bytes(40), "a wheel"),
        ("b.tar", (tmp_path / "a.tar").read_bytes(), "a tar archive"),
    ]
    for name, content, words in cases:
        done = report(written(tmp_path, content, name), "-o", tmp_path / "page.html")
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)
        assert f"this is {words}; walkback survey looks into it" in done.stderr
    assert "a Debian package" in report(tmp_path / "a.deb(data.tar.xz)").stderr
    done = report(written(tmp_path, gzip.compress((tmp_path / "a.tar").read_bytes()), "b.tar.gz"))
    assert "expected one ELF file, got an archive; walkback survey looks into it" in done.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.mark.whole
def test_a_compressed_file_is_unpacked(file: Path, tmp_path: Path) -> None:
    packed = written(tmp_path, lzma.compress(file.read_bytes()), "b.ko.xz")
    for figure in ("summary", "rows"):
        assert report(packed, "--csv", "--figure", figure).stdout == report(file, "--csv", "--figure", figure).stdout
    done = report(packed, "-o", tmp_path / "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert "b.ko.xz" in (tmp_path / "page.html").read_text()


def test_functions_are_json_a_line_each(file: Path) -> None:
    lines = [json.loads(line) for line in report(file, "--json", "--figure", "functions").stdout.splitlines()]
    assert lines[0] == {
        "figure": "functions",
        "section": ".text",
        "address": TEXT,
        "size": 32,
        "name": "a::b",
        "symbol": "_ZN1a1bEv",
        "source": ".eh_frame",
        "rows": 2,
        "fde_bytes": 24,
        "v1_bytes": 24,
        "v2_bytes": 27,
        "v3_bytes": 28,
        "v1_reason": None,
        "v2_reason": None,
        "v3_reason": None,
        "signal": False,
        "different_bytes": None,
    }
    assert (lines[1]["v2_bytes"], lines[1]["v2_reason"], lines[1]["v3_reason"]) == (0, "cfa-base", None)


def test_the_numbers_of_the_cards_are_json(file: Path) -> None:
    (line,) = report(file, "--json", "--figure", "summary").stdout.splitlines()
    told = json.loads(line)
    assert list(told) == [
        "figure", "functions", "rows", "text", "code", "frames", "v1_bytes", "v2_bytes", "v3_bytes", "v1_covered",
        "v2_covered", "v3_covered", "sframe", "equal",
    ]  # fmt: skip
    assert (told["functions"], told["code"], told["v2_covered"], told["v3_covered"]) == (2, 48, 0.5, 1)
    assert (told["sframe"], told["equal"]) == (None, None)


def test_rows_are_csv_with_a_heading(file: Path) -> None:
    rows = list(csv.DictReader(report(file, "--csv", "--figure", "rows").stdout.splitlines()))
    assert [(row["function"], row["address"], row["size"], row["cfa"], row["fp"]) for row in rows] == [
        (str(TEXT), str(TEXT), "1", "rsp+8", "unchanged"),
        (str(TEXT), str(TEXT + 1), "31", "rsp+16", "*(CFA-16)"),
        (str(TEXT + 32), str(TEXT + 32), "16", "r10", "unchanged"),
    ]


def test_text_for_terminals_begins_with_the_numbers_of_the_cards_and_has_nothing_that_moves_the_cursor(
    file: Path,
) -> None:
    done = report(file)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "At a glance (summary)"
    assert lines[1].split()[:4] == ["Functions", "Rows", "Code", "Described"]
    assert lines[2].split()[:6] == ["2", "3", "4.00", "KiB", "48", "bytes"]
    assert "\nFunctions (functions)\n" in done.stdout
    assert "\nRows (rows)\n" in done.stdout
    assert "\x1b" not in done.stdout
    assert "a::b" in done.stdout


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    for content, words in ((b"", "the file is empty"), (b"text", "this is not an ELF file or archive")):
        done = report(written(tmp_path, content), "-o", tmp_path / "page.html")
        assert (done.returncode, done.stderr.count("\n")) == (3, 1)
        assert words in done.stderr
    done = report(tmp_path / "nothing", "--json")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
