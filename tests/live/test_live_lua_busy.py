"""A busy Lua stopped at any moment: each function is at the line where it calls the next one."""

from __future__ import annotations

import itertools
import os
import random
import re
import time
from pathlib import Path

import pytest

from live.test_live_lua import LUAS, places, program
from walkback.capture.stacks import Stopper
from walkback.stacks.stacks import End

STOPS = int(os.environ.get("WALKBACK_STOPS", "0")) * 100 or 100
"""`make soak` has 10,000."""
FUNCTIONS = 12
LINES = 100
"""From the first line of a function to that of the next."""
CALLS = ("f{0}(n - 1)", "pcall(f{0}, n - 1)", "coroutine.wrap(f{0})(n - 1)", "twice(coroutine.create(f{0}), n - 1)")
NAME = re.compile(r"(?:f|function <busy\.lua:)(\d+)>?")
HELPER = """-- Calls that are tried, that go on after a pause, and that one evaluator goes on with.
function twice(thread, n) repeat coroutine.resume(thread, n) until coroutine.status(thread) == "dead" end
seed = 1
function chosen(n) seed = (seed * 1103515245 + 12345) % 2147483648 return seed // 65536 % n end
"""


def source() -> str:
    """A program whose functions call each other at random, each in a line of its own."""
    lines = HELPER.splitlines() + [""] * (LINES - len(HELPER.splitlines()))
    for caller in range(1, FUNCTIONS):
        body = [f"function f{caller}(n) local x = chosen({FUNCTIONS - 1}) + 1"]
        body += ["if n > 0 then"]
        for callee in range(1, FUNCTIONS):
            call = CALLS[(caller + callee) % len(CALLS)].format(callee)
            body.append(f"if x == {callee} then {call} return x end")
        body += ["end", "if coroutine.isyieldable() and x % 2 == 0 then coroutine.yield() end"]
        body += ["for i = 1, x * 20 do x = #(tostring(x) .. i) end", "return x", "end"]
        lines += body + [""] * (LINES - len(body))
    lines += ["print('ready')", "io.stdout:flush()", f"while true do f1(chosen(12)) f{FUNCTIONS - 1}(chosen(12)) end"]
    return "\n".join(lines)


@pytest.mark.parametrize("name", LUAS)
def test_no_stop_finds_a_wrong_function(name: str, tmp_path: Path) -> None:
    (tmp_path / "busy.lua").write_text(source())
    with program(name, "busy.lua", cwd=tmp_path) as target:
        assert target.stdout.readline() == b"ready\n"
        stopper = Stopper(target.pid)
        depths: list[int] = []
        for _ in range(STOPS):
            time.sleep(random.uniform(0, 0.003))
            shot = stopper.shoot()
            assert shot.stacks.end.tolist()[0] in {End.COMPLETE, End.TORN}
            if shot.stacks.end[0] == End.COMPLETE:
                depths.append(checked(places(shot)[0]))
        assert not stopper.interpreted.troubles
        assert max(depths) > 5
        # Few stops scatter.
        assert STOPS - len(depths) <= 0.02 * STOPS + 5


def checked(frames: list[tuple[str, str, int]]) -> int:
    """The number of functions of a stack, each of which is where it calls the next."""
    ours = [(int(found[1]), line) for symbol, _, line in frames if (found := NAME.fullmatch(symbol))]
    # A function has its name, or the line where it begins if it is called by C.
    numbers = [(number // LINES if number >= LINES else number, line) for number, line in ours]
    for (callee, _), (caller, line) in itertools.pairwise(numbers):
        assert line == caller * LINES + 2 + callee, frames
    for number, line in numbers:
        assert number * LINES < line <= number * LINES + LINES, frames
    assert frames[-1][0] == "main chunk"
    return len(frames)
