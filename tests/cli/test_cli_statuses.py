"""Exit status 1, which each verb explains in its help: whatever the sentence names gives it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.inprocess import run
from test_docs import folder  # noqa: F401

CALLS = """
    add     empty.o -o output
    add     bare.a -o output
    add     hello -o output --strict
    cbf     decode 021a4010461a40104600 --limit 1
    check   damaged.so
    check   hello
    cif     show 02
    compare a.out hello
    compare hello
    compare new.hello --strict
    convert hello --version 2 -o output
    convert signal.so -o output --version 1
    convert signal.so -o output --version 1 --leave-out --strict
    derive  empty.o -o output
    derive  hello -o output --strict
    drop    hello -o output
    find    a.out nothing
    find    hello main
    fix     hello -o output
    link    hello -o output
    link    signal.so -o output --version 1
    report  empty.o
    show    a.out --function nothing
    show    hello
    size    empty.o
    split   hello.o -o output
    store   made top --host nobody
    store   made top --by nothing
    store   made through nothing
    store   made diff host=nobody host=nobody
    store   made append nothing.folded
    survey  none -o output
    unwind  torn.data
    verify  hello --table .nothing
    verify  hello --explain nothing
    verify  hello --frame-pointers
"""
"""By `folder` and `made`."""


@pytest.fixture
def made(folder: Path) -> None:  # noqa: F811
    """More files, whose names say what they lack."""
    (folder / "empty.s").touch()
    subprocess.run(["as", "-o", "empty.o", "empty.s"], check=True)
    subprocess.run(["ar", "rc", "bare.a", "empty.o"], check=True)
    (folder / "torn.data").write_bytes((folder / "perf.data").read_bytes()[:-200])
    (folder / "nothing.folded").touch()
    (folder / "none").mkdir()
    run("add", "hello", "-o", "new.hello")
    run("store", "made", "append", "perf.data")


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize("call", [line.strip() for line in CALLS.strip().splitlines()])
def test_what_gives_1(call: str) -> None:
    done = run(*call.split())
    assert done.exit_code == 1, done.output
