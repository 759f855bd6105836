"""Small objects of every assembler, linkers to join them, and what other people's readers say of the results.

What each function's rows are is written down here by hand, as readelf prints them; so a result is compared with what
the source says and not with what walkback read.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpus import PREFIXES, gas_object
from peers import run
from waiting import PATIENCE
from walkback import ElfFile, sframe
from walkback.table.rule import PartKind

if TYPE_CHECKING:
    from pathlib import Path

    from walkback import Rule, UnwindTable
    from walkback.table.rule import Part

Rows = list[tuple[int, str, str, str]]
"""Of a function: where each row starts, then CFA, FP and RA, as readelf prints them (`f` is fixed)."""

_FUNCTION = """
	.section {section},"ax",@progbits
	.globl {name}
	.type {name},@function
{name}:	.cfi_startproc
{body}
	.cfi_endproc
	.size {name}, .-{name}
"""


@dataclass(frozen=True)
class Shape:
    """A function of the test objects: its instructions with their CFI, and the rows that these mean."""

    section: str
    body: str
    rows: Rows


_AMD64 = {
    "leaf": Shape(".text", "ret", [(0, "sp+8", "u", "f")]),
    "frame": Shape(
        ".text",
        """push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register 6
	nop
	pop %rbp
	.cfi_def_cfa 7, 8
	ret""",
        [(0, "sp+8", "u", "f"), (1, "sp+16", "c-16", "f"), (4, "fp+16", "c-16", "f"), (6, "sp+8", "c-16", "f")],
    ),
    "own": Shape(
        ".text.{name}",
        """sub $200, %rsp
	.cfi_def_cfa_offset 208
	add $200, %rsp
	.cfi_def_cfa_offset 8
	ret""",
        [(0, "sp+8", "u", "f"), (7, "sp+208", "u", "f"), (14, "sp+8", "u", "f")],
    ),
}
_AARCH64 = {
    "leaf": Shape(".text", "ret", [(0, "sp+0", "u", "u")]),
    "frame": Shape(
        ".text",
        """stp x29, x30, [sp, -16]!
	.cfi_def_cfa_offset 16
	.cfi_offset 29, -16
	.cfi_offset 30, -8
	mov x29, sp
	.cfi_def_cfa_register 29
	ldp x29, x30, [sp], 16
	.cfi_restore 30
	.cfi_restore 29
	.cfi_def_cfa 31, 0
	ret""",
        [(0, "sp+0", "u", "u"), (4, "sp+16", "c-16", "c-8"), (8, "fp+16", "c-16", "c-8"), (12, "sp+0", "u", "u")],
    ),
    "own": Shape(
        ".text.{name}",
        "sub sp, sp, 512\n\t.cfi_def_cfa_offset 512\n\tadd sp, sp, 512\n\t.cfi_def_cfa_offset 0\n\tret",
        [(0, "sp+0", "u", "u"), (4, "sp+512", "u", "u"), (8, "sp+0", "u", "u")],
    ),
}
_S390X = {
    "leaf": Shape(".text", "br %r14", [(0, "sp+160", "u", "u")]),
    "frame": Shape(
        ".text",
        """stmg %r11, %r15, 88(%r15)
	.cfi_offset 11, -72
	.cfi_offset 14, -48
	aghi %r15, -160
	.cfi_def_cfa_offset 320
	lmg %r11, %r15, 248(%r15)
	.cfi_restore 14
	.cfi_restore 11
	.cfi_def_cfa_offset 160
	br %r14""",
        [
            (0, "sp+160", "u", "u"),
            (6, "sp+160", "c-72", "c-48"),
            (10, "sp+320", "c-72", "c-48"),
            (16, "sp+160", "u", "u"),
        ],
    ),
    "own": Shape(
        ".text.{name}",
        "aghi %r15, -400\n\t.cfi_def_cfa_offset 560\n\taghi %r15, 400\n\t.cfi_def_cfa_offset 160\n\tbr %r14",
        [(0, "sp+160", "u", "u"), (4, "sp+560", "u", "u"), (8, "sp+160", "u", "u")],
    ),
}
SHAPES = {"amd64": _AMD64, "aarch64": _AARCH64, "s390x": _S390X}


def assembled(letter: str, producer: str, arch: str = "amd64") -> Path:
    """The object of one assembler; the letter begins the names of its functions."""
    text = ""
    for kind, shape in SHAPES[arch].items():
        name = f"{letter}_{kind}"
        text += _FUNCTION.format(name=name, section=shape.section.format(name=name), body=shape.body)
    return gas_object(text, arch=arch, version=producer)


def expected(letters: str, arch: str = "amd64") -> dict[str, Rows]:
    """The rows of every function of these objects."""
    return {f"{letter}_{kind}": shape.rows for letter in letters for kind, shape in SHAPES[arch].items()}


def link_with(linker: str, output: Path, *words: str | Path, arch: str = "amd64") -> str:
    """Links with a peer, which must succeed; returns what it said."""
    done = run(PREFIXES[arch] + linker, "-o", output, *words)
    said = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode == 0, said
    return said


def sframe_of(path: Path) -> bytes:
    """The contents of the section of a linked file."""
    return placed_sframe(path)[1]


def placed_sframe(path: Path) -> tuple[int, bytes]:
    """Address and contents of the section of a linked file, from where readelf says that it stands."""
    told = run("readelf-new", "-SW", path, check=True).stdout.decode()
    [(address, offset, size)] = re.findall(r"\] \.sframe +\w+ +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) ", told)
    return int(address, 16), path.read_bytes()[int(offset, 16) :][: int(size, 16)]


_SYMBOL = re.compile(
    r"^ *\d+: ([0-9a-f]+) +\w+ +(?:FUNC|NOTYPE|IFUNC) +\w+ +\w+ +(?:\[.*\] +)?(\w+) +(\S+)", re.MULTILINE
)


def symbols(path: Path) -> dict[str, tuple[int, int]]:
    """Functions by name: section number and value, by readelf."""
    told = run("readelf-new", "-sW", path, check=True).stdout.decode()
    return {
        name: (int(section), int(value, 16))
        for value, section, name in _SYMBOL.findall(told)
        if section.isdigit() and not name.startswith("$")  # those of AArch64 tell code from data
    }


_FUNCTION_LINE = re.compile(r"func idx \[\d+\]: pc = (0x[0-9a-f]+), size = (\d+) bytes")
_ROW_LINE = re.compile(r"^ +([0-9a-f]{16}) +(\S+) +(\S+) +(\S+?)(?:\[s\])? *$")


def dumped(path: Path, readelf: str = "readelf-new") -> list[tuple[int, Rows]]:
    """Start and rows of every function by readelf, which must have nothing to complain of."""
    done = run(readelf, "--sframe", path)
    assert done.stderr == b"", done.stderr
    found: list[tuple[int, Rows]] = []
    for line in done.stdout.decode().splitlines():
        assert "arning" not in line, line
        if function := _FUNCTION_LINE.search(line):
            found.append((int(function[1], 16), []))
        elif row := _ROW_LINE.search(line):
            start, rows = found[-1]
            rows.append((int(row[1], 16) - start, row[2], row[3], row[4]))
    return found


def by_name(path: Path, functions: list[tuple[int, Rows]]) -> dict[str, Rows]:
    """The functions of a linked file by its symbols; each is there once, and there is no other."""
    names = {value: name for name, (_, value) in symbols(path).items()}
    again = [hex(start) for start, count in Counter(start for start, _ in functions).items() if count > 1]
    assert not again, f"more than once: {again}"
    return {names[start]: rows for start, rows in functions}


def named(path: Path, readelf: str = "readelf-new") -> list[tuple[str, Rows]]:
    """The functions of a linked file by names that several can share; not the linker's own stubs, which have none."""
    names: dict[int, str] = {}
    for name, (_, value) in symbols(path).items():
        names[value] = min(name, names.get(value, name))
    return sorted((names[start], rows) for start, rows in dumped(path, readelf) if start in names)


def told_by(path: Path) -> dict[str, Rows]:
    """The functions of a linked file by the newest readelf."""
    return by_name(path, dumped(path))


def printed(rule: Rule, machine_sp: int) -> tuple[str, str, str]:
    """The plain rules of the test objects as readelf prints them."""

    def place(part: Part) -> str:
        return "u" if part.kind is PartKind.UNCHANGED else f"c{part.offset:+}"

    base = "sp" if rule.cfa.register == machine_sp else "fp"
    return f"{base}{rule.cfa.offset:+}", place(rule.fp), place(rule.ra)


def rows_of_table(table: UnwindTable) -> list[tuple[int, int, Rows]]:
    """Section, start and rows of each function of a table of walkback, as readelf would print them."""
    fixed = table.machine.ra_from_cfa
    found = []
    for number in range(len(table)):
        first, count = int(table.range_first_row[number]), int(table.range_rows[number])
        rows: Rows = []
        for row in range(first, first + count):
            cfa, fp, ra = printed(table.rule(row), table.machine.sp)
            rows.append((int(table.row_offset[row]), cfa, fp, "f" if fixed else ra))
        found.append((int(table.range_section[number]), int(table.range_start[number]), rows))
    return found


def read_object(path: Path) -> dict[str, Rows]:
    """The functions of an object by walkback, by the symbols that readelf tells; each is there once."""
    names = {place: name for name, place in symbols(path).items()}
    [source] = sframe.read(path)
    found = [one for piece in source.pieces() for one in rows_of_table(piece.table)]
    places = Counter((section, start) for section, start, _ in found)
    again = [names[place] for place, count in places.items() if count > 1]
    assert not again, f"more than once: {again}"
    return {names[section, start]: rows for section, start, rows in found}


def header_of(path: Path) -> tuple[int, int]:
    """Version and flags of the section of a file, by its bytes."""
    with ElfFile(path) as elf:
        [index] = elf.sections_named(".sframe")
        data = bytes(elf.section_data(index))
    return data[2], data[3]


def executed(path: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a program."""
    return subprocess.run([path], capture_output=True, timeout=PATIENCE, check=False)
