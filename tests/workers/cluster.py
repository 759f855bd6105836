"""A cluster of Dask on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from waiting import eventually

TESTS = Path(__file__).resolve().parents[1]


class Cluster:
    """A scheduler and workers, each a process, as the documentation starts them."""

    def __init__(self, folder: Path, workers: int, *, first: Path = TESTS) -> None:
        """`first` is where the workers look for modules first."""
        self.log = (folder / "log").open("w")
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)
        assert eventually(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]
        self.processes = [self.scheduler]
        if workers:
            self.add(workers, first=first)

    def add(self, workers: int, *, first: Path = TESTS) -> subprocess.Popen[bytes]:
        """More workers, by one process that watches over them."""
        nanny = self._start("worker", self.address, "--nworkers", str(workers), "--nthreads", "1", first=first)
        self.processes.insert(0, nanny)
        return nanny

    def _start(self, *args: str | Path, first: Path = TESTS) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(first), str(TESTS), *filter(None, sys.path)])
        words = [sys.executable, "-m", "dask", *map(str, args), "--no-dashboard"]
        return subprocess.Popen(words, stdout=self.log, stderr=self.log, env=os.environ | {"PYTHONPATH": path})

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()
