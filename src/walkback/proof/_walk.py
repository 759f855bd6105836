"""The walk through the code of a unit (compiled).

Each block is walked from its state on, instruction by instruction: what the table claims there is judged, and then the
instruction changes the state. Where control goes the state flows into another block. A block is walked again when its
state loses something, so the verdicts of its last walk are those of every way to it.
"""

import cython
import numpy as np

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code._listing import decode
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.proof._effects import added, apply, assume, table_entry
    from cython.cimports.walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, made, moved
    from cython.cimports.walkback.proof.values import Known, Verdict, Why
else:
    from walkback.code._instruction import Instruction
    from walkback.code._listing import decode
    from walkback.code.effects import Effect, Flow
    from walkback.proof._effects import added, apply, assume, table_entry
    from walkback.proof.packed import ID_MASK, ID_SHIFT, KIND_MASK, OFFSET_SHIFT, made, moved
    from walkback.proof.values import Known, Verdict, Why

_ALL = cython.declare(cython.ulonglong, WORD)
_STEPS = cython.declare(cython.longlong, 16)
"""How often each byte of a unit may be walked over, on average."""
_PATTERN = cython.declare(cython.uchar, 6)
"""Bytes of an instruction that `exrl` executes."""
_ENTRIES = cython.declare(cython.longlong, 1 << 14)
"""Of a table of jumps."""
if cython.compiled:
    _OPPOSITE = cython.declare(cython.const[cython.uchar][::1])
_OPPOSITE = memoryview(bytes([0, 2, 1, 6, 5, 4, 3]))
"""The `Condition` that holds where each does not."""
_POPPED = cython.declare(cython.longlong, 4096)
"""Bytes of arguments at most that an exception takes off the stack."""


@cython.final
@cython.cclass
class Walk:
    """Through one unit after the other."""

    def __init__(self, unit, code, claims, state, ranges):
        self.unit, self.code, self.claims, self.state = unit, code, claims, state
        self.one, self.other = Instruction(), Instruction()
        self.first_row = memoryview(ranges.first_row)
        self.rows = memoryview(ranges.rows)
        self.block = memoryview(ranges.block)
        self.is_entry = memoryview(ranges.is_entry)
        self.is_stub = memoryview(ranges.is_stub)
        self.stubs = memoryview(ranges.stubs)
        self.row_offset = memoryview(ranges.row_offset)
        self.row_claims = memoryview(ranges.row_claims)
        self.pad_first = memoryview(ranges.pad_first)
        self.pads = memoryview(ranges.pads)
        self.doubtful = memoryview(np.zeros((16, 3), np.int64))

    def more_doubts(self) -> cython.int:
        """Make room for more places behind calls."""
        with cython.gil:
            self.doubtful = memoryview(np.concatenate((np.asarray(self.doubtful), np.asarray(self.doubtful))))
        return 0

    def run(self, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Walk through a unit; returns False if it is too large or has too many ways."""
        self.doubts = 0
        self.unresolved = self.swept = False
        self.steps = 0
        self.state.table_count = 0
        self.member = -1
        if not self.unit.open(first, end):
            return False
        self.begin()
        if not self.settle():
            return False
        self.decide_doubts()
        if not self.settle():
            return False
        return self.fill_gaps()

    def begin(self) -> cython.int:
        """Come to each entry as the ABI says."""
        i: cython.Py_ssize_t
        number: cython.longlong
        place: cython.longlong
        for i in range(self.unit.count):
            number = self.unit.members[self.unit.first + i]
            if self.is_stub[number]:
                self.begin_stubs(i, number)
            if not self.is_entry[number]:
                continue
            place = self.unit.base[i]
            if self.block[number]:
                # A table of stubs, each of them an entry.
                while place < self.unit.base[i + 1]:
                    self.state.enter()
                    self.unit.flow(self.state, place, -1, False)
                    place += self.block[number]
            elif self.unit.size[number]:
                self.state.enter()
                self.unit.flow(self.state, place, -1, False)
        return 0

    def begin_stubs(self, member: cython.Py_ssize_t, number: cython.longlong) -> cython.int:
        """Come to each entry of a procedure linkage table."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.stubs.shape[0]
        place: cython.longlong
        while low < high:
            middle: cython.Py_ssize_t = (low + high) // 2
            if self.stubs[middle] < self.unit.start[number]:
                low = middle + 1
            else:
                high = middle
        while low < self.stubs.shape[0]:
            place = self.unit.place_of(self.stubs[low])
            if place < self.unit.base[member] or place >= self.unit.base[member + 1]:
                break
            self.state.enter()
            self.unit.flow(self.state, place, -1, False)
            low += 1
        return 0

    def settle(self) -> cython.bint:
        """Walk blocks until nothing changes."""
        block: cython.Py_ssize_t = self.unit.next()
        while block >= 0:
            self.walk(block)
            if self.unit.is_full or self.steps > _STEPS * (self.unit.total + 4096):
                return False
            block = self.unit.next()
        return True

    def walk(self, block: cython.Py_ssize_t) -> cython.int:
        """Walk one block from its beginning."""
        with cython.boundscheck(False):
            place: cython.longlong = self.unit.block_place[block]
            begin: cython.longlong = place
            self.state.read(self.unit.arena, cython.cast(cython.Py_ssize_t, self.unit.block_state[block]))
            self.assumed = self.unit.block_assumed[block] != 0
            self.doubt = False
            self.judged = -1
            if self.member < 0 or place < self.unit.base[self.member] or place >= self.unit.base[self.member + 1]:
                self.enter_member(self.unit.member_of(place))
            limit: cython.longlong = self.unit.base[self.member + 1]
            while place < limit:
                if self.doubt and not self.code.padding(self.code_at + place, self.code_at + limit):
                    self.doubt = False
                    if self.judge(place) == Verdict.WRONG:
                        return self.put_off(place)
                if place != begin:
                    if self.unit.head[place]:
                        return self.unit.flow(self.state, place, self.source, self.assumed)
                    owner: cython.Py_ssize_t = self.unit.owner[place] - 1
                    if owner >= 0 and owner != block and self.unit.is_inside(place, owner):
                        return self.unit.flow(self.state, place, self.source, self.assumed)
                    at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.code_at + place)
                    if self.code.targets[at >> 3] >> (at & 7) & 1:
                        # Others will come here: a block begins, in which this walk goes on.
                        block = self.unit.begin(self.state, place, self.source, self.assumed)
                        begin = place
                self.unit.owner[place] = cython.cast(cython.int, block + 1)
                pos: cython.longlong = self.code_at + place
                address: cython.ulonglong = self.address_at + cython.cast(cython.ulonglong, place)
                decode(self.code.machine, self.code.data, pos, self.code_at + limit, address, self.one)
                self.unit.length[place] = cython.cast(cython.uchar, self.one.length)
                self.source = place
                self.steps += 1
                if self.one.flow == Flow.BAD:
                    self.unit.verdict[place] = Verdict.UNKNOWN
                    self.unit.what[place] = Why.BAD_CODE
                    return 0
                self.record(place)
                if not self.step(address):
                    return 0
                place += self.one.length
            if self.one.flow == Flow.CALL or self.one.flow == Flow.CALL_INDIRECT:
                return 0  # with nothing behind it, it does not come back
            return self.fall(self.address_at + cython.cast(cython.ulonglong, place))

    def fall(self, address: cython.ulonglong) -> cython.int:
        """Go on in the next range, if that is part of the unit, and the state fits or nothing else leads there."""
        place: cython.longlong = self.unit.place_of(address)
        if place < 0:
            return 0
        self.enter_member(self.unit.member_of(place))
        self.judged = -1
        if self.judge(place) == Verdict.WRONG:
            return self.put_off(place)
        return self.unit.flow(self.state, place, self.source, self.assumed)

    def return_to(self, block: cython.Py_ssize_t) -> cython.int:
        """Take the state of a block up again, when all is walked."""
        self.state.read(self.unit.arena, cython.cast(cython.Py_ssize_t, self.unit.block_state[block]))
        self.enter_member(self.unit.member_of(self.unit.block_place[block]))
        return 0

    def go_on(self, at: cython.longlong, place: cython.longlong) -> cython.int:
        """Bring the state from one place of a block to another behind it."""
        while at < place:
            address: cython.ulonglong = self.address_at + cython.cast(cython.ulonglong, at)
            end: cython.longlong = self.code_at + self.unit.base[self.member + 1]
            decode(self.code.machine, self.code.data, self.code_at + at, end, address, self.one)
            if self.one.flow == Flow.CALL or self.one.flow == Flow.CALL_INDIRECT:
                self.call(address)
            elif self.one.effect or self.one.clobbers:
                apply(self.state, self.one, address)
            if self.one.flow == Flow.BRANCH and self.one.condition:
                assume(self.state, _OPPOSITE[self.one.condition])
            at += self.one.length
        return 0

    def enter_member(self, member: cython.Py_ssize_t) -> cython.int:
        """Go on in another range of the unit."""
        number: cython.longlong = self.unit.members[self.unit.first + member]
        self.member = member
        self.number = number
        self.code_at = self.unit.pos[number] - self.unit.base[member]
        self.address_at = self.unit.start[number] - cython.cast(cython.ulonglong, self.unit.base[member])
        self.row_begin = self.row_end = 0
        return 0

    def judge(self, place: cython.longlong) -> cython.int:
        """What is to be said of the table's claims at a place."""
        offset: cython.longlong = place - self.unit.base[self.member]
        if self.block[self.number]:
            offset %= self.block[self.number]
        if offset < self.row_begin or offset >= self.row_end:
            self.find_row(offset)
        if self.row_set < 0:
            self.claims.verdict = Verdict.UNKNOWN
            self.claims.why = Why.NO_RULE
            self.judged = -1
        elif self.row_set != self.judged or self.state.changed:
            self.claims.judge(self.state, self.row_set)
            self.judged = self.row_set
            self.state.changed = False
        return self.claims.verdict

    def find_row(self, offset: cython.longlong) -> cython.int:
        """The row that holds at an offset, and from where to where."""
        with cython.boundscheck(False):
            first: cython.longlong = self.first_row[self.number]
            low: cython.longlong = first
            high: cython.longlong = first + self.rows[self.number]
            end: cython.longlong = high
            while low < high:
                middle: cython.longlong = (low + high) // 2
                if self.row_offset[middle] <= offset:
                    low = middle + 1
                else:
                    high = middle
            self.row_set = self.row_claims[low - 1] if low > first else -1
            self.row_begin = self.row_offset[low - 1] if low > first else 0
            self.row_end = self.row_offset[low] if low < end else 0x7FFFFFFFFFFFFFF
        return 0

    def record(self, place: cython.longlong) -> cython.int:
        """Judge, and keep the verdict."""
        verdict: cython.int = self.judge(place)
        if self.assumed:
            if verdict == Verdict.PROVED:
                verdict = Verdict.ASSUMED
            elif verdict == Verdict.WRONG:
                verdict = Verdict.UNKNOWN
                self.claims.why = Why.ASSUMPTION
                self.judged = -1
        with cython.boundscheck(False):
            self.unit.verdict[place] = cython.cast(cython.uchar, verdict)
            self.unit.what[place] = cython.cast(
                cython.uchar, self.claims.why if verdict == Verdict.UNKNOWN else self.claims.what
            )
        return 0

    def step(self, address: cython.ulonglong) -> cython.bint:
        """Let an instruction happen; returns whether control can go on behind it."""
        flow: cython.int = self.one.flow
        if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
            return self.call(address)
        if flow == Flow.JUMP_INDIRECT:
            self.jump()
            return self.is_stub[self.number] != 0  # one that is not bound yet jumps to what is behind its jump
        if self.one.effect or self.one.clobbers:
            apply(self.state, self.one, address)
        if flow == Flow.NEXT:
            if self.one.target:
                self.execute()
            return True
        if flow == Flow.JUMP:
            self.flow_to(self.one.target)
            return False
        if flow == Flow.BRANCH:
            return self.branch()
        return False

    def execute(self) -> cython.int:
        """The instruction that `exrl` executes is a pattern: control never comes to it."""
        place: cython.longlong = self.unit.place_of(self.one.target)
        if place >= 0 and not self.unit.owner[place]:
            self.unit.length[place] = _PATTERN
        return 0

    def branch(self) -> cython.bint:
        """Go both ways, each with what the condition says of it; returns whether the second can be."""
        condition: cython.int = self.one.condition
        if not condition or not self.state.compared:
            self.flow_to(self.one.target)
            return True
        value: cython.longlong = self.state.values[self.state.sp]
        register: cython.int = self.state.bound_register
        bound: cython.longlong = self.state.bound
        if assume(self.state, condition):
            self.flow_to(self.one.target)
        if self.state.values[self.state.sp] != value:
            self.state.set(self.state.sp, value)
        self.state.bound_register = register
        self.state.bound = bound
        return assume(self.state, _OPPOSITE[condition])

    def flow_to(self, address: cython.ulonglong) -> cython.int:
        """Let the state flow to an address; one outside of the unit is another function, or nothing."""
        place: cython.longlong = self.unit.place_of(address)
        if place >= 0:
            return self.unit.flow(self.state, place, self.source, self.assumed)
        return 0

    def call(self, address: cython.ulonglong) -> cython.bint:
        """A call: to where exceptions go on, and back if it comes back."""
        is_direct: cython.bint = self.one.flow == Flow.CALL
        if is_direct and self.one.target == address + self.one.length and self.code.machine == 0:
            # This is how code finds out where it is.
            self.state.set(self.state.sp, moved(self.state.get(self.state.sp), -8))
            self.state.store(self.state.get(self.state.sp), 8, Known.OTHER)
            return True
        changed: cython.ulonglong = _ALL
        self.doubt = True
        if is_direct:
            changed = self.code.changed_by(self.one.target)
            self.doubt = not self.code.ok
        if self.one.clobbers:
            self.state.clobber(self.one.clobbers)
        self.state.call(changed)
        self.catch(address)
        return not is_direct or not self.code.is_silent(self.one.target)

    def catch(self, address: cython.ulonglong) -> cython.int:
        """Where an exception that comes out of a call goes on."""
        low: cython.longlong = self.pad_first[self.number]
        end: cython.longlong = self.pad_first[self.number + 1]
        place: cython.longlong
        value: cython.longlong
        if low == end:
            return 0
        with cython.boundscheck(False):
            while end - low > 1:
                middle: cython.longlong = (low + end) // 2
                if self.pads[middle, 0] <= address:
                    low = middle
                else:
                    end = middle
            if address < self.pads[low, 0] or address >= self.pads[low, 1]:
                return 0
            place = self.unit.place_of(self.pads[low, 2])
            if place < 0:
                return 0
            value = self.state.values[self.state.sp]
            self.take_arguments(place)
            self.unit.flow(self.state, place, self.source, self.assumed)
            self.state.set(self.state.sp, value)
        return 0

    def take_arguments(self, place: cython.longlong) -> cython.int:
        """An exception takes the arguments of the call off the stack; how many the compiler has said elsewhere."""
        value: cython.longlong = self.state.get(self.state.sp)
        member: cython.Py_ssize_t = self.member
        if value & KIND_MASK != Known.CFA or place < self.unit.base[member] or place >= self.unit.base[member + 1]:
            return 0
        if self.judge(place) == Verdict.WRONG:
            wanted: cython.longlong = self.claims.stack_pointer(self.row_set)
            if 0 < (wanted >> OFFSET_SHIFT) - (value >> OFFSET_SHIFT) <= _POPPED and wanted & KIND_MASK == Known.CFA:
                self.state.set(self.state.sp, wanted)
        self.row_begin = self.row_end = 0
        self.judged = -1
        return 0

    def jump(self) -> cython.int:
        """A jump to an address in a register or in memory: through a table, into another function, or somewhere."""
        value: cython.longlong
        if self.one.effect == Effect.ADD_REGISTERS:
            value = added(self.state, self.one)
        else:
            value = self.state.get(self.one.first) if self.one.first >= 0 else table_entry(self.state, self.one)
        kind: cython.int = value & KIND_MASK
        if kind == Known.CONSTANT:
            return self.flow_to(cython.cast(cython.ulonglong, value >> OFFSET_SHIFT))
        if kind == Known.ENTRY_OF_TABLE or kind == Known.PLACE_OF_TABLE:
            if self.follow_table((value >> ID_SHIFT) & ID_MASK, kind == Known.PLACE_OF_TABLE):
                return 0
            self.unresolved = True
        elif self.one.index >= 0 or self.state.get(self.state.sp) != made(Known.CFA, 0, -self.state.entry_offset):
            self.unresolved = True
        return 0

    def follow_table(self, number: cython.int, is_relative: cython.bint) -> cython.bint:
        """Go to where the entries of a table lead; returns whether there was one."""
        address: cython.ulonglong = cython.cast(cython.ulonglong, self.state.tables[number, 0])
        width: cython.int = cython.cast(cython.int, abs(self.state.tables[number, 1]))
        limit: cython.longlong = self.state.tables[number, 2]
        counted: cython.bint = 0 < limit <= _ENTRIES
        limit = min(limit if counted else _ENTRIES, self.code.room(address) // width)
        # Code that was not optimized loads the entry without its sign, and extends it afterwards.
        signed: cython.bint = self.state.tables[number, 1] < 0 or (is_relative and width == 4)
        entry: cython.longlong
        place: cython.longlong
        i: cython.longlong = 0
        while i < limit:
            entry = self.code.read(address + i * width, width, signed)
            if not self.code.ok:
                break
            if is_relative:
                entry = entry * self.state.tables[number, 4] + self.state.tables[number, 3]
            place = self.unit.place_of(cython.cast(cython.ulonglong, entry))
            if place < 0:
                if not counted:
                    break
            elif not counted and not self.can_begin(place):
                break
            else:
                self.unit.flow(self.state, place, self.source, self.assumed)
            i += 1
        return i > 0

    def can_begin(self, place: cython.longlong) -> cython.bint:
        """Whether an instruction begins at a place if the code is read from one end to the other."""
        if not self.swept:
            self.sweep()
            self.swept = True
        with cython.boundscheck(False):
            return self.unit.begins[place] != 0

    def sweep(self) -> cython.int:
        """Mark where instructions begin."""
        i: cython.Py_ssize_t
        number: cython.longlong
        place: cython.longlong
        pos: cython.longlong
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.unit.total)):
                self.unit.begins[i] = 0
            for i in range(self.unit.count):
                number = self.unit.members[self.unit.first + i]
                place = self.unit.base[i]
                pos = self.unit.pos[number] - place
                while place < self.unit.base[i + 1]:
                    self.unit.begins[place] = 1
                    decode(self.code.machine, self.code.data, pos + place, pos + self.unit.base[i + 1], 0, self.other)
                    place += self.other.length
        return 0

    def put_off(self, place: cython.longlong) -> cython.int:
        """A call may come back to a place where its state does not fit: decide when all else is walked."""
        if self.doubts == self.doubtful.shape[0]:
            self.more_doubts()
        self.doubtful[self.doubts, 0] = place
        self.doubtful[self.doubts, 1] = self.unit.keep(self.state)
        self.doubtful[self.doubts, 2] = self.source
        self.doubts += 1
        return 0

    def decide_doubts(self) -> cython.int:
        """A call comes back if nothing else leads to the place behind it."""
        i: cython.Py_ssize_t
        place: cython.longlong
        if self.unresolved:
            return 0
        for i in range(self.doubts):
            place = self.doubtful[i, 0]
            if self.unit.owner[place]:
                continue
            self.state.read(self.unit.arena, cython.cast(cython.Py_ssize_t, self.doubtful[i, 1]))
            self.unit.flow(self.state, place, self.doubtful[i, 2], False)
        return 0

    def fill_gaps(self) -> cython.bint:
        """Walk the code that nothing leads to, as if the table were right where each piece of it begins."""
        i: cython.Py_ssize_t
        place: cython.longlong
        size: cython.int
        for i in range(self.unit.count):
            self.enter_member(i)
            place = self.unit.base[i]
            while place < self.unit.base[i + 1]:
                if self.unit.owner[place] or self.unit.length[place]:
                    place += max(self.unit.length[place], 1)
                    continue
                size = self.code.padding(self.code_at + place, self.code_at + self.unit.base[i + 1])
                if size == 0 and self.assume_row(place):
                    if not self.settle():
                        return False
                    size = max(self.unit.length[place], 1)
                    self.enter_member(i)
                place += size if size else 1
        return True

    def assume_row(self, place: cython.longlong) -> cython.bint:
        """Let the row of a place be right there, and walk on from it."""
        self.find_row_of(place)
        if self.row_set < 0 or not self.claims.suppose(self.state, self.row_set):
            return False
        self.unit.flow(self.state, place, -1, True)
        return True

    def find_row_of(self, place: cython.longlong) -> cython.int:
        """The row that holds at a place of the range where the walk is."""
        offset: cython.longlong = place - self.unit.base[self.member]
        if self.block[self.number]:
            offset %= self.block[self.number]
        return self.find_row(offset)
