"""Demangles every name of all ELF files in folders, here and by other programs, and prints how the answers compare.

The programs are those of `make peers`, and `rustfilt` and `swift-demangle` where they are on the PATH. With `symbolic`
before version 11 installed (`pip install symbolic==10.2.1`), its demangler is asked as well.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from everything import linked
from inputs import BIN
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.symbols.demangle import demangle

LANGUAGES = {  # the first that fits
    "Rust, legacy": re.compile(r"_{1,3}ZN.*17h[0-9a-f]{16}E"),
    "C++": re.compile(r"_{1,4}Z"),
    "Rust, v0": re.compile(r"_R[A-Z]"),
    "Swift": re.compile(r"_?\$[sS]"),
    "OCaml": re.compile(r"caml[A-Z]"),
    "D": re.compile(r"_D[0-9]"),
    "Objective-C": re.compile(r"[-+]\["),
}
PROGRAMS: dict[str, list[str]] = {
    **{name: [str(BIN / name)] for name in ("c++filt-2.35", "c++filt-2.40", "c++filt-2.44", "c++filt-new")},
    "llvm-cxxfilt": [str(BIN / "llvm-cxxfilt")],
    "rustfilt": ["rustfilt"],
    "swift-demangle": ["swift-demangle", "-compact"],
}
ONLY = {"rustfilt": "Rust", "swift-demangle": "Swift"}
"""Programs that take names of other languages for their own."""
SAME = (  # how others write what is written here
    (re.compile(r"\[[0-9a-f]+\](?=::)|::h[0-9a-f]{16}(?=$|\.| )"), ""),  # hashes
    (re.compile(r" ?\[clone (\.[^\]]*)\]| \((\.[^()]*)\)$"), r"\1\2"),
    (re.compile(r"\.llvm\.[0-9A-F]+| "), ""),
)

Answer = Callable[[list[str]], list[str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="+", help="folder with ELF files")
    parser.add_argument("--show", type=int, default=0, metavar="COUNT", help="print so many names that differ")
    options = parser.parse_args()
    print("language, program: names; demangled; us a name; as here, otherwise, only there, only here")
    for language, names in _grouped(options.folder).items():
        if not names:
            continue
        print(f"{language}: {len(names):,}")
        ours, seconds = _timed(_here, names)
        _print("walkback", names, ours, seconds)
        for program, answer in _others(language):
            theirs, seconds = _timed(answer, names)
            if theirs != names:
                _print(program, names, theirs, seconds, ours)
                _show(names, ours, theirs, options.show)


def _grouped(folders: list[str]) -> dict[str, list[str]]:
    """The distinct mangled names of files, by language."""
    found: set[bytes] = set()
    for path in linked(folders):
        try:
            with ElfFile(path) as elf:
                for section in (*elf.sections_named(".strtab"), *elf.sections_named(".dynstr")):
                    found.update(bytes(elf.section_data(section)).split(b"\0"))
        except WalkbackError as error:
            print(error, file=sys.stderr)
    groups: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    for name in sorted(one.decode() for one in found if one.isascii() and b"\n" not in one):
        for language, begin in LANGUAGES.items():
            if begin.match(name):
                groups[language].append(name)
                break
    return groups


def _others(language: str) -> Iterator[tuple[str, Answer]]:
    for program, command in PROGRAMS.items():
        if language.startswith(ONLY.get(program, "")) and shutil.which(command[0]):
            yield program, partial(_filtered, command)
    try:
        from symbolic.demangle import demangle_name
    except ImportError:
        return
    yield "symbolic", lambda names: [demangle_name(name) for name in names]


def _here(names: list[str]) -> list[str]:
    return demangle(names, parameters=True)


def _filtered(command: list[str], names: list[str]) -> list[str]:
    done = subprocess.run(command, input="\n".join(names) + "\n", capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def _timed(answer: Answer, names: list[str]) -> tuple[list[str], float]:
    start = time.perf_counter()
    found = answer(names)
    return found, time.perf_counter() - start


def _print(program: str, names: list[str], answers: list[str], seconds: float, ours: list[str] | None = None) -> None:
    told = sum(name != text for name, text in zip(names, answers, strict=True))
    line = f"  {program}: {told:,}; {seconds / max(len(names), 1) * 1e6:.1f}"
    if ours is not None:
        line += "; " + ", ".join(f"{count:,}" for count in _compared(names, ours, answers))
    print(line)


def _compared(names: list[str], ours: list[str], theirs: list[str]) -> tuple[int, int, int, int]:
    """How many they write as here, or otherwise, and how many only one side demangles: there, here."""
    same = otherwise = there = here = 0
    for name, own, other in zip(names, ours, theirs, strict=True):
        if name in {own, other}:
            there += other != name
            here += own != name
        elif _plain(own) == _plain(other):
            same += 1
        else:
            otherwise += 1
    return same, otherwise, there, here


def _show(names: list[str], ours: list[str], theirs: list[str], most: int) -> None:
    """Some that differ, from all over the list."""
    every = [three for three in zip(names, ours, theirs, strict=True) if _plain(three[1]) != _plain(three[2])]
    for three in every[:: max(len(every) // max(most, 1), 1)][:most]:
        print(*three, sep="\n    ")


def _plain(text: str) -> str:
    for pattern, instead in SAME:
        text = pattern.sub(instead, text)
    return text


if __name__ == "__main__":
    main()
