"""From images to the bytes of a Compact Image Map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from walkback.base.errors import ArgumentError, InexpressibleError
from walkback.cif import layout
from walkback.cif.imagemap import Image, ImageMap
from walkback.cif.pathwriter import Way, written

Style = Literal["short", "swift"]
STYLES: tuple[str, ...] = get_args(Style)
_WAYS: tuple[Way, ...] = ("taught", "swift")


def encode(images: ImageMap, *, style: Style = "short") -> bytes:
    """The bytes of a map, its images by rising base address.

    Addresses take the fewest bytes there can be. Of two ways to write paths the one with fewer bytes is taken; "swift"
    makes the choices of Swift's writer. Raises `InexpressibleError` for what the format cannot say.

    >>> image = walkback.cif.Image("/usr/bin/true", None, 0x400000, 0x401000)
    >>> images = walkback.cif.ImageMap(64, "Linux", (image,))
    >>> walkback.cif.encode(images).hex()
    '02054c696e757801114000001000000d2f7573722f62696e2f7472756500'
    """
    if style not in STYLES:
        raise ArgumentError(f"there is no style {style!r}; known: {', '.join(STYLES)}")
    size = next((size for size, word in layout.WORDS.items() if word == images.word), None)
    if size is None:
        raise ArgumentError(f"words have 16, 32 or 64 bits, and not {images.word}")
    ordered = sorted(images.images, key=lambda one: one.base)
    _refuse(images, ordered)
    as_swift = style == "swift"
    out = bytearray((layout.VERSION << layout.VERSION_SHIFT | size,))
    if images.platform is not None:
        platform = images.platform.encode()
        out += bytes((len(platform),)) + platform
    out += _count(len(ordered), as_swift=as_swift)
    paths = written([(one.path or "").encode() for one in ordered], ("swift",) if as_swift else _WAYS)
    before = whole = 0
    for one, path in zip(ordered, paths, strict=True):
        out += _addresses(one, before, images.word, as_swift=as_swift)
        build_id = one.build_id or b""
        out += _count(len(build_id), as_swift=as_swift) + build_id
        out += path
        before = one.base
        whole += len((one.path or "").encode())
    if whole > layout.path_room(len(out)):
        # Readers bound what so few bytes can be made into.
        raise InexpressibleError(f"the paths are longer than {layout.path_room(len(out))} bytes together")
    return bytes(out)


def _refuse(images: ImageMap, ordered: Sequence[Image]) -> None:
    """Refuse what the format, or any reader, does not take."""
    if images.platform is not None and len(_utf8(images.platform, "the platform")) > layout.LONGEST_PLATFORM:
        message = f"a platform has {layout.LONGEST_PLATFORM} bytes at most, and not {len(images.platform.encode())}"
        raise InexpressibleError(message)
    if len(ordered) > layout.MOST_IMAGES:
        raise InexpressibleError(f"a map has {layout.MOST_IMAGES} images at most, and not {len(ordered)}")
    for one in ordered:
        name = one.path or f"the image at {one.base:#x}"
        if not 0 <= one.base < one.end < 1 << images.word:
            message = f"its code is from {one.base:#x} to {one.end:#x}, which {images.word} bits cannot say"
            raise InexpressibleError(message, function=name)
        if len(one.build_id or b"") > layout.LONGEST_BUILD_ID:
            raise InexpressibleError(f"a build ID has {layout.LONGEST_BUILD_ID} bytes at most", function=name)
        if len(_utf8(one.path or "", "the path")) > layout.LONGEST_PATH:
            raise InexpressibleError(f"a path has {layout.LONGEST_PATH} bytes at most", function=name[:100])


def _utf8(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InexpressibleError(f"{what} {text.encode(errors='backslashreplace').decode()} is not UTF-8") from None


def _count(value: int, *, as_swift: bool) -> bytes:
    """7 bits a byte. Swift's writer puts a byte of nothing before numbers of 7, 14, ... bits."""
    bits = value.bit_length()
    more = bits // layout.COUNT_BITS if as_swift else max(bits - 1, 0) // layout.COUNT_BITS
    mask = layout.MORE - 1
    first = [layout.MORE | value >> layout.COUNT_BITS * number & mask for number in range(more, 0, -1)]
    return bytes((*first, value & mask))


def _addresses(image: Image, before: int, word: int, *, as_swift: bool) -> bytes:
    """The header with the base, absolute if that is no longer, and the end."""
    base = _signed(image.base, word)
    # Swift takes differences of what is extended to 64 bits, which can be longer.
    away = base - _signed(before, word)
    away = _signed(away, 64 if as_swift else word)
    reach = _signed(image.end, word) - base if as_swift else image.end - image.base
    reach = _signed(reach, 64 if as_swift else word)
    absolute, relative, end = _bytes(base), _bytes(away), _bytes(reach)
    is_relative = len(relative) < len(absolute)
    chosen = relative if is_relative else absolute
    header = (layout.RELATIVE if is_relative else 0) | len(chosen) - 1 << layout.ACOUNT_SHIFT | len(end) - 1
    return bytes((header,)) + chosen + end


def _signed(value: int, word: int) -> int:
    """A number modulo the word, as the signed one that it stands for."""
    value %= 1 << word
    return value - (1 << word) if value >> word - 1 else value


def _bytes(value: int) -> bytes:
    """The fewest bytes that say a signed number."""
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return value.to_bytes(size, "big", signed=True)
