"""A thread of Python is stopped once for a look, and what was to be read is copied then."""

from __future__ import annotations

import time

import pytest

from live.pythons import VERSIONS, program
from live.test_live_python import places
from walkback.capture.live.looking import Look
from walkback.capture.live.process import Process
from walkback.capture.live.ptrace import Tracer
from walkback.capture.stacks import Stopper

SOURCE = """
import sys, time
def deep(depth, last):
    if depth:
        deep(depth - 1, last)
    else:
        last()
def wait():
    print("ready", flush=True)
    sys.stdin.read()
sys.setrecursionlimit(10000)
deep(int(sys.argv[1]), wait)
"""
SAMPLES = 20


@pytest.mark.parametrize("name", VERSIONS)
def test_a_waiting_thread_is_stopped_once_for_each_look(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Look] = []
    end = Look.end

    def kept(look: Look, tracer: Tracer) -> None:
        looks.append(look)
        end(look, tracer)

    monkeypatch.setattr(Look, "end", kept)
    with program(name, "-c", SOURCE, "100") as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid)
        for _ in range(SAMPLES):
            frames = next(iter(places(stopper.shoot()).values()))
            assert [one for one, *_ in frames if one in {"deep", "wait"}] == ["wait"] + 101 * ["deep"]
        assert isinstance(stopper.target, Process)
        assert stopper.target.stops == SAMPLES == len(looks)
        assert all(look.pieces.ranges and look.found for look in looks)


@pytest.mark.parametrize("name", VERSIONS)
def test_more_than_is_copied_is_read_while_the_thread_stands_still(name: str) -> None:
    with program(name, "-c", SOURCE, "4000") as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid, max_stack=8192)
        for _ in range(3):
            frames = next(iter(places(stopper.shoot()).values()))
            assert [one for one, *_ in frames if one in {"deep", "wait"}] == ["wait"] + 4001 * ["deep"]


def test_a_thread_may_do_something_else_since_the_look_before_the_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
    import sys, time
    def first(): yield turn()
    def second(): yield turn()
    def turn():
        end = time.monotonic() + 0.0002
        while time.monotonic() < end: pass
    print("ready", flush=True)
    while True:
        for made in (first, second):
            for _ in made(): pass
    """
    lines = "\n".join(line.removeprefix("    ") for line in source.splitlines())
    begin = Look.begin

    def late(look: Look) -> None:
        begin(look)
        time.sleep(0.0003)

    monkeypatch.setattr(Look, "begin", late)
    with program("here", "-c", lines) as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid)
        seen = set()
        for _ in range(100):
            frames = [one for one, *_ in next(iter(places(stopper.shoot()).values()))]
            assert frames[-1] == "<module>"
            seen |= {one for one in frames if one in {"first", "second"}}
        assert seen == {"first", "second"}
