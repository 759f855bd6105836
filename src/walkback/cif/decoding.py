"""From the bytes of a Compact Image Map to its images.

A path that cannot be read does not fail the map: that image has no path, and a finding says why. Everything else that
breaks a rule is refused, or, leniently, ends what is read or is passed over. The two forms that there are, with a
platform and without, are distinguished by what follows them: read as the other form, a map breaks rules.
"""

from __future__ import annotations

from collections.abc import Callable

from walkback.base.dataclass import dataclass
from walkback.base.findings import ByteFinding
from walkback.base.text import counted
from walkback.cif import layout
from walkback.cif.imagemap import Image, ImageMap
from walkback.cif.pathreader import PathReader

Note = Callable[[int, int, str, str], None]
"""Takes the offset, the size, the name and the meaning of each part."""

_PATH_RULES = frozenset({"path-code", "path-utf8", "path-length"})
_LISTED = 1000
"""Findings that are kept; the others are counted."""
_LONGEST_COUNT = 10
"""As many bytes as a number of 64 bits takes."""


@dataclass(frozen=True, slots=True)
class MapPart:
    """Some bytes that belong together."""

    offset: int
    data: bytes
    name: str
    meaning: str


class _BrokenError(Exception):
    """Nothing behind this place can be read."""


def decode(data: bytes | bytearray | memoryview, *, lenient: bool = False) -> ImageMap:
    """The images of a map.

    Raises `BacktraceError` at the first rule that is broken; leniently only if not even the beginning can be read.
    What was passed over is in the `findings` of the map.

    >>> data = walkback.cif.encode(walkback.capture.images("core.hello").images)
    >>> walkback.cif.decode(data).images[0].path
    '.../hello'
    """
    reader = _read(bytes(memoryview(data)))
    wrong = reader.refused
    if wrong is not None and (not lenient or not reader.begun):
        raise wrong.error()
    return reader.result()


def check(data: bytes | bytearray | memoryview) -> list[ByteFinding]:
    """All that is wrong with a map, or worth knowing, in the order of its bytes.

    >>> data = walkback.cif.encode(walkback.capture.images("core.hello").images)
    >>> [str(finding) for finding in walkback.cif.check(data[:-1])]
    ['offset ...: wrong: image 0: the data ends within the path [data-missing]']
    """
    return list(_read(bytes(memoryview(data))).findings)


def explain(data: bytes | bytearray | memoryview) -> tuple[list[MapPart], list[ByteFinding]]:
    """Every byte of a map with its meaning, as far as it can be read, and what is wrong with it.

    >>> data = walkback.cif.encode(walkback.capture.images("core.hello").images)
    >>> parts, findings = walkback.cif.explain(data)
    >>> parts[0].meaning, findings
    ('version 0, words of 64 bits', [])
    """
    contents = bytes(memoryview(data))
    chosen = _read(contents)
    parts: list[MapPart] = []

    def note(offset: int, size: int, name: str, meaning: str) -> None:
        parts.append(MapPart(offset, contents[offset : offset + size], name, meaning))

    reader = _MapReader(contents, has_platform=chosen.has_platform, note=note)
    return parts, reader.findings


def _read(data: bytes) -> _MapReader:
    """Read in the form that Swift writes, unless only the first form gives a map that breaks no rule."""
    reader = _MapReader(data, has_platform=True)
    if any(not one.note for one in reader.findings):
        other = _MapReader(data, has_platform=False)
        if all(one.note for one in other.findings):
            return other
    return reader


class _MapReader:
    """Reads a map once, from its first byte to its last."""

    def __init__(self, data: bytes, *, has_platform: bool, note: Note | None = None) -> None:
        self.has_platform = has_platform
        self.begun = False
        """Whether the beginning is good, up to the first image."""
        self.findings: list[ByteFinding] = []
        self.refused: ByteFinding | None = None
        """The first of those that a strict reader does not pass over."""
        self._unlisted = 0
        self._data, self._pos, self._note = data, 0, note
        self._paths = PathReader(data, note)
        self._word, self._platform = 64, ""
        self._images: list[Image] = []
        try:
            self._begin()
            self._read_images()
            if self._pos < len(data):
                self._found(self._pos, "trailing", f"behind the last image: {counted(len(data) - self._pos, 'byte')}")
                self._part(self._pos, "trailing", "")
        except _BrokenError:
            pass
        self.findings.sort(key=lambda one: one.offset)
        if self._unlisted:
            self.findings.append(
                ByteFinding(self._pos, "more", f"{self._unlisted} more findings are not listed", note=True)
            )

    def result(self) -> ImageMap:
        platform = self._platform if self.has_platform else None
        return ImageMap(self._word, platform, tuple(self._images), tuple(self.findings))

    # Parts

    def _begin(self) -> None:
        info = self._take(1, "the info byte")[0]
        version, size = info >> layout.VERSION_SHIFT, info & layout.SIZE_MASK
        if version != layout.VERSION:
            self._break(0, "version", f"this is version {version}; known is {layout.VERSION}")
        if size not in layout.WORDS:
            self._break(0, "word-size", "the size of words has the value 3, which is reserved")
        self._word = layout.WORDS[size]
        self._part(0, "info", f"version {version}, words of {self._word} bits")
        if self.has_platform:
            self._read_platform()
        start = self._pos
        if not self.has_platform:
            self._found(start, "no-platform", "this is the first form of the format, without a platform", note=True)
        self._count = self._read_count("the number of images", layout.MOST_IMAGES, "image-count")
        self._part(start, "count", counted(self._count, "image"))
        self.begun = True

    def _read_platform(self) -> None:
        start = self._pos
        length = self._take(1, "the length of the platform")[0]
        text = self._take(length, "the platform")
        try:
            self._platform = text.decode()
        except UnicodeDecodeError as error:
            self._platform = text.decode(errors="replace")
            self._found(start + 1 + error.start, "platform-utf8", "the platform is not UTF-8")
        self._part(start, "platform", repr(self._platform))

    def _read_images(self) -> None:
        before, end = 0, 0
        for number in range(self._count):
            start = self._pos
            image = self._read_image(number, before)
            if image.base < before:
                self._found(start, "order", f"image {number} begins at {image.base:#x}, below the one before it")
            elif image.base < end:
                text = f"image {number} begins at {image.base:#x}, within one before it"
                self._found(start, "overlap", text, note=True)
            before, end = image.base, max(end, image.end)

    def _read_image(self, number: int, before: int) -> Image:
        start = self._pos
        header = self._take(1, f"image {number} of {self._count}")[0]
        relative = bool(header & layout.RELATIVE)
        acount = (header >> layout.ACOUNT_SHIFT & layout.COUNT_MASK) + 1
        ecount = (header & layout.COUNT_MASK) + 1
        if header & layout.RESERVED:
            self._found(start, "reserved-bit", f"image {number}: bit 6 of the header is set, which is reserved")
        form = "relative" if relative else "absolute"
        self._part(start, "image", f"{number}: {form} base of {counted(acount, 'byte')}, end of {ecount}")
        base = self._read_address(acount, number, is_difference=relative)
        base = (base + before if relative else base) % (1 << self._word)
        self._part(self._pos - acount, "base", f"{base:#x}")
        end = (base + self._read_address(ecount, number, is_difference=True)) % (1 << self._word)
        self._part(self._pos - ecount, "end", f"{end:#x}")
        if end <= base:
            text = f"image {number}: the end of text, {end:#x}, is not above the base, {base:#x}"
            self._found(self._pos - ecount, "end-of-text", text)
        place = self._pos
        length = self._read_count(f"image {number}: the length", layout.LONGEST_BUILD_ID, "build-id-length")
        build_id = self._take(length, f"image {number}: the build ID") or None
        self._part(place, "build ID", build_id.hex() if build_id else "none")
        path = self._read_path(number, Image(None, build_id, base, end))
        self._images.append(Image(path, build_id, base, end))
        return self._images[-1]

    def _read_path(self, number: int, image: Image) -> str | None:
        path, self._pos, trouble = self._paths.read(self._pos)
        if trouble is not None:
            self._found(trouble.offset, trouble.rule, f"image {number}: {trouble.message}")
            if trouble.rule == "data-missing":
                self._images.append(image)
                raise _BrokenError
        return path

    def _read_address(self, size: int, number: int, *, is_difference: bool) -> int:
        """Read a number with its sign; if it is wider than a word, only its lowest bits count.

        Swift extends addresses to 64 bits before it writes their difference, which can take one more byte for the sign.
        """
        start = self._pos
        value = int.from_bytes(self._take(size, f"image {number}: an address"), "big", signed=True)
        if size * 8 > self._word:
            fits = is_difference and size * 8 == self._word + 8 and abs(value) < 1 << self._word
            text = f"image {number}: {counted(size, 'byte')} do not fit into {self._word} bits"
            self._found(start, "wide-operand", text, note=fits)
        return value

    def _read_count(self, what: str, most: int, rule: str) -> int:
        start, value = self._pos, 0
        while True:
            byte = self._take(1, what)[0]
            value = value << layout.COUNT_BITS | byte & ~layout.MORE
            if value > most or self._pos - start > _LONGEST_COUNT:
                self._break(start, rule, f"{what} is above {most}, or takes more than {_LONGEST_COUNT} bytes")
            if not byte & layout.MORE:
                break
            if value == 0 and self._pos == start + 1:
                self._found(start, "long-count", f"{what} begins with a byte that adds nothing", note=True)
        return value

    # What they are read by

    def _take(self, size: int, what: str) -> bytes:
        data = self._data[self._pos : self._pos + size]
        if len(data) < size:
            self._break(len(self._data), "data-missing", f"the data ends within {what}")
        self._pos += size
        return data

    def _part(self, start: int, name: str, meaning: str) -> None:
        if self._note is not None:
            self._note(start, (len(self._data) if name == "trailing" else self._pos) - start, name, meaning)

    def _break(self, offset: int, rule: str, message: str) -> None:
        self._found(offset, rule, message)
        raise _BrokenError

    def _found(self, offset: int, rule: str, message: str, *, note: bool = False) -> None:
        finding = ByteFinding(offset, rule, message, note)
        passed_over = note or rule in _PATH_RULES
        if not passed_over and (self.refused is None or offset < self.refused.offset):
            self.refused = finding
        if len(self.findings) < _LISTED:
            self.findings.append(finding)
        else:
            self._unlisted += 1
