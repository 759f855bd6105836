"""Chooses the tests of a run, and says at its end what it left out.

WALKBACK_TESTS=quick (`make test`) leaves out the comparisons with peers and what is marked `whole`, runs a test that
has many parameters with some of them, and runs interpreted only what `always.toml` lists for kernels;
WALKBACK_TESTS=change (`make test-all`) runs a test that has parameters with a third of them, each revision with the
next third, and does a third of what repeats itself; WALKBACK_TESTS=smoke (`make test-pythons`) runs the verbs and
formats of `always.toml`; WALKBACK_TESTS=long (`make test-long`) runs what is marked `long`; otherwise all but that
runs.
What a quick run must not lose stands in `always.toml`: it fails if any of that was not run and passed.
"""

from __future__ import annotations

import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import effort

TESTS = Path(__file__).resolve().parent
SAMPLED = 3


def is_chosen(item: pytest.Item, interpreted: bool) -> bool:
    """Whether a test belongs to this run."""
    if effort.QUICK and interpreted and not is_listed(item.nodeid, *always("kernels").values()):
        return False
    if effort.ASKED == "smoke":
        return is_listed(item.nodeid, *always("verbs", "formats").values())
    if (item.get_closest_marker("long") is not None) != (effort.ASKED == "long"):
        return False
    if not effort.QUICK:
        return True
    left_out = item.get_closest_marker("peers") or item.get_closest_marker("whole")
    return not left_out or is_listed(item.nodeid, [one for tests in always().values() for one in tests if "::" in one])


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take away what does not belong to this run."""
    interpreted = config.getoption("--interpreted")
    chosen = [item for item in items if is_chosen(item, interpreted)]
    if effort.QUICK:
        chosen = sample(chosen)
    elif effort.ASKED == "change":
        chosen = shared_out(chosen)
    kept = set(chosen)
    others = [item for item in items if item not in kept]
    config.stash[LEFT_OUT] = len(others)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def by_test(items: list[pytest.Item]) -> dict[str, list[pytest.Item]]:
    """The items of each test."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return tests


def shared_out(items: list[pytest.Item]) -> list[pytest.Item]:
    """Of each test the items for this revision, one at least; all of what is never left out."""
    command = ["git", "-C", str(TESTS), "rev-list", "--count", "HEAD"]
    counted = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    revision = int(counted or 0)
    kept = set()
    for name, found in by_test(items).items():
        first = revision % min(effort.SHARE, len(found))
        kept.update(found if is_listed(name, *always().values()) else found[first :: effort.SHARE])
    return [item for item in items if item in kept]


def sample(items: list[pytest.Item]) -> list[pytest.Item]:
    """Some items of each test that has many, from its first to its last; all of what is never left out."""
    kept = set()
    for name, found in by_test(items).items():
        if len(found) <= SAMPLED or is_listed(name, *always().values()):
            kept.update(found)
        else:
            kept.update(found[number * (len(found) - 1) // (SAMPLED - 1)] for number in range(SAMPLED))
    return [item for item in items if item in kept]


@cache
def always(*parts: str) -> dict[str, list[str]]:
    """The tests and files of tests that parts of `always.toml`, or all of it, list, by what they stand for."""
    listed = tomllib.loads((TESTS / "always.toml").read_text())
    return {f"{part}: {name}": tests for part in parts or listed for name, tests in listed[part].items()}


def is_listed(nodeid: str, *lists: list[str]) -> bool:
    """Whether a test is among those that lists name."""
    return any(f"{nodeid}[".startswith((f"tests/{test}[", f"tests/{test}::")) for tests in lists for test in tests)


LEFT_OUT = pytest.StashKey[int]()


class Account:
    """Counts what was left out, and holds what ran against `always.toml`; one for the whole run."""

    def __init__(self, config: pytest.Config) -> None:
        self.left_out = 0
        self.passed: set[str] = set()
        self.missing: list[str] = []
        # A part of the tests was asked for by name: then nothing is missing.
        self.is_whole = [Path(word).resolve() for word in config.args] == [TESTS]
        self.interpreted = config.getoption("--interpreted")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of xdist, if any, ends: each has collected all tests, so its number is that of the run."""
        self.left_out = node.workeroutput.get("left_out", 0)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.left_out = session.config.stash.get(LEFT_OUT, self.left_out)
        if not (effort.QUICK and self.is_whole) or session.exitstatus != pytest.ExitCode.OK:
            return
        for what, tests in always(*(["kernels"] if self.interpreted else [])).items():
            for test in tests:
                if not any(is_listed(one, [test]) for one in self.passed):
                    self.missing.append(f"{what}: {test}")
        if self.missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self.missing:
            terminalreporter.line(f"not run, and always.toml wants it: {line}", red=True)
        if effort.QUICK:
            others = "`make test-all` and `make test-interpreted` run" if self.interpreted else "`make test-all` runs"
            terminalreporter.line(
                f"{self.left_out} tests left out: comparisons with peers, and repetitions; {others} these too"
            )


def begin(config: pytest.Config) -> None:
    """Keep the account, unless this is one of xdist's processes."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Account(config), "walkback-account")


def end(config: pytest.Config) -> None:
    """Report to the process that keeps the account, from one of xdist's processes."""
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = config.stash[LEFT_OUT]
