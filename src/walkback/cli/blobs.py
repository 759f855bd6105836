"""What `cbf` and `cif` take as INPUT: a file, standard input or the bytes themselves, in any form that they come in.

Bytes that were copied out of a log are hexadecimal or base64. Swift keeps a backtrace in JSON: an object with
`architecture`, `backtrace` (CBF as base64) and, if images were captured, `imageMap` (CIF), which may be inside of more.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, UnreadableError
from walkback.cli.paths import STREAM, bounded, standard_input

FORMS = ("auto", "bytes", "hex", "base64", "swift")

INPUT = click.argument("source", metavar="[INPUT]", default="-", type=STREAM)
FROM = click.option(
    "--from",
    "form",
    type=click.Choice(FORMS),
    default="auto",
    show_default=True,
    help="Format of INPUT; swift is the JSON of Swift's runtime.",
)

_LARGEST = 1 << 28
"""Bytes that are read at once."""
_DEEPEST = 200
"""Levels of JSON that are searched."""
_FIRST_TEXT = 4
"""CBF and CIF begin with a smaller byte, for version 0."""
_SPACE = re.compile(rb"\s+")
_HEX = re.compile(rb"(?:0[xX])?[0-9a-fA-F]{2}(?:[\s:,]*(?:0[xX])?[0-9a-fA-F]{2})*[\s:,]*")
_BETWEEN = re.compile(rb"[\s:,]+|0[xX]")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]+={0,2}")


@dataclass(frozen=True, slots=True)
class Blob:
    """Some bytes, and where they are from."""

    name: str
    data: bytes
    images: bytes | None = None
    """The CIF that stands beside a CBF in Swift's JSON."""
    trouble: str | None = None
    """Why that cannot be read."""


def read_blob(source: str, form: str = "auto", key: str = "backtrace") -> Blob:
    """The one blob of an input; of several in Swift's JSON the first."""
    return read_blobs(source, form, key)[0]


def read_blobs(source: str, form: str = "auto", key: str = "backtrace") -> list[Blob]:
    """All blobs of an input, at least one; only Swift's JSON has several.

    In JSON, `key` selects them: "backtrace" or "imageMap". Raises UnreadableError, and MissingError for JSON without
    such a blob.
    """
    name, data = _input(source, form)
    found = list(_blobs(name, data, form, key))
    if not found:
        message = f'no object in this JSON has a blob "{key}"'
        raise MissingError(message, file=name)
    return found


def stream_blob(name: str, stream: BinaryIO) -> Blob:
    """What is left of a stream as one blob of bytes."""
    return Blob(name, b"".join(bounded(stream.read, name, _LARGEST)))


def coded(data: bytes, coding: str | None) -> bytes:
    """The bytes as they are written: as hexadecimal or base64 text, or as they are."""
    if coding is None:
        return data
    return (data.hex().encode() if coding == "hex" else base64.b64encode(data)) + b"\n"


def read_whole(source: str) -> bytes:
    """A file, a pipe by name, or standard input."""
    try:
        return _read(source)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error), file=source) from error


def _read(source: str) -> bytes:
    stream = standard_input(source)
    with Path(source).open("rb") if stream is None else contextlib.nullcontext(stream) as opened:
        return b"".join(bounded(opened.read, source, _LARGEST))


def _input(source: str, form: str) -> tuple[str, bytes]:
    """The name and the bytes of a file or of standard input; else the argument is what is meant."""
    try:
        # An empty path would be the folder that one is in.
        return source, _read(source or "\0")
    except (OSError, ValueError) as error:
        text = os.fsencode(source)
        # A long literal is no file name that the system takes.
        is_no_name = isinstance(error, FileNotFoundError | ValueError) or error.errno == errno.ENAMETOOLONG
        if is_no_name and (form in {"hex", "base64"} or _is_literal(text)):
            return "argument", text
        message = "there is no such file, and it is not CBF or CIF in hexadecimal or base64"
        if not is_no_name:
            message = f"cannot read: {error}"
        raise UnreadableError(message, file=source) from error


def _is_literal(text: bytes) -> bool:
    """Whether text stands for bytes that begin as CBF and CIF do; a mistyped name of a file hardly does."""
    found = _from_hex(text)
    if found is None:
        found = _from_base64(text)
    return found is not None and len(found) > 0 and found[0] < _FIRST_TEXT


def _blobs(name: str, data: bytes, form: str, key: str) -> Iterator[Blob]:
    text = data.strip()
    if form == "bytes":
        yield Blob(name, data)
    elif form == "swift" or (form == "auto" and text[:1] in (b"{", b"[") and _is_json(text)):
        yield from _swift(name, text, key)
    elif form in ("hex", "base64"):
        found = _from_hex(text) if form == "hex" else _from_base64(text)
        if found is None:
            message = f"this is not {'hexadecimal' if form == 'hex' else form}"
            raise UnreadableError(message, file=name)
        yield Blob(name, found)
    else:
        yield Blob(name, _guessed(data, text))


def _guessed(data: bytes, text: bytes) -> bytes:
    """The bytes that text stands for; anything that is no such text is the bytes themselves.

    No text begins with a byte that CBF and CIF begin with.
    """
    if not data or data[0] < _FIRST_TEXT:
        return data
    found = _from_hex(text)
    if found is None:
        found = _from_base64(text)
    return data if found is None else found


def _from_hex(text: bytes) -> bytes | None:
    """The bytes of hexadecimal text; pairs may be set apart."""
    if not _HEX.fullmatch(text):
        return None
    return bytes.fromhex(_BETWEEN.sub(b"", text).decode())


def _from_base64(text: bytes) -> bytes | None:
    """The bytes of base64 text, of either alphabet; the padding may be missing."""
    joined = _SPACE.sub(b"", text)
    if not _BASE64.fullmatch(joined):
        return None
    bare = joined.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(bare + b"=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def parsed_json(text: bytes, name: str | None = None) -> object:
    """The value that a text of JSON is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"this is not JSON: {error}"
        raise UnreadableError(message, file=name) from error


def _swift(name: str, text: bytes, key: str) -> Iterator[Blob]:
    """Every blob of that name in JSON, at whatever depth, in its order."""
    stack: list[tuple[str, object, int]] = [("", parsed_json(text, name), 0)]
    while stack:
        place, value, depth = stack.pop()
        inner: list[tuple[str, object]] = []
        if isinstance(value, dict):
            blob = value.get(key)
            if isinstance(blob, str):
                yield _decoded(name, place, value, key, blob)
            inner = [(f"{place}.{word}" if place else word, one) for word, one in value.items()]
        elif isinstance(value, list):
            inner = [(f"{place}[{number}]", one) for number, one in enumerate(value)]
        if depth < _DEEPEST:
            stack.extend((where, one, depth + 1) for where, one in reversed(inner))


def _decoded(name: str, place: str, value: dict[str, object], key: str, blob: str) -> Blob:
    where = f"{name}: {place}" if place else name
    data = _from_base64(blob.encode()) if blob else b""
    if data is None:
        message = f'"{key}" is not base64'
        raise UnreadableError(message, file=where)
    images = value.get("imageMap")
    if key != "backtrace" or not isinstance(images, str):
        return Blob(where, data)
    beside = _from_base64(images.encode())
    return Blob(where, data, beside, None if beside is not None else '"imageMap" is not base64')
