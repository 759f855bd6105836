"""A table made fit for the program that will walk by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from walkback.base.arrays import I64, Bools
from walkback.base.dataclass import dataclass
from walkback.elf import ElfFile
from walkback.elf.calls import after_call, has_bytes, is_padding
from walkback.sframe.consumers import SIGNAL_CODE, Consumer
from walkback.table.table import UnwindTable


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table as a consumer wants it."""

    table: UnwindTable
    kept: I64
    """The numbers that its ranges had before."""
    unwanted: dict[int, str]
    """Ranges that it must not have, by the numbers that they had, with the reason."""
    extended: int
    """How many ranges reach over the padding behind their last call."""

    def notes(self) -> list[str]:
        """What was done besides leaving out, in words."""
        if not self.extended:
            return []
        what = "1 function reaches" if self.extended == 1 else f"{self.extended} functions reach"
        return [f"{what} one instruction further, into padding, because the call at its end returns there"]


def fit(
    table: UnwindTable, consumer: Consumer | None, files: Sequence[ElfFile] = (), unwanted: dict[int, str] | None = None
) -> Fitted:
    """Leave out what the consumer must not find, and let functions that end in a call cover where it returns to.

    `unwanted` are ranges that have to be left out besides.

    Consumers look up return addresses as they are. Behind a call that ends a function they find the next function, or
    none; where nothing but padding stands there, the function is made longer by the size of the shortest instruction.
    That is seen in the `files` that the code is in.
    """
    kept = np.arange(len(table))
    unwanted = dict(unwanted or {})
    if consumer is None:
        kept = np.delete(kept, list(unwanted))
        return Fitted(table.chosen(kept) if unwanted else table, kept, unwanted, 0)
    for reason, where in consumer.unwanted(table):
        for index in np.flatnonzero(where).tolist():
            unwanted.setdefault(index, reason)
    if consumer.finds_signals:
        for elf in files:
            for index in np.flatnonzero(is_signal_code(elf, table)).tolist():
                unwanted.setdefault(index, f"{SIGNAL_CODE}, where {consumer.title} wants no function")
    kept = np.delete(kept, list(unwanted))
    fitted = table.chosen(kept) if unwanted else table
    open_ended = np.zeros(len(fitted), np.bool_)
    for elf in files:
        if not elf.is_relocatable:
            open_ended |= _open_ended(elf, table, fitted)
    size = fitted.range_size + open_ended * np.uint64(table.machine.code_alignment)
    if open_ended.any():
        fitted = replace(fitted, range_size=size)
    return Fitted(fitted, kept, unwanted, int(open_ended.sum()))


def is_signal_code(elf: ElfFile, table: UnwindTable) -> Bools:
    """Which ranges begin with the code that signal handlers return to, or one byte in front of it."""
    found = np.zeros(len(table), np.bool_)
    if not elf.is_relocatable:
        for code in table.machine.signal_return:
            found |= has_bytes(elf, table.range_start, code) | has_bytes(elf, table.range_start + np.uint64(1), code)
    return found


def _open_ended(elf: ElfFile, whole: UnwindTable, table: UnwindTable) -> Bools:
    """Which ranges end in a call, with padding behind them that no range of the whole table describes."""
    end = table.range_start + table.range_size
    fits = (table.range_block == 0) & (table.range_rows > 0) & (end >= table.range_start)
    chosen = np.flatnonzero(fits)
    chosen = chosen[(whole.find_many(end[chosen])[0] < 0) & is_padding(elf, end[chosen])]
    found = np.zeros(len(table), np.bool_)
    found[chosen] = after_call(elf, end[chosen], whole.range_start)
    return found
