"""Functions that are called through words of the global offset table: by the stubs of linkage tables, or at once."""

from __future__ import annotations

import contextlib
from functools import cached_property

import numpy as np

from walkback.base.arrays import U64, are_among, distinct
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile, layout
from walkback.elf.loaded import LoadedAddresses, loaded_addresses
from walkback.proof.known import KnownCode
from walkback.proof.silent import is_silent
from walkback.proof.values import Back
from walkback.symbols.plt import PltNames


class Indirect:
    """Those of one file."""

    def __init__(self, elf: ElfFile, stubs: PltNames) -> None:
        self._elf, self._stubs = elf, stubs

    @cached_property
    def own_stubs(self) -> U64:
        """Rows of a stub, rising, and the function of this file that it calls if no other takes its place."""
        starts, _, names = self._stubs.entries()
        wanted = {name.removesuffix("@plt"): start for start, name in zip(starts, names, strict=True) if name}
        rows: list[tuple[int, int]] = []
        for index in self._elf.sections_of_type(layout.SHT_DYNSYM) if wanted else ():
            with contextlib.suppress(WalkbackError):  # names are a help and nothing more
                symbols = self._elf.symbols(index)
                symbols = symbols[symbols["section"] != layout.SHN_UNDEF]
                own = self._elf.strings(int(self._elf.sections["link"][index]), symbols["name_offset"].tolist())
                named = zip(own, symbols["value"].tolist(), strict=True)
                rows += [(wanted[name], place) for name, place in named if name in wanted]
        return np.array(sorted(rows), np.uint64).reshape(-1, 2)

    def silent_words(self, known: KnownCode) -> U64:
        """The words with addresses of functions that do not come back, rising; only AMD64 calls through memory."""
        if self._elf.machine != layout.EM_X86_64 or self._elf.is_relocatable:
            return np.zeros(0, np.uint64)
        word, function = self._words
        named = self.silent_by_name
        return distinct(np.append(named, word[are_among(function, known.functions[known.back == Back.NEVER])]))

    @cached_property
    def silent_by_name(self) -> U64:
        """Those of functions that by their names do not come back."""
        found = [np.zeros(0, np.uint64)]
        for words, names, _ in self._filled:
            found.append(words[np.array([is_silent(name) for name in names], np.bool_)])
        return distinct(np.concatenate(found))

    @cached_property
    def _filled(self) -> list[tuple[U64, list[str], U64]]:
        """The words that the loader fills by symbols, with the names and addresses of these."""
        return list(self._stubs.words())

    @cached_property
    def _words(self) -> tuple[U64, U64]:
        """The words with addresses of functions of this file, and these."""
        found = [loaded_addresses(self._elf)]
        found += [LoadedAddresses(words, functions) for words, _, functions in self._filled]
        word, function = (np.concatenate(column) for column in zip(*found, strict=True))
        return word, function
