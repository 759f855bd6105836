"""From an address to the step that holds there (compiled).

The mapping with the address gives the module; the module's points, with a directory to begin from, give the step.
What was found is kept for the next time.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.walking.points import BLOCK, NO_STEP
from walkback.walking.pool import NOT_LOADED, UNSEEN

if cython.compiled:
    from cython.cimports.walkback.stacks.stacks import How
    from cython.cimports.walkback.walking.abi import BuiltIn, Flag
else:
    from walkback.stacks.stacks import How
    from walkback.walking.abi import BuiltIn, Flag

_WORD = cython.declare(cython.ulonglong, WORD)
_GOLDEN = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
"""2**64 by the golden ratio: the upper bits of products with it differ for numbers that are near each other."""
CACHE_BITS = 13
_CACHE_BITS = cython.declare(cython.int, CACHE_BITS)
_NONE = cython.declare(cython.Py_ssize_t, -1)
"""No mapping, or no step."""

_NO_STEP = cython.declare(cython.uint, int(NO_STEP))
_BLOCK = cython.declare(cython.uint, int(BLOCK))
_NOT_LOADED = cython.declare(cython.uchar, NOT_LOADED)
_UNSEEN = cython.declare(cython.uchar, UNSEEN)


@cython.final
@cython.cclass
class Tables:
    """The tables of a pool, the mappings of the spaces, and what was found last."""

    def __init__(self, columns, uses):
        """`columns` are views of the arrays of a pool and of spaces; `uses` is whether tables are used at all."""
        self.points_start = columns["points_start"]
        self.points_step = columns["points_step"]
        self.directory = columns["directory"]
        self.step_flags = columns["step_flags"]
        self.step_how = columns["step_how"]
        self.block_start = columns["block_start"]
        self.block_size = columns["block_size"]
        self.block_first = columns["block_first"]
        self.block_end = columns["block_end"]
        self.block_offset = columns["block_offset"]
        self.block_step = columns["block_step"]
        self.trampoline_start = columns["trampoline_start"]
        self.trampoline_kind = columns["trampoline_kind"]
        self.trampoline_size = columns["trampoline_size"]
        self.state = columns["state"]
        self.declared = columns["declared"]
        self.point_first = columns["point_first"]
        self.point_end = columns["point_end"]
        self.directory_first = columns["directory_first"]
        self.shift = columns["shift"]
        self.trampoline_first = columns["trampoline_first"]
        self.trampoline_end = columns["trampoline_end"]
        self.wanted = columns["wanted"]
        self.space_first = columns["space_first"]
        self.map_start = columns["map_start"]
        self.map_last = columns["map_last"]
        self.map_module = columns["map_module"]
        self.map_bias = columns["map_bias"]
        self.uses = uses
        size = 1 << CACHE_BITS
        self.cache_key = memoryview(np.zeros(size, np.uint64))
        self.cache_space = memoryview(np.full(size, -1, np.int64))
        self.cache_map = memoryview(np.zeros(size, np.int64))
        self.cache_step = memoryview(np.zeros(size, np.int64))
        self.space = self.map = -1
        self.module = -1
        self.bias = 0
        self.is_missing = False

    def use(self, space: cython.Py_ssize_t) -> cython.int:
        """Find in this space; one that is not there has no code."""
        self.space = space if space < self.space_first.shape[0] - 1 else -1
        self.is_missing = False
        return 0

    def find(self, lookup: cython.ulonglong, is_return: cython.bint) -> cython.Py_ssize_t:
        """The step at an address, -1 for none; leaves where that is in `map`, `module` and `bias`.

        If the table must be loaded first, the module is `wanted` and `is_missing` is set.
        """
        slot: cython.Py_ssize_t
        step: cython.Py_ssize_t = _NONE
        key: cython.Py_ssize_t = 2 * self.space + is_return
        if self.space < 0:
            self._enter(_NONE)
            return _NONE
        slot = cython.cast(
            cython.Py_ssize_t,
            (((lookup ^ (cython.cast(cython.ulonglong, is_return) << 63)) * _GOLDEN) & _WORD) >> (64 - _CACHE_BITS),
        )
        if self.cache_space[slot] == key and self.cache_key[slot] == lookup:
            self._enter(cython.cast(cython.Py_ssize_t, self.cache_map[slot]))
            return cython.cast(cython.Py_ssize_t, self.cache_step[slot])
        self._enter(self._mapping(lookup))
        if self.uses and self._is_known():
            if self.state[self.module] == _NOT_LOADED:
                self.wanted[self.module] = 1
                self.is_missing = True
                return _NONE
            step = self._step_at((lookup - self.bias) & _WORD, is_return)
        self.cache_space[slot] = key
        self.cache_key[slot] = lookup
        self.cache_map[slot] = self.map
        self.cache_step[slot] = step
        return step

    def is_code(self, address: cython.ulonglong) -> cython.bint:
        """Whether code is mapped there."""
        return self.space >= 0 and self._mapping(address) >= 0

    def is_unseen(self) -> cython.bint:
        """Whether the module found last is the kernel's, and nobody has its contents."""
        return self._is_known() and self.state[self.module] == _UNSEEN

    def is_declared(self) -> cython.bint:
        """Whether the module found last says that all its functions keep the frame pointer."""
        return self._is_known() and self.declared[self.module]

    def _is_known(self) -> cython.bint:
        """Whether the pool has a place for the module found last."""
        return self.module >= 0 and self.module < self.state.shape[0]

    def _enter(self, mapping: cython.Py_ssize_t) -> cython.int:
        self.map = mapping
        self.module = -1
        self.bias = 0
        if mapping >= 0:
            self.module = self.map_module[mapping]
            self.bias = self.map_bias[mapping]
        return 0

    def _mapping(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The mapping of the space that holds an address."""
        low: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.space_first[self.space])
        high: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.space_first[self.space + 1])
        end: cython.Py_ssize_t = high
        middle: cython.Py_ssize_t
        # The first mapping that ends at or after the address.
        while low < high:
            middle = (low + high) >> 1
            if self.map_last[middle] >= address:
                high = middle
            else:
                low = middle + 1
        if low < end and self.map_start[low] <= address:
            return low
        return _NONE

    def _step_at(self, address: cython.ulonglong, is_return: cython.bint) -> cython.Py_ssize_t:
        """The step at an address of the module; code that handlers return to goes before other steps."""
        step: cython.Py_ssize_t = self._point_at(address)
        first: cython.Py_ssize_t
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        away: cython.ulonglong
        size: cython.ulonglong
        if step >= 0 and self.step_flags[step] & Flag.SIGNAL and self.step_how[step] != How.SIGNAL:
            return step
        # A handler did not call: it returns to where that code begins.
        if is_return:
            address = (address + 1) & _WORD
        low = cython.cast(cython.Py_ssize_t, self.trampoline_first[self.module])
        first = low
        high = cython.cast(cython.Py_ssize_t, self.trampoline_end[self.module])
        while low < high:
            middle = (low + high) >> 1
            if self.trampoline_start[middle] <= address:
                low = middle + 1
            else:
                high = middle
        if low > first:
            away = address - self.trampoline_start[low - 1]
            # Behind it the kernel is at work, and may have put some of the saved registers back already.
            size = self.trampoline_size[self.trampoline_kind[low - 1]]
            if away == 0 or (not is_return and away < size and (step < 0 or self.step_flags[step] & Flag.SIGNAL)):
                return BuiltIn.CONTEXT + self.trampoline_kind[low - 1]
        return step

    def _point_at(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The step of the last point of the module at or before an address."""
        first: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.point_first[self.module])
        end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.point_end[self.module])
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        bucket: cython.Py_ssize_t
        step: cython.uint
        if first == end or address < self.points_start[first] or address > self.points_start[end - 1]:
            return _NONE
        bucket = cython.cast(cython.Py_ssize_t, (address - self.points_start[first]) >> self.shift[self.module])
        bucket += cython.cast(cython.Py_ssize_t, self.directory_first[self.module])
        # The directory has the first point at or behind each border.
        low = first + self.directory[bucket]
        high = first + self.directory[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if self.points_start[middle] <= address:
                low = middle + 1
            else:
                high = middle
        if low == first:
            return _NONE
        step = self.points_step[low - 1]
        if step == _NO_STEP:
            return _NONE
        if step & _BLOCK:
            return self._in_block(address, cython.cast(cython.Py_ssize_t, step & ~_BLOCK))
        return cython.cast(cython.Py_ssize_t, step)

    def _in_block(self, address: cython.ulonglong, block: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The step at an address in code that repeats."""
        offset: cython.ulonglong = (address - self.block_start[block]) % self.block_size[block]
        step: cython.uint = _NO_STEP
        row: cython.Py_ssize_t
        for row in range(self.block_first[block], self.block_end[block]):
            if self.block_offset[row] > offset:
                break
            step = self.block_step[row]
        if step == _NO_STEP:
            return _NONE
        return cython.cast(cython.Py_ssize_t, step)
