"""Writes a page: one HTML file, which needs nothing else and no network.

The template names its parts as `@NAME@`. `STYLE` and `SCRIPT` are made of the files beside this module, `CSP` lets the
page run this script alone and load nothing at all. Data stands in elements that no browser runs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any, BinaryIO

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_PART = re.compile("@([A-Z]+)@")


def resource(name: str) -> str:
    """The text of a file beside this module."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def plain_data(value: Any) -> str:
    """JSON in which nothing can end the element that it stands in."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).translate(_HTML)


def write_page(
    out: BinaryIO, template: str, *, title: str, styles: Sequence[str], scripts: Sequence[str], data: Mapping[str, str]
) -> None:
    """Write a page from a template, files of styles and scripts in their order, and data by the names of its parts.

    Data comes from `plain_data`, or from `Columns.packed`.
    """
    script = "\n".join(map(resource, scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "CSP": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        "TITLE": escape(title),
        "STYLE": "\n".join(map(resource, styles)),
        "SCRIPT": script,
        **data,
    }
    # Every second piece is the name of a part.
    pieces = _PART.split(resource(template))
    whole = (parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))
    # Text from files may hold what is no text.
    out.writelines(piece.encode("utf-8", "replace") for piece in whole)
