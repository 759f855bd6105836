"""Damaged packages and archives give what can be read and a line for what cannot, in bounded time and memory."""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from effort import rounds
from packed import ELF, WHEEL, ar_of, deb_of, link, rpm_of, run, write, zip_of
from walkback.packages.walk import Again, Broken, FoundFile, elf_files_in

ROUNDS = rounds(150, quick=30, share=10)
FILES = {"usr/bin/a": ELF + b"program" * 30, "usr/lib/b": ELF, "text": b"text" * 50}
LINKS = {"usr/lib/z": "usr/bin/a"}
NUMBERS = [b"\0", b"\xff", b"\x7f", b"\x80", b"9", b"0", b" ", b"f", b"\xff" * 4, b"\xff" * 8, bytes(8), b"7" * 11]


def tar_with_holes(folder: Path, form: str) -> bytes:
    tree = write(folder / "tree", FILES)
    link(tree, LINKS)
    with (tree / "sparse").open("wb") as file:
        for part in range(6):
            os.pwrite(file.fileno(), ELF, part << 17)
    run("tar", "-C", tree, "--sparse", *f"--format={form}".split(), "-cf", folder / "made.tar", ".")
    return (folder / "made.tar").read_bytes()


MAKERS: dict[str, Callable[[Path], bytes]] = {
    "deb-none": lambda folder: deb_of(folder, FILES, "-Znone", "--uniform-compression", links=LINKS).read_bytes(),
    "deb-xz": lambda folder: deb_of(folder, FILES, "-Zxz").read_bytes(),
    "deb-zstd": lambda folder: deb_of(folder, FILES, "-Zzstd").read_bytes(),
    "rpm-none": lambda folder: rpm_of(folder, FILES, "w.ufdio", links=LINKS).read_bytes(),
    "rpm-gzip": lambda folder: rpm_of(folder, FILES, "w9.gzdio").read_bytes(),
    "wheel": lambda _: zip_of(FILES),
    "tar-gnu": lambda folder: tar_with_holes(folder, "gnu"),
    "tar-pax": lambda folder: tar_with_holes(folder, "pax"),
    "tar-pax-1.0": lambda folder: tar_with_holes(folder, "pax --sparse-version=1.0"),
    "ar": lambda folder: ar_of(folder, {"one.o": ELF, "a_very_long_name_of_a_member.o": ELF + b"x"}),
}


def damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(changed))
        match chance.randrange(5):
            case 0:
                changed[at] = chance.randrange(256)
            case 1:
                new = chance.choice(NUMBERS)
                changed[at : at + len(new)] = new
            case 2:
                del changed[at : at + chance.randrange(1, 600)]
            case 3:
                other = chance.randrange(len(changed))
                changed[at : at + 100] = changed[other : other + 100]
            case 4:
                changed[at:at] = changed[at : at + chance.randrange(1, 2000)]
        if not changed:
            return b""
    return bytes(changed)


@pytest.mark.soak
@pytest.mark.parametrize("maker", MAKERS)
def test_hostile_packages_are_read_as_far_as_they_can_be(maker: str, tmp_path: Path) -> None:
    data = MAKERS[maker](tmp_path / "made")
    path = tmp_path / WHEEL
    chance = random.Random(maker)
    tracemalloc.start()
    for _ in range(ROUNDS):
        path.write_bytes(damaged(data, chance))
        begin = time.process_time()
        for one in elf_files_in(str(path)):
            assert isinstance(one, FoundFile | Again | Broken)
            if isinstance(one, Broken):
                assert "\n" not in one.message
                assert one.what in {"damaged", "unsupported", "unreadable", "too large"}
        assert time.process_time() - begin < 60
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The decoders' own memory, and at most one member.
    assert peak < 300 << 20
