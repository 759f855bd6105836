"""Services of objects on this machine, each real, and a proxy in front of one that makes it fail.

The proxy fails before a request reaches the service, or loses the answer, sends the request twice, waits, or gives a
list that is a moment old.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, quote, urlsplit

from peers import missing

AZURITE = Path(__file__).parents[2] / "tools" / "cloud" / "node_modules" / ".bin" / "azurite-blob"
BUCKET = "stacks"
# Those that Microsoft publishes for its emulators.
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Service:
    """A service that runs."""

    scheme: str
    port: int

    @property
    def url(self) -> str:
        """The address of a store in it."""
        return f"{self.scheme}://{BUCKET}/a/store"

    def environment(self, port: int | None = None) -> dict[str, str]:
        """How programs find it; another port is that of a proxy."""
        address = f"http://127.0.0.1:{port or self.port}"
        own = {
            "s3": {"FSSPEC_S3_ENDPOINT_URL": address, "FSSPEC_S3_KEY": "one", "FSSPEC_S3_SECRET": "two"},
            "gs": {
                "STORAGE_EMULATOR_HOST": address,
                "FSSPEC_GS_TOKEN": "anon",
                # Else it looks for kinds of buckets that the emulator does not have.
                "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
            },
            "az": {
                "AZURE_STORAGE_CONNECTION_STRING": f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};"
                f"AccountKey={ACCOUNT_KEY};BlobEndpoint={address}/{ACCOUNT};"
            },
        }
        return {**os.environ, "AWS_EC2_METADATA_DISABLED": "true", **own[self.scheme]}


@contextlib.contextmanager
def running(scheme: str, folder: Path) -> Iterator[Service]:
    """One that has the bucket and nothing in it."""
    modules = {"s3": ("s3fs", "moto"), "gs": ("gcsfs", "gcp_storage_emulator"), "az": ("adlfs",)}
    for module in modules[scheme]:
        if find_spec(module) is None:
            missing(module)
    port = _free_port()
    program = Path(sys.executable).parent
    commands: dict[str, list[str | Path]] = {
        "s3": [program / "moto_server", "--host=127.0.0.1", f"--port={port}"],
        "gs": [
            program / "gcp-storage-emulator",
            "start",
            f"--port={port}",
            "--in-memory",
            f"--default-bucket={BUCKET}",
        ],
        "az": [AZURITE, "--silent", "--blobPort", str(port), "--location", folder, "--skipApiVersionCheck"],
    }
    if scheme == "az" and not (AZURITE.exists() and shutil.which("node")):
        missing("azurite")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(commands[scheme], stdout=log, stderr=log, cwd=folder) as process,
    ):
        try:
            service = Service(scheme, port)
            _wait(port, process)
            if scheme != "gs":
                text = "import fsspec, sys; fsspec.filesystem(sys.argv[1]).mkdir(sys.argv[2])"
                subprocess.run([sys.executable, "-c", text, scheme, BUCKET], env=service.environment(), check=True)
            yield service
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the service ended with {process.returncode}")


@dataclass
class Faults:
    """What happens to a request, by chance."""

    refused: float = 0
    """It is answered with 503."""
    lost: float = 0
    """It is done, and the connection ends without an answer."""
    twice: float = 0
    """It is done twice, and the answer is the second."""
    slow: float = 0
    """It waits, for most of the seconds that `slowness` gives."""
    slowness: float = 1
    cut: bool = False
    """Only half of each table comes when it is first asked for."""
    late: float = 0
    """A list may be so many seconds old."""
    random: random.Random = field(default_factory=lambda: random.Random(1))


@dataclass
class Request:
    """What a program asked for."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.path).query, keep_blank_values=True)

    @property
    def is_list(self) -> bool:
        asked = self.query
        return self.method == "GET" and ("list-type" in asked or "list" in asked.get("comp", ()) or self._of_google)

    @property
    def _of_google(self) -> bool:
        return urlsplit(self.path).path.endswith("/o")


Answer = tuple[int, list[tuple[str, str]], bytes]


class Proxy:
    """Stands before a service, for programs that take its port for that of the service.

    with Proxy(service) as proxy:
        proxy.faults = Faults(lost=0.1)
        proxy.environment
    """

    def __init__(self, service: Service, *, exclusive: bool = True) -> None:
        """With `exclusive` it refuses what the emulator of Google's service does, which is to create what exists."""
        self.service = service
        self.faults = Faults()
        self.requests: list[Request] = []
        """All so far."""
        self.on_request: Callable[[int, bool], bool] = lambda _number, _done: False
        """Called before and after each is done; one that it says True of is not answered."""
        self.was_cut: set[str] = set()
        self._lists: dict[str, tuple[float, Answer]] = {}
        self._lock = threading.Lock()
        self._exclusive = threading.Lock() if exclusive and service.scheme == "gs" else None

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def environment(self) -> dict[str, str]:
        """How programs find it."""
        return self.service.environment(self.port)

    def answer(self, request: Request) -> Answer | None:
        """The answer to a request; None for a connection that ends."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            chances = [self.faults.random.random() for _ in range(4)]
        faults = self.faults
        if self.on_request(number, False):
            return None
        if chances[0] < faults.slow:
            time.sleep(max(chances[1], 0.7) * faults.slowness)
        if chances[1] < faults.refused:
            return 503, [], b""
        if request.is_list and faults.late:
            before = self._lists.get(request.path)
            if before is not None and time.monotonic() - before[0] < faults.late:
                return before[1]
        answer = self._forward(request)
        if chances[2] < faults.twice:
            answer = self._forward(request)
        if request.is_list:
            self._lists[request.path] = time.monotonic(), answer
        if self.on_request(number, True) or chances[3] < faults.lost:
            return None
        return answer

    def comes(self, path: str, body: bytes) -> bytes:
        """What comes of an answer."""
        if not self.faults.cut or not path.endswith(".parquet") or path in self.was_cut:
            return body
        self.was_cut.add(path)
        return body[: len(body) // 2]

    def _forward(self, request: Request) -> Answer:
        wanted = request.query
        if self._exclusive is None or wanted.get("ifGenerationMatch") != ["0"]:
            return self._send(request)
        with self._exclusive:
            place = urlsplit(request.path).path.removeprefix("/upload")
            name = wanted["name"][0] if "name" in wanted else _name_in(request.body)
            if self._send(Request("GET", f"{place}/{quote(name, safe='')}", {}, b""))[0] != 200:
                return self._send(request)
            return 412, [("Content-Type", "application/json")], b'{"error": {"code": 412, "message": "it exists"}}'

    def _send(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)
        try:
            left_out = {"transfer-encoding", "content-length", "connection", "expect"}
            headers = {name: value for name, value in request.headers.items() if name.lower() not in left_out}
            if request.body or request.method in {"PUT", "POST"}:
                headers["Content-Length"] = str(len(request.body))
            connection.request(request.method, request.path, request.body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


def _name_in(body: bytes) -> str:
    """The name in the first part of an upload of several."""
    return body.partition(b'"name":')[2].split(b'"')[1].decode()


class _Handler(BaseHTTPRequestHandler):
    """Hands requests to a proxy."""

    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def do(self) -> None:
        answer = self.proxy.answer(Request(self.command, self.path, dict(self.headers), self._body()))
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response_only(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            comes = self.proxy.comes(self.path, body)
            self.wfile.write(comes)
            self.close_connection |= len(comes) < len(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = do  # noqa: N815

    def _body(self) -> bytes:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass
