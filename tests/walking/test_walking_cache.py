"""The cache of tables: right whatever happens to its folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from cfibuilder import CfiBuilder, cfa
from elfbuilder import ElfBuilder
from waiting import PATIENCE
from walkback.base.arch import AMD64
from walkback.base.arraycache import ArrayCache, default_folder
from walkback.elf import ElfFile
from walkback.sframe.builder import SectionBuilder
from walkback.walking import cache as caches
from walkback.walking.cache import TableCache
from walkback.walking.moduletable import ModuleTable, module_table
from walking.stacksource import BASE

PLACE = 0x800000


@pytest.fixture(autouse=True)
def keep_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of these tests are."""
    monkeypatch.setattr(caches, "_SMALL", 1 << 14)


def library(functions: int = 4000, *, size: int = 16, sframe: bool = False, build_id: bytes = b"1234") -> ElfFile:
    """A file whose tables are large enough to be kept."""
    builder = CfiBuilder(address=PLACE)
    cie = builder.cie(cfa("def_cfa 7 8; offset 16 1"))
    for number in range(functions):
        builder.fde(cie, BASE + 32 * number, size, cfa("advance_loc 1; def_cfa_offset 16"))
    made = ElfBuilder("little", 62, 3)
    made.section(".text", bytes(32 * functions), flags=6, addr=BASE)
    made.segment(1, ".text", flags=5, vaddr=BASE)
    made.section(".eh_frame", builder.bytes(), flags=2, addr=PLACE)
    note = b"".join(number.to_bytes(4, "little") for number in (4, len(build_id), 3)) + b"GNU\0" + build_id
    made.section(".note.gnu.build-id", note, kind=7, flags=2)
    if sframe:
        section = SectionBuilder("AMD64")
        section.function(BASE, 32, ["CFA = rsp+64"])
        made.section(".sframe", section.encode(address=0x10), flags=2, addr=0x10)
    return ElfFile(bytes(made.build()), "built")


def same(one: ModuleTable, other: ModuleTable) -> bool:
    for part in ("steps", "points"):
        for field in fields(getattr(one, part)):
            if field.name != "blocks":
                pair = (getattr(getattr(table, part), field.name) for table in (one, other))
                if not np.array_equal(*pair):
                    return False
    return np.array_equal(one.directory, other.directory) and one.shift == other.shift


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.table"))


def test_what_is_kept_is_what_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf = library()
    made = module_table(elf, AMD64)
    cache = TableCache(ArrayCache(tmp_path))
    assert same(cache.table(elf, AMD64, None), made)
    assert len(entries(tmp_path)) == 1
    monkeypatch.setattr(caches, "module_table", None)
    assert same(cache.table(elf, AMD64, None), made)
    assert same(TableCache(ArrayCache(tmp_path)).table(library(), AMD64, None), made)


def test_each_kind_and_each_content_has_its_own_entry(tmp_path: Path) -> None:
    """A grafted file has the build ID of the one that it was made from."""
    cache = TableCache(ArrayCache(tmp_path))
    for elf in (library(), library(sframe=True), library(size=17), library(build_id=b"5678")):
        for only in (None, "cfi"):
            assert same(cache.table(elf, AMD64, only), module_table(elf, AMD64, only))
    assert len(entries(tmp_path)) == 8
    assert cache.table(library(sframe=True), AMD64, None).steps.operand[0] == 64


def test_small_tables_are_not_kept_nor_anything_without_a_folder(tmp_path: Path) -> None:
    TableCache(ArrayCache(tmp_path)).table(library(3), AMD64, None)
    assert entries(tmp_path) == []
    assert same(TableCache(None).table(library(), AMD64, None), module_table(library(), AMD64))


def test_damaged_entries_are_made_again(tmp_path: Path) -> None:
    elf, cache = library(), TableCache(ArrayCache(tmp_path))
    made = cache.table(elf, AMD64, None)
    (path,) = entries(tmp_path)
    whole = path.read_bytes()
    damages = [b"", whole[:10], whole[:-1], whole + b"\0", bytes(len(whole)), b"\0" + whole[1:]]
    damages += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in range(0, len(whole), 9973)]
    for damage in damages:
        path.unlink()
        path.write_bytes(damage)
        assert same(cache.table(elf, AMD64, None), made)
        assert path.read_bytes() == whole


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    elf = library()
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing")):
        assert same(TableCache(ArrayCache(folder)).table(elf, AMD64, None), module_table(elf, AMD64))


def test_the_entries_used_least_recently_go_first(tmp_path: Path) -> None:
    elves = [library(build_id=bytes([number] * 4)) for number in range(5)]
    TableCache(ArrayCache(tmp_path)).table(elves[0], AMD64, None)
    size = entries(tmp_path)[0].stat().st_size
    cache = TableCache(ArrayCache(tmp_path, limit=3 * size + size // 2))
    for elf in elves[1:]:
        time.sleep(0.01)
        cache.table(elves[0], AMD64, None)
        time.sleep(0.01)
        cache.table(elf, AMD64, None)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3 * size + size // 2
    first = entries(tmp_path)
    cache.table(elves[0], AMD64, None)
    cache.table(elves[4], AMD64, None)
    assert entries(tmp_path) == first


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    """Somebody may have named a folder with other things in it."""
    others = [tmp_path / "thesis.tex", tmp_path / f"{'0' * 40}.txt", tmp_path / "notes.table"]
    for path in others:
        path.write_bytes(bytes(1000))
    (tmp_path / f"{'1' * 40}.table").symlink_to(others[0])
    TableCache(ArrayCache(tmp_path, limit=10)).table(library(), AMD64, None)
    assert all(path.exists() for path in others)
    assert (tmp_path / f"{'1' * 40}.table").is_symlink()


def test_links_are_not_followed(tmp_path: Path) -> None:
    """The name of an entry can be foreseen, and whoever made a link of it may mean ill."""
    elf, folder, target = library(), tmp_path / "cache", tmp_path / "target"
    cache = TableCache(ArrayCache(folder))
    made = cache.table(elf, AMD64, None)
    (path,) = entries(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    target.write_text("precious")
    path.unlink()
    path.symlink_to(target)
    assert same(cache.table(elf, AMD64, None), made)
    assert target.read_text() == "precious"
    assert not path.is_symlink()


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    TableCache(ArrayCache(folder)).table(library(), AMD64, None)
    assert entries(folder) == []


def test_entries_whose_columns_do_not_fit_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elf, cache = library(), TableCache(ArrayCache(tmp_path))
    made = cache.table(elf, AMD64, None)
    (path,) = entries(tmp_path)
    for damaged in (
        replace(made, shift=-1),
        replace(made, steps=replace(made.steps, flags=made.steps.flags[:-1])),
        replace(made, trampoline_start=np.zeros(3, np.uint64)),
    ):
        rest = {"shift": damaged.shift, "declared": damaged.declared, "troubles": damaged.troubles}
        ArrayCache(tmp_path).write(path.name, damaged.columns(), rest)
        written = path.read_bytes()
        assert same(cache.table(elf, AMD64, None), made)
        assert path.read_bytes() != written


def test_the_folder_is_the_users_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", "/somewhere")
    assert default_folder() == Path("/somewhere")
    monkeypatch.delenv("WALKBACK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/else")
    assert default_folder() == Path("/else/walkback")
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert default_folder() == Path("~/.cache/walkback").expanduser()


PROCESS = """
import sys
from pathlib import Path
from walkback.base.arch import AMD64
from walkback.elf import ElfFile
from walkback.base.arraycache import ArrayCache
from walkback.walking import cache
from walkback.walking.cache import TableCache
cache._SMALL = 1 << 14
for number in range(12):
    elf = ElfFile(sys.argv[2 + number % 3])
    table = TableCache(ArrayCache(Path(sys.argv[1]), limit=int(sys.argv[5]))).table(elf, AMD64, None)
    print(len(table.points), int(table.steps.operand.sum()), int(table.points.start.sum()))
"""


def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Six at once, whose entries push each other out all the time."""
    files, folder = [], tmp_path / "cache"
    for number in range(3):
        elf = library(1500 + number)
        files.append(tmp_path / f"{number}.so")
        files[-1].write_bytes(bytes(elf.data))
    made = [module_table(ElfFile(path), AMD64) for path in files]
    should = [f"{len(one.points)} {int(one.steps.operand.sum())} {int(one.points.start.sum())}" for one in made] * 4
    command = [sys.executable, "-c", PROCESS, folder, *files, "150000"]
    running = [subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in running:
        out, _ = one.communicate(timeout=PATIENCE)
        assert one.returncode == 0
        assert out.splitlines() == should
    assert not list(folder.glob(".*.part"))


@pytest.mark.skipif(not Path("/lib/x86_64-linux-gnu/libc.so.6").exists(), reason="needs a library of this machine")
def test_an_entry_is_had_sooner_than_it_is_made(tmp_path: Path) -> None:
    big = [Path("/usr/lib/x86_64-linux-gnu") / name for name in ("libz3.so.4", "libstdc++.so.6", "libc.so.6")]
    elf = ElfFile(next(path for path in big if path.exists()))
    cache = TableCache(ArrayCache(tmp_path))

    def seconds() -> float:
        begin = time.process_time()
        cache.table(elf, AMD64, None)
        return time.process_time() - begin

    made = seconds()
    assert os.listdir(tmp_path)
    assert min(seconds() for _ in range(3)) < made / 2
