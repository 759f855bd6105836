"""A file is replaced in place only if it is the one that was read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from base.replaced import PARTS, mode
from walkback.base.replace import replace_file
from walkback.elf import OpenFile

if TYPE_CHECKING:
    from collections.abc import Iterator


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
