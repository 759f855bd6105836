"""Whether the code of a file keeps the chain of frame pointers, shown by the code itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from enum import StrEnum
from functools import cached_property

import numpy as np

from walkback.base.arch import AARCH64, AMD64
from walkback.base.arrays import I64, U64, Bools
from walkback.base.dataclass import dataclass
from walkback.base.errors import MissingError, UnreadableError, WalkbackError
from walkback.base.oneline import OneLine
from walkback.elf import ElfFile, Input
from walkback.elf.inputs import raise_first
from walkback.packages.found import found_elf_files, input_name
from walkback.proof.proof import Proof
from walkback.proof.prove import Prover
from walkback.proof.ranges import range_at
from walkback.proof.values import Chain
from walkback.sections.codetext import CodeText

_FENTRY = "__fentry__"
"""What profilers let every function call first, before it has a frame: it is the profiler's own business."""
_FIRST_CALL = 8
"""Bytes within which that call begins: an instruction that marks a landing may stand before it."""
_KEPT = 0.99
"""Share of the code from which on a file keeps frame pointers."""


class Keeping(StrEnum):
    """How a function treats the chain of frame pointers."""

    KEEPS = "keeps"
    """The frame is linked at every call: the frame pointer leads to the caller's, beside which is the return
    address."""
    LEAF = "leaf"
    """It calls nothing, makes no frame, and leaves the register alone."""
    BREAKS = "breaks"
    """Somewhere the register has another value: a walk from there ends or goes astray."""
    PARTLY = "partly"
    """Some calls come before the frame is linked."""
    NONE = "none"
    """It makes calls and links no frame: a walk by frame pointers leaves out its caller."""
    OUTERMOST = "outermost"
    """It has no caller, as `_start`."""
    UNDECIDED = "undecided"
    """The proof cannot follow it, or the file does not have its code."""


@dataclass(frozen=True, slots=True)
class FunctionChain:
    """One function."""

    function: str | None
    """The symbol."""
    start: int
    """The address; in an object, the offset in its section."""
    size: int
    """The bytes of the function."""
    section: str | None
    """In an object, the section of the code."""
    keeping: Keeping
    """The kind of function."""
    linked: int
    """Bytes of instructions at which its frame is linked."""
    intact: int
    """Bytes at which the register is the caller's, as in a prologue, an epilogue or a leaf."""
    skipped: int
    """Bytes of calls at which it is the caller's."""
    broken: int
    """Bytes at which it has another value."""
    undecided: int
    """Bytes at which the proof cannot decide."""
    places: tuple[tuple[int, int], ...]
    """Where it is broken: each an address, and the bytes from there."""


@dataclass(repr=False)
class FramePointers(OneLine):
    """How the code of one file treats frame pointers.

    >>> [found] = walkback.frame_pointers("hello")
    >>> found.keeps, found.counts["leaf"] > 0
    (False, True)
    """

    elf: ElfFile = field(repr=False)
    table: str
    """The section that lists the functions."""
    proof: Proof = field(repr=False)
    prover: Prover = field(repr=False)

    @property
    def file(self) -> str:
        """The path; for a member of an archive or package `archive(member)`."""
        return self.elf.name

    @property
    def keeps(self) -> bool:
        """Whether at least 99 % of the code is in functions that keep the chain, or need not, as leaves."""
        return self.share >= _KEPT

    @property
    def share(self) -> float:
        """The share of the code in such functions."""
        return self.kept_bytes / self.bytes if self.bytes else 0.0

    @property
    def bytes(self) -> int:
        """Of instructions that can be reached, and of functions whose code the file does not have."""
        return int(self._reached.sum()) + int(self.proof.absent[:, 1].sum())

    @property
    def kept_bytes(self) -> int:
        """Those of functions that keep the chain, or need not."""
        return int(self._reached[self._is_kept].sum())

    def keeps_at(self, addresses: U64) -> Bools:
        """Whether each address of a linked file is in such a function."""
        number = range_at(self.proof.ranges, addresses)
        return (number >= 0) & self._is_kept[number]

    @property
    def functions(self) -> int:
        """How many functions the file lists."""
        return int(np.count_nonzero(self._reached)) + len(self.proof.absent)

    @cached_property
    def counts(self) -> Counter[str]:
        """Functions by `Keeping`."""
        found = Counter(self._keeping[self._reached > 0].tolist())
        return found + Counter({Keeping.UNDECIDED.value: len(self.proof.absent)})

    @cached_property
    def _is_kept(self) -> Bools:
        """Which functions keep the chain, or need not."""
        return np.isin(self._keeping, [one.value for one in (Keeping.KEEPS, Keeping.LEAF, Keeping.OUTERMOST)])

    @cached_property
    def _verdicts(self) -> I64:
        """Bytes of each function by `Chain`; what leads to `__fentry__` is no call."""
        number, address, _, verdict, _ = self.proof.runs.T
        first = address - self.proof.ranges.start[number.astype(np.int64)] <= _FIRST_CALL
        chosen = np.flatnonzero((verdict == Chain.SKIPPED) & first)
        found = self.proof.verdicts.copy()
        calls = CodeText(self.proof, self.prover).called(address[chosen].tolist())
        for row, (size, name) in zip(number[chosen].tolist(), calls, strict=True):
            if name == _FENTRY:
                found[row, Chain.SKIPPED] -= size
                found[row, Chain.INTACT] += size
        return found

    @cached_property
    def _reached(self) -> I64:
        """Bytes of each function."""
        reached: I64 = self._verdicts[:, Chain.LINKED :].sum(axis=1)
        return reached

    @cached_property
    def _keeping(self) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
        """The word for each function."""
        has = self._verdicts > 0
        conditions = [
            self.proof.is_outermost,
            has[:, Chain.BROKEN],
            has[:, Chain.UNDECIDED],
            has[:, Chain.SKIPPED] & has[:, Chain.LINKED],
            has[:, Chain.SKIPPED],
            has[:, Chain.LINKED],
        ]
        words = [
            *(Keeping.OUTERMOST, Keeping.BREAKS, Keeping.UNDECIDED),
            *(Keeping.PARTLY, Keeping.NONE, Keeping.KEEPS),
        ]
        return np.select(conditions, [one.value for one in words], Keeping.LEAF.value)

    def listed(self, *keeping: Keeping) -> Iterator[FunctionChain]:
        """The functions of these kinds, or all; those that break the chain in most bytes first."""
        wanted = np.isin(self._keeping, [one.value for one in keeping or Keeping]) & (self._reached > 0)
        numbers = np.flatnonzero(wanted)
        verdicts = self._verdicts[numbers]
        order = np.lexsort((numbers, -verdicts[:, Chain.SKIPPED], -verdicts[:, Chain.BROKEN]))
        for number in numbers[order].tolist():
            yield self._function(number)

    def _function(self, number: int) -> FunctionChain:
        ranges = self.proof.ranges
        section, place = self.prover.section_of(int(ranges.start[number]))
        found = self._verdicts[number].tolist()
        rows = self._places.get(number, [])
        return FunctionChain(
            function=self.prover.symbols.describe(place, section),
            start=place,
            size=int(ranges.size[number]),
            section=self.elf.section_name(section) if section >= 0 else None,
            keeping=Keeping(str(self._keeping[number])),
            linked=found[Chain.LINKED],
            intact=found[Chain.INTACT],
            skipped=found[Chain.SKIPPED],
            broken=found[Chain.BROKEN],
            undecided=found[Chain.UNDECIDED],
            places=tuple((self.prover.section_of(address)[1], size) for address, size in rows),
        )

    @cached_property
    def _places(self) -> dict[int, list[tuple[int, int]]]:
        """Where each function breaks the chain."""
        found: dict[int, list[tuple[int, int]]] = {}
        for number, _, address, size, _ in self.proof.mismatches.tolist():
            found.setdefault(number, []).append((address, size))
        return found


def frame_pointers(source: Input) -> Iterator[FramePointers]:
    """Whether the functions of a file, or of each ELF file in an archive or package, keep the chain of frame pointers.

    >>> [found] = walkback.frame_pointers("hello")
    >>> [one.keeping.value for one in found.listed()][0]
    'outermost'
    """
    some = False
    errors: list[WalkbackError] = []
    for elf in found_elf_files(source, errors):
        try:
            for one in _of_file(elf):
                some = True
                yield one
        except WalkbackError as error:
            errors.append(error.within(file=elf.name))
    raise_first(errors, "files")
    if not some:
        message = "there is no .eh_frame or .debug_frame section, which lists the functions"
        raise MissingError(message, file=input_name(source))


def _of_file(elf: ElfFile) -> Iterator[FramePointers]:
    """By the first table, which lists the functions; nothing where there is none."""
    prover = Prover(elf)
    if not prover.sources:
        return
    source = prover.sources[0]
    if source.table.machine not in {AMD64, AARCH64}:
        raise UnreadableError(f"{source.table.machine.name} has no chain of frame pointers")
    yield FramePointers(elf, source.name, prover.prove(source.table, source, chain=True), prover)
