"""A server in this process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from serving.served import Asked
from walkback.serving.server import StoreServer

if TYPE_CHECKING:
    from walkback.serving.answers import Answers


class Running(Asked):
    """The same, with what it does not say to those who ask."""

    def __init__(self, server: StoreServer) -> None:
        super().__init__(server.server_address[1], server.token)
        self._server = server

    def kept(self) -> int:
        """How many connections make no room for others."""
        return sum(self._server._open.values())


@contextlib.contextmanager
def running(answers: Answers) -> Iterator[Running]:
    """A server in a thread, which has nothing to report."""
    lines: list[str] = []
    with StoreServer(answers, lines.append, port=0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Running(server)
        server.shutdown()
        thread.join()
    assert lines == []
