"""`walkback store`: every verb, what it prints, and its exit status."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
from itertools import chain
from pathlib import Path

import pytest

from cli.commands import WALKBACK, run, told
from cli.stored import FOLDED, asked, objects, text
from waiting import PATIENCE, eventually
from walkback.cbf.encoding import encode as encode_backtrace
from walkback.cbf.layout import FrameCode
from walkback.cli.verbs.store import HEADINGS
from walkback.cli.walking import STREAMED, SUMMED
from walkback.export.formats import FORMATS as WRITERS

pytestmark = [pytest.mark.whole, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "stacks.folded"
    path.write_text("server;main;work;sort 30\nserver;main;idle 10\nclient;main;work 5\n")
    return path


@pytest.fixture
def store(tmp_path: Path, folded: Path) -> Path:
    """Folded stacks of two versions."""
    path = tmp_path / "store"
    for version, time_of in (("1", "2026-11-21T13:10"), ("2", "2026-11-21T14:20")):
        done = asked(path, "append", folded, "--host", "web1", "--label", f"version={version}", "--time", time_of)
        assert done.returncode == 0, done.stderr
        folded.write_text("server;main;work;sort 10\nserver;main;work;hash 40\n")
    return path


def test_help_tells_of_every_verb() -> None:
    done = run("store", "--help")
    verbs = list(chain(*HEADINGS.values()))
    assert re.findall(r"^  (\w+) {2,}", done.stdout.decode().partition("Put stacks in:")[2], re.MULTILINE) == verbs
    for verb in verbs:
        helped = run("store", "DIR", verb, "--help")
        assert (helped.returncode, helped.stderr) == (0, b"")
        assert helped.stdout.startswith(f"Usage: walkback store DIR {verb} ".encode())


def test_append_and_overview(tmp_path: Path, recorded: Path) -> None:
    done = asked(tmp_path / "store", "append", recorded)
    assert done.stdout.decode() == f"{tmp_path / 'store'}: 6 samples, 3 stacks, in 1 hour\n"
    assert "1 of 6 stacks not complete" in done.stderr.decode()
    lines = text(tmp_path / "store").splitlines()
    assert re.fullmatch(r".*: 6 samples, 3 stacks, \d+ bytes", lines[0])
    assert "processes: hello" in lines
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d +1 +6 +3 +\d+", lines[-1])
    (told_of,) = objects(tmp_path / "store")
    assert (told_of["samples"], told_of["stacks"], told_of["processes"]) == (6, 3, ["hello"])


def test_append_tells_what_it_did_as_json(store: Path, folded: Path) -> None:
    (done,) = objects(store, "append", folded, "--time", "2026-11-21T15:00")
    assert done["hours"]["2026-11-21T15"]["weight"] == 50


def test_all_files_are_appended_or_none(tmp_path: Path, folded: Path) -> None:
    broken = tmp_path / "broken.folded"
    broken.write_text("no weight\n")
    assert told(asked(tmp_path / "store", "append", folded, broken)) == (
        3,
        f"{broken}: line 1 does not end in a blank and a number",
    )
    assert told(asked(tmp_path / "store", "append", folded, tmp_path / "missing"))[0] == 3
    assert objects(tmp_path / "store")[0]["samples"] == 0


def test_the_folded_stacks_of_a_recording(tmp_path: Path, recorded: Path) -> None:
    asked(tmp_path / "store", "append", recorded)
    assert text(tmp_path / "store", "flame", "--format", "folded") == FOLDED


def test_what_is_too_large_for_backtraces_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(6 << 30)
    status, line = told(asked(tmp_path / "store", "append", tmp_path / "large"))
    assert (status, line) == (3, f"{tmp_path / 'large'}: this is more than 268435456 bytes")


def test_append_backtraces(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    file.write_bytes(encode_backtrace([(FrameCode.PC, 0x1000), (FrameCode.RA, 0x2001)]) * 3)
    assert asked(tmp_path / "store", "append", file, "--process", "swift").returncode == 0
    query = (
        "SELECT process, list(address ORDER BY depth) AS at, count(*) AS n "
        "FROM samples JOIN stack_frames USING (stack) JOIN frames USING (frame) GROUP BY process"
    )
    found = objects(tmp_path / "store", "sql", query)
    assert found == [{"process": "swift", "at": [0x1000] * 3 + [0x2000] * 3, "n": 6}]


def test_top_by_version(store: Path) -> None:
    assert [line.split() for line in text(store, "top", "--by", "version").splitlines()] == [
        ["weight", "%", "samples", "version"],
        ["50", "52.63", "2", "2"],
        ["45", "47.37", "3", "1"],
    ]
    assert text(store, "top", "--by", "version", "--limit", 1).splitlines()[2:] == ["and 1 more"]
    assert objects(store, "top", "--by", "host") == [{"value": "web1", "weight": 95, "count": 5}]
    assert told(asked(store, "top", "--by", "zone")) == (
        1,
        f"{store}: no sample has the label zone; the labels are version",
    )


def test_top(store: Path) -> None:
    lines = text(store, "top", "--limit", 2).splitlines()
    assert lines[0] == f"{store}: 5 samples, 95 weight"
    assert lines[3].split() == ["40", "42.11", "40", "42.11", "sort"]
    assert objects(store, "top", "--limit", 1, "--label", "version=1") == [
        {"name": "sort", "module": "", "own": 30, "total": 30}
    ]


def test_samples_are_chosen(store: Path) -> None:
    def chosen(*options: str) -> int:
        done = asked(store, "flame", "--format", "folded", *options)
        return sum(int(line.rpartition(b" ")[2]) for line in done.stdout.splitlines())

    assert chosen() == 95
    assert chosen("--since", "2026-11-21T14:00") == chosen("--label", "version=2") == 50
    assert chosen("--until", "2026-11-21T14:00", "--process", "client") == 5
    assert chosen("--label", "version=1", "--label", "version=2", "--host", "web1") == 95
    assert chosen("--host", "web2") == 0


def test_no_samples_are_told(store: Path) -> None:
    for verb in (["top"], ["flame"], ["through", "main"]):
        assert told(asked(store, *verb, "--host", "nobody")) == (1, f"{store}: there are no such samples")


def test_every_format_that_sums_up(store: Path, tmp_path: Path) -> None:
    assert {name for name, form in WRITERS.items() if form.streamed} == set(STREAMED)
    assert set(SUMMED) == set(WRITERS) - set(STREAMED)
    for form in SUMMED:
        out = tmp_path / "out"
        assert asked(store, "flame", "--format", form, "-o", out).returncode == 0
        assert out.stat().st_size
        out.unlink()
    page = text(store, "flame")
    assert page.startswith("<!DOCTYPE html>")
    assert "store: 2026-11-21 13:10:00 to 14:20:00 UTC</h1>" in page


def test_through(store: Path) -> None:
    lines = text(store, "through", "work").splitlines()
    assert lines[:2] == ["work", "85 of 95 weight (89.47 %), 5 of its own"]
    assert ["85", "100.00", "main"] in [line.split() for line in lines]
    assert ["40", "47.06", "hash"] in [line.split() for line in lines]
    (found,) = objects(store, "through", "--regex", "^(sort|hash)$")
    assert (found["weight"], found["own"], found["whole"]) == (80, 80, 95)
    assert found["callers"] == [{"name": "work", "module": "", "weight": 80}]
    assert text(store, "through", "idle", "--format", "folded") == "server;main;idle 10\n"


def test_through_what_is_not_there(store: Path) -> None:
    assert told(asked(store, "through", "wor")) == (1, f"{store}: no stack has wor; there is work")
    assert told(asked(store, "through", "xyz")) == (1, f"{store}: no stack has xyz")
    assert asked(store, "through", "--regex", "(").returncode == 2


def test_diff(store: Path, tmp_path: Path) -> None:
    lines = text(store, "diff", "version=1", "version=2").splitlines()
    assert lines[4].split() == ["0.00", "80.00", "+80.00", "0.00", "80.00", "+80.00", "hash"]
    first = objects(store, "diff", "until=2026-11-21T14:00,process=server", "since=2026-11-21T14:00")[0]
    assert (first["name"], first["own_after"], first["before"], first["after"]) == ("hash", 40, 40, 50)
    page = tmp_path / "diff.html"
    assert asked(store, "diff", "version=1", "version=2", "--format", "html", "-o", page).returncode == 0
    assert "version=1 \u2192 version=2" in page.read_text()
    for words in ("version", "=1", "since=never"):
        assert asked(store, "diff", words, "version=2").returncode == 2
    assert told(asked(store, "diff", "version=1", "version=3"))[0] == 1


def test_sql(store: Path) -> None:
    query = "SELECT process, labels, sum(weight) AS weight FROM samples GROUP BY ALL ORDER BY weight DESC, process"
    assert text(store, "sql", query).splitlines()[:2] == ["process  labels     weight", "server   version=2      50"]
    assert text(store, "sql", query, "--csv").splitlines()[1] == "server,version=2,50"
    assert objects(store, "sql", query)[0] == {"process": "server", "labels": {"version": "2"}, "weight": 50}
    assert text(store, "sql", "SELECT 1 AS a WHERE false") == "a\n"
    assert text(store, "sql", "SELECT count(*) AS n FROM samples", "--since", "2026-11-21T14:00", "--csv") == "n\n2\n"


def test_sql_reads_other_files_only_where_that_is_allowed(store: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a\n1\n")
    query = f"FROM read_csv('{tmp_path}/other.csv')"
    done = asked(store, "sql", query)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--allow-files" in done.stderr
    assert text(store, "sql", query, "--allow-files") == "a\n1\n"


def test_names_of_columns_are_spelled_out(store: Path) -> None:
    assert text(store, "sql", 'SELECT 1 AS "a\x1b[31m\u202eb"') == "a\\x1b[31m\\u202eb\n               1\n"


def test_json_of_what_is_no_number(store: Path) -> None:
    assert objects(store, "sql", "SELECT 1 / 0 AS a, 'nan'::DOUBLE AS b, [1] AS c") == [
        {"a": None, "b": None, "c": [1]}
    ]


def test_arguments_that_are_not_utf8(store: Path) -> None:
    some: list[list[str | bytes]] = [["top", "--host", b"\xff"], ["through", b"\xff"], ["diff", b"\xff=1", "version=1"]]
    for args in some:
        done = run("store", store, *args)
        assert (done.returncode, b"Traceback" in done.stderr) == (1, False), args
    assert run("store", store, "sql", b"SELECT '\xff' AS a").stdout == "a\n\ufffd\n".encode()


@pytest.mark.parametrize("query", ["SELEC", "DROP VIEW samples", "FROM nowhere", "SELECT 1; SELECT 2"])
def test_wrong_sql_is_wrong_usage(store: Path, query: str) -> None:
    done = asked(store, "sql", query)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr


def test_compact_expire_check(store: Path, folded: Path) -> None:
    asked(store, "append", folded, "--time", "2026-11-21T14:30")
    before = text(store, "flame", "--format", "folded")
    assert text(store, "compact") == f"{store}: 2 blocks became 1\n"
    assert text(store, "compact") == f"{store}: there is nothing to compact\n"
    assert text(store, "flame", "--format", "folded") == before
    assert text(store, "check") == f"{store}: 2 blocks, no problems\n"
    assert objects(store, "expire", "--before", "2026-11-21T14:00")[0]["replaced"] == 1
    assert objects(store)[0]["samples"] == 4
    assert objects(store, "check") == []


def test_check_tells_what_is_wrong(store: Path) -> None:
    file = next(store.rglob("nodes.parquet"))
    file.write_bytes(b"nothing")
    done = asked(store, "check")
    assert done.returncode == 1
    assert str(file) in done.stdout.decode()


def test_what_is_no_store(tmp_path: Path) -> None:
    for verb in ([], ["top"], ["flame"], ["through", "f"], ["sql", "FROM samples"], ["compact"], ["check"]):
        assert told(asked(tmp_path, *verb)) == (3, f"{tmp_path}: not a store") or verb == ["check"]
        missing = tmp_path / "missing"
        assert told(asked(missing, *verb)) == (3, f"{missing}: No such file or directory") or verb == ["check"]
    assert asked(tmp_path, "append", "x").returncode == 3


def test_wrong_usage(store: Path) -> None:
    for args in (
        ["top", "--since", "yesterday"],
        ["top", "--label", "version"],
        ["flame", "--format", "json"],
        ["expire"],
        ["through", "f", "--json", "--format", "folded"],
        ["sql", "SELECT 1", "--json", "--csv"],
        ["nothing"],
    ):
        assert asked(store, *args).returncode == 2, args
    assert run("store", store, "--json", "top").returncode == 2


def test_bytes_are_not_for_a_terminal(store: Path) -> None:
    controller, terminal = pty.openpty()
    try:
        done = run("store", store, "flame", "--format", "pprof", stdout=terminal)
        assert done.returncode == 2
    finally:
        os.close(controller)
        os.close(terminal)


def test_stacks_that_weigh_nothing(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("p;a;b 0\n")
    assert asked(tmp_path / "store", "append", tmp_path / "f").returncode == 0
    assert text(tmp_path / "store", "through", "a").splitlines()[1].startswith("0 of 0 ")
    for verb in (["top"], ["flame"], ["diff", "process=p", "process=p"]):
        assert asked(tmp_path / "store", *verb).returncode == 0


def test_a_time_that_no_sample_has(tmp_path: Path, folded: Path, recorded: Path) -> None:
    for file in (folded, recorded):
        for when in ("9999-12-31", "999999999w", "0001-01-01"):
            done = asked(tmp_path / "store", "append", file, "--time", when)
            assert (done.returncode, b"1970 to 2262" in done.stderr, b"Traceback" in done.stderr) == (3, True, False)


def test_a_label_has_one_value(store: Path, folded: Path, recorded: Path) -> None:
    labels = ("--label", "a=1", "--label", "a=2")
    assert asked(store, "append", folded, *labels).returncode == 2
    assert run("unwind", recorded, "--store", store, *labels).returncode == 2


def test_diff_of_several_and_of_what_contradicts_itself(store: Path) -> None:
    first = objects(store, "diff", "process=server,process=client", "version=2")[0]
    assert (first["before"], first["after"]) == (95, 50)
    for args in (
        ["process=server", "process=server", "--process", "q"],
        ["version=1", "version=2", "--label", "version=1"],
        ["since=2h,since=1h", "version=2"],
    ):
        assert asked(store, "diff", *args).returncode == 2


def test_sql_tells_all_as_json(store: Path) -> None:
    query = "SELECT MAP {DATE '2020-01-01': 1} AS a, [1, 'nan'::DOUBLE] AS b, {'c': 'inf'::DOUBLE} AS d, 1 AS a"
    assert objects(store, "sql", query) == [{"a": {"2020-01-01": 1}, "b": [1, None], "d": {"c": None}, "a_1": 1}]
    query = "SELECT make_timestamp_ns(1700000000233517351) AS a, to_timestamp(0) AS b, now() > to_timestamp(0) AS c"
    assert objects(store, "sql", query) == [
        {"a": "2023-11-14T22:13:20.233517351", "b": "1970-01-01T00:00:00", "c": True}
    ]
    assert text(store, "sql", query, "--csv").splitlines()[1].startswith("2023-11-14T22:13:20.233517351,")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_query_that_takes_long_ends_with_a_signal(number: signal.Signals, status: int, store: Path) -> None:
    query = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
    with subprocess.Popen([WALKBACK, "store", store, "sql", query], stderr=subprocess.PIPE) as process:
        assert eventually(lambda: processor_time(process.pid) > 3)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors.strip()) == (status, b"")


def processor_time(pid: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
