"""The JSON form of an image map.

{"word": 64, "platform": "Linux 6.1 (AMD64)",
 "images": [{"path": "/usr/lib/libc.so.6", "build_id": "93ac61ec", "base": 4096, "end": 8192}]}

`platform`, `path` and `build_id` are null where there is none, and may be left out.
"""

from __future__ import annotations

from typing import Any, TypedDict

from walkback.base.errors import UnreadableError
from walkback.cif import layout
from walkback.cif.imagemap import Image, ImageMap

_IMAGE = {"path": (str, type(None)), "build_id": (str, type(None)), "base": (int,), "end": (int,)}
_MAP = {"word": (int,), "platform": (str, type(None)), "images": (list,)}
_WORDS = {str: "text", int: "a number", list: "a list", type(None): "null"}


class ImageObject(TypedDict):
    """An image, as JSON."""

    path: str | None
    """Its path."""
    build_id: str | None
    """Its build ID, in hexadecimal."""
    base: int
    """Its start."""
    end: int
    """The end of its code."""


class MapObject(TypedDict):
    """An image map, as JSON."""

    word: int
    """The bits of an address."""
    platform: str | None
    """The platform."""
    images: list[ImageObject]
    """The images."""


def to_json(images: ImageMap) -> MapObject:
    """A map as `json.dumps` takes it.

    >>> walkback.cif.to_json(walkback.cif.ImageMap(64, "Linux", ()))
    {'word': 64, 'platform': 'Linux', 'images': []}
    """
    return {
        "word": images.word,
        "platform": images.platform,
        "images": [
            {
                "path": one.path,
                "build_id": one.build_id.hex() if one.build_id else None,
                "base": one.base,
                "end": one.end,
            }
            for one in images.images
        ],
    }


def from_json(value: object) -> ImageMap:
    """The map of such an object, as `json.loads` gives it; raises `UnreadableError` for anything else.

    >>> walkback.cif.from_json({"word": 64, "images": [{"base": 4096, "end": 8192}]}).images
    (Image(path=None, build_id=None, base=4096, end=8192),)
    """
    whole = _checked(value, _MAP, "the map")
    if whole["word"] not in layout.WORDS.values():
        raise UnreadableError(f"words have 16, 32 or 64 bits, and not {whole['word']}")
    images = tuple(_image(one, f"image {number}") for number, one in enumerate(whole["images"]))
    return ImageMap(whole["word"], whole["platform"], images)


def _image(value: object, what: str) -> Image:
    one = _checked(value, _IMAGE, what)
    try:
        build_id = bytes.fromhex(one["build_id"] or "") or None
    except ValueError as error:
        raise UnreadableError(f"the build ID of {what} is not hexadecimal") from error
    return Image(one["path"] or None, build_id, one["base"], one["end"])


def _checked(value: object, shape: dict[str, tuple[type, ...]], what: str) -> dict[str, Any]:
    """An object with these keys; what may be null may be left out."""
    if not isinstance(value, dict):
        raise UnreadableError(f"{what} is not an object")
    strange = next((key for key in value if key not in shape), None)
    if strange is not None:
        raise UnreadableError(f"{what} has the key {strange!r}; known: {', '.join(shape)}")
    for key, kinds in shape.items():
        found = value.get(key)
        if not isinstance(found, kinds) or isinstance(found, bool):
            wanted = " or ".join(_WORDS[kind] for kind in kinds)
            raise UnreadableError(f'"{key}" of {what} is not {wanted}' if key in value else f'{what} has no "{key}"')
    return {key: value.get(key) for key in shape}
