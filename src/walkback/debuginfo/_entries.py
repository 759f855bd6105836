"""What the entries of units say of code (compiled).

Entries stand in the order of a tree: behind a function those of the calls that are inlined in it. So for one address
the entries around it come outermost first.
"""

import cython
import numpy as np

from walkback.base.bits import WORD
from walkback.base.views import takes_views

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.debuginfo import layout
    from cython.cimports.walkback.debuginfo._unit import Unit
    from cython.cimports.walkback.debuginfo.values import Kind
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import last
    from walkback.debuginfo import layout
    from walkback.debuginfo._unit import Unit
    from walkback.debuginfo.values import Kind

_ALL = cython.declare(cython.ulonglong, WORD)
_DEEPEST = cython.declare(cython.int, 256)
"""Entries around an entry."""
_TYPE = cython.declare(cython.uchar, 1)
_NAMESPACE = cython.declare(cython.uchar, 2)
_FUNCTION = cython.declare(cython.uchar, 3)
"""What is around an entry."""
_MOST_CALLS = cython.declare(cython.Py_ssize_t, 64)
"""Entries around an address, on average; of each unit some more may be found."""
_MORE_CALLS = cython.declare(cython.Py_ssize_t, 1 << 16)


def units(unit):
    """All units of a section, and the code that they have.

    Returns rows of units: place, end, place of the line number program, folder, and name of the split file; of what
    they are counted from: lowest address, base of addresses, base of ranges, identifier, and 1 where no entry can be
    read; and of their code: its first address, the one behind, and the number of the unit.
    """
    found, bases, code = Growing(5), Growing(5), Growing(3)
    _units(unit, found, bases, code)
    return found.rows(), bases.rows(), code.rows()


@takes_views
def _units(unit: Unit, found: Growing, bases: Growing, code: Growing):
    at: cython.Py_ssize_t = 0
    number: cython.ulonglong = 0
    with cython.nogil:
        while unit.open(at):
            at = unit.end
            if unit.kind == layout.DW_UT_TYPE or unit.kind == layout.DW_UT_SPLIT_TYPE:
                unit.kind = 0
            if not unit.is_split:
                unit.low = unit.addr_base = unit.ranges_base = 0
            is_read: cython.bint = unit.open_root()
            found.add(
                cython.cast(cython.ulonglong, unit.start),
                cython.cast(cython.ulonglong, unit.end),
                unit.program if unit.kind else _ALL,
                unit.folder if unit.kind else 0,
                unit.split_name if unit.kind else 0,
            )
            bases.add(unit.low, unit.addr_base, unit.ranges_base, unit.id, unit.kind != 0 and not is_read)
            if is_read and (unit.list_kind or unit.high_kind):
                unit.open_ranges()
                while unit.next_range():
                    if unit.begin < unit.behind:
                        code.add(unit.begin, unit.behind, number)
            number += 1


def scopes(unit, place, addresses, lowest):
    """The functions and inlined calls around addresses, which rise, in the unit at a place.

    Rows of the number of an address, the place of the entry, file and line of the call, and whether it is inlined;
    for one address outermost first. No code is below the `lowest` address. Returns these, and the place of the entry
    from which on none can be read, or -1.
    """
    found = Growing(5)
    function = np.full(len(addresses), WORD, np.uint64)
    above = np.zeros(_DEEPEST + 1, np.uint64)
    unreadable = _scopes(unit, place, addresses, lowest, function, above, found)
    return found.rows(), unreadable


@takes_views
def _scopes(
    unit: Unit,
    place: cython.Py_ssize_t,
    addresses: cython.const[cython.ulonglong][::1],
    lowest: cython.ulonglong,
    function: cython.ulonglong[::1],
    above: cython.ulonglong[::1],
    found: Growing,
):
    depth: cython.int = 0
    unreadable: cython.Py_ssize_t = -1
    most: cython.Py_ssize_t = (_MOST_CALLS * addresses.shape[0] + _MORE_CALLS) * 5
    with cython.nogil:
        if unit.open(place) and unit.open_root() and unit.has_children:
            depth = 1
            above[1] = 0
        while depth > 0 and found.used < most:
            tag: cython.int = unit.next(layout.DW_TAG_SUBPROGRAM, layout.DW_TAG_INLINED_SUBROUTINE)
            if tag < 0:
                # At the end of the unit, the ends of lists may be left out.
                unreadable = unit.place if unit.place < unit.end else -1
                break
            if unit.tag == 0:
                depth -= 1
                continue
            own: cython.ulonglong = above[depth]
            if tag == layout.DW_TAG_SUBPROGRAM:
                own = cython.cast(cython.ulonglong, unit.place)
            if tag == layout.DW_TAG_SUBPROGRAM or tag == layout.DW_TAG_INLINED_SUBROUTINE:
                if unit.list_kind or unit.high_kind:
                    _match(unit, addresses, lowest, own, tag == layout.DW_TAG_SUBPROGRAM, function, found, most)
            if unit.has_children:
                if depth == _DEEPEST:
                    break
                depth += 1
                above[depth] = own
    return unreadable


@cython.cfunc
@cython.nogil
@cython.exceptval(-1, check=False)
def _match(
    unit: Unit,
    addresses: cython.const[cython.ulonglong][::1],
    lowest: cython.ulonglong,
    own: cython.ulonglong,
    begins: cython.bint,
    function: cython.ulonglong[::1],
    found: Growing,
    most: cython.Py_ssize_t,
) -> cython.int:
    """Note the addresses that an entry has; where several functions have one it is of the first."""
    count: cython.Py_ssize_t = addresses.shape[0]
    i: cython.Py_ssize_t
    unit.open_ranges()
    while unit.next_range():
        if unit.begin < lowest or unit.begin >= unit.behind:
            continue
        i = last(addresses, count, unit.begin - 1) + 1 if unit.begin else 0
        while i < count and addresses[i] < unit.behind and found.used < most:
            if begins and function[i] == _ALL:
                function[i] = own
            if function[i] == own:
                found.add(
                    cython.cast(cython.ulonglong, i),
                    cython.cast(cython.ulonglong, unit.place),
                    unit.call_file,
                    unit.call_line,
                    not begins,
                )
            i += 1
    return 0


def names(unit, starts, places):
    """For entries at places, which rise, two texts and what else may name them; `starts` are those of their units.

    Rows of the linkage name, the name, another entry that this one is an instance of, and its kind.
    """
    found = Growing(4)
    _names(unit, starts, places, found)
    return found.rows()


@takes_views
def _names(
    unit: Unit,
    starts: cython.const[cython.ulonglong][::1],
    places: cython.const[cython.ulonglong][::1],
    found: Growing,
):
    i: cython.Py_ssize_t
    opened: cython.Py_ssize_t = -1
    is_open: cython.bint = False
    with cython.nogil:
        for i in range(places.shape[0]):
            start: cython.Py_ssize_t = cython.cast(cython.Py_ssize_t, starts[i])
            if start != opened:
                opened = start
                is_open = unit.open(start) and unit.open_root()
            unit.forget()
            if is_open:
                unit.info.move(cython.cast(cython.Py_ssize_t, places[i]), unit.end)
                if unit.next(0, 0) <= 0:
                    unit.forget()
            is_more: cython.bint = unit.origin_kind != Kind.NOTHING
            found.add(
                unit.linkage_name, unit.name, unit.origin if is_more else 0, cython.cast(cython.int, unit.origin_kind)
            )


def parents(unit, place, wanted):
    """For entries at places, which rise, in the unit at a place: rows of a name around one, outermost first.

    A row has the number of the entry, a text, which is 0 where there is no name, and whether it is that of a namespace.
    Functions are there, if they have a name, where a type stands in them, as that of a lambda.
    """
    found = Growing(3)
    texts = np.zeros(_DEEPEST + 1, np.uint64)
    kinds = np.zeros(_DEEPEST + 1, np.uint8)
    _parents(unit, place, wanted, texts, kinds, found)
    return found.rows()


@takes_views
def _parents(
    unit: Unit,
    place: cython.Py_ssize_t,
    wanted: cython.const[cython.ulonglong][::1],
    texts: cython.ulonglong[::1],
    kinds: cython.uchar[::1],
    found: Growing,
):
    depth: cython.int = 0
    level: cython.int
    i: cython.Py_ssize_t = 0
    with cython.nogil:
        if unit.open(place) and unit.open_root() and unit.has_children:
            depth = 1
            kinds[1] = 0
        while depth > 0 and i < wanted.shape[0]:
            tag: cython.int = unit.next(0, 0)
            if tag < 0:
                break
            while i < wanted.shape[0] and wanted[i] < cython.cast(cython.ulonglong, unit.place):
                i += 1
            if tag == 0:
                depth -= 1
                continue
            if i < wanted.shape[0] and wanted[i] == cython.cast(cython.ulonglong, unit.place):
                type_at: cython.int = depth
                while type_at > 1 and kinds[type_at] != _TYPE:
                    type_at -= 1
                for level in range(2, depth + 1):
                    if kinds[level] == _FUNCTION and (level > type_at or not texts[level]):
                        continue
                    if kinds[level]:
                        found.add(cython.cast(cython.ulonglong, i), texts[level], kinds[level] == _NAMESPACE)
                i += 1
            if unit.has_children:
                most: cython.ulonglong = cython.cast(cython.ulonglong, unit.end)
                if i < wanted.shape[0]:
                    most = min(most, wanted[i])
                if cython.cast(cython.ulonglong, unit.info.pos) < unit.sibling <= most:
                    unit.info.pos = cython.cast(cython.Py_ssize_t, unit.sibling)  # nothing wanted is in it
                    continue
                if depth == _DEEPEST:
                    break
                depth += 1
                texts[depth] = unit.name
                if tag == layout.DW_TAG_NAMESPACE:
                    kinds[depth] = _NAMESPACE
                elif tag == layout.DW_TAG_SUBPROGRAM:
                    kinds[depth] = _FUNCTION
                elif (
                    tag == layout.DW_TAG_STRUCTURE_TYPE
                    or tag == layout.DW_TAG_CLASS_TYPE
                    or tag == layout.DW_TAG_UNION_TYPE
                ):
                    kinds[depth] = _TYPE
                else:
                    kinds[depth] = 0
