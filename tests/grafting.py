"""Programs to graft into, sections to graft, and the tools that the results have to stand."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from peers import BIN, peer, run
from waiting import PATIENCE
from walkback.base.arch import MACHINES
from walkback.base.replace import replace_file
from walkback.elf import SECTION_RELOCATION, ElfFile, layout
from walkback.graft import Grafted, add, add_to_object, drop
from walkback.sframe.builder import SectionBuilder

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCE = Path(__file__).resolve().parent / "graft" / "phdrs.c"
ENTRY_RULES = {"AMD64": "CFA = rsp+8", "AArch64": "CFA = sp+0", "s390x": "CFA = r15+160"}
PC64 = {62: layout.R_X86_64_PC64, 183: layout.R_AARCH64_PREL64, 22: layout.R_390_PC64}
VERSIONS = ("2.40", "2.44", "new")
REWRITERS = [f"{tool}-{version}" for tool in ("strip", "objcopy") for version in VERSIONS]
LLVM_REWRITERS = ["llvm-strip", "llvm-objcopy"]
ELFLINT_NOVELTIES = (
    "unknown program header entry type 0x6474e554",
    "'.sframe' has unsupported type 1879048180",
    "'.rela.sframe': invalid destination section type",
)

PROGRAMS = {
    "pie": "",
    "pie-noseparate": "-Wl,-z,noseparate-code",
    "pie-relr": "-Wl,-z,pack-relative-relocs",
    "pie-stripped": "-s",
    "exec": "-no-pie",
    "exec-both-hashes-emit-relocs": "-no-pie -g -Wl,--hash-style=both,--emit-relocs",
    "exec-big-pages": "-no-pie -Wl,-z,max-page-size=0x200000",
    "static": "-static",
    "static-noseparate": "-static -Wl,-z,noseparate-code",
    "static-stripped": "-static -s",
    "static-pie": "-static-pie",
    "no-build-id": "-Wl,--build-id=none",
}
LINKED_BY_PEERS = [
    (program, ld) for program in ("pie", "exec", "static", "static-pie") for ld in ("ld.lld", "ld-2.44", "ld-new")
]


def compiled(folder: Path, name: str, options: str, linker: str = "") -> Path:
    """The test program; `linker` is a peer instead of the host's own linker."""
    path = folder / f"{name}{linker}"
    if linker:
        options += f" -B{linker_folder(folder, linker)}"
    if not path.exists():
        subprocess.run(["gcc", "-O2", *options.split(), SOURCE, "-o", path], check=True)
    return path


def linker_folder(folder: Path, linker: str) -> Path:
    """A folder that makes gcc link with a peer, for its option -B."""
    script = folder / f"with-{linker}" / "ld"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec "{peer(linker)}" "$@"\n')
    script.chmod(0o755)
    return script.parent


def section_for(elf: ElfFile, count: int = 100) -> Callable[[int], bytes]:
    """Makes a section with some functions over the executable segment, for an address."""
    code = next(one for one in elf.segments if one["type"] == layout.PT_LOAD and one["flags"] & layout.PF_X)
    start, size = int(code["vaddr"]), int(code["memsz"]) // count & -8
    machine = next(one for one in MACHINES if one.elf_machine == elf.machine)
    builder = SectionBuilder(machine)
    for number in range(count):
        builder.function(start + number * size, size, [ENTRY_RULES[machine.name]])
    return lambda address: builder.encode(address=address)


def graft(source: Path | str, target: Path, count: int = 100) -> Grafted:
    """Writes a grafted copy."""
    with ElfFile(source) as elf:
        section = section_for(elf, count)
        grafted = add(elf, section, len(section(0)))
        replace_file(target, grafted.parts, read=elf.file)
    return grafted


def ungraft(source: Path, target: Path) -> None:
    with ElfFile(source) as elf:
        replace_file(target, drop(elf), read=elf.file)


def section_of_object(elf: ElfFile, sections: list[int]) -> tuple[bytes, np.ndarray]:
    """A section in which each of these text sections is one function, and its relocations."""
    machine = next(one for one in MACHINES if one.elf_machine == elf.machine)
    builder = SectionBuilder(machine)
    for index in sections:
        builder.function(0, int(elf.sections["size"][index]), [ENTRY_RULES[machine.name]], section=index)
    section = builder.build().section
    assert section.code_section is not None
    table = np.zeros(len(section.code_section), SECTION_RELOCATION)
    table["offset"] = [section.field_offset(number) for number in range(len(table))]
    table["type"] = PC64[elf.machine]
    table["section"] = section.code_section
    return builder.encode(), table


def graft_object(source: Path, target: Path) -> Grafted:
    """Writes a copy of an object in which each text section is one function."""
    with ElfFile(source) as elf:
        code = (elf.sections["flags"] & layout.SHF_EXECINSTR != 0) & (elf.sections["size"] > 0)
        grafted = add_to_object(elf, *section_of_object(elf, np.flatnonzero(code).tolist()))
        replace_file(target, grafted.parts, read=elf.file)
    return grafted


def rewrite(tool: str, source: Path, target: Path) -> subprocess.CompletedProcess[bytes]:
    """What strip or objcopy makes of a file; a cross tool has its machine's prefix."""
    target.unlink(missing_ok=True)
    output = ["-o"] if "strip" in tool else []
    return run(tool, source, *output, target)


def output_of(*command: str | Path, **environment: str) -> str:
    env = os.environ | {"LC_ALL": "C", "GRAFT": "1"} | environment
    done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=PATIENCE)
    text = (done.stdout + done.stderr).decode(errors="replace")
    return text if done.returncode == 0 else f"exit status {done.returncode}: {text}"


def elflint(path: Path | str) -> list[str]:
    """What elfutils finds wrong, without what it does not know about SFrame and without the numbers of sections."""
    done = run("eu-elflint", "--gnu-ld", path)
    lines = (done.stdout + done.stderr).decode().splitlines()
    kept = [line for line in lines if not line.endswith(ELFLINT_NOVELTIES) and line != "No errors"]
    return sorted(re.sub(r"\[ *\d+\]", "[]", line) for line in kept)


def root(name: str) -> Path:
    """The folder with the files of a set of peers, such as the programs of `arm64`."""
    peer({"arm64": "qemu-aarch64"}.get(name, f"qemu-{name}"))
    return BIN.parent / name
