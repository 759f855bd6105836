"""DWARF expressions against an evaluator written here from DWARF 5, section 2.5.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cfibuilder import sleb, uleb
from effort import examples
from walkback.base.arch import AARCH64, AMD64, S390X, ByteOrder, Machine
from walkback.walking.abi import Flag, Op, Step
from walkback.walking.samples import PC
from walking.stacksource import (
    BASE,
    BIAS,
    STACK,
    WORD,
    Thread,
    ended,
    frames,
    made_walker,
    samples_of,
    table_of,
    usual_space,
)

pytestmark = pytest.mark.kernel

MACHINES: dict[ByteOrder, Machine] = {"little": AMD64, "big": S390X}
HERE = BIAS + BASE
CFA = STACK + 0x40
MEMORY = bytes(range(1, 129))
KNOWN = {0: 5, 1: WORD, 2: STACK, 3: STACK + 9, 12: 1 << 63, 13: 2**63 - 1}


class Wrong(Exception):  # noqa: N818
    """The expression has no value."""


class Unknown(Exception):  # noqa: N818
    """A register's value is not known."""


class Unreadable(Exception):  # noqa: N818
    """Memory is not there."""


class Plain:
    """One evaluation."""

    def __init__(
        self, code: bytes, order: ByteOrder, registers: dict[int, int], memory: dict[int, int], bias: int
    ) -> None:
        self.code, self.order, self.registers, self.memory, self.bias = code, order, registers, memory, bias
        self.stack: list[int] = []
        self.place = 0

    def number(self, size: int, signed: bool) -> int:
        if self.place + size > len(self.code):
            raise Wrong
        part = self.code[self.place : self.place + size]
        self.place += size
        return int.from_bytes(part, self.order, signed=signed)

    def leb(self, signed: bool) -> int:
        value = shift = 0
        while True:
            byte = self.number(1, False)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        return value - (1 << shift) if signed and byte & 64 else value

    def pop(self) -> int:
        if not self.stack:
            raise Wrong
        return self.stack.pop()

    def push(self, value: int) -> None:
        if len(self.stack) == 64:
            raise Wrong
        self.stack.append(value & WORD)

    def load(self, address: int, size: int) -> int:
        if any(address + i not in self.memory for i in range(size)):
            raise Unreadable(address)
        return int.from_bytes(bytes(self.memory[address + i] for i in range(size)), self.order)

    def value(self, initial: int | None) -> int:
        if initial is not None:
            self.push(initial)
        for _ in range(10000):
            if self.place == len(self.code):
                return self.pop()
            self.one(self.number(1, False))
        if self.place == len(self.code):
            return self.pop()
        raise Wrong

    def one(self, op: int) -> None:  # noqa: C901
        match op:
            case 0x03:
                self.push(self.number(8, False) + self.bias)
            case _ if 0x08 <= op <= 0x0F:
                self.push(self.number(2 ** ((op - 8) // 2), bool(op & 1)))
            case 0x10:
                self.push(self.leb(False))
            case 0x11:
                self.push(self.leb(True))
            case _ if 0x30 <= op <= 0x4F:
                self.push(op - 0x30)
            case _ if 0x70 <= op <= 0x8F or op == 0x92:
                register = self.leb(False) & WORD if op == 0x92 else op - 0x70
                offset = self.leb(True)
                if register > 31:
                    raise Wrong
                if register not in self.registers:
                    raise Unknown(register)
                self.push(self.registers[register] + offset)
            case 0x2F | 0x28:
                distance = self.number(2, True)
                if op == 0x28 and not self.pop():
                    return
                if not 0 <= self.place + distance <= len(self.code):
                    raise Wrong
                self.place += distance
            case 0x96:
                pass
            case 0x06:
                self.push(self.load(self.pop(), 8))
            case 0x94:
                if not self.stack:
                    raise Wrong
                size = self.number(1, False)
                if not 1 <= size <= 8:
                    raise Wrong
                self.push(self.load(self.pop(), size))
            case _:
                self.arrange(op)

    def arrange(self, op: int) -> None:  # noqa: C901
        stack = self.stack
        match op:
            case 0x12 | 0x14:
                distance = 1 if op == 0x12 else 2
                if len(stack) < distance:
                    raise Wrong
                self.push(stack[-distance])
            case 0x13:
                self.pop()
            case 0x15:
                distance = self.number(1, False)
                if distance >= len(stack):
                    raise Wrong
                self.push(stack[-1 - distance])
            case 0x16 | 0x17:
                count = op - 0x14
                if len(stack) < count:
                    raise Wrong
                stack[-count:] = [stack[-1], *stack[-count:-1]]
            case 0x19:
                self.push(abs(signed(self.pop())))
            case 0x1F:
                self.push(-self.pop())
            case 0x20:
                self.push(~self.pop())
            case 0x23:
                if not stack:
                    raise Wrong
                self.push(self.leb(False) + self.pop())
            case _:
                if op not in BINARY or len(stack) < 2:
                    raise Wrong
                top, under = self.pop(), self.pop()
                self.push(BINARY[op](under, top))


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def divided(under: int, top: int) -> int:
    if not top:
        raise Wrong
    one, other = signed(under), signed(top)
    return abs(one) // abs(other) * (-1 if (one < 0) != (other < 0) else 1)


def rest(under: int, top: int) -> int:
    if not top:
        raise Wrong
    return under % top


BINARY: dict[int, Callable[[int, int], int]] = {
    0x1A: lambda u, t: u & t,
    0x1B: divided,
    0x1C: lambda u, t: u - t,
    0x1D: rest,
    0x1E: lambda u, t: u * t,
    0x21: lambda u, t: u | t,
    0x22: lambda u, t: u + t,
    0x24: lambda u, t: u << t if t < 64 else 0,
    0x25: lambda u, t: u >> t if t < 64 else 0,
    0x26: lambda u, t: signed(u) >> min(t, 63),
    0x27: lambda u, t: u ^ t,
    0x29: lambda u, t: u == t,
    0x2A: lambda u, t: signed(u) >= signed(t),
    0x2B: lambda u, t: signed(u) > signed(t),
    0x2C: lambda u, t: signed(u) <= signed(t),
    0x2D: lambda u, t: signed(u) < signed(t),
    0x2E: lambda u, t: u != t,
}


def expected(code: bytes, order: ByteOrder, *, is_cfa: bool) -> tuple[str, int | None]:
    """What a walk should come to; without an address where it does not matter."""
    memory = {STACK + i: byte for i, byte in enumerate(MEMORY)}
    registers = KNOWN | {MACHINES[order].sp: STACK + 0x30}
    try:
        value = Plain(code, order, registers, memory, BIAS).value(None if is_cfa else CFA)
    except Wrong:
        return "INEXPRESSIBLE", None
    except Unknown as error:
        return "UNKNOWN_REGISTER", error.args[0]
    except Unreadable as error:
        return "UNREADABLE", error.args[0]
    return "ON", value


def found(codes: list[bytes], order: ByteOrder, *, is_cfa: bool) -> list[tuple[str, int]]:
    """What walks come to, one for each expression: each has a function of its own, and gives the program counter."""
    machine, points = MACHINES[order], []
    for number in range(len(codes)):
        cfa = (Op.EXPRESSION, 0, number) if is_cfa else (Op.REGISTER, machine.sp, 0x10)
        save = (PC, Op.CFA, 0, 0) if is_cfa else (PC, Op.EXPRESSION, 0, number)
        # A signal frame may lead anywhere on the stack.
        points.append((16 * number, Step(cfa, (save,), Flag.SIGNAL)))
    table = table_of([*points, (16 * len(codes), None)], expressions=codes)
    walker = made_walker(machine, order, [table], only="cfi", max_stack=2)
    at_entry = KNOWN | {machine.sp: STACK + 0x30}
    threads = [Thread({**at_entry, PC: HERE + 16 * number}, [(STACK, MEMORY)]) for number in range(len(codes))]
    stacks = walker.walk(samples_of(threads), [usual_space()])
    results = []
    for number in range(len(codes)):
        walked = frames(stacks, number)
        results.append(("ON", walked[1][0]) if len(walked) > 1 else ended(stacks, number))
    return results


def check(codes: list[bytes], order: ByteOrder, *, is_cfa: bool) -> None:
    for code, (status, value) in zip(codes, found(codes, order, is_cfa=is_cfa), strict=True):
        # A register rule starts from the CFA, which is the stack pointer and 0x10.
        should, what = expected(code, order, is_cfa=is_cfa)
        assert status == should, code.hex()
        assert what is None or value == what, code.hex()


def fixed_constant(order: ByteOrder) -> SearchStrategy[Any]:
    sizes = st.sampled_from([(0x08, 1), (0x09, 1), (0x0A, 2), (0x0B, 2), (0x0C, 4), (0x0D, 4), (0x0E, 8), (0x0F, 8)])
    numbers = st.integers(0, WORD)
    return st.tuples(sizes, numbers).map(
        lambda one: bytes([one[0][0]]) + (one[1] % (1 << 8 * one[0][1])).to_bytes(one[0][1], order)
    )


def operations(order: ByteOrder) -> SearchStrategy[Any]:
    wide = st.integers(-(2**70), 2**70)
    near = st.sampled_from([0, 1, 2, 8, 31, 63, 64, 65, 127, 2**31, 2**63, WORD, STACK, STACK + 3, STACK + 121])
    return st.one_of(
        st.sampled_from([*range(0x12, 0x15), *range(0x16, 0x18), *range(0x19, 0x23), *range(0x24, 0x28), 6, 0x96]).map(
            lambda op: bytes([op])
        ),
        st.integers(0x29, 0x2E).map(lambda op: bytes([op])),
        st.integers(0x30, 0x4F).map(lambda op: bytes([op])),
        st.integers(0, 5).map(lambda n: bytes([0x15, n])),
        st.integers(0, 9).map(lambda n: bytes([0x94, n])),
        near.map(lambda n: b"\x10" + uleb(n)),
        wide.map(lambda n: b"\x11" + sleb(n)),
        st.integers(0, 2**70).map(lambda n: b"\x23" + uleb(n)),
        st.tuples(st.sampled_from([0, 1, 2, 3, 12, 13, 13, 4]), st.integers(-9, 9)).map(
            lambda one: bytes([0x70 + one[0]]) + sleb(one[1])
        ),
        st.tuples(st.sampled_from([0, 2, 31, 32, 33, 2**64]), near).map(
            lambda one: b"\x92" + uleb(one[0]) + sleb(one[1])
        ),
        st.tuples(st.sampled_from([0x28, 0x2F]), st.integers(-12, 12)).map(
            lambda one: bytes([one[0]]) + one[1].to_bytes(2, order, signed=True)
        ),
        fixed_constant(order),
        st.integers(0, WORD).map(lambda n: b"\x03" + n.to_bytes(8, order)),
    )


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("is_cfa", [True, False])
def test_programs_have_the_values_of_an_evaluator_that_knows_nothing_of_it(
    order: ByteOrder, is_cfa: bool, interpreted: bool
) -> None:
    start = [st.just(bytes([0x31, 0x70, 3])), st.just(bytes([0x72, 8, 0x4F])), st.just(b"")]
    program = st.tuples(st.one_of(start), st.lists(operations(order), max_size=12)).map(
        lambda one: one[0] + b"".join(one[1])
    )

    @settings(max_examples=examples(8 if interpreted else 25), deadline=None)
    @given(st.lists(program, min_size=20, max_size=40))
    def run(codes: list[bytes]) -> None:
        check(codes, order, is_cfa=is_cfa)

    run()


@pytest.mark.parametrize("order", ["little", "big"])
def test_garbage_has_no_value_or_the_right_one(order: ByteOrder, interpreted: bool) -> None:
    @settings(max_examples=examples(8 if interpreted else 20), deadline=None)
    @given(st.lists(st.binary(max_size=24), min_size=20, max_size=40))
    def run(codes: list[bytes]) -> None:
        check(codes, order, is_cfa=False)

    run()


@pytest.mark.parametrize("order", ["little", "big"])
def test_each_operation_by_itself(order: ByteOrder) -> None:
    values = (b"\x30", b"\x31", b"\x09\xff", b"\x11" + sleb(-(2**63)), b"\x08\x40")
    codes = [one + other + bytes([op]) for op in range(0x100) for one in values for other in values]
    for first in range(0, len(codes), 1600):
        check(codes[first : first + 1600], order, is_cfa=True)


@pytest.mark.parametrize("order", ["little", "big"])
def test_endless_programs_and_deep_stacks_end(order: ByteOrder, interpreted: bool) -> None:
    back = b"\x2f" + (-4).to_bytes(2, order, signed=True)
    codes = [
        b"\x96" + back,  # for ever
        b"\x31" + b"\x2f" + (-4).to_bytes(2, order, signed=True),  # for ever, and the stack grows
        b"\x31" * 63,
        b"\x31" * 64,
        b"\x31" * 65,
        b"\x96" * 9998 + b"\x31",
        b"\x96" * 9999 + b"\x31",
        b"\x96" * 10000 + b"\x31",
        b"\x10" + b"\xff" * 500 + b"\x00",
        b"\x10" + b"\xff" * 500,
        b"\x2f" + (0).to_bytes(2, order),
        b"\x31\x2f" + (32767).to_bytes(2, order),
        b"\x31\x2f" + (-32768).to_bytes(2, order, signed=True),
        b"",
    ]
    for is_cfa in (True, False):
        check(codes, order, is_cfa=is_cfa)


def test_an_address_in_an_expression_moves_with_the_file() -> None:
    code = b"\x03" + (BASE + 0x234).to_bytes(8, "little")
    assert found([code], "little", is_cfa=False) == [("ON", BIAS + BASE + 0x234)]


def test_register_32_is_not_the_program_counter() -> None:
    """It has another meaning on each machine: a vector register, the program counter, a control register."""
    for order in MACHINES:
        assert found([b"\x92\x20\x00"], order, is_cfa=True)[0][0] == "INEXPRESSIBLE"


def test_the_program_counter_of_amd64_is_a_register_of_expressions() -> None:
    """As in the call frame information of every procedure linkage table that ld writes."""
    # CFA = rsp + 8 + ((rip & 15) >= 11) * 8
    code = bytes.fromhex("770880003f1a3b2a332422")
    table = table_of([(0, Step((Op.EXPRESSION, 0, 0), ((PC, Op.AT_CFA, 0, -8),), 0)), (64, None)], expressions=[code])
    for offset, place in ((0, 0), (10, 0), (11, 1), (15, 1), (16, 0)):
        pc = HERE + offset
        thread = Thread({7: STACK, 16: pc, PC: pc}).words(STACK, [HERE + 0x100, HERE + 0x101])
        stacks = made_walker(AMD64, "little", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
        assert frames(stacks)[1][0] == HERE + 0x100 + place


def test_values_that_expressions_lead_to_are_loaded() -> None:
    step = Step((Op.AT_EXPRESSION, 0, 0), ((PC, Op.AT_EXPRESSION, 0, 1),), Flag.KEEPS)
    codes = [bytes([0x8F, 8]), bytes([0x38, 0x22])]
    table = table_of([(0, step), (64, None)], expressions=codes)
    thread = Thread({31: STACK, PC: HERE}).words(STACK, [1, STACK + 16, 2, HERE + 0x40], "big")
    stacks = made_walker(AARCH64, "big", [table], only="cfi").walk(samples_of([thread]), [usual_space()])
    assert [pc for pc, _, _ in frames(stacks)] == [HERE, HERE + 0x40]
