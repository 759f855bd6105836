"""The reader of the GNU C Library, compiled in, walks by our tables as `backtrace()` does by call frame information."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from glibc.walked import ALL, COMPILE, HERE, plugin, walks
from glibcsource import reader
from walkback.sections.check import check
from walkback.sections.install import add

pytestmark = pytest.mark.peers
SHIM = HERE / "shim"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The machine's C library with its loader, the program and its plug-in, grafted for the reader."""
    source, folder = reader(), tmp_path_factory.mktemp("reader")
    files = [HERE / "walks.c", SHIM / "find.c", source / "sframe.c", source / "sframe-read.c"]
    shim: list[str | Path] = ["-DREADER", "-include", SHIM / "sframe-shim.h", f"-I{SHIM}", f"-I{source}"]
    subprocess.run([*COMPILE, *shim, *files, "-o", folder / "plain"], check=True)
    add(folder / "plain", folder / "walks", consumer="glibc")
    maps = Path("/proc/self/maps").read_text()
    libc = Path(re.findall(r" (/\S*/libc\.so\.6)$", maps, re.MULTILINE)[0])
    for path in (plugin(folder), libc, libc.parent / "ld-linux-x86-64.so.2"):
        assert add(path, folder / path.name, consumer="glibc").proof.equal
    (folder / "libgcc_s.so.1").symlink_to(libc.parent / "libgcc_s.so.1")
    return folder


def told(folder: Path, *words: str) -> dict[str, list[str]]:
    return walks([folder / "ld-linux-x86-64.so.2", "--library-path", folder, folder / "walks", *words], folder)


@pytest.mark.parametrize("words", ALL, ids="-".join)
def test_the_reader_walks_to_the_end(folder: Path, words: tuple[str, ...]) -> None:
    frames = told(folder, *words)
    assert len(frames["backtrace"]) >= 4
    assert frames["reader"] == frames["backtrace"]


def test_where_the_check_says_that_it_goes_wrong_it_does(folder: Path) -> None:
    frames = told(folder, "packed")
    assert frames["reader"] != frames["backtrace"]
    (report,) = check(folder / "walks", consumer="glibc")
    calls = [finding for finding in report.findings if finding.code == "glibc-call-end"]
    assert any(f"0x{frames['backtrace'][1].partition('+')[2]} " in finding.message for finding in calls)
    assert {finding.code for finding in report.findings} == {"glibc-call-end"}


def test_a_table_for_nobody_sends_it_back_from_the_outermost_frame(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes((folder / "plain").read_bytes())
    add(tmp_path / "plain", version=2)
    frames = walks([folder / "ld-linux-x86-64.so.2", "--library-path", folder, tmp_path / "plain", "calls"], folder)
    assert len(frames["backtrace"]) >= 4
    assert frames["reader"] == []
    (report,) = check(tmp_path / "plain", consumer="glibc")
    assert ("glibc-outermost", "_start") in [(finding.code, finding.symbol) for finding in report.findings]
