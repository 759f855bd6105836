"""Where a table is wrong: what the code does there, where that began, and which pattern it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from walkback.base.arch import MACHINES
from walkback.base.dataclass import dataclass
from walkback.code._listing import COLUMNS, listing
from walkback.code.effects import Flow
from walkback.proof.patterns import Pattern, WrongPlace, cfa_pattern, register_pattern
from walkback.proof.proof import Proof
from walkback.proof.values import CFA_TARGET, Verdict
from walkback.proof.words import NOT_KNOWN, UNCHANGED, StateWords

_GOES_ON = {Flow.NEXT, Flow.BRANCH, Flow.CALL, Flow.CALL_INDIRECT, Flow.SYSTEM}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A value that is wrong from an address on."""

    state: StateWords | None
    """What the code has there."""
    pattern: Pattern


def wrong_places(proof: Proof, unit: int, rows: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Wrong]:
    """What is to be said of addresses of a unit, each with the value that is wrong there."""
    rows = list(rows)
    walked = _Walked(proof.instructions(unit))
    begins = _states(proof, unit, [address for address, _ in rows])
    origins = [walked.origin(address, what, begins[address]) for address, what in rows]
    ahead = [walked.ahead.get(origin, origin) for origin in origins]
    states = _states(proof, unit, [*origins, *ahead])
    found = {}
    for (address, what), origin, before in zip(rows, origins, ahead, strict=True):
        place = _place(proof, what, origin, walked, states[before], states[origin])
        pattern = cfa_pattern(place) if what == CFA_TARGET else register_pattern(place)
        found[address, what] = Wrong(begins[address], pattern)
    return found


class _Walked:
    """The instructions of a unit, with what is wrong at each."""

    def __init__(self, instructions: Sequence[tuple[int, int, Verdict, int]]) -> None:
        self.ahead = {address + length: address for address, length, _, _ in instructions}
        """The instruction in front of each, if there is one."""
        self._length = {address: length for address, length, _, _ in instructions}
        self._wrong = {address: cause for address, _, verdict, cause in instructions if verdict is Verdict.WRONG}

    def origin(self, address: int, what: int, state: StateWords | None) -> int:
        """Where a value became wrong: a jump that leads here may come from code where it already is."""
        sources = [] if state is None else [one for one in state.path if self._wrong.get(one) == what]
        at = sources[0] if sources else address
        while self._wrong.get(self.ahead.get(at, -1)) == what:
            at = self.ahead[at]
        return at

    def behind(self, address: int, what: int) -> int:
        """The instruction behind a stretch where a value is wrong."""
        while self._wrong.get(address) == what:
            address += self._length[address]
        return address

    def is_reached(self, address: int) -> bool:
        """Whether there is an instruction at an address."""
        return address in self._length

    def is_single(self, address: int, what: int) -> bool:
        """Whether a stretch is one instruction."""
        return self._wrong.get(address + self._length[address]) != what


def _states(proof: Proof, unit: int, addresses: Iterable[int]) -> dict[int, StateWords | None]:
    wanted = sorted(set(addresses))
    return dict(zip(wanted, proof.states_at(unit, wanted), strict=True))


def _place(
    proof: Proof, what: int, address: int, walked: _Walked, before: StateWords | None, here: StateWords | None
) -> WrongPlace:
    number = proof.range_of(address)
    ahead = walked.ahead.get(address)
    is_first = address == int(proof.ranges.start[number])
    return WrongPlace(
        claimed=proof.claims_at(number, address).get(what, UNCHANGED),
        computed=here.where(what) if here is not None else NOT_KNOWN,
        begins=is_first or proof.row_at(number, address - 1) != proof.row_at(number, address),
        follows=is_first or _goes_on(proof, ahead, address),
        before=_would_hold(proof, number, address, -1, what, here)
        and _holds_behind(proof, number, address, walked.behind(address, what), walked),
        after=_would_hold(proof, number, address, 1, what, here),
        single=walked.is_single(address, what),
        elsewhere=here is not None and here.is_saved(what),
        moved=_moved(before, here),
    )


def _goes_on(proof: Proof, ahead: int | None, address: int) -> bool:
    """Whether control goes on behind the instruction in front of an address."""
    if ahead is None:
        return False
    [row] = listing(MACHINES.index(proof.machine), proof.code_at(ahead, address - ahead), ahead)
    return int(row[COLUMNS.index("flow")]) in _GOES_ON


def _holds_behind(proof: Proof, number: int, address: int, behind: int, walked: _Walked) -> bool:
    """Whether the row that is wrong at an address is right behind the stretch."""
    is_inside = behind - int(proof.ranges.start[number]) < int(proof.ranges.size[number])
    return is_inside and walked.is_reached(behind) and proof.row_at(number, behind) == proof.row_at(number, address)


def _would_hold(proof: Proof, number: int, address: int, away: int, what: int, here: StateWords | None) -> bool:
    """Whether the rule that a row nearby has for a value would be right."""
    entry = proof.entries_at(number, address, away).get(what)
    if entry is None or here is None:
        return False
    sets = proof.sets
    if what != CFA_TARGET:
        return sets.text(entry, proof.machine) == here.where(what)
    return sets.depth[entry] == 0 and here.is_cfa(int(sets.base[entry]), int(sets.offset[entry, 0]))


def _moved(before: StateWords | None, here: StateWords | None) -> int:
    """How far the stack pointer moved between two states; 0 where one of them does not know."""
    if before is None or here is None or before.depth is None or here.depth is None:
        return 0
    return here.depth - before.depth
