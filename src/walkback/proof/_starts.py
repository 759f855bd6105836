"""Where code begins that nothing describes, found by reading it from one end to the other (compiled)."""

import cython

from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import holds
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64
    from cython.cimports.walkback.proof._code import Code
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import holds
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AARCH64, AMD64
    from walkback.proof._code import Code

_PROLOGUE = cython.declare(cython.int, 6)
"""Instructions in which a function makes a frame."""
_ALIGNED = cython.declare(cython.ulonglong, 16)
"""Bytes that functions are aligned to."""


def beginnings(code, ranges, sp, ra, kept, last, back):
    """Rows of an address where code begins, and whether that is surely no code behind a call that comes back.

    It begins with a range, and behind an instruction that does not go on; or behind a call, which may not come back,
    if padding follows or the next place is where compilers let functions begin. It surely does not if what is called
    is `last` in functions, or if registers are saved there as functions do, and nothing jumps there; wherever it is,
    if the return address is. Calls of those that come `back` always do; both are sorted.
    """
    found = Growing(2)
    _beginnings(code, ranges.start, ranges.size, ranges.pos, sp, ra, kept, last, back, found)
    return found.rows()


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def jumped_to(code: Code, place: cython.Py_ssize_t) -> cython.bint:
    """Whether something jumps to a place in the image."""
    return code.targets[place >> 3] >> (place & 7) & 1


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
    found: Growing,
):
    i: cython.Py_ssize_t
    one: Instruction = Instruction()
    with cython.nogil, cython.boundscheck(False):
        for i in range(start.shape[0]):
            place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, pos[i])
            end: cython.Py_ssize_t = place + cython.cast(cython.Py_ssize_t, size[i])
            away: cython.ulonglong = start[i] - cython.cast(cython.ulonglong, place)
            goes_on: cython.bint = False
            called: cython.bint = False
            ends: cython.bint = False
            looks: cython.int = 0
            aligned: cython.bint = False
            marked: cython.bint = False
            candidate: cython.ulonglong = 0
            while place < end:
                if not goes_on or (called and ((away + place) % _ALIGNED == 0 or code.filling(place, end))):
                    while place < end and code.filling(place, end):
                        place += code.filling(place, end)
                    if place >= end:
                        break
                    aligned = called and (away + place) % _ALIGNED == 0 and not jumped_to(code, place)
                    marked = called and is_marked(code, place, end) and not jumped_to(code, place)
                    found.add(away + place, marked or (aligned and ends))
                    looks = _PROLOGUE if aligned else 0
                elif called and not jumped_to(code, place):
                    candidate, aligned, looks = away + place, False, _PROLOGUE
                    if is_marked(code, place, end):
                        found.add(candidate, 1)
                        looks = 0
                decode(code.machine, code.bytes, place, end, away + place, one)
                if looks:
                    looks = looks - 1 if one.flow == Flow.NEXT else 0
                    if one.effect == Effect.STORE and one.base == sp:
                        if not aligned and one.keeps() >> ra & 1:
                            found.add(candidate, 1)
                            looks = 0
                        elif one.moved < 0 or one.count > 2:
                            if aligned and one.keeps() & kept:
                                found.numbers[found.used - 1] = 1
                            looks = 0
                    elif code.machine == AMD64 and one.effect == Effect.ADD and one.first == sp:
                        looks = 0  # arguments are pushed behind it, and registers before
                called = one.flow == Flow.CALL_INDIRECT or (one.flow == Flow.CALL and not holds(back, one.target))
                ends = one.flow == Flow.CALL and holds(final, one.target)
                goes_on = not (
                    one.flow == Flow.JUMP
                    or one.flow == Flow.RETURN
                    or one.flow == Flow.JUMP_INDIRECT
                    or one.flow == Flow.TRAP
                )
                place += one.length
