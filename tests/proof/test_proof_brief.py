"""Instructions in brief do to a state what they do when all of them is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from effort import rounds
from walkback.base.arch import AARCH64, AMD64, MACHINES, Machine
from walkback.code._instruction import Instruction
from walkback.code.effects import Effect
from walkback.proof._state import State
from walkback.proof.numbering import KEPT
from walkback.proof.packed import made
from walkback.proof.values import Known

pytestmark = [pytest.mark.kernel, pytest.mark.inside]

VALUES = (
    Known.ANY,
    Known.CONFLICT,
    Known.STACK,
    made(Known.CFA, 0, -64),
    made(Known.ALIGNED, 7, -32),
    made(Known.ENTRY, 3, 0),
    made(Known.ENTRY, 6, 16),
    made(Known.SIGNED, 30, 0),
    made(Known.CONSTANT, 0, 0x4000),
    Known.ENTRY_OF_TABLE,
    Known.PLACE_OF_TABLE,
)


def random_state(machine: Machine, chance: random.Random) -> Any:
    state: Any = State(machine, sum(1 << one for one in KEPT[machine]), chance.getrandbits(48))
    state.enter()
    for register in range(state.registers):
        state.values[register] = chance.choice(VALUES) if chance.random() < 0.4 else Known.OTHER
    state.values[state.sp] = chance.choice([made(Known.CFA, 0, -64), Known.STACK, made(Known.ALIGNED, 7, -32)])
    for offset in range(8, 72, 8):
        state.store(made(Known.CFA, 0, -offset), 8, chance.choice(VALUES), False)
    state.changed = state.stirred = False
    state.leaps = chance.random() < 0.5
    state.compared = chance.choice([0, int(Effect.COMPARE), int(Effect.COMPARE_CONSTANT)])
    state.compared_first, state.compared_second, state.compared_number = chance.randrange(16), chance.randrange(16), 9
    state.bound_register, state.bound = chance.randrange(-1, 16), 9
    if chance.random() < 0.5:
        state.copied, state.copy = chance.sample(range(16), 2)
    return state


def everything(state: Any) -> dict[str, Any]:
    """All that a state holds; of its slots those in use."""
    found = {name: getattr(state, name) for name in vars(state)}
    for name in ("values", "keys", "saved", "tables"):
        found[name] = found[name].tolist()
    found["keys"], found["saved"] = found["keys"][: state.slots], found["saved"][: state.slots]
    return found


COMPARED = ("compared", "compared_first", "compared_second", "compared_number")


def likely_comparison(machine: Machine, chance: random.Random) -> bytes:
    """The first bytes of what may be a comparison."""
    if machine is AMD64:
        prefix = chance.choice([b"", b"\x66", bytes([chance.randrange(0x40, 0x50)])])
        opcode = chance.choice([*range(0x38, 0x3E), 0x80, 0x81, 0x83])
        return prefix + bytes([opcode, chance.getrandbits(8) | 0x38 * (opcode >= 0x80)])
    if machine is AARCH64:
        word = chance.choice([0x6B00001F, 0xEB00001F, 0x7100001F, 0xF100001F, 0x6B20001F])
        return (word | chance.getrandbits(16) << 5).to_bytes(4, "little")
    register = chance.getrandbits(4) << 4
    return chance.choice(
        [
            bytes([chance.choice([0x15, 0x19, 0x55, 0x59])]),
            bytes([0xB9, chance.choice([0x20, 0x21, 0x30, 0x31])]),
            bytes([0xC2, register | chance.randrange(12, 16)]),
            bytes([0xA7, register | chance.randrange(14, 16)]),
            b"\xe3" + chance.randbytes(4) + bytes([chance.choice([0x20, 0x21, 0x30, 0x31, 0x55, 0x59])]),
        ]
    )


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_an_instruction_in_brief_does_what_it_does(machine: Machine) -> None:
    from walkback.code.decoding import decode
    from walkback.proof._effects import apply
    from walkback.proof.brief import in_brief, skim

    chance = random.Random(f"{machine} in brief")
    one: Any = Instruction()
    done = tried = 0
    while done < rounds(3000, 400):
        tried += 1
        assert tried < 100 * rounds(3000, 400)
        code = memoryview(chance.randbytes(16))
        decode(MACHINES.index(machine), code, 0, len(code), 0x1000, one)
        state = random_state(machine, chance)
        brief = in_brief(one, MACHINES.index(machine), state.sp)
        assert brief < 1 << 16
        assert brief & 1 == 0
        if not brief:
            continue
        before = everything(state)
        other = random_state(machine, chance)
        for name, value in before.items():
            if name in {"values", "keys", "saved"}:
                for i, number in enumerate(value):
                    getattr(other, name)[i] = number
            elif name != "tables":
                setattr(other, name, value)
        length = skim(state, brief, MACHINES.index(machine))
        if not length:
            assert everything(state) == before
            continue
        done += 1
        assert length == one.length
        apply(other, one, 0x1000)
        now, expected = everything(state), everything(other)
        if one.effect in {Effect.COMPARE, Effect.COMPARE_CONSTANT}:
            assert one.effect == Effect.COMPARE or one.signed or not state.leaps
            for name in COMPARED:
                expected[name] = before[name]
        assert now == expected, code[:length].hex()


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_a_comparison_in_brief_changes_the_flags(machine: Machine) -> None:
    """Who skims over one may keep an older comparison, which counts only where flags have not changed since."""
    from walkback.code.decoding import decode
    from walkback.code.flags import keeps_flags
    from walkback.proof.brief import in_brief

    number, chance = MACHINES.index(machine), random.Random(f"{machine} compared")
    one: Any = Instruction()
    done = 0
    while done < rounds(300, 60):
        code = memoryview(likely_comparison(machine, chance) + chance.randbytes(12))
        decode(number, code, 0, len(code), 0x1000, one)
        if one.effect in {Effect.COMPARE, Effect.COMPARE_CONSTANT} and in_brief(one, number, machine.sp):
            done += 1
            assert not keeps_flags(number, code, 0), code[: one.length].hex()
