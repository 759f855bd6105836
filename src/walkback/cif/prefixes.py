"""The prefix table that a reader and a writer of paths build up alike."""

from __future__ import annotations

from array import array

from walkback.cif import layout

LONGEST_KNOWN = 512
"""A writer counts longer prefixes, and does not use them: all those of a path would take the square of its length."""


class PrefixTable:
    """What each code stands for, to a reader.

    A learned prefix is a piece of the path that taught it, and only its place is kept: the prefixes of a path of n
    folders would take n * n / 2 bytes.
    """

    def __init__(self) -> None:
        self._texts: list[bytearray | None] = []
        self._begins = array("q")
        """Of each text, from where on its prefixes are taken."""
        self._text = array("q")
        self._end = array("q")
        """Of each learned prefix the number of its text, and where it ends in it."""

    def __len__(self) -> int:
        return layout.FIRST_LEARNED + len(self._end)

    def begin(self, text: bytearray | None, begin: int) -> None:
        """From now on the path in `text` teaches, from its byte `begin` on; None if it is not known."""
        self._texts.append(text)
        self._begins.append(begin)

    def learn(self, end: int) -> None:
        """The next code stands for what the path has up to here."""
        self._text.append(len(self._texts) - 1)
        self._end.append(end)

    def size(self, code: int) -> int | None:
        """How long a prefix is; None for a code that stands for nothing, or for what is not known."""
        if code < layout.FIRST_LEARNED:
            return len(layout.PREFIXES[code]) if code < len(layout.PREFIXES) else None
        number = code - layout.FIRST_LEARNED
        if number >= len(self._end) or self._texts[self._text[number]] is None:
            return None
        return self._end[number] - self._begins[self._text[number]]

    def __getitem__(self, code: int) -> bytes:
        """A prefix that is known."""
        if code < layout.FIRST_LEARNED:
            return layout.PREFIXES[code]
        number = code - layout.FIRST_LEARNED
        text = self._texts[self._text[number]]
        return bytes(text[self._begins[self._text[number]] : self._end[number]]) if text is not None else b""


class KnownPrefixes:
    """The same to a writer: the codes of the prefixes that a path goes on with."""

    def __init__(self) -> None:
        self._codes: dict[bytes, int] = {}
        self._lengths: dict[int, list[int]] = {}
        """By the first byte of prefixes how long they are."""
        self.next = 0
        """The code of what is learned next."""
        for prefix in layout.PREFIXES:
            self.learn(prefix, 0, len(prefix))
        self.next = layout.FIRST_LEARNED

    def learn(self, path: bytes, begin: int, end: int) -> None:
        """The next code stands for this piece of a path; of several codes of one prefix the first is used."""
        prefix = path[begin:end] if end - begin <= LONGEST_KNOWN else b""
        if prefix and prefix not in self._codes:
            self._codes[prefix] = self.next
            lengths = self._lengths.setdefault(prefix[0], [])
            if len(prefix) not in lengths:
                lengths.append(len(prefix))
        self.next += 1

    def at(self, path: bytes, place: int) -> list[tuple[int, int]]:
        """Length and code of each prefix that stands at a place of a path."""
        found = []
        for length in self._lengths.get(path[place], ()):
            code = self._codes.get(path[place : place + length])
            if code is not None and place + length <= len(path):
                found.append((length, code))
        return found
