"""A store that takes what is recorded while it comes: in time, and whatever happens to an append."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from cli.commands import WALKBACK, run
from live.test_live_python import sleeps
from recorder.programs import built, needs_events, running
from waiting import eventually
from walkback.capture.recorder.command import Command
from walkback.capture.recorder.sampler import Sampler, Way

WORKS_AND_WAITS = r"""
#include <time.h>
#include <unistd.h>
volatile unsigned long sink;
int main(void) {
    while (clock() < CLOCKS_PER_SEC / 2) sink++;
    pause();
}
"""


@pytest.mark.whole
@pytest.mark.parametrize("way", [pytest.param("perf", marks=needs_events), "stops"])
def test_samples_come_though_nothing_follows_them(way: Way, tmp_path: Path) -> None:
    seen, idle = 0, []
    with running(tmp_path, WORKS_AND_WAITS) as program, Sampler(program.pid, way=way) as sampler:

        def note() -> None:
            if sleeps(program.pid):
                idle.append(seen)
            if len(idle) == 4:
                sampler.stop()

        sampler.when_idle(note)
        for batch in sampler:
            seen += len(batch)
    assert idle == [*idle[:2], seen, seen]
    assert seen > 0


@pytest.mark.whole
@needs_events
def test_a_recording_goes_on_after_an_append_that_fails(tmp_path: Path) -> None:
    store = tmp_path / "store"

    def appends() -> int:
        return len(list(store.glob("segment=*")))

    with running(tmp_path, "volatile int sink; int main(void) { for (;;) sink++; }") as target:
        command = [str(WALKBACK), "record", "-p", str(target.pid), "--store", str(store), "--every", "1"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as recorder:
            assert recorder.stderr is not None
            assert "Ctrl-C" in recorder.stderr.readline()
            assert eventually(lambda: appends() > 1)
            (store / "staging").rename(store / "away")
            (store / "staging").write_bytes(b"")
            line = recorder.stderr.readline()
            assert line.startswith(f"walkback: cannot write {store}/staging")
            assert line.endswith("; recording goes on\n")
            (store / "staging").unlink()
            before = appends()
            assert eventually(lambda: appends() > before)
            recorder.terminate()
            rest = recorder.stderr.read()
            assert recorder.wait() == 3
    assert " could not be added" in rest.splitlines()[-1]
    assert rest.count("recording goes on") == 0
    assert run("store", store, "check").returncode == 0


FIRST_THREAD_ENDS = r"""
#include <pthread.h>
#include <time.h>
volatile unsigned long sink;
static void *work(void *_) { while (clock() < CLOCKS_PER_SEC) sink++; return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_exit(0);
}
"""


@pytest.mark.whole
@needs_events
def test_a_process_goes_on_without_its_first_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> int:  # as kernels before 5.3 do
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    program = built(tmp_path, FIRST_THREAD_ENDS, "-pthread")
    with subprocess.Popen([program]) as process, Sampler(process.pid, way="perf") as sampler:
        assert sum(len(batch) for batch in sampler) > 0
        assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def test_a_command_is_running_from_when_it_is_let_go(tmp_path: Path) -> None:
    command = Command([str(built(tmp_path, WORKS_AND_WAITS))])
    assert not command.is_running
    command.let_go()
    assert command.is_running
    os.kill(command.pid, signal.SIGKILL)
    assert eventually(lambda: not command.is_running)
    assert command.wait() == 128 + signal.SIGKILL
    assert not command.is_running
