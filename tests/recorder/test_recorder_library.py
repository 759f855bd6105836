"""`walkback.record` and `walkback.capture.Sampler`, which do what the command does.

A busy machine stops threads less often than asked for, so no test here counts on many samples that come of stops.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import walkback
from recorder.programs import SHARES, built, needs_events
from walkback.capture.recorder.sampler import Way
from walkback.stacks.profile import Profile

pytestmark = pytest.mark.whole

WAYS = [pytest.param("perf", marks=needs_events), "stops"]


def weight_in(profile: Profile, function: str) -> int:
    columns = profile.columns()
    shares = zip(columns["stack"].tolist(), columns["weight"].tolist(), strict=True)
    return sum(int(weight) for stack, weight in shares if function in stack.split(";"))


@pytest.mark.parametrize("way", WAYS)
def test_a_command_is_recorded(way: Way, tmp_path: Path) -> None:
    profile = walkback.record([str(built(tmp_path, SHARES, "-DROUNDS=600"))], frequency=499, way=way)
    assert weight_in(profile, "three") > weight_in(profile, "one") > 0
    assert weight_in(profile, "child") > 0
    assert profile.unit == "samples"


@pytest.mark.parametrize("way", WAYS)
def test_a_process_is_recorded_for_a_while(way: Way, tmp_path: Path) -> None:
    with subprocess.Popen([built(tmp_path, SHARES, "-DROUNDS=1000000")]) as target:
        try:
            profile = walkback.record(target.pid, duration=3, way=way)
            assert target.poll() is None
        finally:
            target.kill()
    assert weight_in(profile, "main") > 0


def test_batches_come_until_the_sampler_is_stopped(tmp_path: Path) -> None:
    program = built(tmp_path, SHARES, "-DROUNDS=1000000")
    with walkback.capture.Sampler([str(program)], way="stops") as sampler:
        assert sampler.name == str(program)
        assert sampler.command is not None
        seen = 0
        for batch in sampler:
            seen += len(batch)
            if seen >= 5:
                sampler.stop()
        subprocess.run(["kill", str(sampler.command.pid)], check=True)
        assert sampler.command.wait() == 128 + 15
    assert 5 <= seen == sampler.ends.sum() < 100
    assert sampler.remarks == []


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(walkback.ArgumentError, match="a command is given as a list of words"):
        walkback.record("true")
    for target in ("true", [], [1, 2], 0, -1, True, 3.5):
        with pytest.raises(walkback.ArgumentError):
            walkback.record(target)  # type: ignore[arg-type]
    nonsense = ({"frequency": 0}, {"frequency": 2**70}, {"way": "x"}, {"duration": -1}, {"duration": float("nan")})
    for arguments in nonsense:
        with pytest.raises(walkback.ArgumentError):
            walkback.record(["true"], **arguments)
    with pytest.raises(walkback.ArgumentError, match="short stops cannot sample page-faults of true"):
        walkback.record(["true"], event="page-faults", way="stops")
    with pytest.raises(walkback.ArgumentError, match="no event has the name 'nonsense'"):
        walkback.record(["true"], event="nonsense")
    with pytest.raises(walkback.UnreadableError, match="No such file or directory"):
        walkback.record(["there-is-none"])
    with pytest.raises(walkback.UnreadableError, match="there is no such process"):
        walkback.record(999999999)


def test_what_is_closed_before_it_began_leaves_nothing_behind(tmp_path: Path) -> None:
    with walkback.capture.Sampler(["touch", str(tmp_path / "ran")], way="stops") as sampler:
        assert sampler.command is not None
        pid = sampler.command.pid
    assert not Path(f"/proc/{pid}").exists()
    assert list(tmp_path.iterdir()) == []
