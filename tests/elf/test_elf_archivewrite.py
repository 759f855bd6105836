"""Archives with members changed: all that is not the contents stays, and the index leads to the members."""

from __future__ import annotations

import contextlib
import random
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grafting import linker_folder, output_of
from peers import peer, run
from walkback.base.errors import ElfError, GraftError, WalkbackError
from walkback.elf import SECTION_RELOCATION, ElfFile, members, read_file
from walkback.elf.archive import Member
from walkback.elf.archivewrite import rewritten
from walkback.graft import ObjectSection, set_sections

GNU = b"!<arch>\n"
LONG = b"a-very-long-name.o/\nanother-long-name.o/\n"
MEGABYTES = memoryview(bytes(1 << 26))


def entry(name: str, data: bytes, size: int | None = None) -> bytes:
    head = f"{name:<16}{1234567:<12}{11:<6}{22:<6}{100640:<8}{len(data) if size is None else size:<10}`\n"
    return head.encode() + data + b"\n" * (len(data) % 2)


def changed(data: bytes, contents: dict[str, bytes]) -> bytes:
    def change(member: Member) -> list[bytes] | None:
        assert data[member.header : member.header + 60].endswith(b"`\n")
        return [contents[member.name]] if member.name in contents else None

    return b"".join(rewritten(memoryview(data), "lib.a", change))


@pytest.mark.parametrize("new", [b"", b"n", b"four", b"other"])
def test_the_size_follows_and_the_rest_stays(new: bytes) -> None:
    data = GNU + entry("//", LONG) + entry("/0", b"one") + entry("b.o/", b"two") + entry("#1/8", b"x.long\0\0body")
    for name, before, after in (
        ("a-very-long-name.o", entry("/0", b"one"), entry("/0", new)),
        ("b.o", entry("b.o/", b"two"), entry("b.o/", new)),
        ("x.long", entry("#1/8", b"x.long\0\0body"), entry("#1/8", b"x.long\0\0" + new)),
    ):
        assert changed(data, {name: new}) == data.replace(before, after)


def test_without_changes_it_is_the_same() -> None:
    data = GNU + entry("/", b"no index") + entry("a.o/", b"one")[:-1]
    assert changed(data, {}) == data
    [part] = rewritten(memoryview(data), "lib.a", lambda _: None)
    assert isinstance(part, memoryview)


def test_a_last_member_without_padding() -> None:
    data = GNU + entry("a.o/", b"one") + entry("b.o/", b"two")[:-1]
    assert changed(data, {"a.o": b"longer"}) == GNU + entry("a.o/", b"longer") + entry("b.o/", b"two")[:-1]
    assert changed(data, {"b.o": b"2"}) == GNU + entry("a.o/", b"one") + entry("b.o/", b"2")


def test_many_members_of_one_name() -> None:
    data = GNU + entry("a.o/", b"one") * 3
    assert changed(data, {"a.o": b"12"}) == GNU + entry("a.o/", b"12") * 3


INDEXES: dict[str, Callable[[int, int], bytes]] = {
    "/": lambda one, two: struct.pack(">IIII", 3, one, two, two) + b"a\0b\0c\0",
    "/SYM64/": lambda one, two: struct.pack(">QQQQ", 3, one, two, two) + b"a\0b\0c\0",
    "__.SYMDEF": lambda one, two: struct.pack("<IIIIII", 16, 0, one, 2, two, 4) + b"a\0b\0",
    "__.SYMDEF SORTED": lambda one, two: struct.pack(">IIIIII", 16, 0, one, 2, two, 4) + b"a\0b\0",
    "__.SYMDEF_64": lambda one, two: struct.pack("<QQQQQQ", 32, 0, one, 2, two, 4) + b"a\0b\0",
    "#1/20": lambda one, two: b"__.SYMDEF SORTED\0\0\0\0" + struct.pack("<IIIIII", 16, 0, one, 2, two, 4) + b"a\0b\0",
}


class TestIndex:
    def archive(self, name: str, one: bytes, two: bytes, far: int = 0) -> bytes:
        index = INDEXES[name]
        start = 8 + len(entry(name, index(0, 0)))
        second = start + len(entry("a.o/", one))
        return GNU + entry(name, index(start, second + far)) + entry("a.o/", one) + entry("b.o/", two)

    @pytest.mark.parametrize("name", INDEXES)
    def test_it_leads_to_where_the_members_are_now(self, name: str) -> None:
        data = self.archive(name, b"one", b"two")
        for one, two in ((b"longer", b"two"), (b"", b"2"), (b"one", b"too long")):
            assert changed(data, {"a.o": one, "b.o": two}) == self.archive(name, one, two)

    @pytest.mark.parametrize("name", INDEXES)
    def test_one_that_leads_nowhere_is_an_error(self, name: str) -> None:
        with pytest.raises(ElfError, match=r"^lib\.a: offset 0x(44|58): the symbol index .* does not lead to members"):
            changed(self.archive(name, b"one", b"two", far=2), {"a.o": b"1"})

    @pytest.mark.parametrize("contents", [b"", b"\0\0", b"\0\0\0\1", b"\xff" * 8, struct.pack(">II", 2, 8)])
    def test_one_that_is_too_short_is_an_error(self, contents: bytes) -> None:
        data = GNU + entry("/", contents) + entry("a.o/", b"one")
        with pytest.raises(ElfError, match="does not lead to members"):
            changed(data, {"a.o": b"1"})

    def test_offsets_that_no_longer_fit_are_an_error(self) -> None:
        def change(member: Member) -> list[memoryview] | None:
            return [MEGABYTES] * 64 if member.name == "a.o" else None

        data = memoryview(self.archive("/", b"one", b"two"))
        with pytest.raises(GraftError, match="too large for the symbol index /"):
            rewritten(data, "lib.a", change)
        parts = rewritten(memoryview(self.archive("/SYM64/", b"one", b"two")), "lib.a", change)
        assert sum(map(len, parts)) > 1 << 32

    def test_a_member_too_large_is_an_error(self) -> None:
        data = memoryview(GNU + entry("a.o/", b"one"))
        with pytest.raises(GraftError, match=r"member a\.o becomes larger"):
            rewritten(data, "lib.a", lambda _: [MEGABYTES] * 150)


def test_thin_archives_are_refused() -> None:
    with pytest.raises(GraftError, match=r"^lib\.a: this is a thin archive"):
        rewritten(memoryview(b"!<thin>\n"), "lib.a", lambda _: None)


def test_damaged_archives_raise_nothing_else() -> None:
    chance = random.Random(7)
    body = entry("/", struct.pack(">II", 1, 140) + b"a\0") + entry("//", LONG) + entry("/20", b"2")
    body += entry("#1/12", b"__.SYMDEF\0\0\0" + struct.pack("<IIII", 8, 0, 140, 0)) + entry("a.o/", b"one")
    for _ in range(3000):
        data = bytearray(GNU + body)
        for _ in range(chance.randint(0, 5)):
            data[chance.randrange(8, len(data))] = chance.choice(b"0123456789/# :`\n\0\xff")
        with contextlib.suppress(WalkbackError):
            cut = bytes(data[: chance.randint(8, len(data) + 40)])
            parts = rewritten(memoryview(cut), "lib.a", lambda _: [b"changed"])
            assert [bytes(one.data) for one in members(b"".join(parts), "")] == [b"changed"] * len(
                list(members(cut, ""))
            )


ARCHIVERS = [
    *(("ar-2.40", "rcU"), ("ar-2.44", "rcD"), ("ar-new", "rcU"), ("ar-new", "rcSD")),
    *(("llvm-ar", "rcU"), ("llvm-ar", "--format=bsd rcU"), ("llvm-ar", "--format=darwin rcU")),
]

SOURCES = {
    "main": """int twice (int), puts (const char *);
               int main (void) { return twice (21) != 42 || puts ("ok") < 0; }""",
    "a": "int odd (int n) { return n + 1; }",
    "a-name-of-more-than-sixteen": "int odd (int); int twice (int n) { return odd (n) + n - 1; }",
    "unused": "int unused (void) { return 3; } int unused_too = 6;",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("objects")
    for name, text in SOURCES.items():
        (folder / f"{name}.c").write_text(text)
        subprocess.run(["gcc", "-O1", "-c", f"{name}.c"], cwd=folder, check=True)
    return folder


@pytest.mark.peers
class TestArchivers:
    @pytest.fixture(params=ARCHIVERS, ids=" ".join)
    def archive(self, request: pytest.FixtureRequest, folder: Path, tmp_path: Path) -> Path:
        archiver, flags = request.param
        names = [f"{name}.o" for name in SOURCES if name != "main"]
        (folder / "odd.txt").write_text("odd")
        run(archiver, *flags.split(), tmp_path / "lib.a", "odd.txt", *names, cwd=folder, check=True)
        return tmp_path / "lib.a"

    def with_sections(self, archive: Path) -> Path:
        def change(member: Member) -> Any:
            if member.name == "odd.txt":
                return None
            elf = ElfFile(member.data, member.name)
            where = np.array([(28, 0, 24, elf.sections_named(".text")[0])], SECTION_RELOCATION)
            # No right section: the index has to lead to the members nevertheless.
            return set_sections(elf, [ObjectSection(bytes(64 + len(member.name) % 2), where)])

        target = archive.with_name("new.a")
        target.write_bytes(b"".join(rewritten(read_file(archive), "lib.a", change)))
        return target

    def test_everything_but_the_contents_is_kept(self, archive: Path) -> None:
        target = self.with_sections(archive)
        assert target.stat().st_size > archive.stat().st_size
        assert changed(archive.read_bytes(), {}) == archive.read_bytes()
        for command in (("ar-new", "t"), ("ar-2.40", "t"), ("llvm-ar", "t"), ("nm-new", "-s"), ("nm-2.40", "-s")):
            before, after = (run(*command, path) for path in (archive, target))
            listed = before.stdout.partition(b"\n\n")[0] if "nm" not in command[0] else before.stdout
            assert listed in after.stdout
            assert after.stderr == before.stderr
        listings = [run("ar-new", "tv", path).stdout.decode().split("\n") for path in (archive, target)]
        columns = [[line.split()[:2] + line.split()[3:] for line in lines] for lines in listings]
        assert columns[0] == columns[1]
        old, new = (list(members(read_file(path), "")) for path in (archive, target))
        assert [one.name for one in old] == [one.name for one in new]
        assert all(bytes(one.data[:4]) == b"\x7fELF" for one in new if one.name != "odd.txt")

    @pytest.mark.parametrize("linker", ["ld-2.40", "ld-new", "ld.lld"])
    def test_linkers_find_the_symbols(self, linker: str, archive: Path, folder: Path) -> None:
        paths = [archive, self.with_sections(archive)]
        done = []
        for path in paths:
            program = path.with_suffix("")
            command: list[str | Path] = [
                "gcc",
                f"-B{linker_folder(archive.parent, linker)}",
                folder / "main.o",
                path,
                "-o",
                program,
            ]
            done.append(subprocess.run(command, capture_output=True, check=False).returncode)
        # Some linkers of old do not know the forms of LLVM's archiver, before and after.
        assert done[0] == done[1]
        if not done[0]:
            assert output_of(paths[1].with_suffix("")) == "ok\n"

    def test_the_index_is_what_the_archiver_would_write(self, folder: Path, tmp_path: Path) -> None:
        for archiver in ("ar-2.40", "ar-new", "llvm-ar"):
            path = tmp_path / f"{archiver}.a"
            names = [f"{name}.o" for name in SOURCES]
            run(archiver, "rcD", path, *names, cwd=folder, check=True)
            target = self.with_sections(path)
            for one, member in zip(names, members(read_file(target), ""), strict=True):
                (tmp_path / one).write_bytes(member.data)
            run(archiver, "rcD", tmp_path / f"again-{archiver}.a", *names, cwd=tmp_path, check=True)
            assert target.read_bytes() == (tmp_path / f"again-{archiver}.a").read_bytes()

    def test_thin_archives_are_refused(self, folder: Path, tmp_path: Path) -> None:
        run("ar-new", "rcT", tmp_path / "thin.a", "a.o", cwd=folder, check=True)
        with pytest.raises(GraftError, match="thin archive"):
            self.with_sections(tmp_path / "thin.a")
        assert peer("ar-new")
