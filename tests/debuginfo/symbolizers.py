"""What other programs say of addresses: the source line, and the calls that are inlined there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.symbols.sourceline import SourceLine

if TYPE_CHECKING:
    from walkback.base.arrays import U64
    from walkback.elf import ElfFile

Answers = list[tuple[SourceLine, ...]]

_GDB = """\
import gdb, json
answers = []
for address in json.load(open({asked!r})):
    names, table, block = [], None, None
    try:
        table, block = gdb.find_pc_line(address), gdb.block_for_pc(address)
    except RuntimeError:
        pass
    while block is not None and not block.is_static and not block.is_global:
        if block.function is not None:
            names.append(block.function.linkage_name or block.function.name)
        block = block.superblock
    file = table.symtab.fullname() if table and table.symtab else None
    answers.append([[None if k else file, 0 if k else table.line, name] for k, name in enumerate(names)])
json.dump(answers, open({said!r}, "w"))
"""
_DISCRIMINATOR = re.compile(r" \(discriminator [0-9]+\)$")
_EXECUTABLE = 4


def some_code(elf: ElfFile, count: int, seed: int = 1) -> U64:
    """Addresses of code by chance, rising."""
    flags, start, size = (elf.sections[name] for name in ("flags", "addr", "size"))
    code = [np.arange(a, a + n, dtype=np.uint64) for f, a, n in zip(flags, start, size, strict=True) if f & _EXECUTABLE]
    every = np.concatenate(code)
    chosen = np.random.default_rng(seed).choice(every, min(count, len(every)), replace=False)
    return np.sort(chosen)


def llvm_symbolizer(program: str, path: Path, addresses: U64) -> Answers:
    """Of a program of LLVM. What it takes from the symbol table alone has no line."""
    command = [program, f"--obj={path}", "--output-style=JSON", "--inlines", "--no-demangle"]
    found = []
    for text in _said(command, addresses).splitlines():
        symbols = json.loads(text).get("Symbol", [])
        lines = [SourceLine(one["FileName"], one["Line"], one["FunctionName"]) for one in symbols]
        found.append(tuple(lines) if len(lines) > 1 or (lines and lines[0].line) else ())
    return found


def addr2line(program: str, path: Path, addresses: U64) -> Answers:
    """Of a program of GNU binutils."""
    lines = _said([program, "-afi", "-e", str(path)], addresses).splitlines()
    found: list[list[SourceLine]] = []
    place = 0
    for address in addresses.tolist():
        assert lines[place] == f"0x{address:016x}"
        place += 1
        found.append([])
        while place < len(lines) and not re.fullmatch("0x[0-9a-f]{16}", lines[place]):
            file, _, line = _DISCRIMINATOR.sub("", lines[place + 1]).rpartition(":")
            found[-1].append(SourceLine(file, int(line) if line.isdigit() else 0, lines[place]))
            place += 2
    return [tuple(one) if len(one) > 1 or one[0].line else () for one in found]


def eu_addr2line(program: str, path: Path, addresses: U64, folder: str = "/usr/lib/debug") -> Answers:
    """Of elfutils; `folder` has debug files."""
    command = [program, "-afi", f"--debuginfo-path={folder}", "-e", str(path)]
    lines = _said(command, addresses, statuses=(0, 1)).splitlines()  # 1 if it knows nothing of an address
    found: list[list[SourceLine]] = []
    place = 0
    while place < len(lines):
        if re.fullmatch("0x[0-9a-f]{16}", lines[place]):
            found.append([])
            place += 1
        file, line = re.fullmatch(r"(.*?):([0-9]+)(?::[0-9]+)?", lines[place + 1]).groups()
        found[-1].append(SourceLine(file, int(line), lines[place].partition(" inlined at ")[0]))
        place += 2
    assert len(found) == len(addresses)
    return [tuple(one) if len(one) > 1 or one[0].line else () for one in found]


def gdb(program: str, path: Path, addresses: U64, folder: str = "/usr/lib/debug") -> Answers:
    """Of gdb, which has no lines of calls; `folder` has debug files. What a block of code is in follows it."""
    with tempfile.TemporaryDirectory() as temporary:
        asked, said, script = (Path(temporary) / name for name in ("asked", "said", "script.py"))
        asked.write_text(json.dumps(addresses.tolist()))
        script.write_text(_GDB.format(asked=str(asked), said=str(said)))
        command = [
            program,
            "-nx",
            "-q",
            "-batch",
            "-iex",
            f"set debug-file-directory {folder}",
            "-x",
            str(script),
            str(path),
        ]
        done = subprocess.run(command, env=_environment(), capture_output=True, check=False)
        assert said.exists(), done.stderr
        return [tuple(SourceLine(*line) for line in lines) for lines in json.loads(said.read_text())]


def plain(lines: tuple[SourceLine, ...]) -> list[tuple[str, int, str]]:
    """Files without detours, and no file where there is no line. The outermost function may have another symbol."""
    found = [(os.path.normpath(one.file or "") if one.line else "", one.line, one.function or "") for one in lines]
    return found[:-1] + [(*one[:2], "") for one in found[-1:]]


def _said(command: list[str], addresses: U64, statuses: tuple[int, ...] = (0,)) -> str:
    given = "".join(f"{address:#x}\n" for address in addresses.tolist())
    done = subprocess.run(
        command, input=given, capture_output=True, env=_environment(), check=False, text=True, errors="surrogateescape"
    )
    assert done.returncode in statuses, done.stderr
    return done.stdout


def _environment() -> dict[str, str]:
    return os.environ | {"DEBUGINFOD_URLS": "", "LC_ALL": "C"}
