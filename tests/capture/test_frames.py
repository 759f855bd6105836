"""Distinct frames and their names; kernel frames and recorded chains put where they belong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from walkback.base.arrays import I64, U64, Bools
from walkback.capture.frames import SIGNAL_HANDLER, DistinctFrames, with_chains
from walkback.naming.modules import Modules
from walkback.naming.names import FrameNames, Names
from walkback.stacks.stacks import FrameKind, How, Stacks
from walkback.symbols.sourceline import SourceLine

pytestmark = pytest.mark.kernel

EXACT, RETURN, KERNEL = FrameKind.EXACT, FrameKind.RETURN, FrameKind.KERNEL


def stacks_of(*stacks: Sequence[tuple[int, int, int]], how: int = How.CFI) -> Stacks:
    """Stacks whose frames are kind, module and address."""
    frames = [frame for one in stacks for frame in one]
    kind, address = (np.array([frame[i] for frame in frames], np.uint64) for i in (0, 2))
    return Stacks(
        first=np.cumsum([0, *map(len, stacks)]),
        pc=address + 0x1000 + (kind == RETURN),
        kind=kind.astype(np.uint8),
        how=np.full(len(frames), how, np.uint8),
        module=np.array([frame[1] for frame in frames], np.int32),
        address=address,
        sp=np.zeros(len(frames), np.uint64),
        end=np.zeros(len(stacks), np.uint8),
        at=np.zeros(len(stacks), np.uint64),
    )


class Asked(Names):
    """Names that tell what they were asked for; module 9 has none."""

    def __init__(self, *, lines: bool = False) -> None:
        super().__init__(Modules(), lines=lines)
        self.questions: list[tuple[int, int, int, bool]] = []

    def find(
        self,
        module: I64,
        address: U64,
        *,
        pid: I64 | None = None,
        kernel: Bools | None = None,
        weight: I64 | None = None,
    ) -> FrameNames:
        asked = list(zip(module.tolist(), address.tolist(), pid.tolist(), kernel.tolist(), strict=True))
        self.questions += asked
        symbols = [None if one[0] == 9 else f"{one[0]}:{one[1]:#x}:{one[2]}{'k' if one[3] else ''}" for one in asked]
        lines: list[tuple[SourceLine, ...]] | None = [()] * len(asked) if self._with_lines else None
        return FrameNames(symbols, np.zeros(len(asked), np.uint64), [str(one[0]) for one in asked], lines)


def names(distinct: DistinctFrames, numbers: np.ndarray) -> list[str | None]:
    return [distinct.frames.symbol[number] for number in numbers.tolist()]


@pytest.mark.parametrize("pid", [-1, -(2**31), 2**31 - 1, 2**30, 0])
def test_any_number_of_a_process_is_kept(pid: int) -> None:
    distinct = DistinctFrames(Asked())
    numbers = distinct.add(stacks_of([(EXACT, -1, 0x10)], [(KERNEL, -1, 0x20)]), np.array([pid, pid], np.int32))
    assert names(distinct, numbers) == [f"-1:0x10:{pid}", "-1:0x20:0k"]
    keys = distinct.keys()
    assert keys.pid.tolist() == [pid, 0]
    assert not keys.runtime.any()
    assert keys.kernel.tolist() == [False, True]


def test_each_distinct_frame_is_named_once() -> None:
    asked = Asked()
    distinct = DistinctFrames(asked)
    one = stacks_of([(EXACT, 0, 0x10), (RETURN, 0, 0x20), (RETURN, 1, 0x20)], [(EXACT, 0, 0x10)])
    first = distinct.add(one, np.array([7, 8]))
    again = distinct.add(one, np.array([7, 8]))
    assert first.tolist() == again.tolist() == [0, 1, 2, 0]
    assert names(distinct, first) == ["0:0x10:0", "0:0x20:0", "1:0x20:0", "0:0x10:0"]
    assert len(asked.questions) == 3
    more = distinct.add(stacks_of([(RETURN, 5, 2**64 - 1)]), np.array([7]))
    assert more.tolist() == [3]
    assert len(distinct.frames) == 4
    assert distinct.frames.address.tolist() == [0x10, 0x20, 0x20, 2**64 - 1]


def test_code_without_a_file_is_told_apart_by_process_and_that_of_files_is_not() -> None:
    distinct = DistinctFrames(Asked())
    stacks = stacks_of(*([(EXACT, module, 0x10)] for module in (-1, -1, -1, 3, 3)))
    numbers = distinct.add(stacks, np.array([7, 8, 7, 7, 8]))
    assert numbers.tolist() == [0, 1, 0, 2, 2]
    assert names(distinct, numbers) == ["-1:0x10:7", "-1:0x10:8", "-1:0x10:7", "3:0x10:0", "3:0x10:0"]


def test_the_kernels_frames_are_the_same_in_all_processes() -> None:
    distinct = DistinctFrames(Asked())
    address = 0xFFFFFFFF81000000
    stacks = stacks_of([(KERNEL, -1, address)], [(KERNEL, -1, address), (EXACT, -1, address)])
    numbers = distinct.add(stacks, np.array([7, 8]))
    assert numbers.tolist() == [0, 0, 1]
    assert distinct.frames.kernel.tolist() == [True, False]
    assert names(distinct, numbers)[0] == f"-1:{address:#x}:0k"


def test_what_handlers_return_to_is_named_where_it_begins() -> None:
    asked = Asked()
    distinct = DistinctFrames(asked)
    signal = [(EXACT, 0, 0x10), (RETURN, 9, 0x1F), (EXACT, 0, 0x30), (RETURN, 0, 0x40)]
    numbers = distinct.add(stacks_of(signal), np.array([7]))
    assert names(distinct, numbers)[1] == SIGNAL_HANDLER
    assert asked.questions[1][:2] == (9, 0x20)
    # Its address stays the lookup address, as that of every frame.
    assert distinct.frames.address.tolist() == [0x10, 0x1F, 0x30, 0x40]


def test_the_last_frame_of_a_stack_is_no_handler_because_the_next_stack_begins() -> None:
    distinct = DistinctFrames(Asked())
    numbers = distinct.add(stacks_of([(EXACT, 0, 1), (RETURN, 9, 2)], [(EXACT, 0, 1)], []), np.array([7, 7, 7]))
    assert names(distinct, numbers)[1] is None
    numbers = distinct.add(stacks_of([], [(RETURN, 9, 2)], [], [(EXACT, 0, 1)]), np.array([7] * 4))
    assert names(distinct, numbers) == [None, "0:0x1:0"]


def test_lines_come_where_they_were_asked_for() -> None:
    with_lines, without = DistinctFrames(Asked(lines=True)), DistinctFrames(Asked())
    for distinct in (with_lines, without):
        distinct.add(stacks_of([(EXACT, 0, 1)]), np.array([7]))
        distinct.add(stacks_of([(EXACT, 0, 2)]), np.array([7]))
    assert (with_lines.frames.file, with_lines.frames.line) == ([None, None], [0, 0])
    assert (without.frames.file, without.frames.line) == (None, None)


def test_nothing_is_nothing() -> None:
    distinct = DistinctFrames(Asked())
    assert distinct.add(stacks_of(), np.zeros(0, np.int64)).tolist() == []
    assert distinct.add(stacks_of([], []), np.zeros(2, np.int64)).tolist() == []
    assert len(distinct.frames) == 0


def test_kernel_frames_stand_before_those_of_the_program() -> None:
    stacks = stacks_of([(EXACT, 0, 0x10), (RETURN, 1, 0x20)], [], [(EXACT, 0, 0x30)])
    chains = [[(0x100, True), (0x101, True), (0x10, False)], [(0x102, True)], []]
    first = np.cumsum([0, *map(len, chains)])
    pcs = np.array([pc for one in chains for pc, _ in one], np.uint64)
    kernel = np.array([its for one in chains for _, its in one], np.bool_)
    found = with_chains(stacks, first, pcs, kernel)
    assert found.first.tolist() == [0, 4, 5, 6]
    assert found.pc.tolist() == [0x100, 0x101, 0x1010, 0x1021, 0x102, 0x1030]
    assert found.kind.tolist() == [KERNEL, KERNEL, EXACT, RETURN, KERNEL, EXACT]
    assert found.how.tolist() == [How.RECORDED, How.RECORDED, How.CFI, How.CFI, How.RECORDED, How.CFI]
    assert found.module.tolist() == [-1, -1, 0, 1, -1, 0]
    assert found.address.tolist() == [0x100, 0x101, 0x10, 0x20, 0x102, 0x30]
    assert found.end is stacks.end


def test_without_kernel_frames_stacks_stay_the_same() -> None:
    stacks = stacks_of([(EXACT, 0, 0x10)])
    nobody = np.zeros(1, np.bool_)
    assert with_chains(stacks, np.array([0, 1]), np.array([0x10], np.uint64), nobody) is stacks


def test_many_random_chains() -> None:
    rng = np.random.default_rng(5)
    stacks, chains = [], []
    for _ in range(200):
        stacks.append([(RETURN, 0, int(one)) for one in rng.integers(0, 99, rng.integers(0, 5))])
        chains.append([(int(pc), bool(pc % 3)) for pc in rng.integers(1000, 1099, rng.integers(0, 5))])
    first = np.cumsum([0, *map(len, chains)])
    found = with_chains(
        stacks_of(*stacks),
        first,
        np.array([pc for one in chains for pc, _ in one], np.uint64),
        np.array([its for one in chains for _, its in one], np.bool_),
    )
    for number in range(200):
        expected = [pc for pc, its in chains[number] if its] + [frame[2] for frame in stacks[number]]
        assert found.address[found.first[number] : found.first[number + 1]].tolist() == expected
