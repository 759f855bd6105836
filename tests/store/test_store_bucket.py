"""A store in a bucket holds what it holds in a folder, whatever the service and other processes do."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store.bucketworker import IN_PIECES, WAYS, append, append_hours, compact, expire, start, weights
from store.objectservices import BUCKET, Faults, Proxy, running

WALKBACK = Path(sys.executable).with_name("walkback")
LINES = b"run;main 8\nrun;main;compute 2\n"
LONG = [pytest.param(scheme, marks=pytest.mark.long) for scheme in ("s3", "az", "gs")]

pytestmark = pytest.mark.peers


@pytest.fixture
def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxy]:
    folder = tmp_path / "service"
    folder.mkdir()
    with running(getattr(request, "param", "s3"), folder) as service, Proxy(service) as found:
        yield found


def run(proxy: Proxy, *args: str, cache: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {**proxy.environment, "WALKBACK_CACHE": str(cache)}
    return subprocess.run([WALKBACK, "store", *args], env=environment, input=stdin, capture_output=True, check=False)


def kept(proxy: Proxy, cache: Path) -> Any:
    """The weight of each name, or the error."""
    here, there = WAYS.Pipe()
    process = start(weights, proxy.environment, cache, proxy.service.url, there)
    assert here.poll(120)
    found = here.recv()
    process.join()
    return found


def ask(proxy: Proxy, text: str, *args: str, stdin: bytes = b"") -> bytes:
    """What a script of Python prints that knows the service as `files`."""
    script = f"import fsspec, json, sys; files = fsspec.filesystem(sys.argv[1]); {text}"
    command = [sys.executable, "-c", script, proxy.service.scheme, *args]
    return subprocess.run(command, env=proxy.environment, input=stdin, capture_output=True, check=True).stdout


def keys(proxy: Proxy) -> list[str]:
    """All objects of the store."""
    found = json.loads(ask(proxy, "print(json.dumps(files.find(sys.argv[2])))", f"{BUCKET}/a/store"))
    return [key.partition("/a/store/")[2] for key in found]


def put(proxy: Proxy, contents: dict[str, bytes]) -> None:
    """Put objects into the store, or others in their place."""
    text = {f"{BUCKET}/a/store/{key}": data.decode("latin-1") for key, data in contents.items()}
    script = "[files.pipe_file(key, data.encode('latin-1')) for key, data in json.load(sys.stdin).items()]"
    ask(proxy, script, stdin=json.dumps(text).encode())


@pytest.mark.parametrize("proxy", ["s3", "az", "gs"], indirect=True)
def test_every_verb_says_the_same_as_of_a_folder(proxy: Proxy, tmp_path: Path) -> None:
    folder, url = str(tmp_path / "folder"), proxy.service.url
    asked = [
        ("append", "-", "--time", "2026-10-20T14:30", "--label", "build=1"),
        ("append", "-", "--time", "2026-10-20T14:50", "--label", "build=2"),
        ("append", "-", "--time", "2026-10-21T15:30"),
        ("append", "-", "--time", "2026-11-21T15:30"),
        ("top", "--by", "build"),
        ("compact",),
        ("top", "--label", "build=2"),
        ("sql", "SELECT count(*), sum(weight) FROM samples"),
        ("check",),
        ("names",),
        ("expire", "--before", "2026-11-01"),
        ("top",),
    ]
    for words in asked if proxy.service.scheme == "s3" else [*asked[:2], asked[5], *asked[7:9]]:
        stdin = LINES if "append" in words else b""
        near, far = (run(proxy, name, *words, cache=tmp_path / "cache", stdin=stdin) for name in (folder, url))
        assert near.returncode == far.returncode, (words, far.stderr)
        assert far.stdout.decode().replace(url, folder) == near.stdout.decode(), words


def test_workers_bring_what_they_read_and_merge_it(proxy: Proxy, tmp_path: Path) -> None:
    for hour in (0, 1, 2, 3, 4, 4, 3):
        time = f"2026-10-20T{hour:02}:30"
        assert run(proxy, proxy.service.url, "append", "-", "--time", time, cache=tmp_path, stdin=LINES).returncode == 0
    expected = run(proxy, proxy.service.url, "top", cache=tmp_path).stdout
    assert b"70 weight" in expected

    def by_two(*words: str) -> tuple[bytes, bytes]:
        command = [sys.executable, "-c", IN_PIECES, "store", proxy.service.url, *words, "--jobs", "2"]
        environment = {**proxy.environment, "WALKBACK_CACHE": str(tmp_path / "other")}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        return done.stdout, done.stderr

    assert by_two("top") == (expected, b"")
    assert len(list((tmp_path / "other").rglob("samples.parquet"))) == 7
    assert by_two("compact") == (f"{proxy.service.url}: 4 blocks became 2\n".encode(), b"")
    assert by_two("top") == (expected, b"")
    assert run(proxy, proxy.service.url, "check", cache=tmp_path).returncode == 0


def test_a_service_that_overwrites_is_refused(tmp_path: Path) -> None:
    with running("gs", tmp_path) as service, Proxy(service, exclusive=False) as proxy:
        done = run(proxy, service.url, "append", "-", cache=tmp_path / "cache", stdin=LINES)
        assert (done.returncode, done.stdout) == (3, b"")
        message = "this service does not refuse to create an object that exists"
        assert done.stderr.decode() == f"walkback: {service.url}: {message}\n"
        assert keys(proxy) == []


NO_ADDRESS = "is not the address of a store: s3://, gs://, az:// and the name of a bucket are"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("s3://stacks/none", "not a store"),
        ("s3://", f"'s3://' {NO_ADDRESS}"),
        ("ftp://a/b", f"'ftp://a/b' {NO_ADDRESS}"),
        ("s3://a/[b]", f"'s3://a/[b]' {NO_ADDRESS}"),
    ],
)
def test_what_is_no_store_is_one_line(url: str, message: str, objects: Proxy, tmp_path: Path) -> None:
    done = run(objects, url, "top", cache=tmp_path / "cache")
    assert done.returncode == 3
    assert done.stderr.decode() == f"walkback: {url}: {message}\n"


def test_a_service_that_is_not_there_is_one_line(objects: Proxy, tmp_path: Path) -> None:
    with Proxy(objects.service) as proxy:
        pass
    begin = time.monotonic()
    done = run(proxy, objects.service.url, "top", cache=tmp_path / "cache")
    assert done.returncode == 3
    assert done.stderr.startswith(b"walkback: s3://stacks/a/store: ")
    assert done.stderr.count(b"\n") == 1
    assert time.monotonic() - begin < 120


def killed(proxy: Proxy, at: int, work: Callable[..., None], cache: Path, *args: Any, done: bool) -> bool:
    """Whether a process is killed at one of its requests, before it is done or when it is; else it comes to its end."""
    first = len(proxy.requests)
    process = None

    def kill(number: int, after: bool) -> bool:
        now = (number - first, after)
        if now == (at, done) and process is not None:
            os.kill(process.pid or 0, signal.SIGKILL)
        return now >= (at, done)

    proxy.on_request = kill
    process = start(work, proxy.environment, cache, proxy.service.url, *args)
    process.join()
    proxy.on_request = lambda _number, _after: False
    assert process.exitcode in {0, -signal.SIGKILL}
    return process.exitcode != 0


@pytest.mark.parametrize("done", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("proxy", LONG, indirect=True)
def test_a_writer_killed_at_any_request_leaves_all_or_nothing(proxy: Proxy, done: bool, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    start(append, proxy.environment, cache, proxy.service.url, ["first"]).join()
    expected = {"first": 1}
    for at in range(200):
        was_killed = killed(proxy, at, append, cache, [f"name{at}"], done=done)
        found = kept(proxy, cache)
        assert found in (expected, {**expected, f"name{at}": 1})
        expected = found
        if not was_killed:
            break
    assert at > 8
    assert f"name{at}" in expected
    start(compact, proxy.environment, cache, proxy.service.url).join()
    assert kept(proxy, cache) == expected


@pytest.mark.parametrize("done", [False, True], ids=["before", "behind"])
@pytest.mark.parametrize("work", [compact, expire])
@pytest.mark.parametrize("proxy", LONG, indirect=True)
def test_who_replaces_is_killed_at_any_request(proxy: Proxy, work: Any, done: bool, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    start(append, proxy.environment, cache, proxy.service.url, ["one", "two"]).join()
    everything = {"one": 1, "two": 1}
    for at in range(200):
        was_killed = killed(proxy, at, work, cache, done=done)
        found = kept(proxy, tmp_path / "other")
        assert found == everything or (work is expire and found == {})
        if not was_killed or not found:
            break
    assert at > 5
    assert found == ({} if work is expire else everything)


@pytest.mark.parametrize("proxy", ["s3", *LONG[1:]], indirect=True)
def test_many_at_once_with_a_service_that_fails(proxy: Proxy, tmp_path: Path) -> None:
    """Nothing that was acknowledged is lost, and nothing is counted twice, at any moment."""
    url, settled = proxy.service.url, 8.0
    chance = random.Random(proxy.service.scheme)
    proxy.faults = Faults(refused=0.04, lost=0.04, twice=0.04, slow=0.04, late=1.0, random=chance)
    until, stop = WAYS.Pipe(duplex=False)
    answers, send = WAYS.Pipe(duplex=False)
    others = [
        *(start(compact, proxy.environment, tmp_path / f"c{n}", url, until, settled) for n in range(2)),
        start(weights, proxy.environment, tmp_path / "reader", url, send, until),
    ]
    names = [[f"w{writer}-{n}" for n in range(5)] for writer in range(4)]
    pipes = [WAYS.Pipe(duplex=False) for _ in names]
    writers = [
        start(append, proxy.environment, tmp_path / its[0], url, its, said, settled)
        for its, (_, said) in zip(names, pipes, strict=True)
    ]
    acknowledged: list[str] = []
    seen: list[Any] = []
    end = time.monotonic() + 8
    while any(writer.is_alive() for writer in writers) or time.monotonic() < end:
        time.sleep(0.1)
        acknowledged += [here.recv() for here, _ in pipes if here.poll()]
        seen += [answers.recv()] if answers.poll() else []
        if len(acknowledged) > 8 and writers[0].is_alive():
            os.kill(writers[0].pid or 0, signal.SIGKILL)
    for here, _ in pipes:
        while here.poll():
            acknowledged.append(here.recv())
    stop.send("end")
    while any(other.is_alive() for other in others):
        time.sleep(0.05)
        seen += [answers.recv()] if answers.poll() else []
    proxy.faults = Faults()
    found = kept(proxy, tmp_path / "fresh")
    answered = [answer for answer in seen if isinstance(answer, dict)]
    assert acknowledged
    assert answered
    assert all(set(one.values()) <= {1} for one in [found, *answered])
    assert set(acknowledged) <= found.keys() <= {name for its in names for name in its}
    assert all("\n" not in answer for answer in seen if isinstance(answer, str))
    assert b"no problems" in run(proxy, url, "check", cache=tmp_path / "fresh").stdout


@pytest.mark.parametrize("proxy", ["s3", *LONG[1:]], indirect=True)
def test_what_was_replaced_is_deleted_when_it_has_settled(proxy: Proxy, tmp_path: Path) -> None:
    cache, url, settled = tmp_path / "cache", proxy.service.url, 2.0
    start(append, proxy.environment, cache, url, ["one", "two", "three"], None, settled).join()
    left_over = ["data/0123456789abcdef01234567/hour=2026-11-21T13/samples.parquet", "trials/0123456789abcdef01234567"]
    put(proxy, dict.fromkeys(left_over, b"by a killed writer"))
    for _ in range(5):
        start(compact, proxy.environment, cache, url, None, settled).join()
        time.sleep(settled)
    left = keys(proxy)
    assert kept(proxy, cache) == {"one": 1, "two": 1, "three": 1}
    assert not [key for key in left if key.startswith("trials/") or key in left_over]
    # The last turn, and those before it that something may still need.
    turns = [key for key in left if key.startswith("segments/")]
    assert all("turn-" in key for key in turns)
    assert len(turns) <= 3
    assert len({key.split("/")[1] for key in left if key.startswith("data/")}) == len(turns)


def test_what_was_replaced_in_part_is_not_overlooked(proxy: Proxy, tmp_path: Path) -> None:
    """A list that lacks an append must not bring back the hour of it that was replaced."""
    cache, url = tmp_path / "cache", proxy.service.url

    def names() -> set[str]:
        return {key.removeprefix("segments/") for key in keys(proxy) if key.startswith("segments/")}

    start(append_hours, proxy.environment, cache, url, "one", [0, 1]).join()
    [late] = names()
    start(append_hours, proxy.environment, cache, url, "two", [0]).join()
    # The hour that both have becomes one block; then that becomes one with another, while the list is late.
    start(compact, proxy.environment, cache, url, None, 1000, "none").join()
    start(append_hours, proxy.environment, cache, url, "two", [0]).join()
    start(compact, proxy.environment, cache, url, None, 1000, late).join()
    assert {"turn-000000000001.json", "turn-000000000002.json"} <= names()
    assert kept(proxy, cache) == {"one": 2, "two": 2}
    start(compact, proxy.environment, cache, url).join()
    assert kept(proxy, cache) == {"one": 2, "two": 2}


def test_what_is_missing_is_found(proxy: Proxy, tmp_path: Path) -> None:
    cache, url = tmp_path / "cache", proxy.service.url
    start(append, proxy.environment, cache, url, ["one"]).join()
    start(compact, proxy.environment, cache, url).join()
    start(append, proxy.environment, cache, url, ["two"]).join()
    start(compact, proxy.environment, cache, url, None, 1000, "none").join()
    start(append_hours, proxy.environment, cache, url, "three", [5]).join()
    start(append_hours, proxy.environment, cache, url, "three", [5]).join()
    start(compact, proxy.environment, cache, url, None, 1000, "none").join()
    assert kept(proxy, cache) == {"one": 1, "two": 1, "three": 2}
    turns = sorted(key for key in keys(proxy) if "turn-" in key)
    ask(proxy, "files.rm(sys.argv[2])", f"{BUCKET}/a/store/{turns[-2]}")
    assert kept(proxy, tmp_path / "other") == f"{url}/{turns[-2]}: this segment is missing"
    segment = json.loads(ask(proxy, "print(files.cat(sys.argv[2]).decode())", f"{BUCKET}/a/store/{turns[-1]}"))["id"]
    [samples] = [key for key in keys(proxy) if segment in key and key.endswith("samples.parquet")]
    ask(proxy, "files.rm(sys.argv[2])", f"{BUCKET}/a/store/{samples}")
    checked = run(proxy, url, "check", cache=cache)
    assert checked.returncode == 1
    lines = checked.stdout.decode().splitlines()
    assert f"{url}/{turns[-2]}: this segment is missing" in lines
    assert f"{url}/{samples}: this file is missing, or not as large as its segment says" in lines


@pytest.mark.long
def test_a_service_that_does_not_answer_is_one_line(objects: Proxy, tmp_path: Path) -> None:
    with Proxy(objects.service) as proxy:
        proxy.faults = Faults(slow=1, slowness=100)
        done = run(proxy, objects.service.url, "top", cache=tmp_path / "cache")
        assert done.returncode == 3
        assert done.stderr.decode() == f"walkback: {objects.service.url}: the service does not answer\n"


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("s3://stacks/a", {"FSSPEC_S3_ENDPOINT_URL": "no address"}),
        ("s3://A_B!/x", {}),
        ("s3://a::b/c", {}),
        ("az://c/p", {"AZURE_STORAGE_CONNECTION_STRING": "wrong"}),
        ("az://c/p", {"AZURE_STORAGE_CONNECTION_STRING": ""}),
    ],
)
def test_what_is_wrong_with_addresses_is_one_line(
    url: str, environment: dict[str, str], objects: Proxy, tmp_path: Path
) -> None:
    environment = {**objects.environment, "WALKBACK_CACHE": str(tmp_path), **environment}
    done = subprocess.run([WALKBACK, "store", url, "top"], env=environment, capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith(f"walkback: {url}: ".encode())
    assert done.stderr.count(b"\n") == 1


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """A service that several tests share."""
    with running("s3", tmp_path_factory.mktemp("service")) as service, Proxy(service) as proxy:
        yield proxy


def test_a_file_that_is_not_what_was_written_is_named(proxy: Proxy, tmp_path: Path) -> None:
    start(append, proxy.environment, tmp_path / "c", proxy.service.url, ["one"]).join()
    [key] = [key for key in keys(proxy) if key.endswith("samples.parquet")]
    put(proxy, {key: b"PAR1"})
    done = run(proxy, proxy.service.url, "top", cache=tmp_path / "cache")
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"walkback: {proxy.service.url}/{key}: this has 4 bytes, and ")


def test_a_file_of_which_half_comes_is_asked_for_again(proxy: Proxy, tmp_path: Path) -> None:
    start(append, proxy.environment, tmp_path / "c", proxy.service.url, ["one"]).join()
    proxy.faults = Faults(cut=True)
    assert kept(proxy, tmp_path / "cache") == {"one": 1}
    assert proxy.was_cut


def described(**changes: object) -> bytes:
    plain = {"version": 1, "id": "0123456789abcdef01234567", "replaces": [], "blocks": {}, "files": {}}
    return json.dumps(plain | changes).encode()


def test_descriptions_that_are_none_are_a_line_each(proxy: Proxy, tmp_path: Path) -> None:
    start(append, proxy.environment, tmp_path / "c", proxy.service.url, ["one"]).join()
    wrong = {
        "name": described(),
        "0123456789abcdef0123456a.json": described(),
        "0123456789abcdef01234560.json": b"",
        "0123456789abcdef01234561.json": b"{",
        "0123456789abcdef01234562.json": b"[]",
        "0123456789abcdef01234563.json": b"[" * 100_000,
        "0123456789abcdef01234567.json": described(version=2),
        "turn-000000000001.json": described(id="../../../../etc"),
        "turn-000000000002.json": described(blocks={"../x": {}}),
        "turn-000000000003.json": described(files=[]),
        "turn-000000000004.json": described(turns={"x": 1}),
        "*.json": described(),
        "0123456789abcdef0123456b.json": described(id="0123456789abcdef0123456b", files={"x": 1e999}),
        "turn-000000000007.json": described(partly=["x"]),
        "turn-000000000006.json": described(dead=["../x"]),
        "turn-000000000005.json": described(turns={"0123456789abcdef01234567": 9}),
    }
    put(proxy, {f"segments/{name}": contents for name, contents in wrong.items()})
    done = run(proxy, proxy.service.url, "top", cache=tmp_path / "cache")
    assert done.returncode == 3
    assert done.stderr.decode().startswith(f"walkback: {proxy.service.url}/segments/")
    assert done.stderr.count(b"\n") == 1
    checked = run(proxy, proxy.service.url, "check", cache=tmp_path / "cache")
    assert checked.returncode == 1
    for name in wrong:
        lines = [line for line in checked.stdout.decode().splitlines() if f"/segments/{name}:" in line]
        assert len(lines) == 1, name


def test_a_cache_that_others_can_write_is_refused(proxy: Proxy, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "stores"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = run(proxy, proxy.service.url, "append", "-", cache=folder.parent, stdin=LINES)
    assert done.returncode == 3
    assert (
        done.stderr.decode()
        == f"walkback: {folder}: this is not a folder that only you can write, so nothing is kept in it\n"
    )
    assert not list(folder.iterdir())
