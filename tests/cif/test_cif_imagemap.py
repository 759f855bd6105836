"""Addresses and the images that hold them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from walkback.cif.imagemap import Image, ImageMap

LIBC = Image("/lib/libc.so.6", b"\xab\xcd", 0x1000, 0x3000)
BARE = Image(None, None, 0x8000, 0x9000)


def by_looking(images: ImageMap, address: int) -> int:
    """The number of the last image to begin that holds an address; of two that begin together the last."""
    holding = [
        (one.base, number) for number, one in enumerate(images.images) if one.base <= address < one.end < 1 << 64
    ]
    return max(holding)[1] if holding else -1


@pytest.mark.parametrize("top", [20, 200, 2**64 - 1])
def test_every_address_is_in_the_image_that_begins_last(top: int) -> None:
    chance = random.Random(top)
    for _ in range(300):
        images = []
        for _ in range(chance.randrange(12)):
            base = chance.randrange(top)
            images.append(Image(None, None, base, min(base + chance.randrange(top // 2), top)))
        found = ImageMap(64, "", tuple(images))
        edges = {edge + away for one in images for edge in (one.base, one.end) for away in (-1, 0, 1)}
        addresses = sorted({0, 1, top, *(edge for edge in edges if 0 <= edge < 1 << 64)})
        expected = [by_looking(found, address) for address in addresses]
        assert found.locate(np.array(addresses, np.uint64)).tolist() == expected
        assert [found.find(address) for address in addresses] == [
            found.images[number] if number >= 0 else None for number in expected
        ]


def test_nothing_is_in_no_image() -> None:
    assert ImageMap(64, "", ()).locate([0, 2**64 - 1]).tolist() == [-1, -1]
    assert ImageMap(64, "", ()).find(1) is None
    assert ImageMap(64, "", (Image(None, None, 5, 5), Image(None, None, 9, 4))).find(5) is None


def test_an_address_is_told_by_module_and_offset() -> None:
    images = ImageMap(64, "", (LIBC, BARE))
    assert images.resolve([0x1234, 0x8001, 0x7000]) == ["/lib/libc.so.6+0x234 (abcd)", "unknown+0x1", "0x7000"]


def test_a_return_address_is_told_by_the_call_before_it() -> None:
    images = ImageMap(64, "", (LIBC, LIBC._replace(path="/lib/next", base=0x3000, end=0x4000)))
    assert images.resolve([0x3000], [0x2FFF]) == ["/lib/libc.so.6+0x2000 (abcd)"]
    assert images.resolve([0x3000]) == ["/lib/next+0x0 (abcd)"]


def test_findings_do_not_make_maps_different() -> None:
    assert ImageMap(64, "", (LIBC,)) == ImageMap(64, "", (LIBC,), findings=())
