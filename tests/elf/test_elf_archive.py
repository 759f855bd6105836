from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from walkback.base.errors import ElfError, UnreadableError
from walkback.elf import is_archive, members, read_file

GNU = b"!<arch>\n"


def entry(name: str, data: bytes, *, size: int | str | None = None, magic: str = "`\n") -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(data) if size is None else size:<10}{magic}"
    return head.encode() + data + b"\n" * (len(data) % 2)


def read(data: bytes, name: str = "lib.a") -> list[tuple[str, bytes]]:
    return [(member.name, bytes(member.data)) for member in members(data, name)]


def test_short_names_end_with_a_slash_or_with_spaces() -> None:
    data = GNU + entry("a.o/", b"one") + entry("b c.o", b"four") + entry("c.o/", b"")
    assert read(data) == [("a.o", b"one"), ("b c.o", b"four"), ("c.o", b"")]


def test_offsets_are_those_of_the_contents() -> None:
    data = GNU + entry("a.o/", b"one") + entry("b.o/", b"two")
    assert [data[member.offset :][:3] for member in members(data, "")] == [b"one", b"two"]


def test_gnu_long_names_and_both_indexes() -> None:
    names = b"a-very-long-name.o/\nanother-long-name.o/\n"
    data = GNU + entry("/", b"index") + entry("/SYM64/", b"index") + entry("//", names)
    data += entry("/20", b"2") + entry("/0", b"1")
    assert read(data) == [("another-long-name.o", b"2"), ("a-very-long-name.o", b"1")]


def test_bsd_long_names_and_index() -> None:
    data = GNU + entry("#1/20", b"__.SYMDEF SORTED\0\0\0\0index")
    data += entry("__.SYMDEF", b"index") + entry("#1/8", b"x.long\0\0body")
    assert read(data) == [("x.long", b"body")]
    member = list(members(data, ""))[-1]
    assert data[member.offset :] == b"body"


def test_the_last_member_may_lack_its_padding() -> None:
    data = GNU + entry("a.o/", b"one")
    assert read(data[:-1]) == [("a.o", b"one")]


def test_an_empty_archive_has_no_members() -> None:
    assert is_archive(GNU)
    assert is_archive(b"!<thin>\n")
    assert not is_archive(b"!<arch>")
    assert read(GNU) == []
    with pytest.raises(UnreadableError, match="not an archive"):
        read(b"\x7fELF")


@pytest.mark.parametrize(
    "data",
    [
        entry("a.o/", b"one", size=999),
        entry("a.o/", b"one", size=9999999999),
        entry("a.o/", b"one", size="-1"),
        entry("a.o/", b"one", size="0x3"),
        entry("a.o/", b"one", size=""),
        entry("a.o/", b"one", size="1_0"),
        entry("a.o/", b"one", magic="xx"),
        entry("/7", b"no table of names"),
        entry("//", b"name/") + entry("/0", b"no newline"),
        entry("//", b"name/\n") + entry("/6", b""),
        entry("/x", b""),
        entry("#1/9", b"short"),
        entry("#1/-1", b"short"),
        entry("#1/", b"short"),
        entry("a.o/", b"one")[:50],
        entry("/", b"one", size=999),
    ],
)
def test_broken_members_are_errors(data: bytes) -> None:
    with pytest.raises(ElfError, match=r"^lib\.a: offset 0x"):
        read(GNU + data)


def test_members_before_the_broken_one_are_given() -> None:
    found = members(GNU + entry("a.o/", b"one") + b"garbage", "lib.a")
    assert next(found).name == "a.o"
    with pytest.raises(ElfError):
        next(found)


class TestThin:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "sub").mkdir()
        (tmp_path / "sub" / "a.o").write_bytes(b"contents")
        return tmp_path

    def thin(self, name: str, size: int) -> bytes:
        # The members of a thin archive have a size and no bytes.
        return b"!<thin>\n" + entry("//", name.encode() + b"/\n") + entry("/0", b"", size=size)

    def test_members_are_files_beside_the_archive(self, folder: Path) -> None:
        assert read(self.thin("sub/a.o", 8), str(folder / "lib.a")) == [("sub/a.o", b"contents")]
        assert read(self.thin(f"{folder}/sub/a.o", 8), "elsewhere.a") == [(f"{folder}/sub/a.o", b"contents")]

    @pytest.mark.parametrize(
        ("name", "size", "text"),
        [
            ("sub/b.o", 8, "No such file"),
            ("sub", 8, "directory"),
            ("sub/a.o", 9, "has 8 bytes instead of 9"),
            ("a\0b", 8, "null"),
            ("/dev/zero", 8, "not a regular file"),
        ],
    )
    def test_a_member_that_is_not_there_is_an_error(self, folder: Path, name: str, size: int, text: str) -> None:
        with pytest.raises(ElfError, match=text):
            read(self.thin(name, size), str(folder / "lib.a"))

    def test_members_that_name_one_file_again_and_again_are_refused(self, folder: Path) -> None:
        (folder / "sub" / "a.o").write_bytes(bytes(1 << 20))
        data = self.thin("sub/a.o", 1 << 20)
        many = data + entry("/0", b"", size=1 << 20) * 10_000
        found: list[Any] = []
        with pytest.raises(ElfError, match="the members of this thin archive name the same files again and again"):
            found.extend(members(many, str(folder / "lib.a")))
        assert len(found) == 8

    def test_one_table_of_names_is_read_once_for_many_members(self, folder: Path) -> None:
        inner = GNU + entry("//", b"long-name.o/\n" + bytes(1 << 20)) + entry("/0", b"some")
        (folder / "inner.a").write_bytes(inner)
        place = len(inner) - 64
        data = b"!<thin>\n" + entry("//", b"inner.a/\n") + entry(f"/0:{place}", b"", size=4) * 2000
        assert read(data, str(folder / "lib.a")) == [("long-name.o", b"some")] * 2000

    def test_a_reference_into_a_file_that_is_no_archive_is_an_error(self, folder: Path) -> None:
        data = b"!<thin>\n" + entry("//", b"sub/a.o/\n") + entry("/0:8", b"", size=4)
        with pytest.raises(ElfError, match="does not have the member"):
            read(data, str(folder / "lib.a"))


@pytest.mark.skipif(not shutil.which("ar"), reason="needs ar")
class TestAr:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        for number, name in enumerate(("a.o", "a-name-of-more-than-sixteen.o", "another-long-name.o")):
            (tmp_path / name).write_bytes(bytes([number]) * (number + 3))
        return tmp_path

    def ar(self, folder: Path, *arguments: str) -> None:
        subprocess.run(["ar", *arguments], cwd=folder, check=True)

    def contents(self, path: Path) -> list[tuple[str, bytes]]:
        return [(m.name, bytes(m.data)) for m in members(read_file(path), str(path))]

    @pytest.mark.parametrize("flags", ["rc", "rcT"])
    def test_members_are_those_that_were_put_in(self, folder: Path, flags: str) -> None:
        names = sorted(path.name for path in folder.iterdir())
        self.ar(folder, flags, "lib.a", *names)
        assert self.contents(folder / "lib.a") == [(name, (folder / name).read_bytes()) for name in names]

    def test_an_archive_in_a_thin_archive_gives_its_members(self, folder: Path) -> None:
        names = sorted(path.name for path in folder.iterdir())
        (folder / "in").mkdir()
        self.ar(folder, "rc", "in/inner.a", *names)
        (folder / "z.o").write_bytes(b"last")  # ar would replace a member of the same name
        self.ar(folder, "rcT", "outer.a", "in/inner.a", "z.o")
        assert read_file(folder / "outer.a")[:8] == b"!<thin>\n"
        inner = [(name, (folder / name).read_bytes()) for name in names]
        assert self.contents(folder / "outer.a") == [*inner, ("z.o", b"last")]


def test_damaged_archives_raise_nothing_else(tmp_path: Path) -> None:
    chance = random.Random(7)
    names = b"a-very-long-name.o/\nanother-long-name.o/\n"
    body = entry("/", b"index") + entry("//", names) + entry("/20", b"2") + entry("#1/8", b"x.long\0\0body")
    for magic in (GNU, b"!<thin>\n"):
        for _ in range(3000):
            data = bytearray(magic + body + entry("a.o/", b"one"))
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(8, len(data))] = chance.choice(b"0123456789/# :`\n\0\xff")
            with contextlib.suppress(UnreadableError):
                read(bytes(data[: chance.randint(8, len(data) + 40)]), str(tmp_path / "lib.a"))
