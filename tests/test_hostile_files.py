"""Damaged ELF files and archives: only errors of walkback come out, quickly, and every finding can be told."""

from __future__ import annotations

import os
import random
import resource
import struct
import time
from pathlib import Path

import pytest

from corpus import corpus
from effort import rounds
from elfbuilder import ElfBuilder, Image
from peers import have
from sframebuilder import AARCH64, S390X
from sframefiles import linked, placing, relocatable, small
from walkback.base.arch import ByteOrder
from walkback.base.errors import WalkbackError
from walkback.sections.check import check_source
from walkback.sframe.checking import CODES
from walkback.sframe.dump import View, gnu, json, llvm, readable
from walkback.sframe.files import Source, read
from walkback.sframe.lookup import find

COUNT = rounds(1000, quick=500)
LONGEST = 5.0
"""Seconds of the processor that one file of a few kilobytes may take; it takes milliseconds."""
MOST_MEMORY = 100_000
"""KiB by which the process may grow at its largest, over files of up to 16 KB; most of it is NumPy's and the tests'."""

WORDS = [0, 1, 2, 7, 8, 0x40, 0xFF, 0xFFFF, 0x10000, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]


def bases() -> list[bytes]:
    """Sound files of every version and machine, linked and not, and some that real tools made."""
    made: list[ElfBuilder | Image] = []
    for version in (1, 2, 3):
        made += [linked(small(version).bytes()), relocatable(small(version), placing(version))]
        machines: list[tuple[int, int, ByteOrder]] = [(AARCH64, 183, "little"), (S390X, 22, "big")]
        for abi, machine, order in machines:
            made.append(linked(small(version, abi=abi, order=order).bytes(), machine=machine, order=order))
    found = [bytes(one.build() if isinstance(one, ElfBuilder) else one) for one in made]
    if have("as-new"):
        real = [one.path for one in corpus() if one.path.stat().st_size < 16_000]
        found += [path.read_bytes() for path in random.Random(1).sample(real, 40)]
    return found


def damage(chance: random.Random, base: bytes) -> bytes:
    """One to five changes: bits, bytes, words of headers, cuts, and parts moved."""
    data = bytearray(base)
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        if len(data) < 80:
            break
        at = chance.randrange(len(data)) if chance.random() < 0.5 else chance.randrange(64)
        match chance.randrange(6):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                data[at] = chance.randrange(256)
            case 2 | 3:
                at &= ~3
                code, size = chance.choice((("<I", 4), ("<Q", 8), (">I", 4), (">Q", 8)))
                if at + size <= len(data):
                    struct.pack_into(code, data, at, chance.choice(WORDS) & (2 ** (8 * size) - 1))
            case 4:
                del data[chance.randrange(len(data) // 2, len(data)) :]
            case 5:
                start, length = chance.randrange(len(data)), chance.randrange(1, 64)
                data[at : at + length] = data[start : start + length]
    return bytes(data)


def ask_everything(path: Path) -> None:
    """All that the verbs do."""
    for source in read(path):
        report = check_source(source, consumer="linux")
        assert {finding.code for finding in report.findings} <= CODES.keys()
        assert all(finding.message and "\n" not in finding.message for finding in report.findings)
        dump_everything(source)
    for _ in find(path, "f1", "0x1004", ".text+0x8"):
        pass


def dump_everything(source: Source) -> None:
    for piece in source.pieces(faults=True):
        for module in (gnu, readable, json, *((llvm,) if piece.section.version == 2 else ())):
            for part in module.dump(View.of(source, piece)):
                assert len(part)


def test_hostile_files_give_errors_or_answers(tmp_path: Path) -> None:
    chance = random.Random(7)
    sound = bases()
    path = tmp_path / "damaged"
    answered = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(COUNT):
        data = damage(chance, chance.choice(sound))
        path.write_bytes(data)
        begun, line = time.process_time(), ""
        try:
            ask_everything(path)
            answered += 1
        except WalkbackError as error:
            line = str(error)
        except Exception as error:
            kept = Path(os.environ.get("WALKBACK_KEEP", tmp_path)) / f"crash-{number}"
            kept.write_bytes(data)
            pytest.fail(f"{type(error).__name__}: {error} ({kept})")
        assert "\n" not in line
        assert time.process_time() - begun < LONGEST, number
    assert COUNT // 10 < answered < COUNT
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
