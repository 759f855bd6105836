"""A first look at the code of each range: where it jumps, and whether it comes back (compiled)."""

from itertools import pairwise
from typing import NamedTuple

import cython
import numpy as np

from walkback.base.arrays import I64, U8, U16, U64, Bools, distinct
from walkback.base.bits import WORD
from walkback.base.growing import joined
from walkback.base.threads import by_threads, threads_for
from walkback.base.views import takes_views
from walkback.proof.ranges import in_pieces

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.amd64.prefixes import REX2
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AARCH64, AMD64, S390X
    from cython.cimports.walkback.proof._code import Code
    from cython.cimports.walkback.proof.brief import brief_at, in_brief, is_idle, length_of
    from cython.cimports.walkback.proof.values import Way
else:
    from walkback.base.growing import Growing
    from walkback.code._instruction import Instruction
    from walkback.code.amd64.prefixes import REX2
    from walkback.code.decoding import decode
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AARCH64, AMD64, S390X
    from walkback.proof._code import Code
    from walkback.proof.brief import brief_at, in_brief, is_idle, length_of
    from walkback.proof.values import Way

_PAGE = cython.declare(cython.longlong, 0xFFF)
"""The part of an address that AArch64 adds in a second instruction."""
_ALL = cython.declare(cython.ulonglong, WORD)
_LOWEST = cython.declare(cython.longlong, 64)
"""Smaller numbers are no addresses."""
AT_ONCE = 1 << 20
"""Bytes of code that a thread looks at before it takes more."""
_WIDTHS = 3, 3, 1
"""Of the ways, calls and named addresses that are found."""
_KIND_BITS = cython.declare(cython.int, 2)
_CALLED = cython.declare(cython.ulonglong, 1)
_TAKEN = cython.declare(cython.ulonglong, 2)
_TARGET = cython.declare(cython.ulonglong, 3)
"""What a place elsewhere is, in the lowest bits of a word with it."""


class Scan(NamedTuple):
    """What the first look found."""

    start: U64
    """Where the ranges begin that were looked at."""
    size: I64
    returns: Bools
    """Which ranges have a way back to their caller."""
    leaps: Bools
    """Which jump to an address in a register or in memory, as code with tables of jumps does."""
    written: U64
    """The registers that each range changes, as bits: all of them if it calls or jumps elsewhere."""
    kept: U64
    """Those that it stores or copies."""
    highest: U8
    """The highest number of a register that an instruction of it has first: whether it uses those of APX."""
    ways: U64
    """How control leaves ranges: rows of a range, an address, and a `Way`."""
    calls: U64
    """Rows of a range, the target of a call that is no beginning of one, and the place in the image of the code behind.

    That is 0 where padding or nothing is there.
    """
    called: U8
    """A bit for each byte of the image that is called."""
    taken: U8
    """A bit for each that the code names."""
    named: U64
    """Addresses of data that the code names, sorted."""
    targets: U8
    """A bit for each byte of the image that is jumped to."""
    brief: U16
    """For each two bytes of the image the instruction `in_brief` that begins there."""


def scan(code, image, ranges, sp, former=None):
    """Look at all ranges; what a former look found at ranges that are as they were is taken over, with its arrays.

    In the others, instructions that it has in brief are decoded again only where that does not say enough.
    """
    count = len(ranges.start)
    former = former or _nothing(len(image.data))
    known = _among(former, ranges)
    called, taken, targets, brief = former.called, former.taken, former.targets, former.brief
    returns, leaps = np.zeros(count, np.uint8), np.zeros(count, np.uint8)
    written, kept, highest = np.zeros(count, np.uint64), np.zeros(count, np.uint64), np.zeros(count, np.uint8)
    starts = np.zeros(len(targets), np.uint8)
    np.bitwise_or.at(starts, ranges.pos >> 3, (1 << (ranges.pos & 7)).astype(np.uint8))

    def looked_at(code, piece):
        wanted, low, high = piece
        found, elsewhere = [Growing(width) for width in _WIDTHS], Growing(1)
        whole = wanted, ranges.start, ranges.size, ranges.pos, starts
        marks = called, taken, targets, brief
        _scan(code, *whole, sp, low, high, returns, leaps, written, kept, highest, *marks, *found, elsewhere)
        return [*(rows.rows() for rows in found), elsewhere]

    pieces = _in_pieces(ranges, np.flatnonzero(known < 0), len(image.data))
    parts = by_threads([code] * threads_for(len(pieces)), pieces, looked_at)
    for *_, elsewhere in parts:
        _mark(elsewhere, called, taken, targets)
    ways, calls, named = joined((part[: len(_WIDTHS)] for part in parts), _WIDTHS)
    old = np.flatnonzero(known >= 0)
    columns = (
        *((returns, former.returns), (leaps, former.leaps)),
        *((written, former.written), (kept, former.kept), (highest, former.highest)),
    )
    for now, before in columns:
        now[old] = before[known[old]]
    number = np.full(len(former.start), -1, np.int64)
    number[known[old]] = old
    return Scan(
        ranges.start,
        ranges.size,
        returns.astype(np.bool_),
        leaps.astype(np.bool_),
        written,
        kept,
        highest,
        np.concatenate((renumbered(former.ways, number), ways)),
        np.concatenate((renumbered(former.calls, number), calls)),
        called,
        taken,
        distinct(np.concatenate((former.named, named.ravel()))),
        targets,
        brief,
    )


def _in_pieces(ranges, wanted, size):
    """The numbers of ranges that one thread looks at, and between which places of the image it marks what it finds.

    The pieces are the same however many threads there are, as data in the code is seen by jumps in front of it. They
    begin at multiples of 8, so that no byte of marks belongs to two.
    """
    pos = ranges.pos[wanted]
    rising = (np.diff(pos) >= 0).all()
    pieces = [wanted[one] for one in in_pieces(ranges.size[wanted], AT_ONCE, pos % 8 == 0)] if rising else [wanted]
    bounds = [0, *(int(ranges.pos[piece[0]]) for piece in pieces[1:]), size]
    return [(piece, *between) for piece, between in zip(pieces, pairwise(bounds), strict=True)]


def _nothing(size):
    """What was found before anything is looked at, in an image of `size` bytes."""
    called, taken, targets = (np.zeros(size // 8 + 1, np.uint8) for _ in range(3))
    numbers, rows = np.zeros(0, np.uint64), np.zeros((0, 3), np.uint64)
    none = np.zeros(0, np.bool_)
    ranges = numbers, np.zeros(0, np.int64), none, none, numbers, numbers, np.zeros(0, np.uint8)
    return Scan(*ranges, rows, rows, called, taken, numbers, targets, np.zeros(size // 2 + 1, np.uint16))


def of_code(seen):
    """What a look has seen that does not depend on the ranges: instructions in brief, and names."""
    return _nothing(8 * (len(seen.targets) - 1))._replace(brief=seen.brief, named=seen.named)


def is_same(ranges, former):
    """Whether these ranges are those of a former look."""
    return np.array_equal(former.start, ranges.start) and np.array_equal(former.size, ranges.size)


def _among(former, ranges):
    """For each range its number in a former look; -1 if it was not among those."""
    if is_same(ranges, former):
        return np.arange(len(ranges.start))
    if not len(former.start):
        return np.full(len(ranges.start), -1, np.int64)
    place = np.searchsorted(former.start, ranges.start).clip(max=len(former.start) - 1)
    same = (former.start[place] == ranges.start) & (former.size[place] == ranges.size)
    return np.where(same, place, -1)


def renumbered(rows, number):
    """Those of the rows that begin with a range which has a number now, with that; -1 stands for none."""
    kept = rows[number[rows[:, 0].astype(np.int64)] >= 0]
    kept[:, 0] = number[kept[:, 0].astype(np.int64)]
    return kept


def bits_at(bits, places):
    """Those of places in the image."""
    return (bits[places >> 3] >> (places & 7).astype(np.uint8) & 1).astype(np.bool_)


def mark_targets(seen, image, addresses):
    """Note that something leads to these addresses, as if it jumped there."""
    places = image.places(addresses, np.ones(len(addresses), np.int64))
    places = places[places >= 0]
    np.bitwise_or.at(seen.targets, places >> 3, (1 << (places & 7)).astype(np.uint8))


@takes_views
def _mark(
    elsewhere: Growing,
    called: cython.uchar[::1],
    taken: cython.uchar[::1],
    targets: cython.uchar[::1],
):
    """Mark the places that other threads had to leave alone."""
    row: cython.Py_ssize_t
    with cython.nogil:
        for row in range(elsewhere.used):
            at: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, elsewhere.numbers[row] >> _KIND_BITS)
            kind: cython.ulonglong = elsewhere.numbers[row] & _TARGET
            if kind == _CALLED:
                called[at >> 3] |= 1 << (at & 7)
            elif kind == _TAKEN:
                taken[at >> 3] |= 1 << (at & 7)
            else:
                targets[at >> 3] |= 1 << (at & 7)


@takes_views
def _scan(
    code: Code,
    wanted: cython.const[cython.longlong][::1],
    start: cython.const[cython.ulonglong][::1],
    size: cython.const[cython.longlong][::1],
    pos: cython.const[cython.longlong][::1],
    starts: cython.const[cython.uchar][::1],
    sp: cython.int,
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    returns: cython.uchar[::1],
    leaps: cython.uchar[::1],
    written: cython.ulonglong[::1],
    kept: cython.ulonglong[::1],
    highest: cython.uchar[::1],
    called: cython.uchar[::1],
    taken: cython.uchar[::1],
    targets: cython.uchar[::1],
    brief: cython.ushort[::1],
    ways: Growing,
    calls: Growing,
    named: Growing,
    elsewhere: Growing,
):
    i: cython.Py_ssize_t
    turn: cython.Py_ssize_t
    one: Instruction = Instruction()
    constants: cython.longlong[::1] = memoryview(np.zeros(64, np.int64))
    with cython.nogil, cython.boundscheck(False):
        for turn in range(wanted.shape[0]):
            i = cython.cast(cython.Py_ssize_t, wanted[turn])
            begin: cython.ulonglong = start[i]
            at: cython.Py_ssize_t
            place: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, pos[i])
            end: cython.Py_ssize_t = place + cython.cast(cython.Py_ssize_t, size[i])
            away: cython.ulonglong = begin - cython.cast(cython.ulonglong, place)
            """From places to addresses."""
            changed: cython.ulonglong = 0
            stored: cython.ulonglong = 0
            most: cython.int = 0
            call: cython.ulonglong = 0
            """The target of the call that came last, while nothing but padding came since."""
            goes_on: cython.bint = True
            ends: cython.bint = False
            while place < end:
                # On AArch64 most of these may be the second of two that make an address.
                is_enough: cython.bint = changed == _ALL and not ends and code.machine != AARCH64
                what: cython.uint = brief_at(brief, place) if is_enough else 0
                length: cython.int = length_of(what, code.machine)
                if what and place + length <= end and not is_idle(what, code.machine, sp):
                    place += length
                    call = 0
                    goes_on = True
                    continue
                decode(code.machine, code.bytes, place, end, away + place, one)
                if ends:
                    ends = False
                    at = jumped_into(targets, place, place + one.length)
                    if at != place:
                        place = at  # data in the code
                        continue
                what = in_brief(one, code.machine, sp)
                if what:
                    brief[place >> 1] = cython.cast(cython.ushort, what | (place & 1))
                elif brief_at(brief, place):
                    brief[place >> 1] = 0  # a former range ended later
                if one.first > most:
                    most = one.first
                if changed != _ALL:
                    changed |= one.changes()
                    stored |= one.keeps()
                if one.effect and (one.base < 0 or one.effect == Effect.ADD):
                    address: cython.ulonglong = constant(one, code.machine == AARCH64, constants)
                    if address and code.is_data(address):
                        if is_address(code, one, place):
                            named.add(address)
                    elif address and names_function(code, one, place):
                        at = code.place(address)
                        if low <= at < high:
                            taken[at >> 3] |= 1 << (at & 7)
                        elif at >= 0:
                            elsewhere.add(at << _KIND_BITS | _TAKEN)
                if one.flow == Flow.JUMP_INDIRECT and one.base < 0 and one.index >= 0:
                    address = cython.cast(cython.ulonglong, one.offset)  # of a jump table
                    if code.is_data(address):
                        named.add(address)
                at = place
                place += one.length
                gets_pc: cython.bint = one.flow == Flow.CALL and one.target == away + place
                gets_pc = gets_pc and place < end and code.gets_pc(away + place, one.target)
                if gets_pc or one.flow == Flow.NEXT or one.flow == Flow.SYSTEM or one.flow == Flow.BAD:
                    if gets_pc or one.effect or one.clobbers or code.padding(at, end) == 0:
                        call = 0
                        goes_on = True
                    continue
                call = 0
                goes_on = one.flow == Flow.BRANCH
                if one.flow == Flow.JUMP_INDIRECT or one.flow == Flow.CALL or one.flow == Flow.CALL_INDIRECT:
                    changed = _ALL
                ends = one.flow == Flow.JUMP or one.flow == Flow.RETURN or one.flow == Flow.JUMP_INDIRECT
                is_over: cython.bint = one.flow == Flow.CALL and one.target != away + place
                is_over = is_over and code.calls_over(away + place, one.target)
                if one.flow == Flow.RETURN or one.flow == Flow.JUMP_INDIRECT:
                    returns[i] = 1
                    leaps[i] |= one.flow == Flow.JUMP_INDIRECT
                elif one.flow == Flow.CALL and not is_over:
                    call = one.target
                    at = code.place(call)
                    if low <= at < high:
                        called[at >> 3] |= 1 << (at & 7)
                    elif at >= 0:
                        elsewhere.add(at << _KIND_BITS | _CALLED)
                    if at < 0 or not starts[at >> 3] >> (at & 7) & 1:
                        calls.add(i, call, 0 if place >= end or code.padding(place, end) else place)
                elif is_over or one.flow == Flow.JUMP or one.flow == Flow.BRANCH:
                    if code.machine == S390X and one.target == away + place:
                        returns[i] = 1  # a return under a condition
                    if (one.target - begin) & _ALL >= cython.cast(cython.ulonglong, size[i]):
                        ways.add(i, one.target, Way.JUMP)
                        changed = _ALL
                    at = code.place(one.target)
                    if low <= at < high:
                        targets[at >> 3] |= 1 << (at & 7)
                    elif at >= 0:
                        elsewhere.add(at << _KIND_BITS | _TARGET)
            written[i] = _ALL if goes_on and not call else changed
            kept[i] = stored
            highest[i] = cython.cast(cython.uchar, most)
            if call:
                ways.add(i, call, Way.LAST_CALL)
            elif goes_on:
                ways.add(i, begin + cython.cast(cython.ulonglong, size[i]), Way.FALL)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def jumped_into(
    targets: cython.const[cython.uchar][::1], place: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Where something jumps from a place on; the place itself if nothing jumps in front of `end`."""
    at: cython.Py_ssize_t
    for at in range(place, end):
        if targets[at >> 3] >> (at & 7) & 1:
            return at
    return place


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_address(code: Code, one: Instruction, pos: cython.Py_ssize_t) -> cython.bint:
    """Whether an instruction names what is at a place in the data, and not a number that is as large by chance."""
    return code.machine == AARCH64 or one.effect != Effect.CONSTANT or names_function(code, one, pos)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def names_function(code: Code, one: Instruction, pos: cython.Py_ssize_t) -> cython.bint:
    """Whether an instruction makes an address and no number: `lea` with the program counter, or `larl` of s390x.

    Where code cannot be moved, numbers are addresses too. AArch64 makes the addresses of functions in two
    instructions, and those of the bases of jump tables in one.
    """
    if code.machine == AARCH64:
        return one.effect == Effect.ADD
    if not code.moves:
        return True
    first: cython.int = code.data[pos]
    second: cython.int = code.data[pos + 1]
    if code.machine == AMD64:
        if first == REX2:
            first, second = 0x40, code.data[pos + 2]
        return first == 0x8D or (first & 0xF0 == 0x40 and second == 0x8D)
    return first == 0xC0 and second & 15 == 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def constant(one: Instruction, in_two: cython.bint, constants: cython.longlong[::1]) -> cython.ulonglong:
    """The address that an instruction of a pair completes or names alone; 0 for none.

    AArch64 makes an address `in_two` instructions: the first puts its page into a register, which `constants`
    remembers, and the second adds the rest or accesses memory there. What uses such a register forgets it.
    """
    address: cython.longlong = one.offset
    if one.effect == Effect.CONSTANT:
        constants[one.first & 63] = 0
        if in_two and address & _PAGE == 0:
            constants[one.first & 63] = address
            return 0
    elif one.base >= 0:
        if constants[one.base & 63] == 0:
            return 0
        address += constants[one.base & 63]
        constants[one.base & 63] = 0
    return cython.cast(cython.ulonglong, address) if address > _LOWEST else 0
