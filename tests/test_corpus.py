"""Every section that real assemblers and linkers wrote: the same bytes again, the peers' text, findings that are known.

The peers are those that wrote the corpus and read it here; see `tests/corpus.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

from clirunner import runner
from corpus import PREFIXES, Sample, corpus
from elfbuilder import ElfBuilder
from peers import run
from sframebuilder import AARCH64, AARCH64_BIG, PCREL, S390X, SORTED, SFrameBuilder, row
from sframefiles import GNU_SFRAME, PT_GNU_SFRAME, written
from walkback.base.arch import ByteOrder
from walkback.cli.main import cli
from walkback.sections.check import check_source
from walkback.sframe.checking import Severity
from walkback.sframe.decoding import decode
from walkback.sframe.dump import View, gnu, llvm
from walkback.sframe.encoding import encode, with_byteorder
from walkback.sframe.files import SFrameSection, Source, read
from walkback.sframe.rules import to_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from walkback.sframe.section import Section
    from walkback.table.table import UnwindTable

pytestmark = pytest.mark.peers

FILE = rb"\nFile: [^\n]*\n"

# Findings that samples may have: producer, kind, a part of the source's name, code.
KNOWN = (
    # The program header's size is worked out before the inputs are merged.
    ("2.4.|new", "shared|executable", "", "segment-size"),
    # The row of `.plt.got` says that something was pushed.
    ("2.44|new", "shared|executable", "calls|plt-got|program|plain", "plt-got-row"),
    # lld does not know SFrame: it puts whole sections after each other and makes no program header.
    (".*", "lld", "", "segment-missing|section-unsorted"),
    (".*", "lld", " .* ", "section-pieces"),
    # It also relocates the fields of sections whose starts count from the section.
    ("2.4.", "lld", "", "function-(order|overlap|outside-code|align)"),
    # ld -r of 2.40 and 2.44 leaves relocations where the entries were, and zeros at the end.
    ("2.4.", "relocatable", "", "relocation-(missing|stray)|section-tail|function-outside-code"),
    # --emit-relocs keeps the relocations in the order of the inputs.
    (".*", "shared", "--emit-relocs", "relocation-mismatch"),
    # A rule set behind the last instruction makes a row at the function's end.
    (".*", ".*", "refused-directives|word-and-function-sizes", "row-at-end"),
    # An expression based on another register than rbp becomes register 0xfffffffb >> 3.
    ("new", "object|shared", "escape-expressions|refused-directives", "row-register"),
    # as 2.40 writes rsp for any other base of the CFA.
    ("2.40", "object|shared", "cfa-other-register|drap|flex-registers", "cfa-below-sp"),
    # llvm-mc writes a row with CFA = rbp for `.cfi_startproc simple`, and drops a saved rbp it cannot say.
    ("llvm", "object|lld", "escape-expressions|sections-empty-simple", "fp-lost"),
    # An offset of -200 is cut to one byte.
    ("new", "object|shared", "flex-wide-offsets", "saved-above-cfa"),
    # A function with `.cfi_startproc simple` and no rules.
    ("new", "object|shared", "sections-empty-simple", "function-no-rows"),
    # ld 2.40 describes `.plt.sec` as if it were a lazy `.plt`, and one entry too long.
    ("2.40", "shared", "plt-got", "function-overlap|function-outside-code"),
    # llvm-mc goes back in a function when the state is restored at the same place ...
    ("llvm", "object|lld", "restore-state-same-pc", "row-order"),
    # ... and takes DW_CFA_GNU_args_size for a change of the CFA.
    ("llvm", "object|lld", "escape-expressions", "cfa-below-sp"),
)
UNREADABLE = (
    # On a row at the function's end readelf 2.40 aborts.
    ("2.40", "object", "refused-directives|word-and-function-sizes"),
    # In what ld -r of these leaves readelf applies the relocations, which hit the rows.
    ("2.4.", "relocatable", ""),
    # It applies lld's relocations to the first section of several.
    (".*", "lld", ""),
)
"""Samples that readelf may refuse: producer, kind, a part of the source's name."""


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    found = corpus()
    assert len(found) > 350
    return found


def title(sample: Sample) -> str:
    return f"{sample.arch} {sample.producer} {sample.kind} {sample.path.name}"


def text(parts: Iterator[bytes | memoryview]) -> bytes:
    return b"".join(bytes(part) for part in parts)


def pieces(samples: list[Sample]) -> Iterator[tuple[Sample, Source, SFrameSection]]:
    for sample in samples:
        for source in read(sample.path):
            for piece in source.pieces():
                yield sample, source, piece


def test_encoding_what_was_decoded_gives_the_same_bytes(samples: list[Sample]) -> None:
    seen = set()
    for sample, source, piece in pieces(samples):
        section = piece.section
        assert encode(section) == bytes(source.data[piece.position :][: section.length]), title(sample)
        seen.add((section.version, section.pcrel, sample.arch))
    assert seen == {
        *((1, False, arch) for arch in ("amd64", "aarch64")),
        *((2, False, arch) for arch in ("amd64", "aarch64")),
        (2, True, "amd64"),
        *((3, True, arch) for arch in PREFIXES),
    }


def test_findings_are_known_defects_of_their_producers(samples: list[Sample]) -> None:
    unused = set(KNOWN)
    for sample in samples:
        for source in read(sample.path):
            for finding in check_source(source).findings:
                own = [entry for entry in KNOWN if matches(entry, sample, finding.code)]
                assert own, f"{title(sample)} ({sample.source}): {finding}"
                unused -= set(own)
    assert not unused


def matches(entry: tuple[str, str, str, str], sample: Sample, code: str) -> bool:
    producer, kind, source, codes = entry
    return bool(
        re.fullmatch(producer, sample.producer)
        and re.fullmatch(kind, sample.kind)
        and re.search(source, sample.source)
        and re.fullmatch(codes, code)
    )


def test_the_gnu_format_is_what_readelf_prints(samples: list[Sample]) -> None:
    compared = 0
    for sample in samples:
        ours, versions, broken = b"", set(), False
        for source in read(sample.path):
            if sample.kind == "archive":
                # The command's own words are compared below.
                ours += f"\nFile: {source.file}\n".encode()
            if not len(source.data):
                ours += f"\nSection '{source.name}' has no debugging data.\n".encode()
            broken |= any(finding.severity is Severity.BROKEN for finding in check_source(source).findings)
            for piece in source.pieces():
                versions.add(piece.section.version)
                # readelf sees only the first section of several in one.
                ours += text(gnu.dump(View.of(source, piece))) if not piece.position else b""
        peer = run(f"{PREFIXES[sample.arch]}readelf-{'2.40' if versions == {1} else 'new'}", "--sframe", sample.path)
        if peer.returncode == 0 and not broken:
            assert ours == peer.stdout, title(sample)
            compared += 1
        elif peer.returncode and not broken:
            assert any(matches((*entry, ""), sample, "") for entry in UNREADABLE), title(sample)
    assert compared > 330


def command(*args: object) -> bytes:
    result = runner().invoke(cli, ["show", "--format", "gnu", *map(str, args)])
    assert result.exit_code in {0, 1}
    return result.stdout_bytes


@pytest.mark.parametrize(
    "name",
    ["program.a", "thin.a"],
)
def test_the_command_prints_of_archives_what_readelf_prints(samples: list[Sample], name: str) -> None:
    for sample in samples:
        if sample.producer == "new" and sample.path.name == name:
            peer = run(f"{PREFIXES[sample.arch]}readelf-new", "--sframe", sample.path, check=True)
            assert command(sample.path) == peer.stdout, title(sample)


def test_the_command_prints_of_several_files_what_readelf_prints(samples: list[Sample]) -> None:
    files = [one.path for one in samples if (one.arch, one.producer, one.kind) == ("amd64", "new", "shared")][:3]
    assert command(*files) == run("readelf-new", "--sframe", *files, check=True).stdout


def test_the_command_names_files_without_a_section_as_readelf_does(samples: list[Sample], tmp_path: Path) -> None:
    files = [written(tmp_path, ElfBuilder(kind=3)), next(one.path for one in samples if one.producer == "new")]
    assert command(*files) == run("readelf-new", "--sframe", *files).stdout


def test_the_llvm_format_is_what_llvm_readobj_prints(samples: list[Sample]) -> None:
    compared = 0
    for sample in samples:
        if sample.kind == "archive":
            continue
        for source in read(sample.path):
            trees = [text(llvm.dump(View.of(source, piece))) for piece in source.pieces() if piece.section.version == 2]
            if trees:
                peer = run("llvm-readobj", "--sframe", sample.path, check=True).stdout
                assert trees[0] == peer[peer.index(b"SFrame section") :], title(sample)
                compared += 1
    assert compared > 100


# Byte order


def rules_of(section: Section, table: UnwindTable) -> list[object]:
    """The rule at the ends of every row and function, one address inside of them and one outside."""
    answers: list[object] = []
    functions = section.functions
    owner = np.repeat(np.arange(len(functions)), functions.rows)
    start = section.code_address[owner] + section.row_start
    ends = section.code_address + functions.size.astype(np.uint64)
    addresses = np.unique(
        np.concatenate([start, start - np.uint64(1), section.code_address, ends, ends - np.uint64(1)])
    )
    places = np.unique(table.range_section).tolist()
    for place in places:
        ranges, rows = table.find_many(addresses, section=place)
        answers.append(ranges.tolist())
        known = rows >= 0
        answers.append(table.rules[table.row_rule[rows[known]]].tobytes())
    return answers


def test_conversion_of_the_byte_order_and_back_changes_nothing(samples: list[Sample]) -> None:
    for sample, source, piece in pieces(samples):
        section = piece.section
        order: ByteOrder = "big" if section.byteorder == "little" else "little"
        turned = decode(encode(with_byteorder(section, order)), address=section.address)
        assert turned.byteorder == order
        back = encode(with_byteorder(turned, section.byteorder))
        assert back == bytes(source.data[piece.position :][: section.length]), title(sample)
        turned.code_section, turned.code_address = section.code_section, section.code_address
        before, after = (rules_of(one, to_table(one)) for one in (section, turned))
        assert before == after, title(sample)


# Version 2 errata 1, which no tool writes for these machines


def errata_1(abi: int) -> SFrameBuilder:
    """Rows of every kind that the machine has; for a section at 0x2000."""
    order: ByteOrder = "little" if abi == AARCH64 else "big"
    builder = SFrameBuilder(2, abi=abi, order=order, flags=SORTED | PCREL, address=0x2000)
    if abi == S390X:
        # The CFA is stored as (offset - 160) / 8; a register as (number << 1) | 1; 0 is no return address.
        builder.function(0x1000, 64, [row(0, 1, [0]), row(6, 1, [0, -48, -72]), row(12, 0, [20, -48, -72])])
        builder.function(0x1040, 64, [row(0, 1, [0]), row(4, 1, [0, 14 << 1 | 1, 11 << 1 | 1])])
        builder.function(
            0x1080, 300, [row(0, 1, [0]), row(4, 1, [0, 0, -72]), row(260, 1, [4096, -48], size=2)], fre_type=1
        )
        builder.function(0x1200, 64, [row(0, 1, [0])], mask=True, rep_size=32)
        builder.function(0x1240, 64, [row(0, 1, [0]), row(8, 1, [0, 0, 16 << 1 | 1]), row(16, 1, [0, -48])])
        return builder
    builder.function(0x1000, 64, [row(0, 1, [0]), row(4, 1, [32, -24, -32]), row(8, 0, [32, -24, -32])])
    signed = [row(0, 1, [0]), row(4, 1, [0], mangled=True), row(8, 1, [16, -8], mangled=True), row(60, 1, [0])]
    builder.function(0x1040, 64, signed, key_b=True)
    builder.function(0x1080, 70_000, [row(0, 1, [0]), row(65_540, 1, [70_000, -8, -16], size=4)], fre_type=2)
    return builder


def errata_1_file(abi: int, data: bytes) -> ElfBuilder:
    elf = ElfBuilder("little" if abi == AARCH64 else "big", 22 if abi == S390X else 183, 3)
    elf.code(".text", 0x20000, 0x1000)
    elf.segment(1, ".text", flags=5, vaddr=0x1000)
    elf.section(".sframe", data, kind=GNU_SFRAME, flags=2, addr=0x2000)
    elf.segment(PT_GNU_SFRAME, ".sframe", vaddr=0x2000)
    return elf


def readelf(abi: int, path: Path) -> bytes:
    prefix = PREFIXES["s390x" if abi == S390X else "aarch64"]
    return run(f"{prefix}readelf-new", "--sframe", path, check=True).stdout


def ours(path: Path) -> bytes:
    (source,) = read(path)
    (piece,) = source.pieces()
    assert encode(piece.section) == bytes(source.data)
    return text(gnu.dump(View.of(source, piece)))


@pytest.mark.parametrize("abi", [AARCH64, AARCH64_BIG, S390X])
def test_linked_version_2_errata_1_is_printed_as_readelf_does(abi: int, tmp_path: Path) -> None:
    path = written(tmp_path, errata_1_file(abi, errata_1(abi).bytes()))
    printed = ours(path)
    assert printed == readelf(abi, path)
    if abi == S390X:
        for words in (b"sp+160", b"fp+320", b"c-48", b"r14", b"r11", b"r16", b" U ", b"sp+32928"):
            assert words in printed
    else:
        for words in (b"c-24", b"[s]", b"pauth = B key", b"sp+70000"):
            assert words in printed
    (source,) = read(path)
    assert [finding.code for finding in check_source(source).findings] == []


@pytest.mark.parametrize("abi", [AARCH64, S390X])
@pytest.mark.parametrize("flags", [PCREL, 0])
def test_an_object_of_version_2_is_printed_as_readelf_does(abi: int, flags: int, tmp_path: Path) -> None:
    builder = errata_1(abi)
    builder.flags = flags
    places = [function.start - 0x1000 for function in builder.functions]
    for function in builder.functions:
        function.raw = 0
    elf = ElfBuilder("little" if abi == AARCH64 else "big", 22 if abi == S390X else 183, 1)
    code = elf.code(".text", 0x20000)
    section = elf.section(".sframe", builder.bytes(), kind=GNU_SFRAME, flags=2)
    table = elf.symtab()
    symbol = elf.symbol(table, "", 0, section=code, kind=3, binding=0)
    kind = 5 if abi == S390X else 261
    elf.relocations(section, table, [(0x1C + 20 * n, kind, symbol, place) for n, place in enumerate(places)])
    path = written(tmp_path, elf)
    assert ours(path) == readelf(abi, path)
    (source,) = read(path)
    (piece,) = source.pieces()
    assert piece.section.code_address.tolist() == places


def test_rules_of_s390x_version_2_are_what_the_words_say() -> None:
    section = decode(errata_1(S390X).bytes(), address=0x2000)
    table = to_table(section)
    told = [
        table.find(address).rule.text(table.machine) for address in (0x1000, 0x1006, 0x100C, 0x1044, 0x1084, 0x1250)
    ]
    assert told == [
        "CFA = r15+160, RA unchanged, FP unchanged",
        "CFA = r15+160, RA = *(CFA-48), FP = *(CFA-72)",
        "CFA = r11+320, RA = *(CFA-48), FP = *(CFA-72)",
        "CFA = r15+160, RA = r14, FP = r11",
        "CFA = r15+160, RA unchanged, FP = *(CFA-72)",
        "CFA = r15+160, RA = *(CFA-48), FP unchanged",
    ]
