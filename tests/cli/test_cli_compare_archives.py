"""`walkback compare` on archives."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.compared import NOT_TWO, PUSHED, added, objects
from cli.hello import hello_object, whole
from cli.inprocess import run
from sframefiles import archive, written


@pytest.fixture
def members(tmp_path: Path) -> tuple[Path, Path]:
    """Two objects with both tables."""
    one = added(whole(tmp_path, linked=False)).rename(tmp_path / "one.o")
    return one, written(tmp_path, one.read_bytes(), "two.o")


def test_members_of_an_archive_are_compared_each_with_itself_and_named(
    tmp_path: Path, members: tuple[Path, Path]
) -> None:
    path = archive(tmp_path, "all.a", *members)
    done = run("compare", path, "--strict")
    assert (done.exit_code, done.stderr) == (0, "")
    expected = "".join(
        f"{path}({one.name}): .eh_frame and .sframe\n  the same rule: 3 functions, 35 bytes of code\n"
        for one in members
    )
    assert done.stdout == expected
    assert [one["file"] for one in objects(path)] == [f"{path}({one.name})" for one in members]


def test_a_difference_in_any_member_is_1(tmp_path: Path, members: tuple[Path, Path]) -> None:
    data = members[0].read_bytes()
    members[0].write_bytes(data.replace(PUSHED, PUSHED[:2] + b"\x18"))
    path = archive(tmp_path, "all.a", *members)
    done = run("compare", path)
    assert (done.exit_code, done.stdout.count("different rules")) == (1, 1)
    assert f"{path}(two.o): " in done.stdout


def test_an_archive_without_two_tables_is_one_line_and_1(tmp_path: Path) -> None:
    path = archive(tmp_path, "all.a", hello_object(tmp_path))
    done = run("compare", path)
    assert (done.exit_code, done.stdout) == (1, "")
    # `walkback add`, which would help an ELF file, takes no archive.
    assert done.stderr == f"walkback: {path}: {NOT_TWO.partition(';')[0]}\n"


@pytest.mark.parametrize("order", [1, -1])
def test_a_member_that_cannot_be_read_hides_no_other(tmp_path: Path, members: tuple[Path, Path], order: int) -> None:
    data = members[0].read_bytes()
    at = data.index(b"\xe2\xde\x03") + 8
    members[0].write_bytes(data[:at] + b"\x63" + data[at + 1 :])
    path = archive(tmp_path, "all.a", *members[::order])
    done = run("compare", path)
    assert done.exit_code == 3
    assert done.stderr.startswith(f"walkback: {path}(one.o): .sframe+0x8: ")
    assert f"{path}(two.o): .eh_frame and .sframe\n" in done.stdout
