"""What a proof reads of a file: its code at once, and its data in blocks, with the words that the loader writes."""

from __future__ import annotations

import os
import random
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import walkback
from cli.commands import WALKBACK
from proof.assembled import verified
from proof.test_proof_image import SWITCH
from walkback.base.errors import UnreadableError
from walkback.elf import ElfFile
from walkback.proof.image import Image, image_of
from walkback.proof.imagedata import BLOCK_BITS, ImageData

_TABLE = """
extern int one(int), other(int);
int one(int x) { return x; }
int other(int x) { return -x; }
struct __attribute__((packed)) table { char odd[3]; int (*of[9000])(int); };
const struct table table = { "a", { [0 ... 8998] = one, other } };
"""
"""No word of the table is aligned, so some lie in two blocks."""
_HEADER = 64
"""Bytes of a section's header."""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "table.so"
    command: list[str | Path] = ["gcc", "-O1", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-x", "c", "-", "-o", path]
    subprocess.run(command, input=_TABLE.encode(), check=True)
    return path


def part_of(elf: ElfFile, image: Image, name: str) -> tuple[int, int, int]:
    """The address of a section, its place in the image and its size."""
    [number] = elf.sections_named(name)
    address = int(elf.sections["addr"][number])
    [part] = np.flatnonzero(image.start == np.uint64(address))
    return address, int(image.pos[part]), int(elf.sections["size"][number])


def relocated(path: Path, elf: ElfFile, name: str) -> bytes:
    """The contents of a section with the addresses that readelf says the loader writes."""
    [number] = elf.sections_named(name)
    address, contents = int(elf.sections["addr"][number]), bytearray(elf.section_data(number))
    printed = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
    words = re.findall(r"^([0-9a-f]+) .*_RELATIVE +([0-9a-f]+)$", printed, re.MULTILINE)
    for place, value in ((int(one, 16) - address, int(other, 16)) for one, other in words):
        if 0 <= place <= len(contents) - 8:
            contents[place : place + 8] = value.to_bytes(8, elf.byteorder)
    return bytes(contents)


def test_blocks_of_data_are_read_in_any_order(library: Path) -> None:
    elf = ElfFile(library)
    expected = relocated(library, elf, ".data.rel.ro")
    assert len(expected) > 4 << BLOCK_BITS
    for seed in range(5):
        image = image_of(elf)
        _, pos, size = part_of(elf, image, ".data.rel.ro")
        assert not image.data[pos : pos + size].any()
        blocks = list(range(image.contents.blocks))
        random.Random(seed).shuffle(blocks)
        for block in blocks:
            image.contents.load(block)
        assert image.data[pos : pos + size].tobytes() == expected


def test_code_is_there_at_once(library: Path) -> None:
    elf = ElfFile(library)
    image = image_of(elf)
    _, pos, size = part_of(elf, image, ".text")
    [number] = elf.sections_named(".text")
    assert image.data[pos : pos + size].tobytes() == bytes(elf.section_data(number))


def test_a_file_that_is_cut_off_meanwhile_is_an_error_each_time(library: Path) -> None:
    elf = ElfFile(library)
    image = image_of(elf)
    _, pos, _ = part_of(elf, image, ".data.rel.ro")
    image.contents.load(pos >> BLOCK_BITS)
    os.truncate(library, 4096)
    image.contents.load(pos >> BLOCK_BITS)
    for _ in range(2):
        with pytest.raises(UnreadableError, match="it changed while it was read"):
            image.contents.load((pos >> BLOCK_BITS) + 1)


def test_the_error_ends_the_proof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code asks for the table of a `switch` in the midst of a walk."""

    def load(contents: ImageData, block: int) -> None:
        raise UnreadableError(f"block {block}")

    verified(SWITCH, tmp_path)
    program = tmp_path / "program"
    subprocess.run(["gcc", "-nostdlib", "-static", "-Wl,-e,f", "-o", program, tmp_path / "f.o"], check=True)
    assert next(walkback.verify(program)).reasons == {}
    monkeypatch.setattr(ImageData, "load", load)
    with pytest.raises(UnreadableError, match="block 0"):
        list(walkback.verify(program))


@pytest.mark.parametrize(("size", "status"), [(1 << 30, 0), (16 << 30, 3)])
def test_constants_that_are_a_hole_take_no_memory(size: int, status: int, library: Path) -> None:
    elf, data = ElfFile(library), bytearray(library.read_bytes())
    [number] = elf.sections_named(".data.rel.ro")
    (headers,) = struct.unpack_from("<Q", data, 0x28)
    place = headers + number * _HEADER
    struct.pack_into("<QQ", data, place + 24, len(data), size)
    library.write_bytes(data)
    os.truncate(library, len(data) + size)
    command = f"ulimit -v {4 << 20}; exec {WALKBACK} verify --jobs 1 {library}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert ("there is not enough memory for this file" in done.stderr) == (status == 3)
