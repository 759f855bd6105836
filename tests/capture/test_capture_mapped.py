"""Where code and stacks of live processes are found: files that are gone, other namespaces, other stacks."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from capture.targets import THREADS, Look, compiled, gdb_stacks, pcs, settled, started
from waiting import eventually
from walkback.base.errors import UnreadableError
from walkback.capture.live.mapped import MappedCode
from walkback.capture.live.maps import Maps
from walkback.capture.live.process import Process
from walkback.capture.snapshot import Snapshot
from walkback.elf import ElfFile, FileSearch
from walkback.naming.modules import Module, Modules

LIBRARY = r"""
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void NAME(int n) { if (n > 0) { NAME(n - 1); sink++; return; } for (;;) pause(); }
void enter(void) { NAME(3); sink++; }
"""
LOADER = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*enter)(void) = (void (*)(void))dlsym(library, "enter");
    puts("ready"); fflush(stdout);
    enter();
    puts("");
}
"""
IN_LIBRARY = ["pause", *["first"] * 4, "enter", "main"]


@pytest.fixture
def loaded(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A program that is in a library of its own, and the library."""
    library = compiled(tmp_path, LIBRARY.replace("NAME", "first"), "-shared", "-fPIC", name="library.so")
    with started(compiled(tmp_path, LOADER), library) as target:
        yield target.pid, library


def stack_of(pid: int) -> tuple[Look, Snapshot, list[str | None]]:
    look = Look(Modules())
    snapshot = look.at(Process(pid, look.modules))
    return look, snapshot, look.names(snapshot, 0)


def name_of(look: Look, snapshot: Snapshot, frame: int) -> Module:
    return look.modules[int(snapshot.stacks.module[frame])]


def test_a_deleted_library_is_read(loaded: tuple[int, Path]) -> None:
    pid, library = loaded
    library.unlink()
    look, snapshot, names = stack_of(pid)
    assert names[:7] == IN_LIBRARY
    assert look.ends(snapshot) == ["complete"]
    assert name_of(look, snapshot, 1).name == str(library)
    assert snapshot.troubles == []


def test_a_replaced_library_is_read_as_it_was(loaded: tuple[int, Path]) -> None:
    pid, library = loaded
    other = compiled(library.parent, LIBRARY.replace("NAME", "second"), "-shared", "-fPIC", "-O2", name="other.so")
    other.rename(library)
    look, snapshot, names = stack_of(pid)
    assert names[:7] == IN_LIBRARY
    assert name_of(look, snapshot, 1).name == str(library)


def test_a_deleted_program_is_read(tmp_path: Path) -> None:
    program = compiled(tmp_path, THREADS)
    with started(program) as target:
        program.unlink()
        look, snapshot, names = stack_of(target.pid)
        assert names[:8] == ["pause", *["sleepy"] * 6, "main"]
        assert name_of(look, snapshot, 1).name == str(program)


def test_a_file_that_cannot_be_had_is_read_from_memory(
    loaded: tuple[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid, library = loaded
    monkeypatch.setattr(MappedCode, "_places", lambda *_: iter(()))
    look, snapshot, names = stack_of(pid)
    # Its dynamic symbols are in memory; the program's own functions have no such symbols.
    assert names[1:6] == [*["first"] * 4, "enter"]
    assert look.ends(snapshot) == ["complete"]
    assert f"{library}: its file cannot be had, so it was read from the process's memory" in snapshot.troubles
    module = name_of(look, snapshot, 1)
    assert module.elf.build_id == ElfFile(library).build_id


def test_a_file_that_cannot_be_had_is_found_by_the_build_id_in_memory(
    loaded: tuple[int, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid, library = loaded
    text = ElfFile(library).build_id.hex()
    kept = tmp_path / "cache" / ".build-id" / text[:2] / text[2:] / "elf"
    kept.parent.mkdir(parents=True)
    library.rename(kept)
    monkeypatch.setattr(MappedCode, "_places", lambda *_: iter(()))
    monkeypatch.setenv("PERF_BUILDID_DIR", str(tmp_path / "cache"))
    look, snapshot, names = stack_of(pid)
    assert names[1:6] == [*["first"] * 4, "enter"]
    assert name_of(look, snapshot, 1).elf.name == str(kept)
    assert not [line for line in snapshot.troubles if str(library) in line]


def test_a_name_that_looks_deleted_is_a_name(tmp_path: Path) -> None:
    library = compiled(tmp_path, LIBRARY.replace("NAME", "first"), "-shared", "-fPIC", name="a.so (deleted)")
    with started(compiled(tmp_path, LOADER), library) as target:
        look, snapshot, names = stack_of(target.pid)
        assert names[:7] == IN_LIBRARY
        assert name_of(look, snapshot, 1).name == str(library)


def test_code_that_was_loaded_meanwhile_is_found(tmp_path: Path) -> None:
    library = compiled(tmp_path, LIBRARY.replace("NAME", "first"), "-shared", "-fPIC", name="library.so")
    waiting = LOADER.replace("void *library", 'puts("waiting"); fflush(stdout); getchar(); void *library')
    with started(compiled(tmp_path, waiting), library, stdin=subprocess.PIPE) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules)
        before = look.at(process)
        assert "main" in look.names(before, 0)
        target.stdin.write(b"\n")
        target.stdin.close()
        assert target.stdout.readline() == b"ready\n"
        assert eventually(lambda: settled(target.pid))
        assert look.names(look.at(process), 0)[:7] == IN_LIBRARY


def test_a_static_program(tmp_path: Path) -> None:
    with started(compiled(tmp_path, THREADS, "-static")) as target:
        look, snapshot, names = stack_of(target.pid)
        assert [name for name in names if name == "sleepy"] == ["sleepy"] * 6
        assert look.ends(snapshot) == ["complete"] * 5


def test_a_process_in_another_mount_namespace(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root and unshare")
    program = compiled(tmp_path, THREADS)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    script = f"mount -t tmpfs none {hidden} && cp {program} {hidden}/inside && exec {hidden}/inside"
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("mount namespaces are not allowed here")
    with started("unshare", "-m", "sh", "-c", script) as target:
        assert not (hidden / "inside").exists()
        look, snapshot, names = stack_of(target.pid)
        assert names[:8] == ["pause", *["sleepy"] * 6, "main"]
        assert name_of(look, snapshot, 1).name == str(hidden / "inside")
        assert snapshot.troubles == []


ALTERNATE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void inside(int n) { if (n > 0) { inside(n - 1); sink++; return; }
    puts("ready"); fflush(stdout); for (;;) pause(); }
static void on(int number) { inside(2); sink++; }
__attribute__((noinline)) void outside(int n) { if (n > 0) { outside(n - 1); sink++; return; } raise(SIGUSR1); sink++; }
int main(void) {
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    struct sigaction action = { .sa_handler = on, .sa_flags = SA_ONSTACK };
    sigaltstack(&stack, 0); sigaction(SIGUSR1, &action, 0);
    outside(4);
}
"""


def test_a_handler_on_its_own_stack(tmp_path: Path) -> None:
    with started(compiled(tmp_path, ALTERNATE)) as target:
        look, snapshot, names = stack_of(target.pid)
        assert look.ends(snapshot) == ["complete"]
        assert names[:5] == ["pause", *["inside"] * 3, "on"]
        assert [name for name in names if name == "outside"] == ["outside"] * 5
        assert "main" in names
        # What was read while it stood still is kept, so that it can be walked again.
        again = look.walker.walk(snapshot.samples, snapshot.spaces)
        assert again.pc.tolist() == snapshot.stacks.pc.tolist()


DEEP = r"""
#include <stdio.h>
#include <unistd.h>
volatile int sink;
__attribute__((noinline)) void deep(int n) { char room[1024]; room[n & 1023] = n; sink += room[n & 511];
    if (n > 0) { deep(n - 1); sink++; return; } puts("ready"); fflush(stdout); for (;;) pause(); }
int main(void) { deep(800); }
"""


@pytest.mark.parametrize("limit", [0, 1000, 4096, 1 << 20])
def test_a_stack_deeper_than_the_copy(tmp_path: Path, limit: int) -> None:
    with started(compiled(tmp_path, DEEP)) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules, stack_bytes=limit)
        snapshot = look.at(process)
        assert look.ends(snapshot) == ["complete"]
        assert look.names(snapshot, 0).count("deep") == 801
        # Without any of the stack, what tables are wanted is seen only when the thread stands still.
        assert process.stops == {1 << 20: 1, 0: 3}.get(limit, 2)
        assert (snapshot.samples.cut[0] != 0) == (limit != 1 << 20)


@pytest.mark.peers
def test_a_handler_on_its_own_stack_as_gdb_sees_it(tmp_path: Path) -> None:
    with started(compiled(tmp_path, ALTERNATE)) as target:
        look = Look(Modules())
        ours = pcs(look.at(Process(target.pid, look.modules)))
        assert ours == gdb_stacks("-p", str(target.pid))


def test_code_that_no_file_brought_is_no_trouble(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #define _GNU_SOURCE
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            int file = memfd_create("jit", 0);
            ftruncate(file, 4096);
            unsigned char *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            shared[0] = 0xeb; shared[1] = 0xfe;
            mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
            unsigned char *own = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(own, shared, 2);
            puts("ready"); fflush(stdout);
            ((void (*)(void))own)();
        }
        """,
    )
    with started(program) as target:
        look, snapshot, names = stack_of(target.pid)
        assert snapshot.troubles == []
        space = snapshot.spaces[0]
        where = int(np.searchsorted(space.start, snapshot.stacks.pc[:1], side="right")[0]) - 1
        assert space.module[where] == -1
        assert "/memfd:jit" in {look.modules[number].name for number in range(len(look.modules))}
        assert names[0] is None


def small_program(machine_code: bytes) -> bytes:
    """A 32-bit program that is nothing but these instructions."""
    base = 0x08048000
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = 84 + len(machine_code)
    return header + struct.pack("<8I", 1, 0, base, base, size, size, 5, 4096) + machine_code


def test_a_32_bit_process_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "small"
    # pause() again and again: mov $29, %eax; int $0x80; jmp
    program.write_bytes(small_program(bytes([0xB8, 29, 0, 0, 0, 0xCD, 0x80, 0xEB, 0xF7])))
    program.chmod(0o755)
    try:
        target = subprocess.Popen([program])
    except OSError:
        pytest.skip("32-bit programs do not run here")
    try:
        with pytest.raises(UnreadableError, match="32-bit"):
            Process(target.pid, Modules())
    finally:
        target.send_signal(signal.SIGKILL)
        target.wait()


def test_lines_of_maps() -> None:
    text = (
        b"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/a b (deleted)\n"
        b"00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
        b"7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
        b"7f0000001000-7f0000002000 r--p 00000000 08:02 7   /x\\012y\n"
        b"7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0   [stack]\n"
    )
    maps = Maps(text)
    assert [one.name for one in maps.all] == ["/usr/bin/a b", "[heap]", "", "/x\ny", "[stack]"]
    assert [one.executable for one in maps.all] == [True, False, True, False, False]
    assert [one.is_file for one in maps.all] == [True, False, False, True, False]
    assert maps.all[0].offset == 0x1000
    assert maps.at(0x451FFF) is maps.all[0]
    assert maps.at(0x452000) is None
    assert maps.readable_at(0x400000) == (0x400000, 0x452000)
    # The kernel makes the first thread's stack longer downwards.
    assert maps.stack_at(0x7FFCFFFFF123) == (0x7FFCFFFFF000, 0x7FFD00021000)
    assert maps.stack_at(0x7FFD00021000) is None
    assert maps.stack_at(0x500000) is None
    later = Maps(text, maps)
    assert all(one is other for one, other in zip(maps.all, later.all, strict=True))


def test_names_of_separate_debug_files_are_found_where_they_are_looked_for(tmp_path: Path) -> None:
    program = compiled(tmp_path, DEEP, "-Wl,--build-id")
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    address = next(int(line.split()[0], 16) for line in lines if line.endswith(" deep"))
    build_id = ElfFile(program).build_id.hex()
    folder = tmp_path / "debug" / ".build-id" / build_id[:2]
    folder.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, folder / f"{build_id[2:]}.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    for root, there in ((tmp_path / "debug", True), (tmp_path, False)):
        modules = Modules(FileSearch(debug_roots=[root]))
        found = modules[modules.file(str(program))].symbols.describe(address)
        assert (found == "deep") == there
