"""Writing image maps: what is refused, in which order images stand, and what Swift's writer chooses."""

from __future__ import annotations

import time
from typing import Any

import pytest

from walkback.base.errors import InexpressibleError
from walkback.cif.decoding import decode
from walkback.cif.encoding import Style, encode
from walkback.cif.imagemap import Image, ImageMap


def mapped(*paths: str | None) -> ImageMap:
    return ImageMap(64, "", tuple(Image(path, None, at, at + 1) for at, path in enumerate(paths)))


def paths(images: ImageMap, style: Style) -> list[str]:
    """The instructions of each path, in hexadecimal."""
    data = encode(images, style=style)
    assert decode(data) == images
    starts = [
        index for index in range(len(data)) if data[index : index + 4] in {bytes([0, at, 1, 0]) for at in range(9)}
    ]
    return [data[start + 4 : end].hex(" ") for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]


def test_images_stand_by_rising_base() -> None:
    one, two = Image("/b", None, 0x2000, 0x3000), Image("/a", b"\1", 0x1000, 0x1800)
    assert decode(encode(ImageMap(64, "", (one, two)))).images == (two, one)


def test_no_platform_is_the_first_form() -> None:
    images = ImageMap(32, None, (Image("/a/b", b"\1", 0x1000, 0x1800),))
    data = encode(images)
    assert data.hex(" ") == "01 01 09 10 00 08 00 01 01 04 2f 61 2f 62 00"
    assert decode(data) == images


def test_nothing_known_of_an_image_is_written_as_nothing() -> None:
    assert encode(ImageMap(64, "", (Image("", b"", 1, 2),))) == encode(mapped_at_one())


def mapped_at_one() -> ImageMap:
    return ImageMap(64, "", (Image(None, None, 1, 2),))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (ImageMap(64, "x" * 256, ()), "a platform has 255 bytes at most, and not 256"),
        (ImageMap(64, "\udcff", ()), "the platform .* is not UTF-8"),
        (ImageMap(64, "", (Image("/a\udcff", None, 1, 2),)), "the path .* is not UTF-8"),
        (ImageMap(64, "", (Image("/a", None, 2, 2),)), "/a: its code is from 0x2 to 0x2, which 64 bits cannot say"),
        (ImageMap(64, "", (Image(None, None, 1, 1 << 64),)), "the image at 0x1: its code is"),
        (ImageMap(16, "", (Image("/a", None, 1, 1 << 16),)), "which 16 bits cannot say"),
        (ImageMap(32, "", (Image("/a", None, -1, 1),)), "which 32 bits cannot say"),
        (ImageMap(64, "", (Image("/a", bytes(1025), 1, 2),)), "a build ID has 1024 bytes at most"),
        (ImageMap(64, "", (Image("/" * 65537, None, 1, 2),)), "a path has 65536 bytes at most"),
        (ImageMap(64, "", (Image(None, None, 1, 2),) * 1048577), "a map has 1048576 images at most, and not 1048577"),
    ],
)
def test_what_no_reader_takes_is_not_written(images: ImageMap, message: str) -> None:
    with pytest.raises(InexpressibleError, match=message):
        encode(images)


def test_there_are_these_words_and_styles() -> None:
    with pytest.raises(ValueError, match="words have 16, 32 or 64 bits, and not 8"):
        encode(ImageMap(8, "", ()))
    style: Any = "long"
    with pytest.raises(ValueError, match="there is no style 'long'; known: short, swift"):
        encode(ImageMap(64, "", ()), style=style)


def test_what_is_at_a_limit_is_written() -> None:
    one = Image("/" * 65536, bytes(1024), 0, (1 << 64) - 1)
    images = ImageMap(64, "ä" * 127, (one,))
    assert decode(encode(images)) == images


# Paths


def test_swift_takes_the_longest_prefix_again_and_again() -> None:
    images = mapped(
        "/usr/lib/libz.so", "/usr/lib/x/y/a.so", "/usr/lib/x/b.so", "/lib64/ld.so", "/x/y/lib/z", "/usr/lib"
    )
    assert paths(images, "swift") == [
        "81 80 04 7a 2e 73 6f 00",
        "81 09 2f 78 2f 79 2f 61 2e 73 6f 00",
        "81 a0 05 2f 62 2e 73 6f 00",
        "80 08 36 34 2f 6c 64 2e 73 6f 00",
        "a1 80 02 2f 7a 00",
        "81 00",
    ]


def test_swifts_frameworks_follow_any_prefix() -> None:
    images = mapped("/System/Library/Frameworks/A.framework/Versions/C/A", "/B.framework/Versions/A/B", None)
    assert paths(images, "swift") == ["84 40 43 41", "40 41 42", "00"]


def test_a_name_that_is_too_long_is_no_framework() -> None:
    for size, opcode in ((64, "7f"), (65, "3f")):
        name = "n" * size
        (made,) = paths(mapped(f"/{name}.framework/Versions/A/{name}"), "swift")
        assert made.startswith(opcode)


def test_swift_writes_a_byte_of_nothing_before_numbers_of_seven_bits() -> None:
    images = ImageMap(64, "", tuple(Image(None, None, at, at + 1) for at in range(64)))
    assert encode(images, style="swift")[2:4].hex() == "8040"
    assert encode(images)[2] == 0x40
    images = ImageMap(64, "", tuple(Image(None, None, at, at + 1) for at in range(128)))
    assert encode(images, style="swift")[2:4].hex() == encode(images)[2:4].hex() == "8100"


def test_codes_of_more_than_a_byte_are_written_whole() -> None:
    """Swift's writer cuts those from 320 on, and its reader then takes another prefix."""
    deep = "".join(f"/{number}" for number in range(40))
    many = [f"/{letter}{deep}/x" for letter in "abcdefghij"]
    images = mapped(*many, *[path + "y" for path in many])
    for style in ("swift", "short"):
        assert decode(encode(images, style=style)) == images


def test_a_folder_that_many_share_is_taught_whole() -> None:
    images = mapped(*[f"/usr/lib/x86_64-linux-gnu/{letter}.so" for letter in "abcdefghi"])
    few = mapped(*[one.path for one in images.images[:7]])
    assert paths(few, "short")[:2] == [
        "81 16 2f 78 38 36 5f 36 34 2d 6c 69 6e 75 78 2d 67 6e 75 2f 61 2e 73 6f 00",
        "81 a0 05 2f 62 2e 73 6f 00",
    ]
    assert paths(images, "short")[1] == "a2 05 2f 62 2e 73 6f 00"
    assert len(encode(images)) < len(encode(images, style="swift"))


def test_swift_takes_differences_of_what_is_extended_to_64_bits() -> None:
    images = ImageMap(16, "", (Image(None, None, 29214, 40703),))
    data = encode(images, style="swift")
    assert data.hex() == "0000010a721eff2ce10000"
    read = decode(data)
    assert read.images == images.images
    assert [(one.rule, one.note) for one in read.findings] == [("wide-operand", True)]
    assert len(encode(images)) < len(data)


def test_paths_made_to_be_worst_take_no_time() -> None:
    started = time.process_time()
    images = mapped(*("/" * 4096 if number % 2 else f"{number}/a" * 1000 for number in range(200)))
    assert decode(encode(images)) == images
    assert time.process_time() - started < 60
