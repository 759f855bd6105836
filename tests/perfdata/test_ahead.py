"""A file that is read ahead: the same pieces, and the same errors at the same places."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from walkback.base.errors import UnreadableError
from walkback.capture.perfdata.ahead import ReadAhead
from walkback.elf import OpenFile

CONTENTS = bytes(range(256)) * 40
PIECE = 1000


@pytest.fixture(autouse=True)
def _processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENTS)
    return path


def _pieces(path: Path) -> list[bytes]:
    """All pieces, each beginning 10 bytes before the last one ends."""
    ahead = ReadAhead(OpenFile(path), len(CONTENTS), PIECE)
    found, position = [], 0
    while position < len(CONTENTS):
        piece = ahead.take(position)
        end = position + len(piece)
        position = end - 10 if end < len(CONTENTS) else end
        ahead.begin(position)
        found.append(bytes(piece))
    return found


def _wanted() -> list[bytes]:
    return [CONTENTS[begin : begin + PIECE] for begin in range(0, len(CONTENTS) - 10, PIECE - 10)]


def test_pieces_are_those_of_the_file(path: Path) -> None:
    assert _pieces(path) == _wanted()


def test_without_threads_they_are_too(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert _pieces(path) == _wanted()


def test_one_processor_reads_when_it_has_to(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", started.append)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert _pieces(path) == _wanted()
    assert not started


def test_another_piece_than_the_one_begun(path: Path) -> None:
    ahead = ReadAhead(OpenFile(path), len(CONTENTS), PIECE)
    ahead.begin(5000)
    assert bytes(ahead.take(0)) == CONTENTS[:PIECE]
    assert bytes(ahead.take(5000)) == CONTENTS[5000:6000]


def test_a_file_that_was_cut_is_an_error_where_its_piece_is_taken(path: Path) -> None:
    ahead = ReadAhead(OpenFile(path), len(CONTENTS), PIECE)
    first = ahead.take(0)
    os.truncate(path, 1500)
    ahead.begin(PIECE)
    assert bytes(first) == CONTENTS[:PIECE]
    with pytest.raises(UnreadableError, match="while it was read"):
        ahead.take(PIECE)
