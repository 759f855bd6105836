"""A file that is written piece by piece is replaced whole or stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from base.replaced import killed_half_way, mode
from walkback.base.replace import replacing


def test_pieces_become_the_file_at_the_end(target: Path) -> None:
    with replacing(target) as out:
        out.write(b"new ")
        out.flush()
        assert target.read_bytes() == b"old"
        out.write(b"contents")
    assert target.read_bytes() == b"new contents"
    assert list(target.parent.iterdir()) == [target]


def test_nothing_written_is_an_empty_file(target: Path) -> None:
    with replacing(target):
        pass
    assert target.read_bytes() == b""


@pytest.mark.parametrize("bits", [0o755, 0o600, 0o444])
def test_pieces_leave_mode_and_owner(target: Path, bits: int) -> None:
    target.chmod(bits)
    before = target.stat()
    with replacing(target) as out:
        out.write(b"new")
    after = target.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_a_new_file_of_pieces_has_the_mode_of_any_new_file(tmp_path: Path) -> None:
    former = os.umask(0o027)
    try:
        with replacing(tmp_path / "new") as out:
            out.write(b"new")
            (temporary,) = tmp_path.iterdir()
            assert mode(temporary) == 0o600
    finally:
        os.umask(former)
    assert mode(tmp_path / "new") == 0o640


def test_pieces_go_through_a_symbolic_link(target: Path) -> None:
    link = target.parent / "link"
    link.symlink_to("target")
    with replacing(link) as out:
        out.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def half_written(path: Path, error: type[BaseException]) -> None:
    with replacing(path) as out:
        out.write(b"half")
        raise error


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_between_pieces_leaves_the_old_file(target: Path, error: type[BaseException]) -> None:
    with pytest.raises(error):
        half_written(target, error)
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_an_error_between_pieces_leaves_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        half_written(tmp_path / "new", KeyboardInterrupt)
    assert list(tmp_path.iterdir()) == []


def test_pieces_for_a_folder_that_is_not_there_are_an_os_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "file"
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)


def test_pieces_are_written_to_devices_and_pipes(tmp_path: Path) -> None:
    with replacing("/dev/null") as out:
        out.write(b"new")
    assert Path("/dev/null").is_char_device()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(fifo) as out:
            out.write(b"through the pipe")
        assert os.read(reader, 100) == b"through the pipe"
    finally:
        os.close(reader)
    assert fifo.is_fifo()


def test_a_full_device_is_an_os_error() -> None:
    with pytest.raises(OSError, match="No space left on device"), replacing("/dev/full") as out:
        out.write(b"new")


def test_a_process_killed_between_pieces_leaves_the_old_file(target: Path) -> None:
    script = (
        "import sys, time; from walkback.base.replace import replacing\n"
        "with replacing(sys.argv[1]) as out:\n"
        "    out.write(b'x' * 100000); out.flush(); print('half', flush=True); time.sleep(60)\n"
    )
    killed_half_way(script, target)
    assert target.read_bytes() == b"old"
