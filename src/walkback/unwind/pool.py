"""The tables of many files in one set of arrays, as the compiled walk wants them.

Arrays grow at their ends, so what was added stays where it is.
"""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from walkback.arch import Machine
from walkback.unwind.abi import ABIS
from walkback.unwind.moduletable import ModuleTable
from walkback.unwind.points import moved_steps
from walkback.unwind.steps import Steps, built_in

NOT_LOADED, LOADED, UNSEEN = 0, 1, 2
"""Of a module: unseen is code of the kernel whose contents nobody has."""

_SHARED = {
    "points_start": np.uint64,
    "points_step": np.uint32,
    "directory": np.uint32,
    "step_cfa": np.uint8,
    "step_register": np.uint8,
    "step_operand": np.int64,
    "step_first": np.uint32,
    "step_end": np.uint32,
    "step_flags": np.uint8,
    "step_how": np.uint8,
    "save_column": np.uint8,
    "save_op": np.uint8,
    "save_register": np.uint8,
    "save_operand": np.int64,
    "expression_first": np.int64,
    "expression_end": np.int64,
    "bytes": np.uint8,
    "block_start": np.uint64,
    "block_size": np.uint32,
    "block_first": np.int64,
    "block_end": np.int64,
    "block_offset": np.uint32,
    "block_step": np.uint32,
    "trampoline_start": np.uint64,
    "trampoline_kind": np.uint8,
}
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
_OF_STEPS = {
    **{name: f"step_{name}" for name in ("cfa", "register", "operand", "first", "end", "flags", "how")},
    **{name: name for name in ("save_column", "save_op", "save_register", "save_operand")},
    **{name: name for name in ("expression_first", "expression_end")},
    "expression_bytes": "bytes",
}


class _Column:
    """An array with room behind its end."""

    def __init__(self, dtype: type) -> None:
        self._room: np.ndarray = np.zeros(64, dtype)
        self.size = 0

    def append(self, values: np.ndarray) -> None:
        end = self.size + len(values)
        if end > len(self._room):
            grown = np.zeros(max(end, 2 * len(self._room)), self._room.dtype)
            grown[: self.size] = self._room[: self.size]
            self._room = grown
        self._room[self.size : end] = values
        self.size = end

    @property
    def values(self) -> np.ndarray:
        return self._room[: self.size]


class Pool:
    """The tables that were loaded."""

    def __init__(self, machine: Machine) -> None:
        self._columns = {name: _Column(dtype) for name, dtype in _SHARED.items()}
        self._modules = {name: np.zeros(0, dtype) for name, dtype in _BY_MODULE.items()}
        self._trampoline_size = np.array([len(one.code) for one in ABIS[machine].trampolines], np.uint8)
        self._add_steps(built_in(machine))

    def grow(self, modules: int) -> None:
        """Have a place for so many modules."""
        more = modules - len(self._modules["state"])
        if more > 0:
            for name, column in self._modules.items():
                self._modules[name] = np.concatenate((column, np.zeros(more, column.dtype)))

    def add(self, module: int, table: ModuleTable | None, *, unseen: bool = False) -> None:
        """The table of a module; None if it has none."""
        self._modules["state"][module] = UNSEEN if unseen else LOADED
        if table is None:
            return
        columns, points, blocks = self._columns, table.points, table.points.blocks
        first_point, first_directory = columns["points_start"].size, columns["directory"].size
        first_block, first_row = columns["block_start"].size, columns["block_offset"].size
        first_trampoline = columns["trampoline_start"].size
        first_step = self._add_steps(table.steps)
        columns["points_start"].append(points.start)
        columns["points_step"].append(moved_steps(points.step, first_step, first_block))
        columns["directory"].append(table.directory)
        columns["block_start"].append(blocks.start)
        columns["block_size"].append(blocks.size)
        columns["block_first"].append(blocks.first + first_row)
        columns["block_end"].append(blocks.end + first_row)
        columns["block_offset"].append(blocks.offset)
        columns["block_step"].append(moved_steps(blocks.step, first_step, 0))
        columns["trampoline_start"].append(table.trampoline_start)
        columns["trampoline_kind"].append(table.trampoline_kind)
        values = {
            "declared": table.declared,
            "point_first": first_point,
            "point_end": first_point + len(points),
            "directory_first": first_directory,
            "shift": table.shift,
            "trampoline_first": first_trampoline,
            "trampoline_end": first_trampoline + len(table.trampoline_start),
        }
        for name, value in values.items():
            self._modules[name][module] = value

    def _add_steps(self, steps: Steps) -> int:
        """Returns the number of the first."""
        columns = self._columns
        first_step, first_save = columns["step_cfa"].size, columns["save_op"].size
        first_expression, first_byte = columns["expression_first"].size, columns["bytes"].size
        by_name = {one.name: getattr(steps, one.name) for one in fields(Steps)}
        for name in ("first", "end"):
            by_name[name] = by_name[name] + np.uint32(first_save)
            by_name[f"expression_{name}"] = by_name[f"expression_{name}"] + first_byte
        by_name["operand"] = steps.moved_operand(steps.cfa, steps.operand, first_expression)
        by_name["save_operand"] = steps.moved_operand(steps.save_op, steps.save_operand, first_expression)
        for name, values in by_name.items():
            columns[_OF_STEPS[name]].append(values)
        return first_step

    def columns(self) -> dict[str, np.ndarray]:
        """All arrays, as they are now."""
        shared = {name: column.values for name, column in self._columns.items()}
        return shared | self._modules | {"trampoline_size": self._trampoline_size}

    @property
    def state(self) -> np.ndarray:
        """Of each module whether its table was loaded."""
        return self._modules["state"]
