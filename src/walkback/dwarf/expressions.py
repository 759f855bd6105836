"""DWARF expressions that have a meaning in the table.

Compilers and linkers write few: a value relative to a register or the CFA, one load from such a place, and the CFA of
AMD64 procedure linkage tables, which depends on the place in an entry. They are worked out with symbols instead of
numbers; what needs more is not understood, and says so by being None.
"""

from __future__ import annotations

from dataclasses import replace

from walkback.base.arch import ByteOrder
from walkback.base.dataclass import dataclass
from walkback.dwarf import layout as dw
from walkback.dwarf.rulewords import LARGEST_OFFSET, REGISTER_MASK
from walkback.table.rule import Part, PartKind

CFA_REGISTER = -1
"""In a `Value`: relative to the CFA."""
NO_REGISTER = -2
"""In a `Value`: a plain number."""


_LONGEST = 256
"""Bytes of an expression; what is longer is not understood."""
_MOST = 64
"""Operations; what is longer is not understood."""
_SIZES = {
    code: (1 << number // 2, bool(number % 2))
    for number, code in enumerate(range(dw.DW_OP_CONST1U, dw.DW_OP_CONST8S + 1))
}
"""Of DW_OP_const1u to DW_OP_const8s: bytes of the number, and whether it is signed."""


@dataclass(frozen=True, slots=True)
class Value:
    """register + offset, or what is stored there."""

    register: int
    offset: int
    loaded: bool = False


@dataclass(frozen=True, slots=True)
class ExpressionSteps:
    """The CFA in a table of equal blocks of code: register + offset, and from `start` on in each block `more`."""

    register: int
    offset: int
    block: int
    start: int
    more: int


class _NotUnderstoodError(Exception):
    """An operation, or a use of one, that the table has no words for."""


def steps(data: bytes, pc_register: int, byteorder: ByteOrder) -> ExpressionSteps | None:
    """The CFA rule of a procedure linkage table: `sp + a + (((pc & mask) >= start) << n)`."""
    operations = _operations(data, byteorder)
    if operations is None or len(operations) != 9:
        return None
    codes = [code for code, _ in operations]
    base, pc, mask, _, start, _, shift, _, _ = (numbers for _, numbers in operations)
    wanted = [dw.DW_OP_BREG0, dw.DW_OP_BREG0, dw.DW_OP_CONSTU, dw.DW_OP_AND, dw.DW_OP_CONSTU]
    wanted += [dw.DW_OP_GE, dw.DW_OP_CONSTU, dw.DW_OP_SHL, dw.DW_OP_PLUS]
    if codes != wanted or pc != (pc_register, 0) or not 0 <= shift[0] <= 16 or not _in_range(*base):
        return None
    block = mask[0] + 1
    if block & mask[0] or not 0 < start[0] < block <= 1 << 16:
        return None
    return ExpressionSteps(base[0], base[1], block, start[0], 1 << shift[0])


def value(data: bytes, byteorder: ByteOrder, *, cfa: bool) -> Value | None:
    """What an expression computes; with `cfa` that stands on the stack before it, as in the rules of registers."""
    operations = _operations(data, byteorder)
    if operations is None:
        return None
    stack = [Value(CFA_REGISTER, 0)] if cfa else []
    try:
        for code, numbers in operations:
            _apply(stack, code, numbers)
    except (_NotUnderstoodError, IndexError):
        return None
    return stack[-1] if stack else None


def chain(data: bytes, byteorder: ByteOrder) -> tuple[int, list[int]] | None:
    """A register and offsets: one before each load from there on, and one behind the last."""
    operations = _operations(data, byteorder)
    if not operations or operations[0][0] != dw.DW_OP_BREG0:
        return None
    register, offset = operations[0][1]
    offsets = [offset]
    for code, numbers in operations[1:]:
        if code == dw.DW_OP_DEREF:
            offsets.append(0)
        elif code == dw.DW_OP_PLUS_UCONST:
            offsets[-1] += numbers[0]
        else:
            return None
    return register, offsets


def part_of(result: Value | None, *, location: bool) -> Part | None:
    """The rule that a value, or the place where the value is stored, means."""
    if result is None or result.register == NO_REGISTER or not _in_range(result.register, result.offset):
        return None
    if location and result.loaded:
        return None
    stored = location or result.loaded
    if result.register == CFA_REGISTER:
        return Part(PartKind.AT_CFA if stored else PartKind.CFA, 0, result.offset)
    return Part(PartKind.AT_REGISTER if stored else PartKind.REGISTER, result.register, result.offset)


def _in_range(register: int, offset: int) -> bool:
    """Whether the kernel would have kept them; other numbers are beyond all use."""
    return register <= REGISTER_MASK and abs(offset) <= LARGEST_OFFSET


def _apply(stack: list[Value], code: int, numbers: tuple[int, ...]) -> None:
    if code == dw.DW_OP_BREG0:
        stack.append(Value(numbers[0], numbers[1]))
    elif code == dw.DW_OP_CONSTU:
        stack.append(Value(NO_REGISTER, numbers[0]))
    elif code == dw.DW_OP_DUP:
        stack.append(stack[-1])
    elif code == dw.DW_OP_DROP:
        stack.pop()
    elif code == dw.DW_OP_SWAP:
        stack[-1], stack[-2] = stack[-2], stack[-1]
    elif code == dw.DW_OP_DEREF:
        top = stack.pop()
        if top.loaded or top.register == NO_REGISTER:
            raise _NotUnderstoodError
        stack.append(replace(top, loaded=True))
    elif code == dw.DW_OP_PLUS_UCONST:
        stack.append(_sum(stack.pop(), Value(NO_REGISTER, numbers[0])))
    elif code == dw.DW_OP_PLUS:
        stack.append(_sum(stack.pop(), stack.pop()))
    elif code == dw.DW_OP_MINUS:
        top = stack.pop()
        if top.register != NO_REGISTER:
            raise _NotUnderstoodError
        stack.append(_sum(stack.pop(), Value(NO_REGISTER, -top.offset)))
    else:
        raise _NotUnderstoodError


def _sum(one: Value, other: Value) -> Value:
    if one.register == NO_REGISTER:
        one, other = other, one
    if other.register != NO_REGISTER or one.loaded:
        raise _NotUnderstoodError
    return replace(one, offset=one.offset + other.offset)


def _operations(data: bytes, byteorder: ByteOrder) -> list[tuple[int, tuple[int, ...]]] | None:
    """The operations with their operands: every constant as DW_OP_constu, every register as DW_OP_breg0."""
    found: list[tuple[int, tuple[int, ...]]] = []
    position = 0
    if len(data) > _LONGEST:
        return None
    try:
        while position < len(data):
            code = data[position]
            position += 1
            if dw.DW_OP_LIT0 <= code <= dw.DW_OP_LIT31:
                found.append((dw.DW_OP_CONSTU, (code - dw.DW_OP_LIT0,)))
            elif dw.DW_OP_BREG0 <= code <= dw.DW_OP_BREG31:
                offset, position = leb128(data, position, signed=True)
                found.append((dw.DW_OP_BREG0, (code - dw.DW_OP_BREG0, offset)))
            elif code == dw.DW_OP_BREGX:
                register, position = leb128(data, position, signed=False)
                offset, position = leb128(data, position, signed=True)
                found.append((dw.DW_OP_BREG0, (register, offset)))
            elif code in _SIZES:
                size, signed = _SIZES[code]
                raw = data[position : position + size]
                if len(raw) < size:
                    return None
                found.append((dw.DW_OP_CONSTU, (int.from_bytes(raw, byteorder, signed=signed),)))
                position += size
            elif code in {dw.DW_OP_CONSTU, dw.DW_OP_CONSTS, dw.DW_OP_PLUS_UCONST}:
                number, position = leb128(data, position, signed=code == dw.DW_OP_CONSTS)
                found.append((dw.DW_OP_PLUS_UCONST if code == dw.DW_OP_PLUS_UCONST else dw.DW_OP_CONSTU, (number,)))
            elif code != dw.DW_OP_NOP:
                found.append((code, ()))
            if len(found) > _MOST:
                return None
    except IndexError:
        return None
    return found


def leb128(data: bytes | memoryview, position: int, *, signed: bool) -> tuple[int, int]:
    """A LEB128 number and where it ends; raises IndexError if it does not."""
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if signed and byte & 0x40:
        number -= 1 << shift
    return number, position


def block_at(data: memoryview, position: int) -> bytes:
    """The bytes of the expression whose length stands at a position; enough to see that one is too long."""
    size, start = leb128(data, position, signed=False)
    return bytes(data[start : start + min(size, _LONGEST + 1)])
