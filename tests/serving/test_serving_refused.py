"""Requests that are refused: each with one line, soon, and without harm to others."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

from effort import rounds
from serving.running import running
from serving.served import Asked, Served, served
from waiting import PATIENCE, eventually
from walkback.serving import handler
from walkback.serving.answers import Answers
from walkback.serving.server import MOST_CONNECTIONS
from walkback.store.naming import Naming
from walkback.store.store import Store

MANY = 200


def head(server: Asked, *lines: str, first: str = "GET /store HTTP/1.1", host: str | None = None) -> bytes:
    """A request with the token, by hand."""
    named = f"Host: {host or f'127.0.0.1:{server.port}'}"
    return "\r\n".join([first, named, f"Authorization: Bearer {server.token}", *lines, "", ""]).encode("latin-1")


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.fixture(autouse=True)
def nothing_is_logged(server: Served) -> Iterator[None]:
    """Whoever asks wrongly fills no log, and keeps nobody from an answer."""
    yield
    assert server.log() == []
    assert server.found("store")["samples"]


# Who asks


@pytest.mark.parametrize("kind", ["store", "timeline", "stacks"])
@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Basic {token}",
        "{token}",
        "bearer {token}",
        "Bearer {token}x",
        "Bearer {short}",
        "Bearer \xff",
    ],
)
def test_who_has_not_the_token_gets_nothing(server: Served, kind: str, authorization: str | None) -> None:
    assert server.token is not None
    words = None if authorization is None else authorization.format(token=server.token, short=server.token[:-1])
    answer = server.ask(f"/{kind}", {} if words is None else {"Authorization": words})
    assert (answer.status, answer.line) == (401, "this needs the token: open the address that was printed")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_the_token_counts_nowhere_else(server: Served) -> None:
    for target, headers in (
        (f"/store?token={server.token}", {}),
        ("/store", {"Cookie": f"token={server.token}"}),
    ):
        assert server.ask(target, headers).status == 401


def test_the_page_itself_has_nothing_of_the_store(server: Served, store: Path) -> None:
    answer = server.ask("/", {})
    assert answer.status == 200
    for word in (str(store), str(server.token), "w\u00f6rker", "web1"):
        assert word.encode() not in answer.body


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:9999"])
def test_own_names_are_answered(server: Served, name: str) -> None:
    assert status(server.sent(head(server, host=name))) == 200


@pytest.mark.parametrize(
    "name",
    [
        "evil.example",
        "evil.example:8370",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "0.0.0.0",
        "[::1]",
        "::1",
        "[127.0.0.1",
        "127.0.0.1:80:80",
        "127.0.0.1:x",
        "x@127.0.0.1",
        "\xff",
    ],
)
def test_names_that_others_may_have_are_refused(server: Served, name: str) -> None:
    for path in ("/", "/store", "/other"):
        answer = server.sent(head(server, first=f"GET {path} HTTP/1.1", host=name))
        assert (status(answer), answer.splitlines()[-1]) == (403, b"this is no name of this server")


def test_a_request_has_one_host(server: Served) -> None:
    assert status(server.sent(head(server, "Host: localhost"))) == 403
    assert status(server.sent(f"GET /store HTTP/1.0\r\nAuthorization: Bearer {server.token}\r\n\r\n".encode())) == 403


@pytest.mark.parametrize(
    ("site", "expected"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_other_pages_are_refused(server: Served, site: str, expected: int) -> None:
    assert status(server.sent(head(server, f"Sec-Fetch-Site: {site}"))) == expected


# What is asked


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "X" * 100])
def test_nothing_but_reading_is_done(server: Served, method: str) -> None:
    answer = server.ask("/store", method=method)
    assert (answer.status, answer.line) == (405, "this is not GET or HEAD")
    assert answer.headers["Allow"] == "GET, HEAD"


def test_a_body_is_not_read(server: Served) -> None:
    answer = server.sent(head(server, "Content-Length: 100000", first="POST /store HTTP/1.1") + bytes(100_000))
    assert (status(answer), answer.splitlines()[-1]) == (405, b"this is not GET or HEAD")


def test_a_head_is_the_head_of_what_get_gives(server: Served) -> None:
    for target in ("/", "/store", "/stacks?since=x", "/other"):
        get, only = (server.ask(target, method=method) for method in ("GET", "HEAD"))
        assert only.body == b""
        assert only.status == get.status
        assert only.headers["Content-Length"] == str(len(get.body))


@pytest.mark.parametrize(
    "path",
    [
        "/other",
        "/store/",
        "/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/store/../stacks",
        "/serving.js",
        "/\0",
        "/store%00",
        "/.",
        "/%",
        "/\xff",
    ],
)
def test_a_path_leads_to_no_file(server: Served, path: str) -> None:
    answer = server.sent(head(server, first=f"GET {path} HTTP/1.1"))
    assert (status(answer), answer.splitlines()[-1]) == (404, b"there is /, /store, /timeline, /stacks, no more")


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("/store?x=1", "store has no parameter 'x'"),
        ("/timeline?compare=1", "timeline has no parameter 'compare'"),
        ("/stacks?%0a=1", r"stacks has no parameter '\\x0a'"),
        (
            "/stacks?since=yesterday",
            "since: 'yesterday' is not a time; examples: 2026-11-21, 2026-11-21T13:30, 90m (90 minutes ago), 2d",
        ),
        (
            "/stacks?before-until=",
            "before-until: '' is not a time; examples: 2026-11-21, 2026-11-21T13:30, 90m (90 minutes ago), 2d",
        ),
        ("/stacks?since=1h&since=2h", "since is there 2 times"),
        ("/stacks?label=version", "label: 'version' is not NAME=VALUE; example: version=1.2"),
        ("/stacks?before-label==1", "before-label: '=1' is not NAME=VALUE; example: version=1.2"),
        ("/stacks?host=a%00b", "host has a control character in it"),
        ("/stacks?process=%ff", "the query is not UTF-8"),
        ("/stacks?host", "the query is not up to 100 parameters, as since=2h&process=hello"),
        ("/stacks?" + "&".join(["host=a"] * 101), "the query is not up to 100 parameters, as since=2h&process=hello"),
    ],
)
def test_parameters_that_make_no_sense_get_a_line(server: Served, target: str, line: str) -> None:
    answer = server.ask(target)
    assert (answer.status, answer.line) == (400, line)


@pytest.mark.parametrize(
    "value", ["' OR 1=1 --", "'); DROP TABLE samples; --", "/etc/passwd", "\\", "%", "a\u2028b", "x" * 5_000]
)
def test_values_are_only_values(server: Served, value: str) -> None:
    for name, its in (("process", value), ("label", f"{value}={value}".lstrip("=")), ("host", value)):
        assert server.found("stacks", (name, its)) == {"missing": "there are no such samples"}
        assert sum(server.found("timeline", (name, its))["counts"]) == 0


@pytest.mark.parametrize(
    ("request_bytes", "statuses"),
    [
        (b"GET /store HTTP/1.1\r\n" + b"X: y\r\n" * 5000 + b"\r\n", {431}),
        (b"GET /store HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", {431}),
        (b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\n\r\n", {400, 414, 431}),
        (b"y" * 100_000, {400, 431}),
        (b"GET /store HTTP/9.9\r\n\r\n", {505}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}),
        (b"GET\r\n\r\n", {400}),
    ],
)
def test_what_is_no_request_gets_a_line(server: Served, request_bytes: bytes, statuses: set[int]) -> None:
    answer = server.sent(request_bytes)
    assert status(answer) in statuses
    lines = answer.partition(b"\r\n\r\n")[2].splitlines()
    assert len(lines) == 1
    assert len(lines[0]) < handler.HEAD_BYTES + 1000


def test_a_store_that_is_gone_is_a_line(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stacks"
    copytree(store, folder)
    with served(folder, "--port", "0") as server:
        rmtree(folder)
        answer = server.ask("/store")
        assert (answer.status, answer.line) == (500, f"{folder}/lock: No such file or directory")


def test_damaged_requests_get_a_line_an_answer_or_nothing(server: Served) -> None:
    rng = random.Random(1)
    whole = head(server, "Sec-Fetch-Site: same-origin", first="GET /stacks?since=2h&label=version=1.1 HTTP/1.1")
    seen = Counter[int]()
    for _ in range(rounds(400, 80)):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(data))
            piece = rng.choice((b"", b"\0", b"\r\n", b"\r\n\r\n", b":", b"%", bytes([rng.randrange(256)]), b"x" * 3000))
            data[place : place + rng.randrange(8)] = piece
        # What is cut off would wait for more.
        answer = server.sent(bytes(data) + b"\r\n\r\n")
        seen[status(answer) if answer else 0] += 1
        assert b"Traceback" not in answer
    assert set(seen) <= {0, 200, 400, 401, 403, 404, 405, 414, 431, 505}
    assert {200, 400, 401, 403} <= set(seen)


@pytest.mark.parametrize("target", ["/", "/store", "/stacks?since=x", "/other"])
@pytest.mark.parametrize("headers", [None, {}, {"Origin": "http://evil.example"}])
def test_every_answer_has_the_headers_that_protect(server: Served, target: str, headers: dict[str, str] | None) -> None:
    found = server.ask(target, headers).headers
    policy = found["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert ("script-src 'sha256-" in policy) == (target == "/")
    assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", "")
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Referrer-Policy"] == "no-referrer"
    assert found["Cache-Control"] == "no-store"
    assert not [name for name in found if name.lower().startswith("access-control-")]
    assert found["Server"] == "walkback"


# How it is asked


@pytest.fixture
def patient(store: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """A server in this process, which waits for requests longer than any test does."""
    monkeypatch.setattr(handler, "HEAD_SECONDS", 10.0 * PATIENCE)
    with running(Answers(Store(store), Naming)) as one:
        yield one


def test_those_who_send_nothing_keep_nobody_out(patient: Asked) -> None:
    with contextlib.ExitStack() as opened:
        idle = [opened.enter_context(patient.connect()) for _ in range(MANY)]
        for connection in idle[::2]:
            with contextlib.suppress(OSError):
                connection.sendall(b"GET /stacks HTTP/1.1\r\nX: ")
        assert patient.found("store")["samples"]
        # The oldest were let go.
        assert eventually(lambda: ended(idle[0]))
        assert not ended(idle[-1])


def ended(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_request_must_come_soon_however_it_drips(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "HEAD_SECONDS", 0.5)
    begin = time.monotonic()
    with running(Answers(Store(store), Naming)) as one, one.connect() as slow:
        slow.sendall(b"GET /store HTTP/1.1\r\n")

        def dripped() -> bool:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                slow.sendall(b"X: y\r\n")
            return ended(slow)

        assert eventually(dripped)
        assert time.monotonic() - begin >= 0.5


def test_many_at_once_are_all_answered_or_refused(server: Served) -> None:
    assert MANY > MOST_CONNECTIONS
    before = server.memory()
    outcomes: list[Any] = []

    def one() -> None:
        try:
            outcomes.append(server.ask("/stacks").status)
        except (OSError, HTTPException) as error:
            # Its place was given to another, perhaps in the middle of an answer, or it was refused before it was read.
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=one) for _ in range(MANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(outcomes) == MANY
    assert outcomes.count(200)
    assert server.memory() - before < 100 << 10
    assert server.found("store")["samples"]


def test_many_that_are_huge_cost_little(server: Served) -> None:
    before = server.memory()
    for _ in range(MANY):
        with server.connect() as connection, contextlib.suppress(OSError):
            connection.sendall(b"GET /" + b"x" * (1 << 20))
    assert server.found("store")["samples"]
    assert server.memory() - before < 50 << 10


def test_what_cannot_be_read_is_a_line_for_both(store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stacks"
    copytree(store, folder)
    with served(folder, "--port", "0") as one:
        assert one.ask("/stacks").status == 200
        for file in folder.rglob("nodes.parquet"):
            file.write_bytes(b"x" * 100)
        assert one.ask("/stacks").status == 200  # it was reckoned before
        for _ in range(2):
            answer = one.ask("/stacks?process=server")
            assert answer.status == 500
            assert answer.line.startswith(f"{folder}/segment=")
        assert one.log() == [f"walkback: {folder}: {answer.line}"]
        next(folder.glob("segment=*/segment.json")).write_bytes(b"{")
        answer = one.ask("/store")
        assert answer.status == 500
        assert "segment.json" in answer.line
        assert one.log()[1:] == [f"walkback: {folder}: {answer.line}"]
