"""Rows of real files equal those of pyelftools and of readelf, which nobody here wrote."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile

from corpus import PREFIXES, SOURCES, corpus
from peers import peer, run
from walkback.base.arch import Machine
from walkback.dwarf.expressions import block_at
from walkback.dwarf.files import FrameSource, read
from walkback.dwarf.rulewords import RuleKind

LIBRARIES = [
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
    "/usr/bin/python3",
    "/usr/bin/gdb",
    "/usr/libexec/valgrind/memcheck-amd64-linux",
]
MOST = 1500
"""Functions of one file that are compared with pyelftools, which takes a millisecond for each."""

Said = tuple[Any, ...]  # a kind, and what belongs to it
Row = dict[str, Said]


def split(word: int) -> tuple[RuleKind, int, int]:
    offset = word >> 20
    return RuleKind(word & 15), word >> 4 & 0xFFFF, offset - (1 << 44) if offset >> 43 else offset


def rows_of(source: FrameSource, number: int) -> dict[int, Row]:
    """The rules of one function, by address, in the words of the instructions."""
    frames = source.frames
    first = int(frames.fdes.first_row[number])
    found = {}
    for row in range(first, first + int(frames.fdes.rows[number])):
        words = [int(word) for word in frames.rule_words[frames.row_rule[row]]]
        parts: dict[str, tuple[Any, ...]] = {}
        for name, word in zip(("cfa", "ra", "fp"), words, strict=False):
            kind, register, offset = split(word)
            if kind in {RuleKind.EXPRESSION, RuleKind.AT_EXPRESSION}:
                parts[name] = (kind, block_at(frames.data, offset))
            else:
                parts[name] = (kind, register, offset)
        found[int(frames.fdes.start[number]) + int(frames.row_offset[row])] = parts
    return found


# pyelftools

KINDS = {
    "UNDEFINED": RuleKind.UNDEFINED,
    "SAME_VALUE": RuleKind.SAME_VALUE,
    "REGISTER": RuleKind.REGISTER,
    "OFFSET": RuleKind.AT_CFA,
    "VAL_OFFSET": RuleKind.CFA,
    "EXPRESSION": RuleKind.AT_EXPRESSION,
    "VAL_EXPRESSION": RuleKind.EXPRESSION,
}
BROKEN_THERE = {0x2E, 0x12}
"""pyelftools raises on DW_CFA_GNU_args_size and does not scale the offset of DW_CFA_def_cfa_sf."""


def of_register(rule: Any) -> Said:
    if rule is None:
        return RuleKind.UNSPECIFIED, 0, 0
    kind = KINDS[rule.type]
    if kind in {RuleKind.EXPRESSION, RuleKind.AT_EXPRESSION}:
        return kind, bytes(rule.arg)
    if kind is RuleKind.REGISTER:
        return kind, rule.arg, 0
    return kind, 0, rule.arg or 0


def of_pyelftools(entry: Any, machine: Machine) -> dict[int, Row]:
    found: dict[int, Row] = {}
    said: tuple[Any, ...]
    for line in entry.get_decoded().table:
        cfa = line["cfa"]
        if cfa is None:
            said = (RuleKind.UNSPECIFIED, 0, 0)
        elif cfa.expr is not None:
            said = (RuleKind.EXPRESSION, bytes(cfa.expr))
        else:
            said = (RuleKind.REGISTER, cfa.reg, cfa.offset)
        found[line["pc"]] = {
            "cfa": said,
            "ra": of_register(line.get(entry.cie["return_address_register"])),
            "fp": of_register(line.get(machine.fp)),
        }
    return found


def holds(rows: dict[int, Row], at: int) -> Row | None:
    before = [pc for pc in rows if pc <= at]
    return rows[max(before)] if before else None


@pytest.mark.whole
@pytest.mark.parametrize("path", LIBRARIES, ids=lambda path: Path(path).name)
def test_rows_of_libraries_equal_those_of_pyelftools(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"there is no {path}")
    (source, *_) = read(path)
    assert not source.frames.fdes.fault.any()
    assert source.frames.stop is None
    by_place = {int(place): number for number, place in enumerate(source.frames.fdes.position)}
    passed_over = compared = 0
    with Path(path).open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info(relocate_dwarf_sections=False)
        entries = [entry for entry in dwarf.EH_CFI_entries() if isinstance(entry, FDE)]
        assert len(entries) == len(source.frames.fdes)
        step = -(-len(entries) // MOST)
        for entry in entries[::step]:
            number = by_place[entry.offset]
            assert entry["initial_location"] == source.frames.fdes.start[number]
            assert entry["address_range"] == source.frames.fdes.size[number]
            opcodes = {one.opcode for one in (*entry.cie.instructions, *entry.instructions)}
            if opcodes & BROKEN_THERE:
                passed_over += 1
                continue
            ours, theirs = rows_of(source, number), of_pyelftools(entry, source.machine)
            # It leaves out lines that say the same as the one before.
            for pc in ours.keys() | theirs.keys():
                assert holds(ours, pc) == holds(theirs, pc), f"{path}: FDE {number} at {pc:#x}"
                compared += 1
    assert compared > len(entries) // step
    assert passed_over < compared // 20


# readelf

FDE_LINE = re.compile(r"^(?P<place>[0-9a-f]+) [0-9a-f]+ [0-9a-f]+ (?P<kind>CIE|FDE)(?P<rest>.*)$")
VALUE = re.compile(r"r\d+ \(\w+\)|\S+")


def of_readelf(text: str) -> dict[int, dict[int, dict[str, str]]]:
    """For each function, by its place in the section, the columns of each address."""
    found: dict[int, dict[int, dict[str, str]]] = {}
    place, columns, is_fde = 0, [], False
    for line in text.splitlines():
        match = FDE_LINE.match(line)
        if match:
            place, is_fde = int(match["place"], 16), match["kind"] == "FDE"
            if is_fde:
                found[place] = {}
        elif line.startswith("   LOC"):
            columns = line.split()[1:]
        elif is_fde and re.match(r"[0-9a-f]{16} ", line):
            pc, *values = VALUE.findall(line)
            found[place][int(pc, 16)] = dict(zip(columns, values, strict=True))
    return found


def in_words(said: Said, machine: Machine, *, cfa: bool = False) -> str:
    kind, *rest = said
    match kind:
        case RuleKind.UNSPECIFIED if cfa:
            return f"{machine.register_name(0)}{rest[1]:+d}"
        case RuleKind.UNSPECIFIED | RuleKind.UNDEFINED:
            return "u"
        case RuleKind.SAME_VALUE:
            return "s"
        case RuleKind.AT_CFA:
            return f"c{rest[1]:+d}"
        case RuleKind.CFA:
            return f"v{rest[1]:+d}"
        case RuleKind.AT_EXPRESSION:
            return "exp"
        case RuleKind.EXPRESSION:
            return "exp" if cfa else "vexp"
    return f"{machine.register_name(rest[0])}{rest[1]:+d}" if cfa else f"r{rest[0]}"


def compare_with_readelf(path: Path, version: str = "new", prefix: str = "") -> int:
    """Every row that readelf prints; returns how many."""
    count = 0
    for source in read(path):
        assert not source.frames.fdes.fault.any()
        done = run(f"{prefix}readelf-{version}", "--debug-dump=frames-interp", path)
        whole = done.stdout.decode(errors="replace")
        part = whole.partition(f"Contents of the {source.name} section")[2].partition("Contents of the ")[0]
        told = of_readelf(part)
        frames, machine = source.frames, source.machine
        fp = machine.register_names[machine.fp]
        assert len(told) == len(frames.fdes), path
        for number, place in enumerate(frames.fdes.position.tolist()):
            ours, theirs = rows_of(source, number), told[place]
            if not theirs:
                # readelf prints nothing of a function that adds nothing to its CIE.
                assert len(ours) == 1
                continue
            assert list(ours) == list(theirs), f"{path}: FDE {number}"
            for pc, columns in theirs.items():
                row = ours[pc]
                expected = {"CFA": in_words(row["cfa"], machine, cfa=True)}
                expected |= {"ra": in_words(row["ra"], machine), fp: in_words(row["fp"], machine)}
                for name, told_text in columns.items():
                    if name in expected:
                        text = re.sub(r" \(\w+\)", "", told_text)
                        text = re.sub(r"^xmm(\d+)", lambda found: f"r{17 + int(found[1])}", text)
                        assert text == expected[name], f"{path}: FDE {number} at {pc:#x}: {name}"
                for name in expected.keys() - columns.keys():
                    assert expected[name] == "u", f"{path}: FDE {number} at {pc:#x}: {name}"
                count += 1
    return count


@pytest.mark.peers
@pytest.mark.parametrize("arch", PREFIXES)
def test_rows_of_the_corpus_equal_those_of_readelf(arch: str) -> None:
    wanted = ("-O0.o", "-O2.o", ".so", "-pie", "program-static", "-r.o")
    samples = [one for one in corpus() if (one.arch, one.producer) == (arch, "new") and one.kind != "archive"]
    # Symbols that nobody defines, and what readelf says of the relocations of lld, are not the matter here.
    chosen = [
        one
        for one in samples
        if one.path.name.endswith(wanted) and one.kind != "lld" and one.path.stat().st_size < 300_000
    ]
    cases = [one for one in samples if one.source.endswith(".s") and one.kind == "object"]
    rows = sum(compare_with_readelf(one.path) for one in {*chosen, *cases})
    assert rows > 1500


@pytest.mark.peers
@pytest.mark.parametrize("path", LIBRARIES[:3], ids=lambda path: Path(path).name)
def test_rows_of_libraries_equal_those_of_readelf(path: str) -> None:
    assert compare_with_readelf(Path(path)) > 1000


@pytest.mark.peers
@pytest.mark.parametrize("arch", PREFIXES)
@pytest.mark.parametrize("linked", [False, True], ids=["object", "shared"])
def test_rows_of_debug_frame_equal_those_of_readelf(arch: str, linked: bool, tmp_path: Path) -> None:
    gcc = peer(PREFIXES[arch] + "gcc") if PREFIXES[arch] else "gcc"
    made, assembly, path = tmp_path / "debug.o", tmp_path / "debug.s", tmp_path / "debug"
    flags = ["-g", "-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions"]
    subprocess.run([gcc, *flags, "-S", "-o", assembly, SOURCES / "plain.c"], check=True)
    run(f"{PREFIXES[arch]}as-new", "-o", made, assembly, check=True)
    if linked:
        run(f"{PREFIXES[arch]}ld-new", "-shared", "-o", path, made, check=True)
    path = path if linked else made
    (source,) = [one for one in read(path) if one.name == ".debug_frame"]
    assert len(source.frames.fdes) > 10
    if not linked:
        names = {source.elf.section_name(index) for index in source.frames.code_section.tolist()}
        assert ".text" in names
        assert all(name.startswith(".text") for name in names)
    starts = np.sort(source.frames.fdes.start)
    assert len(np.unique(starts)) > 1
    assert compare_with_readelf(path) > 50
