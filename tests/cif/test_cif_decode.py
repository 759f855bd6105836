"""Reading image maps: each sentence of the description, each rule, and what Swift's tests hold to be good or bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cif.plaincif import FIXED, Chosen, coded, counted, write
from walkback.base.errors import BacktraceError
from walkback.cif.decoding import check, decode, explain
from walkback.cif.imagemap import Image, ImageMap


def raw(text: str) -> bytes:
    data = text.encode()
    return b"".join(bytes([len(data[at : at + 63])]) + data[at : at + 63] for at in range(0, len(data), 63))


def framework(name: str, version: str) -> bytes:
    return bytes([0x40 + len(name) - 1]) + version.encode() + name.encode()


def data_of(*paths: bytes, build_id: bytes = b"") -> bytes:
    """A map with these paths."""
    return write(
        64, "test", [Chosen(0x1000 * at, 0x1000 * at + 0x100, build_id, path) for at, path in enumerate(paths, 1)]
    )


def paths_of(*paths: bytes) -> list[str | None]:
    return [one.path for one in decode(data_of(*paths)).images]


def rules(data: bytes) -> list[str]:
    return [one.rule for one in check(data) if not one.note]


def refused(data: bytes) -> tuple[str, int]:
    """The rule for which a strict reader refuses a map, and where."""
    with pytest.raises(BacktraceError) as caught:
        decode(data)
    assert caught.value.offset is not None
    return str(caught.value.rule), caught.value.offset


# The beginning


@pytest.mark.parametrize(("size", "word"), [(0, 16), (1, 32), (2, 64)])
def test_the_info_byte_has_the_size_of_words(size: int, word: int) -> None:
    assert decode(bytes([size, 0, 0])) == ImageMap(word, "", ())


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    ("data", "rule"),
    [
        ("", "data-missing"),
        ("06 00 00", "version"),
        ("03 00 00", "word-size"),
        ("02", "data-missing"),
        ("02 05 41 42", "data-missing"),
        ("02 00", None),
        ("02 01 41", "data-missing"),
        ("02 00 c0 80 01", "image-count"),
        ("02 00 ff ff ff ff ff ff ff ff ff 7f", "image-count"),
    ],
)
def test_without_its_beginning_a_map_is_nothing(data: str, rule: str | None, lenient: bool) -> None:
    if rule is None:
        assert decode(bytes.fromhex(data)).platform is None
        return
    with pytest.raises(BacktraceError) as caught:
        decode(bytes.fromhex(data), lenient=lenient)
    assert caught.value.rule == rule


def test_a_platform_is_utf8() -> None:
    assert decode(b"\x02\x02\xc3\xa4\x00").platform == "ä"
    assert refused(b"\x02\x02A\xff\x00") == ("platform-utf8", 3)
    assert decode(b"\x02\x02A\xff\x00", lenient=True).platform == "A\ufffd"


@pytest.mark.parametrize(
    ("count", "coding"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "81 00"),
        (129, "81 01"),
        (700, "85 3c"),
        (1234, "89 52"),
        (16384, "81 80 00"),
        (65535, "83 ff 7f"),
        (1 << 20, "c0 80 00"),
    ],
)
def test_a_count_has_seven_bits_a_byte(count: int, coding: str) -> None:
    assert counted(count).hex(" ") == coding
    (missing,) = check(b"\x02\x00" + counted(count)) if count else [None]
    assert missing is None or f"image 0 of {count}" in missing.message


def test_a_count_may_be_longer_than_needed() -> None:
    (note,) = check(bytes.fromhex("02 00 80 00"))
    assert (note.rule, note.note, note.offset) == ("long-count", True, 2)
    assert decode(bytes.fromhex("02 00 80 00")).images == ()


# The first form


def test_the_first_form_has_no_platform() -> None:
    data = data_of(raw("/a/b") + b"\0", coded(32) + b"\0")
    assert data[1:6] == b"\x04test"
    found = decode(data[:1] + data[6:])
    assert (found.platform, [one.path for one in found.images]) == (None, ["/a/b", "/a"])
    assert [(one.rule, one.note) for one in found.findings] == [("no-platform", True)]


@pytest.mark.parametrize("platform", ["", "L", "Linux 6.1 (AMD64)", "macOS 15.1 (24B83)", "ä"])
def test_damage_does_not_make_the_first_form_of_a_map(platform: str) -> None:
    whole = write(64, platform, [Chosen(0x1000, 0x2000, bytes(20), raw("/a/b") + b"\0")] * 3)
    for size in range(3, len(whole)):
        assert rules(whole[:size]) == ["data-missing"], size


# Images


def test_an_image_has_a_base_an_end_and_a_build_id() -> None:
    data = bytes.fromhex("02 00 01 29 00 00 55 55 00 10 20 00 04 de ad be ef 00")
    assert decode(data).images == (Image(None, b"\xde\xad\xbe\xef", 0x55550010, 0x55552010),)


def test_a_base_may_be_relative_to_the_one_before() -> None:
    data = bytes.fromhex("02 00 02 09 10 00 01 00 00 00 89 01 00 01 00 00 00")
    assert [(one.base, one.end) for one in decode(data).images] == [(0x1000, 0x1100), (0x1100, 0x1200)]


@pytest.mark.parametrize(
    ("word", "coding", "base", "end"),
    [
        (0, "00 ff 00", 0xFFFF, None),
        (0, "00 80 7f", 0xFF80, 0xFFFF),
        (1, "00 80 7f", 0xFFFFFF80, 0xFFFFFFFF),
        (2, "00 80 7f", 0xFFFFFFFFFFFFFF80, 0xFFFFFFFFFFFFFFFF),
        (0, "08 80 00 7f", 0x8000, 0x807F),
        (1, "18 80 00 00 00 7f", 0x80000000, 0x8000007F),
        (2, "01 00 ff ff", 0, 0xFFFFFFFFFFFFFFFF),
    ],
)
def test_addresses_are_sign_extended_to_the_word(word: int, coding: str, base: int, end: int | None) -> None:
    data = bytes([word, 0, 1]) + bytes.fromhex(coding) + b"\0\0"
    if end is None:
        assert refused(data)[0] == "end-of-text"
    else:
        assert decode(data).images == (Image(None, None, base, end),)


def test_a_relative_base_wraps_at_the_word() -> None:
    data = bytes.fromhex("00 00 02 00 80 01 00 00 80 80 01 00 00")
    assert [one.base for one in decode(data, lenient=True).images] == [0xFF80, 0xFF00]
    assert refused(data) == ("order", 8)


def test_an_operand_is_not_wider_than_the_word() -> None:
    data = bytes.fromhex("00 00 01 11 00 12 34 01 00 00 00")
    assert refused(data) == ("wide-operand", 4)
    assert decode(data, lenient=True).images == (Image(None, None, 0x1234, 0x1334),)


def test_bit_six_of_a_header_is_reserved() -> None:
    data = bytes.fromhex("02 00 01 40 10 10 00 00")
    assert refused(data) == ("reserved-bit", 3)
    assert decode(data, lenient=True).images == (Image(None, None, 0x10, 0x20),)


@pytest.mark.parametrize("end", ["00", "ff"])
def test_the_end_of_text_is_above_the_base(end: str) -> None:
    assert refused(bytes.fromhex(f"02 00 01 08 10 00 {end} 00 00")) == ("end-of-text", 6)


def test_a_build_id_has_1024_bytes_at_most() -> None:
    def with_id(size: int) -> bytes:
        return bytes.fromhex("02 00 01 00 10 10") + counted(size) + bytes(size) + b"\0"

    assert decode(with_id(1024)).images[0].build_id == bytes(1024)
    assert refused(with_id(1025)) == ("build-id-length", 6)
    assert decode(with_id(1025), lenient=True).images == ()


def test_an_overlap_is_told_and_no_more() -> None:
    data = write(
        64, "x", [Chosen(0x10, 0x60, b"", b"\0"), Chosen(0x20, 0x30, b"", b"\0"), Chosen(0x60, 0x61, b"", b"\0")]
    )
    assert [(one.rule, one.note) for one in check(data)] == [("overlap", True)]
    assert len(decode(data).images) == 3


def test_what_follows_the_last_image_is_told() -> None:
    assert refused(data_of(b"\0") + b"rest") == ("trailing", len(data_of(b"\0")))


def test_leniently_the_images_before_the_damage_are_kept() -> None:
    whole = data_of(raw("/a/b") + b"\0", raw("/c/d") + b"\0")
    seen = {len(decode(whole[:size], lenient=True).images) for size in range(7, len(whole))}
    assert seen == {0, 1, 2}
    assert decode(whole[:-1], lenient=True).images[1] == Image(None, None, 0x2000, 0x2100)


# Paths


def test_an_image_without_a_path_has_just_the_end() -> None:
    assert paths_of(b"\0") == [None]


@pytest.mark.parametrize("code", FIXED)
def test_fixed_prefixes_need_no_teaching(code: int) -> None:
    assert paths_of(coded(code) + raw("/libbar.so") + b"\0") == [FIXED[code] + "/libbar.so"]


def test_raw_bytes_teach_the_folders_that_they_name() -> None:
    taught = raw("/swift/linux/x86_64/libfoo.so") + b"\0"
    others = [coded(code) + b"\x02/x\0" for code in (32, 33, 34)]
    assert paths_of(taught, *others)[1:] == ["/swift/x", "/swift/linux/x", "/swift/linux/x86_64/x"]
    assert rules(data_of(taught, coded(35) + b"\0")) == ["path-code"]


def test_what_a_prefix_brought_is_not_taught_again() -> None:
    assert paths_of(b"\x81" + raw("/swift/libswiftCore.dylib") + b"\0", coded(32) + b"\0")[1] == "/swift"


def test_a_prefix_within_raw_bytes_is_part_of_what_they_teach() -> None:
    taught = raw("/a") + b"\x80" + raw("/b") + b"\0"
    assert paths_of(taught, coded(32) + b"\0") == ["/a/lib/b", "/a/lib"]


def test_backslashes_separate_folders_too() -> None:
    assert paths_of(raw("D:\\x\\y.dll") + b"\0", coded(33) + b"\0")[1] == "D:\\x"


def test_a_framework_ends_its_path() -> None:
    assert paths_of(b"\x84" + framework("AppKit", "C"), b"\x84" + framework("Photos", "A")) == [
        "/System/Library/Frameworks/AppKit.framework/Versions/C/AppKit",
        "/System/Library/Frameworks/Photos.framework/Versions/A/Photos",
    ]
    assert paths_of(framework("n" * 64, "A")) == [f"/{'n' * 64}.framework/Versions/A/{'n' * 64}"]


def test_a_framework_of_version_one_has_no_folder_of_versions() -> None:
    assert paths_of(b"\x87" + framework("Kit", "\x01")) == ["/Library/Frameworks/Kit.framework/Kit"]


def test_codes_from_64_on_stand_in_bytes_of_their_own() -> None:
    folders = "/" + "/".join("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmn")
    assert len(folders) == 80
    found = paths_of(raw(folders) + b"\0", b"\xc0\x00" + raw("/extra.so") + b"\0", b"\xc1\x00\x01\0")
    assert found == [folders, folders[: folders.index("/h")] + "/extra.so", folders[: folders.index("/i")]]


def test_many_codes_take_two_bytes() -> None:
    folders = "".join(f"/{number:x}" for number in range(400)) + "/x"
    found = paths_of(raw(folders) + b"\0", coded(32 + 399) + b"\0", b"\xc1\x01\x0f\0")
    assert found[1:] == [folders[:-2], folders[:-2][: folders.index("/130")]]


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (coded(20) + b"\0", "path-code"),
        (coded(31) + b"\0", "path-code"),
        (coded(40) + b"\0", "path-code"),
        (b"\xc7\x7f\xff\xff\xff\xff\xff\xff\xc0\0", "path-code"),
        (b"\xff" + b"\xff" * 64 + b"\0", "path-code"),
        (b"\x01\xff\0", "path-utf8"),
        (b"\x80\x02\xc3/\0", "path-utf8"),
    ],
)
def test_a_broken_path_does_not_fail_the_map(path: bytes, rule: str) -> None:
    data = data_of(path, raw("/a/b") + b"\0", build_id=b"id")
    found = decode(data)
    assert [one.path for one in found.images] == [None, "/a/b"]
    assert [one.rule for one in found.findings] == rules(data) == [rule]


@pytest.mark.parametrize("path", ["0a 41 42", "53 41 78", "c3 00 00", "80", "01 41"])
def test_a_path_that_the_data_ends_within_is_refused(path: str) -> None:
    data = data_of(bytes.fromhex(path), build_id=b"id")
    assert refused(data) == ("data-missing", len(data))
    assert decode(data, lenient=True).images == (Image(None, b"id", 0x1000, 0x1100),)


def test_what_a_broken_path_teaches_is_counted_and_unknown() -> None:
    broken = raw("/a/b") + coded(20) + raw("/c/d") + b"\0"
    taught = [coded(code) + b"\0" for code in (32, 33, 34)]
    assert paths_of(broken, *taught, raw("/x/y") + b"\0", coded(35) + b"\0") == [None, "/a", None, None, "/x/y", "/x"]


def test_a_second_broken_path_teaches_nothing_known() -> None:
    assert paths_of(coded(20) + raw("/a/b") + b"\0", coded(32) + raw("x") + b"\0", coded(32) + b"\0") == [None] * 3


def test_every_byte_is_explained() -> None:
    data = data_of(b"\x84" + framework("AppKit", "C"), raw("/a/b") + b"\0", b"\x81\xa0\x01x\0", build_id=b"ab")
    parts, findings = explain(data)
    assert b"".join(part.data for part in parts) == data
    assert [part.offset for part in parts] == [
        len(b"".join(one.data for one in parts[:at])) for at in range(len(parts))
    ]
    assert [part.name for part in parts[:9]] == [
        "info", "platform", "count", "image", "base", "end", "build ID", "expand", "framewk",
    ]  # fmt: skip
    assert [(part.name, part.meaning) for part in parts[-4:]] == [
        ("expand", "code 1, '/usr/lib'"),
        ("expand", "code 32, '/a'"),
        ("str", "'x'"),
        ("end", ""),
    ]
    assert findings == []


@pytest.mark.parametrize("wrong", [5, 10**13, "00", None, Path("map")])
def test_only_bytes_are_read(wrong: Any) -> None:
    for read in (decode, check, explain):
        with pytest.raises(TypeError):
            read(wrong)
