"""One request: who asks, for what, and the answer.

Whatever is wrong with a request is answered in one line of text. What is not known to be from whom the address was
printed for costs no more than reading its head, which is short and must come soon.
"""

from __future__ import annotations

import contextlib
import hmac
import io
import ipaddress
import re
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from walkback.base.errors import ArgumentError, WalkbackError
from walkback.base.text import printable
from walkback.serving.answers import BusyError
from walkback.serving.question import KINDS, Kind, question

if TYPE_CHECKING:
    from walkback.serving.server import StoreServer

HEAD_BYTES = 16 << 10
"""The most that a request and its headers may have."""
HEAD_SECONDS = 10.0
_SEND_SECONDS = 120.0
_LINGER_SECONDS = 0.5
_LINGER_BYTES = 256 << 10
_TEXT = "text/plain; charset=utf-8"
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[^:\[\]]+))(?::[0-9]*)?")
_NO_POLICY = "default-src 'none'; frame-ancestors 'none'"


class _Head(io.RawIOBase):
    """The head of a request: it ends where a limit is, of bytes or of time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._end = time.monotonic() + HEAD_SECONDS
        self._left = HEAD_BYTES

    def readable(self) -> bool:
        return True

    @property
    def is_too_long(self) -> bool:
        """Whether it had all bytes that it may have, and perhaps more."""
        return self._left <= 0

    def readinto(self, buffer: Any) -> int:
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left]) if self._left else 0
        self._left -= count
        return count


class Handler(BaseHTTPRequestHandler):
    """Answers the one request of a connection."""

    server: StoreServer

    def setup(self) -> None:
        """Read within limits."""
        super().setup()
        self.rfile.close()
        self._head = _Head(self.connection)
        self.rfile = io.BufferedReader(self._head)
        self._lingers = False

    def finish(self) -> None:
        """Let whoever was refused read why: what it still sends would make the system drop the answer."""
        super().finish()
        if not self._lingers:
            return
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            end, left = time.monotonic() + _LINGER_SECONDS, _LINGER_BYTES
            while left > 0 and (seconds := end - time.monotonic()) > 0:
                self.connection.settimeout(seconds)
                count = len(self.connection.recv(left))
                left -= count or left

    def parse_request(self) -> bool:
        """Refuse what is too long, and what is no question."""
        self.command = ""
        if not super().parse_request():
            return False
        if self._head.is_too_long:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"this is more than {HEAD_BYTES} bytes")
        elif self.command not in {"GET", "HEAD"}:
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, "this is not GET or HEAD")
        else:
            return True
        return False

    def do_GET(self) -> None:
        """Answer; the name is the standard library's."""
        path, _, query = self.path.partition("?")
        kind: Kind | None = next((one for one in KINDS if path == f"/{one}"), None)
        if not self._is_for_us():
            self.send_error(HTTPStatus.FORBIDDEN, "this is no name of this server")
        elif path == "/":
            page = self.server.page
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", page.body, page.policy)
        elif kind is None:
            self.send_error(HTTPStatus.NOT_FOUND, f"there is {', '.join(f'/{one}' for one in ('', *KINDS))}, no more")
        elif self.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
            self.send_error(HTTPStatus.FORBIDDEN, "another page asks")
        elif not self._has_token():
            self.send_error(HTTPStatus.UNAUTHORIZED, "this needs the token: open the address that was printed")
        else:
            self._answer(kind, query)

    do_HEAD = do_GET  # noqa: N815 - the same

    def _is_for_us(self) -> bool:
        """Whether the request names this server, and not another that leads here."""
        names = self.headers.get_all("Host", [])
        return len(names) == 1 and self.server.is_own_name(_without_port(names[0]), self.connection)

    def _has_token(self) -> bool:
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return hmac.compare_digest(given, f"Bearer {self.server.token}".encode())

    def _answer(self, kind: Kind, query: str) -> None:
        try:
            with self.server.keeping(self.connection):
                answer = self.server.answers.answer(question(kind, query), self._is_gone)
        except ArgumentError as error:
            self.send_error(HTTPStatus.BAD_REQUEST, str(error))
        except BusyError:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "other questions are being answered")
        except (WalkbackError, OSError) as error:
            what = str(error)
            if isinstance(error, OSError) and error.filename is not None:
                what = f"{error.filename}: {error.strerror}"
            self.server.report(what)
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, what)
        except MemoryError:
            self.server.report("there is not enough memory for this answer")
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "there is not enough memory for this answer")
        else:
            self._send(HTTPStatus.OK, "application/json", answer)

    def _is_gone(self) -> bool:
        """Whether who asked has closed the connection, as a page does that wants something else by now."""
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """One line, without anything that the standard library would add."""
        self._lingers = True
        line = printable(message or HTTPStatus(code).phrase)
        self._send(code, _TEXT, f"{line}\n".encode("utf-8", "replace"))

    def _send(self, status: int, kind: str, body: bytes, policy: str = _NO_POLICY) -> None:
        self.connection.settimeout(_SEND_SECONDS)
        if (
            self.request_version == "HTTP/0.9"
        ):  # which has no status, and is what a request without a version is taken for
            self.request_version = "HTTP/1.0"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """What says nothing of versions."""
        return "walkback"

    def log_message(self, *_: Any) -> None:
        """Say nothing: who asks cannot fill a terminal."""


def _without_port(name: str) -> str:
    """The host of a Host header, in small letters; an address of IPv6 without its brackets."""
    found = _HOST.fullmatch(name.strip().lower())
    if found is None:
        return ""
    with contextlib.suppress(ValueError):
        return str(ipaddress.IPv6Address(found["six"] or ""))
    return found["name"] or ""
