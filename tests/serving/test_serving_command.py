"""`walkback store DIR serve`: what it prints, where it listens, and how it ends."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.commands import run
from serving.served import served
from walkback.serving.server import DEFAULT_PORT

pytestmark = pytest.mark.whole


@contextlib.contextmanager
def taken(port: int) -> Iterator[int]:
    """Somebody listens there; gives the port."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):  # somebody does already
            other.bind(("127.0.0.1", port))
            other.listen()
        yield port or other.getsockname()[1]


def test_an_interrupt_ends_it_also_while_somebody_is_connected(store: Path) -> None:
    with served(store, "--port", "0") as server, server.connect():
        assert server.found("store")["samples"]
        assert server.interrupt() == 0
        assert server.log() == []


def test_it_ends_as_others_do_when_it_is_terminated(store: Path) -> None:
    with served(store, "--port", "0") as server:
        server.process.terminate()
        assert server.process.wait() == 128 + signal.SIGTERM
        assert server.log() == []


def test_the_usual_port_makes_room_for_another(store: Path) -> None:
    with taken(DEFAULT_PORT), served(store) as server:
        assert server.port != DEFAULT_PORT
        assert server.found("store")["samples"]


def test_a_port_that_is_asked_for_and_taken_is_refused(store: Path) -> None:
    with taken(0) as port:
        done = run("store", store, "serve", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == (
        f"Error: cannot listen on 127.0.0.1, port {port}: Address already in use"
    )
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--host", "no.such.host.invalid"], "Error: cannot listen on no.such.host.invalid: "),
        (["--host", "0.0.0.0", "--no-token"], "Error: others reach 0.0.0.0, so it needs the token"),
        (["--host", "::", "--no-token"], "Error: others reach ::, so it needs the token"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(store: Path, options: list[str], line: str) -> None:
    done = run("store", store, "serve", *options)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1].startswith(line)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    done = run("store", tmp_path, "serve")
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1


def test_without_a_token_everybody_gets_answers(store: Path) -> None:
    with served(store, "--port", "0", "--no-token") as server:
        assert server.token is None
        assert server.found("store")["samples"]


def test_every_token_is_another(store: Path) -> None:
    with served(store, "--port", "0") as one, served(store, "--port", "0") as other:
        assert one.token != other.token
        assert one.ask("/store", other.authorization).status == 401


def test_names_are_as_the_options_say(tmp_path: Path) -> None:
    (tmp_path / "stacks.folded").write_text("run;int first<int>(int) 1\n")
    folder = tmp_path / "stacks"
    assert run("store", folder, "append", tmp_path / "stacks.folded").returncode == 0
    for option, name in (("--short-names", "first<...>"), ("--demangle", "first<int>")):
        with served(folder, "--port", "0", option) as server:
            (function,) = server.found("stacks")["functions"]
            assert name in function["name"]


@pytest.mark.parametrize(
    ("host", "address"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("localhost", "127.0.0.1")]
)
def test_another_address_is_listened_on(store: Path, host: str, address: str) -> None:
    with served(store, "--host", host, "--port", "0") as server:
        server.host = address
        shown = socket.gethostname() if host == "0.0.0.0" else address
        assert server.url == f"http://{shown}:{server.port}/#token={server.token}"
        for name, expected in (
            (shown, 200),
            (address, 200),
            (host, 200),
            ("evil.example", 403),
        ):
            headers = {**server.authorization, "Host": f"{name}:{server.port}"}
            assert server.ask("/store", headers).status == expected, name
        assert server.ask("/store", {}).status == 401


def test_it_listens_on_an_address_of_ipv6(store: Path) -> None:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        pytest.skip("needs IPv6")
    with served(store, "--host", "::1", "--port", "0") as server:
        server.host = "::1"
        assert server.url.startswith("http://[::1]:")
        assert server.found("store")["samples"]


def test_an_interrupt_ends_it_while_it_reckons(store: Path) -> None:
    with served(store, "--port", "0") as server, server.connect() as connection:
        request = f"GET /stacks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        connection.sendall(request.encode())
        assert server.interrupt() == 0
        assert server.log() == []
