"""Debian's own server, and the command with a program of which nothing but a recording is left."""

from __future__ import annotations

import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.walked import CUT, FOLDED, complaints, unwind
from peers import peer
from recorded import hello, recording
from waiting import eventually

pytestmark = pytest.mark.peers

BUILD_ID = "1234567890abcdef1234567890abcdef12345678"
BUILDID = f"/buildid/{BUILD_ID}"
SECTIONS = [f"{BUILDID}/section/{name}" for name in (".note.gnu.build-id", ".symtab", ".strtab")]


class Debian:
    """A running server, and what it was asked for."""

    def __init__(self, folder: Path, files: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "server.log"
        options = ["-v", "-F", "-p", str(port), "-d", str(folder / "index"), "-t", "0"]
        environment = os.environ | {"DEBUGINFOD_URLS": "", "HOME": str(folder)}
        with self._log.open("wb") as log:
            command = [peer("debuginfod"), *options, str(files)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        assert eventually(lambda: self._has("debuginfo") and self._has("executable"))
        self._before = len(self._requests())

    def _has(self, kind: str) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}{BUILDID}/{kind}", timeout=60) as answer:
                return bool(answer.read(4) == b"\x7fELF")
        except OSError:
            assert self.process.poll() is None, self._log.read_text(errors="replace")
            return False

    def _requests(self) -> list[str]:
        lines = self._log.read_text(errors="replace").splitlines()
        return [line.partition("GET ")[2].split()[0] for line in lines if "GET /buildid/" in line]

    @property
    def asked(self) -> list[str]:
        return self._requests()[self._before :]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Debian]:
    """One with a stripped program and its debug file, and beside it the recording of that program."""
    files = tmp_path / "files"
    files.mkdir()
    program = hello(tmp_path, "-g", f"-Wl,--build-id=0x{BUILD_ID}")
    (tmp_path / "perf.data").write_bytes(recording(program, build_id=bytes.fromhex(BUILD_ID)))
    subprocess.run(["objcopy", "--only-keep-debug", program, files / "hello.debug"], check=True)
    subprocess.run(["strip", program, "-o", files / "hello"], check=True)
    program.unlink()
    debian = Debian(tmp_path, files)
    try:
        yield debian
    finally:
        debian.process.kill()
        debian.process.wait()


def test_a_program_that_is_gone_and_its_debug_file_come_from_the_server(server: Debian, tmp_path: Path) -> None:
    known = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    done = unwind(tmp_path / "perf.data", "-v", env=known)
    assert done.stdout.decode().splitlines() == FOLDED
    place = tmp_path / "cache" / BUILD_ID
    (first, *others) = [line for line in complaints(done) if "looked in" in line]
    assert first.startswith(f"{tmp_path / 'hello'}: {server.url}/ (looked in {tmp_path / 'hello'}, ")
    assert others[0].startswith(f"debug file of {place / 'executable'}: {server.url}/ (looked in ")
    assert server.asked == [f"{BUILDID}/executable", f"{BUILDID}/debuginfo"]
    assert "hello.s" in unwind(tmp_path / "perf.data", "--json", env=known).stdout.decode()
    assert len(server.asked) == 2


def test_for_symbols_alone_their_sections_come(server: Debian, tmp_path: Path) -> None:
    known = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    done = unwind(tmp_path / "perf.data", "--no-lines", env=known)
    assert (done.stdout.decode().splitlines(), complaints(done)[0]) == (FOLDED, f"{tmp_path / 'perf.data'}: {CUT}")
    assert server.asked == [f"{BUILDID}/executable", *SECTIONS]


@pytest.mark.parametrize("how", ["--no-debuginfod", "--debuginfod-limit=0", "no variable"])
def test_no_server_is_asked_unless_that_is_wanted(how: str, server: Debian, tmp_path: Path) -> None:
    url = "" if how == "no variable" else server.url
    known = {"DEBUGINFOD_URLS": url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "c")}
    done = unwind(tmp_path / "perf.data", *([] if how == "no variable" else [how]), env=known)
    assert done.stdout.decode().splitlines() != FOLDED
    assert not (tmp_path / "c").exists()
    assert server.asked == []


def test_a_program_and_its_debug_file_count_once(server: Debian, tmp_path: Path) -> None:
    known = {"DEBUGINFOD_URLS": server.url, "DEBUGINFOD_CACHE_PATH": str(tmp_path / "cache")}
    done = unwind(tmp_path / "perf.data", "--debuginfod-limit", 1, env=known)
    assert not [line for line in complaints(done) if "--debuginfod-limit" in line]
    assert server.asked == [f"{BUILDID}/executable", f"{BUILDID}/debuginfo"]
