"""Reads the paths of a Compact Image Map, in which pieces of earlier paths stand for the beginnings of later ones.

A few bytes can double a path again and again, so what is put together is bounded. Of a path that cannot be read the
opcodes are passed over, and what it would have taught keeps its codes: so the images behind it are read rightly.
"""

from __future__ import annotations

from collections.abc import Callable

from walkback.base.findings import ByteFinding
from walkback.cif import layout
from walkback.cif.prefixes import PrefixTable


class PathReader:
    """Reads the paths of one map, in their order."""

    def __init__(self, data: bytes, note: Callable[[int, int, str, str], None] | None = None) -> None:
        """`note` takes each part: its offset, its size, its name and its meaning."""
        self._data, self._note = data, note
        self._prefixes = PrefixTable()
        self._room = self._most = layout.path_room(len(data))
        self._pos = 0
        self._text = bytearray()
        self._teaches = False
        self._trouble: ByteFinding | None = None

    def read(self, pos: int) -> tuple[str | None, int, ByteFinding | None]:
        """The path that begins at a place, where it ends, and what is wrong with it; None if the image has none."""
        start = self._pos = pos
        self._text, self._teaches, self._trouble = bytearray(), False, None
        if not self._run():
            end = len(self._data)
            return None, end, ByteFinding(end, "data-missing", "the data ends within the path")
        self._room -= len(self._text)
        path = None
        if self._trouble is None and self._text:
            try:
                path = self._text.decode()
            except UnicodeDecodeError:
                self._trouble = ByteFinding(start, "path-utf8", "the path is not UTF-8")
        return path, self._pos, self._trouble

    def _run(self) -> bool:
        """Follow the opcodes up to the end of the path; whether there is one."""
        while self._pos < len(self._data):
            start = self._pos
            opcode = self._data[start]
            operand = opcode & layout.OPERAND_MASK
            self._pos += 1
            if opcode == layout.END:
                self._noted(start, "end", "")
                return True
            if opcode & layout.EXPAND:
                whole = self._expand(start, operand, extended=bool(opcode & layout.EXTENDED))
            elif opcode & layout.FRAMEWORK:
                return self._framework(start, operand + 1)
            else:
                whole = self._raw(start, operand)
            if not whole:
                return False
        return False

    def _raw(self, start: int, size: int) -> bool:
        piece = self._take(size)
        if piece is None:
            return False
        fits = self._fits(start, size)
        first, before = not self._teaches, len(self._prefixes)
        if first:
            self._teaches = True
            self._prefixes.begin(self._text if fits else None, len(self._text))
        for place, byte in enumerate(piece):
            if byte in layout.SEPARATORS and not (first and place == 0):
                self._prefixes.learn(len(self._text) + place)
        self._append(piece, fits)
        taught = len(self._prefixes) - before
        codes = f", code {before}" + (f" to {before + taught - 1}" if taught > 1 else "") if taught else ""
        self._noted(start, "str", f"{_shown(piece)}{codes}")
        return True

    def _framework(self, start: int, size: int) -> bool:
        both = self._take(size + 1)
        if both is None:
            return False
        version, name = both[:1], both[1:]
        folder = b"" if version[0] == layout.FLAT else b"/Versions/" + version
        piece = b"/" + name + b".framework" + folder + b"/" + name
        self._append(piece, self._fits(start, len(piece)))
        self._noted(start, "framewk", _shown(piece))
        return True

    def _expand(self, start: int, operand: int, *, extended: bool) -> bool:
        code = operand
        if extended:
            following = self._take(operand + 1)
            if following is None:
                return False
            code = layout.FIRST_EXTENDED + int.from_bytes(following, "big")
        size = self._prefixes.size(code)
        if size is None:
            self._fail(ByteFinding(start, "path-code", f"nothing has taught what the code {code} stands for"))
            self._noted(start, "expand", f"code {code}, unknown")
            return True
        fits = self._fits(start, size)
        piece = self._prefixes[code] if fits else b""
        self._append(piece, fits)
        self._noted(start, "expand", f"code {code}, {_shown(piece) if fits else 'too long'}")
        return True

    def _take(self, size: int) -> bytes | None:
        piece = self._data[self._pos : self._pos + size]
        self._pos += size
        return piece if len(piece) == size else None

    def _fits(self, start: int, size: int) -> bool:
        """Whether the path is good so far and may have `size` more bytes."""
        if self._trouble is None:
            length = len(self._text) + size
            if length > layout.LONGEST_PATH:
                self._fail(ByteFinding(start, "path-length", f"the path is longer than {layout.LONGEST_PATH} bytes"))
            elif length > self._room:
                text = f"the paths of this map are longer than {self._most} bytes together"
                self._fail(ByteFinding(start, "path-length", text))
        return self._trouble is None

    def _fail(self, trouble: ByteFinding) -> None:
        if self._trouble is None:
            self._trouble = trouble
            # What it taught so far is known, and what it goes on to teach is not.
            self._prefixes.begin(None, 0)

    def _append(self, piece: bytes, fits: bool) -> None:
        if fits:
            self._text += piece

    def _noted(self, start: int, name: str, meaning: str) -> None:
        if self._note is not None:
            self._note(start, self._pos - start, name, meaning)


def _shown(piece: bytes) -> str:
    return repr(piece.decode(errors="backslashreplace"))
