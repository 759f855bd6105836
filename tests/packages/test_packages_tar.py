"""ELF files in tar archives of every format, as GNU tar and Python write them."""

from __future__ import annotations

import io
import lzma
import os
import random
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from packed import ELF, ar_of, link, look, looked_at, run, tar_of, tool, write
from walkback.packages import tar
from walkback.packages.streams import MemoryBudget, MemoryStream
from walkback.packages.walk import Broken, elf_files_in

FORMATS = ["v7", "oldgnu", "gnu", "ustar", "pax"]
FILES = {
    "usr/bin/one": ELF + b"one",
    "usr/share/text": b"text\n" * 300,
    "two": ELF + bytes(5000) + b"two",
    "empty": b"",
}
PROGRAMS = {name: data for name, data in FILES.items() if data.startswith(ELF)}
NO_END = "ends without the mark of its end, so that something may be missing"


def gnu_tar(folder: Path, *options: str, name: str = "made.tar") -> Path:
    run("tar", "-C", folder, "-cf", folder.parent / name, *options, ".")
    return folder.parent / name


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("packer", ["", "--gzip", "--xz", "--zstd", "--bzip2", "--lzma"])
def test_each_format_and_compressor_is_read(form: str, packer: str, tmp_path: Path) -> None:
    if packer:
        tool(packer.removeprefix("--"))
    tree = write(tmp_path / "tree", FILES)
    assert look(gnu_tar(tree, f"--format={form}", *filter(None, [packer]))) == (PROGRAMS, [])


def test_the_name_of_the_file_does_not_matter(tmp_path: Path) -> None:
    assert looked_at(tmp_path, tar_of(PROGRAMS), "photo.jpeg") == (PROGRAMS, [])


@pytest.mark.parametrize("form", ["gnu", "pax", "ustar"])
def test_long_names_are_whole(form: str, tmp_path: Path) -> None:
    folder = "/".join(["folder" * 5] * 3)
    names = [f"{folder}/{'n' * length}" for length in (1, 50, 90)] + ([f"{folder}/{'n' * 200}"] * (form != "ustar"))
    files = {name: ELF + name.encode() for name in names}
    assert look(gnu_tar(write(tmp_path / "tree", files), f"--format={form}")) == (files, [])


def test_names_that_are_no_text_or_move_the_cursor_are_spelled_out(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    for name in (b"a\xffb", "gr\u00fc\u00df".encode(), b"line\nfeed", b"es\x1bcape"):
        Path(os.fsdecode(bytes(tmp_path) + b"/tree/" + name)).write_bytes(ELF)
    found, broken = look(gnu_tar(tmp_path / "tree", "--format=gnu"))
    assert set(found) == {r"a\xffb", "gr\u00fc\u00df", r"line\x0afeed", r"es\x1bcape"}
    assert not broken


def test_names_that_lead_elsewhere_are_only_names(tmp_path: Path) -> None:
    files = {"../../../etc/passwd": ELF + b"1", "/absolute": ELF + b"2", "": ELF + b"3", "x" * 5000: ELF + b"4"}
    found, broken = looked_at(tmp_path, tar_of(files, format=tarfile.GNU_FORMAT))
    assert found == {name[:4096]: data for name, data in files.items()}
    assert not broken
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_soft_links_and_devices_are_no_files(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", {"program": ELF + b"x"})
    (tree / "soft").symlink_to("program")
    os.mkfifo(tree / "fifo")
    for form in FORMATS[1:]:
        assert look(gnu_tar(tree, f"--format={form}")) == ({"program": ELF + b"x"}, [])


@pytest.mark.parametrize("form", FORMATS)
def test_all_names_of_hard_links_are_found(form: str, tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", FILES)
    link(tree, {"usr/bin/again": "usr/bin/one", "z": "usr/bin/one", "text": "usr/share/text"})
    found, broken = look(gnu_tar(tree, f"--format={form}"))
    assert found == PROGRAMS | dict.fromkeys(["usr/bin/again", "z"], FILES["usr/bin/one"])
    assert not broken


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_long_names_of_hard_links_are_whole(form: str, tmp_path: Path) -> None:
    names = ["/".join(["folder" * 5] * 6 + [last]) for last in "abc"]
    tree = write(tmp_path / "tree", {names[0]: ELF, "other": ELF + b"2"})
    link(tree, {names[1]: names[0], names[2]: names[0], "short": names[0], "z": "other"})
    both = dict.fromkeys([*names, "short"], ELF) | dict.fromkeys(["other", "z"], ELF + b"2")
    assert look(gnu_tar(tree, f"--format={form}")) == (both, [])


def linked(*members: tuple[str, str | bytes]) -> bytes:
    """An archive of files with contents and links with targets."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, what in members:
            member = tarfile.TarInfo(name)
            if isinstance(what, str):
                member.type, member.linkname = tarfile.LNKTYPE, what
                archive.addfile(member)
            else:
                member.size = len(what)
                archive.addfile(member, io.BytesIO(what))
    return out.getvalue()


def test_links_that_lead_to_nothing_are_nothing(tmp_path: Path) -> None:
    archive = linked(("missing", "nowhere"), ("early", "late"), ("late", ELF), ("late", "late"), ("text", b"text"))
    assert looked_at(tmp_path, archive) == ({"late": ELF}, [])
    archive = linked(("text", b"text"), ("to text", "text"), ("one", ELF), ("./two", "./one"), ("three", "two"))
    assert looked_at(tmp_path, archive) == (dict.fromkeys(["one", "two", "three"], ELF), [])


def test_a_link_leads_to_what_its_target_was_last(tmp_path: Path) -> None:
    archive = linked(("a", ELF + b"1"), ("b", "a"), ("x", b"text"), ("x/../a", "x"), ("c", "a"), ("d", "x/../a"))
    assert looked_at(tmp_path, archive) == (dict.fromkeys("abc", ELF + b"1"), [])
    archive = linked(("b", ELF + b"2"), ("a", "b"), ("c", ELF + b"3"), ("d", "c"), ("e", "a"))
    assert looked_at(tmp_path, archive)[0]["e"] == ELF + b"2"


def test_links_to_archives_are_archives_with_other_names(tmp_path: Path) -> None:
    inner = linked(("x", ELF + b"x"), ("y", "x"))
    objects = ar_of(tmp_path / "ar", {"1.o": ELF + b"1", "2.o": ELF + b"2"})
    outer = linked(("first", ELF), ("in.tar", inner), ("again.tar", "in.tar"), ("a.a", objects), ("b.a", "a.a"))
    expected = {f"{name}({member})": ELF + b"x" for name in ("in.tar", "again.tar") for member in "xy"}
    expected |= {f"{name}({number}.o)": ELF + number.encode() for name in ("a.a", "b.a") for number in "12"}
    assert looked_at(tmp_path, outer) == (expected | {"first": ELF}, [])
    deeper = linked(("deep.tar", outer), ("z.tar", "deep.tar"))
    found, broken = looked_at(tmp_path, deeper)
    assert len(found) == 2 * 9
    assert found["z.tar(again.tar(y))"] == ELF + b"x"
    assert found["z.tar(b.a(2.o))"] == ELF + b"2"
    assert not broken


@pytest.mark.whole
def test_a_link_takes_no_more_room_than_another_member(tmp_path: Path) -> None:
    links = 20_000
    archive = linked(("a", ELF), *[(str(number), "a") for number in range(links)])
    (tmp_path / "many.tar.xz").write_bytes(lzma.compress(archive))
    found = list(elf_files_in(str(tmp_path / "many.tar.xz")))
    assert not [one for one in found if isinstance(one, Broken)]
    assert len(found) == links + 1


def test_links_are_bounded(tmp_path: Path) -> None:
    objects = ar_of(tmp_path / "ar", {f"{number}.o": ELF for number in range(1000)})
    archive = linked(("a.a", objects), *[(f"{number}.a", "a.a") for number in range(1000)])
    (tmp_path / "bomb.tar.xz").write_bytes(lzma.compress(archive))
    found = list(elf_files_in(str(tmp_path / "bomb.tar.xz")))
    assert [one.what for one in found if isinstance(one, Broken)] == ["too large"]
    assert len(found) < 50_000


def test_a_link_that_claims_a_size_has_no_bytes(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for kind in (
            tarfile.LNKTYPE,
            tarfile.SYMTYPE,
            tarfile.CHRTYPE,
            tarfile.BLKTYPE,
            tarfile.DIRTYPE,
            tarfile.FIFOTYPE,
        ):
            member = tarfile.TarInfo("other")
            member.type, member.size = kind, 10_000
            archive.addfile(member)
        member = tarfile.TarInfo("program")
        member.size = len(ELF)
        archive.addfile(member, io.BytesIO(ELF))
    assert looked_at(tmp_path, out.getvalue()) == ({"program": ELF}, [])


def holes(path: Path, parts: dict[int, bytes], size: int) -> bytes:
    """A sparse file, and what it holds."""
    with path.open("wb") as file:
        for offset, data in parts.items():
            os.pwrite(file.fileno(), data, offset)
        os.truncate(file.fileno(), size)
    return path.read_bytes()


SPARSE = ["--format=oldgnu", "--format=gnu"] + [f"--format=pax --sparse-version={v}" for v in ("0.0", "0.1", "1.0")]


@pytest.mark.parametrize("form", SPARSE)
@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_sparse_files_have_their_holes_again(form: str, pieces: int, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    chance = random.Random(1)
    parts = {index * (1 << 17): chance.randbytes(9000) for index in range(pieces)}
    whole = holes(tmp_path / "tree/program", {**parts, 0: ELF + b"x" * 5000}, (pieces << 17) + 300_000)
    holes(tmp_path / "tree/other", {1 << 20: ELF}, 2 << 20)
    holes(tmp_path / "tree/nothing", {}, 1 << 20)
    write(tmp_path / "tree", {"zlast": ELF + b"last"})
    packed = gnu_tar(tmp_path / "tree", "--sparse", *form.split())
    assert packed.stat().st_size < len(whole)
    assert look(packed) == ({"program": whole, "zlast": ELF + b"last"}, [])
    run("gzip", packed)
    assert look(f"{packed}.gz") == ({"program": whole, "zlast": ELF + b"last"}, [])


def test_a_sparse_file_of_terabytes_is_told_and_those_after_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    huge = tmp_path / "tree/huge"
    huge.write_bytes(ELF)
    os.truncate(huge, 1 << 43)
    write(tmp_path / "tree", {"zlast": ELF + b"last"})
    found, broken = look(gnu_tar(tmp_path / "tree", "--sparse"))
    assert found == {"zlast": ELF + b"last"}
    assert [(one.member, one.what) for one in broken] == [("huge", "too large")]


def entry(name: str, size: str = "00000000000", kind: str = "0", more: bytes = b"") -> bytes:
    """A header with a right sum, whatever it says."""
    head = bytearray(512)
    head[: len(name)] = name.encode()
    head[124 : 124 + len(size)] = size.encode("latin-1")
    head[156:157] = kind.encode()
    head[257:265] = b"ustar  \0"
    head[386 : 386 + len(more)] = more
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def record(key: bytes, value: bytes) -> bytes:
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return b"%d" % length + rest


def with_records(records: bytes, body: bytes = ELF, kind: str = "x") -> bytes:
    padded = records + bytes(-len(records) % 512)
    front = entry("pax", f"{len(records):011o}", kind) + padded
    return front + entry("program", f"{len(body):011o}") + body + bytes(-len(body) % 512) + bytes(1024)


def test_a_size_in_256_is_read(tmp_path: Path) -> None:
    size = chr(0x80) + "\0" * 9 + chr(1) + chr(4)
    assert looked_at(tmp_path, entry("p", size) + ELF + bytes(253 + 512 - len(ELF) - 253 + 1024)) == (
        {"p": ELF + bytes(253)},
        [],
    )


def test_pax_records_about_one_and_about_all_are_kept_apart(tmp_path: Path) -> None:
    one = with_records(record(b"path", b"renamed") + record(b"size", b"7"))[:-1024]
    assert looked_at(tmp_path, one + entry("next", "7") + ELF + bytes(505 + 1024))[0] == {"renamed": ELF, "next": ELF}
    for_all = with_records(record(b"path", b"all") + record(b"comment", b"x" * 600), kind="g")
    assert looked_at(tmp_path, for_all) == ({"all": ELF}, [])


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (entry("p", "99999999999") + bytes(1024), "has an unreadable number in a header"),
        (entry("p", chr(0xFF) * 12) + bytes(1024), "has an unreadable number in a header"),
        (
            entry("p", "00000000001") + b"x" * 512 + b"y" * 512,
            "has something else where the header of a member is expected",
        ),
        (entry("p"), NO_END),
        (entry("p") + entry("q", "00000001000") + bytes(512), NO_END),
        (entry("p") + bytes(100), "ends 412 bytes too early"),
        (entry("p") + b"\0" * 512, None),
        (with_records(b"nonsense"), "has a broken record in a pax header"),
        (with_records(b"99 path=x\n"), "has a broken record in a pax header"),
        (with_records(b"5 a=b"), "has a broken record in a pax header"),
        (with_records(b"1 path=x\n"), "has a broken record in a pax header"),
        (with_records(record(b"size", b"9" * 5000)), "has an unreadable number in a pax header"),
        (with_records(record(b"size", b"-1")), "has an unreadable number in a pax header"),
        (entry("p", "00010000000", "L") + bytes(2 << 20), "has 2097152 bytes about one member"),
        (
            with_records(record(b"GNU.sparse.major", b"1"), b"0\n" + bytes(600)),
            "has an unreadable number in a pax header",
        ),
        (
            with_records(record(b"GNU.sparse.size", b"9") + record(b"GNU.sparse.map", b"0,7,3,2")),
            "has a sparse file with pieces out of their order or behind its end",
        ),
        (
            with_records(record(b"GNU.sparse.size", b"9") + record(b"GNU.sparse.map", b"0,7,3")),
            "has a sparse file in too many pieces, or half of one",
        ),
        (
            with_records(
                record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.realsize", b"9"), b"70000\n" + bytes(600)
            ),
            "has a sparse file in too many pieces, or half of one",
        ),
        (
            entry("p", "00000000000", "S", (b"00000000000 " * 8) + b"\1" + b"00000000100\0")
            + ((b"00000000000 " * 42) + b"\1" + bytes(7)) * 4000,
            "has a sparse file in too many pieces, or half of one",
        ),
    ],
)
def test_what_is_wrong_is_told(archive: bytes, message: str | None, tmp_path: Path) -> None:
    found, broken = looked_at(tmp_path, archive)
    assert not found
    assert [one.message for one in broken] == ([message] if message else [])


@pytest.mark.whole
def test_it_ends_anywhere_and_what_was_before_is_found(tmp_path: Path) -> None:
    files = {"a": ELF + b"a" * 60, "b": b"text", "c": ELF + b"c"}
    whole = tar_of(files, format=tarfile.USTAR_FORMAT)
    ends = {"a": 512 + 67, "c": 5 * 512 + 8}
    last = ends["c"] + 504 + 512
    for length in range(512, last):
        found, broken = looked_at(tmp_path, whole[:length])
        assert set(found) == {name for name, end in ends.items() if length >= end}, length
        assert [one.what for one in broken] == ["damaged"], length
    for length in (last, len(whole)):
        assert looked_at(tmp_path, whole[:length]) == ({name: files[name] for name in "ac"}, [])


def test_what_is_cut_off_is_told_with_its_name_and_once(tmp_path: Path) -> None:
    inner = tar_of({"lib/x.so": ELF + bytes(3000)})
    whole = tar_of({"first": ELF, "inner.tar": inner})
    (tmp_path / "packed").write_bytes(whole[:4096])
    run("gzip", "--keep", tmp_path / "packed")
    for name in ("packed", "packed.gz"):
        found, broken = look(tmp_path / name)
        assert found == {"first": ELF}
        assert [one.member for one in broken] == ["inner.tar(lib/x.so)"]
        assert broken[0].what == "damaged"


@pytest.mark.parametrize("pack", [bytes, lzma.compress], ids=["plain", "xz"])
def test_a_member_that_is_cut_off_inside_is_no_end_of_what_it_is_in(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    inner = tar_of({"a": ELF, "b": ELF + bytes(5000)})
    outer = tar_of({"before": ELF, "in.tar": inner[: inner.index(b"b\0") + 3000], "behind": ELF})
    found, broken = looked_at(tmp_path, pack(outer))
    assert list(found) == ["before", "in.tar(a)", "behind"]
    missing = len(ELF) + 5000 - (3000 - 512)
    assert [(one.member, one.message) for one in broken] == [("in.tar(b)", f"ends {missing} bytes too early")]


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["g", "x"])
def test_keys_that_are_not_known_take_no_memory(kind: str) -> None:
    keys = b"".join(record(b"GNU.sparse.%d" % key, b"") for key in range(40_000))
    data = memoryview(with_records(keys + record(b"path", b"named"), kind=kind))
    tracemalloc.start()
    names = [name for name, _ in tar.members(MemoryStream(data), MemoryBudget(1 << 20))]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert names == [b"named"]
    assert peak < 3 * len(keys)


def test_ten_thousand_members_are_all_found(tmp_path: Path) -> None:
    files = {f"lib/{index}.so": ELF + b"%d" % index for index in range(10_000)}
    found, broken = looked_at(tmp_path, tar_of(files))
    assert found == files
    assert not broken


def test_members_that_are_not_wanted_are_passed_over() -> None:
    names = [name for name, _ in tar.members(MemoryStream(memoryview(tar_of(FILES))), MemoryBudget(1 << 20))]
    assert names == [name.encode() for name in FILES]


def test_what_is_broken_is_one_line(tmp_path: Path) -> None:
    name = "a\nb"
    _, broken = looked_at(tmp_path, tar_of({name: b"\x1f\x8b\x08 no stream"}))
    assert broken == [Broken(r"a\x0ab", "damaged", broken[0].message)]
    assert "\n" not in broken[0].message
