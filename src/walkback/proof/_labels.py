"""Where instructions of a unit begin if its code is read from one end to the other, and which are labels (compiled)."""

import cython
import numpy as np

if cython.compiled:
    from cython.cimports.walkback.code._instruction import Instruction
    from cython.cimports.walkback.code.decoding import decode
    from cython.cimports.walkback.code.effects import Flow
    from cython.cimports.walkback.proof.brief import brief_at, length_of
    from cython.cimports.walkback.proof.values import BEGINS, LABEL
else:
    from walkback.code._instruction import Instruction
    from walkback.code.decoding import decode
    from walkback.code.effects import Flow
    from walkback.proof.brief import brief_at, length_of
    from walkback.proof.values import BEGINS, LABEL


@cython.final
@cython.cclass
class Labels:
    """Those of one unit after the other, marked when they are first asked for."""

    def __init__(self, code, unit):
        self.code, self.unit, self.one = code, unit, Instruction()
        self.begins = memoryview(np.zeros(0, np.uint8))
        self.swept = False

    def clear(self) -> cython.int:
        """Begin with another unit."""
        self.swept = False
        return 0

    def begins_at(self, place: cython.longlong) -> cython.bint:
        """Whether an instruction begins at a place if the code is read from one end to the other."""
        if not self.swept:
            if self.begins.shape[0] < self.unit.total:
                self.room(cython.cast(cython.Py_ssize_t, self.unit.total + self.unit.total // 4))
            self.sweep()
            self.swept = True
        with cython.boundscheck(False):
            return self.begins[place] != 0

    def sweep(self) -> cython.int:
        """Mark where instructions begin, and which of them are labels.

        Behind a table whose length is not known are bytes that are no entries: they lead to any instruction.
        """
        i: cython.Py_ssize_t
        number: cython.longlong
        place: cython.longlong
        pos: cython.longlong
        mark: cython.uchar
        with cython.boundscheck(False):
            for i in range(cython.cast(cython.Py_ssize_t, self.unit.total)):
                self.begins[i] = 0
            for i in range(self.unit.count):
                number = self.unit.members[self.unit.first + i]
                place = self.unit.base[i]
                pos = self.unit.pos[number] - place
                mark = LABEL
                while place < self.unit.base[i + 1]:
                    is_target: cython.bint = self.code.targets[(pos + place) >> 3] >> ((pos + place) & 7) & 1
                    self.begins[place] = LABEL if is_target else mark
                    brief: cython.uint = brief_at(self.code.brief, cython.cast(cython.Py_ssize_t, pos + place))
                    if brief:
                        place += length_of(brief, self.code.machine)
                        mark = BEGINS
                        continue
                    decode(self.code.machine, self.code.bytes, pos + place, pos + self.unit.base[i + 1], 0, self.one)
                    place += self.one.length
                    mark = BEGINS if self.one.flow == Flow.NEXT or self.one.flow == Flow.BRANCH else LABEL
        return 0

    def room(self, size: cython.Py_ssize_t) -> cython.int:
        """Make room for the bytes of a unit."""
        with cython.gil:
            self.begins = memoryview(np.zeros(size, np.uint8))
        return 0
