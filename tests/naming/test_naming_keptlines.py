"""Lines that are kept on disk: the same as those that were looked up, as long as the files are the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from debuginfo.test_debuginfo_lines import SOURCE, built, code_of
from walkback.base.arraycache import ArrayCache
from walkback.base.arrays import U64
from walkback.debuginfo.lines import DebugLines
from walkback.elf import ElfFile, FileSearch
from walkback.naming import keptlines
from walkback.naming.keptlines import KeptLines

pytestmark = pytest.mark.kernel


@pytest.fixture(autouse=True)
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also small files are kept, and are written each time."""
    monkeypatch.setattr(keptlines, "_SMALL", 0)
    monkeypatch.setattr(keptlines, "_SECONDS", 0)


class Asked:
    """Counts the addresses that debugging information was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        find = DebugLines.find

        def counting(lines: DebugLines, addresses: U64) -> object:
            self.count += len(addresses)
            return find(lines, addresses)

        monkeypatch.setattr(DebugLines, "find", counting)


def kept(path: Path, folder: Path, search: FileSearch | None = None) -> KeptLines:
    return KeptLines(ElfFile(path), search or FileSearch(debug_roots=()), ArrayCache(folder))


def test_what_is_kept_is_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, folder = built(tmp_path), tmp_path / "cache"
    code = code_of(ElfFile(program))
    expected = DebugLines(ElfFile(program)).find(code)
    asked = Asked(monkeypatch)
    half = code[::2]
    assert kept(program, folder).find(half) == expected[::2]
    assert asked.count == len(half)
    again = kept(program, folder)
    for _ in range(2):
        assert again.find(code[::-1]) == expected[::-1]
        assert asked.count == len(code)
    assert kept(program, folder).find(code) == expected
    assert asked.count == len(code)
    assert kept(program, folder).find(np.array([0, 2**64 - 1], np.uint64)) == [(), ()]
    assert kept(program, folder).find(code[:0]) == []


def test_another_build_or_debug_file_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, folder = built(tmp_path), tmp_path / "cache"
    code = code_of(ElfFile(program))
    kept(program, folder).find(code)
    asked = Asked(monkeypatch)
    (tmp_path / "b.c").write_text("\n" + SOURCE)
    subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "b.c", "-o", program], cwd=tmp_path, check=True)
    found = kept(program, folder).find(code_of(ElfFile(program)))
    assert asked.count
    assert {Path(line.file or "").name for lines in found for line in lines} == {"b.c"}
    subprocess.run(["strip", program], check=True)
    assert set(kept(program, folder).find(code)) == {()}


def test_a_debug_file_that_comes_later_counts(tmp_path: Path) -> None:
    program, folder = built(tmp_path), tmp_path / "cache"
    code = code_of(ElfFile(program))
    expected = DebugLines(ElfFile(program)).find(code)
    build_id = ElfFile(program).build_id
    assert build_id is not None
    place = tmp_path / "root" / ".build-id" / build_id.hex()[:2] / f"{build_id.hex()[2:]}.debug"
    place.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, tmp_path / "debug"], check=True)
    subprocess.run(["strip", program], check=True)
    search = FileSearch(debug_roots=[tmp_path / "root"])
    assert set(kept(program, folder, search).find(code)) == {()}
    (tmp_path / "debug").rename(place)
    for _ in range(2):
        assert kept(program, folder, search).find(code) == expected


def test_split_units_are_not_kept(tmp_path: Path) -> None:
    program, folder = built(tmp_path, "-g", "-gsplit-dwarf"), tmp_path / "cache"
    code = code_of(ElfFile(program))
    whole = kept(program, folder).find(code)
    for path in tmp_path.glob("*.dwo"):
        path.unlink()
    lines = kept(program, folder)
    assert lines.find(code) != whole
    assert "is not there" in (lines.trouble or "")
    assert list(folder.glob("*")) == []


def test_entries_that_are_wrong_are_made_again(tmp_path: Path) -> None:
    program, folder = built(tmp_path), tmp_path / "cache"
    code = code_of(ElfFile(program))
    expected = kept(program, folder).find(code)
    (path,) = folder.iterdir()
    entry = ArrayCache(folder).read(path.name)
    assert entry is not None
    arrays, _ = entry
    wrong = [
        {"address": arrays["address"][::-1]},
        {"address": arrays["address"][:-1]},
        {"first": arrays["first"][::-1]},
        {"first": arrays["first"][:0]},
        {"first": arrays["first"] + 1},
        {"function": arrays["function"] + 1000},
        {"line": arrays["line"][:-1]},
        {"texts": arrays["texts"][:0]},
    ]
    for one in wrong:
        ArrayCache(folder).write(path.name, arrays | one, {})
        assert kept(program, folder).find(code) == expected
    path.write_bytes(b"nonsense")
    assert kept(program, folder).find(code) == expected
    assert kept(program, folder).find(code) == expected
