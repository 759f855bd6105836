"""ELF files in RPM packages, as rpmbuild writes them, and in the payloads of its version 6."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from packed import ELF, look, looked_at, rpm_of
from walkback.packages.walk import FoundFile, Package, elf_files_in

FILES = {"usr/bin/hello": ELF + b"program" * 100, "usr/share/hello": b"text" * 1000, "usr/lib64/libh.so": ELF + b"l"}
PROGRAMS = {name: data for name, data in FILES.items() if data.startswith(ELF)}
PAYLOADS = ["w9.gzdio", "w9.bzdio", "w2.xzdio", "w2.lzdio", "w3.zstdio", "w.ufdio"]
TEXT, TEXTS, NUMBERS_16, NUMBERS_32, NUMBERS_64 = 6, 8, 3, 4, 5
TRAILER = b"070701" + b"0" * 88 + b"0000000b" + b"0" * 8 + b"TRAILER!!!\0" + bytes(3)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_each_payload_is_read(payload: str, tmp_path: Path) -> None:
    package = rpm_of(tmp_path, FILES, payload)
    assert look(package) == (PROGRAMS, [])
    assert {one.package for one in elf_files_in(str(package)) if isinstance(one, FoundFile)} == {
        Package("hello", "3:2.10-4", "aarch64", "rpm")
    }


def test_all_names_of_hard_links_are_found(tmp_path: Path) -> None:
    links = {
        "usr/bin/again": "usr/bin/hello",
        "usr/bin/z": "usr/bin/hello",
        "opt/z": "usr/lib64/libh.so",
        "usr/share/z": "usr/share/hello",
    }
    linked = {name: PROGRAMS[target] for name, target in links.items() if target in PROGRAMS}
    package = rpm_of(tmp_path, FILES, "w3.zstdio", links=links)
    assert look(package) == (PROGRAMS | linked, [])
    assert {one.package for one in elf_files_in(str(package))} == {Package("hello", "3:2.10-4", "aarch64", "rpm")}
    assert [type(one) for one in elf_files_in(str(package))].count(FoundFile) == len(PROGRAMS)


def test_a_package_without_files_is_empty(tmp_path: Path) -> None:
    assert look(rpm_of(tmp_path, {}, "w9.gzdio")) == ({}, [])


@pytest.mark.parametrize("payload", ["w.ufdio", "w9.gzdio"])
def test_it_ends_anywhere_and_what_was_before_is_found(payload: str, tmp_path: Path) -> None:
    package = rpm_of(tmp_path, {"a": ELF + b"a" * 60, "b": ELF}, payload)
    data = package.read_bytes()
    everything, _ = look(package)
    assert set(everything) == {"a", "b"}
    # Of what is behind the last header of the payload, the padding may be missing.
    for length in [*range(4, 400, 13), *range(400, len(data) - 200, 101), *range(len(data) - 200, len(data))]:
        package.write_bytes(data[:length])
        found, broken = look(package)
        assert found.items() <= everything.items()
        assert [one.what for one in broken] == ["damaged"] or (found == everything and payload == "w.ufdio"), length


def header(tags: dict[int, tuple[int, int, bytes]]) -> bytes:
    index, store = b"", b""
    for tag, (kind, count, data) in tags.items():
        index += struct.pack(">IIII", tag, kind, len(store), count)
        store += data
    return b"\x8e\xad\xe8\x01" + bytes(4) + struct.pack(">II", len(tags), len(store)) + index + store


def package_of(
    payload: bytes,
    files: list[tuple[str, int, int, int]],
    tags: dict[int, tuple[int, int, bytes]] | None = None,
    large: bool = True,
) -> bytes:
    """A package with a payload of stripped headers: files are (path, mode, size, inode)."""
    folders = sorted({path.rpartition("/")[0] + "/" for path, *_ in files})
    names = b"".join(path.rpartition("/")[2].encode() + b"\0" for path, *_ in files)
    places = [folders.index(path.rpartition("/")[0] + "/") for path, *_ in files]
    count = len(files)
    width, tag, kind = ("Q", 5008, NUMBERS_64) if large else ("I", 1028, NUMBERS_32)
    known = {
        1000: (TEXT, 1, b"hello\0"),
        1001: (TEXT, 1, b"1\0"),
        tag: (kind, count, struct.pack(f">{count}{width}", *(size for _, _, size, _ in files))),
        1030: (NUMBERS_16, count, struct.pack(f">{count}H", *(mode for _, mode, *_ in files))),
        1095: (NUMBERS_32, count, struct.pack(f">{count}I", *[1] * count)),
        1096: (NUMBERS_32, count, struct.pack(f">{count}I", *(inode for *_, inode in files))),
        1037: (NUMBERS_32, count, bytes(4 * count)),
        1116: (NUMBERS_32, count, struct.pack(f">{count}I", *places)),
        1117: (TEXTS, count, names),
        1118: (TEXTS, len(folders), b"".join(folder.encode() + b"\0" for folder in folders)),
    }
    return b"\xed\xab\xee\xdb" + bytes(92) + header({}) + header(known | (tags or {})) + payload


def stripped(index: int, data: bytes) -> bytes:
    return b"07070X%08x" % index + bytes(2) + data + bytes(-len(data) % 4)


BODY = ELF + b"x" * 6
FOUR = [
    ("/usr/bin/one", 0o100755, 13, 1),
    ("/usr/bin", 0o040755, 4096, 2),
    ("/usr/bin/link", 0o120777, 3, 3),
    ("/usr/bin/hard", 0o100755, 13, 1),
    ("/opt/two", 0o100755, 13, 4),
]


@pytest.mark.parametrize("large", [True, False])
def test_stripped_headers_go_by_the_files_of_the_package(large: bool, tmp_path: Path) -> None:
    # Of the two names of one file the first comes without its bytes.
    payload = (
        stripped(4, BODY) + stripped(1, b"") + stripped(2, b"one") + stripped(0, b"") + stripped(3, BODY) + TRAILER
    )
    found, broken = looked_at(tmp_path, package_of(payload, FOUR, large=large))
    assert found == {"opt/two": BODY, "usr/bin/hard": BODY, "usr/bin/one": BODY}
    assert not broken


@pytest.mark.parametrize(
    ("payload", "tags", "message"),
    [
        (stripped(9, BODY), {}, "has a file 9 that its header does not list"),
        (stripped(0, BODY), {1117: (TEXTS, 0, b"")}, "has a file 0 without a name"),
        (stripped(0, BODY), {1117: (TEXTS, 1 << 30, b"")}, "has a file 0 without a name"),
        (stripped(0, BODY), {1116: (NUMBERS_32, 5, struct.pack(">5I", *[77] * 5))}, "has a file 0 without a name"),
        (stripped(4, BODY), {1030: (NUMBERS_16, 1 << 19, b"")}, "has a file 4 that its header does not list"),
        (b"07070X0000000g", {}, "has an unreadable number in a header"),
        (b"07070Xzz      ", {}, "has an unreadable number in a header"),
        (b"0707010000000+" + b"0" * 96, {}, "has an unreadable number in a header"),
        (b"070701" + b"0" * 88 + b"7fffffff" + b"0" * 8, {}, "has a name of 2147483647 bytes"),
        (b"drpm and other things", {}, "has something else where the header of a member is expected"),
        (stripped(4, BODY), {}, "ends 6 bytes too early"),
    ],
)
def test_what_is_wrong_is_told(
    payload: bytes, tags: dict[int, tuple[int, int, bytes]], message: str, tmp_path: Path
) -> None:
    found, broken = looked_at(tmp_path, package_of(payload, FOUR, tags))
    assert [one.message for one in broken] == [message]
    assert len(found) == ("ends" in message)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (bytes(16), "has something else where a header of the package is expected"),
        (b"\x8e\xad\xe8\x01" + bytes(4) + b"\xff" * 8, "tags and 4294967295 bytes, which is too much"),
        (b"\x8e\xad\xe8\x01" + bytes(4) + b"\0\0\0\1\0\0\0\0", "ends 16 bytes too early"),
    ],
)
def test_a_broken_header_is_told(data: bytes, message: str, tmp_path: Path) -> None:
    _, (broken,) = looked_at(tmp_path, b"\xed\xab\xee\xdb" + bytes(92) + data)
    assert message in broken.message


def test_what_a_package_says_of_itself_is_one_short_line(tmp_path: Path) -> None:
    tags = {1000: (TEXT, 1, b"x\n" * 5000 + b"\0"), 1001: (TEXT, 1, b"\xff\0"), 1022: (TEXT, 1, b"\x1b[31m\0")}
    (tmp_path / "file").write_bytes(package_of(stripped(4, BODY) + TRAILER, FOUR, tags))
    (found,) = elf_files_in(str(tmp_path / "file"))
    assert found.package == Package(r"x\x0a" * 2048, r"\xff", r"\x1b[31m", "rpm")
