"""Where the kernel begins a process the stack ends, also where no table says so."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import peers
from walkback.base.arch import AARCH64, AMD64, S390X, Machine
from walkback.elf import ElfFile
from walkback.elf.layout import PT_DYNAMIC, PT_NULL
from walkback.walking.abi import Flag
from walkback.walking.entrycode import entry_code
from walkback.walking.moduletable import Only, module_table
from walking.saidsteps import step_of

PROGRAM = """
.globl _start, work
_start: mov %rsp, %rdi
  call work
  mov %rax, %r12
  jmp *%r12
work: pause
  jmp work
"""
LIBRARY = """
.globl _start
_start: lea here(%rip), %rax
  test %rax, %rax
  je 1f
  jmp *%rax
1: ret
here: call _start
  hlt
"""
HANDLER = """
.globl _start
_start: push %rbp
  mov %rsp, %rbp
  call other
  pop %rbp
  jmp *%rax
other: ret
"""
FRAMELESS = HANDLER.replace("push %rbp", "push %rbx").replace("mov %rsp, %rbp", "nop").replace("pop %rbp", "pop %rbx")
DESCRIBED = PROGRAM.replace("_start: ", "_start: .cfi_startproc\n").replace("work: pause", ".cfi_endproc\nwork: pause")


def built(folder: Path, text: str, *options: str) -> ElfFile:
    (folder / "entry.s").write_text(text)
    command: list[str | Path] = ["gcc", "-nostdlib", "-static", *options, "-o", folder / "entry", folder / "entry.s"]
    subprocess.run(command, check=True)
    return ElfFile(folder / "entry")


def outermost(elf: ElfFile, address: int, only: Only | None = None) -> bool:
    table = module_table(elf, AMD64, only)
    step = step_of(table, address)
    return step is not None and bool(table.steps.flags[step] & Flag.OUTERMOST)


def test_code_at_which_a_process_begins_is_outermost_and_what_it_calls_is_not(tmp_path: Path) -> None:
    elf = built(tmp_path, PROGRAM)
    begin, end = elf.entry, elf.entry + 3 + 5 + 3 + 3
    assert entry_code(elf, AMD64) == (begin, end)
    assert [outermost(elf, place) for place in (begin - 1, begin, end - 1, end)] == [False, True, True, False]
    assert not any(outermost(elf, begin, only) for only in ("sframe", "cfi", "fp"))


def test_what_a_table_says_of_it_holds(tmp_path: Path) -> None:
    elf = built(tmp_path, DESCRIBED)
    assert not outermost(elf, elf.entry)


def test_what_stands_first_in_a_library_is_called_by_others(tmp_path: Path) -> None:
    assert entry_code(built(tmp_path, LIBRARY, "-Wl,--build-id=none"), AMD64) is None


def test_a_function_that_ends_with_a_jump_is_called_by_others(tmp_path: Path) -> None:
    assert entry_code(built(tmp_path, HANDLER, "-shared"), AMD64) is None
    path = Path(str(built(tmp_path, FRAMELESS, "-shared", "-Wl,--build-id=none").name))
    # As perf writes what it has found of a compiler at run time: one segment, and nothing for linkers.
    data = bytearray(path.read_bytes())
    kinds = ElfFile(path).segments["type"].tolist()
    at = int.from_bytes(data[32:40], "little") + 56 * kinds.index(PT_DYNAMIC)
    data[at : at + 4] = PT_NULL.to_bytes(4, "little")
    path.write_bytes(data)
    assert entry_code(ElfFile(path), AMD64) is None


def test_an_entry_outside_of_the_code_is_passed_over(tmp_path: Path) -> None:
    path = Path(str(built(tmp_path, PROGRAM).name))
    data = bytearray(path.read_bytes())
    for entry in (0, 1 << 40, 2**64 - 1):
        data[24:32] = entry.to_bytes(8, "little")
        path.write_bytes(data)
        module_table(ElfFile(path), AMD64)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("root", "path", "machine"),
    [
        ("bullseye", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", AMD64),
        ("bookworm", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", AMD64),
        ("sid", "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", AMD64),
        ("arm64", "lib/ld-linux-aarch64.so.1", AARCH64),
        ("s390x", "lib/ld64.so.1", S390X),
    ],
    ids=lambda one: one.name if isinstance(one, Machine) else None,
)
def test_dynamic_linkers(root: str, path: str, machine: Machine) -> None:
    elf = ElfFile(peers.root(root) / path)
    found = entry_code(elf, machine)
    assert found is not None
    assert found[0] == elf.entry
    assert 32 < found[1] - found[0] <= 128
