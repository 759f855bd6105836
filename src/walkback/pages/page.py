"""Writes a page: one HTML file, which needs nothing else and no network.

All pages have one head; the template of a page is its body. Both name their parts as `@NAME@`. `STYLE` is made of files
and `SCRIPT` of modules, `CSP` lets the page run this script alone and load nothing at all. Data stands in elements that
no browser runs.
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

import numpy as np

from walkback.base.arrays import Numbers
from walkback.base.render import LineForm, render
from walkback.pages.scripts import joined_script

_HTML = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""JSON itself spells out what is not ASCII."""
_PART = re.compile("@([A-Z]+)@")


def plain_data(value: Any) -> str:
    """A value as JSON for a page, in which nothing can end the element that it stands in.

    Arrays of integers are written like lists of them, in a tenth of the time; they stand in dictionaries with texts as
    keys.
    """
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return "{" + ",".join(f"{plain_data(key)}:{plain_data(one)}" for key, one in value.items()) + "}"
    if isinstance(value, np.ndarray):
        return _list_of_integers(value)
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for mark, spelled in _HTML.items():
        text = text.replace(mark, spelled)  # which takes a fiftieth of the time of `translate`
    return text


def _list_of_integers(column: Numbers) -> str:
    if column.dtype.kind not in "iu":
        raise TypeError(f"a page has arrays of integers only, not of {column.dtype}")
    kind = "unsigned" if column.dtype.kind == "u" else "decimal"
    forms = LineForm(b"["), LineForm((kind, column)), LineForm(b"]")
    pieces = render(*forms, np.zeros(1, np.int64), np.full(1, len(column), np.int64), between=b",")
    return b"".join(map(bytes, pieces)).decode()


def write_page(
    out: BinaryIO,
    package: str,
    template: str,
    *,
    title: str,
    styles: Sequence[str],
    script: str,
    data: Mapping[str, str],
    more_policy: str = "",
) -> str:
    """Write a page: the head of all, the body of a template, files of styles in their order, a script, data by parts.

    The paths of styles and of the script's module count from walkback's folder; the template is a file of a package.
    Data comes from `plain_data`, or from `Columns.packed`. Returns the page's content policy, with `more_policy`.
    """
    text = joined_script(script)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:{more_policy}"
    parts = {
        "CSP": policy,
        "TITLE": escape(title),
        "STYLE": "\n".join(files("walkback").joinpath(name).read_text(encoding="utf-8") for name in styles),
        "SCRIPT": text,
        **data,
    }
    # Every second piece is the name of a part.
    head = files(__package__).joinpath("head.html").read_text(encoding="utf-8")
    pieces = _PART.split(head + files(package).joinpath(template).read_text(encoding="utf-8"))
    whole = (parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))
    # Text from files may hold what is no text.
    out.writelines(piece.encode("utf-8", "replace") for piece in whole)
    return policy
