"""Looks up random addresses of programs here and by other programs, and prints how many have equal answers.

`lines.py [--count COUNT] [FILE...]`: without files, the programs of the tests are compiled (`make peers`). The answer
for an address is a list: the function that the code was written in, and those that it is inlined in, each with its file
and line. *functions* are equal if all names are, demangled, and *lines* if all files and lines are. gdb has no lines of
calls, and counts for functions only; LLVM has a symbol's name for the outermost function. *by two* counts the answers
that at least two other programs give as well. Times are of whole processes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from debuginfo.linedprograms import programs
from debuginfo.symbolizers import Answers, addr2line, eu_addr2line, gdb, llvm_symbolizer, some_code
from inputs import BIN, CACHE
from measure import Figure, alternate
from walkback.base.arrays import U64, Bools
from walkback.elf import ElfFile
from walkback.symbols.demangle import demangle, without_clone, without_parameters
from walkback.symbols.sourceline import SourceLine

ADDRESSES = 30_000
UNITS = 8
"""Of the program whose addresses are looked up by `make bench`."""
_HERE = """
import json, sys
import numpy as np
from walkback.debuginfo import DebugLines
from walkback.elf import ElfFile, FileSearch
addresses = np.array([int(line, 16) for line in sys.stdin], np.uint64)
found = DebugLines(ElfFile(sys.argv[1]), FileSearch(debug_roots=sys.argv[2:])).find(addresses)
sys.stdout.write(json.dumps(found))
"""
"""The whole work of a process."""
Lines = tuple[SourceLine, ...]
Program = Callable[[Path, U64], Answers]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="ELF file with debugging information")
    parser.add_argument("--count", type=int, default=3000, help="addresses of each file")
    parser.add_argument(
        "--eu", type=int, default=500, metavar="COUNT", help="addresses for elfutils, which may be slow"
    )
    parser.add_argument("--debug", default="/usr/lib/debug", metavar="FOLDER", help="where debug files are")
    parser.add_argument("--show", type=int, default=0, metavar="COUNT", help="print so many answers that differ")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        given = ((name, Path(name).resolve()) for name in options.file)
        for title, path in given if options.file else programs(Path(folder)):
            total.update(_compared(title, path, options))
    print(f"{total['files']} files:")
    _print(total)


def lining(rounds: int) -> Iterator[Figure]:
    """Functions, calls and lines of addresses of a library in C++, as both programs write them."""
    path = _library()
    asked = path.with_name("addresses")
    asked.write_text("".join(f"{address:#x}\n" for address in some_code(ElfFile(path), ADDRESSES).tolist()))
    llvm = (BIN / "llvm-symbolizer", f"--obj={path}", "--output-style=JSON", "--inlines", "--no-demangle")
    ours, theirs = alternate(
        max(3, rounds // 2),
        lambda: _seconds((sys.executable, "-c", _HERE, path, "/usr/lib/debug"), asked),
        lambda: _seconds(llvm, asked),
    )
    yield Figure(f"name {ADDRESSES:,} addresses", ours, theirs, "s", "llvm-symbolizer", 1.5)


def _seconds(command: tuple[str | Path, ...], asked: Path) -> float:
    start = time.perf_counter()
    with asked.open() as addresses:
        subprocess.run(command, stdin=addresses, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _library() -> Path:
    """Of several units with copies of their own of the library's templates, made once."""
    folder = CACHE.with_name("bench-lining")
    path = folder / "lines.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).with_name("accuracy.cc")
        command = ["g++", "-O2", "-g", "-std=c++17", "-fPIC", "-fno-weak", "-w"]
        for unit in range(UNITS):
            subprocess.run([*command, f"-Dmain=unit{unit}", "-c", source, "-o", f"{unit}.o"], cwd=folder, check=True)
        objects = [f"{unit}.o" for unit in range(UNITS)]
        subprocess.run(["g++", "-shared", *objects, "-o", "made.so"], cwd=folder, check=True)
        (folder / "made.so").rename(path)
    return path


def _programs(folder: str) -> dict[str, Program]:
    """Walkback, and the others that are there."""
    known: dict[str, tuple[str | None, Callable[[str, Path, U64], Answers]]] = {
        "llvm-symbolizer": (str(BIN / "llvm-symbolizer"), llvm_symbolizer),
        "llvm-symbolizer of this machine": (shutil.which("llvm-symbolizer"), llvm_symbolizer),
        "eu-addr2line": (str(BIN / "eu-addr2line"), partial(eu_addr2line, folder=folder)),
        "addr2line newest": (str(BIN / "addr2line-new"), addr2line),
        "addr2line 2.40": (str(BIN / "addr2line-2.40"), addr2line),
        "gdb": (str(BIN / "gdb"), partial(gdb, folder=folder)),
    }
    found: dict[str, Program] = {"walkback": partial(_here, folder=folder)}
    return found | {name: partial(ask, path) for name, (path, ask) in known.items() if path and os.path.exists(path)}


def _here(path: Path, addresses: U64, folder: str) -> Answers:
    """The same of a process of its own."""
    command = [sys.executable, "-c", _HERE, str(path), folder]
    given = "".join(f"{address:#x}\n" for address in addresses.tolist())
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True, text=True)
    return [tuple(SourceLine(*line) for line in lines) for lines in json.loads(done.stdout)]


def _compared(title: str, path: Path, options: argparse.Namespace) -> Counter[str]:
    """What every program says of one file, printed and counted."""
    elf = ElfFile(path)
    addresses = some_code(elf, options.count)
    total: Counter[str] = Counter(files=1, addresses=len(addresses))
    answers: dict[str, Answers] = {}
    step = defaultdict(lambda: 1, {"eu-addr2line": max(len(addresses) // options.eu, 1)})
    for name, program in _programs(options.debug).items():
        start = time.perf_counter()
        try:
            answers[name] = program(path, addresses[:: step[name]])
        except (subprocess.CalledProcessError, AssertionError) as error:
            print(f"{path}: {name}: {error}", file=sys.stderr)
        total[f"{name}: ms"] += round(1e3 * (time.perf_counter() - start))
    ours = answers.pop("walkback")
    symbols = _symbols(path)
    by: dict[str, Bools] = {}
    for name, theirs in answers.items():
        total[f"{name}: addresses"] += len(theirs)
        asked = range(0, len(addresses), step[name])
        same = np.zeros((len(addresses), 2), bool)
        same[asked] = [_has_same(name, ours[place], other, symbols) for place, other in zip(asked, theirs, strict=True)]
        total[f"{name}: functions"] += int(np.count_nonzero(same[:, 0]))
        total[f"{name}: lines"] += int(np.count_nonzero(same[:, 1]))
        project = name.partition(" ")[0]
        by[project] = by.get(project, same) | same
        wrong = [place for place in asked if not same[place, : 1 if name == "gdb" else 2].all()]
        for place in wrong[:: len(wrong) // max(options.show, 1) + 1][: options.show]:
            other = theirs[place // asked.step]
            print(f"  {addresses[place]:#x} {name}:", *other, "  here:", *ours[place], sep="\n    ")
    functions, lines = np.sum(list(by.values()), axis=0).T
    total["by two: functions"] = int(np.count_nonzero(functions >= 2))
    total["by two: lines"] = int(np.count_nonzero(lines >= 2))
    for place in np.flatnonzero((functions < 2) | (lines < 2))[: options.show].tolist():
        print(f"  {addresses[place]:#x}, by {functions[place]} and {lines[place]}, here:", *ours[place], sep="\n    ")
    print(f"{title}:")
    _print(total)
    return total


def _print(total: Counter[str]) -> None:
    """A line for each program."""
    both = f"by two {total['by two: functions']:,} functions, {total['by two: lines']:,} lines"
    print(f"  {total['addresses']:,} addresses, {both}, {total['walkback: ms'] / 1e3:.2f} s here")
    for name in [key.removesuffix(": functions") for key in total if key.endswith(": functions")]:
        if f"{name}: addresses" in total:
            lines = f"{total[f'{name}: lines']:,} lines, " if name != "gdb" else ""
            counts = f"{total[f'{name}: functions']:,} of {total[f'{name}: addresses']:,} functions, {lines}"
            print(f"  {name}: {counts}{total[f'{name}: ms'] / 1e3:.2f} s", flush=True)


def _has_same(program: str, ours: Lines, theirs: Lines, symbols: dict[str, str]) -> tuple[bool, bool]:
    """Whether another program's answer has the same functions, and whether it has the same lines."""
    own, other = _known(ours), _known(theirs)
    if program == "gdb":
        own, other = tuple(one for one in ours if one.function), theirs
    names = [(a.function or "", b.function or "") for a, b in zip(own, other, strict=False)]
    functions = len(own) == len(other) and all(_is_same_name(*both) for both in names[:-1])
    if functions and names:
        function, its = names[-1]
        is_from_symbol = program.startswith("llvm") or not function or symbols.get(function, "") == symbols.get(its)
        functions = is_from_symbol or _is_same_name(function, its)
    return functions, [_place(one) for one in own] == [_place(one) for one in other]


def _symbols(path: Path) -> dict[str, str]:
    """The symbols of a file and their addresses: a function can have several names."""
    done = subprocess.run([BIN / "nm-new", path], capture_output=True, check=True, text=True)
    found = (line.split(" ", 2) for line in done.stdout.splitlines())
    return {name: address for address, _, name in found if address}


def _known(lines: Lines) -> Lines:
    """The answer; none for what others take from the symbol table, which has no line."""
    return lines if len(lines) > 1 or any(line.line for line in lines) else ()


def _place(line: SourceLine) -> tuple[str, int]:
    return os.path.normpath(line.file or "") if line.line else "", line.line


@cache
def _is_same_name(own: str, other: str) -> bool:
    """Demangled, and without what some leave out where there is no symbol: namespaces and parameters."""
    a, b = (without_parameters(text) for text in demangle([without_clone(own), without_clone(other)], parameters=True))
    return a == b or a.endswith(f"::{b}")


if __name__ == "__main__":
    main()
