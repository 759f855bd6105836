"""The rows of a table, judged where the walk is (compiled)."""

import cython

if cython.compiled:
    from cython.cimports.walkback.proof.values import Chain, Verdict, Why
else:
    from walkback.proof.values import Chain, Verdict, Why

_END = cython.declare(cython.longlong, 1 << 62)


@cython.final
@cython.cclass
class Rows:
    """Finds the row of a place, and holds its claims against the state there."""

    def __init__(self, claims, state, unit, ranges, chain, free=False):
        self.claims, self.state, self.unit, self.chain, self.free = claims, state, unit, chain, free
        self.first_row = memoryview(ranges.first_row)
        self.rows = memoryview(ranges.rows)
        self.block = memoryview(ranges.block)
        self.row_offset = memoryview(ranges.row_offset)
        self.row_claims = memoryview(ranges.row_claims)
        self.number = -1
        self.until = 0

    def find(self, place: cython.longlong) -> cython.longlong:
        """The set of claims of a place of the range where the walk is; -1 if it has no row."""
        with cython.boundscheck(False):
            number: cython.Py_ssize_t = self.unit.number
            offset: cython.longlong = place - self.unit.begin
            if self.block[number]:
                offset %= self.block[number]
            if number == self.number and self.begin <= offset < self.end:
                return self.set
            self.number = number
            low: cython.longlong = self.first_row[number]
            high: cython.longlong = low + self.rows[number]
            self.set = -1
            self.begin = 0
            self.end = _END
            while low < high:
                middle: cython.longlong = (low + high) // 2
                if self.row_offset[middle] <= offset:
                    low = middle + 1
                    self.set = self.row_claims[middle]
                    self.begin = self.row_offset[middle]
                else:
                    high = middle
                    self.end = self.row_offset[middle]
        return self.set

    def begin_alike(self, one: cython.Py_ssize_t, other: cython.Py_ssize_t) -> cython.bint:
        """Whether two ranges have rows, and claim the same where they begin."""
        if not self.rows[one] or not self.rows[other]:
            return False
        return self.row_claims[self.first_row[one]] == self.row_claims[self.first_row[other]]

    def judge(self, place: cython.longlong) -> cython.int:
        """What is to be said of the claims at a place."""
        wanted: cython.longlong = self.find(place)
        self.until = 0
        if self.state.changed:
            self.state.changed = False
            self.state.proved = -1
        if wanted < 0:
            self.claims.verdict = Verdict.UNKNOWN
            self.claims.why = Why.NO_RULE
        elif wanted == self.state.proved:
            self.claims.verdict = Verdict.PROVED
            self.claims.why = Why.NONE
        elif self.claims.judge(self.state, wanted) == Verdict.PROVED:
            self.state.proved = wanted
        return self.claims.verdict

    def record(self, place: cython.longlong, is_call: cython.bint) -> cython.int:
        """Judge, and keep the verdict."""
        if self.chain >= 0:
            return self.record_chain(place, is_call)
        verdict: cython.int = self.judge(place)
        why: cython.int = self.claims.why
        if self.unit.assumed and verdict == Verdict.PROVED:
            verdict = Verdict.UNKNOWN if self.unit.is_bad else Verdict.ASSUMED
            why = Why.BAD_CODE if self.unit.is_bad else Why.NO_PATH
        elif self.unit.assumed and verdict == Verdict.WRONG:
            verdict = Verdict.UNKNOWN
            why = Why.ASSUMPTION
        self.said = cython.cast(cython.uchar, verdict)
        self.cause = cython.cast(cython.uchar, self.claims.what if verdict == Verdict.WRONG else why)
        with cython.boundscheck(False):
            if not self.block[self.number]:
                self.until = self.unit.begin + self.end
            self.unit.verdict[place] = self.said
            self.unit.what[place] = self.cause
        return 0

    def record_return(self, place: cython.longlong, last: cython.longlong) -> cython.int:
        """Judge the row of the last byte of a call too, which holds while what it called runs."""
        if self.chain < 0 and place < self.until <= last and self.judge(last) == Verdict.WRONG:
            self.deny(place, self.claims.what)
        return 0

    def record_overwritten(
        self, place: cython.longlong, last: cython.longlong, linked: cython.ulonglong, overwritten: cython.ulonglong
    ) -> cython.int:
        """While what a call calls runs, the row of its last byte must need none of the registers that it overwrites.

        Those of `overwritten` may keep the return address, but for those of `linked`: only callers that know that leave
        it there.
        """
        wanted: cython.longlong = self.find(last)
        if self.free or self.chain >= 0 or wanted < 0 or self.unit.verdict[place] == Verdict.WRONG:
            return 0
        if self.claims.needs(wanted, linked, overwritten, self.state.ra):
            self.deny(place, self.claims.what)
        return 0

    def has_no_caller(self, place: cython.longlong) -> cython.bint:
        """Whether the row of a place claims that there is no caller."""
        wanted: cython.longlong = self.find(place)
        return not self.free and self.chain < 0 and wanted >= 0 and self.claims.ends_here(self.state, wanted)

    def deny(self, place: cython.longlong, what: cython.int) -> cython.int:
        """Keep that a claim is wrong."""
        with cython.boundscheck(False):
            self.unit.verdict[place] = Verdict.UNKNOWN if self.unit.assumed else Verdict.WRONG
            self.unit.what[place] = Why.ASSUMPTION if self.unit.assumed else cython.cast(cython.uchar, what)
        return 0

    def record_chain(self, place: cython.longlong, is_call: cython.bint) -> cython.int:
        """Keep what the frame pointer is."""
        found: cython.int = Chain.BROKEN
        if self.claims.judge(self.state, self.chain) == Verdict.PROVED:
            found = Chain.LINKED
        else:
            unknown: cython.bint = self.claims.verdict == Verdict.UNKNOWN
            if self.claims.judge(self.state, self.chain + 1) == Verdict.PROVED:
                found = Chain.SKIPPED if is_call else Chain.INTACT
            elif unknown or self.claims.verdict == Verdict.UNKNOWN or self.unit.assumed:
                found = Chain.UNDECIDED
        with cython.boundscheck(False):
            self.unit.verdict[place] = cython.cast(cython.uchar, found)
            self.unit.what[place] = Why.REGISTER_VALUE
        return 0

    def suppose(self, place: cython.longlong) -> cython.bint:
        """Make the state one in which the row of a place is right; returns whether that can be done."""
        wanted: cython.longlong = self.find(place)
        return wanted >= 0 and self.claims.suppose(self.state, wanted) != 0
