"""A file is replaced whole or stays as it is."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from walkback.base.replace import replace_file, replacing
from walkback.elf import OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

PARTS: list[bytes | memoryview] = [b"new ", memoryview(b"contents"), b""]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "target"
    path.write_bytes(b"old")
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_contents_are_the_parts_and_nothing_is_left_beside(target: Path) -> None:
    replace_file(target, PARTS)
    assert target.read_bytes() == b"new contents"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize("bits", [0o755, 0o600, 0o444])
def test_mode_and_owner_stay(target: Path, bits: int) -> None:
    target.chmod(bits)
    before = target.stat()
    replace_file(target, PARTS)
    after = target.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_of_somebody_elses_file_stays(target: Path) -> None:
    os.chown(target, 1234, 2345)
    target.chmod(0o6755)
    replace_file(None, PARTS, read=OpenFile(target))
    assert (target.stat().st_uid, target.stat().st_gid, mode(target)) == (1234, 2345, 0o6755)
    replace_file(target, PARTS)
    assert (target.stat().st_uid, target.stat().st_gid, mode(target)) == (1234, 2345, 0o755)


def test_extended_attributes_stay(target: Path) -> None:
    try:
        os.setxattr(target, "user.walkback", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")
    replace_file(target, PARTS)
    assert os.getxattr(target, "user.walkback") == b"kept"


@pytest.mark.parametrize(("why", "lost"), [(errno.ENOSPC, False), (errno.EPERM, True)])
def test_no_attribute_is_lost_but_what_only_the_system_sets(
    why: int, lost: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"former")
    try:
        os.setxattr(target, "user.walkback", b"kept")
    except OSError:
        pytest.skip("no extended attributes here")

    def refuse(*_: object) -> None:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(os, "setxattr", refuse)
    if lost:
        replace_file(target, PARTS)
    else:
        with pytest.raises(OSError, match="target"):
            replace_file(target, PARTS)
        assert target.read_bytes() == b"former"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("umask", "like", "expected"), [(0o022, None, 0o644), (0o027, 0o755, 0o750), (0, 0o4755, 0o755)]
)
def test_a_new_file_has_the_mode_of_its_source_less_the_umask(
    tmp_path: Path, umask: int, like: int | None, expected: int
) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"some")
    source.chmod(like or 0)
    former = os.umask(umask)
    try:
        replace_file(tmp_path / "new", PARTS, read=None if like is None else OpenFile(source))
    finally:
        os.umask(former)
    assert mode(tmp_path / "new") == expected


def test_a_symbolic_link_stays_and_its_target_is_replaced(target: Path) -> None:
    link = target.parent / "link"
    link.symlink_to("target")
    replace_file(link, PARTS)
    assert link.is_symlink()
    assert target.read_bytes() == b"new contents"
    dangling = target.parent / "dangling"
    dangling.symlink_to("later")
    with pytest.raises(FileNotFoundError, match=r"this symbolic link leads to nothing: .*dangling"):
        replace_file(dangling, PARTS)
    assert dangling.is_symlink()
    assert sorted(path.name for path in target.parent.iterdir()) == ["dangling", "link", "target"]


@pytest.mark.parametrize("there", [False, True])
def test_a_link_that_comes_after_the_name_was_looked_up_is_not_followed(
    there: bool, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = target.parent / "output"
    if there:
        output.write_bytes(b"old")
    opened = os.open

    def and_then_swapped(name: str, *args: int, **more: Any) -> int:
        try:
            return opened(name, *args, **more)
        finally:
            if name == str(output):
                output.unlink(missing_ok=True)
                output.symlink_to("target")

    monkeypatch.setattr(os, "open", and_then_swapped)
    with pytest.raises(OSError, match=r"took its place|was taken away|leads to nothing"):
        replace_file(output, PARTS)
    assert target.read_bytes() == b"old"
    assert sorted(path.name for path in target.parent.iterdir()) == ["output", "target"]


def test_whoever_has_the_old_file_open_keeps_it(target: Path) -> None:
    with target.open("rb") as old:
        replace_file(target, PARTS)
        assert old.read() == b"old"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_on_the_way_leaves_the_old_file(target: Path, error: type[BaseException]) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise error

    with pytest.raises(error):
        replace_file(target, parts())
    assert target.read_bytes() == b"old"
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "nowhere" / "file", PARTS)


def test_a_file_in_a_folder_of_the_system_is_replaced_too() -> None:
    """In `/dev` there is a file system for shared memory, and `/proc` leads to every folder."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for name in (f"{folder}/file", f"/proc/self/root{folder}/file"):
            for contents in (b"longer than the next", b"next"):
                replace_file(name, [contents])
                assert Path(folder, "file").read_bytes() == contents
        assert [one.name for one in Path(folder).iterdir()] == ["file"]


def test_a_device_is_written_to() -> None:
    replace_file("/dev/null", PARTS)
    assert Path("/dev/null").is_char_device()


def test_a_killed_process_leaves_the_old_file(target: Path) -> None:
    script = (
        "import sys, time; from walkback.base.replace import replace_file\n"
        "def parts():\n    yield b'x' * 100000\n    print('half', flush=True)\n    time.sleep(60)\n"
        "replace_file(sys.argv[1], parts())"
    )
    with subprocess.Popen([sys.executable, "-c", script, target], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert target.read_bytes() == b"old"


# In place


def swapped(target: Path, how: str) -> Path:
    """Put something else in the place of a file; returns what must stay as it is."""
    other = target.parent / "other"
    other.write_bytes(b"precious")
    other.chmod(0o4755)
    target.rename(target.parent / "away")
    if how == "link":
        target.symlink_to(other)
    elif how == "hard link":
        target.hardlink_to(other)
    return other


@pytest.mark.parametrize("how", ["link", "hard link", "nothing"])
@pytest.mark.parametrize("moment", ["before it is written", "while it is written"])
def test_a_file_that_took_the_place_of_the_one_that_was_read_is_left_alone(target: Path, how: str, moment: str) -> None:
    read = OpenFile(target)
    others: list[Path] = []
    if moment == "before it is written":
        others.append(swapped(target, how))

    def parts() -> Iterator[bytes]:
        yield b"half"
        if not others:
            others.append(swapped(target, how))
        yield b"whole"

    with pytest.raises(OSError, match="another file took its place") as caught:
        replace_file(None, parts(), read=read)
    assert caught.value.filename == str(target)
    assert others[0].read_bytes() == b"precious"
    assert mode(others[0]) == 0o4755
    assert (target.parent / "away").read_bytes() == b"old"
    assert not list(target.parent.glob(".walkback-*"))


def test_a_folder_that_was_swapped_gets_nothing(tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "target").write_bytes(b"old")
    (other / "target").write_bytes(b"precious")

    def parts() -> Iterator[bytes]:
        yield b"new"
        folder.rename(tmp_path / "away")
        folder.symlink_to(other)

    replace_file(None, parts(), read=OpenFile(folder / "target"))
    assert (other / "target").read_bytes() == b"precious"
    assert (tmp_path / "away/target").read_bytes() == b"new"
    assert [path.name for path in other.iterdir()] == ["target"]


def test_a_file_that_was_written_to_since_it_was_read_is_left_alone(target: Path) -> None:
    read = OpenFile(target)
    before = target.stat()
    target.write_bytes(b"OLD")
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))  # which hides it from all but the inode's own time
    while target.stat().st_ctime_ns == before.st_ctime_ns:
        target.chmod(0o600)
    with pytest.raises(OSError, match="it changed while it was read"):
        replace_file(None, PARTS, read=read)
    assert target.read_bytes() == b"OLD"


def test_a_link_that_was_named_on_purpose_is_followed_once(target: Path) -> None:
    link = target.parent / "link"
    link.symlink_to("target")
    replace_file(None, PARTS, read=OpenFile(link))
    assert link.is_symlink()
    assert target.read_bytes() == b"new contents"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives capabilities")
def test_privileges_stay_in_place_and_never_with_other_contents(target: Path) -> None:
    net_raw = bytes.fromhex("0100000200200000000000000000000000000000")
    target.chmod(0o4755)
    try:
        os.setxattr(target, "security.capability", net_raw)
    except OSError:
        pytest.skip("no capabilities here")
    replace_file(None, PARTS, read=OpenFile(target))
    assert (mode(target), os.getxattr(target, "security.capability")) == (0o4755, net_raw)
    replace_file(target, PARTS)
    assert mode(target) == 0o755
    assert "security.capability" not in os.listxattr(target)


# Errors


@pytest.fixture
def immutable(target: Path) -> Iterator[Path]:
    if subprocess.run(["chattr", "+i", target], check=False, capture_output=True).returncode:
        pytest.skip("no file can be made immutable here")
    yield target
    subprocess.run(["chattr", "-i", target], check=True)


@pytest.mark.parametrize("in_place", [True, False])
def test_an_immutable_file_is_named_and_not_the_temporary_one(immutable: Path, in_place: bool) -> None:
    with pytest.raises(PermissionError) as caught:
        replace_file(None if in_place else immutable, PARTS, read=OpenFile(immutable))
    assert caught.value.filename == str(immutable)
    with pytest.raises(PermissionError) as caught, replacing(immutable) as out:
        out.write(b"new")
    assert caught.value.filename == str(immutable)
    assert [path.name for path in immutable.parent.iterdir()] == ["target"]


def test_a_directory_in_the_place_of_the_output_is_named(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(IsADirectoryError) as caught:
        replace_file(tmp_path / "there", PARTS)
    assert caught.value.filename == str(tmp_path / "there")


# Piece by piece


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
    with subprocess.Popen([sys.executable, "-c", script, target], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert target.read_bytes() == b"old"


class Signalled(BaseException):
    """As what a handler raises."""


@pytest.mark.parametrize("in_place", [False, True])
def test_a_signal_after_any_call_leaves_the_old_file_or_the_new_one_and_nothing_beside(
    target: Path, *, in_place: bool
) -> None:
    for moment in itertools.count(1):
        target.write_bytes(b"old")
        left, read = moment, OpenFile(target)

        def after_a_call(frame: FrameType, event: str, _: object) -> None:
            nonlocal left
            if event == "c_return" and Path(frame.f_code.co_filename).name == "replace.py":
                left -= 1
                if not left:
                    sys.setprofile(None)
                    raise Signalled

        try:
            sys.setprofile(after_a_call)
            replace_file(None if in_place else target, PARTS, read=read)
        except Signalled:
            assert target.read_bytes() in {b"old", b"new contents"}
            assert list(target.parent.iterdir()) == [target]
        else:
            break
        finally:
            sys.setprofile(None)
    assert moment > 15
