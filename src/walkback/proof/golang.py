"""What a proof takes into account of Go's functions, which its own table names: they have an ABI of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from walkback.base.arch import AARCH64, S390X, Machine
from walkback.base.arrays import U8, U64, Bools
from walkback.base.errors import WalkbackError
from walkback.elf import ElfFile
from walkback.elf.golang import is_go
from walkback.proof.silent import GO_AGAIN, GO_SILENT

if TYPE_CHECKING:
    from walkback.gopclntab.decoding import FunctionTable

_KEPT_BELOW = 8
"""Bytes below the stack pointer that functions of Go on AArch64 leave to their callers: a frame pointer is there."""


class GoFunctions:
    """The functions of Go in a file; none if it is no Go program, or if its table is damaged."""

    def __init__(self, elf: ElfFile, machine: Machine) -> None:
        self._machine = machine
        self._functions: FunctionTable | None = None
        with contextlib.suppress(WalkbackError):
            if not elf.is_relocatable and is_go(elf):
                from walkback.gopclntab.files import go_source

                source = go_source(elf)
                self._functions = None if source is None else source.functions

    @property
    def silent(self) -> U64:
        """The addresses of those that by their names do not come back."""
        return self._named(GO_SILENT)

    @property
    def again(self) -> U64:
        """The addresses of those that come back though their code does not show it."""
        return self._named(GO_AGAIN)

    def kept_below(self, start: U64) -> U8:
        """For ranges that begin at these addresses how many bytes below their stack pointers calls keep."""
        return np.where(self._are_go(start, AARCH64), _KEPT_BELOW, 0).astype(np.uint8)

    def careless(self, start: U64) -> Bools:
        """Which ranges that begin at these addresses keep no registers; elsewhere Go keeps the frame pointer."""
        return self._are_go(start, S390X)

    def _are_go(self, start: U64, machine: Machine) -> Bools:
        """Which ranges begin in functions of Go; a table may describe one in several."""
        functions = self._functions
        if functions is None or not len(functions) or self._machine is not machine:
            return np.zeros(len(start), np.bool_)
        number = np.searchsorted(functions.start, start, "right") - 1
        # Functions of C have no depths there.
        are: Bools = (number >= 0) & (start < functions.end[number]) & (functions.rows[number] > 0)
        return are

    def _named(self, names: Iterable[str]) -> U64:
        functions = self._functions
        return np.zeros(0, np.uint64) if functions is None else functions.start[functions.named(*names)]
