"""Asking servers for the file of a build ID: all at once, and the first that has it sends it.

A server that cannot be reached, takes too long or sends something else is not asked again. Whatever comes is looked at
before it counts: it is an ELF file with that build ID.
"""

from __future__ import annotations

import contextlib
import io
import queue
import threading
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPException, responses
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote_to_bytes

from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.debuginfod.cache import FileCache
from walkback.debuginfod.environment import Settings
from walkback.elf import ElfFile

_CHUNK = 1 << 20
_SCHEMES = ("http", "https", "file")
_SLOWEST = 100 * 1024
"""Bytes that have to come in each time limit."""
_MOST_SYMBOLS = 1 << 28
"""Bytes of a section that is taken without the rest of its file."""
_MOST_ERRORS = 3
"""Answers of a server that say that it failed, until it is not asked again."""
_NOT_FOUND = (404, 410)
_NOTE = ".note.gnu.build-id"
OnProgress = Callable[[str, int, int], None]
"""Is given what is fetched, how many bytes of it are there, and how many there will be: as many at the end, and 0 where
the server does not say."""


class _RefusedError(Exception):
    """What a server sends is not taken; `fatal` if it is not to be asked again."""

    def __init__(self, why: str, *, fatal: bool = True) -> None:
        super().__init__(why)
        self.fatal = fatal


@dataclass(slots=True)
class _Server:
    name: str
    """Its address without a user's name and password."""
    host: str
    headers: tuple[tuple[str, str], ...] = ()
    """What says who asks."""
    errors: int = 0
    trouble: str | None = None
    """The first."""

    @classmethod
    def at(cls, url: str) -> _Server:
        """The one with this address, which may be none that can be asked."""
        scheme, _, rest = url.partition("://")
        place, slash, path = rest.partition("/")
        user, _, host = place.rpartition("@")
        name = f"{scheme}://{host}{slash}{path}"
        found = cls(name, host)
        if user:
            found.headers = (("Authorization", f"Basic {b64encode(unquote_to_bytes(user)).decode()}"),)
        if scheme.lower() not in _SCHEMES:
            found.errors, found.trouble = _MOST_ERRORS, "servers are asked by http, https or file only"
        return found

    def note(self, why: str, *, fatal: bool) -> None:
        self.errors += _MOST_ERRORS if fatal else 1
        if self.trouble is None or fatal:
            self.trouble = f"{why}, so it is not asked again" if self.errors >= _MOST_ERRORS else why


class Servers:
    """Those of a `Settings`; what they do not have is remembered."""

    def __init__(self, settings: Settings, *, limit: int, on_progress: OnProgress | None = None) -> None:
        """Servers are asked for the files of at most `limit` build IDs."""
        self._settings = settings
        self._servers = [_Server.at(url) for url in settings.urls]
        self._cache = FileCache(settings.cache)
        self._limit = limit
        self._on_progress = on_progress
        self._found: dict[tuple[bytes, str], Path | None] = {}
        self._looked: dict[bytes, dict[str, bool]] = {}
        self._asked: set[bytes] = set()
        self._not_asked: set[bytes] = set()
        self._trouble: str | None = None
        """Of the cache."""
        self._opener = _opener()

    def __repr__(self) -> str:
        return f"Servers({', '.join(server.name for server in self._servers)})"

    @property
    def troubles(self) -> list[str]:
        """What went wrong, a line for each server."""
        found = [f"{server.name}: {server.trouble}" for server in self._servers if server.trouble is not None]
        if self._trouble is not None:
            found.append(f"{self._cache.folder}: {self._trouble}, so nothing is fetched")
        if count := len(self._not_asked):
            found.append(f"servers were not asked for {count} more files; --debuginfod-limit sets the limit")
        return found

    def find(self, build_id: bytes, kind: str) -> Path | None:
        """The file with that build ID, from the cache or a server; `kind` is `executable` or `debuginfo`.

        With `section/NAME` it is one section of the latter.
        """
        key = build_id, kind
        if key not in self._found:
            self._found[key] = self._find(build_id, kind)
        return self._found[key]

    def symbol_table(self, build_id: bytes) -> tuple[bytes, bytes] | None:
        """The symbols of the debug file, and their names, without the rest of it.

        None if no server can do that, or the whole file has come before.
        """
        if self._found.get((build_id, "debuginfo")) is not None:
            return None
        sections = []
        for name in (_NOTE, ".symtab", ".strtab"):
            path = self.find(build_id, f"section/{name}")
            try:
                if path is None or path.stat().st_size > _MOST_SYMBOLS:
                    return None
                sections.append(path.read_bytes())
            except OSError:
                return None
        _, symbols, strings = sections
        return symbols, strings

    def looked(self, build_id: bytes) -> dict[str, bool]:
        """Where files with that build ID were looked for so far and who was asked, and whether that had them."""
        return dict(self._looked.get(build_id, {}))

    def _find(self, build_id: bytes, kind: str) -> Path | None:
        looked = self._looked.setdefault(build_id, {})
        cached = self._cache.find(build_id, kind)
        looked[str(self._cache.path(build_id, kind))] = cached is not None
        if cached is not None and _is_right(cached, build_id, kind):
            return cached
        if self._trouble is not None or self._cache.is_missing(build_id, kind):
            return None
        # A program and its debug file, or the parts of that, count once.
        if build_id not in self._asked and len(self._asked) >= self._limit:
            self._not_asked.add(build_id)
            return None
        self._asked.add(build_id)
        looked.update((server.name, False) for server in self._servers if server.errors < _MOST_ERRORS)
        try:
            self._cache.clean()
            return self._fetch(build_id, kind)
        except OSError as error:
            self._trouble = error.strerror or str(error)
            return None

    def _fetch(self, build_id: bytes, kind: str) -> Path | None:
        """From the first server that has it."""
        asked: list[_Server] = []
        while alive := [one for one in self._servers if one.errors < _MOST_ERRORS and one not in asked]:
            answer = self._ask(alive, f"buildid/{build_id.hex()}/{kind}", asked)
            if answer is None:
                break
            server, response = answer
            try:
                body = _Body(response, self._settings.timeout)
                with contextlib.closing(body), self._cache.writing(build_id, kind) as file:
                    self._copy(body, file, f"{kind} {build_id.hex()[:12]} from {server.host}")
                    file.flush()
                    if not _is_right(Path(f"/proc/self/fd/{file.fileno()}"), build_id, kind):
                        raise _RefusedError(f"it sent another file than that of {build_id.hex()}")
            except _RefusedError as error:
                server.note(str(error), fatal=error.fatal)
            else:
                self._looked[build_id][server.name] = True
                return self._cache.find(build_id, kind)
        if not any(one.trouble for one in self._servers):
            self._cache.note_missing(build_id, kind)
        return None

    def _ask(self, servers: list[_Server], path: str, asked: list[_Server]) -> tuple[_Server, Any] | None:
        """The first server that begins to send a file; those that have answered otherwise come to `asked`."""
        answers: queue.SimpleQueue[tuple[_Server, Any]] = queue.SimpleQueue()
        decided = threading.Event()
        for server in servers:
            # A thread that hangs while a name is looked up, or headers come byte by byte, is left behind.
            threading.Thread(target=self._open, args=(server, path, answers, decided), daemon=True).start()
        try:
            return self._first(servers, answers, asked)
        finally:
            decided.set()

    def _first(
        self, servers: list[_Server], answers: queue.SimpleQueue[tuple[_Server, Any]], asked: list[_Server]
    ) -> tuple[_Server, Any] | None:
        waiting = list(servers)
        deadline = time.monotonic() + self._settings.timeout
        while waiting:
            try:
                server, answer = answers.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                for server in waiting:
                    server.note(f"nothing came within {self._settings.timeout:g} seconds", fatal=True)
                return None
            waiting.remove(server)
            asked.append(server)
            if isinstance(answer, _RefusedError):
                server.note(str(answer), fatal=answer.fatal)
            elif answer is not None:
                return server, answer
        return None

    def _open(
        self, server: _Server, path: str, answers: queue.SimpleQueue[tuple[_Server, Any]], decided: threading.Event
    ) -> None:
        """Ask one server; its answer is None if it does not have the file."""
        answer: Any = None
        try:
            request = urllib.request.Request(f"{server.name}{path}")  # noqa: S310 - its scheme is a known one
            for name, value in (*server.headers, *self._settings.headers):
                request.add_unredirected_header(name, value)  # it is for nobody else
            answer = self._opener.open(request, timeout=self._settings.timeout)
        except urllib.error.HTTPError as error:
            if error.code not in _NOT_FOUND:
                answer = _RefusedError(
                    f"it answered {error.code} ({responses.get(error.code, 'unknown')})", fatal=False
                )
            error.close()
        except FileNotFoundError:
            pass
        except (OSError, HTTPException, ValueError) as error:
            why = getattr(error, "reason", error)
            if not (server.name.startswith("file:") and isinstance(why, FileNotFoundError)):
                answer = _RefusedError(_text(why))
        if decided.is_set() and isinstance(answer, io.IOBase):
            answer.close()
            return
        answers.put((server, answer))

    def _copy(self, body: _Body, file: BinaryIO, what: str) -> None:
        """Take what a server sends, within the limits."""
        size = body.size
        incoming = _Incoming(self._settings, size)
        show = self._on_progress or (lambda _what, _count, _size: None)
        try:
            while data := body.read():
                incoming.add(len(data))
                file.write(data)
                show(what, incoming.count, size)
        finally:
            show(what, incoming.count, incoming.count)
        if incoming.count < size:
            raise _RefusedError(f"it sent {incoming.count} of {size} bytes")


class _Incoming:
    """What has come of a file, and whether that keeps to the limits."""

    def __init__(self, settings: Settings, size: int) -> None:
        if size > settings.most_bytes:
            raise _RefusedError(f"a file of {size} bytes is larger than {settings.most_bytes}", fatal=False)
        self._settings = settings
        self._most = size or settings.most_bytes
        self._start = self._window = time.monotonic()
        self._before = 0
        self.count = 0

    def add(self, size: int) -> None:
        settings, now = self._settings, time.monotonic()
        self.count += size
        if self.count > self._most:
            raise _RefusedError(f"it sent more than {self._most} bytes")
        if now - self._start > settings.most_seconds:
            raise _RefusedError(f"a file did not come within {settings.most_seconds:g} seconds")
        if now - self._window > settings.timeout:
            if self.count - self._before < _SLOWEST:
                raise _RefusedError(f"fewer than {_SLOWEST} bytes came within {settings.timeout:g} seconds")
            self._window, self._before = now, self.count


class _Body:
    """What a server sends, piece by piece.

    A thread reads it, and is left behind if it hangs: before and after a piece any number of lines may come.
    """

    def __init__(self, response: Any, timeout: float) -> None:
        self.size = _size(response)
        self._timeout = timeout
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._pieces: queue.SimpleQueue[bytes | _RefusedError] = queue.SimpleQueue()
        threading.Thread(target=self._receive, args=(response,), daemon=True).start()

    def read(self) -> bytes:
        """The next piece; empty behind the last."""
        self._wanted.put(True)
        try:
            piece = self._pieces.get(timeout=self._timeout)
        except queue.Empty:
            raise _RefusedError(f"nothing came within {self._timeout:g} seconds") from None
        if isinstance(piece, _RefusedError):
            raise piece
        return piece

    def close(self) -> None:
        """No more is wanted."""
        self._wanted.put(False)

    def _receive(self, response: Any) -> None:
        with contextlib.closing(response):
            while self._wanted.get():
                try:
                    self._pieces.put(response.read1(_CHUNK))
                except (OSError, HTTPException, ValueError) as error:
                    self._pieces.put(_RefusedError(_text(error)))


class _Redirections(urllib.request.HTTPRedirectHandler):
    """Follows redirections without reading the pages that come with them, which may have no end."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        fp.close()
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """What follows redirections and the environment's proxies, but no scheme besides those of servers."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.FileHandler(),
        _Redirections(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    opener.addheaders = [("User-Agent", "walkback"), ("Accept-Encoding", "identity")]
    return opener


def _size(response: Any) -> int:
    """How many bytes a server means to send; 0 where it does not say."""
    text = response.headers.get("Content-Length") or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _is_right(path: Path, build_id: bytes, kind: str) -> bool:
    """Whether this is a file with that build ID, as far as that can be seen."""
    with contextlib.suppress(WalkbackError, OSError):
        if kind == f"section/{_NOTE}":
            return path.stat().st_size <= _MOST_SYMBOLS and path.read_bytes().endswith(build_id)
        return kind.startswith("section/") or ElfFile(path).build_id == build_id
    return False


def _text(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    return str(getattr(error, "strerror", None) or error) or type(error).__name__
