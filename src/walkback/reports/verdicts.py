"""What the machine code proves of the functions on a page: runs of code by verdict, and the instructions of some."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np

from walkback.base.arrays import I64, U64, Bools, are_among
from walkback.base.dataclass import dataclass
from walkback.base.errors import WalkbackError
from walkback.dwarf.files import FrameSource
from walkback.proof.proof import Instruction
from walkback.proof.prove import Prover
from walkback.proof.values import Verdict, Why
from walkback.proof.words import NOT_KNOWN, register_word
from walkback.reports.columns import PageColumns
from walkback.reports.functions import ListedFunctions
from walkback.sections.codetext import CodeText
from walkback.sections.explain import Words, listed
from walkback.sections.verified import Verified

_MOST_INSTRUCTIONS = 50_000
"""In a page."""
_SMALL = 4 * _MOST_INSTRUCTIONS
"""Bytes of instructions: all functions of a file without more are wanted."""
_LARGEST = 1 << 20
"""Bytes of functions that lead into each other, beyond which a page has none of their instructions."""
_RANKS = (Verdict.WRONG, Verdict.UNKNOWN, Verdict.ASSUMED)
"""Which functions are wanted first."""
_NO_CODE = (Verdict.UNKNOWN, Why.NO_CODE)
_NOT_REACHED = (Verdict.NOT_REACHED, Why.NONE)

_Instruction = tuple[int, int, int]
"""Address, and the numbers of its text and of what the code has there."""
Cause = tuple[int, str]
"""A verdict, with the value that is wrong or the reason why nothing is known."""


@dataclass(slots=True)
class _Numbered:
    """Values, each with the number that it has in a page."""

    numbers: dict[Any, int] = field(default_factory=dict)

    def number(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))


class PageVerdicts:
    """The verdicts on the functions of a page."""

    def __init__(self, functions: ListedFunctions) -> None:
        self._functions = functions
        self._prover = Prover(functions.elf)
        self._causes = _Numbered()
        self._texts = _Numbered()
        self._computed = _Numbered({"": 0})
        self._has: dict[int, int] = {}
        self._start = self._prover.image.addresses(functions.table.range_start, functions.table.range_section)
        size, left = functions.table.range_size, ~self._start
        self._end: U64 = self._start + np.minimum(size, left)
        self._verified = list(self._prove())
        self._rank = np.full(len(functions), len(_RANKS))

    def _prove(self) -> Iterator[tuple[Verified, I64]]:
        """Each table with the functions that are from it, by address."""
        functions, prover = self._functions, self._prover
        order = np.argsort(self._start, kind="stable")
        if functions.read is None and functions.sframe is not None:
            proof = prover.prove(functions.sframe.table)
            yield Verified(functions.elf, functions.sframe.name, proof, prover), order
            return
        if functions.read is None:
            return
        origin = functions.table.range_origin[order]
        for source, (first, end) in zip(functions.read.sources, pairwise(functions.read.first.tolist()), strict=True):
            proof = prover.prove(source.table, source if isinstance(source, FrameSource) else None)
            yield Verified(functions.elf, source.name, proof, prover), order[(origin >= first) & (origin < end)]

    def add_to(self, columns: PageColumns) -> dict[str, Any]:
        """Add the columns; the result is what the page knows besides."""
        self._add_runs(columns)
        self._add_instructions(columns)
        tables = [verified for verified, _ in self._verified]
        sums = ("functions", "functions_proved", "functions_wrong", "reached", "proved", "wrong", "assumed", "unknown")
        functions, proved, wrong, *shares = (sum(getattr(table, name) for table in tables) for name in sums)
        return {
            "missing": None,
            "functions": functions,
            "functionsProved": proved,
            "functionsWrong": wrong,
            **dict(zip(sums[3:], shares, strict=True)),
            "causes": list(self._causes.numbers),
            "computed": list(self._computed.numbers),
        }

    # Runs

    def _add_runs(self, columns: PageColumns) -> None:
        """Stretches of each function that are not proved."""
        parts = [np.zeros((0, 4), np.int64)]
        for verified, own in self._verified:
            parts += [self._runs(verified, own), self._not_judged(verified, own)]
        rows = np.concatenate(parts)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        verdict = np.array([verdict for verdict, _ in self._causes.numbers] or [0])[rows[:, 3]]
        for rank, wanted in reversed(list(enumerate(_RANKS))):
            self._rank[rows[verdict == wanted, 0]] = rank
        columns.stepping("run", np.bincount(rows[:, 0], minlength=len(self._functions)), rows[:, 1], rows[:, 3])
        columns.numbers("runSize", rows[:, 2])

    def _runs(self, verified: Verified, own: I64) -> I64:
        """Rows of a function, an offset in it, bytes, and the number of a cause."""
        _, start, size, verdict, cause = verified.proof.runs.T
        first = np.searchsorted(self._end[own], start, "right")
        count = (np.searchsorted(self._start[own], start + size, "left") - first).clip(min=0)
        run = np.repeat(np.arange(len(start)), count)
        function = own[np.arange(len(run)) - np.repeat(np.cumsum(count) - count - first, count)]
        begin = np.maximum(start[run], self._start[function])
        end = np.minimum(start[run] + size[run], self._end[function])
        distinct, number = np.unique(np.stack((verdict, cause), 1), axis=0, return_inverse=True)
        numbers = np.array([self._causes.number(self._cause(verified, *one)) for one in distinct.tolist()], np.int64)
        rows = (function, begin - self._start[function], end - begin, numbers[number.reshape(-1)[run]])
        return np.stack([row.astype(np.int64) for row in rows], 1)

    def _cause(self, verified: Verified, verdict: int, cause: int) -> Cause:
        if verdict == Verdict.WRONG:
            return verdict, register_word(verified.proof.machine, cause)
        return verdict, Why(cause).word if cause else ""

    def _not_judged(self, verified: Verified, own: I64) -> I64:
        """Functions without an instruction that the proof reached, as runs."""
        judged = self._judged(verified, own)
        chosen = own[~judged & (self._end[own] > self._start[own])]
        if not len(chosen):
            return np.zeros((0, 4), np.int64)
        absent = are_among(self._start[chosen], verified.proof.absent[:, 0])
        causes = [self._cause(verified, *(_NO_CODE if one else _NOT_REACHED)) for one in absent.tolist()]
        numbers = np.array([self._causes.number(cause) for cause in causes], np.int64)
        size = (self._end - self._start)[chosen].astype(np.int64)
        return np.stack((chosen, np.zeros_like(chosen), size, numbers), 1)

    def _judged(self, verified: Verified, own: I64) -> Bools:
        ranges, start = verified.proof.ranges, self._start[own]
        if not len(ranges.start):
            return np.zeros(len(own), np.bool_)
        number = np.searchsorted(ranges.start, start, "right") - 1
        inside = (number >= 0) & (start - ranges.start[number] < ranges.size[number].astype(np.uint64))
        judged: Bools = inside & verified.proof.verdicts[number, Verdict.NOT_REACHED + 1 :].any(axis=1)
        return judged

    # Instructions

    def _add_instructions(self, columns: PageColumns) -> None:
        """The instructions of all functions of a small file, else of those that are not proved."""
        found: dict[int, list[_Instruction]] = {}
        room = _MOST_INSTRUCTIONS
        for verified, own in self._verified:
            chosen: dict[int, list[Instruction]] = {}
            words = Words(verified.proof)
            for unit, functions in self._wanted(verified, own):
                its = self._chosen(verified, unit, functions, room)
                room -= sum(map(len, its.values()))
                self._number_states(verified, words, unit, its)
                chosen |= its
                if len(its) < len(functions):
                    break
            texts = CodeText(verified.proof, verified.prover).texts(
                [(address, size) for its in chosen.values() for address, size, _, _ in its]
            )
            numbers = iter([self._texts.number(text) for _, text in texts])
            for function, listing in chosen.items():
                found[function] = [(address, next(numbers), self._has[address]) for address, *_ in listing]
        rows = [row for _, its in sorted(found.items()) for row in its]
        count = np.zeros(len(self._functions), np.int64)
        count[list(found)] = [len(its) for its in found.values()]
        offset = np.array([address for address, _, _ in rows], np.uint64) - np.repeat(self._start, count)
        columns.stepping("code", count, offset.astype(np.int64), np.array([text for _, text, _ in rows], np.int64))
        columns.numbers("codeComputed", np.array([computed for _, _, computed in rows], np.int64))
        columns.texts("codeTexts", self._texts.numbers)

    def _wanted(self, verified: Verified, own: I64) -> Iterator[tuple[int, list[int]]]:
        """Units with the functions whose instructions are wanted: the most important first, of these the small ones."""
        units, ranges = verified.proof.units, verified.proof.ranges
        its = own[self._judged(verified, own)]
        if sum(verified.reached for verified, _ in self._verified) > _SMALL:
            its = its[self._rank[its] < len(_RANKS)]
        size = (self._end - self._start)[its].astype(np.int64)
        member = np.argsort(units.members)[np.searchsorted(ranges.start, self._start[its], "right") - 1]
        unit = np.searchsorted(units.first, member, "right") - 1
        order = np.lexsort((size, self._rank[its], unit))
        its, size, unit = its[order], size[order], unit[order]
        first = np.flatnonzero(np.diff(unit, prepend=-1))
        whole = np.add.reduceat(size, first) if len(first) else size
        groups = np.split(its, first[1:])
        for group in np.lexsort((whole, self._rank[its[first]])).tolist():
            number = int(unit[first[group]])
            if ranges.size[units.members[units.first[number] : units.first[number + 1]]].sum() <= _LARGEST:
                yield number, groups[group].tolist()

    def _chosen(self, verified: Verified, unit: int, functions: list[int], room: int) -> dict[int, list[Instruction]]:
        """The instructions of functions of a unit, of the first ones only where there is too little room."""
        rows = verified.proof.instructions(unit)
        addresses = [address for address, _, _, _ in rows]
        chosen = {}
        for function in functions:
            start, end = (bisect_left(addresses, int(bound[function])) for bound in (self._start, self._end))
            room -= end - start
            if room < 0:
                break
            chosen[function] = rows[start:end]
        return chosen

    def _number_states(
        self, verified: Verified, words: Words, unit: int, chosen: Mapping[int, list[Instruction]]
    ) -> None:
        """What the code has at each instruction: what changed since the one before, and always what is wrong."""
        proof = verified.proof
        places = sorted({address for its in chosen.values() for address, *_ in its})
        states = dict(zip(places, proof.states_at(unit, places), strict=True)) if places else {}
        nothing = self._computed.number("")
        for its in chosen.values():
            before: dict[str, str] | None = None
            former: Mapping[str, str] | None = None
            for address, _, verdict, cause in its:
                state = words.state(proof.range_of(address), address, verdict, states[address])
                if state is former and verdict is not Verdict.WRONG:
                    self._has[address] = nothing
                    continue
                former = state
                has = {_title(word): place for word, place in state.items()}
                wrong = _title(register_word(proof.machine, cause)) if verdict is Verdict.WRONG else ""
                shown = [listed({wrong: has.get(wrong, NOT_KNOWN)})] if wrong else []
                since = None if before is None else {word: at for word, at in before.items() if word != wrong}
                rest = {word: at for word, at in has.items() if word != wrong}
                shown.append(listed(rest, since))
                self._has[address] = self._computed.number(", ".join(filter(None, shown)))
                before = has


def _title(word: str) -> str:
    return word.upper() if word in {"cfa", "ra", "fp"} else word


def add_verdicts(functions: ListedFunctions, columns: PageColumns) -> dict[str, Any]:
    """Add the columns of the proof; the result is what the page knows besides, or why there is no proof."""
    try:
        return PageVerdicts(functions).add_to(columns)
    except WalkbackError as error:
        error.file = None
        return {"missing": str(error)}
