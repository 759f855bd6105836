"""Interrupts that come where Python or a library drops what is raised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

INTERRUPTED = """
import signal, sys
from walkback.cli.main import main
from walkback.elf import OpenFile

def interrupted(self):
    OpenFile.__del__ = close
    signal.raise_signal(signal.SIGINT)
    close(self)

close, OpenFile.__del__ = OpenFile.__del__, interrupted
main()
"""


@pytest.mark.whole
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_a_file_is_closed_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "made.o"
    subprocess.run(["as", "-o", path, "-"], input=b".cfi_startproc; ret; .cfi_endproc\n", check=True)
    command = [sys.executable, "-c", INTERRUPTED, "verify", *[str(path)] * 500]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (130, b"")


LOOKED_FOR = """
import signal, sys, time
import numpy as np
from walkback.cli.interrupts import repeat_interrupts

seen = []

class Named(type):
    def __getattr__(self, name):
        if name == "__array_interface__" and not seen:
            seen.append(name)
            signal.raise_signal(signal.SIGINT)
        raise AttributeError(name)

class Value(metaclass=Named):
    def __getattr__(self, name):
        type(self).__array_interface__

repeat_interrupts()
try:
    print(np.array([Value()]).dtype)
    time.sleep(100)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_numpy_looks_for_a_name_is_not_lost() -> None:
    done = subprocess.run([sys.executable, "-c", LOOKED_FOR], capture_output=True, check=False)
    assert done.stdout == b"object\ninterrupted\n"
