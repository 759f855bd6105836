"""One instruction, as decoders fill it and the proof reads it (compiled; `_instruction.pxd` has the C types).

Registers have their DWARF numbers, but for the vector registers of AArch64, which are 32 to 63.

length     bytes
flow       a `Flow`; target is where a direct jump, branch or call goes, or what `exrl` of s390x executes
condition  of a branch, a `Condition`
effect     an `Effect`, whose operands are first, second, base, index, scale, offset, width and signed
count      how many registers are loaded or stored: first, second, and from three on those from first on, modulo 16
moved      what loading or storing adds to the base register; `before` says whether the access is at the new place
clobbers   a bit for each other register that is changed; those that the effect gives a value are not among them
"""

import cython

if cython.compiled:
    from cython.cimports.walkback.code.effects import Effect
else:
    from walkback.code.effects import Effect

_ONE = cython.declare(cython.ulonglong, 1)


@cython.final
@cython.cclass
class Instruction:
    """What was decoded last; decoders clear it first."""

    def __init__(self):
        self.length = 0

    def changes(self) -> cython.ulonglong:
        """The registers that it changes, as bits, but for a base that is moved."""
        found: cython.ulonglong = self.clobbers
        i: cython.int
        if self.effect == Effect.NOTHING or self.effect == Effect.STORE:
            return found
        if self.effect == Effect.COMPARE or self.effect == Effect.COMPARE_CONSTANT:
            return found
        if self.count > 2:
            for i in range(self.count):
                found |= _ONE << ((self.first + i) & 15)
            return found
        if self.first >= 0:
            found |= _ONE << self.first
        if self.second >= 0 and (self.effect == Effect.EXCHANGE or self.effect == Effect.LOAD):
            found |= _ONE << self.second
        if self.effect == Effect.LEAVE:
            found |= _ONE << self.base
        return found

    def keeps(self) -> cython.ulonglong:
        """The registers whose values it stores or copies, as bits."""
        found: cython.ulonglong = 0
        i: cython.int
        if self.effect == Effect.STORE:
            for i in range(self.count if self.count > 2 else 1):
                if self.first >= 0:
                    found |= _ONE << ((self.first + i) & 15 if self.count > 2 else self.first)
        if self.second >= 0 and (self.effect == Effect.STORE or self.effect == Effect.COPY):
            found |= _ONE << self.second
        return found
