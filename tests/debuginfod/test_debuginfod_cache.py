"""The folder that clients share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from walkback.debuginfod.cache import FileCache

BUILD_ID = bytes(range(20))
OLD = time.time() - 8 * 24 * 3600


def written(cache: FileCache, kind: str = "debuginfo", data: bytes = b"data") -> Path:
    with cache.writing(BUILD_ID, kind) as file:
        file.write(data)
    return cache.path(BUILD_ID, kind)


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "a" / "cache")
    with cache.writing(BUILD_ID, "debuginfo") as file:
        file.write(b"data")
        assert cache.find(BUILD_ID, "debuginfo") is None
    found = cache.find(BUILD_ID, "debuginfo")
    assert found is not None
    assert found.read_bytes() == b"data"
    assert found.stat().st_mode & 0o777 == 0o400
    with pytest.raises(ZeroDivisionError), cache.writing(BUILD_ID, "executable"):
        _ = 1 / 0
    assert [path.name for path in found.parent.iterdir()] == ["debuginfo"]


@pytest.mark.parametrize("kind", ["link", "writable", "link-inside"])
def test_nothing_is_written_where_others_could_lead(kind: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "link":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
    if kind == "writable":
        folder.chmod(0o777)
    if kind == "link-inside":
        (folder / BUILD_ID.hex()).symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="others can write there"):
        written(FileCache(folder))
    FileCache(folder).clean()
    assert list(elsewhere.iterdir()) == []


def test_what_nobody_used_for_a_week_is_removed_once_a_day(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    cache.clean()
    old, used = written(cache), written(cache, "executable")
    (old.parent / "mine").write_text("not of a client")
    (cache.folder / "notes").mkdir()
    (cache.folder / "notes" / "debuginfo").write_text("not of a client")
    for path in (old, cache.folder / "notes" / "debuginfo"):
        os.utime(path, (OLD, OLD))
    cache.clean()
    assert old.exists()
    os.utime(cache.folder / "cache_clean_interval_s", (OLD, OLD))
    cache.clean()
    assert not old.exists()
    assert used.exists()
    assert (old.parent / "mine").exists()
    assert (cache.folder / "notes" / "debuginfo").exists()
    os.utime(used, (OLD, OLD))
    assert cache.find(BUILD_ID, "executable") == used
    os.utime(cache.folder / "cache_clean_interval_s", (OLD, OLD))
    cache.clean()
    assert used.exists()


def test_odd_files_of_the_folder_change_nothing(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "cache")
    cache.clean()
    for name in ("cache_miss_s", "max_unused_age_s", "cache_clean_interval_s"):
        (cache.folder / name).write_text("nonsense")
        os.utime(cache.folder / name, (OLD, OLD))
    path = written(cache)
    cache.clean()
    assert path.exists()
    cache.note_missing(BUILD_ID, "executable")
    assert cache.is_missing(BUILD_ID, "executable")
    assert cache.find(BUILD_ID, "executable") is None
    assert not cache.is_missing(BUILD_ID, "debuginfo")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount")
def test_a_folder_that_nobody_can_write_to_is_read(tmp_path: Path) -> None:
    path = written(FileCache(tmp_path))
    script = "import sys; from pathlib import Path; from walkback.debuginfod.cache import FileCache\n"
    script += f"print(FileCache(Path(sys.argv[1])).find({BUILD_ID!r}, 'debuginfo'))"
    command = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"']
    run = [*command, str(tmp_path), sys.executable, "-c", script, str(tmp_path)]
    if subprocess.run([*command, str(tmp_path), "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(path)
