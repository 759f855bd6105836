"""Times as people write them, and as they are told."""

from __future__ import annotations

import pytest

from store.plainstore import HOUR, NOON
from walkback.store.moments import moment, span


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2025-11-24T16", NOON),
        ("2025-11-24T16:00", NOON),
        ("2025-11-24 16:00:00.5", NOON + HOUR // 7200),
        ("2025-11-24T17:00+01:00", NOON),
        ("2025-11-24T16:00Z", NOON),
        ("1970-01-01", 0),
        ("90s", NOON - 90 * 10**9),
        ("1.5h", NOON - 3 * HOUR // 2),
        ("2d", NOON - 48 * HOUR),
        ("now", NOON),
    ],
)
def test_moments(text: str, nanoseconds: int) -> None:
    assert moment(text, now=NOON) == nanoseconds


@pytest.mark.parametrize("text", ["", "yesterday", "1y", "-1h", "2025-13-01", "h", "1e5"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        moment(text)


def test_a_span_of_time() -> None:
    assert span(NOON, NOON + HOUR) == "2025-11-24 16:00:00 to 17:00:00 UTC"
    assert span(NOON, NOON + 24 * HOUR) == "2025-11-24 16:00:00 to 2025-11-25 16:00:00 UTC"
