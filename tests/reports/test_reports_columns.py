"""Columns come back in a page as they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from walkback.pages.scripts import joined_script
from walkback.reports.columns import PageColumns

if TYPE_CHECKING:
    from browser import Page


def test_columns_come_back_as_they_were(page: Page, tmp_path: Path) -> None:
    columns = PageColumns()
    wide = np.array([0, 2**64 - 1, 5, 2**63, 2**63 - 1, 1], np.uint64)
    signed = np.array([-8, 5, -(2**40), 0, 2**40], np.int64)
    columns.numbers("bytes", np.array([1, 255, 0]))
    columns.numbers("more", np.array([1, 65536]))
    columns.numbers("none", np.zeros(0, np.int64))
    columns.rising("wide", wide)
    columns.rising("signed", signed)
    columns.texts("texts", ["a", "", "\u00fc\ud800\n</script>"])
    path = tmp_path / "page.html"
    path.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><script id=data type=text/plain>{columns.packed()}</script><script>"
        f"const {{Columns, inflated}} = {joined_script('pages/columns.js')};"
        f"const described = {[list(one) for one in columns.described]};"
        "const all = inflated('data').then((buffer) => new Columns(described, buffer));</script>"
    )
    page.open(path)
    found = page.evaluate(
        "all.then((its) => [...['bytes', 'more', 'none'].map((name) => [...its.numbers(name)]),"
        " [...its.addresses('wide')].map(String), [...its.signed('signed')], its.texts('texts', 3)])"
    )
    assert found == [
        [1, 255, 0],
        [1, 65536],
        [],
        [str(one) for one in wide.tolist()],
        signed.tolist(),
        ["a", "", "\u00fc\\ud800\\x0a</script>"],
    ]
