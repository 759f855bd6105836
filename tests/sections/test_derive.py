"""What is derived from call frame information says what the assembler says, byte for byte, and what real files say."""

from __future__ import annotations

import io
import re
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from cfibuilder import CfiBuilder, cfa
from corpus import Sample, corpus
from elfbuilder import ElfBuilder
from walkback.base.errors import GraftError
from walkback.elf import ElfFile
from walkback.elf import layout as elf_layout
from walkback.sections.derive import Derived, derive
from walkback.sections.install import add
from walkback.sframe.files import Source, sources_of
from walkback.table.comparing import compare
from walkback.table.verdict import Verdict

if TYPE_CHECKING:
    from walkback.sframe.section import Section

VERSIONS = {"2.40": 1, "2.44": 2, "new": 3}
FLAGS = 3
"""Where the flags stand: as 2.40 and 2.44 know no PCREL, which the derived section sets."""

# Functions of the hand-written cases that the assembler writes otherwise: producer, source, function, what holds here.
DEFECTS = {
    # The rows of `.eh_frame` differ from the assembler's.
    ("2.4.|new", "nested-state-and-cold-part", "nested"): "states are remembered in one place only",
    ("2.4.|new", "nested-state-and-cold-part", "cold"): "a restored register gets the rule of the first row",
    ("2.4.|new", "nested-state-and-cold-part", "undef[23]"): "a return address stays undefined, or was never",
    ("2.4.", "nested-state-and-cold-part", "same"): "DW_CFA_same_value is ignored",
    ("2.44", "(amd64-outermost|amd64-plt-lazy|aarch64-pauth)", "_start|g|u"): "DW_CFA_undefined is ignored",
    ("new", "escape-expressions|refused-directives", "a[1267]"): "an expression based on another register than rbp",
    ("new", "aarch64-refused-directives", "a7"): "the same on AArch64",
    ("new", "amd64-signal-frame", "sig2"): "a signal frame whose CFA is an expression keeps no rows",
    ("new", "s390x-refused-directives", "a7"): "one whose frame pointer is undefined neither",
}
REFUSED = {
    # The assembler writes what is not so, or what the version has no words for.
    ("2.40", "amd64-cfa-other-register|amd64-flex-registers|refused-directives", ".*"): "a CFA based on a register",
    ("2.40", ".*", "_start|g|u|undef[23]"): "an outermost frame, which version 1 cannot mark",
    ("2.4.", ".*signal-frame|aarch64-pauth", "sig|s"): "a signal frame, which only version 3 can mark",
    ("2.4.", "aarch64-refused-directives", "a[15]"): "a saved frame pointer while the return address is not saved",
    ("2.4.|new", "amd64-sections-empty-simple", "fs2"): "a return address in its register",
    # The escape says that its expression has 2 bytes and goes on for a third.
    ("new", "amd64-flex-wide-offsets", "ra1"): "an expression that is no rule of the table",
    ("new", "s390x-refused-directives", "a3"): "a CFA offset that is not 160 and a multiple of 8",
    ("new", "s390x-refused-directives", "a7"): "a frame pointer that cannot be found",
}


@pytest.fixture(scope="module")
def objects() -> list[Sample]:
    found = [one for one in corpus() if one.kind == "object" and one.producer in VERSIONS]
    assert len(found) > 100
    return found


def derived(sample: Sample, **options: Any) -> tuple[Source, Derived]:
    elf = ElfFile(sample.path)
    (source,) = sources_of(elf)
    return source, derive(elf, version=VERSIONS[sample.producer], **options)


def compiled(samples: list[Sample]) -> list[Sample]:
    return [one for one in samples if not one.source.endswith(".s")]


@pytest.mark.peers
def test_as_written_rows_of_compiled_code_are_the_assemblers_bytes(objects: list[Sample]) -> None:
    seen = set()
    for sample in compiled(objects):
        if "compiler-output" in sample.source and sample.producer != "new":
            continue  # the function with a CFA of r10 is left out here, and written wrong or left out there
        source, made = derived(sample, as_written=True)
        if sample.source.startswith(("plain", "shapes")) and sample.producer != "new":
            assert {one.reason.split(":")[0] for one in made.uncovered} <= {
                "a CFA based on a register other than SP and FP"
            }
        wanted, got = bytearray(source.data), bytearray(made.contents)
        wanted[FLAGS] = got[FLAGS] = 0
        assert got == wanted[: len(got)], sample.path
        assert not any(wanted[len(got) :]), sample.path  # GNU as pads on s390x
        assert len(wanted) - len(got) < 8, sample.path
        seen.add((sample.arch, made.section.version))
    assert seen == {
        ("amd64", 1),
        ("amd64", 2),
        ("amd64", 3),
        ("aarch64", 1),
        ("aarch64", 2),
        ("aarch64", 3),
        ("s390x", 3),
    }


@pytest.mark.peers
def test_relocations_of_compiled_code_are_the_assemblers(objects: list[Sample]) -> None:
    for sample in compiled(objects):
        if "compiler-output" in sample.source and sample.producer != "new":
            continue
        source, made = derived(sample, as_written=True)
        wanted = source.relocations
        target = source.relocation_targets
        got = made.relocations()
        assert got["offset"].tolist() == wanted["offset"].tolist(), sample.path
        assert got["type"].tolist() == wanted["type"].tolist(), sample.path
        assert got["section"].tolist() == target["section"].tolist(), sample.path
        assert got["addend"].tolist() == (wanted["addend"] + target["value"]).tolist(), sample.path


Rows = list[tuple[int, bytes]]


def rows_of(section: Section) -> dict[tuple[int, int, int], Rows]:
    """The rows of each function, by its text section, start and size: starts, and info bytes with words."""
    found = {}
    functions, shapes = section.functions, section.shapes
    columns = (section.code_section, section.code_address, functions.size, functions.first_row, functions.rows)
    for place, start, size, first, count in zip(*(column.tolist() for column in columns), strict=True):
        found[place, start, size] = [
            (int(section.row_start[row]), bytes([shapes.info[shape]]) + shapes.words[slice(*words)].tobytes())
            for row in range(first, first + count)
            for shape in [int(section.row_shape[row])]
            for words in [shapes.first_word[shape : shape + 2]]
        ]
    return found


def known(table: dict[tuple[str, str, str], str], sample: Sample, function: str | None) -> list[str]:
    wanted = (sample.producer, sample.source, function or "")
    return [
        why
        for patterns, why in table.items()
        if all(re.search(f"^({p})" if i != 1 else p, wanted[i]) for i, p in enumerate(patterns))
    ]


@pytest.mark.peers
def test_as_written_rows_of_hand_written_code_are_the_assemblers_but_for_defects(objects: list[Sample]) -> None:
    same = 0
    for sample in objects:
        if sample in compiled(objects):
            continue
        source, made = derived(sample, as_written=True)
        (piece,) = source.pieces()
        theirs, ours = rows_of(piece.section), rows_of(made.section)
        reasons = {(one.section, one.start, one.size): one.reason for one in made.uncovered}
        names = dict(zip(theirs, source.function_names(piece.section), strict=True))
        for place, rows in theirs.items():
            name = names[place]
            if place in reasons:
                why = known(REFUSED, sample, name)
                assert any(reasons[place].startswith(one) for one in why), (sample.path, name, reasons[place])
            elif ours[place] != rows:
                assert known(DEFECTS, sample, name), (sample.path, name)
            else:
                same += 1
    assert same > 80


@pytest.mark.peers
def test_merged_rows_say_what_the_assembler_says_at_every_address(objects: list[Sample]) -> None:
    for sample in compiled(objects):
        source, made = derived(sample)
        assert made.proof().equal
        (piece,) = source.pieces()
        told = compare(made.table, piece.table)
        assert told.code_bytes(Verdict.ONLY_OTHER) == 0, sample.path
        if sample.producer == "new":
            assert told.equal, sample.path
            assert told.code_bytes(Verdict.ONLY_ONE) == 0, sample.path
            assert len(made.section.row_start) <= len(piece.section.row_start), sample.path
        owner = np.repeat(np.arange(len(made.table)), made.table.range_rows)
        again = (made.table.row_rule[1:] == made.table.row_rule[:-1]) & (owner[1:] == owner[:-1])
        assert not again.any(), sample.path


# Real files


def real_files() -> list[Path]:
    """The C library, its loader, other libraries, the interpreter and a static program, where they are."""
    libraries = Path(sysconfig.get_config_var("LIBDIR") or "/usr/lib", "x")
    folders = [Path("/lib/x86_64-linux-gnu"), Path("/usr/lib/x86_64-linux-gnu"), Path("/lib64"), libraries.parent]
    names = ("libc.so.6", "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1", "libcrypto.so.3")
    found = [folder / name for name in names for folder in folders if (folder / name).exists()]
    found += [Path(name) for name in ("/usr/sbin/ldconfig", "/sbin/ldconfig", sys.executable) if Path(name).exists()]
    return list(dict.fromkeys(path.resolve() for path in found))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_real_files_are_covered_and_proved(version: int) -> None:
    files = 0
    for path in real_files():
        elf = ElfFile(path)
        made = derive(elf, version=version)
        proof = made.proof()
        assert proof.equal, path
        assert proof.code_bytes(Verdict.ONLY_OTHER) == 0, path
        # What is not covered is told, and nothing else is missing.
        told = sum(one.size for one in made.uncovered)
        missing = proof.code_bytes(Verdict.ONLY_ONE) + proof.code_bytes(Verdict.NEITHER)
        assert missing == told, path
        if made.code_bytes > 10_000:  # a tenth of a cryptographic library is written by hand
            assert made.covered_bytes >= 0.9 * made.code_bytes, path
        files += 1
    assert files >= 2


def test_a_function_left_out_is_named_with_its_reason() -> None:
    libc = next((path for path in real_files() if path.name.startswith("libc.so")), None)
    if libc is None or ElfFile(libc).machine != elf_layout.EM_X86_64:
        pytest.skip("there is no C library of AMD64 here")
    told = {one.reason for one in derive(ElfFile(libc)).uncovered}
    assert told <= {
        "the caller's SP is not the CFA",
        "an expression that is no rule of the table",
    }


def test_a_kernel_gets_a_section_behind_all_that_it_loads() -> None:
    """Its segments are not in the order of their addresses, so `add` refuses it."""
    text, frames = 0xFFFFFFFF81000000, 0xFFFFFFFF82000000
    section = CfiBuilder(address=frames)
    section.fde(section.cie(cfa("def_cfa 7 8; offset 16 1")), text, 16)
    elf = ElfBuilder(kind=2)
    elf.code(".text", 0x100, text)
    elf.segment(1, ".text", flags=5, vaddr=text)
    elf.section(".eh_frame", section.bytes(), flags=2, addr=frames)
    elf.segment(1, ".eh_frame", vaddr=frames)
    elf.section(".data..percpu", bytes(16), flags=3, addr=0)
    elf.segment(1, ".data..percpu", vaddr=0)
    program = bytes(elf.build())
    with pytest.raises(GraftError, match="not in the order of their addresses"):
        add(program, io.BytesIO())
    for version in (1, 2, 3):
        made = derive(program, version=version)
        assert (made.section.address, made.covered, made.proof().equal) == (frames + 0x1000, 1, True)
