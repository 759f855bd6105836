"""A stripped file has the names that were stripped from it, where they can be found."""

from __future__ import annotations

import lzma
import shutil
import struct
import subprocess
import zlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elfbuilder import ElfBuilder
from peers import peer
from walkback.base.errors import ElfError, PassedOverWarning
from walkback.elf import ElfFile, FileSearch, layout
from walkback.symbols import SymbolIndex

NOWHERE = FileSearch(debug_roots=())


def with_symbols(*names: str, table: str = ".symtab", skew: int = 0, **symbol: Any) -> ElfBuilder:
    """Functions of 16 bytes from 0x1000 on; `skew` sections stand before the code."""
    builder = ElfBuilder(kind=3)
    for number in range(skew):
        builder.section(f".skew{number}")
    text = builder.code(addr=0x1000, size=0x100)
    symtab = builder.symtab(table, 11 if table == ".dynsym" else 2)
    for number, name in enumerate(names):
        builder.symbol(symtab, name, 0x1000 + 16 * number, **{"section": text, "size": 16, **symbol})
    return builder


def stripped(
    *dynamic: str, debugdata: ElfBuilder | None = None, link: bytes | None = None, kind: int = 3
) -> ElfBuilder:
    """A file without .symtab."""
    builder = with_symbols(*dynamic, table=".dynsym") if dynamic else ElfBuilder(kind=kind)
    builder.header["e_type"] = kind
    if not dynamic:
        builder.code(addr=0x1000)
    if debugdata is not None:
        builder.section(".gnu_debugdata", lzma.compress(bytes(debugdata.build())))
    if link is not None:
        builder.section(".gnu_debuglink", b"prog.debug\0\0" + struct.pack("<I", zlib.crc32(link)))
    return builder


def names_of(builder: ElfBuilder, name: Path | str = "prog", search: FileSearch = NOWHERE) -> list[str | None]:
    index = SymbolIndex(ElfFile(bytes(builder.build()), str(name)), search)
    return index.names_at(np.arange(0x1000, 0x1040, 16))


class TestDebugData:
    def test_its_names_stand_beside_those_of_dynsym(self) -> None:
        inside = with_symbols("one", "two", "three")
        assert names_of(stripped("dynamic", debugdata=inside)) == ["one", "two", "three", None]
        assert names_of(stripped("a", "b", "c", "d", debugdata=inside)) == ["one", "two", "three", "d"]

    def test_the_ranking_of_names_is_as_in_one_file(self) -> None:
        local = with_symbols("local", binding=0)
        assert names_of(stripped("dynamic", debugdata=local))[0] == "dynamic"

    def test_it_is_not_used_where_there_is_a_symtab(self) -> None:
        builder = with_symbols("own")
        builder.section(".gnu_debugdata", lzma.compress(bytes(with_symbols("hidden", "two").build())))
        assert names_of(builder) == ["own", None, None, None]

    def test_object_files_have_their_own_names_only(self) -> None:
        builder = stripped(debugdata=with_symbols("hidden"), kind=layout.ET_REL)
        index = SymbolIndex(ElfFile(bytes(builder.build()), "a.o"), NOWHERE)
        assert index.name_at(0x1000, 1) is None
        assert index.lookup("hidden") == []

    def test_sections_are_those_of_the_file_that_has_the_symbols(self) -> None:
        """MiniDebugInfo has other sections, so other numbers of them."""
        inside = with_symbols("label", skew=3, kind=0, size=0)
        index = SymbolIndex(ElfFile(bytes(stripped(debugdata=inside).build()), "prog"), NOWHERE)
        assert index.name_at(0x1000) == "label"
        assert index.describe(0x10FF) == "label+0xff"
        assert index.describe(0x1100) is None
        assert index.lookup("label") == [(-1, 0x1000)]

    def test_names_of_both_tables_are_looked_up(self) -> None:
        elf = ElfFile(bytes(stripped("dynamic", debugdata=with_symbols("one", "two")).build()), "prog")
        index = SymbolIndex(elf, NOWHERE)
        assert index.lookup("dynamic") == index.lookup("one") == [(-1, 0x1000)]
        assert index.lookup("two") == [(-1, 0x1010)]
        assert index.describe(0x1014) == "two+0x4"

    @pytest.mark.parametrize("contents", [b"", b"x", lzma.compress(b"x"), lzma.compress(b"\x7fELF" + bytes(90))])
    def test_a_broken_one_is_not_used(self, contents: bytes) -> None:
        builder = stripped("dynamic")
        builder.section(".gnu_debugdata", contents)
        assert names_of(builder) == ["dynamic", None, None, None]

    def test_one_with_names_that_cannot_be_read_is_not_used(self) -> None:
        assert names_of(stripped("dynamic", debugdata=with_symbols("bad", name_offset=999)))[0] == "dynamic"
        image = with_symbols("bad").build()
        image.section(2, "sh_size", 2)
        builder = stripped("dynamic")
        builder.section(".gnu_debugdata", lzma.compress(bytes(image)))
        assert names_of(builder)[0] == "dynamic"

    def test_one_within_another_is_not_looked_at(self) -> None:
        inside = stripped(debugdata=with_symbols("deep"))
        assert names_of(stripped("dynamic", debugdata=inside)) == ["dynamic", None, None, None]


class TestDebugFile:
    @pytest.fixture
    def prog(self, tmp_path: Path) -> Path:
        return tmp_path / "prog"

    def test_its_names_are_used(self, prog: Path) -> None:
        debug = bytes(with_symbols("one", "two").build())
        prog.with_name("prog.debug").write_bytes(debug)
        assert names_of(stripped("dynamic", link=debug), prog) == ["one", "two", None, None]

    def test_it_goes_before_the_debug_data(self, prog: Path) -> None:
        debug = bytes(with_symbols("one").build())
        builder = stripped("dynamic", link=debug, debugdata=with_symbols("inside", "two"))
        assert names_of(builder, prog) == ["inside", "two", None, None]
        prog.with_name("prog.debug").write_bytes(debug)
        assert names_of(builder, prog) == ["one", None, None, None]

    @pytest.mark.parametrize("damage", ["checksum", "cut", "no symtab", "names"])
    def test_a_wrong_or_broken_one_is_not_used(self, prog: Path, damage: str) -> None:
        debug = bytes(with_symbols("one", name_offset=999 if damage == "names" else None).build())
        if damage == "cut":
            debug = debug[:-64]
        elif damage == "no symtab":
            debug = bytes(stripped("one").build())
        prog.with_name("prog.debug").write_bytes(debug + b"x" * (damage == "checksum"))
        builder = stripped("dynamic", link=debug, debugdata=with_symbols("inside"))
        passed_over = pytest.warns(PassedOverWarning, match="another build") if damage == "checksum" else nullcontext()
        with passed_over:
            assert names_of(builder, prog)[0] == "inside"

    def test_a_broken_link_hides_nothing(self) -> None:
        builder = stripped("dynamic", debugdata=with_symbols("inside"))
        builder.section(".gnu_debuglink", b"prog")
        assert names_of(builder)[0] == "inside"

    def test_nothing_is_looked_for_before_a_name_is_asked_for(self, prog: Path) -> None:
        debug = bytes(with_symbols("one").build())
        index = SymbolIndex(ElfFile(bytes(stripped("dynamic", link=debug).build()), str(prog)), NOWHERE)
        prog.with_name("prog.debug").write_bytes(debug)
        assert index.name_at(0x1000) == "one"

    def test_damage_of_the_file_itself_is_still_an_error(self) -> None:
        builder = stripped("dynamic")
        builder.symbol(3, "bad", 0x1010, section=1, name_offset=999)
        index = SymbolIndex(ElfFile(bytes(builder.build()), "prog"), NOWHERE)
        with pytest.raises(ElfError, match="no string"):
            index.name_at(0x1010)


SOURCE = """
static __attribute__((noinline)) int hidden(int x) { return x * 3 + 1; }
static __attribute__((noinline)) int also_hidden(int x) { return hidden(x) ^ 5; }
int shown(int x) { return also_hidden(x) + hidden(x + 1); }
int main(int argc, char **argv) { return shown(argc); }
"""


@pytest.mark.peers
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
class TestPeers:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "a.c").write_text(SOURCE)
        command = ["gcc", "-g", "-O1", "-rdynamic", "-Wl,--build-id", "a.c", "-o", "whole"]
        subprocess.run(command, cwd=tmp_path, check=True)
        return tmp_path

    def tool(self, folder: Path, name: str, *args: str) -> str:
        done = subprocess.run([peer(name), *args], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout

    def compare(self, folder: Path, search: FileSearch = NOWHERE) -> None:
        """Every function of the whole file has its name in the stripped one."""
        with ElfFile(folder / "whole") as whole, ElfFile(folder / "prog") as prog:
            assert prog.sections_named(".symtab") == []
            expected, found = SymbolIndex(whole), SymbolIndex(prog, search)
            for name in ("hidden", "also_hidden", "shown", "main"):
                ((_, address),) = expected.lookup(name)
                assert found.lookup(name) == [(-1, address)]
                assert found.name_at(address) == name
                assert found.describe(address + 1) == f"{name}+0x1"

    @pytest.mark.parametrize("objcopy", ["objcopy-2.40", "objcopy-new", "llvm-objcopy"])
    def test_a_separate_debug_file_by_link(self, folder: Path, objcopy: str) -> None:
        self.tool(folder, objcopy, "--only-keep-debug", "whole", "prog.debug")
        self.tool(folder, objcopy, "--strip-all", "--add-gnu-debuglink=prog.debug", "whole", "prog")
        self.compare(folder)

    @pytest.mark.parametrize("method", ["zlib", "zstd"])
    def test_a_separate_debug_file_by_build_id(self, folder: Path, method: str) -> None:
        self.tool(folder, "strip-new", "whole", "-o", "prog")
        build_id = ElfFile(folder / "prog").build_id.hex()
        place = folder / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        place.parent.mkdir(parents=True)
        options = ("--only-keep-debug", f"--compress-debug-sections={method}")
        self.tool(folder, "objcopy-new", *options, "whole", str(place))
        self.compare(folder, FileSearch(debug_roots=[folder / "root"]))

    def test_mini_debug_info_as_fedora_makes_it(self, folder: Path) -> None:
        """The steps of find-debuginfo, and of GDB's manual."""
        self.tool(folder, "objcopy-new", "--only-keep-debug", "whole", "debug")
        dynamic = set(self.tool(folder, "nm-new", "-D", "whole", "--format=posix", "--defined-only").split("\n"))
        functions = self.tool(folder, "nm-new", "whole", "--format=posix", "--defined-only").split("\n")
        kept = {line.split()[0] for line in functions if line.split()[1:2] and line.split()[1] in "TtD"}
        kept -= {line.split()[0] for line in dynamic if line}
        (folder / "keep").write_text("\n".join(sorted(kept)) + "\n")
        options = ["-S", "--remove-section=.gdb_index", "--remove-section=.comment", "--keep-symbols=keep"]
        self.tool(folder, "objcopy-new", *options, "debug", "mini")
        self.tool(folder, "strip-new", "--strip-all", "whole", "-o", "prog")
        subprocess.run(["xz", "mini"], cwd=folder, check=True)
        self.tool(folder, "objcopy-new", "--add-section=.gnu_debugdata=mini.xz", "prog")
        self.compare(folder)
