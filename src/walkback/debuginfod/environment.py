"""What the environment says of servers: the variables of elfutils' client, debuginfod_find_debuginfo(3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from walkback.base.dataclass import dataclass

if TYPE_CHECKING:
    from walkback.debuginfod.servers import Servers

_TIMEOUT = 90
_MOST_SECONDS = 600
_MOST_BYTES = 2 << 30
_MOST_HEADERS = 1 << 16
_FORMER_CACHE = ".debuginfod_client_cache"


@dataclass(frozen=True, slots=True)
class Settings:
    """Whom to ask, and how long to wait."""

    urls: tuple[str, ...]
    """The servers, each with a slash at its end."""
    cache: Path
    """The folder that all clients share."""
    timeout: float = _TIMEOUT
    """Seconds in which something has to come."""
    most_seconds: float = _MOST_SECONDS
    """For one file."""
    most_bytes: int = _MOST_BYTES
    """Of one file."""
    headers: tuple[tuple[str, str], ...] = ()
    """What else to send."""


def settings(environment: Mapping[str, str] | None = None) -> Settings | None:
    """What the environment says; None if it names no server."""
    known = os.environ if environment is None else environment
    words = known.get("DEBUGINFOD_URLS", "").split()
    # A word for elfutils' client says what it is to verify.
    urls = tuple(dict.fromkeys(_url(word) for word in words if not word.startswith("ima:")))
    if not urls:
        return None
    return Settings(
        urls,
        _cache(known),
        timeout=_number(known, "DEBUGINFOD_TIMEOUT") or _TIMEOUT,
        most_seconds=_number(known, "DEBUGINFOD_MAXTIME") or _MOST_SECONDS,
        most_bytes=min(_number(known, "DEBUGINFOD_MAXSIZE") or _MOST_BYTES, _MOST_BYTES),
        headers=_headers(known.get("DEBUGINFOD_HEADERS_FILE")),
    )


def debuginfod_servers(
    *, limit: int = 32, on_progress: Callable[[str, int, int], None] | None = None
) -> Servers | None:
    """The servers that the environment names, to be asked for at most `limit` files; None if it names none.

    >>> walkback.naming.FileSearch(servers=walkback.naming.debuginfod_servers()).servers
    """
    chosen = settings()
    if chosen is None or not limit:
        return None
    from walkback.debuginfod.servers import Servers  # it takes long to import

    return Servers(chosen, limit=limit, on_progress=on_progress)


def _url(word: str) -> str:
    """As for curl: without a scheme it is a server of http, and `file:/folder` is `file:///folder`."""
    if word.startswith("file:/") and not word.startswith("file://"):
        word = f"file://{word.removeprefix('file:')}"
    return f"{'' if '://' in word else 'http://'}{word.rstrip('/')}/"


def _cache(known: Mapping[str, str]) -> Path:
    if known.get("DEBUGINFOD_CACHE_PATH"):
        return Path(known["DEBUGINFOD_CACHE_PATH"])
    home = Path("/", known.get("HOME") or os.path.expanduser("~").removeprefix("~"))  # some users have none
    former = home / _FORMER_CACHE
    if former.is_dir():
        return former
    return Path(known.get("XDG_CACHE_HOME") or home / ".cache", "debuginfod_client")


def _number(known: Mapping[str, str], name: str) -> int:
    """A positive number; 0 for anything else."""
    text = known.get(name, "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def _headers(path: str | None) -> tuple[tuple[str, str], ...]:
    """The lines of a file, each a name and its value."""
    if not path:
        return ()
    try:
        with open(path, "rb") as file:
            lines = file.read(_MOST_HEADERS).decode("latin-1").splitlines()
    except OSError:
        return ()
    pairs = (line.partition(":") for line in lines)
    return tuple((name.strip(), value.strip()) for name, colon, value in pairs if colon and name.strip())
