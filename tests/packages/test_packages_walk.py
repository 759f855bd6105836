"""What a file is, files in archives in archives, and what is too much."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from packed import ELF, WHEEL, ar_of, deb_of, look, looked_at, rpm_of, run, tar_of, zip_of
from walkback.packages.kinds import PackageKind, kind_of
from walkback.packages.streams import Flow
from walkback.packages.walk import Broken, FoundFile, Package, elf_files_in, may_hold_elf

zstandard = pytest.importorskip("zstandard")

BODY = ELF + random.Random(1).randbytes(5000)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
}


def beginning(data: bytes) -> Flow:
    stream = io.BytesIO(data)
    return Flow(iter(lambda: stream.read(1000), b""))


def test_a_plain_elf_file_is_itself(tmp_path: Path) -> None:
    assert looked_at(tmp_path, BODY) == ({None: BODY}, [])


@pytest.mark.parametrize("packer", PACKERS)
def test_a_compressed_elf_file_is_found(packer: str, tmp_path: Path) -> None:
    packed = PACKERS[packer](BODY)
    assert looked_at(tmp_path, packed) == ({None: BODY}, [])
    assert looked_at(tmp_path, tar_of({f"m.ko.{packer}": packed})) == ({f"m.ko.{packer}": BODY}, [])
    assert may_hold_elf(beginning(packed), "x") is True
    cut, broken = looked_at(tmp_path, packed[:-1])
    # gzip's last bytes are the size; the others, too, know that they are not at their end.
    assert not cut
    assert [one.what for one in broken] == ["damaged"]


@pytest.mark.parametrize("packer", PACKERS)
def test_compressed_text_is_nothing_and_only_its_beginning_is_read(packer: str, tmp_path: Path) -> None:
    packed = PACKERS[packer](b".TH walkback 1\n" + random.Random(2).randbytes(1_200_000))
    assert may_hold_elf(beginning(packed), "x") is False
    assert looked_at(tmp_path, packed[: -len(packed) // 20]) == ({}, [])


@pytest.mark.parametrize("data", [b"", b"x", b"\x7fEL", b"!<thin>\n" + b"x" * 100, b"MZ" + bytes(600), bytes(2000)])
def test_other_files_are_nothing(data: bytes, tmp_path: Path) -> None:
    assert kind_of(data[:512], "x") is None
    assert may_hold_elf(beginning(data), "x") is False


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (ELF, "x", PackageKind.ELF),
        (b"!<arch>\nx.o/            ", "x", PackageKind.AR),
        (b"!<arch>\n", "x.deb", PackageKind.AR),
        (b"!<arch>\ndebian-binary   ", "x", PackageKind.DEB),
        (b"!<arch>\ndebian-binary/  ", "x", PackageKind.DEB),
        (b"\xed\xab\xee\xdb\3\0", "x", PackageKind.RPM),
        (b"PK\3\4\x14\0", "x.whl", PackageKind.WHEEL),
        (b"PK\3\4\x14\0", "x.zip", None),
        (b"\x5d\0\0\x80\0" + b"\xff" * 8, "x", PackageKind.LZMA),
        (b"\x5d\0\0\x80\0" + b"\xfe" * 8, "x", None),
        (b"\x5d\1\0\x80\0" + b"\xff" * 8, "x", None),
        (b"\x5d\0\0\0\0" + b"\xff" * 8, "x", None),
        (b"\x52\x2a\x4d\x18\0\0\0\0", "x", PackageKind.ZSTD),
    ],
)
def test_kinds_are_known_by_how_they_begin(head: bytes, name: str, kind: PackageKind | None) -> None:
    assert kind_of(head, name) is kind


def test_old_tar_archives_with_a_sum_of_signed_bytes_are_known() -> None:
    head = bytearray(tar_of({"a": b""})[:512])
    head[0] = 0xE9
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % (sum(head) - 256)
    assert kind_of(bytes(head), "x") is PackageKind.TAR
    head[1] += 1
    assert kind_of(bytes(head), "x") is None


def test_archives_in_archives_are_found_with_their_packages(tmp_path: Path) -> None:
    deb = deb_of(tmp_path / "deb", {"usr/lib/liba.a": ar_of(tmp_path / "ar", {"x.o": ELF}), "bin": BODY}).read_bytes()
    rpm = rpm_of(tmp_path / "rpm", {"bin": BODY}, "w9.gzdio").read_bytes()
    pool = tar_of({"pool/x.deb": deb, "pool/x.rpm": rpm, f"pool/{WHEEL}": zip_of({"x.so": BODY}), "plain": ELF})
    packages = {
        "pool/x.deb(usr/lib/liba.a(x.o))": Package("hello", "1:2.10-3", "arm64", "deb"),
        "pool/x.deb(bin)": Package("hello", "1:2.10-3", "arm64", "deb"),
        "pool/x.rpm(bin)": Package("hello", "3:2.10-4", "aarch64", "rpm"),
        f"pool/{WHEEL}(x.so)": Package("numpy", "2.1.0", WHEEL.rpartition("-")[2][:-4], "wheel"),
        "plain": None,
    }
    for packed in (pool, *(pack(pool) for pack in PACKERS.values())):
        (tmp_path / "pool").write_bytes(packed)
        found = list(elf_files_in(str(tmp_path / "pool")))
        assert {one.member: one.package for one in found if isinstance(one, FoundFile)} == packages
        assert len(found) == len(packages)


def test_a_package_in_a_package_is_the_inner_one(tmp_path: Path) -> None:
    wheel = zip_of({"x.so": BODY})
    (one,) = elf_files_in(str(deb_of(tmp_path, {f"usr/share/{WHEEL}": wheel})))
    assert one.package == Package("numpy", "2.1.0", WHEEL.rpartition("-")[2][:-4], "wheel")


def test_what_is_too_deep_is_told(tmp_path: Path) -> None:
    data = tar_of({"x": ELF})
    for _ in range(7):
        data = tar_of({"t": data, "e": ELF})
    found, broken = looked_at(tmp_path, data)
    assert len(found) == 8
    assert not broken
    found, broken = looked_at(tmp_path, tar_of({"t": data, "e": ELF}))
    assert len(found) == 8
    assert [(one.member, one.what) for one in broken] == [("t(" * 7 + "t" + ")" * 7, "too large")]


def repeated(first: bytes, last: bytes, size: int, byte: bytes = b"\0") -> bytes:
    """A zstd frame that begins and ends so, with the byte between, 128 KiB of it for each 4 bytes here."""
    block = (1 << 1 | (128 << 10) << 3).to_bytes(3, "little") + byte
    ends = [(len(part) << 3 | final).to_bytes(3, "little") + part for part, final in ((first, 0), (last, 1))]
    return b"\x28\xb5\x2f\xfd\0\x60" + ends[0] + block * (size >> 17) + ends[1]


def bomb_of(packer: str) -> bytes:
    """More than comes out of a file of its size."""
    if packer == "zst":
        return repeated(ELF, b"", 2 << 30)
    return PACKERS[packer](ELF) + PACKERS[packer](bytes(10 << 20)) * 50


@pytest.mark.whole
@pytest.mark.parametrize("packer", ["gz", "xz", "zst"])
def test_a_bomb_is_told_once_and_does_not_hide_what_is_beside_it(packer: str, tmp_path: Path) -> None:
    bomb = bomb_of(packer)
    begin = time.process_time()
    for data, member in ((bomb, None), (tar_of({"a": ELF, "bomb": bomb, "z": ELF}), "bomb")):
        found, broken = looked_at(tmp_path, data)
        assert [(one.member, one.what) for one in broken] == [(member, "too large")]
        assert set(found) == ({"a", "z"} if member else set())
    assert time.process_time() - begin < 60


def test_many_bombs_are_bounded_together(tmp_path: Path) -> None:
    head = tar_of({"x": bytes(1 << 20)})[:512]
    bomb = repeated(head, bytes(1024), 200 << 20)
    assert looked_at(tmp_path, bomb) == ({}, [])
    found, broken = looked_at(tmp_path, tar_of({"a": ELF, **{f"{number}": bomb for number in range(20)}}))
    assert set(found) == {"a"}
    assert [(one.member, one.what) for one in broken] == [(None, "too large")]


@pytest.mark.whole
def test_millions_of_members_in_little_are_too_many(tmp_path: Path) -> None:
    data = gzip.compress(tar_of({"folder/text": b""})[:512] * 100_000)
    assert [(one.member, one.what) for one in looked_at(tmp_path, data)[1]] == [(None, "too large")]


def test_a_thousand_broken_members_are_enough(tmp_path: Path) -> None:
    files = {f"{number}.gz": b"\x1f\x8b\x08 no stream" for number in range(1100)}
    found, broken = looked_at(tmp_path, tar_of(files))
    assert not found
    assert len(broken) == 1001
    assert broken[-1] == Broken(None, "too large", "has more than 1000 members that cannot be read")


PEAK = """
import re, sys
from walkback.packages.walk import elf_files_in
found = [len(one.data) for one in elf_files_in(sys.argv[1])]
print(*found, re.search(r"VmHWM:\\s*([0-9]+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.whole
@pytest.mark.parametrize("packer", ["gz", "zst"])
def test_large_members_go_through_a_temporary_file(packer: str, tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.write(ELF + random.Random(3).randbytes(6 << 20))
        file.truncate((1 << 28) + 1)
    run("tar", "-C", tmp_path, "-cf", tmp_path / "made.tar", "large")
    run("gzip" if packer == "gz" else "zstd", "-1", tmp_path / "made.tar")
    (tmp_path / "scratch").mkdir()
    packed = tmp_path / f"made.tar.{packer}"
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    out = subprocess.run([sys.executable, "-c", PEAK, packed], env=environment, check=True, capture_output=True)
    size, peak = map(int, out.stdout.split())
    assert size == (1 << 28) + 1
    assert peak < 200 << 10
    assert not list((tmp_path / "scratch").iterdir())
    (found,) = elf_files_in(str(packed))
    assert bytes(found.data[: 7 << 20]) == large.read_bytes()[: 7 << 20]
    assert not any(found.data[-1000:])


def test_no_room_for_a_temporary_file_is_told(tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    with gzip.open(packed, "wb", compresslevel=1) as file:
        file.write(ELF + random.Random(4).randbytes(6 << 20))
        for _ in range(260):
            file.write(bytes(1 << 20))
    program = f"""
import resource, sys
from walkback.packages.walk import elf_files_in
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(*elf_files_in({str(packed)!r}))
"""
    out = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert out.stdout == "Broken(member=None, what='unreadable', message='File too large')\n"


@pytest.mark.parametrize("path", ["missing", "."])
def test_a_path_that_is_no_file_is_told(path: str, tmp_path: Path) -> None:
    assert [one.what for one in look(tmp_path / path)[1]] == ["unreadable"]


@pytest.mark.parametrize("kind", ["gzip", "xz", "tar"])
def test_a_hole_behind_the_end_is_not_read(kind: str, tmp_path: Path) -> None:
    """Terabytes of nothing, which cost nothing to make."""
    makers: dict[str, Callable[[bytes], bytes]]
    makers = {"gzip": gzip.compress, "xz": lzma.compress, "tar": lambda data: tar_of({"x": data})}
    path = tmp_path / "file"
    path.write_bytes(makers[kind](ELF))
    os.truncate(path, 4 << 40)
    start = time.process_time()
    found, broken = look(path)
    assert list(found.values()) == [ELF]
    assert not broken
    assert time.process_time() - start < 10  # reading it all would take an hour
