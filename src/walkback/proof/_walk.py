"""The walk through a unit (compiled).

First come the ways that control surely goes, then those to places that nothing else leads to, and the code that nothing
leads to at all. What is proved only without the ways that are left then is assumed.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.proof._blocks import Blocks
    from cython.cimports.walkback.proof.values import AWAY, LEFT, UNCALLED, WALKED, Trust, Verdict, Why
else:
    from walkback.base.searching import last
    from walkback.proof._blocks import Blocks
    from walkback.proof.values import AWAY, LEFT, UNCALLED, WALKED, Trust, Verdict, Why


@cython.final
@cython.cclass
class Walk(Blocks):
    """Through one unit after the other."""

    def __init__(self, code, claims, state, ranges, members, chain=-1, free=False):
        Blocks.__init__(self, code, claims, state, ranges, members, chain, free)
        self.block = memoryview(ranges.block)
        self.is_stub = memoryview(ranges.is_stub)
        self.is_likely = memoryview(ranges.is_likely)
        self.is_unprovable = memoryview(ranges.is_unprovable)
        self.stubs = memoryview(ranges.stubs)

    def led_to(self):
        """The addresses that control goes to with a frame on the stack, outside of the units."""
        return self.edges.framed.rows().ravel()

    def by_tables(self):
        """How tables of jumps lead out of the units: rows of a range, an address, and a `Way`."""
        return self.edges.by_tables.rows()

    def run(self, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Walk through a unit; returns False if it is too large or has too many ways."""
        if not self.follow(first, end):
            return False
        if self.rows.chain < 0:
            self.unit.doubt_assumed()
            if self.unit.doubts.used and not self.take_the_rest():
                return False
            self.unit.doubt_assumed()
        return True

    def follow(self, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Walk the ways that control surely goes, and those that are the only ones to a place.

        Where that goes astray, or only goes on as handlers of interpreters do, a range that nothing calls may be
        entered with more on the stack, as its first row says. Then what is right about it is assumed. Of what goes on
        less must be wrong then: a first row may be wrong, too.
        """
        wrong: cython.longlong = 0
        self.otherwise = False
        done: cython.bint = self.walk_unit(first, end)
        goes_on: cython.bint = self.edges.goes_on and not self.edges.leaves_so
        if done and (self.edges.astray or goes_on) and not self.free and self.may_begin_otherwise():
            if not self.edges.astray:
                wrong = self.unit.wrong_places()
            self.otherwise = True
            done = self.walk_unit(first, end)
            if not done or self.edges.astray or (wrong and self.unit.wrong_places() >= wrong):
                self.otherwise = False
                done = self.walk_unit(first, end)
        return done

    def may_begin_otherwise(self) -> cython.bint:
        """Whether a range of this unit may be entered in another way than the ABI says."""
        i: cython.Py_ssize_t
        for i in range(self.unit.count):
            if self.is_entry[self.unit.members[self.unit.first + i]] == UNCALLED:
                return True
        return False

    def walk_unit(self, first: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
        """Walk through a unit once."""
        self.unit.doubts.clear()
        self.edges.clear()
        self.steps = 0
        self.decided = self.supposed = self.tried = 0
        self.asks = False
        self.state.begin()
        if not self.unit.open(first, end):
            return False
        self.state.leaps = self.free or self.edges.leaps[self.unit.members[first]]
        self.begin()
        if not self.settle():
            return False
        while self.decide_doubts():
            if not self.settle():
                return False
        if not (self.take_sure() if self.free else self.fill_gaps()):
            return False
        self.except_switches()
        return True

    def begin(self) -> cython.int:
        """Come to each entry as the ABI says, or as its first row does."""
        i: cython.Py_ssize_t
        for i in range(self.unit.count):
            number: cython.longlong = self.unit.members[self.unit.first + i]
            if self.is_stub[number]:
                self.begin_stubs(i)
            if self.is_entry[number]:
                place: cython.longlong = self.unit.base[i]
                while place < self.unit.base[i + 1]:
                    self.unit.enter(place)
                    if not (self.otherwise and self.is_entry[number] == UNCALLED and self.rows.suppose(place)):
                        self.state.enter()
                    if not (self.free and self.is_entry[number] == UNCALLED):
                        self.unit.flow(place)
                    # In a table of stubs each is an entry.
                    place += self.block[number] if self.block[number] else self.unit.size[number]
        if self.free:
            self.begin_at_last(True)
            self.begin_at_last(False)
        return 0

    def begin_at_last(self, is_likely: cython.bint) -> cython.int:
        """What nothing calls is an entry if nothing else leads there, and code is there; what is likely comes first."""
        i: cython.Py_ssize_t
        for i in range(self.unit.count):
            number: cython.longlong = self.unit.members[self.unit.first + i]
            if self.is_entry[number] != UNCALLED or (self.is_likely[number] != 0) != is_likely:
                continue
            self.unit.enter(self.unit.base[i])
            at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.unit.code_at + self.unit.base[i])
            if self.code.filling(at, cython.cast(cython.Py_ssize_t, self.unit.code_at + self.unit.end)):
                continue
            self.state.enter()
            self.unit.source = -1
            self.unit.trust = Trust.SUPPOSED
            self.unit.assumed = not is_likely
            self.unit.put_off(self.unit.base[i])
            self.unit.trust = Trust.FULL
            self.unit.assumed = False
        return 0

    def begin_stubs(self, member: cython.Py_ssize_t) -> cython.int:
        """Come to each entry of a procedure linkage table."""
        i: cython.Py_ssize_t = last(self.stubs, self.stubs.shape[0], self.unit.address[member])
        if i < 0 or self.stubs[i] < self.unit.address[member]:
            i += 1
        while i < self.stubs.shape[0]:
            place: cython.longlong = self.unit.place_of(self.stubs[i])
            if place < self.unit.base[member] or place >= self.unit.base[member + 1]:
                break
            self.state.enter()
            self.unit.flow(place)
            i += 1
        return 0

    def decide_doubts(self) -> cython.bint:
        """A way that was put off leads to a place if nothing else does; returns whether there were any to decide.

        In a walk without rules one is decided at a time, so that what it leads to comes before the next; and what is
        only supposed comes behind all others.
        """
        i: cython.Py_ssize_t = self.decided
        if i == self.unit.doubts.used or (self.unit.unresolved and not self.free):
            return self.free and self.suppose_entry()
        if not self.free and self.take_fitting():
            return True
        while i < self.unit.doubts.used:
            if self.unit.doubts.numbers[i + 3] < Trust.SUPPOSED and not self.unit.owner[self.unit.doubts.numbers[i]]:
                self.unit.take(i)
                self.unit.doubts.numbers[i + 3] = WALKED
                if self.free:
                    self.decided = i + self.unit.doubts.width
                    return True
            i += self.unit.doubts.width
        self.decided = i
        return True

    def take_fitting(self) -> cython.bint:
        """Go the ways that were put off though their states fit, before all others; returns whether there was one."""
        i: cython.Py_ssize_t = self.tried
        found: cython.bint = False
        while i < self.unit.doubts.used:
            place: cython.longlong = self.unit.doubts.numbers[i]
            if self.unit.doubts.numbers[i + 3] < Trust.SUPPOSED and not self.unit.owner[place]:
                self.unit.bring(i)
                if self.edges.fits(place):
                    self.unit.take(i)
                    self.unit.doubts.numbers[i + 3] = WALKED
                    found = True
            i += self.unit.doubts.width
        self.tried = i
        return found

    def suppose_entry(self) -> cython.bint:
        """Begin with a function that nothing leads to; returns whether there was one."""
        i: cython.Py_ssize_t = self.supposed
        while i < self.unit.doubts.used:
            if self.unit.doubts.numbers[i + 3] == Trust.SUPPOSED and not self.unit.owner[self.unit.doubts.numbers[i]]:
                self.unit.take(i)
                self.supposed = i + self.unit.doubts.width
                return True
            i += self.unit.doubts.width
        self.supposed = i
        return False

    def take_sure(self) -> cython.bint:
        """Go the ways that are sure, though they did not fit: what they lead to is reached in two states, and has none.

        What it was first reached by may be a call that does not come back.
        """
        i: cython.Py_ssize_t = 0
        while i < self.unit.doubts.used:
            if self.unit.doubts.numbers[i + 3] == Trust.FULL:
                self.unit.take(i)
                self.unit.doubts.numbers[i + 3] = WALKED
                if not self.settle():
                    return False
            i += self.unit.doubts.width
        return True

    def take_the_rest(self) -> cython.bint:
        """Walk once more, the ways too that were put off and not taken: what is proved only without them is assumed.

        Returns False if there are too many ways.
        """
        i: cython.Py_ssize_t = 0
        any_left: cython.bint = False
        while i < self.unit.doubts.used:
            if self.unit.doubts.numbers[i + 3] != WALKED:
                if not any_left:
                    self.unit.note_verdicts()
                    any_left = True
                self.unit.take(i)
            i += self.unit.doubts.width
        self.steps = 0
        self.unit.takes_all = True
        if not self.settle():
            return False
        if any_left:
            self.unit.weigh_verdicts()
        return True

    def fill_gaps(self) -> cython.bint:
        """Walk the code that nothing leads to, as if the table were right where each piece of it begins."""
        i: cython.Py_ssize_t
        for i in range(self.unit.count):
            place: cython.longlong = self.unit.base[i]
            self.unit.enter(place)
            while place < self.unit.base[i + 1]:
                size: cython.int = self.unit.length[place]
                if not size and not self.unit.owner[place]:
                    size = self.code.unused(self.unit.code_at + place, self.unit.code_at + self.unit.end)
                    if size == 0 and self.rows.suppose(place):
                        self.unit.source = -1
                        self.unit.assumed = True
                        self.unit.trust = Trust.FULL
                        self.unit.flow(place)
                        if not self.settle():
                            return False
                        size = self.unit.length[place]
                        self.unit.enter(place)
                place += max(size, 1)
        return True

    def except_switches(self) -> cython.int:
        """A function that goes on with another stack has the rules of another frame, which is not to be held wrong.

        One that comes back to its own stack before control leaves it does not. Nor is anything proved of a range whose
        code is not all that happens to its frame.
        """
        i: cython.Py_ssize_t
        for i in range(self.unit.count):
            switched: cython.bint = self.unit.switched[i] == AWAY | LEFT
            number: cython.longlong = self.unit.members[self.unit.first + i]
            unprovable: cython.bint = self.is_unprovable[number]
            otherwise: cython.bint = self.otherwise and self.is_entry[number] == UNCALLED
            if (switched or unprovable or otherwise) and self.rows.chain < 0:
                place: cython.longlong = self.unit.base[i]
                while place < self.unit.base[i + 1]:
                    verdict: cython.int = self.unit.verdict[place]
                    if (switched and verdict == Verdict.WRONG) or (unprovable and verdict == Verdict.PROVED):
                        self.unit.verdict[place] = Verdict.UNKNOWN
                        self.unit.what[place] = Why.CONTEXT_SWITCH
                    elif otherwise and verdict == Verdict.PROVED:
                        self.unit.verdict[place] = Verdict.ASSUMED
                        self.unit.what[place] = Why.NO_PATH
                    place += 1
        return 0
