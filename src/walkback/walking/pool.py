"""The tables of many files in one set of arrays, as the compiled walk wants them.

Arrays grow at their ends, so what was added stays where it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from walkback.base.arch import Machine
from walkback.base.arrays import longer
from walkback.walking.abi import ABIS
from walkback.walking.moduletable import ModuleTable, no_table
from walkback.walking.steps import built_in

NOT_LOADED, LOADED, UNSEEN = 0, 1, 2
"""Of a module: unseen is code of the kernel whose contents nobody has."""

_BY_MODULE = {
    "state": np.uint8,
    "declared": np.uint8,
    "point_first": np.int64,
    "point_end": np.int64,
    "directory_first": np.int64,
    "shift": np.uint8,
    "trampoline_first": np.int64,
    "trampoline_end": np.int64,
}


class _Column:
    """An array with room behind its end."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._room: np.ndarray = np.zeros(64, dtype)
        self.size = 0

    def append(self, values: np.ndarray) -> None:
        end = self.size + len(values)
        if end > len(self._room):
            self._room = longer(self._room, max(end, 2 * len(self._room)))
        self._room[self.size : end] = values
        self.size = end

    @property
    def values(self) -> np.ndarray:
        return self._room[: self.size]


class Pool:
    """The tables that were loaded."""

    def __init__(self, machine: Machine) -> None:
        empty = no_table()
        self._columns = {name: _Column(column.dtype) for name, column in empty.columns().items()}
        self._modules = {name: np.zeros(0, dtype) for name, dtype in _BY_MODULE.items()}
        self._trampoline_size = np.array([len(one.code) for one in ABIS[machine].trampolines], np.uint8)
        self._append(replace(empty, steps=built_in(machine)))

    def grow(self, modules: int) -> None:
        """Make room for this many modules."""
        more = modules - len(self._modules["state"])
        if more > 0:
            for name, column in self._modules.items():
                self._modules[name] = np.concatenate((column, np.zeros(more, column.dtype)))

    def add(self, module: int, table: ModuleTable | None, *, unseen: bool = False) -> None:
        """The table of a module; None if it has none."""
        self._modules["state"][module] = UNSEEN if unseen else LOADED
        if table is None:
            return
        before = self._append(table)
        values = {
            "declared": table.declared,
            "point_first": before["points_start"],
            "point_end": before["points_start"] + len(table.points),
            "directory_first": before["directory"],
            "shift": table.shift,
            "trampoline_first": before["trampoline_start"],
            "trampoline_end": before["trampoline_start"] + len(table.trampoline_start),
        }
        for name, value in values.items():
            self._modules[name][module] = value

    def _append(self, table: ModuleTable) -> dict[str, int]:
        """Put the columns of a table behind those of the others; how long these were."""
        before = {name: column.size for name, column in self._columns.items()}
        moved = replace(
            table,
            points=table.points.moved(before["step_cfa"], before["block_start"], before["block_offset"]),
            steps=table.steps.moved(before["save_op"], before["expression_first"], before["expression_bytes"]),
        )
        for name, values in moved.columns().items():
            self._columns[name].append(values)
        return before

    def columns(self) -> dict[str, np.ndarray]:
        """All arrays, as they are now."""
        shared = {name: column.values for name, column in self._columns.items()}
        return shared | self._modules | {"trampoline_size": self._trampoline_size}

    @property
    def state(self) -> np.ndarray:
        """Of each module whether its table was loaded."""
        return self._modules["state"]
