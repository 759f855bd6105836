"""How the state gets to other places: of the unit, by tables, to where exceptions go on, and out of it (compiled)."""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.base.growing import Growing
    from cython.cimports.walkback.base.searching import last
    from cython.cimports.walkback.proof._labels import Labels
    from cython.cimports.walkback.proof.packed import is_on_stack, moved
    from cython.cimports.walkback.proof.shown import is_as_entered
    from cython.cimports.walkback.proof.values import KIND_MASK, LABEL, LEFT, UNCALLED, Trust, Verdict, Way
else:
    from walkback.base.growing import Growing
    from walkback.base.searching import last
    from walkback.proof._labels import Labels
    from walkback.proof.packed import is_on_stack, moved
    from walkback.proof.shown import is_as_entered
    from walkback.proof.values import KIND_MASK, LABEL, LEFT, UNCALLED, Trust, Verdict, Way

_ALL = cython.declare(cython.ulonglong, WORD)
_ENTRIES = cython.declare(cython.longlong, 1 << 16)
"""Of a jump table."""
_FOLLOWED = cython.declare(cython.longlong, 64)
"""Entries of tables that are followed for each byte of a unit, on average."""
_FRAMED = cython.declare(cython.Py_ssize_t, 1 << 20)
"""Addresses in other ranges that are noted."""
_PUSHED = cython.declare(cython.ulonglong, 1 << 20)
"""Bytes of arguments at most of a call."""


@cython.cclass
class Ways:
    """Those from one instruction; what they lead to outside of the unit is noted."""

    def __init__(self, code, state, unit, rows, ranges):
        self.code, self.state, self.unit, self.rows = code, state, unit, rows
        self.framed, self.by_tables = Growing(1), Growing(3)
        self.labels = Labels(code, unit)
        self.is_entry = memoryview(ranges.is_entry)
        self.pad_first = memoryview(ranges.pad_first)
        self.pad_start, self.pad_end, self.pad_place = (memoryview(column.copy()) for column in ranges.pads.T)
        self.pushed_from, self.pushed = (memoryview(column.copy()) for column in ranges.arguments.T)
        self.way_from, self.way_to = (memoryview(column.copy()) for column in ranges.patched.T)

    def clear(self) -> cython.int:
        """Begin with another unit."""
        self.labels.clear()
        self.leaves_so = self.goes_on = False
        self.followed = 0
        self.caught = 0
        return 0

    def lead_to(self, address: cython.ulonglong, is_sure: cython.bint) -> cython.int:
        """Go to an address; one outside of the unit is another function, or nothing."""
        place: cython.longlong = self.unit.place_of(address)
        if place < 0 or self.unit.base[self.unit.member_of(place)] == place != self.unit.begin:
            self.leave_to(address)
            if place < 0 or self.rows.free:
                self.note_frame(address)
        return self.come_to(place, is_sure) if place >= 0 else self.leave()

    def come_to(self, place: cython.longlong, is_sure: cython.bint) -> cython.int:
        """Go to a place; on a way that may not be one, or into another range, if the state fits there.

        Else it counts only if nothing else leads there.
        """
        is_inside: cython.bint = self.unit.begin <= place < self.unit.end
        if not is_inside:
            self.leave()
        if (is_sure and is_inside) or self.fits(place):
            return self.unit.flow(place)
        return self.unit.put_off(place)

    def fits(self, place: cython.longlong) -> cython.bint:
        """Whether the state fits to the row of a place, perhaps in another range; no row needs what calls overwrite.

        Without rows it has to agree with what is known there.
        """
        if self.rows.free:
            return self.unit.agrees(place)
        home: cython.longlong = self.unit.begin
        self.unit.enter(place)
        verdict: cython.int = self.rows.judge(place)
        self.unit.enter(home)
        return verdict != Verdict.WRONG or self.rows.claims.by_call

    def follow_table(self, number: cython.int, is_relative: cython.bint) -> cython.bint:
        """Go to where the entries of a table lead; returns whether there was one."""
        address: cython.ulonglong = cython.cast(cython.ulonglong, self.state.tables[number, 0])
        width: cython.int = cython.cast(cython.int, abs(self.state.tables[number, 1]))
        room: cython.longlong = self.code.room(address) // width
        limit: cython.longlong = self.state.tables[number, 2]
        counted: cython.bint = 0 < limit <= _ENTRIES
        if not counted:
            limit = min(_ENTRIES, room)
        # Code that was not optimized loads the entry without its sign, and extends it afterwards.
        signed: cython.bint = self.state.tables[number, 1] < 0 or (is_relative and width == 4)
        entry: cython.longlong
        place: cython.longlong
        last_place: cython.longlong = -1
        i: cython.longlong = 0
        self.unit.led_away = self.unit.led_away or not counted
        while i < limit:
            self.followed += 1
            if self.followed > _FOLLOWED * (self.unit.total + 4096):
                self.unit.is_full = True
                break
            if not self.code.has(address + i * width, width):
                break
            entry = self.code.read(width, signed)
            if is_relative:
                entry = entry * self.state.tables[number, 4] + self.state.tables[number, 3]
            place = self.unit.place_of(cython.cast(cython.ulonglong, entry))
            if counted and i >= room and place >= 0 and not self.labels.begins_at(place):
                self.unit.led_away = True
                break  # of the next table: the bound of a former jump may be larger than this one
            if place >= 0 and (place == last_place or counted or self.labels.begins_at(place)):
                if place != last_place:  # else it leads where the entry before does
                    is_label: cython.bint = counted or self.labels.begins[place] == LABEL
                    self.come_to(place, counted) if is_label else self.unit.put_off(place)
                    self.unit.trust = Trust.FULL
                last_place = place
            elif not counted and (place >= 0 or not self.unit.is_described(cython.cast(cython.ulonglong, entry) - 1)):
                break
            elif place < 0:
                self.leave()  # the part of a function, or another one
                self.leave_to(cython.cast(cython.ulonglong, entry))
                if counted:
                    self.note_table(cython.cast(cython.ulonglong, entry) & _ALL)
            i += 1
        return i > 0

    def catch(self) -> cython.int:
        """Where an exception that comes out of a call goes on."""
        first: cython.longlong = self.pad_first[self.unit.number]
        if first == self.pad_first[self.unit.number + 1]:
            return 0
        row: cython.Py_ssize_t = last(self.pad_start, self.pad_start.shape[0], self.address)
        if row < first or self.address >= self.pad_end[row]:
            return 0
        if self.pad_place[row] == self.caught and not self.state.stirred:
            return 0  # as from the call before
        self.caught = self.pad_place[row]
        place: cython.longlong = self.unit.place_of(self.caught)
        if place >= 0:
            value: cython.longlong = self.state.get(self.state.sp)
            taken_off: cython.longlong = self.taken_off()
            if taken_off:
                self.state.set(self.state.sp, moved(value, taken_off))
            self.come_to(place, False)  # calls that let no exception out are in the same table
            if taken_off:
                self.state.set(self.state.sp, value)
        self.state.stirred = False
        return 0

    def taken_off(self) -> cython.longlong:
        """How many bytes of arguments an exception that comes out of this call takes off the stack."""
        row: cython.Py_ssize_t = last(self.pushed_from, self.pushed_from.shape[0], self.address)
        return cython.cast(cython.longlong, self.pushed[row]) if row >= 0 and self.pushed[row] <= _PUSHED else 0

    def go_without_it(self) -> cython.int:
        """Go where Linux may go on without executing the instruction; it may never do so."""
        row: cython.Py_ssize_t = last(self.way_from, self.way_from.shape[0], self.address)
        while row >= 0 and self.way_from[row] == self.address:
            self.lead_to(self.way_to[row], False)
            row -= 1
        return 0

    def is_optional(self, place: cython.longlong) -> cython.bint:
        """Whether Linux may go on without executing the instruction at a place of the range where the walk is."""
        address: cython.ulonglong = self.unit.address[self.unit.member] + cython.cast(
            cython.ulonglong, place - self.unit.begin
        )
        row: cython.Py_ssize_t = last(self.way_from, self.way_from.shape[0], address)
        return row >= 0 and self.way_from[row] == address

    def leave_to(self, address: cython.ulonglong) -> cython.int:
        """Control leaves the range, perhaps to one that nothing calls either, and that begins with the same rule."""
        if not self.rows.free:
            number: cython.Py_ssize_t = last(self.unit.start, self.unit.start.shape[0], address)
            begins: cython.bint = number >= 0 and self.unit.start[number] == address
            alike: cython.bint = begins and (self.is_entry[number] == 0 or self.is_entry[number] == UNCALLED)
            self.note_leaving(alike and self.rows.begin_alike(number, self.unit.number))
        return 0

    def leave(self) -> cython.int:
        """Control leaves the range: if not on its own stack, the function goes on with another."""
        kind: cython.int = self.state.get(self.state.sp) & KIND_MASK
        if not is_on_stack(kind):
            self.unit.switched[self.unit.member] |= LEFT
        return 0

    def note_leaving(self, goes_on: cython.bint) -> cython.int:
        """Control leaves: as functions do, or it `goes_on` as handlers of interpreters, which are entered by jumps."""
        if is_as_entered(self.state, self.code.machine):
            self.goes_on = self.goes_on or goes_on
            self.leaves_so = self.leaves_so or not goes_on
        return 0

    def note_frame(self, address: cython.ulonglong) -> cython.int:
        """Control goes to another range: to a function, unless there is more on the stack than a call leaves there."""
        if (
            self.state.get(self.state.sp) != self.state.entry_stack()
            and (self.rows.free or not self.unit.assumed)
            and self.framed.used < _FRAMED
        ):
            self.framed.add(address)
        return 0

    def note_table(self, address: cython.ulonglong) -> cython.int:
        """A table surely leads to another range: to a part of this function, if no other begins there."""
        self.note_frame(address)
        if self.by_tables.used < 3 * _FRAMED:
            self.by_tables.add(self.unit.number, address, Way.JUMP)
        return 0
