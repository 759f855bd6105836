"""Debug files are found where GDB finds them, and only the right ones are taken."""

from __future__ import annotations

import lzma
import os
import shutil
import struct
import subprocess
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from elf.notes import note
from elfbuilder import ElfBuilder
from peers import peer
from walkback.base.arch import ByteOrder
from walkback.base.errors import ElfError, PassedOverWarning, UnreadableError
from walkback.elf import DEBUG_ROOTS, DebugLink, ElfFile, FileSearch, debug_data, debug_file, debug_link

ORDERS = pytest.mark.parametrize("order", ["little", "big"])
BUILD_ID = bytes.fromhex("0123456789abcdef")


def link(name: bytes, crc: int, order: ByteOrder = "little") -> bytes:
    data = name + b"\0"
    return data + bytes(-len(data) % 4) + struct.pack(("<" if order == "little" else ">") + "I", crc)


def image(
    *,
    build_id: bytes | None = None,
    link: bytes | None = None,
    debugdata: bytes | None = None,
    mark: bytes = b"",
    order: ByteOrder = "little",
) -> bytes:
    builder = ElfBuilder(order, kind=3)
    builder.section(".mark", mark)
    if build_id is not None:
        builder.section(".note.gnu.build-id", note(b"GNU\0", 3, build_id, order=order), kind=7, addralign=4)
    if link is not None:
        builder.section(".gnu_debuglink", link)
    if debugdata is not None:
        builder.section(".gnu_debugdata", debugdata)
    return bytes(builder.build())


def written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of debug files."""
    return tmp_path / "debug"


class Case:
    """A stripped file in a folder of its own, and what is found for it."""

    def __init__(self, folder: Path, root: Path, **options: Any) -> None:
        self.root = root
        self.path = written(folder / "bin" / "prog", image(**options))

    def found(self) -> str | None:
        with ElfFile(self.path) as elf:
            found = debug_file(elf, (self.root.parent / "nowhere", self.root))
            return None if found is None else os.path.relpath(found.name, self.root.parent)


class TestLink:
    @ORDERS
    @pytest.mark.parametrize("name", [b"a", b"abc", b"abcd", b"prog.debug", b"\xff.debug"])
    def test_name_and_checksum(self, order: ByteOrder, name: bytes) -> None:
        elf = ElfFile(image(link=link(name, 0x12345678, order), order=order), "test.elf")
        assert debug_link(elf) == DebugLink(os.fsdecode(name), 0x12345678)

    def test_a_file_without_one_has_none(self) -> None:
        assert debug_link(ElfFile(image(), "test.elf")) is None

    @pytest.mark.parametrize("name", [b"", b".", b"..", b"/etc/passwd", b"../prog", b"a/b"])
    def test_what_is_no_file_name_is_an_error(self, name: bytes) -> None:
        with pytest.raises(ElfError, match="not a file name"):
            debug_link(ElfFile(image(link=link(name, 0)), "test.elf"))

    def test_every_truncation_is_an_error(self) -> None:
        whole = link(b"prog.debug", 1)
        for length in range(len(whole)):
            with pytest.raises(ElfError, match=r"test\.elf: \.gnu_debuglink ends before its checksum"):
                debug_link(ElfFile(image(link=whole[:length]), "test.elf"))


class TestByBuildId:
    PLACE = f".build-id/{BUILD_ID.hex()[:2]}/{BUILD_ID.hex()[2:]}.debug"

    def test_it_is_found_under_a_root(self, tmp_path: Path, root: Path) -> None:
        case = Case(tmp_path, root, build_id=BUILD_ID)
        assert case.found() is None
        written(root / self.PLACE, image(build_id=BUILD_ID, mark=b"debug"))
        assert case.found() == f"debug/{self.PLACE}"

    @pytest.mark.parametrize("other", [None, b"", BUILD_ID[:-1], BUILD_ID + b"\0"])
    def test_another_build_id_is_passed_over(self, tmp_path: Path, root: Path, other: bytes | None) -> None:
        case = Case(tmp_path, root, build_id=BUILD_ID)
        written(root / self.PLACE, image(build_id=other))
        why = "has no build ID that can be read" if other is None else "is of another build than .*prog"
        with pytest.warns(PassedOverWarning, match=f"this debug file {why}, and is not used"):
            assert case.found() is None

    def test_it_goes_before_the_link(self, tmp_path: Path, root: Path) -> None:
        data = image(build_id=BUILD_ID, mark=b"debug")
        case = Case(tmp_path, root, build_id=BUILD_ID, link=link(b"prog.debug", zlib.crc32(data)))
        written(case.path.with_name("prog.debug"), data)
        assert case.found() == "bin/prog.debug"
        written(root / self.PLACE, data)
        assert case.found() == f"debug/{self.PLACE}"

    @pytest.mark.parametrize("odd", [b"", b"\1", bytes(4000)])
    def test_odd_build_ids_lead_nowhere(self, tmp_path: Path, root: Path, odd: bytes) -> None:
        assert Case(tmp_path, root, build_id=odd).found() is None

    def test_the_file_itself_is_not_its_debug_file(self, tmp_path: Path, root: Path) -> None:
        case = Case(tmp_path, root, build_id=BUILD_ID)
        (root / self.PLACE).parent.mkdir(parents=True)
        (root / self.PLACE).symlink_to(case.path)
        assert case.found() is None

    def test_bytes_in_memory_have_debug_files_too(self, root: Path) -> None:
        written(root / self.PLACE, image(build_id=BUILD_ID))
        found = debug_file(ElfFile(image(build_id=BUILD_ID), "<bytes>"), [str(root)])
        assert found is not None
        assert found.build_id == BUILD_ID


class TestByLink:
    DATA = image(mark=b"debug")

    def case(self, tmp_path: Path, root: Path, crc: int | None = None, **options: Any) -> Case:
        crc = zlib.crc32(self.DATA) if crc is None else crc
        return Case(tmp_path, root, link=link(b"prog.debug", crc), **options)

    def test_it_is_found_beside_the_file_below_it_and_under_a_root(self, tmp_path: Path, root: Path) -> None:
        case = self.case(tmp_path, root)
        assert case.found() is None
        mirrored = root / str(case.path.parent)[1:] / "prog.debug"
        beside = [case.path.parent / "prog.debug", case.path.parent / ".debug" / "prog.debug"]
        for path in (mirrored, *reversed(beside)):  # each is preferred to those before
            written(path, self.DATA)
            assert case.found() == str(path.relative_to(tmp_path))

    def test_symbolic_links_are_followed_to_the_folder_of_the_file(self, tmp_path: Path, root: Path) -> None:
        case = self.case(tmp_path, root)
        written(case.path.parent / "prog.debug", self.DATA)
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "name").symlink_to(case.path)
        case.path = tmp_path / "other" / "name"
        assert case.found() == "bin/prog.debug"

    def test_a_relative_path_is_enough(self, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        case = self.case(tmp_path, root)
        mirrored = root / str(case.path.parent)[1:] / "prog.debug"
        written(mirrored, self.DATA)
        monkeypatch.chdir(case.path.parent)
        case.path = Path("prog")
        assert case.found() == str(mirrored.relative_to(tmp_path))

    def test_a_wrong_checksum_is_passed_over_for_the_next_place(self, tmp_path: Path, root: Path) -> None:
        case = self.case(tmp_path, root)
        written(case.path.parent / "prog.debug", image(mark=b"other"))
        with pytest.warns(
            PassedOverWarning, match=r"prog\.debug: this debug file is of another build than .*prog, and"
        ):
            assert case.found() is None
        written(case.path.parent / ".debug" / "prog.debug", self.DATA)
        with pytest.warns(PassedOverWarning, match="another build"):
            assert case.found() == "bin/.debug/prog.debug"

    def test_build_ids_must_not_differ(self, tmp_path: Path, root: Path) -> None:
        for theirs, taken in ((BUILD_ID, True), (None, True), (b"other", False)):
            data = image(build_id=theirs)
            case = self.case(tmp_path, root, zlib.crc32(data), build_id=BUILD_ID)
            written(case.path.parent / "prog.debug", data)
            with nullcontext() if taken else pytest.warns(PassedOverWarning, match="another build"):
                assert (case.found() is not None) == taken

    def test_a_file_that_links_to_itself_has_none(self, tmp_path: Path, root: Path) -> None:
        data = image(link=link(b"prog", 0))
        path = written(tmp_path / "prog", data)
        with ElfFile(path) as elf:
            assert debug_file(elf, (root,)) is None
        # A checksum of itself cannot be written easily; but the file is passed over before it is asked for.
        (tmp_path / "prog.debug").symlink_to(path)
        case = self.case(tmp_path, root, 0)
        case.path.unlink()
        written(case.path, image(link=link(b"prog.debug", 0)))
        case.path.with_name("prog.debug").hardlink_to(case.path)
        assert case.found() is None

    def test_links_of_debug_files_are_not_followed(self, tmp_path: Path, root: Path) -> None:
        one = image(link=link(b"prog", 1))
        case = self.case(tmp_path, root, zlib.crc32(one))
        written(case.path.with_name("prog.debug"), one)
        assert case.found() == "bin/prog.debug"

    @pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "empty", "text", "cut", "secret"])
    def test_what_is_no_file_to_read_is_passed_over(self, tmp_path: Path, root: Path, kind: str) -> None:
        case = self.case(tmp_path, root)
        path = case.path.with_name("prog.debug")
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "loop":
            path.symlink_to(path)
        else:
            written(path, {"empty": b"", "text": b"#!/bin/sh\n", "cut": self.DATA[:60], "secret": self.DATA}[kind])
        if kind == "secret":
            path.chmod(0)
            assert os.geteuid() == 0 or case.found() is None
            return
        is_file = kind in {"empty", "text", "cut"}
        with pytest.warns(PassedOverWarning, match="cannot be read") if is_file else nullcontext():
            assert case.found() is None

    def test_a_sysroot_has_it_where_its_machine_has_the_program(self, tmp_path: Path) -> None:
        data = image(mark=b"debug")
        root = tmp_path / "root"
        program = written(root / "opt" / "prog", image(link=link(b"prog.debug", zlib.crc32(data))))
        place = written(root / "usr/lib/debug/opt/prog.debug", data)
        for sysroot in (root, os.path.relpath(root)):
            found = FileSearch(sysroot=sysroot).debug_file(ElfFile(program))
            assert found is not None
            assert place.samefile(found.name)

    def test_odd_names_of_the_file_itself_lead_nowhere(self, root: Path) -> None:
        for name in ("", "\0", "a\0b", "x" * 10_000, "archive.a(member.o)"):
            assert debug_file(ElfFile(image(link=link(b"no-such.debug", 1)), name), (root,)) is None


class TestDebugData:
    def test_it_is_an_elf_file(self) -> None:
        elf = ElfFile(image(debugdata=lzma.compress(image(mark=b"inside"))), "prog")
        inside = debug_data(elf)
        assert inside is not None
        assert inside.name == "prog(.gnu_debugdata)"
        assert bytes(inside.section_data(1)) == b"inside"

    def test_a_file_without_it_has_none(self) -> None:
        assert debug_data(ElfFile(image(), "prog")) is None

    @pytest.mark.parametrize(
        ("contents", "match"),
        [
            (b"", r"prog: \.gnu_debugdata: ends within its xz stream"),
            (b"no stream at all", r"prog: \.gnu_debugdata: holds a broken xz stream"),
            (lzma.compress(b"text"), r"prog\(\.gnu_debugdata\): this is not an ELF file"),
            (lzma.compress(b""), r"prog\(\.gnu_debugdata\): this is not an ELF file"),
            (lzma.compress(image()[:60]), "ends within its ELF header"),
            (lzma.compress(bytes(80 << 20), preset=0), "more than .* bytes"),
        ],
    )
    def test_damage_is_an_error(self, contents: bytes, match: str) -> None:
        with pytest.raises(UnreadableError, match=match):
            debug_data(ElfFile(image(debugdata=contents), "prog"))

    def test_what_is_compressed_in_it_counts_with_it(self) -> None:
        builder = ElfBuilder(kind=3)
        plain = 60 << 20
        stream = struct.pack("<IIQQ", 1, 0, plain, 1) + zlib.compress(bytes(plain))
        builder.section(".symtab", stream, kind=2, flags=0x800, entsize=24)
        inner = bytes(builder.build()) + bytes(20 << 20)
        assert len(ElfFile(inner, "inner").section_data(1)) == plain
        inside = debug_data(ElfFile(image(debugdata=lzma.compress(inner, preset=0)), "prog"))
        assert inside is not None
        with pytest.raises(ElfError, match="of at most"):
            inside.section_data(1)


@pytest.mark.peers
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
class TestPeers:
    @pytest.fixture
    def built(self, tmp_path: Path) -> Path:
        (tmp_path / "a.c").write_text("int main(void) { return 0; }\n")
        command = ["gcc", "-g", "-Wl,--build-id=sha1", "a.c", "-o", "prog"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path

    def objcopy(self, folder: Path, *args: str, name: str = "objcopy-new") -> None:
        subprocess.run([peer(name), *args], cwd=folder, check=True)

    @pytest.mark.parametrize("version", ["2.40", "new"])
    def test_a_file_split_by_objcopy_is_whole_again(self, built: Path, root: Path, version: str) -> None:
        name = f"objcopy-{version}"
        self.objcopy(built, "--only-keep-debug", "prog", "prog.debug", name=name)
        self.objcopy(built, "--strip-all", "--add-gnu-debuglink=prog.debug", "prog", name=name)
        with ElfFile(built / "prog") as elf:
            assert elf.sections_named(".symtab") == []
            expected = DebugLink("prog.debug", zlib.crc32((built / "prog.debug").read_bytes()))
            assert debug_link(elf) == expected
            found = debug_file(elf, (root,))
            assert found is not None
            assert found.build_id == elf.build_id
            assert found.sections_named(".symtab")
            build_id = elf.build_id.hex()
            place = root / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
            written(place, (built / "prog.debug").read_bytes())
            assert debug_file(elf, (root,)).name == str(place)

    def test_gdb_finds_the_same_file(self, built: Path, root: Path) -> None:
        if not shutil.which("gdb"):
            pytest.skip("needs gdb")
        self.objcopy(built, "--only-keep-debug", "--remove-section=.note.gnu.build-id", "prog", "prog.debug")
        self.objcopy(built, "--strip-all", "--remove-section=.note.gnu.build-id", "prog")
        self.objcopy(built, "--add-gnu-debuglink=prog.debug", "prog")
        data = (built / "prog.debug").read_bytes()
        (built / "prog.debug").unlink()
        mirrored = root / str(built)[1:] / "prog.debug"
        for path in (mirrored, built / ".debug" / "prog.debug", built / "prog.debug"):
            written(path, data)
            command = ["gdb", "-nx", "-batch", "-ex", f"set debug-file-directory {root}", "-ex", "file prog"]
            command += ["-ex", "maint print objfiles"]
            done = subprocess.run(command, cwd=built, capture_output=True, text=True, check=True)
            assert f"Object file {path}: " in done.stdout
            with ElfFile(built / "prog") as elf:
                assert debug_file(elf, (root,)).name == str(path)


def test_the_debug_files_of_this_machine_are_found() -> None:
    libc = Path("/usr/lib/x86_64-linux-gnu/libc.so.6")
    if not libc.exists() or not Path(DEBUG_ROOTS[0], ".build-id").exists():
        pytest.skip("needs the debug files of the C library")
    with ElfFile(libc) as elf:
        found = debug_file(elf)
        assert found is not None
        assert found.build_id == elf.build_id
        assert found.name.startswith("/usr/lib/debug/.build-id/")
