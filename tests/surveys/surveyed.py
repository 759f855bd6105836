"""What the tests of surveys share: files to be surveyed, what is in a survey, and workers to whom something happens."""

from __future__ import annotations

import functools
import io
import os
import resource
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sframefiles import linked, small
from waiting import PATIENCE
from walkback.packages.walk import FoundFile
from walkback.surveys import layout, run
from walkback.surveys.reading import Survey
from walkback.surveys.work import UnitBatch, work
from walkback.workers.executors import LocalWorkers

PROGRAM = "int f (int a) {{ return a + {number}; }} int main (int c, char **v) {{ return f (c) * {number}; }}"
DIES = b"here a worker dies"
FAILS = b"here the work fails"
SHRINKS = b"here the file shrinks"


def elf(number: int, more: bytes = b"") -> bytes:
    """An ELF file that no other number has."""
    return bytes(linked(small(functions=1 + number % 8).bytes()).build()) + b"%d" % number + more


def tar(members: dict[str, bytes]) -> bytes:
    """An archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """A folder with these files."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def some_files() -> dict[str, bytes]:
    """ELF files, copies of them, archives with more copies, and what is none of these or damaged."""
    files = {f"lib/{number}.so": elf(number) for number in range(40)}
    files |= {f"copies/{number}.so": elf(number % 7) for number in range(30)}
    files["some.tar"] = tar({"a/1.so": elf(1), "a/100.so": elf(100), "readme": b"text", "./x/1.so": elf(1)})
    files["cut.tar"] = tar({"1.so": elf(1), "2.so": elf(200)}).partition(b"2.so")[0] + bytes(100)
    files["broken.so"] = elf(5)[:100]
    files["readme"] = b"not for us"
    return files


def tables(folder: str | Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a survey, in the order in which they are there."""
    with Survey(folder).database() as db:
        return {table: db.execute(f"FROM {table}").fetchall() for table in layout.TABLES}


def names(folder: Path) -> set[str]:
    """What lies in a folder."""
    return {path.name for path in Path(folder).iterdir()}


def objects(folder: str | Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table by the names of their columns."""
    return [dict(zip(layout.COLUMNS[table], row, strict=True)) for row in tables(folder)[table]]


def command(*args: str | Path, **options: Any) -> subprocess.Popen[str]:
    """The command, started."""
    return subprocess.Popen(
        [sys.executable, "-c", "from walkback.cli import main; main()", "survey", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(*args: str | Path, **options: Any) -> tuple[int, str, str]:
    """The command, at its end: its exit status and what it printed."""
    process = command(*args, **options)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def faulty(batch: UnitBatch) -> list[bytes]:
    """The work, during which a worker dies or fails where a file says so."""
    from importlib import import_module

    module: Any = import_module("walkback.surveys.work")

    right = module.elf_files_in

    def elf_files_in(path: str) -> Iterator[Any]:
        for found in right(path):
            data = bytes(found.data) if isinstance(found, FoundFile) else b""
            if DIES in data and not _spent(data):
                os.kill(os.getpid(), signal.SIGKILL)
            if FAILS in data:
                message = "a fault of ours"
                raise LookupError(message)
            if SHRINKS in data:
                os.truncate(path, 8192)
            yield found

    module.elf_files_in = elf_files_in
    try:
        return work(batch)
    finally:
        module.elf_files_in = right


def _spent(data: bytes) -> bool:
    """Whether it died often enough: behind the mark may be a folder that has a file for each more time."""
    left = Path(os.fsdecode(data.partition(DIES)[2]))
    if not left.is_absolute():
        return False
    for file in left.iterdir():
        file.unlink()
        return False
    return True


def starved(limit: int, batch: UnitBatch) -> list[bytes]:
    """The work on a machine that has too little of something: memory, or room for files."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    enough = {resource.RLIMIT_AS: used + (32 << 20), resource.RLIMIT_FSIZE: 1 << 20}
    former = resource.getrlimit(limit)
    resource.setrlimit(limit, (enough[limit], former[1]))
    try:
        return work(batch)
    finally:
        resource.setrlimit(limit, former)


class _Faulty(Executor):
    def __init__(self, executor: Executor, its_work: Callable[[UnitBatch], list[bytes]] = faulty) -> None:
        self.executor = executor
        self.work = its_work

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert fn is work
        return self.executor.submit(self.work, *args, **kwargs)


class FaultyWorkers(LocalWorkers):
    """Processes of this machine that do `faulty` in the place of the work."""

    def executor(self) -> Executor:
        return _Faulty(super().executor())


class StarvedWorkers(LocalWorkers):
    """A process of this machine that has too little of something, by the number of the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(1)
        self._limit = limit

    def executor(self) -> Executor:
        return _Faulty(super().executor(), functools.partial(starved, self._limit))


class Here:
    """A thread of this process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)

    def executor(self) -> Executor:
        return self._pool

    def count(self) -> int:
        return 1

    def loss(self, error: Any) -> None:
        return None

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def often(files: Path, output: Path) -> None:
    """A survey that writes a part after each file or two, as a long one does after each while."""
    run._WRITTEN_EVERY = run._SHARE_LOST = 0
    run._BATCH_FILES = 2
    run._TOGETHER = 1
    run.survey([files], output, jobs=2)


_STEPS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def dies_at(step: int, files: Path, output: Path, done: Path) -> None:
    """A survey that is killed just before the so-manyth change of files in its folder."""
    left = step

    def count(event: str, details: tuple[Any, ...]) -> None:
        nonlocal left
        changes = event in _STEPS or (event == "open" and details[2] & (os.O_RDWR | os.O_WRONLY))
        # Files in a folder that goes anyway are taken away by names that are not whole paths.
        if changes and str(details[0]).startswith(str(output)):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    run.survey([files], output, workers=Here())
    left = 0
    done.touch()


def consistent(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of a survey, finished or not: nothing twice, and nothing without what it belongs to."""
    found = tables(folder)
    units, files = [row[0] for row in found["units"]], [row[0] for row in found["files"]]
    assert len(units) == len(set(units))
    assert len(files) == len(set(files))
    assert {row[0] for row in found["places"]} == set(files)
    assert {row[1] for row in found["places"]} <= set(units)
    for table in ("versions", "sframe", "functions"):
        assert {row[0] for row in found[table]} <= set(files)
    return found
