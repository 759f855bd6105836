"""Tables of names: what an address is called, which of several rows holds, and what is said of a damaged table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from capture.targets import compiled
from store.test_store_kept import NAMES, filled, names, recorded, tables
from walkback.base.errors import UnreadableError
from walkback.naming.modules import Modules
from walkback.naming.names import Names
from walkback.segments.database import connect
from walkback.stacks.profile import NamedFrames
from walkback.store.append import Append
from walkback.store.known import KnownNames
from walkback.store.names import KeptNames, joined, names_of, names_to_ends, read_names, write_names
from walkback.store.store import Store
from walkback.symbols.sourceline import SourceLine

_HIGHEST = f"'{2**64 - 1}'::UBIGINT"
_TWO = "concat('a', chr(10), 'b')"


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one table of names; the recording is in the folder `a` beside it."""
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))
    _, data = recorded(tmp_path / "a")
    filled(Store(tmp_path / "store", create=True), data)
    return tmp_path / "store"


def table(*rows: tuple[str, int, int, tuple[str, ...]]) -> KeptNames:
    columns = list(zip(*rows, strict=True))
    build_ids = sorted(set(columns[0]))
    module = np.array([build_ids.index(one) for one in columns[0]])
    start, reach = (np.array(column, np.uint64) for column in columns[1:3])
    return joined([KeptNames(build_ids, module, start, reach, list(columns[3]))])


def asked(
    names: KeptNames, *addresses: int, build_id: str = "aa"
) -> list[tuple[str | None, int, tuple[str, ...]] | None]:
    found = names.find([build_id], np.zeros(len(addresses), np.int64), np.array(addresses, np.uint64))
    return [
        (found.symbol(row), found.start(row), found.inlined(row)) if found.function[row] >= 0 else None
        for row in range(len(addresses))
    ]


def test_an_address_is_in_the_innermost_function_that_reaches_so_far() -> None:
    names = table(
        ("aa", 0x100, 0x80, ("outer",)),
        ("aa", 0x120, 0x10, ("inner",)),
        ("aa", 0x128, 0, ("deep", "mid", "inner")),
        ("aa", 0x120, 0, ("first", "inner")),
        ("aa", 0x200, 5, ()),
        ("bb", 0x100, 0x200, ("other",)),
    )
    assert asked(names, 0xFF, 0x100, 0x180, 0x181) == [None, ("outer", 0x100, ()), ("outer", 0x100, ()), None]
    assert asked(names, 0x120, 0x128, 0x130, 0x131) == [
        *[("inner", 0x120, ("first",)), ("inner", 0x120, ("deep", "mid"))],
        *[("inner", 0x120, ()), ("outer", 0x100, ())],
    ]
    assert asked(names, 0x205, 0x206) == [(None, 0x200, ()), None]
    assert asked(names, 0x205, 2**64 - 1, build_id="bb") == [("other", 0x100, ()), None]
    assert asked(names, 0x205, build_id="cc") == [None]


def test_the_newest_name_holds_and_the_longest_reach() -> None:
    old, new = table(("aa", 1, 9, ("old",)), ("aa", 20, 1, ("kept",))), table(("aa", 1, 3, ("new",)), ("aa", 20, 2, ()))
    assert asked(joined([old, new]), 10, 22) == [("new", 1, ()), ("kept", 20, ())]
    known = KnownNames()
    known.add(old)
    assert [row[1:] for row in known.beyond(new).rows()] == [(1, 3, ("new",)), (20, 2, ())]
    assert len(known.beyond(old)) == 0
    known.add(new)
    assert len(known.beyond(new)) == 0
    assert [row[1:] for row in known.beyond(old).rows()] == [(1, 9, ("old",))]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("NULL AS build_id, [1] AS steps, [1] AS reaches, 'a' AS calls", "lacks a value"),
        ("'aa' AS build_id, NULL AS steps, [1] AS reaches, 'a' AS calls", "lacks a value"),
        ("'aa' AS build_id, [1] AS steps, [NULL] AS reaches, 'a' AS calls", "lacks a value"),
        ("'aa' AS build_id, [1, 2] AS steps, [1, 2] AS reaches, 'a' AS calls", "2 steps, 2 reaches and 1 lines"),
        ("'aa' AS build_id, [1] AS steps, [1, 2] AS reaches, 'a' AS calls", "1 steps, 2 reaches and 1 lines"),
        ("'aa' AS build_id, [] AS steps, [] AS reaches, '' AS calls", "0 steps, 0 reaches and 1 lines"),
        ("'aa' AS build_id, [1] AS steps, [1] AS reaches, concat('a', chr(9), chr(9), 'b') AS calls", "that are none"),
        (f"'aa' AS build_id, [{_HIGHEST} - 1] AS steps, [1] AS reaches, 'a' AS calls", "beyond all addresses"),
        (f"'aa' AS build_id, [1, {_HIGHEST}] AS steps, [0, 0] AS reaches, {_TWO} AS calls", "beyond all addresses"),
        ("'aa' AS build_id, [-2] AS steps, [1] AS reaches, 'a' AS calls", "."),
        ("'aa' AS build_id, [1] AS steps, [4294967296] AS reaches, 'a' AS calls", "."),
        ("'aa' AS build_id, 2 AS start, 1 AS reach, ['a'] AS calls", "."),
    ],
)
def test_a_table_that_is_wrong_is_told_with_its_name(wrong: str, why: str, kept: Path) -> None:
    store = Store(kept)
    (file,) = tables(store)
    with connect() as db:
        db.execute(f"COPY (SELECT {wrong}) TO '{file}' (FORMAT parquet)")
        with pytest.raises(UnreadableError, match=why) as raised:
            read_names(db, [file])
    assert raised.value.file == str(file)
    (problem,) = store.check()
    assert problem.file == str(file)


def test_a_table_that_is_cut_short_or_missing_is_told(kept: Path) -> None:
    store = Store(kept)
    (file,) = tables(store)
    whole = file.read_bytes()
    for contents in (whole[:-9], b"", whole[:40] + bytes(40) + whole[80:]):
        file.write_bytes(contents)
        (problem,) = store.check()
        assert problem.file == str(file)
        with pytest.raises(UnreadableError):
            store.select().top()
    file.unlink()
    (problem,) = store.check()
    assert problem.file == str(file)


def test_a_damaged_table_keeps_no_samples_out_and_can_be_given_up(kept: Path) -> None:
    store = Store(kept)
    (file,) = tables(store)
    file.write_bytes(b"damaged")
    with store.append() as new:
        new.recording(kept.with_name("a") / "perf.data")
    assert [note for note in new.notes if str(file) in note and note.endswith("all names of this append are kept")]
    with pytest.raises(UnreadableError):
        names(store)
    (kept.with_name("a") / "hello").unlink()
    description = file.with_name("segment.json")
    description.write_text(json.dumps(json.loads(description.read_text()) | {"names": 0}))
    assert names(store) == {name: 2 * weight for name, weight in NAMES.items()}
    assert store.check() == []


def test_functions_are_kept_up_to_a_round_distance_where_they_go_on_so_far(tmp_path: Path) -> None:
    program = compiled(tmp_path, "int main(void) { return 0; }", "-static", "-Wl,--build-id")
    listed = subprocess.run(["nm", "-S", program], stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    sizes = {int(row[0], 16): int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT"}
    modules = Modules()
    number = modules.file(str(program))
    named = Names(modules)

    def find(module: np.ndarray, address: np.ndarray) -> NamedFrames:
        found = named.find(module, address)
        return NamedFrames(found.symbol, found.module, address, np.zeros(len(address), np.bool_), found.offset)

    address = np.array([start + size // 2 for start, size in sizes.items() if size], np.uint64)
    module = np.full(len(address), number)
    build_ids = [None] * number + ["aa"]
    found = names_to_ends(build_ids, module, find(module, address), [()] * len(address), find)
    met = names_of(build_ids, module, find(module, address), [()] * len(address))
    assert len(found) > 500
    assert (found.start.tolist(), found.calls) == (met.start.tolist(), met.calls)
    assert (found.reach >= met.reach).all()
    beyond = [
        start
        for start, reach in zip(found.start.tolist(), found.reach.tolist(), strict=True)
        if start in sizes and reach >= sizes[start] > 0
    ]
    assert beyond == []
    assert sum((reach + 1).bit_count() <= 3 for reach in found.reach.tolist()) > len(found) // 2


def test_names_with_the_marks_that_part_names_stay_one(tmp_path: Path) -> None:
    frames = NamedFrames(["a\tb\nc"], ["prog"], np.array([8], np.uint64), np.zeros(1, np.bool_), np.zeros(1, np.uint64))
    names = names_of(["aa"], np.zeros(1, np.int64), frames, [()])
    with connect() as db:
        write_names(db, tmp_path, names, 3)
        assert asked(read_names(db, [tmp_path / "names.parquet"]), 8) == [("a\\tb\\nc", 8, ())]


def test_names_are_written_and_read_back(tmp_path: Path) -> None:
    names = table(
        ("aa", 1, 2, ("a",)), ("aa", 1, 0, ("b", "a")), ("bb", 2**63, 3, ()), ("bb", 2**64 - 9, 3, ("\u00e9",))
    )
    with connect() as db:
        write_names(db, tmp_path, names, 3)
        found = read_names(db, [tmp_path / "names.parquet"])
        assert list(found.rows()) == list(names.rows())
        assert list(read_names(db, [tmp_path / "names.parquet"], ["bb", None, "cc"]).rows()) == [
            (0, *row[1:]) for row in names.rows() if row[0]
        ]


def test_calls_without_names_are_not_kept() -> None:
    """As where the file is missing that has them; what remains would be taken for a function that begins there."""
    address, offset = np.array([0x120, 0x130], np.uint64), np.array([0x20, 0x30], np.uint64)
    frames = NamedFrames(["run", "run"], ["/a", "/a"], address, np.zeros(2, np.bool_), offset)
    unnamed, named = SourceLine(None, 0, None), SourceLine(None, 0, "step")
    found = names_of(["ab"], np.zeros(2, np.int64), frames, [(unnamed, unnamed), (unnamed, named)])
    assert list(found.rows()) == [(0, 0x100, 0x30, ("run",)), (0, 0x130, 0, ("step", "run"))]
    answers = found.find(["ab"], np.zeros(2, np.int64), address)
    assert [answers.start(number) for number in range(2)] == [0x100, 0x100]
    assert [answers.inlined(number) for number in range(2)] == [(), ("step",)]


def test_one_append_after_the_other_reads_no_table_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALKBACK_CACHE", str(tmp_path / "cache"))
    _, data = recorded(tmp_path / "a")
    store, known = Store(tmp_path / "store", create=True), KnownNames()
    read: list[Path] = []

    def reading(db: object, files: Sequence[Path], build_ids: Iterable[str | None] | None = None) -> KeptNames:
        read.extend(files)
        return read_names(db, files, build_ids)  # type: ignore[arg-type]

    monkeypatch.setattr("walkback.store.known.read_names", reading)

    def append() -> None:
        with Append(store.folder, known=known) as new:
            new.recording(data)

    append()
    (first,) = tables(store)
    for _ in range(3):
        append()
    assert tables(store) == [first]
    assert not read
    # Somebody else makes one table of it: that is read once, and says the same.
    store.compact(every=True)
    (compacted,) = tables(store)
    assert compacted != first
    for _ in range(3):
        append()
    assert tables(store) == [compacted]
    assert read == [compacted]
    # Another writer's names are known as well.
    _, other = recorded(tmp_path / "b", build_id="bb" * 20)
    filled(store, other)
    read.clear()
    with Append(store.folder, known=known) as new:
        new.recording(data)
        new.recording(other)
    assert len(tables(store)) == 2
    assert len(names(store)) == len(NAMES)
