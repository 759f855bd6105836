"""Inlined calls: a frame each, in front of the function that they are inlined in."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import walkback
from capture.targets import compiled, started
from cli.commands import run
from export import pprofreader
from walkback.capture.stacks import Stopper, Totalled
from walkback.capture.unwinding import Collector, Unwinding
from walkback.export.formats import FORMATS
from walkback.stacks.stacks import How

PROGRAM = """
#include <unistd.h>
#define INLINE static inline __attribute__((always_inline))
volatile int sum, turns = 100000000;
INLINE int inner(int x) { if (!x) { write(1, "ready\\n", 6); pause(); } return x + sum; }
INLINE int middle(int x) { return inner(x) * 3; }
__attribute__((noinline)) int outer(int x) { return middle(x) + 1; }
INLINE void add(int x) { sum += x; }
__attribute__((noinline)) void turn(void) { for (int i = 0; i < turns; i++) add(i); }
int main(int count, char **words) { if (count > 1) turn(); else outer(0); return sum; }
"""
CALLS = ["inner", "middle", "outer", "main"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("inlined"), PROGRAM, "-g", "-O2")


def named(labels: list[str]) -> list[str]:
    return [label for label in labels if label in CALLS]


def test_each_inlined_call_is_a_frame(program: Path) -> None:
    with started(program) as child:
        stopper = Stopper(child.pid)
        shots = [stopper.shoot(), stopper.shoot()]
        for without in (walkback.stack(child.pid, inline=False), walkback.stack(child.pid, lines=False)):
            assert named(without.labels(0)) == ["outer", "main"]
    for shot in shots:
        assert named(shot.labels(0)) == CALLS
        place = shot.labels(0).index("inner")
        assert shot.stacks.how[place : place + 2].tolist() == [How.INLINED] * 2
        assert shot.stacks.how[place + 2] != How.INLINED
        assert len(set(shot.stacks.pc[place : place + 3].tolist())) == 1
        lines = [shot.frames.line[number] for number in shot.frame[place : place + 4].tolist()]  # type: ignore[index]
        assert lines == [5, 6, 7, 10]
        assert shot.snapshot.stacks is not None
        assert len(shot.stacks.pc) == len(shot.snapshot.stacks.pc) + 2


def test_formats_show_inlined_calls_each_in_its_way(program: Path) -> None:
    with started(program) as child:
        stopper = Stopper(child.pid)
        shot = stopper.shoot()
        total = Totalled(stopper)
        total.add(shot)
    profile = total.profile()

    def data(name: str) -> bytes:
        out = io.BytesIO()
        if FORMATS[name].streamed:
            FORMATS[name].export([shot.batch()], out)
        else:
            FORMATS[name].export(profile, out)
        return out.getvalue()

    def text(name: str) -> str:
        return data(name).decode()

    places = [line for line in text("top").split("place\n")[1].splitlines() if "inner, inlined in outer+0x" in line]
    assert places[0].endswith(":5")

    assert ";main;outer;middle_[i];inner_[i];" in text("folded")
    found = pprofreader.read(data("pprof"))
    (sample,) = found["sample"]
    (calls,) = (one["line"] for one in found["location"] if len(one["line"]) > 1)
    functions = [found["function_by_id"][line["function_id"]] for line in calls]
    assert [found["string_table"][one["name"]] for one in functions] == ["inner", "middle", "outer"]
    assert [line["line"] for line in calls] == [5, 6, 7]
    assert len(sample["location_id"]) == len(shot.snapshot.stacks.pc)
    assert set(sample["location_id"]) <= found["location_by_id"].keys()
    lines = [line.split()[1:] for line in text("perf-script").splitlines() if "(inlined)" in line]
    assert lines == [["inner", "(inlined)"], ["middle", "(inlined)"]]
    frames = json.loads(text("json"))["frames"]
    assert [one["symbol"] for one in frames if one["how"] == "inlined"] == ["inner", "middle"]
    thread = json.loads(text("firefox"))
    shared = thread["shared"]
    table, symbols = shared["frameTable"], shared["nativeSymbols"]
    assert sorted(table["inlineDepth"])[-3:] == [0, 1, 2]
    # The viewer marks what is inlined where it knows in which function.
    owners = [table["nativeSymbol"][row] for row, depth in enumerate(table["inlineDepth"]) if depth]
    assert [shared["stringArray"][symbols["name"][owner]] for owner in owners] == ["outer", "outer"]
    assert len(set(zip(symbols["libIndex"], symbols["address"], symbols["name"], strict=True))) == symbols["length"]


def test_the_text_has_no_offset_in_what_is_inlined(program: Path) -> None:
    with started(program) as child:
        text = run("stack", str(child.pid), "--lines").stdout.decode()
    [line] = [one for one in text.splitlines() if " inner" in one]
    assert " inner at " in line
    assert line.endswith("[inlined]")


@pytest.mark.whole
def test_a_store_keeps_the_frames_of_code(program: Path, tmp_path: Path) -> None:
    """What is inlined in them can be asked for when they are shown."""
    with started(program) as child:
        for more in ([], ["--lines"]):
            assert run("stack", str(child.pid), *more, "--store", tmp_path / "store").returncode == 0
    text = run("store", tmp_path / "store", "flame", "--format", "folded").stdout.decode()
    stacks = [line.rpartition(" ")[0] for line in text.splitlines()]
    assert len(stacks) == 1
    assert ";main;outer;" in stacks[0]


@pytest.mark.skipif(not shutil.which("perf"), reason="needs perf")
@pytest.mark.whole
def test_recordings_have_inlined_calls_with_names_looked_up_at_once_or_last(program: Path, tmp_path: Path) -> None:
    data = tmp_path / "perf.data"
    record = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "200", "--call-graph", "dwarf,4096"]
    subprocess.run([*record, "-o", data, program, "turn"], check=False)
    profiles = []
    for last in (False, True):
        unwinding = Unwinding(data, names_last=last, cache=False)
        collector = Collector(unwinding)
        for batch in unwinding:
            collector.add(batch)
        out = io.BytesIO()
        FORMATS["folded"].export(collector.profile(), out)
        profiles.append(out.getvalue().decode())
    assert profiles[0] == profiles[1]
    assert ";main;turn;add_[i] " in profiles[0]
