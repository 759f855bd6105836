"""Numbers, sizes and names in the words of a report."""

from __future__ import annotations

import pytest

from walkback.reports.figures import Column, ColumnUnit
from walkback.reports.words import byte_words, in_words, percent


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.00 KiB"),
        (10200, "9.96 KiB"),
        (102400, "100 KiB"),
        (1024 * 1023 + 600, "1.00 MiB"),
        (5 << 40, "5.00 TiB"),
    ],
)
def test_bytes_are_told_in_their_unit(size: int, words: str) -> None:
    assert byte_words(size) == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.5, "50.0 %"),
        (0.0123, "1.23 %"),
        (0.99999, "99.999 %"),
        (0.000001, "0.0001 %"),
        (0.996, "99.60 %"),
    ],
)
def test_nearly_nothing_is_not_told_as_nothing(share: float, words: str) -> None:
    assert percent(share) == words


def test_text_that_turns_around_or_is_not_seen_is_spelled_out() -> None:
    column = Column("file", "File", ColumnUnit.TEXT)
    assert in_words("a\u202eb\x1b", column) == "a\\u202eb\\x1b"
    assert in_words("a\u200bb\u2060c\ufeffd\xade", column) == "a\\u200bb\\u2060c\\ufeffd\\u00ade"
    assert in_words("\u0646\u200c\u0627\u200d", column) == "\u0646\u200c\u0627\u200d"
