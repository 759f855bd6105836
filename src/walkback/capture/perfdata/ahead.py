"""Reads a file piece by piece, the next piece while the last one is looked at."""

from __future__ import annotations

import threading

from walkback.base.threads import threads_for
from walkback.capture.perfdata.rooms import Rooms
from walkback.elf import OpenFile


class ReadAhead:
    """Pieces of one file, which are taken from front to back."""

    def __init__(self, file: OpenFile, end: int, size: int) -> None:
        """Of this size, but for the last, which goes up to `end`."""
        self._file, self._end, self._size = file, end, size
        self._rooms = Rooms(size)
        self._begun: _Piece | None = None

    def begin(self, position: int) -> None:
        """Say where the next piece begins: it is read from now on, if a processor is free for that."""
        if position < self._end and threads_for(2) > 1:
            self._begun = self._new(position)
            self._begun.start()

    def take(self, position: int) -> memoryview:
        """The piece that begins there."""
        piece, self._begun = self._begun, None
        if piece is None or piece.position != position:
            piece = self._new(position)
        return piece.contents()

    def _new(self, position: int) -> _Piece:
        return _Piece(self._file, position, self._rooms.take(min(self._size, self._end - position)))


class _Piece:
    """One piece, which a thread may read."""

    def __init__(self, file: OpenFile, position: int, room: memoryview) -> None:
        self.position = position
        self._file, self._room = file, room
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self) -> None:
        """Read it in a thread, if one can be had."""
        thread = threading.Thread(target=self._read, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return
        self._thread = thread

    def contents(self) -> memoryview:
        """What it has, when it is read."""
        if self._thread is None:
            self._read()
        else:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._room

    def _read(self) -> None:
        try:
            self._file.read_into(self.position, self._room)
        except Exception as error:  # raised where the piece is taken
            self._error = error
