"""The memory of a file as its program sees it, and what is known of the functions in it (compiled)."""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.proof.imagedata import BLOCK_BITS
from walkback.table.pieces import directory_of

if cython.compiled:
    from cython.cimports.walkback.base.cursor import as_signed
    from cython.cimports.walkback.base.searching import last, last_between
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Flow
    from cython.cimports.walkback.code.flags import keeps_flags
    from cython.cimports.walkback.code.machines import AARCH64, AMD64
    from cython.cimports.walkback.proof.values import Back
else:
    from walkback.base.cursor import as_signed
    from walkback.base.searching import last, last_between
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Flow
    from walkback.code.flags import keeps_flags
    from walkback.code.machines import AARCH64, AMD64
    from walkback.proof.values import Back

_ALL = cython.declare(cython.ulonglong, WORD)
_BLOCK = cython.declare(cython.int, BLOCK_BITS)
_FAR = cython.declare(cython.longlong, 1 << 40)
_NOP_OF_AARCH64 = cython.declare(cython.uint, 0xD503201F)
_DSB_SY = cython.declare(cython.uint, 0xD5033F9F)
_DSB_NSH = cython.declare(cython.uint, 0xD503379F)
_ISB = cython.declare(cython.uint, 0xD5033FDF)
_SB = cython.declare(cython.uint, 0xD50330FF)
_BETWEEN = cython.declare(cython.longlong, 64)
"""Bytes from a comparison to its branch."""
_TO_JUMP = cython.declare(cython.int, 24)
"""Instructions from the check of an index to the jump by a table."""
if cython.compiled:
    _HOLD = cython.declare(cython.const[cython.uchar][::1])
_HOLD = memoryview(bytes.fromhex("f3900faee8ebf9"))
"""pause; lfence; and a jump to the `pause`."""
_TO_TARGET = cython.declare(cython.ulonglong, 32)
"""Bytes that a call may leave out, with padding."""
_MOST_CALLED = cython.declare(cython.int, 64)
"""Functions that `reach` follows."""
_LONGEST = cython.declare(cython.longlong, 1 << 16)
"""Bytes of a function that it reads."""


@cython.final
@cython.cclass
class Code:
    """Bytes at addresses."""

    def __init__(self, image, known):
        self.data = memoryview(image.data)
        self.contents = image.contents
        self.is_there = memoryview(np.zeros(image.contents.blocks, np.uint8))
        if not cython.compiled:
            self.bytes = self.data
        elif len(self.data):
            self.bytes = cython.address(self.data[0])
        self.start, self.end, self.pos = memoryview(image.start), memoryview(image.end), memoryview(image.pos)
        self.executable = memoryview(image.executable)
        sizes = np.where(image.executable != 0, image.end - image.start, np.uint64(0))
        if len(sizes):
            largest = int(sizes.argmax())
            self.code_start, self.code_size = int(image.start[largest]), int(sizes[largest])
            self.code_pos = int(image.pos[largest])
        else:
            self.code_start = self.code_size = self.code_pos = 0
        self.big = image.byteorder == "big"
        self.machine = image.machine_number
        self.waits = image.is_linux and self.machine == AMD64
        self.moves = image.moves
        self.functions, self.back = memoryview(known.functions), memoryview(known.back)
        near, self.shift = directory_of(known.functions, known.functions, len(known.functions))
        self.near = memoryview(near)
        self.written, self.kept = memoryview(known.written), memoryview(known.kept)
        self.size = memoryview(known.size)
        self.named, self.targets = memoryview(known.named), memoryview(known.targets)
        self.pointed, self.returning = memoryview(known.pointed), memoryview(known.returning)
        self.silent_words = memoryview(known.silent_words)
        self.highest = known.highest
        self.brief = memoryview(known.brief)
        self.ok = True
        self.called = memoryview(np.zeros(_MOST_CALLED, np.uint64))
        self.calls = 0
        self.one = Instruction()

    def has(self, address: cython.ulonglong, width: cython.int) -> cython.bint:
        """Whether a number of `width` bytes is there; only then it may be read."""
        pos: cython.Py_ssize_t = self.place(address)
        last_pos: cython.Py_ssize_t = pos + width - 1
        if pos < 0 or self.place(address + width - 1) != last_pos:
            return False
        self.number_at = pos
        if not self.is_there[pos >> _BLOCK] or not self.is_there[last_pos >> _BLOCK]:
            with cython.gil:
                for block in (pos >> _BLOCK, last_pos >> _BLOCK):
                    self.contents.load(block)
                    self.is_there[block] = 1
        return True

    def read(self, width: cython.int, signed: cython.bint) -> cython.longlong:
        """The number that was found to be there last."""
        i: cython.int
        value: cython.ulonglong = 0
        pos: cython.Py_ssize_t = self.number_at
        for i in range(width):
            if self.big:
                value = (value << 8) | self.data[pos + i]
            else:
                value |= cython.cast(cython.ulonglong, self.data[pos + i]) << (8 * i)
        if signed and width < 8 and value >> (8 * width - 1):
            return cython.cast(cython.longlong, value) - (cython.cast(cython.longlong, 1) << (8 * width))
        return as_signed(value)

    def is_wait(self, address: cython.ulonglong) -> cython.bint:
        """Whether this is no trap, as Linux waits for interrupts with it: `hlt`."""
        return self.waits and self.data[self.place(address)] == 0xF4

    def place(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """Where an address is in the buffer; -1 if it is not there."""
        away: cython.ulonglong = (address - self.code_start) & _ALL
        if away < self.code_size:  # most are in the largest part
            return cython.cast(cython.Py_ssize_t, self.code_pos + away)
        part: cython.Py_ssize_t = last(self.start, self.start.shape[0], address)
        if part < 0 or address >= self.end[part]:
            return -1
        return cython.cast(cython.Py_ssize_t, self.pos[part]) + cython.cast(
            cython.Py_ssize_t, address - self.start[part]
        )

    def place_of_code(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The same of an address in a part that has code; -1 for others."""
        return -1 if self.is_data(address) else self.place(address)

    def is_pointed_to(self, address: cython.ulonglong) -> cython.bint:
        """Whether data has an address."""
        found: cython.Py_ssize_t = last(self.pointed, self.pointed.shape[0], address)
        return found >= 0 and self.pointed[found] == address

    def is_data(self, address: cython.ulonglong) -> cython.bint:
        """Whether an address is in a part that has no code."""
        if (address - self.code_start) & _ALL < self.code_size:
            return False
        part: cython.Py_ssize_t = last(self.start, self.start.shape[0], address)
        return part >= 0 and address < self.end[part] and not self.executable[part]

    def look_up(self, address: cython.ulonglong) -> cython.int:
        """Find what is known of the function at an address, or of the one around it.

        `is_silent` says whether it does not come back, `is_seldom` whether it mostly does not, `comes_back` whether it
        does, `is_again` whether it does with the return address that it was passed, and `is_beyond` whether it also
        goes on behind the return behind its call. `changed` has the registers that it changes, as bits, and `broken`
        those that it never saves, if all that it does is known; then `known_size` has its bytes. `is_odd` is code of
        this file without a table.
        """
        part: cython.Py_ssize_t = self.function_before(address)
        self.is_silent = self.is_seldom = self.is_again = self.is_beyond = self.comes_back = False
        self.changed = _ALL
        self.broken = 0
        self.is_odd = False
        self.known_size = 0
        with cython.boundscheck(False):
            if part >= 0:
                away: cython.ulonglong = address - self.functions[part]
                self.is_silent = self.back[part] == Back.NEVER and away == 0
                self.is_seldom = self.back[part] == Back.SELDOM and away == 0
                self.is_again = self.back[part] == Back.AGAIN and away == 0
                self.is_beyond = self.back[part] == Back.BEYOND and away == 0
                self.comes_back = self.back[part] == Back.ALWAYS and away == 0
                if away < cython.cast(cython.ulonglong, self.size[part]):
                    self.changed = self.written[part]
                    if self.changed != _ALL and away == 0:
                        self.known_size = self.size[part]
                        self.broken = self.changed & ~self.kept[part]
                    return 0
        self.is_odd = not self.is_silent and self.place(address) >= 0
        return 0

    def function_before(self, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The last of the functions that begins at an address or in front of it; -1 if there is none."""
        count: cython.Py_ssize_t = self.functions.shape[0]
        with cython.boundscheck(False):
            if count == 0 or address < self.functions[0]:
                return -1
            if address >= self.functions[count - 1]:
                return count - 1
            bucket: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, (address - self.functions[0]) >> self.shift)
            return last_between(self.functions, self.near[bucket], self.near[bucket + 1], address)

    def returns(self, address: cython.ulonglong) -> cython.bint:
        """Whether a function outside of the table comes back, as its calls show."""
        found: cython.Py_ssize_t = last(self.returning, self.returning.shape[0], address)
        return found >= 0 and self.returning[found] == address

    def reach(self, address: cython.ulonglong) -> cython.ulonglong:
        """The registers that a function changes and all that it calls do; `ok` says whether all of them are known."""
        i: cython.int = 0
        found: cython.ulonglong = 0
        self.calls = 0
        self.ok = self.will_call(address)
        while self.ok and i < self.calls:
            part: cython.Py_ssize_t = self.function_before(self.called[i])
            if part < 0 or self.functions[part] != self.called[i]:
                self.ok = False
            elif self.back[part] != Back.NEVER:
                found |= self.read_calls(self.called[i], self.size[part])
            i += 1
        return found if self.ok else _ALL

    def read_calls(self, begin: cython.ulonglong, size: cython.longlong) -> cython.ulonglong:
        """The registers that a function itself changes; what it calls is noted."""
        found: cython.ulonglong = 0
        at: cython.longlong = 0
        pos: cython.Py_ssize_t = self.place_of_code(begin)
        self.ok = pos >= 0 and size <= _LONGEST
        while self.ok and at < size:
            decode(self.machine, self.bytes, pos + at, cython.cast(cython.Py_ssize_t, pos + size), begin + at, self.one)
            at += self.one.length
            found |= self.one.changes()
            if self.one.flow == Flow.CALL_INDIRECT or self.one.flow == Flow.JUMP_INDIRECT:
                self.ok = False
            elif self.one.flow == Flow.CALL or self.one.flow == Flow.JUMP or self.one.flow == Flow.BRANCH:
                if (self.one.target - begin) & _ALL >= cython.cast(cython.ulonglong, size):
                    self.ok = self.will_call(self.one.target)
        ends: cython.bint = self.one.flow == Flow.RETURN or self.one.flow == Flow.JUMP or self.one.flow == Flow.TRAP
        if self.ok and size > 0 and not ends:
            self.ok = self.will_call(begin + size)  # it goes on in what is behind it
        return found

    def will_call(self, address: cython.ulonglong) -> cython.bint:
        """Note a function that is called; returns whether there was room."""
        i: cython.int
        for i in range(self.calls):
            if self.called[i] == address:
                return True
        if self.calls == _MOST_CALLED:
            return False
        self.called[self.calls] = address
        self.calls += 1
        return True

    def calls_over(self, behind: cython.ulonglong, target: cython.ulonglong) -> cython.bint:
        """AMD64: whether a call leaves out only a trap behind it, or nothing: it pushes, and goes on at its target.

        Linux fills the processor's stack of return addresses so, with `int3`; functions begin at multiples of 16.
        Compilers return and jump so, behind a loop that holds speculation.
        """
        away: cython.ulonglong = (target - behind) & _ALL
        if self.machine != AMD64 or away > _TO_TARGET:
            return False
        if away == 0:
            return True
        pos: cython.Py_ssize_t = self.place_of_code(behind)
        end: cython.Py_ssize_t = self.place_of_code(target)
        if pos < 0 or end - pos != cython.cast(cython.Py_ssize_t, away):
            return False
        if self.data[pos] == 0xCC:
            return away == 1 and target & 15 != 0
        size: cython.int = self.hold(pos, end)
        while size and pos + size < end:
            pos += size
            size = self.padding(pos, end)
        return size != 0

    def hold(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """AMD64: how many bytes from a place in the buffer on are a loop that holds speculation; 0 if none is."""
        i: cython.int
        if self.machine != AMD64 or end - pos < _HOLD.shape[0]:
            return 0
        for i in range(_HOLD.shape[0]):
            if self.data[pos + i] != _HOLD[i]:
                return 0
        return cython.cast(cython.int, _HOLD.shape[0])

    def gets_pc(self, behind: cython.ulonglong, target: cython.ulonglong) -> cython.bint:
        """AMD64: whether a call goes to what is behind it, and no function begins there: so code learns where it is."""
        return target == behind and target & 15 != 0 and self.machine == AMD64

    def room(self, address: cython.ulonglong) -> cython.longlong:
        """How many bytes there are from an address to the next that the code names."""
        after: cython.Py_ssize_t = last(self.named, self.named.shape[0], address) + 1
        if after == self.named.shape[0]:
            return _FAR
        return cython.cast(cython.longlong, self.named[after] - address)

    def keeps(self, at: cython.longlong, end: cython.longlong, registers: cython.ulonglong) -> cython.bint:
        """Whether straight code from one place in the buffer to another changes neither flags nor some registers."""
        if end - at > _BETWEEN:
            return False
        while at < end:
            decode(self.machine, self.bytes, at, end, 0, self.one)
            if self.one.flow == Flow.NEXT:
                if self.one.changes() & registers or not keeps_flags(self.machine, self.bytes, at):
                    return False
            elif self.one.flow != Flow.BRANCH:
                return False
            at += self.one.length
        return at == end

    def jumps_by_table(self, at: cython.longlong, end: cython.longlong) -> cython.bint:
        """Whether straight code from a place in the buffer on ends with a jump to an address that it loads."""
        i: cython.int
        for i in range(_TO_JUMP):
            if at < 0 or at >= end:
                return False
            decode(self.machine, self.bytes, at, end, 0, self.one)
            if self.one.flow != Flow.NEXT:
                return self.one.flow == Flow.JUMP_INDIRECT
            at += self.one.length
        return False

    def padding(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """How many bytes from a place in the buffer on fill the room between pieces of code; 0 if that is code."""
        at: cython.Py_ssize_t = pos
        if self.machine == AARCH64:
            if end - pos < 4:
                return cython.cast(cython.int, end - pos)
            word: cython.uint = self.word(pos)
            return 4 if word == 0 or word == _NOP_OF_AARCH64 else 0
        if self.machine != AMD64:
            if end - pos >= 2 and self.data[pos] == 7 and self.data[pos + 1] & 0xF0 == 0:
                return 2
            if end - pos >= 2 and self.data[pos] == 0 and self.data[pos + 1] == 0:
                return 2
            if end - pos >= 6 and self.data[pos] == 0xC0 and self.data[pos + 1] == 4:
                return 6
            return 4 if end - pos >= 4 and self.data[pos] == 0x47 and self.data[pos + 1] == 0 else 0
        if self.data[pos] == 0xCC or self.data[pos] == 0:
            return 1
        while at < end and (self.data[at] == 0x66 or self.data[at] == 0x2E or self.data[at] == 0x48):
            at += 1
        if at < end and self.data[at] == 0x90:
            return cython.cast(cython.int, at + 1 - pos)
        if end - at >= 3 and self.data[at] == 0x0F and self.data[at + 1] == 0x1F:
            return cython.cast(cython.int, min(at + 2 + _operand_size(self.data[at + 2]), end) - pos)
        return 0

    def filling(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """The same where nothing leads to; there a trap is no code either."""
        size: cython.int = self.padding(pos, end)
        if size:
            return size
        if self.machine == AMD64:
            return 2 if end - pos >= 2 and self.data[pos] == 0x0F and self.data[pos + 1] == 0x0B else 0
        if end - pos < 4:
            return 0
        if self.machine == AARCH64:
            return 4 if self.data[pos + 3] == 0xD4 and self.data[pos + 2] & 0xE0 == 0x20 else 0
        return 4 if self.data[pos] == 0xA7 and self.data[pos + 1] == 0xF4 and self.data[pos + 3] == 1 else 0

    def unused(self, pos: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.int:
        """The same where no call comes back to either; there what holds speculation is no code."""
        size: cython.int = self.filling(pos, end)
        if size or self.machine != AARCH64 or end - pos < 4:
            return size or self.hold(pos, end)
        word: cython.uint = self.word(pos)
        if end - pos >= 8 and (word == _DSB_SY or word == _DSB_NSH) and self.word(pos + 4) == _ISB:
            return 8
        return 4 if word == _SB else 0

    def word(self, pos: cython.Py_ssize_t) -> cython.uint:
        """Four bytes of the buffer, as AArch64 has instructions."""
        low: cython.uint = self.data[pos] | self.data[pos + 1] << 8 | self.data[pos + 2] << 16
        return low | cython.cast(cython.uint, self.data[pos + 3]) << 24


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _operand_size(modrm: cython.int) -> cython.int:
    """Bytes of the operand of a `nop` of AMD64, which is at a register and a distance."""
    size: cython.int = 2 if modrm & 7 == 4 else 1
    return size + (1 if modrm >> 6 == 1 else 4 if modrm >> 6 == 2 else 0)
