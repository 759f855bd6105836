"""What an attacker does to files that are read or written by somebody else ends in one line."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

import walkback
from attacks import sparse, when_writing_begins, with_copies
from elfbuilder import ElfBuilder
from recorded import core, hello, recording
from waiting import eventually
from walkback.base.arch import AMD64
from walkback.base.errors import ElfError, PassedOverWarning, UnreadableError
from walkback.capture.core.file import CoreFile
from walkback.capture.perfdata import Recording
from walkback.elf import ElfFile, OpenFile, debug_file
from walkback.naming.modules import Modules
from walkback.packages.walk import Broken, elf_files_in
from walkback.sections.derive import derive
from walkback.sections.linking.convert import convert
from walkback.sections.linking.fix import fix
from walkback.sections.linking.relink import link_object
from walkback.sections.linking.split import split
from walkback.walking.cache import TableCache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MEMORY = 1 << 31
"""Of address space: a command has half of it before it reads anything."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hello(tmp_path_factory.mktemp("program"))


@pytest.fixture(scope="module")
def obj(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("object") / "a.o"
    source = b"int g(int); int f(int n) { return g(n) + 1; } int h(int n) { return f(n) * 2; }"
    command: list[str | Path] = ["gcc", "-O1", "-ffunction-sections", "-x", "c", "-", "-c", "-o", path]
    subprocess.run(command, input=source, check=True)
    walkback.add(path)
    return path


@pytest.fixture(scope="module")
def grafted(program: Path) -> Path:
    path = program.parent / "grafted"
    walkback.add(program, path)
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command with little memory."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    command = [sys.executable, "-m", "walkback", *(os.fspath(one) for one in arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited)


# In place


@pytest.mark.parametrize(
    ("source", "verb"),
    [
        ("program", walkback.add),
        ("grafted", walkback.drop),
        ("grafted", lambda path: convert(path, version=2)),
        ("grafted", lambda path: fix(path, version=2)),
        ("obj", split),
        ("obj", link_object),
    ],
    ids=["add", "drop", "convert", "fix", "split", "link -r"],
)
def test_no_verb_writes_over_what_took_the_place_of_the_file_it_read(
    source: str, verb: Callable[[Path], object], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    file, other = tmp_path / "file", tmp_path / "other"
    shutil.copy(request.getfixturevalue(source), file)
    other.write_bytes(b"precious")
    other.chmod(0o4755)

    def swap() -> None:
        file.unlink()
        file.symlink_to(other)

    when_writing_begins(swap)
    with pytest.raises(OSError, match="another file took its place") as caught:
        verb(file)
    assert caught.value.filename == str(file)
    assert (other.read_bytes(), other.stat().st_mode & 0o7777) == (b"precious", 0o4755)
    assert file.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "other"]


# A file that shrinks


def test_an_elf_file_that_shrinks_is_an_error(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    shutil.copy(program, file)
    with ElfFile(file) as elf:
        assert len(elf.sections)
        os.truncate(file, 64)
        with pytest.raises(UnreadableError, match=f"^{file}: it changed while it was read$"):
            derive(elf)
        assert any("it changed" in line for line in TableCache(None).table(elf, AMD64, None).troubles)


def test_a_recording_that_shrinks_is_an_error(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "perf.data"
    file.write_bytes(recording(program))
    opened = Recording.open(file, Modules())
    before = Recording.open(file, Modules())
    assert sum(len(batch) for batch in before.batches()) == 6
    os.truncate(file, 4096 // 2)
    opened = Recording.open(file, Modules())
    os.truncate(file, 512)
    with pytest.raises(UnreadableError, match="it changed while it was read"):
        list(opened.batches())


def test_a_core_file_that_shrinks_is_an_error(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "core"
    file.write_bytes(core(program))
    opened = CoreFile.open(file, Modules())
    os.truncate(file, 64)
    with pytest.raises(UnreadableError, match="it changed while it was read"):
        opened.sample()


def test_an_archive_that_shrinks_is_told_by_a_survey(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.tar"
    shutil.copy(program, tmp_path / "one")
    shutil.copy(program, tmp_path / "two")
    subprocess.run(["tar", "-C", tmp_path, "-cf", file, "one", "two"], check=True)
    found = elf_files_in(str(file))
    assert next(found).member == "one"
    os.truncate(file, 1024)
    (rest,) = found
    assert isinstance(rest, Broken)
    assert (rest.what, rest.message) == ("changed", "it changed while it was read")


# Many headers, one range


@pytest.mark.parametrize("section", [b".eh_frame", b".sframe"])
@pytest.mark.whole
def test_thousands_of_section_headers_that_name_one_range_are_refused(
    grafted: Path, tmp_path: Path, section: bytes
) -> None:
    file = tmp_path / "many"
    contents = grafted.read_bytes() + bytes(300_000)
    start = len(contents)
    file.write_bytes(with_copies(contents, section, 6000))
    large = bytearray(file.read_bytes())
    assert len(large) < 800_000
    for number in range(6000):  # each of them now names a third of the file
        place = len(large) - 64 * (number + 1)
        large[place + 24 : place + 40] = (start - 300_000).to_bytes(8, "little") + (290_000).to_bytes(8, "little")
    file.write_bytes(large)
    for verb in (("derive", "-o", tmp_path / "out"), ("compare",), ("size",), ("check",), ("show",), ("find", "main")):
        done = run(verb[0], *([file, *verb[1:]] if verb[0] != "derive" else [*verb[1:], file]))
        assert done.returncode == 3, (verb, done.stdout, done.stderr)
        assert done.stderr.count("\n") == 1
        assert "the section headers name the same bytes again and again" in done.stderr
    done = run("report", file, "-o", tmp_path / "page.html")
    assert done.returncode == 3
    assert "again and again" in done.stderr


def test_small_tables_that_thousands_of_headers_name_are_refused_too(grafted: Path, tmp_path: Path) -> None:
    file = tmp_path / "many"
    file.write_bytes(with_copies(grafted.read_bytes(), b".sframe", 6000))
    done = run("check", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert "the section headers name the same bytes again and again: 6001 of them one range" in done.stderr


def test_notes_without_contents_are_counted() -> None:
    builder = ElfBuilder(kind=2)
    builder.section(".note", bytes(12 << 20), kind=7)
    with pytest.raises(ElfError, match="there are more than 16384 notes"):
        ElfFile(bytes(builder.build()), "many").build_id  # noqa: B018 - it is read when asked for


def test_segments_are_held_to_the_same(program: Path) -> None:
    builder = ElfBuilder(kind=2)
    builder.section(".note", bytes(1 << 20), kind=7)
    for _ in range(100):
        builder.segment(4, ".note")
    elf = ElfFile(bytes(builder.build()), "many")
    with pytest.raises(ElfError, match="the program headers name the same bytes again and again"):
        len(elf.segments)
    with ElfFile(program) as elf:
        assert len(elf.segments)


# Files that are mostly holes


def test_a_range_that_is_a_hole_is_not_read(tmp_path: Path) -> None:
    file = OpenFile(sparse(tmp_path / "hole", b"some", 1 << 40))
    assert file[:4] == b"some"
    with pytest.raises(UnreadableError, match="mostly a hole"):
        file[: 1 << 30]
    with pytest.raises(UnreadableError, match="more than are read at once"):
        file[:]


@pytest.mark.parametrize("size", [20 << 30, 1 << 40])
def test_a_sparse_program_without_a_build_id_makes_a_table_without_its_holes(tmp_path: Path, size: int) -> None:
    source = tmp_path / "a.s"
    source.write_text(".globl _start\n_start: .cfi_startproc\n nop\n .cfi_endproc\n")
    program = tmp_path / "program"
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,--build-id=none", source, "-o", program], check=True)
    file = sparse(program, program.read_bytes(), size)
    with ElfFile(file) as elf:
        index = elf.sections_named(".eh_frame")[0]
        place = elf._shoff + 64 * index + 32
    with file.open("r+b") as out:  # a table large enough for the cache, all of it a hole
        out.seek(place)
        out.write((2 << 20).to_bytes(8, "little"))
    script = (
        "import sys; from walkback.base.arch import AMD64; from walkback.elf import ElfFile\n"
        "from pathlib import Path; from walkback.walking.cache import TableCache\n"
        "from walkback.base.arraycache import ArrayCache\n"
        "print(len(TableCache(ArrayCache(Path(sys.argv[2]))).table(ElfFile(sys.argv[1]), AMD64, None).troubles))\n"
    )

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    done = subprocess.run(
        [sys.executable, "-c", script, file, tmp_path / "cache"], check=True, capture_output=True, preexec_fn=limited
    )
    assert done.stdout.strip().isdigit()
    assert not list((tmp_path / "cache").glob("*")), "a file that cannot be known is not kept"


MAPPING = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int count, char **words) {
    char *code = mmap(0, 1 << 16, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(words[1], O_RDONLY), 0);
    puts("ready");
    fflush(stdout);
    ((void (*)(void))(code + 0x1000))();
}
"""


@pytest.mark.parametrize("size", [20 << 30, 1 << 40])
@pytest.mark.whole
def test_a_process_that_runs_code_of_a_sparse_file_is_shown(tmp_path: Path, size: int) -> None:
    (tmp_path / "spin.s").write_text(".globl spin\nspin: .cfi_startproc\n1: pause\n jmp 1b\n .cfi_endproc\n")
    (tmp_path / "maps.c").write_text(MAPPING)
    library, program = tmp_path / "spin.so", tmp_path / "maps"
    options = ("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-z,separate-code")
    subprocess.run(["gcc", *options, tmp_path / "spin.s", "-o", library], check=True)
    subprocess.run(["gcc", "-O1", tmp_path / "maps.c", "-o", program], check=True)
    os.truncate(library, size)
    with subprocess.Popen([program, library], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            assert eventually(lambda: "spin+0x" in run("stack", str(process.pid)).stdout)
            done = run("stack", str(process.pid))
        finally:
            process.kill()
    assert (done.returncode, done.stderr) == (0, "")
    assert f"({library}) [registers]" in done.stdout
    assert "main+0x" in done.stdout


def test_tables_larger_than_any_program_has_are_not_read(tmp_path: Path) -> None:
    builder = ElfBuilder(kind=2)
    builder.section(".eh_frame", b"\0\0\0\0", addr=0x1000)
    image = builder.build().section(1, "sh_size", 3 << 29)
    elf = ElfFile(OpenFile(sparse(tmp_path / "large", bytes(image), 2 << 30)), "large")
    (trouble,) = TableCache(None).table(elf, AMD64, None).troubles
    assert "large: its tables of 1610612736 bytes are larger than" in trouble


@pytest.mark.parametrize("size", [1 << 30, 200 << 30])
def test_the_checksum_of_a_debug_file_that_is_a_hole_is_not_made(tmp_path: Path, size: int) -> None:
    builder = ElfBuilder(kind=2)
    link = b"debug\0\0\0" + (0).to_bytes(4, "little")
    builder.section(".gnu_debuglink", link)
    file = tmp_path / "program"
    file.write_bytes(bytes(builder.build()))
    sparse(tmp_path / "debug", bytes(ElfBuilder(kind=2).build()), size)
    with pytest.warns(PassedOverWarning, match=r"debug: this debug file of \d+ bytes is"):
        assert debug_file(ElfFile(file), []) is None


def test_report_and_size_go_on_without_a_debug_file_that_is_a_hole(program: Path, tmp_path: Path) -> None:
    file = tmp_path / "program"
    sparse(tmp_path / "program.debug", b"\x7fELF\2\1\1" + bytes(57), 1 << 20)
    subprocess.run(["objcopy", "-S", "--add-gnu-debuglink", tmp_path / "program.debug", program, file], check=True)
    sparse(tmp_path / "program.debug", b"\x7fELF\2\1\1" + bytes(57), 200 << 30)
    done = run("report", file, "-o", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n") == 1
    assert "so its checksum is not made and it is not used" in done.stderr
    assert run("size", file).returncode == 0


def test_a_small_debug_file_is_found_by_its_checksum_as_ever(tmp_path: Path) -> None:
    debug = bytes(ElfBuilder(kind=2).build())
    builder = ElfBuilder(kind=2)
    builder.section(".gnu_debuglink", b"debug\0\0\0" + zlib.crc32(debug).to_bytes(4, "little"))
    (tmp_path / "program").write_bytes(bytes(builder.build()))
    (tmp_path / "debug").write_bytes(debug)
    found = debug_file(ElfFile(tmp_path / "program"), [])
    assert found is not None
