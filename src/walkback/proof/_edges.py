"""What an instruction does next: the state changes, and control goes on, branches, calls or returns (compiled)."""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.searching import holds
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Condition, Effect, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64, S390X
    from cython.cimports.walkback.proof._effects import added, apply, assume, table_entry
    from cython.cimports.walkback.proof._ways import Ways
    from cython.cimports.walkback.proof.packed import is_on_stack, is_vague, made, moved
    from cython.cimports.walkback.proof.shown import is_as_entered, loses
    from cython.cimports.walkback.proof.values import (
        AWAY,
        ID_MASK,
        ID_SHIFT,
        KEY_B,
        KIND_MASK,
        LEFT,
        OFFSET_SHIFT,
        Known,
        Trust,
    )
else:
    from walkback.base.searching import holds
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Condition, Effect, Flow
    from walkback.code.machines import AARCH64, AMD64, S390X
    from walkback.proof._effects import added, apply, assume, table_entry
    from walkback.proof._ways import Ways
    from walkback.proof.packed import is_on_stack, is_vague, made, moved
    from walkback.proof.shown import is_as_entered, loses
    from walkback.proof.values import AWAY, ID_MASK, ID_SHIFT, KEY_B, KIND_MASK, LEFT, OFFSET_SHIFT, Known, Trust

_ALL = cython.declare(cython.ulonglong, WORD)
_PATTERN = cython.declare(cython.uchar, 6)
"""Bytes of an instruction that `exrl` executes."""
if cython.compiled:
    _OPPOSITE = cython.declare(cython.const[cython.uchar][::1])
_OPPOSITE = memoryview(bytes([0, 2, 1, 6, 5, 4, 3]))
"""The `Condition` that holds where each does not."""
_SHORT = cython.declare(cython.longlong, 64)
"""Bytes of a function that is followed where it is called."""
_IN_MEMORY = cython.declare(cython.int, 0xD)
"""Where the first byte of an instruction of s390x begins so, its operands are in memory."""
_EVERY = cython.declare(cython.ulonglong, 0xFFFFFFFF)
"""Of s390x: the registers that `ex` may change."""
_DECIMAL = cython.declare(cython.int, 0xF)
"""And so, if they are decimal numbers."""
_ONE = cython.declare(cython.ulonglong, 1)
_PASSED = cython.declare(cython.int, 3)
"""AArch64: in which register functions of Go pass their return address where they ask for a larger stack."""
_PASSED_ON_S390X = cython.declare(cython.int, 5)
_RETURN = cython.declare(cython.int, 0xC3)


@cython.final
@cython.cclass
class Edges(Ways):
    """What the instruction does that was read last."""

    def __init__(self, code, state, unit, rows, ranges):
        Ways.__init__(self, code, state, unit, rows, ranges)
        self.one, self.other = Instruction(), Instruction()
        self.is_stub, self.is_target = memoryview(ranges.is_stub), memoryview(ranges.is_target)
        self.leaps, self.kept_below = memoryview(ranges.leaps), memoryview(ranges.kept_below)
        self.clear()

    def clear(self) -> cython.int:
        """Begin with another unit."""
        self.doubt = self.astray = False
        return Ways.clear(self)

    def read(self, place: cython.longlong) -> cython.int:
        """Read the instruction at a place of the range where the walk is; returns its `Flow`."""
        with cython.boundscheck(False):
            self.address = self.unit.address[self.unit.member] + cython.cast(cython.ulonglong, place - self.unit.begin)
        self.pos = self.unit.code_at + place
        decode(self.code.machine, self.code.bytes, self.pos, self.unit.code_at + self.unit.end, self.address, self.one)
        return self.one.flow

    def step(self) -> cython.bint:
        """Let the instruction happen; returns whether control can go on behind it."""
        flow: cython.int = self.one.flow
        if self.way_from.shape[0]:
            self.go_without_it()
        if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
            return self.call()
        if flow == Flow.JUMP_INDIRECT:
            self.jump()
            return self.is_stub[self.unit.number] != 0  # one that is not bound yet jumps to what is behind its jump
        if self.code.machine == S390X and self.one.clobbers == _EVERY and self.one.base >= 0:
            self.execute_at()
        if self.one.effect or self.one.clobbers:
            apply(self.state, self.one, self.address)
            if self.one.effect == Effect.COMPARE or self.one.effect == Effect.COMPARE_CONSTANT:
                self.state.compared_at = self.pos if flow == Flow.BRANCH else self.pos + self.one.length
            if self.state.changed:
                if self.rows.free and self.code.machine != AMD64:  # there functions use what is below
                    self.state.drop_below()
                self.point_below()
                place: cython.longlong = self.state.get(self.state.sp)
                kind: cython.int = place & KIND_MASK
                if not is_on_stack(kind) and not is_vague(kind):
                    self.unit.switched[self.unit.member] |= AWAY
                elif kind == Known.CFA and place >> OFFSET_SHIFT > self.state.highest:
                    # An epilogue that several functions jump to: it takes their frames off the stack.
                    if self.is_target[self.unit.number]:
                        self.unit.switched[self.unit.member] = AWAY | LEFT
        if flow == Flow.NEXT:
            if self.one.target and self.executes(self.one.target):
                self.state.clobber(_ALL)
            return True
        if flow == Flow.SYSTEM:
            self.unit.trust = max(self.unit.trust, Trust.SOME)
            return True
        if flow == Flow.BRANCH:
            goes_on: cython.bint = self.branch()
            if self.one.effect == Effect.COMPARE or self.one.effect == Effect.COMPARE_CONSTANT:
                self.state.compared = 0  # what compares and branches says nothing to later branches
            return goes_on
        if flow == Flow.JUMP:
            self.lead_to(self.one.target, self.unit.trust == Trust.FULL)
        elif flow == Flow.TRAP and self.code.is_wait(self.address):
            self.doubt = True
            self.unit.trust = max(self.unit.trust, Trust.SOME)
            return True
        else:
            if flow == Flow.RETURN:
                self.go_back()
            self.leave()
        return False

    def point_below(self) -> cython.int:
        """Where callers keep a word below their stacks, their frame pointers lead there, and may be computed anew."""
        kept: cython.longlong = self.kept_below[self.unit.number]
        fp: cython.int = self.state.fp
        if kept and self.state.get(fp) == made(Known.CFA, 0, -kept):
            self.state.set(fp, made(Known.ENTRY, fp, 0))
        return 0

    def go_back(self) -> cython.int:
        """A return, or a jump to another function: it goes astray if the return address is neither there nor anywhere.

        So does a function that was entered with more on the stack than the ABI says.
        """
        place: cython.longlong = self.state.get(self.state.sp)
        returns: cython.bint = self.one.flow == Flow.RETURN
        if self.code.machine == AMD64 and place & KIND_MASK == Known.CFA and place >> OFFSET_SHIFT != -8:
            if self.state.load(made(Known.CFA, 0, -8)) != self.state.return_address:
                self.astray = True
            elif place >> OFFSET_SHIFT > (-8 if returns else 0):
                self.astray = True
        if not self.rows.free and (returns or not loses(self.state)):
            self.note_leaving(False)
        return 0

    def returns_to_caller(self) -> cython.bint:
        """Whether a return goes to the return address, which on AArch64 may be elsewhere or have a signature."""
        if self.code.machine != AARCH64:
            return is_as_entered(self.state, self.code.machine)
        if self.state.values[self.state.sp] != self.state.entry_stack():
            return False
        if self.one.effect == Effect.AUTHENTICATE:
            signature: cython.longlong = KEY_B if self.one.signed else 0
            return self.state.values[self.state.ra] == made(Known.SIGNED, self.state.ra, signature)
        return self.state.get(self.one.first) == self.state.return_address

    def execute_at(self) -> cython.int:
        """What `ex` executes changes no register if it is a pattern at a known place that does not."""
        value: cython.longlong = self.state.get(self.one.base)
        if value & KIND_MASK == Known.CONSTANT:
            if not self.executes(cython.cast(cython.ulonglong, (value >> OFFSET_SHIFT) + self.one.offset) & _ALL):
                self.one.clobbers = 0
        return 0

    def executes(self, address: cython.ulonglong) -> cython.bint:
        """Whether the pattern that `ex` or `exrl` executes may change registers; control never comes to it.

        Unless its operands are both in memory it may: the register numbers are written over.
        """
        pos: cython.Py_ssize_t = self.code.place(address)
        first: cython.int = self.code.data[pos] >> 4 if pos >= 0 else 0
        place: cython.longlong = self.unit.place_of(address)
        if place >= 0 and not self.unit.owner[place]:
            self.unit.length[place] = _PATTERN
        return first != _IN_MEMORY and first != _DECIMAL

    def branch(self) -> cython.bint:
        """Go both ways, each with what the condition says of it; returns whether the second can be.

        An index may never be out of the bounds of its table.
        """
        condition: cython.int = self.one.condition
        self.unit.trust = Trust.FULL
        is_bound: cython.bint = self.state.compared == Effect.COMPARE_CONSTANT
        is_said: cython.bint = condition >= (Condition.ABOVE if is_bound else Condition.EQUAL)
        if not self.state.compared or not is_said or not self.is_compared():
            self.lead_to(self.one.target, True)
            return True
        is_out: cython.bint = is_bound and (condition == Condition.ABOVE or condition == Condition.ABOVE_EQUAL)
        is_in: cython.bint = is_bound and (condition == Condition.BELOW or condition == Condition.BELOW_EQUAL)
        end: cython.longlong = self.unit.code_at + self.unit.end
        is_out = is_out and self.code.jumps_by_table(self.pos + self.one.length, end)
        is_in = is_in and self.code.jumps_by_table(self.code.place_of_code(self.one.target), end)
        if is_bound and not is_out and not is_in:
            self.lead_to(self.one.target, True)
            return True
        value: cython.longlong = self.state.values[self.state.sp]
        register: cython.int = self.state.bound_register
        bound: cython.longlong = self.state.bound
        if assume(self.state, condition):
            self.lead_to(self.one.target, not is_out)
            self.unit.trust = Trust.FULL
        if is_in:
            self.unit.trust = Trust.SOME
        if self.state.values[self.state.sp] != value:
            self.state.set(self.state.sp, value)
        self.state.bound_register = register
        self.state.bound = bound
        return assume(self.state, _OPPOSITE[condition])

    def is_compared(self) -> cython.bint:
        """Whether this branch is for what was compared: neither flags nor registers changed since."""
        compared: cython.ulonglong = 0
        if self.state.compared_first >= 0:
            compared = _ONE << self.state.compared_first
        if self.state.compared == Effect.COMPARE and self.state.compared_second >= 0:
            compared |= _ONE << self.state.compared_second
        return self.code.keeps(self.state.compared_at, self.pos, compared)

    def call(self) -> cython.bint:
        """A call: to where exceptions go on, and back if it comes back."""
        is_direct: cython.bint = self.one.flow == Flow.CALL
        self.linked = self.overwritten = 0
        target: cython.longlong = self.state.get(self.one.first)
        if not is_direct and target & KIND_MASK == Known.CONSTANT:
            is_direct = True
            self.one.target = cython.cast(cython.ulonglong, target >> OFFSET_SHIFT)
        behind: cython.ulonglong = self.address + self.one.length
        if is_direct and self.code.calls_over(behind, self.one.target):
            # This is how code finds out where it is.
            self.state.set(self.state.sp, moved(self.state.get(self.state.sp), -8))
            self.state.store(self.state.get(self.state.sp), 8, Known.OTHER, False)
            if self.one.target == behind:
                return True
            self.lead_to(self.one.target, self.unit.trust == Trust.FULL)
            return False
        changed: cython.ulonglong = _ALL
        self.doubt = True
        self.linked = self.one.clobbers
        if is_direct:
            self.call_within(self.unit.place_of(self.one.target))
            self.code.look_up(self.one.target)
            changed = self.code.changed
            if changed == _ALL and self.state.moved_return():
                changed = self.code.reach(self.one.target)
        if changed != _ALL:
            self.linked |= changed & ~self.state.preserved
        elif not (is_direct and self.code.is_odd):
            self.overwritten = ~self.state.preserved
        if is_direct and self.code.is_again:
            self.linked = self.overwritten = 0  # whoever walks knows what these are passed
        if self.one.clobbers:
            self.state.clobber(self.one.clobbers)
        link: cython.longlong = self.state.get(self.state.ra)
        passed: cython.longlong = self.state.get(_PASSED_ON_S390X if self.code.machine == S390X else _PASSED)
        if not is_direct or not self.follow_call():
            self.state.call(changed, self.code.broken if is_direct else 0, is_direct and self.code.is_odd)
        if is_direct and self.code.is_beyond:
            self.go_beyond()
        if self.code.machine == S390X and self.one.clobbers == 1:
            # A call of `__fentry__`, with its return address in register 0, keeps the link register.
            self.state.set(self.state.ra, link)
        if is_direct and self.code.is_again and self.code.machine != AMD64:
            self.state.set(self.state.ra, passed)
        self.catch()
        if is_direct and not self.rows.free and self.surely_comes_back():
            self.doubt = False
        elif is_direct and self.code.is_seldom:
            self.unit.trust = Trust.LEAST
        else:
            self.unit.trust = max(self.unit.trust, Trust.SOME)
        if self.code.is_silent if is_direct else self.goes_through_silent_word():
            self.leave()
            return False
        if self.rows.free and self.code.is_pointed_to(behind):  # a function begins there, and the call does not return
            self.leave()
            return False
        return True

    def goes_through_silent_word(self) -> cython.bint:
        """Whether the call is of an address in memory at which that of a function is which does not come back."""
        if self.one.first >= 0 or self.one.base >= 0 or self.one.index >= 0:
            return False
        return holds(self.code.silent_words, cython.cast(cython.ulonglong, self.one.offset))

    def go_beyond(self) -> cython.int:
        """AMD64: a call before a function has done anything comes also behind the return that stands behind it."""
        behind: cython.longlong = self.pos + self.one.length
        is_return: cython.bint = behind < self.unit.code_at + self.unit.end and self.code.data[behind] == _RETURN
        begins: cython.bint = self.state.get(self.state.sp) == self.state.entry_stack()
        if self.code.machine == AMD64 and is_return and begins:
            self.lead_to(self.address + self.one.length + 1, self.unit.trust == Trust.FULL)
        return 0

    def surely_comes_back(self) -> cython.bint:
        """Whether a call of a function that can come back does so.

        Code is behind the call, and nothing jumps there: compilers leave none where a call does not return.
        """
        behind: cython.longlong = self.pos + self.one.length
        end: cython.longlong = self.unit.code_at + self.unit.end
        if behind >= end or self.leaps[self.unit.number] or self.code.targets[behind >> 3] >> (behind & 7) & 1:
            return False
        return self.code.filling(behind, end) == 0 and (self.code.comes_back or self.code.returns(self.one.target))

    def call_within(self, place: cython.longlong) -> cython.int:
        """A call of a place inside of a range comes there with its return address; it may be all that leads there."""
        if place < 0 or self.unit.base[self.unit.member_of(place)] == place:
            return 0
        value: cython.longlong = self.state.get(self.state.sp)
        trust: cython.int = self.unit.trust
        if self.code.machine == AMD64:
            self.state.set(self.state.sp, moved(value, -8))
        self.unit.trust = Trust.SOME if self.begins_thunk(place) else Trust.LEAST
        self.unit.put_off(place)
        self.unit.trust = trust
        return self.state.set(self.state.sp, value)

    def begins_thunk(self, place: cython.longlong) -> cython.bint:
        """Whether an inline thunk begins at a place of the unit, to which calls surely go: a call that only pushes."""
        address: cython.ulonglong = self.unit.address_of(place)
        pos: cython.Py_ssize_t = self.code.place_of_code(address)
        if pos < 0:
            return False
        end: cython.longlong = pos + self.unit.base[self.unit.member_of(place) + 1] - place
        decode(self.code.machine, self.code.bytes, pos, end, address, self.other)
        address += self.other.length
        target: cython.ulonglong = self.other.target
        return self.other.flow == Flow.CALL and target != address and self.code.calls_over(address, target)

    def follow_call(self) -> cython.bint:
        """Let what a short function without branches does happen, if this calls one; returns whether it does.

        LLVM outlines parts of prologues and epilogues for AArch64.
        """
        happens: cython.int
        at: cython.longlong
        size: cython.longlong = self.code.known_size
        if self.code.machine != AARCH64 or size == 0 or size > _SHORT:
            return False
        pos: cython.longlong = self.code.place_of_code(self.one.target)
        if pos < 0:
            return False
        for happens in range(2):
            at = 0
            self.other.flow = Flow.NEXT
            while at < size and self.other.flow == Flow.NEXT:
                decode(self.code.machine, self.code.bytes, pos + at, pos + size, self.one.target + at, self.other)
                if happens and self.other.flow == Flow.NEXT:
                    apply(self.state, self.other, self.one.target + at)
                at += self.other.length
            if self.other.flow != Flow.RETURN:
                return False
        self.state.compared = 0
        return True

    def jump(self) -> cython.int:
        """A jump to an address in a register or in memory: through a table, into another function, or somewhere."""
        value: cython.longlong
        if not self.rows.free and loses(self.state):
            self.note_leaving(True)
        if self.one.effect == Effect.ADD_REGISTERS:
            value = added(self.state, self.one)
        else:
            value = self.state.get(self.one.first) if self.one.first >= 0 else table_entry(self.state, self.one)
        kind: cython.int = value & KIND_MASK
        if kind == Known.CONSTANT:
            return self.lead_to(cython.cast(cython.ulonglong, value >> OFFSET_SHIFT), True)
        if kind == Known.ENTRY_OF_TABLE or kind == Known.PLACE_OF_TABLE:
            if self.follow_table((value >> ID_SHIFT) & ID_MASK, kind == Known.PLACE_OF_TABLE):
                return 0
            self.unit.unresolved = True
        elif self.one.index >= 0 or self.state.get(self.state.sp) != self.state.entry_stack():
            self.unit.unresolved = True
        if not self.is_stub[self.unit.number]:
            self.unit.led_away = True
        self.go_back()
        return self.leave()
