"""Linked files whose `.sframe` is written anew: in place where it fits, and otherwise as `add` does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from corpus import corpus
from elfbuilder import ElfBuilder
from grafting import LLVM_REWRITERS, REWRITERS, SOURCE, elflint, graft, linker_folder, output_of, section_for, ungraft
from grafting import rewrite as rewritten_by
from peers import run
from walkback.base.errors import GraftError, MissingError
from walkback.base.replace import replace_file
from walkback.elf import ElfFile, layout
from walkback.elf.write import Headers
from walkback.graft import Grafted, Rewriting, add, drop, is_grafted
from walkback.graft.record import find_record

LINKERS = ["ld-2.44", "ld-new"]
OPTIONS = {
    "pie": "",
    "exec": "-no-pie",
    "static": "-static",
    "library": "-shared",
    "relocs": "-no-pie -Wl,--emit-relocs",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


def linked(folder: Path, name: str = "pie", linker: str = "ld-new") -> Path:
    """The test program, in which assembler and linker have put a section; it stands before zeros."""
    path, version = folder / f"{name}-{linker}", linker.removeprefix("ld-")
    if not path.exists():
        subprocess.run(["gcc", "-O2", "-fPIC", "-S", SOURCE, "-o", folder / "a.s"], check=True)
        run(f"as-{version}", "--gsframe", folder / "a.s", "-o", folder / "a.o", check=True)
        command: list[str | Path] = [
            "gcc",
            *OPTIONS[name].split(),
            f"-B{linker_folder(folder, linker)}",
            folder / "a.o",
            "-o",
            path,
        ]
        subprocess.run(command, check=True)
    return path


def anew(source: Path, target: Path, count: int = 1, **options: Any) -> Grafted:
    with ElfFile(source) as elf:
        section = section_for(elf, count)
        size = len(section(0))
        expected = Rewriting(elf).address(size)
        grafted = Rewriting(elf).write(section, size, **options)
        assert grafted.address == expected
        replace_file(target, grafted.parts, read=elf.file)
    check(target, grafted, section(grafted.address))
    return grafted


def check(path: Path, grafted: Grafted, contents: bytes) -> None:
    """The section, its segment and the memory say the same."""
    with ElfFile(path) as elf:
        [ours] = elf.segments[elf.segments["type"] == layout.PT_GNU_SFRAME]
        place = (grafted.offset, grafted.address, grafted.address, len(contents), len(contents))
        assert ours.tolist()[1:] == (layout.PF_R, *place, 8)
        assert bytes(elf.mapped_data(grafted.address, len(contents))) == contents
        if len(elf.sections):
            [index] = elf.sections_named(".sframe")
            header = elf.sections[index].tolist()
            assert header[2:] == (layout.SHF_ALLOC, grafted.address, grafted.offset, len(contents), 0, 0, 8, 0)


def printed(contents: bytes) -> str:
    total = 0
    for byte in contents:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return f"{len(contents)} {total}\n1 7 1 named\n"


def complaints(path: Path) -> set[str]:
    """What elflint finds, without the numbers of sections."""
    return {re.sub(r"section \[ *\d+\]", "section", line) for line in elflint(path)}


def section_in(path: Path) -> tuple[int, bytes]:
    with ElfFile(path) as elf:
        [index] = elf.sections_named(".sframe")
        return int(elf.sections["offset"][index]), bytes(elf.section_data(index))


@pytest.mark.peers
@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("name", OPTIONS)
class TestInPlace:
    def test_only_the_section_changes(self, name: str, linker: str, folder: Path, tmp_path: Path) -> None:
        program, target = linked(folder, name, linker), tmp_path / "new"
        grafted = anew(program, target)
        offset, former = section_in(program)
        assert grafted.offset == offset
        old, new = bytearray(program.read_bytes()), bytearray(target.read_bytes())
        assert len(old) == len(new)
        assert not any(new[offset + len(section_in(target)[1]) : offset + len(former)])
        if name == "relocs":
            assert grafted.notes == ["the relocations that the linker kept for .sframe no longer fit, and are gone"]
            return
        assert grafted.notes == []
        old[offset : offset + len(former)] = new[offset : offset + len(former)]
        changed = np.flatnonzero(np.frombuffer(old, np.uint8) != np.frombuffer(new, np.uint8))
        assert len(changed) <= 12  # the type, and the size in either header

    def test_readers_find_nothing_new_to_complain_of(
        self, name: str, linker: str, folder: Path, tmp_path: Path
    ) -> None:
        program, target = linked(folder, name, linker), tmp_path / "new"
        anew(program, target)
        assert not complaints(target) - complaints(program)
        assert run("readelf-new", "-aW", "--sframe", target).stderr == run("readelf-new", "-aW", program).stderr
        assert run("llvm-readobj", "-l", "-S", "--symbols", target).stderr == b""

    @pytest.mark.parametrize("count", [1, 100])
    def test_the_program_finds_it_after_every_tool(
        self, name: str, linker: str, count: int, folder: Path, tmp_path: Path
    ) -> None:
        program, target, again = linked(folder, name, linker), tmp_path / "new", tmp_path / "again"
        anew(program, target, count)
        if name == "library":
            return
        expected = printed(section_in(target)[1])
        assert output_of(target) == expected
        for tool in (*REWRITERS, *LLVM_REWRITERS):
            if rewritten_by(tool, program, again).returncode:
                continue
            assert rewritten_by(tool, target, again).returncode == 0, tool
            assert output_of(again) == expected, tool
        ungraft(target, again)
        assert output_of(again) == "0 7 1 named\n"


@pytest.mark.peers
class TestRoom:
    def test_zeros_behind_it_are_room(self, folder: Path, tmp_path: Path) -> None:
        program, smaller, target = linked(folder, "static"), tmp_path / "smaller", tmp_path / "new"
        offset, former = section_in(program)
        anew(program, smaller)
        assert len(section_in(smaller)[1]) < len(former)
        assert anew(smaller, target, 3).offset == offset
        assert len(section_in(smaller)[1]) < len(section_in(target)[1]) <= len(former)
        assert output_of(target) == printed(section_in(target)[1])

    @pytest.mark.parametrize("linker", LINKERS)
    def test_without_room_it_goes_where_add_puts_it(self, linker: str, folder: Path, tmp_path: Path) -> None:
        program, target = linked(folder, "pie", linker), tmp_path / "new"
        grafted = anew(program, target, 3000)
        with ElfFile(program) as elf:
            section = section_for(elf, 3000)
            added = add(elf, section, len(section(0)))
        assert (grafted.address, b"".join(grafted.parts)) == (added.address, b"".join(added.parts))
        assert output_of(target) == printed(section_in(target)[1])

    def test_an_unused_program_header_becomes_that_of_the_section(self, folder: Path, tmp_path: Path) -> None:
        program, target = self.changed_segments(folder, tmp_path, layout.PT_NULL), tmp_path / "new"
        assert anew(program, target).offset == section_in(program)[0]
        assert output_of(target) == printed(section_in(target)[1])

    def test_without_any_program_header_for_it_it_is_added(self, folder: Path, tmp_path: Path) -> None:
        program, target = self.changed_segments(folder, tmp_path, 0x6FFFFFF0), tmp_path / "new"
        assert anew(program, target).offset != section_in(program)[0]
        assert output_of(target) == printed(section_in(target)[1])

    def changed_segments(self, folder: Path, tmp_path: Path, kind: int) -> Path:
        """The header of the section's segment has another type."""
        data, path = bytearray(linked(folder).read_bytes()), tmp_path / "program"
        with ElfFile(bytes(data), "") as elf:
            segments = elf.segments.copy()
        segments["type"][segments["type"] == layout.PT_GNU_SFRAME] = kind
        data[64 : 64 + segments.nbytes] = segments.tobytes()
        path.write_bytes(data)
        path.chmod(0o755)
        return path

    def test_without_section_headers_its_segment_is_its_place(self, folder: Path, tmp_path: Path) -> None:
        data = bytearray(linked(folder).read_bytes())
        data[40:48], data[58:64] = bytes(8), bytes((64, 0, 0, 0, 0, 0))
        program, target = tmp_path / "program", tmp_path / "new"
        program.write_bytes(data)
        program.chmod(0o755)
        offset, former = section_in(linked(folder))
        grafted = anew(program, target)
        assert grafted.offset == offset
        with ElfFile(target) as elf:
            assert output_of(target) == printed(section_for(elf, 1)(grafted.address))
            assert Rewriting(elf).address(len(former) + 8) != grafted.address

    def test_an_old_version_is_of_an_old_type(self, folder: Path, tmp_path: Path) -> None:
        for count in (1, 3000):
            anew(linked(folder), tmp_path / "new", count, kind=layout.SHT_PROGBITS)
            with ElfFile(tmp_path / "new") as elf:
                assert elf.sections["type"][elf.sections_named(".sframe")].tolist() == [layout.SHT_PROGBITS]

    def test_what_add_put_in_stays_what_drop_takes_out(self, folder: Path, tmp_path: Path) -> None:
        program = linked(folder)
        ungraft(program, tmp_path / "dropped")
        graft(tmp_path / "dropped", tmp_path / "grafted")
        anew(tmp_path / "grafted", tmp_path / "new", 50)
        ungraft(tmp_path / "new", tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "dropped").read_bytes()

    def test_a_file_without_a_section_gets_one(self, folder: Path, tmp_path: Path) -> None:
        ungraft(linked(folder), tmp_path / "dropped")
        assert anew(tmp_path / "dropped", tmp_path / "new").notes[0].endswith("to make room for the program headers")


@pytest.mark.peers
def test_what_linkers_made_for_every_machine_is_written_anew(tmp_path: Path) -> None:
    places: list[bool] = []
    for sample in corpus():
        if sample.kind not in {"shared", "executable", "lld"}:
            continue
        with ElfFile(sample.path) as elf:
            if not is_grafted(elf) or elf.type == layout.ET_REL:
                continue
        grafted = anew(sample.path, tmp_path / "new")
        places.append(grafted.offset == section_in(sample.path)[0])
        assert not complaints(tmp_path / "new") - complaints(sample.path), sample.path
        before, after = (run("readelf-new", "-lSsW", path).stderr for path in (sample.path, tmp_path / "new"))
        assert before == after, sample.path
    assert places.count(True) > 20


def several(*, segments: int = 2) -> ElfBuilder:
    """A program with two sections, and as many program headers for them."""
    builder = ElfBuilder(kind=2, entry=0x400000)
    builder.section(".text", bytes(4096), flags=6, addr=0x400000)
    builder.section("load", b"", flags=2)
    builder.section(".sframe", b"s" * 64, kind=layout.SHT_GNU_SFRAME, flags=2, addr=0x401000, addralign=8)
    builder.section(".sframe", b"S" * 96, flags=2, addr=0x401040, addralign=8)
    builder.section(".data", b"d" * 64, flags=3, addr=0x4010A0)
    symtab = builder.symtab()
    builder.symbol(symtab, "first", 0x401000, section=3)
    builder.symbol(symtab, "data", 0x4010A0, section=5)
    builder.sections[symtab].fields["sh_info"] = 1
    builder.segment(layout.PT_LOAD, ".text", flags=5, vaddr=0x400000)
    for _ in range(segments):
        builder.segment(layout.PT_GNU_SFRAME, ".sframe", vaddr=0x401040)
    return builder


def whole(builder: ElfBuilder) -> bytes:
    """With everything in one segment, and the first section in its own place, not that of its namesake."""
    image = builder.build()
    start, end = image.labels[".text"], image.labels[".data"] + 64
    image.segment(0, "p_filesz", end - start).segment(0, "p_memsz", end - start)
    image.section(3, "sh_offset", image.labels[".sframe"] - 64)
    return bytes(image)


class TestSeveral:
    def made(self, size: int) -> Callable[[int], bytes]:
        return lambda address: b"x" * size

    def test_one_takes_the_place_of_all(self) -> None:
        data = whole(several())
        elf = ElfFile(data, "name")
        place = int(elf.sections["offset"][3])
        grafted = Rewriting(elf).write(self.made(150), 150)
        # The first begins before the second, whose bytes are room too.
        assert (grafted.address, grafted.offset) == (0x401000, place)
        assert grafted.notes == ["one .sframe section takes the place of 2"]
        new = ElfFile(b"".join(grafted.parts), "name")
        assert len(new.data) == len(data)
        assert new.section_names() == ["", ".text", "load", ".sframe", ".data", ".strtab", ".symtab", ".shstrtab"]
        assert bytes(new.section_data(3)) == b"x" * 150
        assert bytes(new.data[place + 150 : place + 160 + 64]) == bytes(10) + b"d" * 64
        assert new.symbols(6)["section"].tolist() == [0, 3, 4]
        assert new.segments["type"].tolist() == [layout.PT_LOAD, layout.PT_GNU_SFRAME]

    def test_no_room_for_another_byte(self) -> None:
        elf = ElfFile(whole(several()), "name")
        assert Rewriting(elf).address(160) == 0x401000
        assert Rewriting(elf).address(161) > 0x402000

    def test_a_place_that_is_not_aligned_is_not_used(self) -> None:
        builder = several()
        image = whole(builder)
        elf = ElfFile(image, "name")
        shifted = bytearray(image)
        table = int.from_bytes(image[40:48], "little")
        shifted[table + 3 * 64 + 16 : table + 3 * 64 + 24] = (0x401004).to_bytes(8, "little")
        assert Rewriting(ElfFile(bytes(shifted), "name")).address(60) == 0x401040
        assert Rewriting(elf).address(60) == 0x401000


@pytest.mark.parametrize(("kind", "text"), [(1, "files of type 1 are neither"), (4, "this is a core file")])
def test_what_is_not_linked_is_refused(kind: int, text: str) -> None:
    builder = ElfBuilder(kind=kind)
    builder.section(".sframe", bytes(64), kind=layout.SHT_GNU_SFRAME, flags=2)
    elf = ElfFile(bytes(builder.build()), "name")
    for work in (lambda: Rewriting(elf).address(8), lambda: Rewriting(elf).write(lambda _: bytes(8), 8)):
        with pytest.raises(GraftError, match=f"^name: {text}"):
            work()


def test_the_size_has_to_be_the_one_that_was_said() -> None:
    elf = ElfFile(whole(several()), "name")
    with pytest.raises(ValueError, match="7 bytes instead of 8"):
        Rewriting(elf).write(lambda _: bytes(7), 8)
    with pytest.raises(MissingError):
        drop(ElfFile(b"".join(drop(elf)), "name"))


def test_of_another_machine_is_refused() -> None:
    elf = ElfFile(bytes(ElfBuilder(machine=243, kind=2).build()), "name")
    with pytest.raises(GraftError, match="SFrame knows no machine with the number 243"):
        Rewriting(elf).write(lambda _: bytes(8), 8)


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_a_record_that_was_damaged_is_void(place: float) -> None:
    """What it would give back is not what was there."""
    data = bytearray(Path("/bin/true").read_bytes())
    former = ElfFile(bytes(data), "former")
    grafted = b"".join(add(former, lambda _: bytes(64), 64).parts)
    record = find_record(ElfFile(grafted, "grafted"))
    assert record is not None
    end = Headers(ElfFile(grafted, "grafted")).sections_offset
    damaged = bytearray(grafted)
    damaged[end - 1 - int(place * (record.encoded_size - 1))] ^= 0x40
    assert find_record(ElfFile(bytes(damaged), "damaged")) is None
