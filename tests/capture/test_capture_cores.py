"""Core files that programs here have left: of the kernel, of gdb, and of emulated machines."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import walkback
from capture.targets import THREADS, Look, allow_cores, compiled, gdb_stacks, pcs, started, state
from emulation import LOADER, built, core_of, root
from peers import BIN
from recorded import core as core_of_hello
from recorded import hello
from waiting import eventually
from walkback.base.errors import UnreadableError, WalkbackError
from walkback.capture.core import packed
from walkback.capture.core.file import CoreFile
from walkback.capture.live.process import Process
from walkback.capture.snapshot import Snapshot
from walkback.elf import ElfFile, FileSearch
from walkback.naming.modules import Modules

CRASH = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
volatile unsigned long sink;
__attribute__((noinline)) void deep(int n) { if (n > 0) { deep(n - 1); sink++; return; } DIE; }
__attribute__((noinline)) void sleepy(int n) { if (n > 0) { sleepy(n - 1); sink++; return; } for (;;) pause(); }
static void *run(void *p) { sleepy((int)(long)p); return 0; }
int main(void) {
    pthread_t thread;
    for (long i = 1; i < 3; i++) pthread_create(&thread, 0, run, (void *)i);
    usleep(200000);
    deep(20);
}
"""


def crashed(folder: Path, die: str, *options: str) -> tuple[Path, Path]:
    """A program, and the core that the kernel wrote of it."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if pattern.startswith(("|", "/")):
        pytest.skip(f"the kernel does not write core files beside the program, but to {pattern}")
    program = compiled(folder, CRASH.replace("DIE", die), *options)
    done = subprocess.run([program], cwd=folder, preexec_fn=allow_cores, check=False)
    cores = [path for path in folder.iterdir() if path.name.startswith("core")]
    if not cores:
        pytest.skip("core files are not allowed here (ulimit -c)")
    assert done.returncode < 0
    return program, cores[0]


@pytest.fixture(scope="module")
def aborted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return crashed(tmp_path_factory.mktemp("aborted"), "abort()")


def opened(
    core: Path, search: FileSearch | None = None, exe: Path | None = None, **options: Any
) -> tuple[Look, CoreFile, Snapshot]:
    look = Look(Modules(search or FileSearch(**options)))
    source = CoreFile.open(core, look.modules, exe)
    return look, source, look.at(source)


def test_a_core_of_the_kernel(aborted: tuple[Path, Path]) -> None:
    program, core = aborted
    look, source, snapshot = opened(core)
    assert snapshot.troubles == []
    assert snapshot.command == "target"
    assert snapshot.arguments == str(program)
    assert snapshot.signal == signal.SIGABRT
    assert snapshot.signalled == 0
    assert snapshot.fault is None
    assert snapshot.tids[0] == snapshot.pid
    assert look.ends(snapshot) == ["complete"] * 3
    names = look.names(snapshot, 0)
    assert names[names.index("abort") :][:23] == ["abort", *["deep"] * 21, "main"]
    assert {tuple(look.names(snapshot, i)[:-2]) for i in (1, 2)} == {
        ("pause", "sleepy", "sleepy", "run"),
        ("pause", "sleepy", "sleepy", "sleepy", "run"),
    }
    assert "[vdso]" in {look.modules[int(number)].name for number in source.space.module if number >= 0}


@pytest.mark.peers
def test_the_same_as_gdb(aborted: tuple[Path, Path]) -> None:
    program, core = aborted
    _, _, snapshot = opened(core)
    assert pcs(snapshot) == gdb_stacks(program, core)


def test_a_core_that_is_cut_short_gives_what_is_there(aborted: tuple[Path, Path]) -> None:
    _, core = aborted
    data = core.read_bytes()
    whole = opened(core)[2]
    complete = 0
    with pytest.raises(UnreadableError, match="cut short"):
        CoreFile(ElfFile(data[:0x700], str(core)), Modules())
    for size in range(0x8000, len(data), len(data) // 37):
        look = Look(Modules())
        snapshot = look.at(CoreFile(ElfFile(data[:size], str(core)), look.modules))
        assert snapshot.tids == whole.tids
        assert "the core file is cut short" in snapshot.troubles[0]
        complete += look.ends(snapshot).count("complete")
        # What is walked is as it was, up to where the memory ends.
        for tid, found in pcs(snapshot).items():
            if look.ends(snapshot)[snapshot.tids.index(tid)] == "complete":
                assert found == pcs(whole)[tid]
    assert complete


def test_a_fault_has_an_address(tmp_path: Path) -> None:
    _, core = crashed(tmp_path, "*(volatile int *)0x1234 = 1")
    look, _, snapshot = opened(core)
    assert snapshot.signal == signal.SIGSEGV
    assert snapshot.fault == 0x1234
    assert look.names(snapshot, 0)[:22] == [*["deep"] * 21, "main"]


def test_a_static_program(tmp_path: Path) -> None:
    _, core = crashed(tmp_path, "abort()", "-static")
    look, _, snapshot = opened(core)
    assert snapshot.troubles == []
    assert look.names(snapshot, 0).count("deep") == 21
    assert look.ends(snapshot) == ["complete"] * 3


def test_a_file_with_another_build_id_is_told_and_not_used(tmp_path: Path) -> None:
    program, core = crashed(tmp_path, "abort()")
    recorded = program.read_bytes()
    (tmp_path / "kept").write_bytes(recorded)
    compiled(tmp_path, CRASH.replace("DIE", "sink = 7; abort()"))
    look, _, snapshot = opened(core)
    told = [one for one in snapshot.troubles if one.startswith(f"{program}: ")]
    assert len(told) == 1
    assert re.search(r"the file there has the build ID \w+, and \w+ was recorded; .*--buildid-dir", told[0])
    assert "deep" not in look.names(snapshot, 0)
    # The right file is found where it is said to be, and by its build ID.
    text = ElfFile(tmp_path / "kept").build_id.hex()
    cached = tmp_path / "cache" / ".build-id" / text[:2] / text[2:] / "elf"
    cached.parent.mkdir(parents=True)
    cached.symlink_to(tmp_path / "kept")
    look, _, snapshot = opened(core, buildid_dir=tmp_path / "cache")
    assert snapshot.troubles == []
    assert look.names(snapshot, 0).count("deep") == 21
    look, _, snapshot = opened(core, exe=tmp_path / "kept")
    assert snapshot.troubles == []
    assert look.names(snapshot, 0).count("deep") == 21


def test_a_missing_file_is_told_and_found_in_a_sysroot(tmp_path: Path) -> None:
    program, core = crashed(tmp_path, "abort()")
    root = tmp_path / "root"
    inside = root / str(program).lstrip("/")
    inside.parent.mkdir(parents=True)
    program.rename(inside)
    look, _, snapshot = opened(core)
    assert len(snapshot.troubles) == 1
    assert snapshot.troubles[0].startswith(f"{program}: No such file or directory; --sysroot ")
    assert snapshot.troubles[0].endswith("; --exe names the program")
    assert "raise" in look.names(snapshot, 0)
    look, _, snapshot = opened(core, sysroot=root)
    assert snapshot.troubles == []
    assert look.names(snapshot, 0).count("deep") == 21


@pytest.mark.peers
def test_a_core_of_gdb(tmp_path: Path) -> None:
    gcore = shutil.which("gcore")
    if gcore is None:
        pytest.skip("needs gcore, which comes with gdb")
    with started(compiled(tmp_path, THREADS)) as target:
        os.kill(target.pid, signal.SIGSTOP)
        assert eventually(lambda: state(target.pid) == "T")
        look = Look(Modules())
        live = pcs(look.at(Process(target.pid, look.modules)))
        subprocess.run([gcore, "-o", tmp_path / "saved", str(target.pid)], capture_output=True, check=True)
    look, source, snapshot = opened(tmp_path / f"saved.{target.pid}")
    assert snapshot.troubles == []
    # A debugger's stop is not what ended it.
    assert (snapshot.signal, snapshot.signalled) == (0, -1)
    assert pcs(snapshot) == live
    assert look.ends(snapshot) == ["complete"] * 5
    # The program's text is not in the core, and is read from its file.
    pc = int(source.sample().samples.registers[0, 32])
    found = source.read(0, pc)
    assert found is not None
    start, contents = found
    assert start <= pc < start + len(contents)


# Emulated machines

MACHINES = [pytest.param(name, marks=pytest.mark.peers) for name in LOADER]


def emulated(folder: Path, arch: str, die: str = "abort()") -> tuple[Path, Path]:
    """A program for another machine, and the core that the emulator wrote of it."""
    (folder / "crash.c").write_text(CRASH.replace("DIE", die))
    flags = ("-O1", "-fno-optimize-sibling-calls", "-fno-inline")
    program = built(folder / "crash", arch, folder / "crash.c", *flags)
    return program, core_of(folder, arch, program)


@pytest.fixture(scope="module")
def emulations(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Path]]:
    made = {}

    def of(arch: str) -> tuple[Path, Path]:
        if arch not in made:
            made[arch] = emulated(tmp_path_factory.mktemp(arch), arch)
        return made[arch]

    return of


@pytest.mark.parametrize("arch", MACHINES)
def test_a_core_of_the_emulator(emulations: Callable[[str], tuple[Path, Path]], arch: str) -> None:
    program, core = emulations(arch)
    look, source, snapshot = opened(core, exe=program, sysroot=root(arch))
    assert source.machine.name.lower() == arch
    assert snapshot.troubles == []
    assert snapshot.signal == signal.SIGABRT
    assert snapshot.signalled == 0
    assert look.ends(snapshot) == ["complete"] * 3
    names = look.names(snapshot, 0)
    assert names[names.index("abort") :][:23] == ["abort", *["deep"] * 21, "main"]
    assert names[-1] == "_start"
    assert look.names(snapshot, 1)[:4] == ["pause", "sleepy", "sleepy", "run"]
    modules = [look.modules[number] for number in range(len(look.modules))]
    files = {one.elf.name for one in modules if one.elf is not None}
    assert files == {str(program), *(str(root(arch) / "lib" / name) for name in ("libc.so.6", LOADER[arch]))}


@pytest.mark.parametrize("arch", MACHINES)
def test_a_core_of_the_emulator_names_its_program(emulations: Callable[[str], tuple[Path, Path]], arch: str) -> None:
    _, core = emulations(arch)
    look, _, snapshot = opened(core)
    assert "deep" in look.names(snapshot, 0) or look.ends(snapshot)[0] != "complete"
    assert any(one.startswith("/lib/libc.so.6: ") for one in snapshot.troubles)
    # With the files of another system, the program's path is not one of this system.
    _, _, snapshot = opened(core, sysroot=root(arch))
    assert any("name the program of this core file" in one for one in snapshot.troubles)


@pytest.mark.parametrize("arch", MACHINES)
def test_a_wrong_program_and_wrong_libraries_are_not_used(
    emulations: Callable[[str], tuple[Path, Path]], arch: str, tmp_path: Path
) -> None:
    program, core = emulations(arch)
    other, _ = emulated(tmp_path, arch, "getpid(); abort()")
    _, _, snapshot = opened(core, exe=other, sysroot=root(arch))
    assert any(one.startswith(str(other)) and "not used" in one for one in snapshot.troubles)
    # Libraries of another system: the core has no build ID of theirs, but their dynamic sections.
    wrong = tmp_path / "root" / "lib"
    wrong.mkdir(parents=True)
    folder = {"aarch64": "arm64", "s390x": "s390x"}[arch]
    found = next((BIN.parent / folder / "usr" / "lib").rglob("libc.so.6"))
    shutil.copy(found, wrong / "libc.so.6")
    look, _, snapshot = opened(core, exe=program, sysroot=tmp_path / "root")
    assert any("libc.so.6" in one and "not used" in one for one in snapshot.troubles)
    assert any(LOADER[arch] in one for one in snapshot.troubles)
    assert "abort" not in look.names(snapshot, 0)


# Compressed


def zstandard(data: bytes) -> bytes:
    done = subprocess.run(["zstd", "-q", "-c"], input=data, capture_output=True, check=True)
    return done.stdout


PACKERS = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": pytest.param(zstandard, marks=pytest.mark.skipif(not shutil.which("zstd"), reason="needs zstd")),
}


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_a_compressed_core_is_the_core(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    program = hello(tmp_path)
    whole = core_of_hello(program)
    (tmp_path / "core").write_bytes(whole)
    (tmp_path / "packed").write_bytes(pack(whole + bytes(5 << 20)))
    expected = walkback.stack(tmp_path / "core").labels(0)
    assert walkback.stack(tmp_path / "packed").labels(0) == expected == ["compute", "main", "_start"]


def test_what_cannot_be_unpacked_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "packed"
    whole = gzip.compress(core_of_hello(hello(tmp_path)))
    monkeypatch.setattr(packed, "_LARGEST", 1000)
    for contents, why in (
        (whole[:-20], "ends within its gzip stream|more than 1000 bytes"),
        (whole, "more than 1000 bytes"),
        (whole[:12] + bytes(40), "broken gzip stream"),
        (gzip.compress(b"no core"), "not an ELF file"),
    ):
        path.write_bytes(contents)
        with pytest.raises(WalkbackError, match=why) as raised:
            walkback.stack(path)
        assert raised.value.file == str(path)
