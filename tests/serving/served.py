"""`walkback store DIR serve` as a process, and who asks it."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

from cli.commands import WALKBACK
from waiting import PATIENCE


@dataclass
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def line(self) -> str:
        """The one line that says what is wrong."""
        (line,) = self.body.decode().splitlines()
        return line


class Asked:
    """A server at a port of this machine, and its token."""

    def __init__(self, port: int, token: str | None) -> None:
        self.port, self.token = port, token
        self.host = "127.0.0.1"

    @property
    def authorization(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    def ask(self, target: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        """One request, with the token unless there are other headers."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, target, headers=self.authorization if headers is None else dict(headers))
            answer = connection.getresponse()
            return Answer(answer.status, answer.msg, answer.read())

    def found(self, kind: str, *pairs: tuple[str, str]) -> dict[str, Any]:
        """The answer to a question."""
        answer = self.ask(f"/{kind}?{urlencode(pairs)}")
        assert answer.status == 200, answer
        found: dict[str, Any] = json.loads(answer.body)
        return found

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def sent(self, request: bytes) -> bytes:
        """All that comes back for some bytes."""
        with self.connect() as connection:
            connection.sendall(request)
            parts = []
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(65536):
                    parts.append(part)
            return b"".join(parts)


class Served(Asked):
    """The same as a process."""

    def __init__(self, process: subprocess.Popen[str], log: IO[bytes]) -> None:
        assert process.stdout is not None
        self.process, self._log = process, log
        self.url = process.stdout.readline().strip()
        found = re.fullmatch(r"http://[^/]*:(\d+)/(?:#token=([\w-]{43}))?", self.url)
        assert found, self.log()
        super().__init__(int(found[1]), found[2])

    def log(self) -> list[str]:
        """What it has said since."""
        return Path(self._log.name).read_text().splitlines()

    def memory(self) -> int:
        """The kilobytes that it has now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"^VmRSS:\s+(\d+) kB$", text, re.MULTILINE)[0])

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextlib.contextmanager
def served(store: Path, *options: str) -> Iterator[Served]:
    """A server until it is interrupted, which ends it with 0."""
    # Where a shell in the background has interrupts ignored, its children would ignore them too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(
            [WALKBACK, "store", store, "serve", *options], stdout=subprocess.PIPE, stderr=log, text=True
        )
        signal.signal(signal.SIGINT, before)
        with process:
            try:
                server = Served(process, log)
                yield server
                assert process.poll() is not None or server.interrupt() == 0
            finally:
                process.kill()
