"""The rules that the code itself shows, and how functions leave: what tables are made of (compiled)."""

from typing import NamedTuple

import cython
import numpy as np

from walkback.base.arrays import U16, U64
from walkback.base.growing import joined
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import holds
    from cython.cimports.walkback.code.effects import Effect, Flow
    from cython.cimports.walkback.code.machines import AMD64, S390X
    from cython.cimports.walkback.proof._along import Along
    from cython.cimports.walkback.proof._leaving import Leaving
    from cython.cimports.walkback.proof._walk import Walk
    from cython.cimports.walkback.proof.brief import accessed, brief_at, changes, skim
    from cython.cimports.walkback.proof.packed import moved
    from cython.cimports.walkback.proof.shown import (
        cfa_word,
        in_frame,
        is_as_entered,
        is_callers,
        is_passed,
        not_as_entered,
        rest_word,
        saves,
    )
    from cython.cimports.walkback.proof.values import AWAY, LEFT, Seen
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import holds
    from walkback.code.effects import Effect, Flow
    from walkback.code.machines import AMD64, S390X
    from walkback.proof._along import Along
    from walkback.proof._leaving import Leaving
    from walkback.proof._walk import Walk
    from walkback.proof.brief import accessed, brief_at, changes, skim
    from walkback.proof.packed import moved
    from walkback.proof.shown import (
        cfa_word,
        in_frame,
        is_as_entered,
        is_callers,
        is_passed,
        not_as_entered,
        rest_word,
        saves,
    )
    from walkback.proof.values import AWAY, LEFT, Seen

_WIDTHS = 5, 3, 3
"""Of the rows, tails and calls that are found."""


class Found(NamedTuple):
    """What the code of all ranges shows."""

    rows: U64
    """A range, an address, and two words of the rule that holds from there on, 0 for none.

    And the range from whose beginning control came there.
    """
    seen: U16
    """How each range leaves: bits of `Seen`."""
    tails: U64
    """A range, an address to which it jumps, and 1 if the stack is as it was at its entry, else 0.

    None of them is taken with an index that is out of its bounds. Within a unit these are jumps between ranges, and
    within those that are no entries.
    """
    calls: U64
    """A range, an address that it calls, and 1 if the return address goes where the ABI says, else 0."""
    ends: U64
    """Where the code of each range ends, without the padding behind it."""
    straight: U64
    """How far it is surely what begins there: up to code that is not reached, or behind a system call."""


def found_rules(walks, machine, ranges, unit_first, wanted, catching):
    """Walk through the units that are `wanted`; what is `catching` is called only where exceptions go on."""
    seen = np.zeros(len(ranges.start), np.uint16)
    ends, straight = ranges.start.copy(), np.zeros(len(ranges.start), np.uint64)

    def found(walk, piece):
        first, end = piece
        growing = [Growing(width) for width in _WIDTHS]
        units = unit_first[first : end + 1]
        rows, tails, calls = growing
        leaving = Leaving(walk, seen, tails)
        _found_rules(
            walk, Along(machine), leaving, units, wanted[first:end], catching, seen, ends, straight, rows, calls
        )
        return [rows.rows() for rows in growing]

    rows, tails, calls = joined(walks.each(found), _WIDTHS)
    return Found(rows, seen, tails, calls, ends, np.where(straight == 0, ends, straight))


@takes_views
def _found_rules(
    walk: Walk,
    along: Along,
    leaving: Leaving,
    unit_first: cython.const[cython.longlong][::1],
    wanted: cython.const[cython.uchar][::1],
    catching: cython.const[cython.ulonglong][::1],
    seen: cython.ushort[::1],
    ends: cython.ulonglong[::1],
    straight: cython.ulonglong[::1],
    rows: Growing,
    calls: Growing,
):
    group: cython.Py_ssize_t
    i: cython.Py_ssize_t
    first: cython.Py_ssize_t
    end: cython.Py_ssize_t
    with cython.nogil:
        for group in range(unit_first.shape[0] - 1):
            if not wanted[group]:
                continue
            first = cython.cast(cython.Py_ssize_t, unit_first[group])
            end = cython.cast(cython.Py_ssize_t, unit_first[group + 1])
            if walk.follow(first, end):
                for i in range(end - first):
                    _follow_range(walk, along, leaving, i, catching, seen, ends, straight, rows, calls)
            else:
                for i in range(first, end):
                    seen[walk.unit.members[i]] |= Seen.COMPLEX
                    straight[walk.unit.members[i]] = walk.unit.start[walk.unit.members[i]]
                    ends[walk.unit.members[i]] += cython.cast(cython.ulonglong, walk.unit.size[walk.unit.members[i]])


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _follow_range(
    walk: Walk,
    along: Along,
    leaving: Leaving,
    member: cython.Py_ssize_t,
    catching: cython.const[cython.ulonglong][::1],
    seen: cython.ushort[::1],
    ends: cython.ulonglong[::1],
    straight: cython.ulonglong[::1],
    rows: Growing,
    calls: Growing,
) -> cython.int:
    """The rules of one range, in the order of its code."""
    number: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, walk.unit.members[walk.unit.first + member])
    place: cython.longlong = walk.unit.base[member]
    end: cython.longlong = walk.unit.base[member + 1]
    away: cython.ulonglong = walk.unit.start[number] - cython.cast(cython.ulonglong, place)
    block: cython.Py_ssize_t = -1
    root: cython.Py_ssize_t = number
    former_root: cython.Py_ssize_t = number
    expected: cython.longlong = -1
    cfa: cython.ulonglong = 0
    rest: cython.ulonglong = 0
    former_cfa: cython.ulonglong = 0
    former_rest: cython.ulonglong = 0
    reached: cython.longlong = place
    size: cython.int
    brief: cython.uint
    followed: cython.int
    at: cython.Py_ssize_t
    code_at: cython.longlong = walk.unit.pos[number] - place
    is_first: cython.bint = walk.unit.owner[place] != 0
    lost: cython.ulonglong
    body: cython.longlong = 0
    is_saving: cython.bint = False
    along.begin(walk.state.preserved)
    if walk.unit.switched[member] == AWAY | LEFT:
        seen[number] |= Seen.SWITCHES
    while place < end:
        if not walk.unit.owner[place]:
            size = walk.code.unused(
                cython.cast(cython.Py_ssize_t, code_at + place), cython.cast(cython.Py_ssize_t, code_at + end)
            )
            if not size and former_cfa:
                rows.add(number, away + reached, 0, 0, number)
                former_cfa = former_rest = 0
            if not size:
                if not straight[number]:
                    straight[number] = away + place
                ends[number] = away + place + 1
            place += max(size, 1)
            continue
        if walk.unit.owner[place] - 1 != block or place != expected:
            falls: cython.bint = place == expected and not _ends(walk.edges.one.flow) and not straight[number]
            if falls and is_as_entered(walk.state, walk.code.machine) and not leaving.differs(place, block):
                leaving.note_joining(root, walk.unit.owner[place] - 1)
            block = walk.unit.owner[place] - 1
            walk.unit.take_up(block)
            walk.go_on(walk.unit.block_place[block], place)
            root = leaving.root(block)
            along.begin_block()
            walk.state.changed = True
        else:
            at = cython.cast(cython.Py_ssize_t, code_at + place)
            brief = brief_at(walk.code.brief, at)
            if brief and not walk.state.changed and not walk.asks:
                followed = accessed(walk.state, brief, walk.code.machine)
                size = skim(walk.state, brief, walk.code.machine)
                if size:
                    if is_passed(walk.state, followed):
                        seen[root] |= Seen.FOLLOWS
                    along.given |= changes(brief, walk.code.machine)
                    expected = place + size
                    place = reached = min(expected, end)
                    ends[number] = away + place
                    continue
            walk.read(place)
        if walk.state.changed or walk.edges.one.flow == Flow.BAD:
            cfa = cfa_word(walk.state)
            rest = rest_word(walk.state) if cfa and walk.edges.one.flow != Flow.BAD else 0
            if not rest:
                cfa = 0
            is_saving = is_first and saves(walk.state)
            walk.state.changed = False
        if cfa and _overwrites_return(walk):
            cfa = rest = 0
            walk.state.changed = True
        if cfa != former_cfa or rest != former_rest or (cfa and root != former_root):
            rows.add(number, away + place, cfa, rest, root)
            former_cfa, former_rest, former_root = cfa, rest, root
        if is_first and is_saving:
            seen[number] |= Seen.SAVES
        if walk.edges.one.flow != Flow.NEXT:
            is_first = is_first and walk.edges.one.flow == Flow.BRANCH
            if root == number and (
                walk.edges.one.flow == Flow.JUMP_INDIRECT or walk.edges.one.flow == Flow.CALL_INDIRECT
            ):
                along.note_way(walk.edges.one)
            if walk.edges.one.flow == Flow.SYSTEM:
                along.ask(walk.code.data, cython.cast(cython.Py_ssize_t, walk.edges.pos))
            if walk.edges.one.flow == Flow.CALL:
                calls.add(root, walk.edges.one.target, _is_usual_call(walk))
                # The state is that while the function runs that is called.
                if not body:
                    body = walk.state.values[walk.state.sp]
                if holds(catching, walk.edges.one.target) and walk.state.values[walk.state.sp] != body:
                    seen[number] |= Seen.CATCHES
            leaving.note(block)
        if is_first and along.saves_more(walk.edges.one):
            seen[number] |= Seen.SPARES
        along.note(walk.edges.one, walk.asks)
        expected = place + max(walk.unit.length[place], 1)
        if is_passed(walk.state, walk.edges.one.base):
            seen[root] |= Seen.FOLLOWS
        lost = not_as_entered(walk.state, walk.edges.one.changes()) if _loads_own(walk) else 0
        if not _ends(walk.edges.one.flow):  # else a block ends here, and the next has a state of its own
            walk.edges.step()
        if lost and lost != not_as_entered(walk.state, lost):
            seen[root] |= Seen.RESTORES
        place = reached = min(expected, end)
        ends[number] = away + place
        if walk.edges.one.flow == Flow.SYSTEM and not straight[number]:
            straight[number] = away + place
    if former_cfa:
        rows.add(number, away + reached, 0, 0, number)
    if walk.asks and along.asks_for_fork():
        seen[number] |= Seen.FORKS
    if along.is_passed_more():
        seen[number] |= Seen.GOES_THROUGH
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _loads_own(walk: Walk) -> cython.bint:
    """Whether an instruction loads from a place that is not in the caller's frame."""
    base: cython.int = walk.edges.one.base
    if walk.edges.one.effect != Effect.LOAD:
        return False
    return base < 0 or not is_callers(moved(walk.state.get(base), walk.edges.one.offset))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overwrites_return(walk: Walk) -> cython.bint:
    """Whether a call overwrites the return address: then no rule that has it in its register holds in what it calls."""
    if walk.code.machine == AMD64 or (walk.edges.one.flow != Flow.CALL and walk.edges.one.flow != Flow.CALL_INDIRECT):
        return False
    return walk.state.is_return_address(walk.state.ra) and in_frame(walk.state, walk.state.ra) == 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_usual_call(walk: Walk) -> cython.bint:
    """Whether a call puts the return address where functions expect it: on s390x it may be any register."""
    return walk.code.machine != S390X or (walk.edges.one.clobbers >> walk.state.ra) & 1 != 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _ends(flow: cython.int) -> cython.bint:
    """Whether control does not go on behind an instruction."""
    return flow == Flow.JUMP or flow == Flow.JUMP_INDIRECT or flow == Flow.RETURN
