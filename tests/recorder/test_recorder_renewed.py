"""A recorder that runs for long begins anew, and nothing of what it records is lost or counted twice."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from pathlib import Path

import pytest

from cli.commands import run
from recorder.programs import CALLS, built, needs_events
from recorder.test_recorder_command import folded, weight_in
from walkback.capture.recorder import recorder as recorder_module
from walkback.capture.recorder import renewed
from walkback.capture.recorder.command import Command
from walkback.capture.recorder.events import EventChoice, Sampling
from walkback.capture.recorder.present import changes
from walkback.capture.recorder.recorder import Recorder
from walkback.capture.recorder.renewed import Renewed
from walkback.store.often import Often


@pytest.mark.whole
@needs_events
def test_every_sample_is_stored_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(renewed, "_MORE_SPACES", -1)
    monkeypatch.setattr(renewed, "_SETTLED", 0)
    monkeypatch.setattr(recorder_module, "changes", _slowly_changes)
    program = built(tmp_path, CALLS, "-DSLOWLY")
    command = Command([str(program)])
    # Each turn writes to memory that was not there.
    recorder = Recorder(EventChoice.named("page-faults"), Sampling(), pid=command.pid, on_exec=True, interval=0.05)
    with contextlib.closing(recorder):
        samples = Renewed(recorder, names_last=True)
        often = Often(tmp_path / "store", {}, samples, 1000.0)
        renewals = []

        def renew() -> None:
            renewals.append(1)
            often.renew()

        samples.on_renewal = renew
        command.let_go()
        for _ in often.each(samples):
            pass
        often.publish()
    assert command.wait() == 0
    assert renewals
    assert samples.recording.counts.samples == often.samples
    assert run("store", tmp_path / "store", "check").returncode == 0
    top = run("store", tmp_path / "store", "top", "--json").stdout.splitlines()
    once = run("record", "-e", "page-faults", "--format", "folded", "--", program)
    assert [one["total"] for one in map(json.loads, top) if one["name"] == "called"] == [
        weight_in(folded(once), "called")
    ]


def _slowly_changes(data: bytearray) -> bytearray:
    """As on a busy machine: the thread that reads records is interrupted while it does."""
    with memoryview(data):
        time.sleep(0.05)
        return changes(data)


def test_a_command_that_is_given_up_does_not_run(tmp_path: Path) -> None:
    command = Command(["touch", str(tmp_path / "ran")])
    command.give_up()
    assert not (tmp_path / "ran").exists()
    assert subprocess.run(["kill", "-0", str(command.pid)], capture_output=True, check=False).returncode != 0
