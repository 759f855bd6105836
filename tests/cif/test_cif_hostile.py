"""Maps that ask for more than they are: memory and time stay within bounds."""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import pytest

from cif.plaincif import Chosen, counted, write
from waiting import PATIENCE
from walkback.base.errors import BacktraceError
from walkback.cif.decoding import check as check_images
from walkback.cif.decoding import decode
from walkback.cif.imagemap import Image, ImageMap

BOMBS = {
    "a count without images": "b'\\x02\\x00\\xc0\\x80\\x00'",
    "a path that doubles itself": (
        "b'\\x02\\x00' + bytes([0x81, 0]) + b''.join(b'\\x00\\x10\\x10\\x00' + (b'\\x02a/' if not n else"
        " b'\\x01a' + bytes([0x80 + min(31 + n, 63)]) * 90 + b'\\x01/') + b'\\x00' for n in range(128))"
    ),
    "as many long paths as there can be": (
        "b'\\x02\\x00' + bytes([0x84, 0x80, 0]) + b'\\x00\\x10\\x10\\x00' + (b'\\x3f' + b'a' * 63) * 1000"
        " + b'\\x01/\\x00' + b'\\x80\\x00\\x10\\x00\\xa0\\x00' * 65535"
    ),
    "a path of nothing but separators": (
        "b'\\x02\\x00\\x02\\x00\\x10\\x10\\x00' + (b'\\x3f' + b'/' * 63) * 100_000 + b'\\x00'"
        " + b'\\x80\\x00\\x10\\x00\\xc1\\x01\\x00\\x00'"
    ),
    "a count that does not end": "b'\\x02\\x00' + b'\\x80' * 10_000_000",
    "nothing but broken paths": ("b'\\x02\\x00' + bytes([0x84, 0x80, 0]) + b'\\x00\\x10\\x10\\x00\\x94\\x00' * 65536"),
}
PROGRAM = """
import resource, sys, time
from walkback.cif.decoding import check as check_images, decode as decode_images
data = {data}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.process_time()
images = []
try:
    images = decode_images(data, lenient=True).images
except Exception as error:
    assert type(error).__name__ == "BacktraceError", error
print(len(data), len(images), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, time.process_time() - start)
"""


@pytest.mark.whole
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stays_within_bounds(name: str) -> None:
    program = PROGRAM.replace("{data}", BOMBS[name])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    size, images, memory, seconds = done.stdout.split()
    assert int(memory) < (1 << 20) + int(images) // 2, done.stdout  # in KiB: 1 GiB, and 512 bytes an image
    assert float(seconds) < 60, (size, seconds)


def test_a_three_byte_map_costs_nothing() -> None:
    start = time.process_time()
    for _ in range(1000):
        check_images(b"\x02\x00\x7f")
    assert time.process_time() - start < 5


def test_findings_are_listed_within_a_bound() -> None:
    many = write(64, "", [Chosen(at, at + 1, b"", b"\x94\x00") for at in range(3000)])
    findings = check_images(many)
    assert len(findings) == 1001
    assert findings[-1].message == "2000 more findings are not listed"
    assert len(decode(many).images) == 3000
    with pytest.raises(BacktraceError, match="behind the last image: 1 byte"):
        decode(many + b"x")


def test_a_path_has_65536_bytes_at_most() -> None:
    def path(length: int) -> bytes:
        full, rest = divmod(length, 63)
        return (b"\x3f" + b"a" * 63) * full + (bytes([rest]) + b"a" * rest if rest else b"") + b"\0"

    data = write(64, "", [Chosen(1, 2, b"", path(65536)), Chosen(3, 4, b"", path(65537)), Chosen(5, 6, b"", b"\1b\0")])
    found = decode(data)
    assert [len(one.path) if one.path else None for one in found.images] == [65536, None, 1]
    assert [one.rule for one in found.findings] == ["path-length"]


def test_many_images_that_hold_each_other_are_found_quickly() -> None:
    count = 100_000
    images = ImageMap(64, "", tuple(Image(None, None, at, 4 * count - at) for at in range(count)))
    start = time.process_time()
    found = images.locate(range(0, 4 * count, 7))
    assert time.process_time() - start < 10
    assert found[-1] == 4 * count - 1 - range(0, 4 * count, 7)[-1]


def test_numbers_of_any_length_end_at_their_limit() -> None:
    assert counted(1 << 200)[:1] == b"\x90"
    assert [one.rule for one in check_images(b"\x02\x00" + counted(1 << 200))] == ["image-count"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 << 20
