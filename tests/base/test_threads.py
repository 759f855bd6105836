"""Work that threads of one process share."""

from __future__ import annotations

import ast
import os
import threading
import time

import pytest

from kernels import ROOT, kernels
from walkback.base.threads import available_processors, by_threads, share_processors, threads_for


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are four processors."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})


def test_results_are_in_the_order_of_the_pieces_whoever_is_faster() -> None:
    both = threading.Barrier(2)

    def work(tool: int, piece: int) -> tuple[int, int]:
        if piece < 2:
            both.wait(60)
        time.sleep(0.02 if piece == 0 else 0.001)
        return tool, piece

    found = by_threads([10, 11, 12], range(20), work)
    assert [piece for _, piece in found] == list(range(20))
    assert len({tool for tool, _ in found}) > 1


def test_a_tool_belongs_to_one_thread() -> None:
    users: dict[int, set[int]] = {number: set() for number in range(4)}
    by_threads(range(4), range(200), lambda tool, _: users[tool].add(threading.get_ident()))
    assert all(len(used) <= 1 for used in users.values())


def test_an_error_is_raised_and_ends_the_work() -> None:
    done: list[int] = []

    def work(_: int, piece: int) -> None:
        if piece == 3:
            raise IndexError(piece)
        time.sleep(0.01)
        done.append(piece)

    with pytest.raises(IndexError, match="3"):
        by_threads([0, 1], range(1000), work)
    assert len(done) < 900


def test_without_more_threads_this_one_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert by_threads([7, 8, 9], range(5), lambda tool, piece: (tool, piece)) == [(7, piece) for piece in range(5)]


@pytest.mark.usefixtures("four")
def test_processes_that_are_busy_together_share_the_processors() -> None:
    assert (available_processors(), threads_for(3), threads_for(100)) == (4, 3, 4)
    try:
        share_processors(3)
        assert (available_processors(), threads_for(100)) == (1, 1)
    finally:
        share_processors(1)
    assert threads_for(0) == 1


@pytest.mark.usefixtures("four")
def test_a_thread_that_is_one_of_several_works_alone() -> None:
    found: list[int] = []
    one = threading.Thread(target=lambda: found.append(threads_for(100)))
    one.start()
    one.join()
    assert found == [1]


@pytest.mark.parametrize("name", kernels())
def test_a_kernel_has_no_state_that_threads_could_share(name: str) -> None:
    module = ast.parse((ROOT / f"src/{name.replace('.', '/')}.py").read_text())
    names = set()
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    for part in ast.walk(module):
        assert not isinstance(part, ast.Global | ast.Nonlocal)
        if isinstance(part, ast.Subscript | ast.Attribute) and isinstance(part.ctx, ast.Store | ast.Del):
            assert not (isinstance(part.value, ast.Name) and part.value.id in names)
        if (
            isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and isinstance(part.func.value, ast.Name)
        ):
            assert part.func.value.id not in names
