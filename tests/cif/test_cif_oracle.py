"""The package's reader and writer against the plain ones, on random and damaged maps; and the shortest there is."""

from __future__ import annotations

import itertools
import random

import pytest

from cif import plaincif
from cif.plaincif import BrokenError, Chosen
from effort import rounds
from walkback.base.errors import BacktraceError
from walkback.cif import layout
from walkback.cif.decoding import check, decode, explain
from walkback.cif.encoding import Style
from walkback.cif.encoding import encode as encode_images
from walkback.cif.imagemap import Image, ImageMap
from walkback.cif.pathwriter import written

COUNT = rounds(3000, quick=600)
LEAVES = ("libc.so.6", "a", "lib", "Kit.framework/Kit", "Kit.framework/Versions/A/Kit", "x/y", "ß", "libx\\y")
FOLDERS = ("/lib", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/opt/a/b", "/a", "", "/a/b/c/d", "C:\\Program Files (x86)")


def random_map(chance: random.Random) -> ImageMap:
    word = chance.choice([16, 32, 64])
    top = 2**word - 1
    images, base = [], 0
    for _ in range(chance.choice([0, 1, 2, 5, 20])):
        jump = chance.choice([1, 0x80, 0x1000, 1 << word // 2, top // 3])
        base = base + chance.randrange(jump) if chance.random() < 0.8 else chance.randrange(top)
        base %= top
        end = min(base + 1 + chance.randrange(chance.choice([1, 0x80, 0x100, 0x8000, top])), top)
        path = None if chance.random() < 0.1 else f"{chance.choice(FOLDERS)}/{chance.choice(LEAVES)}"
        images.append(Image(path, chance.randbytes(chance.choice([0, 1, 16, 20, 130])) or None, base, end))
    images.sort(key=lambda one: one.base)
    return ImageMap(word, chance.choice(["", "Linux 6.1 (AMD64)", "ä" * 127]), tuple(images))


def plainly(images: ImageMap) -> list[tuple[int, int, bytes, bytes | None]]:
    return [(one.base, one.end, one.build_id or b"", one.path.encode() if one.path else None) for one in images.images]


@pytest.mark.parametrize("style", ["short", "swift"])
def test_what_is_written_the_plain_reader_reads(style: Style) -> None:
    chance = random.Random(f"written {style}")
    for _ in range(COUNT):
        images = random_map(chance)
        data = encode_images(images, style=style)
        read = plaincif.read(data)
        assert (read.word, read.platform) == (images.word, images.platform)
        assert [(one.base, one.end, one.build_id, one.path) for one in read.images] == plainly(images)
        assert decode(data) == images
        assert all(one.note for one in check(data))


def written_plainly(chance: random.Random) -> bytes:
    """A map with any choices that a writer has, good or nearly so."""
    images = random_map(chance)
    chosen = [
        Chosen(
            one.base,
            one.end,
            one.build_id or b"",
            plaincif.random_path(chance, 32 + 4 * len(images.images)),
            relative=chance.random() < 0.5,
            wider=chance.choice([0, 0, 1, 7]),
            wider_end=chance.choice([0, 0, 1, 7]),
        )
        for one in images.images
    ]
    assert images.platform is not None
    return plaincif.write(images.word, images.platform, chosen)


def agree(data: bytes) -> bool:
    """Whether both readers say the same; what is good to them."""
    try:
        expected = plaincif.read(data)
    except BrokenError:
        expected = None
    try:
        found = decode(data)
    except BacktraceError:
        found = None
    if expected is None or found is None:
        # The plain reader does not know the form without a platform.
        assert expected is None, data.hex()
        assert found is None or found.platform is None, data.hex()
        assert any(not one.note for one in check(data)) or found is not None
        return False
    assert (found.word, found.platform) == (expected.word, expected.platform), data.hex()
    assert plainly(found) == [(one.base, one.end, one.build_id, one.path) for one in expected.images], data.hex()
    broken = [one for one in found.findings if one.rule in {"path-code", "path-utf8"}]
    assert len(broken) == sum(one.broken for one in expected.images), data.hex()
    return True


def test_what_the_plain_writer_writes_is_read_alike() -> None:
    chance = random.Random("plainly")
    assert all(agree(written_plainly(chance)) for _ in range(COUNT))


@pytest.mark.soak
def test_hostile_maps_are_read_alike() -> None:
    chance = random.Random("damaged")
    good = 0
    for _ in range(COUNT):
        data = bytearray(written_plainly(chance))
        for _ in range(chance.choice([1, 1, 2, 5])):
            kind, place = chance.random(), chance.randrange(len(data) + 1)
            if kind < 0.6 and place < len(data):
                data[place] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            elif kind < 0.8:
                del data[place : place + chance.choice([1, 2, 9])]
            else:
                data[place:place] = chance.randbytes(chance.choice([1, 2, 9]))
        good += agree(bytes(data))
        lenient(bytes(data))
    assert 0.02 < good / COUNT < 0.9


def lenient(data: bytes) -> None:
    """A lenient reader finds no more wrong than there is, and only refuses what has no beginning."""
    findings = check(data)
    try:
        found = decode(data, lenient=True)
    except BacktraceError:
        assert next(one.rule for one in findings if not one.note) in {
            "version",
            "word-size",
            "data-missing",
            "image-count",
            "platform-utf8",
        }
        return
    assert list(found.findings) == findings
    assert all(0 <= one.base < 2**found.word for one in found.images)
    parts, again = explain(data)
    assert again == findings
    explained = b"".join(part.data for part in parts)
    assert data.startswith(explained)
    assert len(explained) == len(data) or any(one.rule == "data-missing" for one in findings) or len(findings) > 0


def test_addresses_take_the_fewest_bytes() -> None:
    chance = random.Random("addresses")
    for _ in range(COUNT):
        images = random_map(chance)
        bare = ImageMap(images.word, "", tuple(one._replace(path=None, build_id=None) for one in images.images))
        bases = [0, *(one.base for one in bare.images)]
        least = sum(
            plaincif.shortest_addresses(one.base, one.end, before, bare.word) + 2
            for one, before in zip(bare.images, bases, strict=False)
        )
        assert len(encode_images(bare)) == 2 + len(plaincif.counted(len(bare.images))) + least


def test_a_tie_between_the_forms_of_a_base_is_absolute() -> None:
    images = ImageMap(64, "", (Image(None, None, 0x10, 0x20), Image(None, None, 0x30, 0x40)))
    assert encode_images(images).hex(" ") == "02 00 02 00 10 10 00 00 00 30 10 00 00"


@pytest.mark.whole
def test_one_path_takes_the_fewest_bytes_there_can_be() -> None:
    pieces = ("/lib", "/usr/lib", "/a", "x", "\\", "/K.framework/K", "/K.framework/Versions/A/K")
    known = {code: prefix.encode() for code, prefix in plaincif.FIXED.items()}
    for count in range(4):
        for chosen in itertools.product(pieces, repeat=count):
            path = "".join(chosen).encode()
            (made,) = written([path], ["taught"])
            assert len(made) == plaincif.shortest_path(path, known, most=len(made)), path


def test_a_path_with_many_prefixes_known_takes_the_fewest_bytes() -> None:
    """The last of several, after which nothing is worth teaching."""
    folders = [f"/{''.join(one)}" for one in itertools.product("ab", repeat=6)]
    before = [("".join(folders[at : at + 10]) + "/x").encode() for at in range(0, 60, 10)]
    learned = plaincif.read(
        plaincif.write(64, "", [Chosen(at, at + 1, b"", made) for at, made in enumerate(written(before, ["swift"]))])
    )
    assert [one.path for one in learned.images] == before
    for last in ("/aaaaaa/aaaaab/y", "/abbaaa/abbaab/y", "/bbbbbb/x", "/usr/lib/aaaaaa/libaaaaaa"):
        paths = [*before, last.encode()]
        instructions = written(paths, ["taught"])
        table: list[bytes | None] = []
        for made in instructions[:-1]:
            plaincif.path(list(made), {code: one.encode() for code, one in plaincif.FIXED.items()}, table)
        known = {code: one.encode() for code, one in plaincif.FIXED.items()}
        known |= {32 + number: prefix for number, prefix in enumerate(table) if prefix}
        assert max(known) > 70
        assert len(instructions[-1]) == plaincif.shortest_path(paths[-1], known, most=len(instructions[-1])), last


def test_a_map_is_never_longer_than_swifts() -> None:
    chance = random.Random("longer")
    for _ in range(COUNT):
        images = random_map(chance)
        assert len(encode_images(images)) <= len(encode_images(images, style="swift"))


def test_fixed_prefixes_are_the_same() -> None:
    assert [one.encode() for one in plaincif.FIXED.values()] == list(layout.PREFIXES)
