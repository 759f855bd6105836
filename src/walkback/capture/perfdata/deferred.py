"""Call chains of programs that the kernel walks later, on the way back to the program.

A sample then ends its chain with a number, its cookie, and a record with the same cookie has the rest. One record can
be of several samples, which the program was interrupted for meanwhile.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from walkback.base.arrays import I64, U64, Bools, runs
from walkback.capture.perfdata import layout
from walkback.capture.perfdata.source import RecordChunk

_MOST = 1 << 16
"""Chains that are kept; a program goes back soon after a sample."""
_COOKIE, _COUNT, _CHAIN = 1, 2, 3
"""Where records have these, in words."""

Chains = tuple[I64, U64, Bools]
"""Where each begins, one more than there are; addresses, innermost first; which of them are the kernel's."""


class DeferredChains:
    """The chains that have come, by cookie."""

    def __init__(self, *, big: bool) -> None:
        self._big = big
        self._chains: dict[int, U64] = {}
        self._order: deque[int] = deque()

    def take(self, piece: RecordChunk) -> int:
        """Take in the chains of some records; how many contradict their size."""
        damaged = 0
        for i in np.flatnonzero(piece.kind == layout.CALLCHAIN_DEFERRED).tolist():
            record = piece.record(int(piece.offset[i]), int(piece.size[i]))
            words = self._words(np.frombuffer(record, np.uint64, len(record) // 8))
            if len(words) < _CHAIN or words[_COUNT] > len(words) - _CHAIN:
                damaged += 1
                continue
            chain = words[_CHAIN : _CHAIN + int(words[_COUNT])]
            self._add(int(words[_COOKIE]), chain[chain < np.uint64(layout.CONTEXT_FARTHEST)])
        return damaged

    def _add(self, cookie: int, chain: U64) -> None:
        if cookie not in self._chains:
            self._order.append(cookie)
        self._chains[cookie] = chain
        if len(self._order) > _MOST:
            del self._chains[self._order.popleft()]

    def completed(self, words: memoryview | U64, chain_at: I64, chain_length: I64, chains: Chains) -> Chains:
        """The chains of samples, with what came later; `chain_at` is where each stands, with its cookie."""
        if not self._chains:
            return chains
        first, pc, kernel = chains
        counts = np.zeros(len(chain_at), np.int64)
        parts = []
        for sample, cookie in self._cookies(np.asarray(words, np.uint64), chain_at, chain_length):
            chain = self._chains.get(cookie)
            if chain is not None:
                counts[sample] = len(chain)
                parts.append(chain)
        if not parts:
            return chains
        # Each begins where the one before ends, and the program's part comes behind the kernel's.
        whole = np.concatenate(([0], np.cumsum(np.diff(first) + counts)))
        own, later = runs(whole[:-1], np.diff(first)), runs(whole[1:] - counts, counts)
        all_pc, all_kernel = np.empty(int(whole[-1]), np.uint64), np.zeros(int(whole[-1]), np.bool_)
        all_pc[own], all_kernel[own] = pc, kernel
        all_pc[later] = np.concatenate(parts)
        return whole, all_pc, all_kernel

    def _cookies(self, words: U64, chain_at: I64, chain_length: I64) -> list[tuple[int, int]]:
        """The samples whose chains have cookies, and these."""
        has = np.flatnonzero((chain_at >= 0) & (chain_length > 1))
        place = runs(chain_at[has], chain_length[has] - 1)
        owner = np.repeat(has, chain_length[has] - 1)
        found = np.flatnonzero(self._words(words[place]) == np.uint64(layout.CONTEXT_DEFERRED))
        cookies = self._words(words[place[found] + 1])
        return list(zip(owner[found].tolist(), cookies.tolist(), strict=True))

    def _words(self, words: U64) -> U64:
        return words.byteswap() if self._big else words
