"""File and line of code, by the programs that read line tables."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

from walkback.elf import ElfFile
from walkback.symbols import SymbolIndex
from walkback.symbols.lines import Lines, SourceLine

PROGRAMS = ["llvm-symbolizer", "addr2line"]
SOURCE = """\
static inline __attribute__((always_inline)) int inner(volatile int *x) {
    return *x * 3;
}
int outer(volatile int *x) {
    return inner(x) + 1;
}
int main(int argc, char **argv) { return outer(&argc); }
"""


def built(folder: Path, name: str = "a.c") -> Path:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    (folder / name).write_text(SOURCE)
    command = ["gcc", "-g", "-O1", "-fno-ipa-icf", "-Wl,--build-id", name, "-o", "prog"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "prog"


@pytest.fixture(params=PROGRAMS)
def lines(request: pytest.FixtureRequest) -> Lines:
    if not shutil.which(request.param):
        pytest.skip(f"needs {request.param}")
    return Lines(programs=[request.param])


def addresses_of(elf: ElfFile, name: str = "outer") -> np.ndarray:
    index = SymbolIndex(elf)
    ((_, start),) = index.lookup(name)
    return np.arange(start, start + 8, dtype=np.uint64)


def code_of(elf: ElfFile) -> np.ndarray:
    start, end = elf.executable_ranges()
    return np.arange(int(start[0]), int(end[0]), 3, dtype=np.uint64)


class TestLines:
    def test_lines_of_calls(self, tmp_path: Path, lines: Lines) -> None:
        elf = ElfFile(built(tmp_path))
        found = lines.find(elf, addresses_of(elf))
        assert lines.trouble is None
        assert {Path(line.file).name for (line,) in found} == {"a.c"}
        assert {line.line for (line,) in found} <= {2, 4, 5, 6}

    def test_inlined_calls(self, tmp_path: Path, lines: Lines) -> None:
        elf = ElfFile(built(tmp_path))
        found = lines.find(elf, addresses_of(elf), inlined=True)
        deep = [calls for calls in found if len(calls) == 2]
        assert deep
        assert [(call.function, call.line) for call in deep[0]] == [("inner", 2), ("outer", 5)]

    @pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason="needs both programs")
    def test_both_programs_say_the_same(self, tmp_path: Path) -> None:
        elf = ElfFile(built(tmp_path))
        first, second = (
            [calls[0][:2] if calls else None for calls in Lines(programs=[name]).find(elf, code_of(elf))]
            for name in PROGRAMS
        )
        assert first == second
        assert None in first

    def test_addr2line_itself(self, tmp_path: Path, lines: Lines) -> None:
        if not shutil.which("addr2line"):
            pytest.skip("needs addr2line")
        prog = built(tmp_path)
        elf = ElfFile(prog)
        asked = code_of(elf)
        command: list[str | Path] = ["addr2line", "-e", prog, *[f"{address:#x}" for address in asked.tolist()]]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        told = [text.partition(" ")[0].rpartition(":") for text in output]
        mine = lines.find(elf, asked)
        for calls, (file, _, line) in zip(mine, told, strict=True):
            assert (calls[0].file, str(calls[0].line)) == (file, line) if calls else file == "??" or line in {"?", "0"}

    def test_the_separate_debug_file(self, tmp_path: Path, lines: Lines) -> None:
        prog = built(tmp_path)
        elf = ElfFile(prog)
        asked = addresses_of(elf)
        expected = lines.find(elf, asked)
        build_id = elf.build_id.hex()
        place = tmp_path / "root" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        place.parent.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", prog, place], check=True)
        subprocess.run(["strip", prog, "-o", tmp_path / "bare"], check=True)
        bare = ElfFile(tmp_path / "bare")
        assert lines.find(bare, asked) == [()] * len(asked)
        assert lines.program is not None
        separate = Lines([tmp_path / "root"], [lines.program])
        assert separate.find(bare, asked) == expected
        assert all(expected)

    @pytest.mark.parametrize("name", ["0x12 34\n0x0.c", "-e.c", "a:7.c", "\udcff\"'.c", "?? (discriminator 2).c"])
    def test_odd_names_of_sources(self, tmp_path: Path, lines: Lines, name: str) -> None:
        folder = tmp_path / name.removesuffix(".c")
        folder.mkdir()
        prog = built(folder)
        elf = ElfFile(prog)
        found = lines.find(elf, addresses_of(elf))
        assert len(found) == 8
        if "\n" not in name:
            assert {line.line for (line,) in found} <= {2, 4, 5, 6}


class TestNoLines:
    def test_nothing_is_asked_of_files_without_a_line_table(self, tmp_path: Path) -> None:
        lines = Lines(programs=["false"])
        elf = ElfFile("/proc/self/exe")
        image = ElfFile(elf.data, "[vdso]")
        asked = np.array([0x1000], np.uint64)
        assert lines.find(image, asked) == [()]
        assert lines.find(image, asked[:0]) == []

    def test_without_a_program_it_is_told(self) -> None:
        lines = Lines(programs=["walkback-no-such-program"])
        assert lines.program is None
        assert lines.trouble == "lines need walkback-no-such-program, and neither is there"

    @pytest.mark.parametrize("name", PROGRAMS)
    @pytest.mark.parametrize(
        "body",
        [
            "exit 3",
            "kill -9 $$",
            "echo '{'; echo 0x1",
            "head -c 100000 /dev/zero",
            "printf '[]\\n1\\n{}\\n\\377\\n'",
            "cat >&2; exit 1",
            "echo 0x$(printf %016x $(head -n1)); echo f; echo a.c:7; kill -9 $$",
        ],
    )
    def test_a_program_that_fails_does_no_harm(self, tmp_path: Path, name: str, body: str) -> None:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)
        elf = ElfFile(built(tmp_path))
        asked = addresses_of(elf)
        lines = Lines(programs=[str(program)])
        found = lines.find(elf, asked)
        said = body.startswith("echo 0x$") and name == "addr2line"
        assert found == [(SourceLine("a.c", 7, "f"),) if said else (), *[()] * 7]
        assert (lines.trouble is None) == (body.startswith(("echo '", "head", "printf")))
