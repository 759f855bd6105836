"""A file is replaced whole or stays as it is."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from base.replaced import PARTS, killed_half_way, mode
from walkback.base.replace import replace_file, replacing
from walkback.elf import OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


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
    killed_half_way(script, target)
    assert target.read_bytes() == b"old"


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
