"""Instructions in brief do to a state what they do when all of them is known."""

from __future__ import annotations

import random
from typing import Any

import pytest

from effort import rounds
from walkback.base.arch import MACHINES, Machine
from walkback.code._instruction import Instruction
from walkback.proof._state import State
from walkback.proof.packed import made
from walkback.proof.registers import KEPT
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
        assert everything(state) == everything(other), code[:length].hex()
