"""What servers may do, and what comes of it: in a bounded time a file that is right, or a line that says why not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from debuginfod.fileservers import Behaviour, having, redirecting, sending, serving
from waiting import PATIENCE, eventually
from walkback.debuginfod.environment import Settings, settings
from walkback.debuginfod.servers import Servers
from walkback.elf import ElfFile

BUILD_ID = "1234567890abcdef1234567890abcdef12345678"
OTHER_ID = "ff" * 20
WANTED = f"/buildid/{BUILD_ID}/debuginfo"


def program(folder: Path, build_id: str = BUILD_ID) -> Path:
    path = folder / f"prog-{build_id[:4]}"
    source = folder / "a.c"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-g", f"-Wl,--build-id=0x{build_id}", source, "-o", path], check=True)
    return path


@pytest.fixture
def right(tmp_path: Path) -> Path:
    return program(tmp_path)


def asking(cache: Path, *urls: str, limit: int = 32, timeout: float = 1) -> Servers:
    chosen = Settings(tuple(f"{url}/" for url in urls), cache, timeout=timeout, most_bytes=10_000_000)
    return Servers(chosen, limit=limit)


def find(servers: Servers, kind: str = "debuginfo") -> Path | None:
    return servers.find(bytes.fromhex(BUILD_ID), kind)


def test_the_first_server_that_has_a_file_sends_it_and_next_time_nobody_is_asked(tmp_path: Path, right: Path) -> None:
    answer = having({WANTED: right})

    def behave(request: BaseHTTPRequestHandler) -> None:
        assert eventually(lambda: without.asked)
        answer(request)

    with serving(having({})) as without, serving(behave) as server:
        servers = asking(tmp_path / "cache", without.url, server.url, timeout=PATIENCE)
        found = find(servers)
        assert found == tmp_path / "cache" / BUILD_ID / "debuginfo"
        assert found.read_bytes() == right.read_bytes()
        assert (without.asked, server.asked) == ([WANTED], [WANTED])
        assert find(servers) == find(asking(tmp_path / "cache", server.url)) == found
        assert server.asked == [WANTED]
        assert servers.troubles == []


def test_what_no_server_has_is_not_asked_for_again_for_a_while(tmp_path: Path) -> None:
    with serving(having({})) as server:
        for _ in range(2):
            servers = asking(tmp_path / "cache", server.url)
            assert (find(servers), servers.troubles) == (None, [])
        assert server.asked == [WANTED]
        note = tmp_path / "cache" / BUILD_ID / "debuginfo"
        os.utime(note, (time.time() - 601, time.time() - 601))
        assert find(asking(tmp_path / "cache", server.url)) is None
        assert server.asked == [WANTED, WANTED]


def hanging(request: BaseHTTPRequestHandler) -> None:
    time.sleep(30)


def trickling(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000000")
    request.end_headers()
    for _ in range(600):
        request.wfile.write(b"x")
        request.wfile.flush()
        time.sleep(0.05)


def trickling_headers(request: BaseHTTPRequestHandler) -> None:
    for letter in "HTTP/1.0 200 OK\r\nX-Long: " + "x" * 600:
        request.wfile.write(letter.encode())
        request.wfile.flush()
        time.sleep(0.05)


def endless(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    while True:
        request.wfile.write(bytes(1 << 20))


def chunked(line: bytes) -> Behaviour:
    """Send a piece in chunks, and then this line again and again."""

    def behave(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        if line.endswith(b"\n"):
            request.wfile.write(b"0\r\n")
        for _ in range(600):
            request.wfile.write(line)
            request.wfile.flush()
            time.sleep(0.05)

    return behave


def redirecting_with_an_endless_page(request: BaseHTTPRequestHandler) -> None:
    request.send_response(302)
    request.send_header("Location", "/elsewhere")
    request.end_headers()
    while True:
        request.wfile.write(bytes(1 << 20))


def noisy(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"\0\xff\x1b[2J" * 100)


LIARS: dict[str, tuple[Behaviour, str]] = {
    "hangs": (hanging, "nothing came within 1 seconds|does not answer in time"),
    "sends-byte-by-byte": (trickling, "fewer than 102400 bytes came within 1 seconds"),
    "sends-headers-byte-by-byte": (trickling_headers, "nothing came within 1 seconds"),
    "sends-without-end": (endless, "it sent more than 10000000 bytes"),
    "says-more-than-it-sends": (sending(b"abc", size=1000), "it sent 3 of 1000 bytes"),
    "says-less-than-it-sends": (sending(b"abc" * 1000, size=1), "it sent another file"),
    "says-a-terabyte": (sending(b"abc", size=10**12), "1000000000000 bytes is larger than 10000000"),
    "says-no-number": (sending(b"abc", size=-5), "it sent another file"),
    "sends-garbage": (sending(bytes(range(256)) * 100), "it sent another file"),
    "sends-nothing": (sending(b""), "it sent another file"),
    "fails": (sending(b"oh no", 500), r"it answered 500 \(Internal Server Error\)"),
    "refuses": (sending(b"", 403), r"it answered 403 \(Forbidden\)"),
    "redirects-to-a-file": (redirecting("file:///etc/passwd"), "it answered 302"),
    "redirects-to-itself": (redirecting("{path}"), "it answered 302"),
    "redirects-to-nowhere": (redirecting("ftp://127.0.0.1:1{path}"), "unknown url type: ftp"),
    "redirects-with-an-endless-page": (redirecting_with_an_endless_page, "it answered 302"),
    "sends-trailers-without-end": (chunked(b"X: y\r\n"), "nothing came within 1 seconds"),
    "sends-the-size-of-a-chunk-without-end": (chunked(b"0"), "nothing came within 1 seconds"),
    "speaks-no-http": (noisy, "."),
}


@pytest.mark.parametrize("name", LIARS)
def test_a_server_that_lies_costs_a_bounded_time_and_is_told_once(name: str, tmp_path: Path, right: Path) -> None:
    behave, why = LIARS[name]
    with serving(behave) as liar, serving(having({})) as honest:
        servers = asking(tmp_path / "cache", liar.url, honest.url)
        begin = time.monotonic()
        assert find(servers) is None
        assert time.monotonic() - begin < 20
        (trouble,) = servers.troubles
        assert trouble.startswith(f"{liar.url}/: ")
        assert re.search(why, trouble), trouble
        assert not list((tmp_path / "cache").rglob("*new*"))


@pytest.mark.parametrize("name", ["sends-garbage", "says-more-than-it-sends"])
def test_what_a_liar_has_spoiled_comes_from_another_server(name: str, tmp_path: Path, right: Path) -> None:
    def slow(request: BaseHTTPRequestHandler) -> None:
        time.sleep(0.3)  # so that the liar is first
        having({WANTED: right})(request)

    with serving(LIARS[name][0]) as liar, serving(slow) as honest:
        servers = asking(tmp_path / "cache", liar.url, honest.url, timeout=20)
        found = find(servers)
        assert found is not None
        assert found.read_bytes() == right.read_bytes()
        (trouble,) = servers.troubles
        assert trouble.endswith("so it is not asked again")
        before = len(liar.asked)
        servers.find(bytes.fromhex(OTHER_ID), "debuginfo")
        assert len(liar.asked) == before


def test_the_file_of_another_build_id_does_not_count(tmp_path: Path) -> None:
    other = program(tmp_path, OTHER_ID)
    with serving(having({WANTED: other})) as server:
        servers = asking(tmp_path / "cache", server.url)
        assert find(servers) is None
        assert f"it sent another file than that of {BUILD_ID}" in servers.troubles[0]


def test_so_many_files_are_asked_for_and_no_more(tmp_path: Path) -> None:
    with serving(having({})) as server:
        servers = asking(tmp_path / "cache", server.url, limit=2)
        for number in range(5):
            servers.find(bytes([number] * 20), "executable")
            servers.find(bytes([number] * 20), "debuginfo")
        assert len(server.asked) == 4
        assert servers.troubles == ["servers were not asked for 3 more files; --debuginfod-limit sets the limit"]


def test_symbols_come_without_the_rest_of_their_file(tmp_path: Path, right: Path) -> None:
    elf = ElfFile(right)
    parts = {}
    for name in (".note.gnu.build-id", ".symtab", ".strtab"):
        (tmp_path / name).write_bytes(elf.section_data(elf.sections_named(name)[0]))
        parts[f"/buildid/{BUILD_ID}/section/{name}"] = tmp_path / name
    with serving(having(parts)) as server:
        servers = asking(tmp_path / "cache", server.url, limit=1)
        found = servers.symbol_table(bytes.fromhex(BUILD_ID))
        assert found == tuple((tmp_path / name).read_bytes() for name in (".symtab", ".strtab"))
        asked = len(server.asked)
        assert find(servers) is None
        assert servers.troubles == []  # the limit is one, and this is of the same program
        assert len(server.asked) == asked + 1
        (tmp_path / ".note.gnu.build-id").write_bytes(b"another")
        server.asked.clear()
        other = asking(tmp_path / "other", server.url, limit=1)
        assert other.symbol_table(bytes.fromhex(BUILD_ID)) is None
        assert (len(server.asked), len(other.troubles)) == (1, 1)
        assert [path for path in (tmp_path / "other").rglob("section-*") if path.stat().st_size] == []


def test_what_says_who_asks_is_for_the_server_alone(tmp_path: Path, right: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("X-Token: secret\nno header\n")
    with serving(having({WANTED: right})) as server, serving(redirecting(f"{server.url}{{path}}")) as first:
        url = first.url.replace("//", "//me:pass%20word@")
        known = settings({"DEBUGINFOD_URLS": url, "DEBUGINFOD_HEADERS_FILE": str(headers), "HOME": str(tmp_path)})
        assert known is not None
        servers = Servers(known, limit=1)
        assert find(servers) is not None
        assert first.headers[0]["Authorization"] == "Basic bWU6cGFzcyB3b3Jk"
        assert first.headers[0]["X-Token"] == "secret"
        assert not {"Authorization", "X-Token"} & server.headers[0].keys()
        assert "pass" not in repr(servers)


def test_a_folder_is_a_server_too(tmp_path: Path, right: Path) -> None:
    place = tmp_path / "files" / WANTED[1:]
    place.parent.mkdir(parents=True)
    place.write_bytes(right.read_bytes())
    servers = asking(tmp_path / "cache", (tmp_path / "files").as_uri())
    assert find(servers) is not None
    assert find(servers, "executable") is None
    assert servers.troubles == []


def test_what_the_environment_says(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert settings(home) is None
    assert settings(home | {"DEBUGINFOD_URLS": "ima:enforcing"}) is None
    known = settings(home | {"DEBUGINFOD_URLS": "ima:enforcing local:8002"})
    assert known is not None
    assert known.urls == ("http://local:8002/",)
    known = settings(home | {"DEBUGINFOD_URLS": "file:/a/b file:///a/b file://host/c"})
    assert known is not None
    assert known.urls == ("file:///a/b/", "file://host/c/")
    known = settings(home | {"DEBUGINFOD_URLS": "http://a https://b/x/ http://a"})
    assert known == Settings(("http://a/", "https://b/x/"), tmp_path / ".cache" / "debuginfod_client")
    (tmp_path / ".debuginfod_client_cache").mkdir()
    known = settings(home | {"DEBUGINFOD_URLS": "http://a", "DEBUGINFOD_TIMEOUT": "7", "DEBUGINFOD_MAXTIME": "-1"})
    assert known is not None
    assert (known.cache, known.timeout, known.most_seconds) == (tmp_path / ".debuginfod_client_cache", 7, 600)
    known = settings(home | {"DEBUGINFOD_URLS": "http://a", "DEBUGINFOD_CACHE_PATH": "/x", "DEBUGINFOD_MAXSIZE": "9"})
    assert known is not None
    assert (known.cache, known.most_bytes) == (Path("/x"), 9)


def test_without_servers_nothing_that_could_ask_is_even_imported() -> None:
    script = "import sys, walkback, walkback.cli.main, walkback.naming as n\nn.debuginfod_servers()\n"
    script += "print(sorted({'urllib.request', 'http.client', 'socket', 'ssl'} & sys.modules.keys()))"
    environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_server_that_came_back_is_asked(tmp_path: Path, right: Path) -> None:
    with serving(sending(b"", 503)) as server:
        servers = asking(tmp_path / "cache", server.url)
        assert find(servers) is None
    with serving(having({WANTED: right})) as server:
        assert find(asking(tmp_path / "cache", server.url)) is not None


def test_servers_are_named_without_passwords() -> None:
    assert "secret" not in repr(Servers(Settings(("http://a:secret@b/",), Path("/nowhere")), limit=1))


@pytest.mark.parametrize(
    "url",
    ["http://[::1", "http://me:secret@[::1/x", "http://a:port", "http://", "http://\u2100.a", "ftp://me:secret@a"],
)
def test_an_address_that_is_none_is_told(url: str, tmp_path: Path, right: Path) -> None:
    with serving(having({WANTED: right})) as server:
        known = settings({"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")})
        assert known is not None
        servers = Servers(known, limit=1)
        assert find(servers) is None
        (trouble,) = servers.troubles
        assert trouble.endswith(("so it is not asked again", "by http, https or file only"))
        assert "secret" not in trouble
        assert find(asking(tmp_path / "cache", url, server.url)) is not None


def test_without_a_home_nothing_comes_into_the_folder_that_somebody_is_in(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in {"HOME", "XDG_CACHE_HOME"}}
    script = "from walkback.debuginfod.environment import settings\nfrom walkback.elf.search import FileSearch\n"
    script += "print(settings({'DEBUGINFOD_URLS': 'http://a'}).cache, *FileSearch().roots)"
    user = ["unshare", "--user", "--map-user=4711"]
    if subprocess.run([*user, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no other user can be made here")
    command = [*user, sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["/.cache/debuginfod_client", "/usr/lib/debug"]


@pytest.mark.parametrize("size", [None, 10**6], ids=["whole", "cut"])
def test_progress_ends_also_where_a_file_does_not(size: int | None, tmp_path: Path, right: Path) -> None:
    seen: list[tuple[int, int]] = []
    with serving(sending(right.read_bytes(), size=size)) as server:
        chosen = Settings((f"{server.url}/",), tmp_path / "cache", timeout=20)
        servers = Servers(chosen, limit=1, on_progress=lambda _what, count, of: seen.append((count, of)))
        assert (find(servers) is None) == (size is not None)
    whole = right.stat().st_size
    assert seen[-1] == (whole, whole)
    assert {of for _, of in seen[:-1]} == {size or whole}
