"""From registers and memory to stacks (compiled).

One walk is a loop: find the step of an address, write the frame, follow the step. Everything that a step needs stands
in the columns of a `Pool`; numbers from the input are used only after they are checked against them.
"""

import cython

from walkback.base.bits import WORD

if cython.compiled:
    from cython.cimports.walkback.stacks.stacks import End, FrameKind
    from cython.cimports.walkback.walking._frame import Frame
    from cython.cimports.walkback.walking._memory import Segments
    from cython.cimports.walkback.walking._tables import Tables
    from cython.cimports.walkback.walking.abi import BuiltIn, Flag
else:
    from walkback.stacks.stacks import End, FrameKind
    from walkback.walking._frame import Frame
    from walkback.walking._memory import Segments
    from walkback.walking._tables import Tables
    from walkback.walking.abi import BuiltIn, Flag

_WORD = cython.declare(cython.ulonglong, WORD)
WANTED = 254
"""In the place of an `End`: the table of a module is wanted first."""
_WANTED = cython.declare(cython.int, WANTED)

# Of each kind of trampoline in `patterns`
_WORDS = cython.declare(cython.Py_ssize_t, 4)
_BEGINNING = cython.declare(cython.Py_ssize_t, 0)
_REST = cython.declare(cython.Py_ssize_t, 1)
"""8 bytes from the second one on."""
_BEGINNING_MASK = cython.declare(cython.Py_ssize_t, 2)
_REST_MASK = cython.declare(cython.Py_ssize_t, 3)


@cython.final
@cython.cclass
class Walk:
    """Walks samples; of use in one thread at a time."""

    def __init__(self, columns, settings):
        """`columns` are the arrays of a pool, spaces and memory by their names; `settings` the numbers."""
        columns = {name: memoryview(column) for name, column in columns.items()}
        self.memory = Segments(columns, settings["big"])
        self.tables = Tables(columns, settings["tables"])
        self.frame = Frame(columns, settings, self.memory, self.tables)
        self.patterns = columns["patterns"]
        self.by_tables = settings["tables"]
        self.by_chains = settings["chains"]
        self.tries = settings["tries"]
        self.limit = settings["limit"]

    def run(self, order, position, samples, found, ends):
        """Walk the samples that `order` names, from `position` on, until the room for frames is used up.

        `samples` are the arrays registers (flat), known, space, first segment, end segment and cut; `found` those for
        frames: pc, kind, how, module, address and sp; `ends` those for stacks: first (one more), end and at.

        Returns the position reached.
        """
        return self._run(memoryview(order), position, *map(memoryview, (*samples, *found, *ends)))

    def _run(
        self,
        order: cython.const[cython.longlong][::1],
        position: cython.Py_ssize_t,
        registers: cython.const[cython.ulonglong][::1],
        known: cython.const[cython.ulonglong][::1],
        space: cython.const[cython.int][::1],
        first_segment: cython.const[cython.longlong][::1],
        end_segment: cython.const[cython.longlong][::1],
        cut: cython.const[cython.ulonglong][::1],
        pc: cython.ulonglong[::1],
        kind: cython.uchar[::1],
        how: cython.uchar[::1],
        module: cython.int[::1],
        address: cython.ulonglong[::1],
        sp: cython.ulonglong[::1],
        first: cython.longlong[::1],
        end: cython.uchar[::1],
        at: cython.ulonglong[::1],
    ):
        i: cython.Py_ssize_t
        j: cython.Py_ssize_t = position
        used: cython.Py_ssize_t = first[position]
        lookup: cython.ulonglong
        step: cython.Py_ssize_t
        goes_on: cython.bint
        with cython.nogil:
            while j < order.shape[0] and pc.shape[0] - used >= self.limit:
                i = cython.cast(cython.Py_ssize_t, order[j])
                self.memory.use(first_segment[i], end_segment[i], cut[i])
                self.tables.use(space[i])
                goes_on = self.frame.begin(registers, i, known[i])
                while goes_on:
                    lookup = self.frame.at
                    if self.frame.kind == FrameKind.RETURN:
                        lookup = (lookup - 1) & _WORD
                    step = self.tables.find(lookup, self.frame.kind == FrameKind.RETURN)
                    pc[used] = self.frame.at
                    kind[used] = cython.cast(cython.uchar, self.frame.kind)
                    how[used] = cython.cast(cython.uchar, self.frame.how)
                    module[used] = self.tables.module
                    address[used] = lookup
                    if self.tables.module >= 0:
                        address[used] = (lookup - self.tables.bias) & _WORD
                    sp[used] = self.frame.stack_pointer()
                    used += 1
                    goes_on = self._go_on(step, used - first[j])
                if self.frame.why == _WANTED:
                    used = cython.cast(cython.Py_ssize_t, first[j])
                end[j] = cython.cast(cython.uchar, self.frame.why)
                at[j] = self.frame.at
                j += 1
                first[j] = used
        return j

    def _go_on(self, step: cython.Py_ssize_t, depth: cython.Py_ssize_t) -> cython.bint:
        """Come to the caller by the step of the tables, -1 for none; otherwise the frame has why the walk ends."""
        if self.tables.is_missing:
            self.frame.why = _WANTED
        elif step >= 0 and self.tables.step_flags[step] & Flag.OUTERMOST:
            self.frame.why = End.GUESSED if self.frame.guessed else End.COMPLETE
        elif depth >= self.limit:
            self.frame.why = End.LIMIT
        else:
            if step < 0:
                step = self._unknown()
            if step < 0:
                self.frame.why = End.NOT_CODE if self.tables.map < 0 else End.NO_TABLE
                return False
            if self.frame.follow(step):
                return True
            return self._may_chain(step) and self.frame.follow(BuiltIn.FP_GUESS)
        return False

    def _may_chain(self, step: cython.Py_ssize_t) -> cython.bint:
        """Whether the frame pointer may do where a step could not be followed."""
        if not self.by_chains or self.tables.step_flags[step] & Flag.GUESS:
            return False
        return self.frame.why == End.INEXPRESSIBLE or (self.frame.why == End.UNKNOWN_REGISTER and not self.tries)

    def _unknown(self) -> cython.Py_ssize_t:
        """The step where no table has one; -1 if there is none."""
        kind: cython.Py_ssize_t
        is_return: cython.bint = self.frame.kind == FrameKind.RETURN
        if self.by_tables and is_return:
            for kind in range(self.patterns.shape[0] // _WORDS):
                # The kernel of some machines puts the code that handlers return to on the stack.
                if self.tables.module < 0 and self._is_trampoline(kind):
                    return BuiltIn.CONTEXT + kind
                # The kernel's own code calls nobody, so this is where a handler returns to.
                if self.tables.is_unseen() and self.frame.leads_to_code(BuiltIn.CONTEXT + kind):
                    return BuiltIn.CONTEXT + kind
        if not self.by_chains:
            return -1
        if self.tables.map < 0:
            # Only a jump can have led to where no code is: nothing was done there yet.
            return BuiltIn.ENTRY if not is_return and self.by_tables else -1
        return BuiltIn.FP_DECLARED if self.tables.is_declared() else BuiltIn.FP_GUESS

    def _is_trampoline(self, kind: cython.Py_ssize_t) -> cython.bint:
        """Whether the code at the return address is that of a trampoline."""
        place: cython.Py_ssize_t = _WORDS * kind
        mask: cython.ulonglong = self.patterns[place + _BEGINNING_MASK]
        if not self.memory.load_code(self.frame.at, 8 if mask >> 16 else 2):
            return False
        if self.memory.value & mask != self.patterns[place + _BEGINNING]:
            return False
        mask = self.patterns[place + _REST_MASK]
        if not mask:
            return True
        if not self.memory.load_code((self.frame.at + 1) & _WORD, 8):
            return False
        return self.memory.value & mask == self.patterns[place + _REST]
