"""The version of walkback, which whoever asks and whoever works must share."""

from __future__ import annotations

from functools import cache

from walkback.base.errors import UnreadableError


class OtherVersionError(UnreadableError):
    """The worker cannot do any of the work."""


@cache
def own_version() -> str:
    """The version that runs here."""
    from importlib.metadata import version  # takes long

    return version("walkback")


def check_version(asked: str) -> None:
    """Raise an error if this worker is not of the version of whoever asks."""
    if asked != own_version():
        raise OtherVersionError(f"a worker has walkback {own_version()}, and the work is for {asked}")
