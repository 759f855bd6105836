"""Where code begins that nothing describes, found by reading it from one end to the other (compiled)."""

import cython
import numpy as np

from walkback.base.growing import joined
from walkback.base.threads import by_threads, threads_for
from walkback.base.views import takes_views
from walkback.proof._scan import AT_ONCE
from walkback.proof.ranges import in_pieces

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import holds
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64, S390X
    from cython.cimports.walkback.proof._code import Code
    from cython.cimports.walkback.proof.brief import brief_at, length_of
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import holds
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AARCH64, AMD64, S390X
    from walkback.proof._code import Code
    from walkback.proof.brief import brief_at, length_of

_PROLOGUE = cython.declare(cython.int, 6)
"""Instructions in which a function makes a frame."""
_SAVES = cython.declare(cython.ulonglong, 2)
"""Beside 1 for padding: registers are saved where code begins, as functions do."""
_ALIGNED = cython.declare(cython.ulonglong, 16)
"""Bytes that functions are aligned to."""


def beginnings(code, targets, ranges, sp, ra, kept, last, back):
    """Rows of an address where code begins, whether no call comes back to it, and `_SAVES` and 1 for padding in front.

    Code begins with a range, and behind an instruction that does not go on; or behind a call, which may not come back,
    if padding follows or the next place is where compilers let functions begin. No call comes back to it if nothing
    jumps there, and what is called is `last` in functions, or registers are saved there as functions do. Where it is
    does not matter if one of these is the return address, or an instruction says that calls come there; else calls of
    those that come `back` do so. Both are sorted.
    """

    def begun(code, piece):
        found, executed = Growing(3), np.zeros(len(targets), np.uint8)
        whole = ranges.start[piece], ranges.size[piece], ranges.pos[piece]
        _beginnings(code, *whole, sp, ra, kept, last, back, executed, found)
        return [found.rows()]

    pieces = in_pieces(ranges.size, AT_ONCE)
    [rows] = joined(by_threads([code] * threads_for(len(pieces)), pieces, begun), (3,))
    return rows


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_marked(code: Code, place: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.bint:
    """Whether an instruction says that calls come here: `bti c` of AArch64, or one that signs the return address."""
    if code.machine != AARCH64 or end - place < 4:
        return False
    if code.data[place + 3] != 0xD5 or code.data[place + 2] != 0x03:
        return False
    if code.data[place + 1] == 0x24:
        return code.data[place] == 0x5F
    return code.data[place + 1] == 0x23 and code.data[place] & 0xBF == 0x3F


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def behind_padding(
    code: Code, executed: cython.const[cython.uchar][::1], place: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """The first place from one on that is no padding, and no instruction that another executes."""
    size: cython.Py_ssize_t = 1
    while place < end and size:
        size = code.filling(place, end)
        if executed[place >> 3] >> (place & 7) & 1:
            size = 2 if code.data[place] < 0x40 else 6 if code.data[place] >= 0xC0 else 4
        place += size
    return place


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def note_executed(
    code: Code, executed: cython.uchar[::1], place: cython.Py_ssize_t, low: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.int:
    """Mark what an instruction of s390x executes elsewhere: `exrl`; compilers put that behind their functions."""
    distance: cython.longlong = 0
    i: cython.int
    if code.machine != S390X or end - place < 6 or code.data[place] != 0xC6 or code.data[place + 1] & 15:
        return 0
    for i in range(2, 6):
        distance = distance * 256 + code.data[place + i]
        if i == 2 and distance >= 128:
            distance -= 256  # it is negative
    distance = place + 2 * distance
    if low <= distance < end:
        executed[distance >> 3] |= 1 << (distance & 7)
    return 0


@takes_views
def _beginnings(
    code: Code,
    start: cython.const[cython.ulonglong][::1],
    size: cython.const[cython.longlong][::1],
    pos: cython.const[cython.longlong][::1],
    sp: cython.int,
    ra: cython.int,
    kept: cython.ulonglong,
    final: cython.const[cython.ulonglong][::1],
    back: cython.const[cython.ulonglong][::1],
    executed: cython.uchar[::1],
    found: Growing,
):
    i: cython.Py_ssize_t
    one: Instruction = Instruction()
    with cython.nogil, cython.boundscheck(False):
        for i in range(start.shape[0]):
            place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, pos[i])
            end: cython.Py_ssize_t = place + cython.cast(cython.Py_ssize_t, size[i])
            away: cython.ulonglong = start[i] - cython.cast(cython.ulonglong, place)
            candidate: cython.ulonglong = 0
            """Where code may begin, as long as it `looks` how it does."""
            looks: cython.int = 0
            added: cython.bint = False
            aligned: cython.bint = False
            behind_call: cython.bint = False
            goes_on: cython.bint = False
            called: cython.bint = False
            may_end: cython.bint = False
            ends: cython.bint = False
            while place < end:
                begins: cython.bint = not goes_on or (
                    may_end and ((away + place) % _ALIGNED == 0 or code.filling(place, end) != 0)
                )
                if begins or called or (looks and not added):
                    former: cython.Py_ssize_t = place
                    is_executed: cython.bint = executed[place >> 3] >> (place & 7) & 1
                    if begins or not called or is_executed:
                        place = behind_padding(code, executed, place, end)
                    if place >= end:
                        break
                    if begins or called or place != former:
                        candidate = away + place
                if begins or called:
                    jumped: cython.bint = code.targets[place >> 3] >> (place & 7) & 1
                    behind_call = called and not jumped
                    aligned = behind_call and may_end and candidate % _ALIGNED == 0
                    added = begins
                    looks = 0 if called and jumped else _PROLOGUE
                    if begins:
                        found.add(candidate, aligned and ends, place != former)
                brief: cython.uint = brief_at(code.brief, place)
                if brief and not looks:  # it goes on behind itself
                    called = may_end = ends = False
                    goes_on = True
                    place += length_of(brief, code.machine)
                    continue
                note_executed(code, executed, place, cython.cast(cython.Py_ssize_t, pos[i]), end)
                decode(code.machine, code.bytes, place, end, away + place, one)
                if looks:
                    looks = looks - 1 if one.flow == Flow.NEXT else 0
                    stores: cython.bint = one.effect == Effect.STORE and one.base == sp
                    keeps: cython.ulonglong = one.keeps() if stores else 0
                    returns: cython.bint = keeps >> ra & 1
                    saves: cython.bint = keeps & kept and (one.moved < 0 or one.count > 2)
                    shown: cython.bint = (
                        returns or (aligned and saves) or (candidate == away + place and is_marked(code, place, end))
                    )
                    if added and (returns or saves):
                        found.numbers[found.used - 1] |= _SAVES
                    if behind_call and shown and added:
                        found.numbers[found.used - 2] = 1
                    elif behind_call and shown:
                        found.add(candidate, 1)
                    if stores or (one.effect == Effect.ADD and one.first == sp and code.machine == AMD64):
                        # Functions of AMD64 begin with the registers that they save; others may be arguments.
                        looks = 0 if shown or saves or code.machine == AMD64 else looks
                called = one.flow == Flow.CALL or one.flow == Flow.CALL_INDIRECT
                called = called and not code.gets_pc(away + place + one.length, one.target)
                may_end = one.flow == Flow.CALL_INDIRECT or (called and not holds(back, one.target))
                ends = one.flow == Flow.CALL and holds(final, one.target)
                goes_on = not (
                    one.flow == Flow.JUMP
                    or one.flow == Flow.RETURN
                    or one.flow == Flow.JUMP_INDIRECT
                    or one.flow == Flow.TRAP
                )
                place += one.length
