"""The server: where it listens, whom it listens to, and how many at once.

Each connection is one request, in a thread. Where there is no room for another, the oldest makes room, but for those
that have shown the token and wait for an answer: who sends or reads slowly keeps nobody else out.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import secrets
import socket
import sys
import time
from socketserver import TCPServer, ThreadingMixIn
from threading import Lock
from typing import TYPE_CHECKING, Any

from walkback.base.errors import ArgumentError
from walkback.base.text import printable
from walkback.serving.handler import Handler
from walkback.serving.page import served_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from walkback.serving.answers import Answers

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8370
MOST_CONNECTIONS = 64
_PAUSE = 0.1
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\nthere are too many requests\n"


class StoreServer(ThreadingMixIn, TCPServer):
    """Serves a store until `shutdown`; `report` is given a line about what could not be answered.

    with StoreServer(answers, print) as server:
        print(server.url)
        server.serve_forever()
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        answers: Answers,
        report: Callable[[str], None],
        *,
        host: str = DEFAULT_HOST,
        port: int | None = None,
        needs_token: bool = True,
    ) -> None:
        """Without a port it is the usual one, or if that is taken any that is free."""
        self.answers = answers
        self.page = served_page()
        self.token = secrets.token_urlsafe(32) if needs_token else None
        self._host = host
        self._report = report
        self._last_report = ""
        self._lock = Lock()
        self._open: dict[socket.socket, bool] = {}
        """The connections, the oldest first, and whether each is kept."""
        address = self._address(port)
        if not needs_token and not ipaddress.ip_address(address[0]).is_loopback:
            raise ArgumentError(f"others reach {printable(host)}, so it needs the token")
        try:
            super().__init__(address, Handler)
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise _cannot_listen(host, address[1], error) from None
            try:
                super().__init__((address[0], 0), Handler)
            except OSError as other:
                raise _cannot_listen(host, 0, other) from None

    def _address(self, port: int | None) -> tuple[str, int]:
        try:
            found = socket.getaddrinfo(self._host, port or 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError) as error:
            words = getattr(error, "strerror", None) or "this is no name of a host"
            raise ArgumentError(f"cannot listen on {printable(self._host)}: {words}") from None
        self.address_family, *_, address = found[0]
        return str(address[0]), DEFAULT_PORT if port is None else port

    @property
    def url(self) -> str:
        """What to open; the token stands behind the #, which browsers send to nobody."""
        host, port = self.server_address[:2]
        address = ipaddress.ip_address(str(host))
        if address.is_unspecified:
            shown = socket.gethostname()
        else:
            shown = f"[{address}]" if address.version == 6 else str(address)
        return f"http://{shown}:{port}/{f'#token={self.token}' if self.token else ''}"

    def is_own_name(self, name: str, connection: socket.socket) -> bool:
        """Whether a name, in small letters, is one that this server is meant by when it is asked over a connection."""
        own = str(connection.getsockname()[0]).removeprefix("::ffff:")
        names = {"localhost", own, self._host.lower()}
        if ipaddress.ip_address(str(self.server_address[0])).is_unspecified:
            names.add(socket.gethostname().lower())
        return name in names

    @contextlib.contextmanager
    def keeping(self, connection: socket.socket) -> Iterator[None]:
        """Let a connection make no room for others: what it asks is worth an answer."""
        self._set_kept(connection, True)
        try:
            yield
        finally:
            self._set_kept(connection, False)

    def _set_kept(self, connection: socket.socket, is_kept: bool) -> None:
        with self._lock:
            if connection in self._open:
                self._open[connection] = is_kept

    def report(self, line: str) -> None:
        """Pass on a line, unless it is the one before again."""
        with self._lock:
            is_new, self._last_report = line != self._last_report, line
        if is_new:
            self._report(line)

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection; where the system has no more of something, ask it again a little later."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if there is room or room can be made."""
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next((one for one, is_kept in self._open.items() if not is_kept), None)
                if oldest is not None:
                    del self._open[oldest]
                    with contextlib.suppress(OSError):
                        oldest.shutdown(socket.SHUT_RDWR)  # and its thread ends
            has_room = len(self._open) < MOST_CONNECTIONS
            if has_room:
                self._open[request] = False
        if has_room:
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY)
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error; of others there is a line."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.report(f"a request could not be answered: {type(error).__name__}: {error}")


def _cannot_listen(host: str, port: int, error: OSError) -> ArgumentError:
    return ArgumentError(f"cannot listen on {printable(host)}, port {port}: {error.strerror or error}")
