"""Walks through all units, and the verdicts summed up by range (compiled)."""

import cython
import numpy as np

from walkback.base.growing import joined
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.code.effects import Flow
    from cython.cimports.walkback.proof._claims import Claims
    from cython.cimports.walkback.proof._state import State
    from cython.cimports.walkback.proof._walk import Walk
    from cython.cimports.walkback.proof.values import MOST_RUNS, Verdict, Why
else:
    from walkback.base.growing import Growing
    from walkback.code.effects import Flow
    from walkback.proof._claims import Claims
    from walkback.proof._state import State
    from walkback.proof._walk import Walk
    from walkback.proof.values import MOST_RUNS, Verdict, Why

_VERDICTS = cython.declare(cython.int, 6)
"""Those of `Verdict` or of `Chain`."""
_REASONS = cython.declare(cython.int, 18)
"""Those of `Why`."""
_REASON_WIDTH = cython.declare(cython.Py_ssize_t, 3)
"""Numbers of a row with a reason: a range, a `Why`, and bytes."""
_LONGEST_PATH = cython.declare(cython.int, 64)
_WIDTH = cython.declare(cython.Py_ssize_t, 5)
"""A run has a range, an address, bytes, a verdict, and a cause: the register that is wrong, or why it is not known."""


def as_entered(claims, state, count):
    """Which sets of claims hold where a function begins as the ABI says."""
    found = np.zeros(count, np.uint8)
    _as_entered(claims, state, found)
    return found


@takes_views
def _as_entered(claims: Claims, state: State, found: cython.uchar[::1]):
    number: cython.Py_ssize_t
    with cython.nogil:
        for number in range(found.shape[0]):
            state.enter()
            found[number] = claims.judge(state, number) == Verdict.PROVED


def tally(walks, ranges, unit_first, wanted):
    """Walk through all units: the bytes of each range by verdict, rows of them by reason, and runs not proved."""
    verdicts = np.zeros((len(ranges.start), _VERDICTS), np.int64)
    counts = {}

    def tallied(walk, piece):
        first, end = piece
        reasons, runs = Growing(_REASON_WIDTH), Growing(_WIDTH)
        _tally(walk, unit_first[first : end + 1], wanted, verdicts, np.zeros(_REASONS, np.int64), reasons, runs)
        # Those of later pieces may have been kept already, so that only some of all are left in the end.
        rows = kept(runs.rows(), sum(count for before, count in counts.copy().items() if before < first))
        counts[first] = len(rows)
        return reasons.rows(), rows

    reasons, runs = joined(walks.each(tallied), (_REASON_WIDTH, _WIDTH))
    return verdicts, reasons, kept(runs)


def kept(rows, before=0):
    """Those of the runs that are kept if `before` of them are kept already."""
    some = max(MOST_RUNS // 2 - before, 0)
    rest = rows[some:]
    return np.concatenate((rows[:some], rest[rest[:, 3] == Verdict.WRONG]))[: max(MOST_RUNS - before, 0)]


@takes_views
def _tally(
    walk: Walk,
    unit_first: cython.const[cython.longlong][::1],
    wanted: cython.const[cython.uchar][::1],
    verdicts: cython.longlong[:, ::1],
    counts: cython.longlong[::1],
    reasons: Growing,
    runs: Growing,
):
    group: cython.Py_ssize_t
    i: cython.Py_ssize_t
    number: cython.Py_ssize_t
    first: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for group in range(unit_first.shape[0] - 1):
            first = cython.cast(cython.Py_ssize_t, unit_first[group])
            end = cython.cast(cython.Py_ssize_t, unit_first[group + 1])
            if not _any(walk, first, end, wanted):
                continue
            if walk.run(first, end):
                for i in range(end - first):
                    if wanted[walk.unit.members[first + i]]:
                        _sum_up(walk, i, verdicts, counts, runs)
                        _add_reasons(walk.unit.members[first + i], counts, reasons)
                continue
            for i in range(first, end):
                number = cython.cast(cython.Py_ssize_t, walk.unit.members[i])
                if not wanted[number]:
                    continue
                verdicts[number, cython.cast(cython.Py_ssize_t, Verdict.UNKNOWN)] += walk.unit.size[number]
                reasons.add(number, Why.TOO_COMPLEX, walk.unit.size[number])
                _add(runs, number, walk.unit.start[number], walk.unit.size[number], Verdict.UNKNOWN, Why.TOO_COMPLEX)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _any(
    walk: Walk, first: cython.Py_ssize_t, end: cython.Py_ssize_t, wanted: cython.const[cython.uchar][::1]
) -> cython.bint:
    """Whether any of these members is wanted."""
    i: cython.Py_ssize_t
    for i in range(first, end):
        if wanted[walk.unit.members[i]]:
            return True
    return False


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _sum_up(
    walk: Walk,
    member: cython.Py_ssize_t,
    verdicts: cython.longlong[:, ::1],
    counts: cython.longlong[::1],
    runs: Growing,
) -> cython.int:
    """Count the bytes of one range, by verdict and by reason."""
    number: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, walk.unit.members[walk.unit.first + member])
    place: cython.longlong = walk.unit.base[member]
    end: cython.longlong = walk.unit.base[member + 1]
    pos: cython.longlong = walk.unit.pos[number] - place
    size: cython.int
    verdict: cython.int
    proved: cython.longlong = 0
    with cython.boundscheck(False):
        while place < end:
            if not walk.unit.owner[place]:
                size = walk.code.unused(
                    cython.cast(cython.Py_ssize_t, pos + place), cython.cast(cython.Py_ssize_t, pos + end)
                )
                counts[cython.cast(cython.Py_ssize_t, Why.PADDING if size else Why.DATA)] += max(size, 1)
                verdicts[number, cython.cast(cython.Py_ssize_t, Verdict.NOT_REACHED)] += max(size, 1)
                place += max(size, 1)
                continue
            size = max(walk.unit.length[place], 1)
            if size > end - place:
                size = cython.cast(cython.int, end - place)
            verdict = walk.unit.verdict[place]
            if verdict == Verdict.PROVED:
                proved += size
                place += size
                continue
            verdicts[number, verdict] += size
            if verdict == Verdict.UNKNOWN or verdict == Verdict.ASSUMED:
                counts[walk.unit.what[place]] += size
            _add(
                runs,
                number,
                walk.unit.start[number] + cython.cast(cython.ulonglong, place - walk.unit.base[member]),
                size,
                verdict,
                walk.unit.what[place],
            )
            place += size
        verdicts[number, cython.cast(cython.Py_ssize_t, Verdict.PROVED)] += proved
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _add_reasons(number: cython.longlong, counts: cython.longlong[::1], reasons: Growing) -> cython.int:
    """Add the reasons of one range, and let all counts be zero again."""
    why: cython.Py_ssize_t
    with cython.boundscheck(False):
        for why in range(_REASONS):
            if counts[why]:
                reasons.add(number, why, counts[why])
                counts[why] = 0
    return 0


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _add(
    found: Growing,
    number: cython.Py_ssize_t,
    address: cython.ulonglong,
    size: cython.longlong,
    verdict: cython.int,
    cause: cython.int,
) -> cython.int:
    """Add an instruction to the runs, to the last one if it goes on there."""
    last: cython.Py_ssize_t = found.used - _WIDTH
    most: cython.Py_ssize_t = MOST_RUNS if verdict == Verdict.WRONG else MOST_RUNS // 2
    if last >= 0 and found.numbers[last] == number and found.numbers[last + 1] + found.numbers[last + 2] == address:
        if found.numbers[last + 3] == verdict and found.numbers[last + 4] == cause:
            found.numbers[last + 2] += size
            return 0
    if found.used >= most * _WIDTH:
        return 0
    return found.add(number, address, size, verdict, cause)


def states(walk, first, end, addresses):
    """Walk through a unit again: the states at some addresses, rising, with the ways that led to their blocks.

    A state is the value of each register, and of each place on the stack where something was saved. It is None at an
    address that is not reached.
    """
    return _states(walk, first, end, addresses)


def _states(walk: Walk, first: cython.Py_ssize_t, end: cython.Py_ssize_t, addresses):
    walk.follow(first, end)
    block: cython.Py_ssize_t = -1
    at: cython.longlong = 0
    found = []
    for address in addresses:
        place: cython.longlong = walk.unit.place_of(address)
        if place < 0 or not walk.unit.owner[place]:
            found.append(None)
            continue
        if walk.unit.owner[place] - 1 != block or place < at:
            block = walk.unit.owner[place] - 1
            at = walk.unit.block_place[block]
            walk.unit.take_up(block)
        walk.go_on(at, place)
        at = place
        registers = [walk.state.values[i] for i in range(walk.state.registers)]
        saved = {walk.state.keys[i]: walk.state.saved[i] for i in range(walk.state.slots)}
        found.append((registers, saved, _path(walk, block)))
    return found


def _path(walk: Walk, block: cython.Py_ssize_t):
    """The addresses of the last jumps that led to a block for the first time."""
    path = []
    source: cython.longlong = walk.unit.block_source[block]
    while source >= 0 and len(path) < _LONGEST_PATH and walk.unit.address_of(source) not in path:
        path.append(walk.unit.address_of(source))
        source = walk.unit.block_source[walk.unit.owner[source] - 1]
    return path[::-1]


def instructions(walk, first, end, begin, size, most):
    """Walk through a unit again: rows of the address, length, verdict and cause of each instruction that was reached.

    The cause is the register that is wrong, or the reason why nothing is known. The instructions are those from the
    address `begin` on, in `size` bytes, `most` at most. The second result is how many there are in
    these bytes, by verdict. It is None where the unit is too complex.
    """
    return _instructions(walk, first, end, begin, size, most)


def _instructions(
    walk: Walk, first: cython.Py_ssize_t, end: cython.Py_ssize_t, begin, size: cython.longlong, most: cython.longlong
):
    place: cython.longlong
    counts = np.zeros(_VERDICTS, np.int64)
    number: cython.longlong[::1] = memoryview(counts)
    rows = []
    if not walk.run(first, end):
        return rows, None
    start: cython.longlong = 0 if begin is None else walk.unit.place_of(begin)
    for place in range(start, min(start + size, walk.unit.total)):
        if walk.unit.owner[place]:
            number[walk.unit.verdict[place]] += 1
            if len(rows) < most:
                cause = walk.unit.what[place]
                rows.append((walk.unit.address_of(place), walk.unit.length[place], walk.unit.verdict[place], cause))
    return rows, counts


def judged(walk, first, end):
    """Walk through a unit again: rows of an address, bytes and their verdict, rising. None if it is too complex.

    The verdict on an instruction is that on the row where it begins, and on the row of the last byte of a call. Other
    rows that begin within an instruction are not judged.
    """
    found = Growing(3)
    return found.rows() if _judged(walk, first, end, found) else None


def _judged(walk: Walk, first: cython.Py_ssize_t, end: cython.Py_ssize_t, found: Growing):
    member: cython.Py_ssize_t
    place: cython.longlong
    if not walk.run(first, end):
        return False
    with cython.nogil:
        for member in range(walk.unit.count):
            place = walk.unit.base[member]
            while place < walk.unit.base[member + 1]:
                place += _add_judged(walk, place, found) if walk.unit.owner[place] else 1
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _add_judged(walk: Walk, place: cython.longlong, found: Growing) -> cython.longlong:
    """Add the rows of an instruction that were judged; returns its length."""
    walk.unit.enter(place)
    walk.rows.find(place)
    size: cython.longlong = min(max(walk.unit.length[place], 1), walk.unit.end - place)
    judged: cython.longlong = size
    verdict: cython.int = walk.unit.verdict[place]
    address: cython.ulonglong = walk.unit.address_of(place)
    if not walk.block[walk.unit.number]:
        judged = min(size, walk.unit.begin + walk.rows.end - place)
    found.add(address, judged, verdict)
    if judged < size:
        flow: cython.int = walk.edges.read(place)
        if flow == Flow.CALL or flow == Flow.CALL_INDIRECT:
            walk.rows.find(place + size - 1)
            judged = walk.unit.begin + walk.rows.begin - place
            found.add(address + cython.cast(cython.ulonglong, judged), size - judged, verdict)
    return size
