"""Moments, as people and programs write them, in nanoseconds since 1970."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from walkback.base.errors import ArgumentError
from walkback.base.text import printable

Moment = int | datetime | str
"""Nanoseconds since 1970; a `datetime`, which is UTC if it has no time zone; or text as `moment` takes it."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGO = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhdw])")
_SINCE = datetime(1970, 1, 1, tzinfo=UTC)


def moment(value: Moment, now: int | None = None) -> int:
    """The nanoseconds of a moment; text is as in ISO 8601, UTC without a time zone, or `90m` for 90 minutes ago."""
    if isinstance(value, int):
        return value
    if isinstance(value, datetime):
        return _nanoseconds(value)
    if match := _AGO.fullmatch(value):
        ago = round(float(match[1]) * _SECONDS[match[2]] * 10**9)
        return (time.time_ns() if now is None else now) - ago
    if value == "now":
        return time.time_ns() if now is None else now
    try:
        return _nanoseconds(datetime.fromisoformat(value))
    except ValueError:
        message = (
            f"{printable(value)!r} is not a time; examples: 2026-11-21, 2026-11-21T13:30, 90m (90 minutes ago), 2d"
        )
        raise ArgumentError(message) from None


def _nanoseconds(value: datetime) -> int:
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return (aware - _SINCE) // timedelta(microseconds=1) * 1000


def span(first: int, last: int) -> str:
    """From when to when, in UTC, for a person."""
    begin, end = (datetime.fromtimestamp(one // 10**9, UTC) for one in (first, last))
    until = end.strftime("%H:%M:%S" if begin.date() == end.date() else "%Y-%m-%d %H:%M:%S")
    return f"{begin:%Y-%m-%d %H:%M:%S} to {until} UTC"
