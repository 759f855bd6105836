"""Source lines and inlined calls, kept on disk: what large debugging information said of addresses before.

An entry belongs to the files as they are: their build ID, their size, and when they changed. What units say that are in
other files (split DWARF) is not kept.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from walkback.base.arraycache import ArrayCache
from walkback.base.arrays import I64, U64, numbered, ranked
from walkback.debuginfo.lines import DebugLines
from walkback.elf import ElfFile, FileSearch
from walkback.naming.modules import build_id_of
from walkback.symbols.sourceline import SourceLine

_FORMAT = 1
_SMALL = 1 << 20
"""Bytes of debugging information that is as quickly read."""
_SECONDS = 1.0
"""Between writing an entry and writing it again."""
_SHARE = 0.05
"""Of the time, which writing may take at most."""
_NONE = -1

Lines = tuple[SourceLine, ...]


class KeptLines:
    """Those of one file; what is not kept is looked up."""

    def __init__(self, elf: ElfFile, search: FileSearch, cache: ArrayCache | None) -> None:
        self._lines = DebugLines(elf, search)
        self._elf = elf
        self._cache = cache
        self._new: dict[int, Lines] = {}
        """What is not in the entry yet."""
        self._next = 0.0
        """When it may be written again."""

    @property
    def trouble(self) -> str | None:
        """Why lines or inlined calls are not all there, once some were asked for; None if they are."""
        return self._lines.trouble

    def find(self, addresses: U64) -> list[Lines]:
        """For each address its line, behind those of the calls that are inlined there, innermost first."""
        if self._name is None or self._cache is None:
            return self._lines.find(addresses)
        wanted, number = ranked(np.asarray(addresses, np.uint64))
        place = self._kept.places(wanted)
        is_kept = place >= 0
        found = dict(zip(wanted[is_kept].tolist(), self._kept.lines(place[is_kept]), strict=True))
        others = wanted[~is_kept].tolist()
        new = [address for address in others if address not in self._new]
        if new:
            self._new.update(zip(new, self._lines.find(np.array(new, np.uint64)), strict=True))
        found.update((address, self._new[address]) for address in others)
        if new:
            self._keep()
        lines = [found[address] for address in wanted.tolist()]
        return [lines[row] for row in number.tolist()]

    def _keep(self) -> None:
        begin = time.monotonic()
        # While a recording is read more come again and again.
        if self._name is None or self._cache is None or begin < self._next or self._lines.is_split:
            return
        if self.trouble is None:
            order = sorted(self._new)
            self._kept = self._kept.joined(_Answers.of(np.array(order, np.uint64), [self._new[one] for one in order]))
            self._new = {}
            self._cache.write(self._name, self._kept.columns(), {})
            end = time.monotonic()
            self._next = end + max(_SECONDS, (end - begin) / _SHARE)

    @cached_property
    def _kept(self) -> _Answers:
        entry = self._cache.read(self._name) if self._cache is not None and self._name is not None else None
        return _Answers.of_columns(entry[0]) if entry is not None else _Answers.of(np.zeros(0, np.uint64), [])

    @cached_property
    def _name(self) -> str | None:
        """What the entry is called; None if there is to be none."""
        source = self._lines.source
        if source is None:
            return None
        size = sum(int(source.elf.sections["size"][index]) for index in source.elf.sections_named(".debug_info"))
        files = [self._elf, source.elf, *([source.alternate] if source.alternate is not None else [])]
        if size < _SMALL or any(one.file is None for one in files):
            return None
        import hashlib

        digest = hashlib.blake2b(f"{_FORMAT}\n".encode(), digest_size=20)
        for one in files:
            assert one.file is not None
            its = one.file.status
            digest.update(repr((build_id_of(one), its.st_dev, its.st_ino, its.st_size, its.st_mtime_ns)).encode())
        return f"{digest.hexdigest()}.lines"


class _Answers:
    """What is known of addresses, in columns: for each its lines, one after the other."""

    def __init__(self, address: U64, first: I64, function: I64, file: I64, line: I64, texts: list[str]) -> None:
        """Functions and files are numbers of texts; -1 for none."""
        self._address, self._first = address, first
        self._function, self._file, self._line = function, file, line
        self._texts = texts

    @classmethod
    def of(cls, addresses: U64, answers: Sequence[Lines]) -> _Answers:
        """Of addresses that rise."""
        flat = [line for lines in answers for line in lines]
        texts, number = numbered([None, *(one.function for one in flat), *(one.file for one in flat)])
        number = number[1:] - 1
        first = np.concatenate(([0], np.cumsum([len(lines) for lines in answers], dtype=np.int64))).astype(np.int64)
        line = np.array([one.line for one in flat], np.int64)
        return cls(addresses, first, number[: len(flat)], number[len(flat) :], line, [str(one) for one in texts[1:]])

    @classmethod
    def of_columns(cls, columns: dict[str, np.ndarray]) -> _Answers:
        """What an entry has; nothing if that does not fit together."""
        nothing = cls.of(np.zeros(0, np.uint64), [])
        try:
            address, first, function, file, line = (columns[name] for name in _COLUMNS)
            texts = bytes(columns["texts"]).decode(errors="surrogateescape").split("\0")[:-1]
        except (KeyError, ValueError):
            return nothing
        sizes = {len(function), len(file), len(line), int(first[-1]) if len(first) else -1}
        most = max(int(column.max(initial=_NONE)) for column in (function, file))
        least = min(int(column.min(initial=_NONE)) for column in (function, file))
        rises = bool((np.diff(first) >= 0).all() and (address[1:] > address[:-1]).all())
        fits = len(sizes) == 1 and len(first) == len(address) + 1 and first[0] == 0 and most < len(texts)
        fits = fits and least >= _NONE
        return cls(address, first, function, file, line, texts) if fits and rises else nothing

    def columns(self) -> dict[str, np.ndarray]:
        """As an entry keeps them."""
        texts = "".join(f"{text}\0" for text in self._texts).encode(errors="surrogateescape")
        values = (self._address, self._first, self._function, self._file, self._line)
        return dict(zip(_COLUMNS, values, strict=True)) | {"texts": np.frombuffer(texts, np.uint8)}

    def places(self, addresses: U64) -> I64:
        """Where each address is, or -1."""
        if not len(self._address):
            return np.full(len(addresses), _NONE, np.int64)
        place = np.searchsorted(self._address, addresses).clip(max=len(self._address) - 1)
        return np.where(self._address[place] == addresses, place, _NONE)

    def lines(self, places: I64) -> list[Lines]:
        """The lines of some."""
        texts = [*self._texts, None]
        found = []
        for begin, end in zip(self._first[places].tolist(), self._first[places + 1].tolist(), strict=True):
            columns = (column[begin:end].tolist() for column in (self._file, self._line, self._function))
            rows = zip(*columns, strict=True)
            found.append(tuple(SourceLine(texts[file], line, texts[function]) for file, line, function in rows))
        return found

    def joined(self, other: _Answers) -> _Answers:
        """With those of other addresses."""
        if not len(self._address):
            return other
        address = np.concatenate((self._address, other._address))
        order = np.argsort(address, kind="stable")
        answers = [*self.lines(np.arange(len(self._address))), *other.lines(np.arange(len(other._address)))]
        return _Answers.of(address[order], [answers[place] for place in order.tolist()])


_COLUMNS = ("address", "first", "function", "file", "line")
