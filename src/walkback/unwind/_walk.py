"""From registers and memory to stacks (compiled).

One walk is a loop: find the mapping and the step of an address, write the frame, follow the step. Everything that a
step needs stands in the columns of a `Pool`; numbers from the input are used only after they are checked against them.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.unwind._expression import Expressions
else:
    from walkback.unwind._expression import Expressions
import numpy as np

_WORD = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
_PC = cython.declare(cython.Py_ssize_t, 32)
_COLUMNS = cython.declare(cython.Py_ssize_t, 33)
_CACHE_BITS = cython.declare(cython.int, 13)
_MIX = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)

# `FrameKind`
_EXACT = cython.declare(cython.uchar, 0)
_RETURN = cython.declare(cython.uchar, 1)

# `End`; going on is no end
_COMPLETE = cython.declare(cython.int, 0)
_NO_TABLE = cython.declare(cython.int, 1)
_UNREADABLE = cython.declare(cython.int, 2)
_STACK_CUT = cython.declare(cython.int, 3)
_NO_PROGRESS = cython.declare(cython.int, 4)
_LOOP = cython.declare(cython.int, 5)
_LIMIT = cython.declare(cython.int, 6)
_UNKNOWN_REGISTER = cython.declare(cython.int, 7)
_NOT_CODE = cython.declare(cython.int, 8)
_ZERO = cython.declare(cython.int, 9)
_INEXPRESSIBLE = cython.declare(cython.int, 10)
_NO_REGISTERS = cython.declare(cython.int, 11)
_WANTED = cython.declare(cython.int, 254)
"""The table of a module is wanted first."""
_ON = cython.declare(cython.int, 255)

# `Op`
_OP_UNKNOWN = cython.declare(cython.int, 0)
_OP_SAME = cython.declare(cython.int, 1)
_OP_REGISTER = cython.declare(cython.int, 2)
_OP_AT_REGISTER = cython.declare(cython.int, 3)
_OP_CFA = cython.declare(cython.int, 4)
_OP_AT_CFA = cython.declare(cython.int, 5)
_OP_EXPRESSION = cython.declare(cython.int, 6)
_OP_AT_EXPRESSION = cython.declare(cython.int, 7)

# `Flag`
_SIGNAL = cython.declare(cython.int, 1)
_SIGNED = cython.declare(cython.int, 2)
_KEEPS = cython.declare(cython.int, 4)
_GUESS = cython.declare(cython.int, 8)
_LOOSE = cython.declare(cython.int, 16)

# `How`
_HOW_SIGNAL = cython.declare(cython.uchar, 6)

# Of the pool
_NO_STEP = cython.declare(cython.uint, 0xFFFFFFFF)
_BLOCK = cython.declare(cython.uint, 0x80000000)
_STEP_ENTRY = cython.declare(cython.Py_ssize_t, 0)
_STEP_CHAIN = cython.declare(cython.Py_ssize_t, 1)
_STEP_DECLARED = cython.declare(cython.Py_ssize_t, 2)
_STEP_CONTEXT = cython.declare(cython.Py_ssize_t, 3)
_NOT_LOADED = cython.declare(cython.uchar, 0)
_UNSEEN = cython.declare(cython.uchar, 2)
_NONE = cython.declare(cython.Py_ssize_t, -1)
_LATER = cython.declare(cython.Py_ssize_t, -2)

_FAR = cython.declare(cython.ulonglong, 1 << 30)
"""What is not further behind the end of a copied stack may be stack."""


@cython.final
@cython.cclass
class Walk:
    """Walks samples; of use in one thread at a time."""

    # The pool
    points_start: cython.ulonglong[::1]
    points_step: cython.uint[::1]
    directory: cython.uint[::1]
    step_cfa: cython.uchar[::1]
    step_register: cython.uchar[::1]
    step_operand: cython.longlong[::1]
    step_first: cython.uint[::1]
    step_end: cython.uint[::1]
    step_flags: cython.uchar[::1]
    step_how: cython.uchar[::1]
    save_column: cython.uchar[::1]
    save_op: cython.uchar[::1]
    save_register: cython.uchar[::1]
    save_operand: cython.longlong[::1]
    block_start: cython.ulonglong[::1]
    block_size: cython.uint[::1]
    block_first: cython.longlong[::1]
    block_end: cython.longlong[::1]
    block_offset: cython.uint[::1]
    block_step: cython.uint[::1]
    trampoline_start: cython.ulonglong[::1]
    trampoline_kind: cython.uchar[::1]
    # Of its modules
    state: cython.uchar[::1]
    declared: cython.uchar[::1]
    point_first: cython.longlong[::1]
    point_end: cython.longlong[::1]
    directory_first: cython.longlong[::1]
    shift: cython.uchar[::1]
    trampoline_first: cython.longlong[::1]
    trampoline_end: cython.longlong[::1]
    wanted: cython.uchar[::1]
    # The spaces
    space_first: cython.longlong[::1]
    map_start: cython.ulonglong[::1]
    map_last: cython.ulonglong[::1]
    map_module: cython.int[::1]
    map_bias: cython.ulonglong[::1]
    # The samples' memory
    buffer: cython.const[cython.uchar][::1]
    following: cython.const[cython.uchar][::1]
    segment_start: cython.const[cython.ulonglong][::1]
    segment_size: cython.const[cython.ulonglong][::1]
    segment_offset: cython.const[cython.longlong][::1]
    big: cython.bint
    # The machine
    sp: cython.Py_ssize_t
    fp: cython.Py_ssize_t
    rip: cython.Py_ssize_t
    """The DWARF number of the program counter; -1 where it has none."""
    chain_register: cython.Py_ssize_t
    sp_from_cfa: cython.longlong
    preserved: cython.ulonglong
    address_mask: cython.ulonglong
    patterns: cython.ulonglong[::1]
    """Of each kind of trampoline its first 8 bytes, the last 8 bytes of its first 9, and masks for both."""
    # What is allowed
    tables: cython.bint
    chains: cython.bint
    tries: cython.bint
    limit: cython.Py_ssize_t
    # What was found for an address before
    cache_key: cython.ulonglong[::1]
    cache_space: cython.int[::1]
    cache_map: cython.longlong[::1]
    cache_step: cython.longlong[::1]
    # One walk
    registers: cython.ulonglong[::1]
    values: cython.ulonglong[::1]
    known: cython.ulonglong
    value: cython.ulonglong
    at: cython.ulonglong
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    cut: cython.ulonglong
    map: cython.Py_ssize_t
    still: cython.int
    signals: cython.int
    mark_pc: cython.ulonglong
    mark_sp: cython.ulonglong
    expressions: Expressions

    def __init__(self, columns, settings):
        """`columns` are the arrays of a pool, spaces and memory by their names; `settings` the numbers."""
        self.points_start = memoryview(columns["points_start"])
        self.points_step = memoryview(columns["points_step"])
        self.directory = memoryview(columns["directory"])
        self.step_cfa = memoryview(columns["step_cfa"])
        self.step_register = memoryview(columns["step_register"])
        self.step_operand = memoryview(columns["step_operand"])
        self.step_first = memoryview(columns["step_first"])
        self.step_end = memoryview(columns["step_end"])
        self.step_flags = memoryview(columns["step_flags"])
        self.step_how = memoryview(columns["step_how"])
        self.save_column = memoryview(columns["save_column"])
        self.save_op = memoryview(columns["save_op"])
        self.save_register = memoryview(columns["save_register"])
        self.save_operand = memoryview(columns["save_operand"])
        self.block_start = memoryview(columns["block_start"])
        self.block_size = memoryview(columns["block_size"])
        self.block_first = memoryview(columns["block_first"])
        self.block_end = memoryview(columns["block_end"])
        self.block_offset = memoryview(columns["block_offset"])
        self.block_step = memoryview(columns["block_step"])
        self.trampoline_start = memoryview(columns["trampoline_start"])
        self.trampoline_kind = memoryview(columns["trampoline_kind"])
        self.state = memoryview(columns["state"])
        self.declared = memoryview(columns["declared"])
        self.point_first = memoryview(columns["point_first"])
        self.point_end = memoryview(columns["point_end"])
        self.directory_first = memoryview(columns["directory_first"])
        self.shift = memoryview(columns["shift"])
        self.trampoline_first = memoryview(columns["trampoline_first"])
        self.trampoline_end = memoryview(columns["trampoline_end"])
        self.wanted = memoryview(columns["wanted"])
        self.space_first = memoryview(columns["space_first"])
        self.map_start = memoryview(columns["map_start"])
        self.map_last = memoryview(columns["map_last"])
        self.map_module = memoryview(columns["map_module"])
        self.map_bias = memoryview(columns["map_bias"])
        self.buffer = memoryview(columns["buffer"])
        self.following = memoryview(columns["following"])
        self.segment_start = memoryview(columns["segment_start"])
        self.segment_size = memoryview(columns["segment_size"])
        self.segment_offset = memoryview(columns["segment_offset"])
        self.patterns = memoryview(columns["patterns"])
        self.big = settings["big"]
        self.sp = settings["sp"]
        self.fp = settings["fp"]
        self.rip = settings["rip"]
        self.chain_register = settings["chain_register"]
        self.sp_from_cfa = settings["sp_from_cfa"]
        self.preserved = settings["preserved"]
        self.address_mask = settings["address_mask"]
        self.tables = settings["tables"]
        self.chains = settings["chains"]
        self.tries = settings["tries"]
        self.limit = settings["limit"]
        size = 1 << 13
        self.cache_key = memoryview(np.zeros(size, np.uint64))
        self.cache_space = memoryview(np.full(size, -1, np.int32))
        self.cache_map = memoryview(np.zeros(size, np.int64))
        self.cache_step = memoryview(np.zeros(size, np.int64))
        self.registers = memoryview(np.zeros(33, np.uint64))
        self.values = memoryview(np.zeros(256, np.uint64))
        self.expressions = Expressions(columns["expression_first"], columns["expression_end"], columns["bytes"])
        self.expressions.registers = self.registers
        self.expressions.big = self.big
        self.known = self.value = self.at = self.cut = self.mark_pc = self.mark_sp = 0
        self.low = self.high = self.map = 0
        self.still = self.signals = 0

    def run(self, order, position, samples, found, ends):
        """Walk the samples that `order` names, from `position` on, until the room for frames is used up.

        `samples` are the arrays registers (flat), known, space, first segment, end segment and cut; `found` those for
        frames: pc, kind, how, module and address; `ends` those for stacks: first (one more), end and at. Returns the
        position reached.
        """
        return self._run(
            memoryview(order),
            position,
            memoryview(samples[0]),
            memoryview(samples[1]),
            memoryview(samples[2]),
            memoryview(samples[3]),
            memoryview(samples[4]),
            memoryview(samples[5]),
            memoryview(found[0]),
            memoryview(found[1]),
            memoryview(found[2]),
            memoryview(found[3]),
            memoryview(found[4]),
            memoryview(ends[0]),
            memoryview(ends[1]),
            memoryview(ends[2]),
        )

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _run(
        self,
        order: cython.const[cython.longlong][::1],
        position: cython.Py_ssize_t,
        registers: cython.const[cython.ulonglong][::1],
        known: cython.const[cython.ulonglong][::1],
        space: cython.const[cython.int][::1],
        first_segment: cython.const[cython.longlong][::1],
        end_segment: cython.const[cython.longlong][::1],
        cut: cython.const[cython.ulonglong][::1],
        pc: cython.ulonglong[::1],
        kind: cython.uchar[::1],
        how: cython.uchar[::1],
        module: cython.int[::1],
        address: cython.ulonglong[::1],
        first: cython.longlong[::1],
        end: cython.uchar[::1],
        at: cython.ulonglong[::1],
    ) -> cython.Py_ssize_t:
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t
        column: cython.Py_ssize_t
        used: cython.Py_ssize_t
        status: cython.int
        frame_kind: cython.uchar
        frame_how: cython.uchar
        frame_pc: cython.ulonglong
        lookup: cython.ulonglong
        step: cython.Py_ssize_t
        flags: cython.int
        depth: cython.Py_ssize_t
        room: cython.Py_ssize_t = pc.shape[0]
        spaces: cython.Py_ssize_t = self.space_first.shape[0] - 1
        here: cython.int
        with cython.nogil:
            j = position
            used = cython.cast(cython.Py_ssize_t, first[j])
            while j < order.shape[0] and room - used >= self.limit:
                i = cython.cast(cython.Py_ssize_t, order[j])
                for column in range(_COLUMNS):
                    self.registers[column] = registers[i * _COLUMNS + column]
                self.known = known[i]
                self.low = cython.cast(cython.Py_ssize_t, first_segment[i])
                self.high = cython.cast(cython.Py_ssize_t, end_segment[i])
                self.cut = cut[i]
                self.at = 0
                self.still = 0
                self.signals = 0
                here = space[i]
                if here < 0 or here >= spaces:
                    here = -1
                frame_kind = _EXACT
                frame_how = 0
                depth = 0
                status = _ON
                if not (self.known >> _PC) & 1:
                    status = _NO_REGISTERS
                while status == _ON:
                    frame_pc = self.registers[_PC]
                    lookup = frame_pc
                    if frame_kind == _RETURN:
                        lookup = (frame_pc - 1) & _WORD
                    step = self._find(lookup, frame_kind, here)
                    pc[used] = frame_pc
                    kind[used] = frame_kind
                    how[used] = frame_how
                    module[used] = -1
                    address[used] = lookup
                    if self.map >= 0:
                        module[used] = self.map_module[self.map]
                        if module[used] >= 0:
                            address[used] = (lookup - self.map_bias[self.map]) & _WORD
                    used += 1
                    depth += 1
                    self.at = frame_pc
                    if step == _LATER:
                        status = _WANTED
                    elif depth >= self.limit:
                        status = _LIMIT
                        if step >= 0 and self._outermost(step):
                            status = _COMPLETE
                    else:
                        if step == _NONE:
                            step = self._unknown(frame_pc, frame_kind, here)
                        if step == _NONE:
                            status = _NO_TABLE if self.map >= 0 else _NOT_CODE
                        else:
                            flags = self.step_flags[step]
                            status = self._follow(step, frame_kind, here)
                            if self._may_chain(flags, status):
                                step = _STEP_CHAIN
                                flags = self.step_flags[step]
                                status = self._follow(step, frame_kind, here)
                            frame_how = self.step_how[step]
                            frame_kind = _EXACT if flags & _SIGNAL else _RETURN
                if status == _WANTED:
                    used = cython.cast(cython.Py_ssize_t, first[j])
                end[j] = cython.cast(cython.uchar, status)
                at[j] = self.at
                j += 1
                first[j] = used
        return j

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _may_chain(self, flags: cython.int, status: cython.int) -> cython.bint:
        """Whether the frame pointer may do where a step could not be followed."""
        if not self.chains or flags & _GUESS:
            return False
        # A second try, which follows all registers, does better.
        return status == _INEXPRESSIBLE or (status == _UNKNOWN_REGISTER and not self.tries)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _outermost(self, step: cython.Py_ssize_t) -> cython.bint:
        """Whether a step says that there is no caller."""
        i: cython.Py_ssize_t
        for i in range(self.step_first[step], self.step_end[step]):
            if self.save_column[i] == _PC:
                return self.save_op[i] == _OP_UNKNOWN
        return False

    # Finding

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _find(self, lookup: cython.ulonglong, kind: cython.uchar, space: cython.int) -> cython.Py_ssize_t:
        """The step at an address, `_NONE`, or `_LATER` if a table must be loaded; leaves the mapping in `map`."""
        slot: cython.Py_ssize_t
        step: cython.Py_ssize_t
        module: cython.int
        self.map = _NONE
        if space < 0:
            return _NONE
        slot = cython.cast(
            cython.Py_ssize_t,
            (((lookup ^ (cython.cast(cython.ulonglong, kind) << 63)) * _MIX) & _WORD) >> (64 - _CACHE_BITS),
        )
        if self.cache_space[slot] == space * 2 + kind and self.cache_key[slot] == lookup:
            self.map = cython.cast(cython.Py_ssize_t, self.cache_map[slot])
            return cython.cast(cython.Py_ssize_t, self.cache_step[slot])
        self.map = self._mapping(lookup, space)
        step = _NONE
        if self.map >= 0 and self.tables:
            module = self.map_module[self.map]
            if module >= 0 and module < self.state.shape[0]:
                if self.state[module] == _NOT_LOADED:
                    self.wanted[module] = 1
                    return _LATER
                step = self._step_at((lookup - self.map_bias[self.map]) & _WORD, kind, module)
        self.cache_space[slot] = space * 2 + kind
        self.cache_key[slot] = lookup
        self.cache_map[slot] = self.map
        self.cache_step[slot] = step
        return step

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _mapping(self, address: cython.ulonglong, space: cython.int) -> cython.Py_ssize_t:
        """The mapping that holds an address."""
        low: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.space_first[space])
        high: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.space_first[space + 1])
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

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _step_at(self, address: cython.ulonglong, kind: cython.uchar, module: cython.int) -> cython.Py_ssize_t:
        """The step that a module's table has for an address; code that handlers return to goes before other steps."""
        step: cython.Py_ssize_t = self._point_at(address, module)
        first: cython.Py_ssize_t
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        away: cython.ulonglong
        if step >= 0 and self.step_flags[step] & _SIGNAL and self.step_how[step] != _HOW_SIGNAL:
            return step
        # A handler did not call: it returns to where that code begins.
        if kind == _RETURN:
            address = (address + 1) & _WORD
        low = cython.cast(cython.Py_ssize_t, self.trampoline_first[module])
        first = low
        high = cython.cast(cython.Py_ssize_t, self.trampoline_end[module])
        while low < high:
            middle = (low + high) >> 1
            if self.trampoline_start[middle] <= address:
                low = middle + 1
            else:
                high = middle
        if low > first:
            away = address - self.trampoline_start[low - 1]
            if away == 0 or (kind == _EXACT and away < 8 and (step < 0 or self.step_flags[step] & _SIGNAL)):
                return _STEP_CONTEXT + self.trampoline_kind[low - 1]
        return step

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _point_at(self, address: cython.ulonglong, module: cython.int) -> cython.Py_ssize_t:
        first: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.point_first[module])
        end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.point_end[module])
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        bucket: cython.Py_ssize_t
        step: cython.uint
        offset: cython.ulonglong
        if first == end or address < self.points_start[first] or address > self.points_start[end - 1]:
            return _NONE
        bucket = cython.cast(cython.Py_ssize_t, (address - self.points_start[first]) >> self.shift[module])
        bucket += cython.cast(cython.Py_ssize_t, self.directory_first[module])
        # The last point at or before the address; the directory has the first point at or behind each border.
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
        low -= 1
        step = self.points_step[low]
        if step == _NO_STEP:
            return _NONE
        if step & _BLOCK:
            middle = cython.cast(cython.Py_ssize_t, step & ~_BLOCK)
            offset = (address - self.block_start[middle]) % self.block_size[middle]
            step = _NO_STEP
            for bucket in range(self.block_first[middle], self.block_end[middle]):
                if self.block_offset[bucket] > offset:
                    break
                step = self.block_step[bucket]
            if step == _NO_STEP:
                return _NONE
        return cython.cast(cython.Py_ssize_t, step)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _unknown(self, pc: cython.ulonglong, kind: cython.uchar, space: cython.int) -> cython.Py_ssize_t:
        """The step where no table has one."""
        i: cython.Py_ssize_t
        module: cython.int
        if self.tables and kind == _RETURN and (self.map < 0 or self.map_module[self.map] < 0):
            # The kernel of some machines puts the code that handlers return to on the stack.
            for i in range(self.patterns.shape[0] // 4):
                if self._matches(pc, i):
                    return _STEP_CONTEXT + i
        if self.tables and kind == _RETURN and self.map >= 0:
            module = self.map_module[self.map]
            if module >= 0 and module < self.state.shape[0] and self.state[module] == _UNSEEN:
                # The kernel's own code calls nobody, so this is where a handler returns to.
                for i in range(self.patterns.shape[0] // 4):
                    if self._leads_to_code(_STEP_CONTEXT + i, space):
                        return _STEP_CONTEXT + i
        if not self.chains:
            return _NONE
        if self.map < 0:
            # Only a jump can have led to where no code is: nothing was done there yet.
            return _STEP_ENTRY if kind == _EXACT and self.tables else _NONE
        module = self.map_module[self.map]
        if module >= 0 and module < self.declared.shape[0] and self.declared[module]:
            return _STEP_DECLARED
        return _STEP_CHAIN

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _leads_to_code(self, step: cython.Py_ssize_t, space: cython.int) -> cython.bint:
        """Whether the program counter that a step finds is in mapped code."""
        i: cython.Py_ssize_t
        for i in range(self.step_first[step], self.step_end[step]):
            if self.save_column[i] == _PC:
                if self._value(self.save_op[i], self.save_register[i], self.save_operand[i], 0, False) != _ON:
                    return False
                return space >= 0 and self._mapping(self.value, space) >= 0
        return False

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _matches(self, pc: cython.ulonglong, number: cython.Py_ssize_t) -> cython.bint:
        """Whether the code there is that of a trampoline."""
        mask: cython.ulonglong = self.patterns[4 * number + 2]
        if self._load_bytes(pc, 8 if mask >> 16 else 2, True) != _ON:
            return False
        if self.value & mask != self.patterns[4 * number]:
            return False
        mask = self.patterns[4 * number + 3]
        if not mask:
            return True
        return self._load_bytes(pc + 1, 8, True) == _ON and self.value & mask == self.patterns[4 * number + 1]

    # Following

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _follow(self, step: cython.Py_ssize_t, kind: cython.uchar, space: cython.int) -> cython.int:
        """Make the caller's registers; `_ON`, or why there is none. If there is none, they stay as they are."""
        flags: cython.int = self.step_flags[step]
        first: cython.Py_ssize_t = self.step_first[step]
        end: cython.Py_ssize_t = self.step_end[step]
        i: cython.Py_ssize_t
        column: cython.Py_ssize_t
        op: cython.int
        status: cython.int
        cfa: cython.ulonglong
        sp: cython.ulonglong
        pc: cython.ulonglong = 0
        known: cython.ulonglong = 0
        if step == _STEP_CHAIN or step == _STEP_DECLARED:
            if not (self.known >> self.chain_register) & 1:
                return _NO_TABLE
            if not self.registers[self.chain_register]:
                self.at = self.chain_register
                return _ZERO
        if end - first > self.values.shape[0]:
            return _INEXPRESSIBLE
        if self._outermost(step):
            return _COMPLETE
        status = self._value(self.step_cfa[step], self.step_register[step], self.step_operand[step], 0, True)
        if status != _ON:
            return status
        cfa = self.value
        if not cfa and flags & _GUESS:
            # The last word of a chain.
            self.at = 0
            return _ZERO
        sp = (cfa + self.sp_from_cfa) & _WORD
        if flags & _KEEPS:
            known = self.known & self.preserved
        known |= cython.cast(cython.ulonglong, 1) << self.sp
        for i in range(first, end):
            op = self.save_op[i]
            column = self.save_column[i]
            if op == _OP_SAME:
                self.values[i - first] = self.registers[column]
                known &= ~(cython.cast(cython.ulonglong, 1) << column)
                known |= self.known & (cython.cast(cython.ulonglong, 1) << column)
                continue
            if op == _OP_UNKNOWN:
                known &= ~(cython.cast(cython.ulonglong, 1) << column)
                continue
            status = self._value(op, self.save_register[i], self.save_operand[i], cfa, False)
            if status == _ON:
                known |= cython.cast(cython.ulonglong, 1) << column
                self.values[i - first] = self.value
            elif column == _PC or column == self.sp:
                return status
            else:
                # Other registers may never be needed.
                known &= ~(cython.cast(cython.ulonglong, 1) << column)
                if kind == _EXACT and status == _UNREADABLE and self.at < self.registers[self.sp]:
                    # Below the stack pointer stands what was restored already: compilers do not say so in epilogues,
                    # and recordings do not have it.
                    self.values[i - first] = self.registers[column]
                    known |= self.known & (cython.cast(cython.ulonglong, 1) << column)
            if column == _PC:
                pc = self.value
            elif column == self.sp:
                sp = self.value
        if flags & _SIGNED:
            pc &= self.address_mask
        self.at = pc
        # What a signal interrupted can have jumped to 0.
        if not (known >> _PC) & 1 or (not pc and not flags & _SIGNAL):
            return _ZERO
        status = self._progress(flags, kind, pc, sp)
        if status != _ON:
            return status
        if flags & _GUESS and self._mapping_of_return(pc, space) < 0:
            return _NOT_CODE
        for i in range(first, end):
            column = self.save_column[i]
            if (known >> column) & 1:
                self.registers[column] = self.values[i - first]
        self.registers[_PC] = pc
        self.registers[self.sp] = sp
        if self.rip >= 0:
            self.registers[self.rip] = pc
            known |= cython.cast(cython.ulonglong, 1) << self.rip
        if flags & _LOOSE:
            known &= ~(cython.cast(cython.ulonglong, 1) << self.sp)
        self.known = known
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-3, check=False)
    def _mapping_of_return(self, pc: cython.ulonglong, space: cython.int) -> cython.Py_ssize_t:
        if space < 0:
            return _NONE
        return self._mapping((pc - 1) & _WORD, space)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _progress(
        self, flags: cython.int, kind: cython.uchar, pc: cython.ulonglong, sp: cython.ulonglong
    ) -> cython.int:
        """Whether the caller is further out on the stack, which every walk must come to the end of."""
        old: cython.ulonglong = self.registers[self.sp]
        if flags & _SIGNAL:
            # The interrupted code can have another stack. Signal frames in a circle meet the one that was marked
            # last, since marks are set at growing distances.
            if self.signals and pc == self.mark_pc and sp == self.mark_sp:
                return _LOOP
            self.signals += 1
            if not self.signals & (self.signals - 1):
                self.mark_pc = pc
                self.mark_sp = sp
            self.still = 0
            return _ON
        if sp > old:
            self.still = 0
            return _ON
        if sp < old:
            return _NO_PROGRESS
        # A leaf needs no stack; nor does a callee that keeps its return address in a register.
        self.still += 1
        if self.still > 2:
            return _NO_PROGRESS
        if kind == _RETURN and pc == self.registers[_PC]:
            return _LOOP
        return _ON

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _value(
        self,
        op: cython.int,
        register: cython.Py_ssize_t,
        operand: cython.longlong,
        cfa: cython.ulonglong,
        is_cfa: cython.bint,
    ) -> cython.int:
        """Leave a value in `value`; `_ON`, or why there is none."""
        status: cython.int
        address: cython.ulonglong
        if op == _OP_AT_CFA:
            return self._load((cfa + operand) & _WORD)
        if op == _OP_REGISTER or op == _OP_AT_REGISTER:
            if not (self.known >> register) & 1:
                self.at = register
                return _UNKNOWN_REGISTER
            address = (self.registers[register] + operand) & _WORD
            if op == _OP_AT_REGISTER:
                return self._load(address)
            self.value = address
            return _ON
        if op == _OP_CFA:
            self.value = (cfa + operand) & _WORD
            return _ON
        if op == _OP_EXPRESSION or op == _OP_AT_EXPRESSION:
            status = self._expression(operand, cfa, is_cfa)
            if status == _ON and op == _OP_AT_EXPRESSION:
                return self._load(self.value)
            return status
        return _INEXPRESSIBLE

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _expression(self, number: cython.longlong, cfa: cython.ulonglong, is_cfa: cython.bint) -> cython.int:
        """Evaluate, bringing what it wants to load."""
        status: cython.int
        bias: cython.ulonglong = 0
        if self.map >= 0:
            bias = self.map_bias[self.map]
        status = self.expressions.start(number, self.known, cfa, is_cfa, bias)
        while status == 1:
            status = self._load_bytes(self.expressions.address, self.expressions.size, False)
            if status != _ON:
                return status
            status = self.expressions.take(self.value)
        if status == 0:
            self.value = self.expressions.result()
            return _ON
        if status == 2:
            self.at = self.expressions.address
            return _UNKNOWN_REGISTER
        return _INEXPRESSIBLE

    # Memory

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _load(self, address: cython.ulonglong) -> cython.int:
        return self._load_bytes(address, 8, False)

    @cython.cfunc
    @cython.nogil
    @cython.exceptval(-1, check=False)
    def _load_bytes(self, address: cython.ulonglong, size: cython.int, code: cython.bint) -> cython.int:
        """Leave a number of 1 to 8 bytes in `value`; code is read as the bytes stand, first lowest."""
        low: cython.Py_ssize_t = self.low
        high: cython.Py_ssize_t = self.high
        middle: cython.Py_ssize_t
        place: cython.Py_ssize_t
        away: cython.ulonglong
        there: cython.ulonglong
        # The last segment that begins at or before the address.
        while high - low > 1:
            middle = (low + high) >> 1
            if self.segment_start[middle] <= address:
                low = middle
            else:
                high = middle
        if low < high and self.segment_start[low] <= address:
            away = address - self.segment_start[low]
            there = self.segment_size[low]
            if away < there and there - away >= cython.cast(cython.ulonglong, size):
                place = cython.cast(cython.Py_ssize_t, self.segment_offset[low] + away)
                if place >= 0 and place <= self.buffer.shape[0] - size:
                    self._take(self.buffer, place, size, self.big and not code)
                    return _ON
                place -= self.buffer.shape[0]
                if place >= 0 and place <= self.following.shape[0] - size:
                    self._take(self.following, place, size, self.big and not code)
                    return _ON
        if code:
            return _UNREADABLE
        self.at = address
        if self.cut and (address + size) & _WORD > self.cut and (address - self.cut + 8) & _WORD < _FAR:
            return _STACK_CUT
        return _UNREADABLE

    @cython.cfunc
    @cython.nogil
    @cython.boundscheck(False)
    @cython.exceptval(check=False)
    def _take(
        self, data: cython.const[cython.uchar][::1], place: cython.Py_ssize_t, size: cython.int, big: cython.bint
    ) -> cython.void:
        """The caller has seen that the bytes are there."""
        i: cython.int
        value: cython.ulonglong = 0
        if size == 8 and not big:
            value = data[place]
            value |= cython.cast(cython.ulonglong, data[place + 1]) << 8
            value |= cython.cast(cython.ulonglong, data[place + 2]) << 16
            value |= cython.cast(cython.ulonglong, data[place + 3]) << 24
            value |= cython.cast(cython.ulonglong, data[place + 4]) << 32
            value |= cython.cast(cython.ulonglong, data[place + 5]) << 40
            value |= cython.cast(cython.ulonglong, data[place + 6]) << 48
            value |= cython.cast(cython.ulonglong, data[place + 7]) << 56
        elif big:
            for i in range(size):
                value = (value << 8) | data[place + i]
        else:
            for i in range(size):
                value |= cython.cast(cython.ulonglong, data[place + i]) << (8 * i)
        self.value = value
