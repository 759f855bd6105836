"""Servers of files that behave as a test wants, each on a port of its own and in a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler], None]


class FileServer:
    """One that answers each request as `behave` does."""

    def __init__(self, behave: Behaviour) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.stopped = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                server.headers.append(dict(self.headers))
                with contextlib.suppress(OSError):
                    behave(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.stopped.set()
        self._http.shutdown()
        self._http.server_close()


@contextlib.contextmanager
def serving(behave: Behaviour) -> Iterator[FileServer]:
    server = FileServer(behave)
    try:
        yield server
    finally:
        server.stop()


def sending(data: bytes, status: int = 200, size: int | None = None) -> Behaviour:
    """Answer with these bytes; `size` is what is said of them."""

    def behave(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", str(len(data) if size is None else size))
        request.end_headers()
        request.wfile.write(data)

    return behave


def having(files: dict[str, Path]) -> Behaviour:
    """Answer with the files under these paths, and with 404 to everything else."""

    def behave(request: BaseHTTPRequestHandler) -> None:
        path = files.get(request.path)
        sending(b"", 404)(request) if path is None else sending(path.read_bytes())(request)

    return behave


def redirecting(url: str) -> Behaviour:
    def behave(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", url.format(path=request.path))
        request.send_header("Content-Length", "0")
        request.end_headers()

    return behave
