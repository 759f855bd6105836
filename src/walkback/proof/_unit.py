"""The memory of a walk: a unit's bytes, and the blocks that its code is cut into where ways meet (compiled).

A unit is a range of the table, or several that jump into each other. Its bytes are numbered through all its ranges:
such a number is a *place*. The walk is in one of the ranges, with a state that comes from a source.
"""

import cython
import numpy as np

from walkback.base.arrays import longer

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.proof.stored import HEAD, join, read, size, write
    from cython.cimports.walkback.proof.values import SLOTS, Trust, Verdict, Why
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import last
    from walkback.proof.stored import HEAD, join, read, size, write
    from walkback.proof.values import SLOTS, Trust, Verdict, Why

_LARGEST = cython.declare(cython.longlong, 1 << 22)
"""Bytes of a unit; larger ones are not walked."""
_ARENA = cython.declare(cython.Py_ssize_t, 1 << 24)
"""Words of the states of a unit; with more it has too many ways."""
_MOST_SLOTS = cython.declare(cython.Py_ssize_t, 1 + 2 * SLOTS)


def _doubled(numbers):
    """An array with as much room again."""
    return memoryview(longer(np.asarray(numbers), 2 * len(numbers)))


@cython.final
@cython.cclass
class Unit:
    """One after the other."""

    def __init__(self, state, ranges, members, free=False):
        self.state, self.free = state, free
        self.start = memoryview(ranges.start)
        self.size = memoryview(ranges.size)
        self.pos = memoryview(ranges.pos)
        self.members = memoryview(members)
        self.block_place, self.block_state, self.block_end, self.block_source, self.block_waits, self.block_assumed = (
            memoryview(np.zeros(256, np.int64)) for _ in range(6)
        )
        self.block_trust = memoryview(np.zeros(256, np.int64))
        self.queue = memoryview(np.zeros(256, np.int32))
        self.arena = memoryview(np.zeros(1 << 14, np.int64))
        self.address = memoryview(np.zeros(16, np.uint64))
        self.base = memoryview(np.zeros(17, np.int64))
        self.switched = memoryview(np.zeros(16, np.uint8))
        self.doubts = Growing(5)
        self.block_count = 0
        self.room(1 << 12)

    def room(self, size: cython.Py_ssize_t) -> cython.int:
        """Make room for the bytes of a unit."""
        with cython.gil:
            self.head = memoryview(np.zeros(size, np.int32))
            self.owner = memoryview(np.zeros(size, np.int32))
            self.length = memoryview(np.zeros(size, np.uint8))
            self.verdict = memoryview(np.zeros(size, np.uint8))
            self.what = memoryview(np.zeros(size, np.uint8))
            self.first_verdict = memoryview(np.zeros(size, np.uint8))
            self.first_what = memoryview(np.zeros(size, np.uint8))
            self.first_assumed = memoryview(np.zeros(size, np.uint8))
        return 0

    def room_for_members(self) -> cython.int:
        """Make room for the ranges of this unit."""
        with cython.gil:
            self.address = memoryview(np.zeros(2 * self.count, np.uint64))
            self.base = memoryview(np.zeros(2 * self.count + 1, np.int64))
            self.switched = memoryview(np.zeros(2 * self.count, np.uint8))
        return 0

    def more_blocks(self) -> cython.int:
        """Make room for more blocks."""
        with cython.gil:
            self.block_place = _doubled(self.block_place)
            self.block_state = _doubled(self.block_state)
            self.block_end = _doubled(self.block_end)
            self.block_source = _doubled(self.block_source)
            self.block_waits = _doubled(self.block_waits)
            self.block_assumed = _doubled(self.block_assumed)
            self.block_trust = _doubled(self.block_trust)
            self.queue = _doubled(self.queue)
        return 0

    def more_arena(self) -> cython.int:
        """Make room for more states."""
        with cython.gil:
            self.arena = _doubled(self.arena)
        return 0

    def open(self, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Begin with the ranges from `first` to `end` of `members`; returns False if they are too large."""
        i: cython.Py_ssize_t
        total: cython.longlong = 0
        self.first = first
        self.count = end - first
        with cython.boundscheck(False):
            for i in range(self.block_count):
                self.head[self.block_place[i]] = 0
        self.block_count = self.queued = self.arena_used = 0
        self.is_full = self.takes_all = False
        self.total = 0
        self.source = -1
        self.assumed = self.unresolved = self.led_away = self.is_bad = False
        self.trust = 0
        if self.base.shape[0] <= self.count:
            self.room_for_members()
        for i in range(self.count):
            self.address[i] = self.start[self.members[first + i]]
            self.switched[i] = 0
            self.base[i] = total
            total += self.size[self.members[first + i]]
            if total > _LARGEST:
                return False
        self.base[self.count] = total
        self.total = total
        if self.head.shape[0] < total:
            self.room(cython.cast(cython.Py_ssize_t, total + total // 4))
        owner: cython.int[::1] = self.owner
        length: cython.uchar[::1] = self.length
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, total)):
                owner[i] = 0
            for i in range(cython.cast(cython.Py_ssize_t, total)):
                length[i] = 0
        return True

    def member_of(self, place: cython.longlong) -> cython.Py_ssize_t:
        """Which of the unit's ranges a place is in."""
        low: cython.Py_ssize_t = 0
        high: cython.Py_ssize_t = self.count
        with cython.boundscheck(False):
            while high - low > 1:
                middle: cython.Py_ssize_t = (low + high) // 2
                if self.base[middle] <= place:
                    low = middle
                else:
                    high = middle
        return low

    def place_of(self, address: cython.ulonglong) -> cython.longlong:
        """The place of an address; -1 outside of the unit."""
        member: cython.Py_ssize_t = last(self.address, self.count, address)
        with cython.boundscheck(False):
            if member < 0 or address - self.address[member] >= cython.cast(
                cython.ulonglong, self.base[member + 1] - self.base[member]
            ):
                return -1
            return self.base[member] + cython.cast(cython.longlong, address - self.address[member])

    def is_described(self, address: cython.ulonglong) -> cython.bint:
        """Whether an address is in a range of the table."""
        number: cython.Py_ssize_t = last(self.start, self.start.shape[0], address)
        with cython.boundscheck(False):
            return number >= 0 and address - self.start[number] < cython.cast(cython.ulonglong, self.size[number])

    def address_of(self, place: cython.longlong) -> cython.ulonglong:
        """The address of a place."""
        member: cython.Py_ssize_t = self.member_of(place)
        return self.address[member] + cython.cast(cython.ulonglong, place - self.base[member])

    def enter(self, place: cython.longlong) -> cython.int:
        """Let the walk be in the range of a place."""
        self.member = self.member_of(place)
        self.number = cython.cast(cython.Py_ssize_t, self.members[self.first + self.member])
        self.begin = self.base[self.member]
        self.end = self.base[self.member + 1]
        self.code_at = self.pos[self.number] - self.begin
        return 0

    def keep(self) -> cython.Py_ssize_t:
        """Store the state; returns where. If there is no room it is not stored, and some other is there."""
        at: cython.Py_ssize_t = self.arena_used
        if not self.has_room(size(self.state)):
            return 0
        self.arena_used = write(self.state, self.arena, at)
        return at

    def has_room(self, words: cython.Py_ssize_t) -> cython.bint:
        """Make room for some words; without it the unit is full."""
        if self.arena_used + words > _ARENA:
            self.is_full = True
            return False
        while self.arena_used + words > self.arena.shape[0]:
            self.more_arena()
        return True

    def enqueue(self, block: cython.Py_ssize_t) -> cython.int:
        """Let a block be walked, again if need be. The queue is a heap: the first block in the code comes first."""
        with cython.boundscheck(False):
            if self.block_waits[block]:
                return 0
            self.block_waits[block] = 1
            at: cython.Py_ssize_t = self.queued
            self.queued += 1
            while at:
                parent: cython.Py_ssize_t = (at - 1) // 2
                other: cython.int = self.queue[parent]
                if self.block_place[other] <= self.block_place[block]:
                    break
                self.queue[at] = other
                at = parent
            self.queue[at] = cython.cast(cython.int, block)
        return 0

    def next(self) -> cython.Py_ssize_t:
        """The block to walk next; -1 if none waits."""
        if not self.queued:
            return -1
        with cython.boundscheck(False):
            block: cython.Py_ssize_t = self.queue[0]
            self.queued -= 1
            moved: cython.int = self.queue[self.queued]
            at: cython.Py_ssize_t = 0
            while 2 * at + 1 < self.queued:
                child: cython.Py_ssize_t = 2 * at + 1
                if child + 1 < self.queued:
                    if self.block_place[self.queue[child + 1]] < self.block_place[self.queue[child]]:
                        child += 1
                if self.block_place[moved] <= self.block_place[self.queue[child]]:
                    break
                self.queue[at] = self.queue[child]
                at = child
            self.queue[at] = moved
            self.block_waits[block] = 0
        return block

    def start_block(self, place: cython.longlong) -> cython.Py_ssize_t:
        """Let a block begin at a place; it is not put into the queue."""
        block: cython.Py_ssize_t = self.block_count
        if block == self.block_place.shape[0]:
            self.more_blocks()
        self.block_count += 1
        with cython.boundscheck(False):
            self.block_place[block] = place
            self.block_end[block] = self.total
            self.block_waits[block] = 0
            self.renew(block)
            self.head[place] = cython.cast(cython.int, block + 1)
            other: cython.Py_ssize_t = self.owner[place] - 1
            if self.is_inside(place, other):
                # It was part of a block, which ends here from now on.
                self.block_end[other] = place
                self.enqueue(other)
        return block

    def renew(self, block: cython.Py_ssize_t) -> cython.int:
        """Let a block begin with the state as it is."""
        self.block_state[block] = self.keep()
        self.block_source[block] = self.source
        self.block_assumed[block] = self.assumed
        self.block_trust[block] = self.trust
        return 0

    def flow(self, place: cython.longlong) -> cython.int:
        """Come to a place with the state: a new block begins there, or the one that does knows less from now on."""
        block: cython.Py_ssize_t = self.head[place] - 1
        if block < 0:
            self.enqueue(self.start_block(place))
        elif self.block_assumed[block] and not self.assumed:
            # What is known goes before what was assumed.
            self.renew(block)
            self.enqueue(block)
        elif self.assumed and not self.block_assumed[block] and not self.takes_all:
            self.doubts.add(place, self.keep(), self.source + 1, Trust.LEAST)  # what was assumed is no surer
        else:
            if self.join(cython.cast(cython.Py_ssize_t, self.block_state[block])):
                self.enqueue(block)
            if self.trust < self.block_trust[block]:
                self.block_trust[block] = self.trust
                self.enqueue(block)
        return 0

    def join(self, at: cython.Py_ssize_t) -> cython.bint:
        """Keep of a stored state what the state agrees with; returns whether that changed it."""
        room: cython.Py_ssize_t = self.arena_used
        if not self.has_room(_MOST_SLOTS) or not join(self.state, self.arena, at, room):
            return False
        if self.arena[at] == room:
            self.arena_used += 1 + 2 * cython.cast(cython.Py_ssize_t, self.arena[room])
        return True

    def put_off(self, place: cython.longlong) -> cython.int:
        """A way that may not be one leads to a place where its state does not fit: decide when all else is walked."""
        if self.takes_all:
            return self.flow(place)
        return self.doubts.add(place, self.keep(), self.source + 1, self.trust, self.free and self.assumed)

    def bring(self, doubt: cython.Py_ssize_t) -> cython.int:
        """Let the state be that of a way that was put off."""
        return read(self.state, self.arena, cython.cast(cython.Py_ssize_t, self.doubts.numbers[doubt + 1]))

    def take(self, doubt: cython.Py_ssize_t) -> cython.int:
        """Go a way that was put off."""
        self.bring(doubt)
        self.assumed = self.doubts.numbers[doubt + 4] != 0
        owner: cython.Py_ssize_t = self.owner[self.doubts.numbers[doubt]] - 1
        if self.free and owner >= 0 and self.state.values[self.state.sp] != self.state.entry_stack():
            self.assumed = self.block_assumed[owner] != 0  # with a frame on the stack, as what led there
        self.trust = Trust.FULL
        self.source = cython.cast(cython.longlong, self.doubts.numbers[doubt + 2]) - 1
        return self.flow(self.doubts.numbers[doubt])

    def wrong_places(self) -> cython.longlong:
        """How many instructions are wrong."""
        i: cython.Py_ssize_t
        found: cython.longlong = 0
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.total)):
                found += self.owner[i] != 0 and self.verdict[i] == Verdict.WRONG
        return found

    def note_verdicts(self) -> cython.int:
        """Keep the verdicts while the unit is walked once more."""
        i: cython.Py_ssize_t
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.total)):
                self.first_verdict[i] = self.verdict[i] if self.owner[i] else Verdict.NOT_REACHED
                self.first_what[i] = self.what[i]
                self.first_assumed[i] = self.owner[i] != 0 and self.block_assumed[self.owner[i] - 1] != 0
        return 0

    def weigh_verdicts(self) -> cython.int:
        """What was proved, and is not any more, is assumed; all others are what they were.

        What nothing led to is assumed for a doubtful path if only such a path leads there.
        """
        i: cython.Py_ssize_t
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.total)):
                verdict: cython.int = self.first_verdict[i]
                why: cython.int = self.first_what[i]
                if verdict == Verdict.PROVED and self.verdict[i] != Verdict.PROVED:
                    verdict = Verdict.ASSUMED
                    why = Why.DOUBTFUL_PATH
                elif verdict == Verdict.ASSUMED and self.first_assumed[i]:
                    if not self.block_assumed[self.owner[i] - 1]:
                        why = Why.DOUBTFUL_PATH
                elif verdict == Verdict.NOT_REACHED:
                    self.owner[i] = 0
                self.verdict[i] = cython.cast(cython.uchar, verdict)
                self.what[i] = cython.cast(cython.uchar, why)
        return 0

    def doubt_assumed(self) -> cython.int:
        """A jump to an unknown place may be what leads to code that nothing else leads to."""
        i: cython.Py_ssize_t
        if not self.led_away:
            return 0
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.total)):
                if self.owner[i] and self.block_assumed[self.owner[i] - 1]:
                    if self.verdict[i] == Verdict.ASSUMED and self.what[i] == Why.NO_PATH:
                        self.verdict[i] = Verdict.UNKNOWN
                        self.what[i] = Why.INDIRECT_JUMP
        return 0

    def take_up(self, block: cython.Py_ssize_t) -> cython.int:
        """Let the walk be where a block begins, with its state."""
        read(self.state, self.arena, cython.cast(cython.Py_ssize_t, self.block_state[block]))
        self.assumed = self.block_assumed[block] != 0
        self.trust = cython.cast(cython.int, self.block_trust[block])
        self.enter(self.block_place[block])
        return 0

    def agrees(self, place: cython.longlong) -> cython.bint:
        """Whether the stack pointer is what it is on the ways that led to a place before, if there are any."""
        block: cython.Py_ssize_t = self.head[place] - 1
        if block < 0:
            return self.owner[place] == 0
        at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.block_state[block])
        return self.arena[at + HEAD + self.state.sp] == self.state.values[self.state.sp]

    def is_of_another(self, place: cython.longlong, block: cython.Py_ssize_t) -> cython.bint:
        """Whether a place that the walk of a block comes to is part of another one."""
        with cython.boundscheck(False):
            owner: cython.Py_ssize_t = self.owner[place] - 1
            return self.head[place] != 0 or (owner != block and self.is_inside(place, owner))

    def is_inside(self, place: cython.longlong, block: cython.Py_ssize_t) -> cython.bint:
        """Whether a place is within a block, behind its beginning; -1 is none."""
        with cython.boundscheck(False):
            return block >= 0 and self.block_place[block] < place < self.block_end[block]
