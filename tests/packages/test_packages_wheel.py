"""ELF files in wheels, as Python and Info-ZIP write zip archives."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
from pathlib import Path

import pytest

from packed import ELF, WHEEL, look, looked_at, run, write, zip_of
from walkback.packages.walk import FoundFile, Package, elf_files_in

FILES = {"numpy/_core/x.so": ELF + b"x" * 5000, "numpy/core.py": b"pass\n" * 100, "numpy.libs/liby.so": ELF + b"y"}
PROGRAMS = {name: data for name, data in FILES.items() if data.startswith(ELF)}


def written(folder: Path, *options: str) -> Path:
    tree = write(folder / "tree", FILES)
    run("zip", "-q", "-r", *options, folder / "made.zip", ".", cwd=tree)
    return Path(shutil.move(folder / "made.zip", folder / WHEEL))


@pytest.mark.parametrize("options", [[], ["-0"], ["-9"], ["-fz"], ["--no-dir-entries", "-X"]])
def test_what_zip_writes_is_read(options: list[str], tmp_path: Path) -> None:
    assert look(written(tmp_path, *options)) == (PROGRAMS, [])


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("large", [True, False])
def test_what_python_writes_is_read(method: int, large: bool, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in FILES.items():
            with archive.open(name, "w", force_zip64=large) as file:
                file.write(data)
        archive.comment = b"PK\5\6 is no end here" * 9
    assert looked_at(tmp_path, out.getvalue(), WHEEL) == (PROGRAMS, [])


@pytest.mark.whole
def test_many_members_take_the_larger_directory(tmp_path: Path) -> None:
    files = {f"m/{index}.so": ELF + b"%d" % index for index in range(70_000)}
    found, broken = looked_at(tmp_path, zip_of(files, zipfile.ZIP_STORED), WHEEL)
    assert found == files
    assert not broken


def test_offsets_and_sizes_of_64_bits_are_read(tmp_path: Path) -> None:
    data = bytearray(zip_of({"x.so": ELF}, zipfile.ZIP_STORED))
    entry = data.index(b"PK\1\2")
    extra = struct.pack("<HHQQQ", 1, 24, len(ELF), len(ELF), 0)
    end = data[data.index(b"PK\5\6") :]
    directory = bytearray(data[entry : entry + 46 + 4]) + b"\xef\xbe\4\0abcd" + extra
    directory[20:28] = b"\xff" * 8
    directory[30:32] = (len(extra) + 8).to_bytes(2, "little")
    directory[42:46] = b"\xff" * 4
    last = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, len(directory), entry)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, entry + len(directory), 1)
    end[8:20] = b"\xff" * 12
    whole = bytes(data[:entry] + directory + last + locator + end)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        assert archive.read("x.so") == ELF
    assert looked_at(tmp_path, whole, WHEEL) == ({"x.so": ELF}, [])


@pytest.mark.parametrize(
    ("name", "package"),
    [
        (WHEEL, Package("numpy", "2.1.0", "manylinux_2_17_x86_64.manylinux2014_x86_64", "wheel")),
        ("a_b-1.0+local-1build-py3-none-any.whl", Package("a_b", "1.0+local", "any", "wheel")),
        ("not what it should be.whl", None),
    ],
)
def test_the_name_tells_what_it_is(name: str, package: Package | None, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(zip_of(FILES))
    assert {one.package for one in elf_files_in(str(tmp_path / name)) if isinstance(one, FoundFile)} == {package}


@pytest.mark.parametrize("name", ["made.zip", "made.jar", "whl", "made.whl.zip"])
def test_other_zip_archives_are_not_looked_into(name: str, tmp_path: Path) -> None:
    assert looked_at(tmp_path, zip_of(FILES), name) == ({}, [])


def changed(where: bytes, offset: int, new: bytes, *, last: bool = False, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = bytearray(zip_of({"a.so": ELF + b"a" * 99, "b.so": ELF}, method))
    start = (data.rindex(where) if last else data.index(where)) + offset
    data[start : start + len(new)] = new
    return bytes(data)


WRONG = "is not what the archive's directory says of it: its size or checksum is wrong"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(b"PK\1\2", 16, b"\1\2\3\4"), WRONG),
        (changed(b"PK\1\2", 24, b"\1\0\0\0"), WRONG),
        (changed(b"PK\1\2", 24, b"\0\1\0\0"), WRONG),
        (changed(b"PK\1\2", 20, b"\5\0\0\0"), "ends within its deflate stream"),
        (changed(b"PK\1\2", 20, b"\xff\xff\xff\x7f"), "reaches beyond the end of the archive"),
        (changed(b"PK\1\2", 42, b"\xff\xff\xff\x7f"), "begins behind the end of the archive"),
        (changed(b"PK\1\2", 42, b"\1\0\0\0"), "has something else where its header is expected"),
        (changed(b"PK\1\2", 8, b"\1\0"), "is encrypted"),
        (changed(b"PK\1\2", 10, b"\x0e\0"), "is compressed by a method that wheels do not have (14)"),
    ],
)
def test_what_is_wrong_with_one_member_does_not_hide_the_others(data: bytes, message: str, tmp_path: Path) -> None:
    found, broken = looked_at(tmp_path, data, WHEEL)
    assert found == {"b.so": ELF}
    assert [(one.member, one.message) for one in broken] == [("a.so", message)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(b"PK\5\6", 0, b"PKzz"), "is a zip archive without a directory; it may be cut off"),
        (changed(b"PK\5\6", 16, b"\xff\xff\xff\x7f"), "has a directory that reaches beyond its end"),
        (changed(b"PK\5\6", 16, b"\0\0\0\0"), "has something else where an entry of its directory is expected"),
        (changed(b"PK\5\6", 12, b"\x20\0\0\0"), "ends within its directory"),
        (b"PK\3\4" + struct.pack("<4sIQI", b"PK\6\7", 0, 999, 1) + b"PK\5\6" + bytes(18), "that begins behind its end"),
        (b"PK\3\4" + bytes(60) + struct.pack("<4sIQI", b"PK\6\7", 0, 4, 1) + b"PK\5\6" + bytes(18), "is said to be"),
    ],
)
def test_a_broken_directory_is_told(data: bytes, message: str, tmp_path: Path) -> None:
    found, broken = looked_at(tmp_path, data, WHEEL)
    assert not found
    assert [one.member for one in broken] == [None]
    assert message in broken[0].message


def test_it_ends_anywhere(tmp_path: Path) -> None:
    data = zip_of(FILES)
    for length in range(4, len(data)):
        found, broken = looked_at(tmp_path, data[:length], WHEEL)
        assert not found
        assert [one.what for one in broken] == ["damaged"]


def test_members_that_lie_over_each_other_are_no_more_than_the_archive_may_hold(tmp_path: Path) -> None:
    data = bytearray(zip_of({"a.so": ELF + bytes(3 << 20)}, zipfile.ZIP_STORED))
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    entry = data[start:end] * 1000
    ending = data[end:]
    ending[12:16] = len(entry).to_bytes(4, "little")
    (tmp_path / WHEEL).write_bytes(data[:start] + entry + ending)
    sizes = [len(one.data) if isinstance(one, FoundFile) else one.what for one in elf_files_in(str(tmp_path / WHEEL))]
    assert sizes[-1] == "too large"
    assert 100 < len(sizes) < 300
