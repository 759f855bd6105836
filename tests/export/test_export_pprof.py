"""pprof files, read by a reader that knows only the published field numbers."""

from __future__ import annotations

import pytest

from export.pprofreader import read, varint
from profiles import Recording, nasty, written
from walkback.export import pprof, protobuf
from walkback.stacks.profile import CodeMapping

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32, 2**63, 2**64 - 1])
def test_varint(value: int) -> None:
    assert varint(protobuf.varint(value), 0) == (value, len(protobuf.varint(value)))


def test_negative_numbers_are_their_64_bits() -> None:
    assert varint(protobuf.varint(-1), 0) == (2**64 - 1, 10)


def recording() -> Recording:
    return Recording(
        ["leaf", None, "main", "leaf"],
        ["/bin/p", "/lib/l.so", "/bin/p", "/bin/p"],
        [("p", [0, 2]), ("p", [1, 2]), ("q", [0, 2]), ("p", [0, 2]), ("p", [3])],
        weights=[5, 6, 7, 8, 2**63],
        threads=[(1, 1), (1, 2), (3, 3), (1, 1), (-1, 0)],
        files=["a.c", None, "a.c", "a.c"],
        lines=[10, 0, 20, 11],
    )


def test_samples_locations_and_functions() -> None:
    mapping = CodeMapping("/lib/l.so", bytes.fromhex("0123ab"), 0x1000, 0x9000, 0x200)
    made = recording().profile(
        threads=True, unit="nanoseconds", title="it", start=11, duration=22, period=33, mappings=[mapping]
    )
    found = read(written(pprof.write, made))
    text = found["string_table"]
    assert [(text[one["type"]], text[one["unit"]]) for one in found["sample_type"]] == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
    ]
    assert [(text[one["type"]], text[one["unit"]]) for one in found["period_type"]] == [("cpu", "nanoseconds")]
    assert (found["time_nanos"], found["duration_nanos"], found["period"]) == (11, 22, 33)
    assert [text[one] for one in found["comment"]] == ["it"]
    samples = []
    for sample in found["sample"]:
        locations = [found["location_by_id"][one] for one in sample["location_id"]]
        functions = [found["function_by_id"][one["line"][0]["function_id"]] for one in locations]
        labels = {text[one["key"]]: text[one["str"]] if "str" in one else one.get("num", 0) for one in sample["label"]}
        places = [
            (text[function["name"]], one["line"][0].get("line", 0))
            for function, one in zip(functions, locations, strict=True)
        ]
        samples.append((places, sample["value"], labels))
    assert samples == [
        ([("leaf", 10), ("main", 20)], [2, 13], {"comm": "p", "pid": 1, "tid": 1}),
        ([("[l.so]", 0), ("main", 20)], [1, 6], {"comm": "p", "pid": 1, "tid": 2}),
        ([("leaf", 10), ("main", 20)], [1, 7], {"comm": "q", "pid": 3, "tid": 3}),
        ([("leaf", 11)], [1, 2**63], {"comm": "p", "pid": 2**64 - 1, "tid": 0}),
    ]
    assert len(found["function"]) == 3
    first, second = found["mapping"]
    assert (text[first["filename"]], text[first["build_id"]]) == ("/lib/l.so", "0123ab")
    assert (first["memory_start"], first["memory_limit"], first["file_offset"]) == (0x1000, 0x9000, 0x200)
    assert (text[second["filename"]], second["has_filenames"], "build_id" in second) == ("/bin/p", 1, False)
    where = [(one["address"], found["mapping_by_id"][one["mapping_id"]]["filename"]) for one in found["location"]]
    assert where[1] == (0x1010, first["filename"])


def test_without_threads_and_weights() -> None:
    found = read(written(pprof.write, recording().profile()))
    assert [sample["value"] for sample in found["sample"]] == [[2], [1], [1], [1]]
    assert all(len(sample["label"]) == 1 for sample in found["sample"])


def test_nasty_names() -> None:
    found = read(written(pprof.write, nasty().profile(title="\udcff").marked()))
    assert sum(sample["value"][0] for sample in found["sample"]) == 78
    assert len(set(found["string_table"])) == len(found["string_table"])


def test_nothing() -> None:
    found = read(written(pprof.write, Recording([], [], []).profile()))
    assert (found["sample"], found["location"]) == ([], [])
