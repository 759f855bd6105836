"""The walk through the blocks of a unit, instruction by instruction (compiled).

Each block is walked from its state on: what the table claims at an instruction is judged, and then the instruction
changes the state. Where control goes the state flows into another block. A block is walked again when its state loses
something, so the verdicts of its last walk are those of every way to it.
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.code.effects import Flow
    from cython.cimports.walkback.proof._edges import Edges
    from cython.cimports.walkback.proof._rows import Rows
    from cython.cimports.walkback.proof._unit import Unit
    from cython.cimports.walkback.proof.brief import brief_at, skim
    from cython.cimports.walkback.proof.values import Trust, Verdict, Why
else:
    from walkback.code.effects import Flow
    from walkback.proof._edges import Edges
    from walkback.proof._rows import Rows
    from walkback.proof._unit import Unit
    from walkback.proof.brief import brief_at, skim
    from walkback.proof.values import Trust, Verdict, Why

_ALIGNED = cython.declare(cython.ulonglong, 16)
"""Bytes that functions are aligned to."""
_BITS = cython.declare(cython.longlong, 64)
_STEPS = cython.declare(cython.longlong, 16)
"""How often each byte of a unit may be walked over, on average."""


@cython.cclass
class Blocks:
    """Those of one unit after the other."""

    def __init__(self, code, claims, state, ranges, members, chain, free):
        self.code, self.state, self.free = code, state, free
        self.state.follow(self.code.highest)
        self.unit = Unit(state, ranges, members, free)
        self.rows = Rows(claims, state, self.unit, ranges, chain, free)
        self.edges = Edges(code, state, self.unit, self.rows, ranges)
        self.is_entry = memoryview(ranges.is_entry)

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
            self.unit.take_up(block)
            self.state.destroyed = 0
            self.rows.until = 0
            self.edges.doubt = False
            begin: cython.longlong = self.unit.block_place[block]
            branched: cython.bint = self.unit.block_source[block] >= 0
            place: cython.longlong = begin
            behind: cython.longlong = begin
            """The last call."""
            while place < self.unit.end:
                at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.unit.code_at + place)
                padding: cython.int = 0
                if self.edges.doubt:
                    padding = self.code.padding(at, self.unit.code_at + self.unit.end)
                if padding and self.is_between(place):
                    place += padding
                    continue
                if self.edges.doubt and not padding:
                    self.edges.doubt = False
                    if self.free and place != behind and self.may_begin_function(place):
                        return 0
                    if self.code.filling(at, self.unit.code_at + self.unit.end) and not self.edges.is_optional(place):
                        return self.edges.leave()  # a trap says that the call does not come back
                    if self.rows.judge(place) == Verdict.WRONG and not self.rows.claims.by_call:
                        return self.unit.put_off(place)
                if place != begin:
                    if (self.unit.head[place] or self.unit.owner[place]) and self.unit.is_of_another(place, block):
                        if self.free and self.unit.trust != Trust.FULL:
                            return self.unit.put_off(place)
                        return self.edges.come_to(place, self.unit.trust == Trust.FULL)
                    if self.code.targets[at >> 3] >> (at & 7) & 1:
                        # Others will come here: a block begins, in which this walk goes on.
                        if self.unit.trust != Trust.FULL and (self.free or not self.edges.fits(place)):
                            return self.unit.put_off(place)
                        block = self.unit.start_block(place)
                        begin = place
                self.unit.owner[place] = cython.cast(cython.int, block + 1)
                self.unit.source = place
                self.steps += 1
                flow: cython.int = Flow.NEXT
                length: cython.int = 0
                brief: cython.uint = brief_at(self.code.brief, at)
                if not brief:
                    flow = self.read(place)
                    length = self.edges.one.length
                    if flow == Flow.SYSTEM:
                        self.asks = True
                if self.state.changed or place >= self.rows.until:
                    self.rows.record(place, flow == Flow.CALL or flow == Flow.CALL_INDIRECT)
                else:  # nothing changed, neither in the state nor in the table
                    self.unit.verdict[place] = self.rows.said
                    self.unit.what[place] = self.rows.cause
                if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
                    self.rows.record_return(place, place + length - 1)
                elif flow == Flow.RETURN and self.rows.has_no_caller(place) and self.edges.returns_to_caller():
                    self.rows.deny(place, self.state.ra)
                if brief:
                    length = skim(self.state, brief, self.code.machine)
                    if length:
                        self.unit.length[place] = cython.cast(cython.uchar, length)
                        place += length
                        continue
                    self.edges.read(place)
                    length = self.edges.one.length
                self.unit.length[place] = cython.cast(cython.uchar, length)
                if flow == Flow.BAD:
                    self.unit.verdict[place] = Verdict.UNKNOWN
                    self.unit.what[place] = Why.BAD_CODE
                    self.unit.is_bad = True
                    return 0
                branched = branched or flow == Flow.BRANCH
                goes_on: cython.bint = self.edges.step()
                if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
                    self.rows.record_overwritten(place, place + length - 1, self.edges.linked, self.edges.overwritten)
                if self.state.destroyed:
                    lost: cython.ulonglong = self.state.destroyed
                    self.state.destroyed = 0
                    if branched and self.is_doubtful(place, place + length, lost):
                        self.unit.trust = Trust.LEAST
                        return self.unit.put_off(place + length)
                if not goes_on:
                    return 0
                place += length
                if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
                    behind = place
            if self.edges.doubt:
                return self.edges.leave()  # a call with nothing but padding behind it does not come back
            return self.fall()

    def is_doubtful(self, place: cython.longlong, behind: cython.longlong, lost: cython.ulonglong) -> cython.bint:
        """Whether a way cannot be on which a store went over what the function has to give back.

        Compilers copy so for sizes that do not occur. What the table claims was right before, and what is not right
        behind is about that.
        """
        if self.free or self.rows.chain >= 0 or behind >= self.unit.end or self.unit.verdict[place] != Verdict.PROVED:
            return False
        if self.rows.judge(behind) == Verdict.PROVED:
            return False
        what: cython.longlong = self.rows.claims.what
        return 0 <= what < _BITS and (lost >> what) & 1

    def is_between(self, place: cython.longlong) -> cython.bint:
        """Whether padding behind a call that may not come back has the rules of the code behind it, of another way."""
        if self.rows.judge(place) != Verdict.WRONG or self.rows.claims.by_call:
            return False
        at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.unit.code_at + place)
        end: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, self.unit.code_at + self.unit.end)
        padding: cython.int = self.code.padding(at, end)
        while padding and not self.code.targets[at >> 3] >> (at & 7) & 1:
            at += padding
            padding = self.code.padding(at, end) if at < end else 0
        return at < end and not padding and self.code.targets[at >> 3] >> (at & 7) & 1

    def may_begin_function(self, place: cython.longlong) -> cython.bint:
        """Whether compilers let functions begin at a place behind padding, to which nothing jumps."""
        at: cython.longlong = self.unit.code_at + place
        address: cython.ulonglong = self.unit.address[self.unit.member] + cython.cast(
            cython.ulonglong, place - self.unit.begin
        )
        return address % _ALIGNED == 0 and not self.code.targets[at >> 3] >> (at & 7) & 1

    def fall(self) -> cython.int:
        """Go on in the next range, if that is part of the unit, and the state fits or nothing else leads there."""
        size: cython.longlong = self.unit.end - self.unit.begin
        place: cython.longlong = self.unit.place_of(
            self.unit.address[self.unit.member] + cython.cast(cython.ulonglong, size)
        )
        if place < 0:
            self.edges.note_frame(self.unit.address[self.unit.member] + cython.cast(cython.ulonglong, size))
            return self.edges.leave()
        self.edges.leave()
        self.unit.enter(place)
        if self.free and self.is_entry[self.unit.number]:
            return 0  # the call in front does not come back
        if self.rows.judge(place) == Verdict.WRONG:
            return self.unit.put_off(place)
        return self.unit.flow(place)

    def read(self, place: cython.longlong) -> cython.int:
        """Read an instruction; returns its `Flow`. Of a call the state is that while what it called runs."""
        flow: cython.int = self.edges.read(place)
        if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
            self.state.let_call_write(self.edges.kept_below[self.unit.number])
        return flow

    def go_on(self, at: cython.longlong, place: cython.longlong) -> cython.int:
        """When all is walked, bring the state from one place of a block to another behind it."""
        while at < place:
            self.read(at)
            self.edges.step()
            at += self.edges.one.length
        self.read(place)
        return 0
