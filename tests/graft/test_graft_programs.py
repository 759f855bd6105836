"""Grafted programs do their work: as they come out, after the tools that rewrite them, and under emulation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grafting import (
    LINKED_BY_PEERS,
    LLVM_REWRITERS,
    PROGRAMS,
    REWRITERS,
    compiled,
    elflint,
    graft,
    output_of,
    rewrite,
    section_for,
    ungraft,
)
from peers import BIN, peer, run
from walkback.elf import ElfFile, layout

EVERY = [(name, "") for name in PROGRAMS] + LINKED_BY_PEERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(params=EVERY, ids="".join)
def program(request: pytest.FixtureRequest, folder: Path) -> Path:
    name, linker = request.param
    return compiled(folder, name, PROGRAMS[name], linker)


def finds(source: Path, grafted: Path, address: int) -> str:
    """What the program has to print when it finds the section."""
    with ElfFile(source) as elf:
        contents = section_for(elf)(address)
    total = 0
    for byte in contents:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return f"{len(contents)} {total}\n1 7 1 named\n"


def test_a_program_finds_the_section_loaded(program: Path, tmp_path: Path) -> None:
    target = tmp_path / program.name
    grafted = graft(program, target)
    assert output_of(program) == "0 7 1 named\n"
    assert output_of(target) == finds(program, target, grafted.address)
    ungraft(target, tmp_path / "dropped")
    assert (tmp_path / "dropped").read_bytes() == program.read_bytes()


@pytest.mark.peers
def test_a_program_outlives_every_tool_and_runs_under_emulation(program: Path, tmp_path: Path) -> None:
    target, rewritten, dropped = (tmp_path / name for name in ("grafted", "rewritten", "dropped"))
    expected = finds(program, target, graft(program, target).address)
    assert output_of(peer("qemu-x86_64"), target) == expected
    for tool in REWRITERS:
        done = rewrite(tool, target, rewritten)
        assert (done.returncode, done.stderr) == (0, b""), tool
        assert output_of(rewritten) == expected, tool
        ungraft(rewritten, dropped)
        assert output_of(dropped) == "0 7 1 named\n", tool
        with ElfFile(dropped) as elf:
            assert not elf.sections_named(".sframe")
            assert layout.PT_GNU_SFRAME not in elf.segments["type"]
    for tool in LLVM_REWRITERS:
        if rewrite(tool, program, rewritten).returncode:
            continue  # LLVM's tools do not take every static program, grafted or not
        assert rewrite(tool, target, rewritten).returncode == 0, tool
        assert output_of(rewritten) == expected, tool


@pytest.mark.peers
def test_readers_see_the_section_and_nothing_wrong(program: Path, tmp_path: Path) -> None:
    target = tmp_path / "grafted"
    grafted = graft(program, target)
    shown = run("readelf-new", "--sframe", target)
    with ElfFile(program) as elf:
        first = next(one for one in elf.segments if one["type"] == layout.PT_LOAD and one["flags"] & layout.PF_X)
    with ElfFile(target) as elf:
        assert int(elf.sections["addr"][elf.sections_named(".sframe")[0]]) == grafted.address
    assert f"pc = {int(first['vaddr']):#x}" in shown.stdout.decode()
    assert shown.stderr == b""
    assert elflint(target) == elflint(program)
    for option in ("-n", "--dyn-syms", "-d"):
        before, after = (run("readelf-new", "-W", option, path).stdout for path in (program, target))
        assert sorted(_without_places(before)) == sorted(_without_places(after))


def _without_places(text: bytes) -> list[str]:
    kept = re.sub(r"0x[0-9a-f]+", "", text.decode())
    return [line for line in kept.splitlines() if "HASH" not in line and "TAB" not in line]


def test_the_build_id_stays_in_the_first_page(program: Path, tmp_path: Path) -> None:
    with ElfFile(program) as elf:
        build_id = elf.build_id
    graft(program, tmp_path / "grafted")
    with ElfFile(tmp_path / "grafted") as elf:
        assert elf.build_id == build_id
        places = [note.offset for note in elf.notes() if note.type == 3 and note.name == "GNU"]
        if elf.type == layout.ET_DYN and build_id:
            assert places[0] < 0x1000
        notes = elf.segments[elf.segments["type"] == layout.PT_NOTE]
        inside = [int(one["offset"]) <= place < int(one["offset"] + one["filesz"]) for one in notes for place in places]
        assert sum(inside) == len(places)


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
@pytest.mark.parametrize("name", ["pie", "static"])
def test_gdb_stops_in_a_grafted_program_and_shows_its_stack(name: str, folder: Path, tmp_path: Path) -> None:
    program = compiled(folder, f"{name}-debug", f"{PROGRAMS[name]} -g")
    graft(program, tmp_path / "grafted")
    text = output_of("gdb", "-nx", "-batch", "-ex", "break visit", "-ex", "run", "-ex", "bt", tmp_path / "grafted")
    assert re.search(r"#0 .*visit .*phdrs\.c", text)
    assert re.search(r"#\d .*main .*phdrs\.c", text)


@pytest.mark.peers
@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
@pytest.mark.parametrize("name", ["pie", "exec", "static"])
def test_a_separate_debug_file_still_fits(name: str, folder: Path, tmp_path: Path) -> None:
    program = compiled(folder, f"{name}-debug", f"{PROGRAMS[name]} -g")
    stripped, target, debug = (tmp_path / part for part in ("stripped", "grafted", "debug"))
    run("objcopy-new", "--only-keep-debug", program, debug, check=True)
    run("objcopy-new", "-g", f"--add-gnu-debuglink={debug}", program, stripped, check=True)
    graft(stripped, target)
    text = output_of("gdb", "-nx", "-batch", "-ex", "break visit", "-ex", "run", "-ex", "bt", "-ex", "p argc", target)
    assert re.search(r"#0 .*visit .*phdrs\.c", text)
    assert re.search(r"#\d .*main .*phdrs\.c", text)
    with ElfFile(program) as elf:
        symtab = elf.sections_of_type(layout.SHT_SYMTAB)[0]
        symbols = elf.symbols(symtab)
        names = elf.strings(int(elf.sections["link"][symtab]), symbols["name_offset"])
        visit = int(symbols["value"][names.index("visit")])
    assert b"phdrs.c" in run("eu-addr2line", "-e", target, hex(visit)).stdout


class TestThePrograms:
    """Those of the machine, whose work is known."""

    PYTHON = Path(sys.executable).resolve()
    WORK = "import json, zlib, decimal, threading; print(json.dumps(sorted(vars(zlib))), decimal.Decimal(1) / 7)"

    def works(self, python: Path) -> bool:
        home = {"PYTHONHOME": sys.base_prefix}
        return output_of(python, "-c", self.WORK, **home) == output_of(self.PYTHON, "-c", self.WORK, **home)

    def test_the_interpreter(self, tmp_path: Path) -> None:
        graft(self.PYTHON, tmp_path / "python", 5000)
        assert self.works(tmp_path / "python")

    @pytest.mark.peers
    def test_the_interpreter_after_every_tool(self, tmp_path: Path) -> None:
        graft(self.PYTHON, tmp_path / "python", 5000)
        for tool in (*REWRITERS, *LLVM_REWRITERS):
            assert rewrite(tool, tmp_path / "python", tmp_path / "rewritten").returncode == 0, tool
            assert self.works(tmp_path / "rewritten"), tool
        emulated = output_of(peer("qemu-x86_64"), tmp_path / "python", "-c", "print(6 * 7)", PYTHONHOME=sys.base_prefix)
        assert emulated == "42\n"

    def libc(self) -> tuple[Path, Path]:
        """The C library that this process runs on, and the loader that a program names."""
        maps = Path("/proc/self/maps").read_text()
        library = Path(re.findall(r" (/\S*/libc\.so\.6)$", maps, re.MULTILINE)[0])
        return library, Path(re.findall(r" (/\S*/ld-linux\S*)$", maps, re.MULTILINE)[0])

    def runs_through_the_loader(self, library: Path, loader: Path) -> None:
        command = (loader, "--library-path", library.parent, "/bin/cat", "/proc/self/maps")
        assert str(library) in output_of(*command)
        text = output_of(loader, "--library-path", library.parent, "/bin/sh", "-c", "echo $((6 * 7)) | sort")
        assert text == "42\n"

    def test_the_c_library_through_the_loader(self, tmp_path: Path) -> None:
        library, loader = self.libc()
        graft(library, tmp_path / "libc.so.6", 5000)
        self.runs_through_the_loader(tmp_path / "libc.so.6", loader)

    def test_the_loader_itself(self, tmp_path: Path) -> None:
        _, loader = self.libc()
        graft(loader, tmp_path / "ld.so", 500)
        assert output_of(tmp_path / "ld.so", "/bin/echo", "42") == "42\n"

    @pytest.mark.peers
    def test_the_c_library_after_every_tool(self, tmp_path: Path) -> None:
        library, loader = self.libc()
        graft(library, tmp_path / "grafted", 5000)
        for tool in (*REWRITERS, *LLVM_REWRITERS):
            assert rewrite(tool, tmp_path / "grafted", tmp_path / "libc.so.6").returncode == 0, tool
            self.runs_through_the_loader(tmp_path / "libc.so.6", loader)

    @pytest.mark.peers
    def test_a_library_of_150_megabytes(self, tmp_path: Path) -> None:
        """LLVM as one library, under LLVM's assembler."""
        peer("llvm-mc")
        sid = BIN.parent / "sid"
        libraries = sid / "usr/lib/x86_64-linux-gnu"
        library = next(libraries.glob("libLLVM.so.*"))
        program = next(sid.glob("usr/lib/llvm-*/bin/llvm-mc"))

        def work(folder: Path) -> str:
            path = f"{folder}:{libraries}"
            loader = (libraries / "ld-linux-x86-64.so.2", "--inhibit-cache", "--library-path", path)
            source = tmp_path / "source.s"
            source.write_text("f: movq %rax, 8(%rsp)\n ret\n")
            return output_of(*loader, program, "-show-encoding", source)

        expected = work(libraries)
        assert "encoding: [0xc3]" in expected
        folder = tmp_path / "grafted"
        folder.mkdir()
        graft(library, folder / library.name, 50000)
        assert work(folder) == expected
        (folder / library.name).rename(tmp_path / "library")
        for tool in ("strip-2.40", "objcopy-2.44", "strip-new", "llvm-strip"):
            assert rewrite(tool, tmp_path / "library", folder / library.name).returncode == 0, tool
            assert work(folder) == expected, tool


def test_a_running_program_is_replaced_in_place(folder: Path, tmp_path: Path) -> None:
    sleep = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep") or "sleep", sleep)
    with subprocess.Popen([sleep, "60"]) as process:
        try:
            graft(sleep, sleep)
            assert process.poll() is None
            assert output_of(sleep, "0") == ""
            assert sleep.stat().st_mode & 0o777 == 0o755
        finally:
            process.kill()
