"""What the tests of the command share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def hello(tmp_path: Path) -> Path:
    # Late: with --interpreted nothing of the package may be imported before the tests are.
    from cli.hello import program

    return program(tmp_path)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A recording of `hello`."""
    from cli.walked import BUILD_ID
    from recorded import hello, recording

    path = tmp_path / "perf.data"
    path.write_bytes(recording(hello(tmp_path, f"-Wl,{BUILD_ID}")))
    return path


@pytest.fixture
def made_core(tmp_path: Path) -> Path:
    """A core file of `hello`."""
    from recorded import core, hello

    path = tmp_path / "core.hello"
    path.write_bytes(core(hello(tmp_path)))
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with threads that sleep."""
    from capture.targets import THREADS, compiled

    return compiled(tmp_path_factory.mktemp("stack"), THREADS, "-g")


@pytest.fixture(scope="module")
def target(program: Path) -> Iterator[int]:
    """The number of a process that runs it."""
    from capture.targets import started

    with started(program) as process:
        yield process.pid
