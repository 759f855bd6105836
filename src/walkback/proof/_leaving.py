"""How control leaves the ranges of a unit: tables that are made from code need it (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.code.effects import Condition, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64
    from cython.cimports.walkback.proof._walk import Walk
    from cython.cimports.walkback.proof.packed import is_on_stack, made
    from cython.cimports.walkback.proof.shown import is_as_entered, is_passed, loses
    from cython.cimports.walkback.proof.stored import HEAD
    from cython.cimports.walkback.proof.values import KIND_MASK, OFFSET_SHIFT, Known, Seen
else:
    from walkback.code.effects import Condition, Flow
    from walkback.code.machines import AARCH64, AMD64
    from walkback.proof._walk import Walk
    from walkback.proof.packed import is_on_stack, made
    from walkback.proof.shown import is_as_entered, is_passed, loses
    from walkback.proof.stored import HEAD
    from walkback.proof.values import KIND_MASK, OFFSET_SHIFT, Known, Seen

_RETURN = cython.declare(cython.int, 0xC3)
_RETURN_AND_POP = cython.declare(cython.int, 0xC2)
"""Opcodes of AMD64."""
_LONGEST_WAY = cython.declare(cython.int, 1 << 12)
"""Blocks."""


@cython.final
@cython.cclass
class Leaving:
    """What is noted of all ranges: bits of `Seen`, and tails as `Found` has them."""

    def __init__(self, walk: Walk, seen, tails):
        self.edges, self.one = walk.edges, walk.edges.one
        self.state, self.unit, self.code = walk.state, walk.unit, walk.code
        self.is_entry = walk.is_entry
        self.seen, self.tails = memoryview(seen), tails

    def note(self, block: cython.Py_ssize_t) -> cython.int:
        """Note how control leaves at an instruction that does not just go on: of the range whose entry led there."""
        flow: cython.int = self.one.flow
        root: cython.Py_ssize_t = self.root(block)
        stack: cython.longlong = self.state.values[self.state.sp]
        value: cython.longlong = self.state.get(self.one.first) if self.one.first >= 0 else 0
        if flow == Flow.JUMP_INDIRECT and value & KIND_MASK == Known.CONSTANT:
            flow = Flow.JUMP
            self.one.target = cython.cast(cython.ulonglong, value >> OFFSET_SHIFT)
        jumps: cython.bint = flow == Flow.JUMP or flow == Flow.BRANCH
        if flow == Flow.JUMP_INDIRECT:
            if self.one.first >= 0 and value == self.state.return_address:
                taken: cython.longlong = 8 if self.code.machine == AMD64 else 0  # from the stack, into the register
                return self.note_return(stack == made(Known.CFA, 0, taken - self.state.entry_offset), root)
            # With less on the stack than a call leaves there it was entered with more.
            if stack & KIND_MASK == Known.CFA and stack >> OFFSET_SHIFT > -self.state.entry_offset:
                self.seen[root] |= Seen.ASTRAY
            elif stack & KIND_MASK == Known.STACK and is_passed(self.state, self.state.fp):
                # Its frame is gone, and it goes on with another function's, as for exceptions.
                self.seen[root] |= Seen.ASTRAY
            elif is_as_entered(self.state, self.code.machine):
                self.seen[root] |= Seen.JUMPS | (Seen.LOSES if loses(self.state) else 0)
            elif self.unit.unresolved and not self.is_by_table(value & KIND_MASK):
                self.seen[root] |= Seen.LEADS
            return 0
        if flow != Flow.RETURN and not jumps:
            return 0
        at_entry: cython.bint = is_as_entered(self.state, self.code.machine)
        place: cython.longlong = self.unit.place_of(self.one.target) if jumps else -1
        if place >= 0 and not self.differs(place, block):
            member: cython.Py_ssize_t = self.unit.member_of(place)
            is_part: cython.bint = self.is_entry[self.unit.members[self.unit.first + member]] == 0
            if (member != self.unit.member or is_part) and not self.is_out():
                self.tails.add(root, self.one.target, at_entry)
            if at_entry:
                self.note_joining(root, self.unit.owner[place] - 1)
            return 0
        if flow == Flow.RETURN:
            usual: cython.bint = self.code.machine == AARCH64 or self.is_usual_return()
            self.note_return(usual and self.edges.returns_to_caller(), root)
        elif not at_entry or place >= 0:
            self.seen[root] |= Seen.ASTRAY
        elif not self.is_out():
            self.tails.add(root, self.one.target, 1)
        return 0

    def is_by_table(self, kind: cython.int) -> cython.bint:
        """Whether a jump to a value of some kind is that of a `switch`, even if the end of its table is not known."""
        return self.one.index >= 0 or kind == Known.ENTRY_OF_TABLE or kind == Known.PLACE_OF_TABLE

    def is_out(self) -> cython.bint:
        """Whether a branch is taken with an index that is out of its bounds."""
        condition: cython.int = self.one.condition
        return self.one.flow == Flow.BRANCH and (condition == Condition.ABOVE or condition == Condition.ABOVE_EQUAL)

    def note_joining(self, root: cython.Py_ssize_t, block: cython.Py_ssize_t) -> cython.int:
        """Control goes on where another range led first, in the state of its entry, as if it jumped to that."""
        other: cython.Py_ssize_t = self.root(block)
        if other != root:
            self.tails.add(root, self.unit.start[other], 1)
        return 0

    def note_return(self, is_right: cython.bint, root: cython.Py_ssize_t) -> cython.int:
        """Note a return of the range whose entry led there, and whether it is one that its caller expects."""
        if is_right:
            self.seen[root] |= Seen.RETURNS
            return 0
        self.seen[root] |= Seen.ASTRAY
        if is_on_stack(self.state.values[self.state.sp] & KIND_MASK):
            self.seen[root] |= Seen.MOVES
        return 0

    def is_usual_return(self) -> cython.bint:
        """Whether it is a return of functions: none of handlers, and none that takes arguments off the stack."""
        end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.edges.pos) + self.one.length
        if self.code.machine != AMD64:
            return self.one.first >= 0  # else it loads a program status word
        if self.one.length >= 3 and self.code.data[end - 3] == _RETURN_AND_POP:
            return self.code.data[end - 2] | self.code.data[end - 1] == 0
        return self.code.data[end - 1] == _RETURN

    def differs(self, place: cython.longlong, here: cython.Py_ssize_t) -> cython.bint:
        """Whether the stack pointer is surely another one than on the ways that led to a place.

        A function with a frame pointer may have more on the stack on one of two ways.
        """
        block: cython.Py_ssize_t = self.unit.head[place] - 1
        if block < 0:
            return False
        if self.state.values[self.state.fp] & KIND_MASK == Known.CFA and self.root(block) == self.root(here):
            return False
        at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.unit.block_state[block])
        there: cython.longlong = self.unit.arena[at + HEAD + self.state.sp]
        stack: cython.longlong = self.state.values[self.state.sp]
        return there != stack and there & KIND_MASK == Known.CFA and stack & KIND_MASK == Known.CFA

    def root(self, block: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The range from whose beginning control came to a block for the first time."""
        i: cython.int
        if self.unit.count == 1:
            return cython.cast(cython.Py_ssize_t, self.unit.members[self.unit.first])
        source: cython.longlong = self.unit.block_source[block]
        for i in range(_LONGEST_WAY):
            if source < 0:
                break
            block = self.unit.owner[source] - 1
            source = self.unit.block_source[block]
        return cython.cast(
            cython.Py_ssize_t, self.unit.members[self.unit.first + self.unit.member_of(self.unit.block_place[block])]
        )
