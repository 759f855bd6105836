"""Live processes: what is seen of them, and that they do not notice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from capture.targets import THREADS, Look, compiled, gdb_stacks, pcs, started, state
from waiting import eventually
from walkback.base.errors import UnreadableError
from walkback.capture.live.process import Process
from walkback.naming.modules import Modules

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_yield"), reason="needs Linux")


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("threads"), THREADS)


def test_all_threads_are_walked_to_their_beginnings(threads: Path) -> None:
    with started(threads) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules)
        snapshot = look.at(process)
        assert look.ends(snapshot) == ["complete"] * 5
        assert snapshot.tids == process.threads()
        assert snapshot.names == ["target"] * 5
        assert snapshot.command == "target"
        assert snapshot.troubles == []
        assert look.names(snapshot, 0)[:8] == ["pause", *["sleepy"] * 6, "main"]
        assert look.names(snapshot, 3)[:6] == ["pause", *["sleepy"] * 4, "run"]
        assert look.names(snapshot, 2)[:4] == [*["busy"] * 3, "run"]
        assert (snapshot.stopped > 0).all()
        assert snapshot.signal == 0
        assert snapshot.signalled == -1


@pytest.mark.peers
def test_the_same_as_gdb(threads: Path) -> None:
    with started(threads) as target:
        os.kill(target.pid, signal.SIGSTOP)
        assert eventually(lambda: all(state(tid) == "T" for tid in Process(target.pid, Modules()).threads()))
        look = Look(Modules())
        ours = pcs(look.at(Process(target.pid, look.modules)))
        assert state(target.pid) == "T"
        theirs = gdb_stacks("-p", str(target.pid))
        assert ours == theirs


def test_a_stopped_process_stays_stopped_and_goes_on_when_it_is_told(threads: Path) -> None:
    with started(threads) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules)
        for _ in range(20):
            os.kill(target.pid, signal.SIGSTOP)
            assert eventually(lambda: state(target.pid) == "T")
            first, second = look.at(process), look.at(process)
            assert pcs(first) == pcs(second)
            assert eventually(lambda: {state(tid) for tid in process.threads()} == {"T"})
            os.kill(target.pid, signal.SIGCONT)
            assert eventually(lambda: state(target.pid) == "S")


def test_no_signal_is_lost(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        volatile int seen;
        static void on(int n) { seen++; }
        int main(void) {
            signal(SIGRTMIN, on); puts("ready"); fflush(stdout);
            while (seen < 2000) usleep(1000);
            printf("%d\n", seen); fflush(stdout); pause();
        }
        """,
    )
    with started(program) as target:
        process = Process(target.pid, Modules())
        stop = threading.Event()

        def send() -> None:
            for _ in range(2000):
                os.kill(target.pid, signal.SIGRTMIN)
                time.sleep(0.0002)
            stop.set()

        sender = threading.Thread(target=send)
        sender.start()
        while not stop.is_set():
            process.sample()
        sender.join()
        assert target.stdout.readline() == b"2000\n"
        assert process.stops > 50


@pytest.mark.whole
def test_a_target_survives_thousands_of_samples(threads: Path) -> None:
    with started(threads) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules)
        spaces = set()
        for _ in range(600):
            snapshot = look.at(process)
            assert len(snapshot.tids) == 5
            spaces.add(id(snapshot.spaces[0]))
        assert process.stops >= 3000
        assert len(spaces) == 1
        assert target.poll() is None
        assert eventually(lambda: state(target.pid) == "S")


@pytest.mark.whole
def test_a_target_goes_on_when_walkback_is_killed_in_the_middle(threads: Path) -> None:
    script = """
        import sys, time
        from walkback.naming.modules import Modules
        from walkback.capture.live.process import Process
        process = Process(int(sys.argv[1]), Modules())
        tracer = process._tracing.tracer
        take = tracer.take
        def slow(tid, extent, work, pieces):
            def wait():
                print("stopped", flush=True)
                time.sleep(60)
            return take(tid, extent, wait)
        tracer.take = slow
        process.sample()
    """
    with started(threads) as target:
        for _ in range(3):
            with started(sys.executable, "-c", textwrap.dedent(script), str(target.pid)) as tracer:
                assert state(target.pid) == "t"
                tracer.kill()
                tracer.wait()
            assert eventually(lambda: state(target.pid) == "S")
        assert len(Process(target.pid, Modules()).sample().tids) == 5


def test_threads_that_come_and_go(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        static void *run(void *p) { usleep(2000); return 0; }
        int main(void) {
            puts("ready"); fflush(stdout);
            for (;;) {
                pthread_t threads[8];
                for (int i = 0; i < 8; i++) pthread_create(threads + i, 0, run, 0);
                for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
            }
        }
        """,
    )
    with started(program) as target:
        look = Look(Modules())
        process = Process(target.pid, look.modules)
        for _ in range(100):
            snapshot = look.at(process)
            assert target.pid in snapshot.tids
            assert all("ended before" in trouble for trouble in snapshot.troubles), snapshot.troubles
        assert target.poll() is None


def test_a_first_thread_that_has_ended_does_not_hide_the_others(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        static void *run(void *p) { usleep(100000); puts("ready"); fflush(stdout); for (;;) pause(); return 0; }
        int main(void) { pthread_t thread; pthread_create(&thread, 0, run, 0); pthread_exit(0); }
        """,
    )
    with started(program) as target:
        look = Look(Modules())
        snapshot = look.at(Process(target.pid, look.modules))
        assert len(snapshot.tids) == 1
        assert look.names(snapshot, 0)[:2] == ["pause", "run"]
        assert snapshot.troubles == []


def test_a_thread_that_cannot_be_stopped_is_told_and_let_go(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        r"""
        #include <stdio.h>
        #include <unistd.h>
        int main(void) {
            char byte;
            if (vfork() == 0) { read(0, &byte, 1); _exit(0); }
            puts("on"); fflush(stdout); pause();
        }
        """,
    )
    with started(program, ready=False, stdin=subprocess.PIPE) as target:
        assert eventually(lambda: state(target.pid) == "D")
        with pytest.raises(UnreadableError, match=r"did not stop in time \(state D"):
            Process(target.pid, Modules(), patience=0.2).sample()
        target.stdin.close()
        assert target.stdout.readline() == b"on\n"
        assert eventually(lambda: state(target.pid) == "S")
        assert len(Process(target.pid, Modules()).sample().tids) == 1


def test_errors_are_one_clear_line(threads: Path) -> None:
    with pytest.raises(UnreadableError, match=r"^process 4194305: there is no such process$"):
        Process(4194305, Modules())
    if Path("/proc/2/status").exists() and "Kthread:\t1" in Path("/proc/2/status").read_text():
        with pytest.raises(UnreadableError, match=r"^process 2: a kernel thread has no user stack"):
            Process(2, Modules())
    zombie = subprocess.Popen(["true"])
    assert eventually(lambda: state(zombie.pid) == "Z")
    with pytest.raises(UnreadableError, match="a zombie"):
        Process(zombie.pid, Modules())
    zombie.wait()
    with started(threads) as target:
        process = Process(target.pid, Modules())
        process.sample()
        target.kill()
        target.wait()
        with pytest.raises(UnreadableError, match=r"^process \d+: it has ended$"):
            process.sample()


def test_a_process_of_somebody_else_is_refused(threads: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    script = """
        import os, sys
        from walkback.naming.modules import Modules
        from walkback.capture.live.process import Process
        from walkback.base.errors import UnreadableError
        os.setgid(65534); os.setuid(65534)
        try:
            Process(int(sys.argv[1]), Modules()).sample()
        except UnreadableError as error:
            print(error)
    """
    with started(threads) as target:
        command = [sys.executable, "-c", textwrap.dedent(script), str(target.pid)]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert (
            told == f"process {target.pid}: its memory may not be read: it belongs to somebody else, or is protected\n"
        )


def test_a_process_that_is_traced_already_names_the_tracer(threads: Path) -> None:
    script = """
        import sys, time
        from walkback.capture.live import ptrace
        assert ptrace._ptrace(0x4206, int(sys.argv[1]), None, None) == 0
        print("traced", flush=True)
        time.sleep(60)
    """
    with started(threads) as target, started(sys.executable, "-c", textwrap.dedent(script), str(target.pid)) as tracer:
        snapshot = Process(target.pid, Modules()).sample()
        assert len(snapshot.tids) == 4
        assert len(snapshot.troubles) == 1
        assert f"process {tracer.pid} is tracing it" in snapshot.troubles[0]


def test_a_number_of_any_thread_stands_for_its_process(threads: Path) -> None:
    with started(threads) as target:
        other = Process(target.pid, Modules()).threads()[-1]
        process = Process(other, Modules())
        assert process.pid == target.pid
        assert len(process.sample().tids) == 5


def test_registers_and_memory_are_those_of_the_thread(threads: Path) -> None:
    with started(threads) as target:
        snapshot = Process(target.pid, Modules()).sample()
        samples = snapshot.samples
        assert (samples.known == (1 << 17) - 1 | 1 << 32 | 1 << 33).all() or snapshot.machine.name != "AMD64"
        memory = samples.memory
        for i in range(len(samples)):
            sp = int(samples.registers[i, snapshot.machine.sp])
            assert samples.end_segment[i] - samples.first_segment[i] == 1
            start, size = int(memory.start[i]), int(memory.size[i])
            assert start == sp - 128
            assert size > 128
        assert (samples.cut == 0).all()
        assert np.array_equal(samples.registers[:, 16], samples.registers[:, 32])
